"""Serves a self-hosted model exactly the way a vendor serves it."""

__version__ = "0.1.0"
