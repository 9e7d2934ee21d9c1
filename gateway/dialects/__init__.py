"""The three client dialects and their conversions; pure, and free of sockets and settings."""
