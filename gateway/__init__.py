"""Serves a self-hosted model exactly the way a vendor serves it."""
