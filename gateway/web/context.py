"""What the HTTP edge reads off a request before anything else: its id, headers, dialect."""

import re
import uuid
from typing import Any, Final

from gateway.routes import ROUTES, Dialect

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_HEADER_PREFIX: Final = "HTTP_"


def request_id_of(environ: dict[str, Any]) -> str:
    """The caller's request id where it is sane, else a new one."""
    sent = environ.get("HTTP_X_REQUEST_ID", "")
    return sent if _REQUEST_ID.fullmatch(sent) else f"req_{uuid.uuid4().hex}"


def headers_of(environ: dict[str, Any]) -> dict[str, str]:
    """The client's headers, names in lower case with dashes."""
    return {
        key[len(_HEADER_PREFIX) :].replace("_", "-").lower(): value
        for key, value in environ.items()
        if key.startswith(_HEADER_PREFIX)
    }


def dialect_of(path: str, environ: dict[str, Any]) -> Dialect:
    """The dialect of errors on a path, be it a route or not.

    By the longest route that the path begins with, else by Anthropic's version header.
    """
    for route in sorted(ROUTES, key=lambda route: -len(route.path)):
        if path == route.path or path.startswith(f"{route.path}/"):
            return route.dialect
    return Dialect.MESSAGES if "HTTP_ANTHROPIC_VERSION" in environ else Dialect.CHAT
