"""Who may call: clients present a key, as a Bearer token or as `x-api-key`."""

from typing import Any

from gateway.api_keys import ApiKeys
from gateway.errors import NOT_AUTHENTICATED, GatewayError


def authenticate(environ: dict[str, Any], keys: ApiKeys | None) -> bytes | None:
    """Lets the request pass where the gateway is open, or where it carries a known key.

    Returns:
        What stands for the client; None where the gateway is open.

    Raises:
        GatewayError: 401; which of the keys was wrong is not told.
    """
    if keys is None:
        return None
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    presented = token.strip() if scheme.lower() == "bearer" else ""
    presented = presented or environ.get("HTTP_X_API_KEY", "").strip()
    client = keys.identify(presented) if presented else None
    if client is None:
        raise GatewayError(
            NOT_AUTHENTICATED,
            "A valid API key is required: present one as a Bearer token or as x-api-key.",
        )
    return client
