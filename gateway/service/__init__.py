"""The use cases: what the gateway does with a request, told without HTTP or sockets."""
