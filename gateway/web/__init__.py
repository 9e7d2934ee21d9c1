"""The HTTP edge: the only part that knows Falcon and gunicorn."""
