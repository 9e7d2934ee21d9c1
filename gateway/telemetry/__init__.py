"""What the gateway tells its operator while it runs."""
