"""The headers that an engine gets: an allow-list, so that nothing of the caller's slips through.

The caller's credentials (`authorization`, `x-api-key`, `cookie` and whatever else a vendor
invents) never pass; its `Authorization` alone does where the operator says so and the server has
no key of its own.
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol

ANTHROPIC_VERSION: Final = "2023-06-01"

_PASSED: Final = frozenset({"traceparent", "tracestate", "x-data-parallel-rank"})
_PASSED_PREFIX: Final = "x-sgl-"
_REQUEST_ID: Final = "x-request-id"

_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that describe the message or its connection: no setting may name them."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Keyed(Protocol):
    """What the headers need of a server."""

    @property
    def api_key(self) -> str:
        """Sent as a Bearer token; empty: no header."""
        ...

    @property
    def extra_headers(self) -> Mapping[str, str]:
        """Of the operator, checked."""
        ...


def engine_headers(
    server: Keyed,
    client_headers: Mapping[str, str],
    request_id: str,
    *,
    messages: bool,
    forward_authorization: bool,
) -> dict[str, str]:
    """The headers of a request to an engine, names in lower case.

    Args:
        server: gives its key and its extra headers, which stand below all others.
        client_headers: of the caller; the case of the names does not matter.
        request_id: of this request.
        messages: the path is one of the engine's Messages paths.
        forward_authorization: the caller's `Authorization` goes to a server without a key.
    """
    headers = {name.lower(): value for name, value in server.extra_headers.items()}
    for name, value in client_headers.items():
        lower = name.lower()
        passes = (
            lower in _PASSED
            or lower.startswith(_PASSED_PREFIX)
            or (lower == "authorization" and forward_authorization and not server.api_key)
        )
        if passes and value and _sendable(value) and _TOKEN.fullmatch(lower):
            headers[lower] = value.strip(" \t")
    headers["content-type"] = "application/json"
    headers[_REQUEST_ID] = request_id
    if server.api_key:
        headers["authorization"] = f"Bearer {server.api_key}"
    if messages:
        headers["anthropic-version"] = ANTHROPIC_VERSION
    return headers


def _sendable(value: str) -> bool:
    return _VALUE.fullmatch(value) is not None


def check_key(server_name: str, key: str) -> None:
    """Refuses a key that cannot stand in a header, without showing it.

    Raises:
        ValueError: it has a line end, a control character, white space at an end, or a
            character beyond ASCII.
    """
    if key and (key != key.strip() or not key.isascii() or not key.isprintable()):
        raise ValueError(
            f"{server_name}: the key has a character that no header can carry (a line end, "
            "white space around it, or a letter beyond ASCII)"
        )


def check_extra_headers(server_name: str, headers: Mapping[str, str]) -> None:
    """Refuses extra headers that cannot be sent, without showing their values.

    Raises:
        ValueError: a name is no header name, is the gateway's own business, or a value has a
            character that no header can carry.
    """
    for name, value in headers.items():
        where = f"{server_name}: extra_headers: {name!r}"
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{where} is not a header name")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise ValueError(f"{where} is set by the gateway and cannot be given")
        if value != value.strip() or not _sendable(value):
            raise ValueError(
                f"{where}: the value has a character that no header can carry (a line end, "
                "white space around it, or a letter beyond Latin-1)"
            )
