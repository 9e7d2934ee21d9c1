"""`python -m gateway` is `sgl-gateway`."""

from gateway.cli.main import main

main()
