"""Engines: which there are, how a request reaches one, how its answer comes back.

The only package that imports requests and urllib3. Its failures are the exceptions of
`gateway.errors`; none of theirs leaves it.
"""
