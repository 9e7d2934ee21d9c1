"""The command `sgl-gateway`: one module a command, each with a `register` for `main`."""
