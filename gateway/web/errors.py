"""Errors that are not an inference request's: routing, methods, and bugs, as JSON.

Always JSON, whatever `Accept` says: a client that asked for an event stream reads errors too.
"""

import logging
from typing import Final

import falcon

from gateway.dialects.errors import Failure, failure_of, failure_of_kind, render_error
from gateway.errors import (
    BAD_REQUEST,
    INTERNAL,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    GatewayError,
    Kind,
)
from gateway.web.context import dialect_of, request_id_of

_LOG: Final = logging.getLogger("gateway.web")
_KINDS: Final[dict[int, Kind]] = {404: NOT_FOUND, 405: METHOD_NOT_ALLOWED}


def send_failure(req: falcon.Request, resp: falcon.Response, failure: Failure) -> None:
    """A failure as the reply, in the dialect of the path."""
    dialect = dialect_of(req.path, req.env)
    request_id = request_id_of(req.env)
    resp.status = failure.status
    resp.content_type = "application/json"
    resp.stream = None
    resp.data = render_error(dialect, failure, request_id=request_id)
    stamp(resp, request_id, anthropic=dialect.anthropic)
    if failure.router_code is not None:
        resp.set_header("x-router-error-code", failure.router_code)
    for name, value in failure.headers.items():
        resp.set_header(name, value)


def stamp(resp: falcon.Response, request_id: str, *, anthropic: bool) -> None:
    """Puts the request id on a reply."""
    resp.set_header("x-request-id", request_id)
    if anthropic:
        resp.set_header("request-id", request_id)


def handle_gateway_error(
    req: falcon.Request, resp: falcon.Response, error: GatewayError, params: object
) -> None:
    """For what a resource raised itself."""
    del params
    send_failure(req, resp, failure_of(error))


def handle_http_error(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: object
) -> None:
    """For what Falcon found: no such path, no such method, a malformed request."""
    del params
    kind = _KINDS.get(error.status_code, BAD_REQUEST if error.status_code < 500 else INTERNAL)
    send_failure(req, resp, failure_of_kind(kind, _message(req, error)))
    for name, value in dict(error.headers or {}).items():
        resp.set_header(name, value)


def handle_bug(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    """For what should not happen: logged whole, told in one line."""
    del params
    _LOG.error("%s %s failed", req.method, req.path, exc_info=error)
    send_failure(req, resp, failure_of_kind(INTERNAL, "The gateway failed."))


def _message(req: falcon.Request, error: falcon.HTTPError) -> str:
    path = req.path[:128].encode("ascii", "backslashreplace").decode()
    if error.status_code == 404:
        return f"There is nothing at {path}."
    if error.status_code == 405:
        return f"{path} does not answer to {req.method[:16]}."
    return error.description or error.title or "The request is malformed."
