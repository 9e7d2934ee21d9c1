"""Failures on the wire: five engine shapes in, two client shapes out.

SGLang answers errors in five shapes (flat, nested, Anthropic, `{"error": "text"}`, plain text).
Each is read into one `Failure`, and so is each of the gateway's own errors; a `Failure` is then
rendered in the caller's dialect, as a body or as an event inside a stream.

Rules:
- the engine's status is kept, except 401 and 403: that is the gateway's own key gone wrong,
  so the client, whose key is fine, gets 502;
- a body in an OpenAI shape keeps its keys; a flat one gains an `error` object, so that readers
  of either shape find what they look for;
- a message that quotes a server file is rewritten to the fields and reasons in it;
- `bad_request_type` replaces `type` in a 400 and nothing else.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from gateway import jsonbody, sse
from gateway.errors import (
    BAD_REQUEST,
    BODY_TOO_LARGE,
    INTERNAL,
    NOT_FOUND,
    OVERLOADED,
    RATE_LIMITED,
    UPSTREAM_ABORTED,
    UPSTREAM_AUTH,
    UPSTREAM_PROTOCOL,
    UPSTREAM_TIMEOUT,
    GatewayError,
    Kind,
)
from gateway.routes import Dialect

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})

_KIND_OF_STATUS: Final = {
    400: BAD_REQUEST,
    404: NOT_FOUND,
    413: BODY_TOO_LARGE,
    429: RATE_LIMITED,
    500: INTERNAL,
    502: UPSTREAM_PROTOCOL,
    503: OVERLOADED,
    504: UPSTREAM_TIMEOUT,
    529: OVERLOADED,
}
"""How an engine's status is spelled where its body gives no usable type or code."""

_ANTHROPIC_TYPE: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}

_STATUS_OF_TYPE: Final = {
    "overloaded_error": 503,
    "SERVICE_UNAVAILABLE": 503,
    "rate_limit_error": 429,
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "BAD_REQUEST": 400,
    "not_found_error": 404,
    "NotFoundError": 404,
    "request_too_large": 413,
}
"""The status that an error inside a stream stands for, where it carries no numeric code."""

_DUMP: Final = re.compile(
    r"""'loc': \((?P<loc>.*?),?\), 'msg': (?P<msg>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL
)
_SERVER_FILE: Final = re.compile(r"""\n\s*File "|Traceback \(most recent""")
_SOURCE_LINE: Final = re.compile(r"\[\d\d:\d\d:\d\d\] /\S+:\d+: ")
"""How the grammar compiler's messages begin: the time, and a line of its own source."""
_MAX_REASONS: Final = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, ready for either dialect.

    Attributes:
        status: the HTTP status; inside a stream it is only informative.
        code: OpenAI's `code`.
        router_code: the value of `x-router-error-code`; None where the engine made the error.
        source: the engine's own body where it has an OpenAI shape; its keys are kept.
        headers: `retry-after` and the like.
    """

    status: int
    message: str
    type: str
    code: str | int | None
    anthropic_type: str
    param: str | None = None
    router_code: str | None = None
    source: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class EngineFailure(Exception):  # noqa: N818 - the failure is the point, not the exception
    """An engine's stream or reply told of a failure, or was no proper reply."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_of_kind(kind: Kind, message: str) -> Failure:
    """A failure that the gateway itself found."""
    return Failure(
        status=kind.status,
        message=message,
        type=kind.type,
        code=kind.code,
        anthropic_type=kind.anthropic_type,
        router_code=kind.code,
    )


def failure_of(error: GatewayError) -> Failure:
    """One of the gateway's own errors."""
    return replace(
        failure_of_kind(error.kind, error.message), param=error.param, headers=error.headers
    )


def protocol_failure(message: str) -> EngineFailure:
    """The engine sent something unreadable, half a reply, or a reply without a choice."""
    return EngineFailure(failure_of_kind(UPSTREAM_PROTOCOL, message))


def aborted_failure() -> EngineFailure:
    """The engine gave the generation up (`finish_reason: abort`)."""
    return EngineFailure(failure_of_kind(UPSTREAM_ABORTED, "The engine aborted the generation."))


def cut_off_failure() -> EngineFailure:
    """The engine's stream ended before its answer did."""
    return EngineFailure(failure_of_kind(UPSTREAM_PROTOCOL, "The engine's stream was cut off."))


def parse_engine_error(status: int, body: bytes, *, own_key: bool = True) -> Failure:
    """Reads an engine's error reply.

    Args:
        status: 400 to 599.
        body: as received, in any of the five shapes.
        own_key: the engine was shown the gateway's key; False where the client's own
            `Authorization` was forwarded, and a 401 is then the client's.
    """
    if status in {401, 403} and own_key:
        return failure_of_kind(UPSTREAM_AUTH, "The engine refused the gateway's key.")
    payload = _parse_object(body)
    inner = payload.get("error", payload)
    if isinstance(inner, Mapping) and isinstance(inner.get("message"), str):
        openai_shaped = payload.get("type") != "error"
        return _failure(status, inner, payload if openai_shaped else None)
    kind = _kind_of_status(status)
    return replace(
        failure_of_kind(kind, f"The engine answered with status {status}."),
        status=status,
        anthropic_type=_anthropic_type(status),
        router_code=None,
    )


def parse_error_frame(payload: Mapping[str, Any]) -> Failure:
    """Reads an error that arrived inside a 200 stream: `{"error": {...}}` in either dialect.

    The status is the one the engine would have answered with, had it known in time:
    overloaded 503, an invalid request 400, a code of its own as it is, anything else 502.
    """
    inner = payload.get("error")
    if isinstance(inner, str):
        inner = {"message": inner}
    if not isinstance(inner, Mapping):
        return protocol_failure("The engine sent an unreadable error.").failure
    code = inner.get("code")
    status = code if isinstance(code, int) and 400 <= code <= 599 else None
    status = status or _STATUS_OF_TYPE.get(str(inner.get("type")), 502)
    if status in {401, 403}:
        return failure_of_kind(UPSTREAM_AUTH, "The engine refused the gateway's key.")
    if status in {500, 502}:
        message, _ = _readable(inner.get("message"), "The engine failed.")
        return replace(failure_of_kind(UPSTREAM_ABORTED, message), router_code=None)
    return _failure(status, inner, None)


def render_error(
    dialect: Dialect, failure: Failure, *, request_id: str, bad_request_type: str | None = None
) -> bytes:
    """The body of an error reply.

    Args:
        dialect: of the route, which decides the envelope.
        failure: what went wrong.
        request_id: repeated inside Anthropic's envelope.
        bad_request_type: the profile's, where it governs the route; applied to a 400 only.
    """
    if failure.status != BAD_REQUEST.status:
        bad_request_type = None
    if dialect.anthropic:
        return jsonbody.render_value(
            _anthropic_body(failure, request_id, bad_request_type or failure.anthropic_type)
        )
    error = _openai_error(failure)
    if bad_request_type:
        error["type"] = bad_request_type
    if failure.source is None:
        return jsonbody.render_value({"error": error})
    if "error" in failure.source:
        return jsonbody.render_value({**failure.source, "error": error})
    flat = {**failure.source, "message": failure.message}
    if bad_request_type:
        flat["type"] = bad_request_type
    return jsonbody.render_value({**flat, "error": error})


def render_error_event(dialect: Dialect, failure: Failure, *, request_id: str) -> bytes:
    """The event that ends a stream after its commit point (Responses has its own, see there)."""
    if dialect.anthropic:
        body = _anthropic_body(failure, request_id, failure.anthropic_type)
        return sse.render_event(jsonbody.render_value(body), "error")
    return sse.render_event(jsonbody.render_value({"error": _openai_error(failure)}))


def _openai_error(failure: Failure) -> dict[str, Any]:
    source = failure.source.get("error", _EMPTY) if failure.source else _EMPTY
    return {
        **source,
        "message": failure.message,
        "type": failure.type,
        "param": failure.param,
        "code": failure.code,
    }


def _anthropic_body(failure: Failure, request_id: str, type_: str) -> dict[str, Any]:
    error = {"type": type_, "message": failure.message}
    return {"type": "error", "error": error, "request_id": request_id}


def _failure(status: int, inner: Mapping[str, Any], source: Mapping[str, Any] | None) -> Failure:
    """`inner` has the message; its type and code are kept where they are of any use."""
    kind = _kind_of_status(status)
    message, param = _readable(inner.get("message"), f"The engine answered {status}.")
    # The names in an Anthropic shape or in a stream are none that an OpenAI client knows.
    type_, code = (None, None) if source is None else (inner.get("type"), inner.get("code"))
    if not isinstance(type_, str) or type_.isdigit() or type_ == "Bad Request":
        type_ = kind.type
    sent = inner.get("param")
    return Failure(
        status=status,
        message=message,
        type=type_,
        code=code if isinstance(code, str) and not code.isdigit() else kind.code,
        anthropic_type=_anthropic_type(status),
        param=sent if isinstance(sent, str) else param,
        source=source,
    )


def _kind_of_status(status: int) -> Kind:
    known = _KIND_OF_STATUS.get(status)
    if known is not None:
        return known
    return BAD_REQUEST if status < 500 else INTERNAL


def _anthropic_type(status: int) -> str:
    """The Anthropic type of an engine's status; the engine's own names are not all Anthropic's."""
    other = "invalid_request_error" if status < 500 else "api_error"
    return _ANTHROPIC_TYPE.get(status, other)


def _parse_object(body: bytes) -> Mapping[str, Any]:
    try:
        payload = jsonbody.parse_value(body)
    except GatewayError:
        return _EMPTY
    return payload if isinstance(payload, dict) else _EMPTY


def _readable(told: object, fallback: str) -> tuple[str, str | None]:
    """A message without the server's files; SGLang's dump of a schema error as `field: reason; …`.

    Args:
        told: by the engine.
        fallback: for a message that says nothing.

    Returns:
        the message, and the first field at fault where there is one.
    """
    message = _SOURCE_LINE.sub("", str(told or "")).rstrip() or fallback
    cut = _SERVER_FILE.search(message)
    if cut is None:
        return message, None
    head = message[: cut.start()]
    reasons: dict[str, str] = {}
    first: str | None = None
    for found in _DUMP.finditer(head):
        parts = [part.strip().strip("'\"") for part in found["loc"].split(", ")]
        names = [part for part in parts[1:] if not re.search(r"[\[\](){}]|Param$", part)]
        reason = ast.literal_eval(found["msg"]).removeprefix("Value error, ")
        name = ".".join(names) or "body"
        reasons.setdefault(f"{name}: {reason}", name)
        first = first or (names[0] if names else None)
    if not reasons:
        return "The engine refused the request.", None
    return "; ".join(list(reasons)[:_MAX_REASONS]), first
