"""Every failure that a client can see, as one table.

A `Kind` says what went wrong and how each dialect spells it; a `GatewayError` is one
occurrence, with a message for the client. Neither knows HTTP libraries: the dialects render
an error and the web layer sends it.

Rules: one row a cause; `code` is also the value of the header `x-router-error-code`. A message
names the field, the value and what would be right, and never a server's address, a key, a
path on this machine or a stack trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A cause of failure and its spelling on the wire.

    Attributes:
        status: the HTTP status.
        type: `error.type` in the OpenAI dialects.
        code: `error.code` in the OpenAI dialects, and `x-router-error-code`.
        anthropic_type: `error.type` in the Anthropic envelope.
    """

    status: int
    type: str
    code: str
    anthropic_type: str


_INVALID: Final = "invalid_request_error"

BAD_REQUEST: Final = Kind(400, _INVALID, "bad_request", _INVALID)
SAMPLING_CONTRACT: Final = Kind(400, _INVALID, "sampling_contract_violation", _INVALID)
UNSUPPORTED_OPERATION: Final = Kind(
    400, "UnsupportedOperationError", "unsupported_operation", _INVALID
)
NOT_AUTHENTICATED: Final = Kind(
    401, "authentication_error", "invalid_api_key", "authentication_error"
)
MODEL_NOT_FOUND: Final = Kind(404, _INVALID, "model_not_found", "not_found_error")
NOT_FOUND: Final = Kind(404, _INVALID, "not_found", "not_found_error")
METHOD_NOT_ALLOWED: Final = Kind(405, _INVALID, "method_not_allowed", _INVALID)
BODY_STALLED: Final = Kind(408, _INVALID, "request_timeout", _INVALID)
BODY_TOO_LARGE: Final = Kind(413, _INVALID, "request_too_large", "request_too_large")
UNSUPPORTED_MEDIA: Final = Kind(415, _INVALID, "unsupported_media_type", _INVALID)
RATE_LIMITED: Final = Kind(429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error")
INTERNAL: Final = Kind(500, "server_error", "internal_error", "api_error")
UPSTREAM_UNREACHABLE: Final = Kind(502, "server_error", "upstream_unreachable", "api_error")
UPSTREAM_ABORTED: Final = Kind(502, "server_error", "upstream_aborted", "api_error")
UPSTREAM_AUTH: Final = Kind(502, "server_error", "upstream_auth_failed", "api_error")
UPSTREAM_PROTOCOL: Final = Kind(502, "server_error", "upstream_protocol_error", "api_error")
OVERLOADED: Final = Kind(503, "server_error", "overloaded", "overloaded_error")
NO_HEALTHY_SERVERS: Final = Kind(503, "server_error", "no_healthy_servers", "overloaded_error")
DRAINING: Final = Kind(503, "server_error", "draining", "overloaded_error")
UPSTREAM_TIMEOUT: Final = Kind(504, "server_error", "upstream_timeout", "api_error")

KINDS: Final = tuple(value for value in globals().values() if isinstance(value, Kind))
"""The whole table, in order of status: the documentation is checked against it."""


class GatewayError(Exception):
    """A failure that is told to the client.

    Args:
        kind: the row of the table.
        message: for the client, one or two sentences.
        param: the request field at fault, where there is one.
        headers: sent with the reply (`retry-after`, `allow`).
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.headers = headers


def bad_request(message: str, param: str | None = None) -> GatewayError:
    """A 400 with the code `bad_request`."""
    return GatewayError(BAD_REQUEST, message, param=param)


def body_too_large(max_bytes: int) -> GatewayError:
    """A 413: the body is larger than the profile's `limits.max_body_bytes`."""
    return GatewayError(BODY_TOO_LARGE, f"The request body is larger than {max_bytes} bytes.")


class EngineFault(GatewayError):  # noqa: N818 - it tells of a fault; GatewayError is the error
    """A failure on the engine's side, or on the way to it.

    Args:
        retriable: whether another server may be asked. True only where this server has not
            begun, or has given up, the generation: never after a read time-out.
        refused: the connection was never made, so the server saw nothing of the request.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        retriable: bool = False,
        refused: bool = False,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(kind, message, headers=headers)
        self.retriable = retriable
        self.refused = refused


class ClientGone(Exception):  # noqa: N818 - not an error: there is nobody left to tell
    """The client closed its connection (or its sending half), so the work for it is dropped."""
