"""The Falcon resources: one an inference route, the model list, health, refused operations."""

from collections.abc import Callable, Sequence
from typing import Final

import falcon

from gateway import jsonbody
from gateway.api_keys import ApiKeys
from gateway.dialects.errors import failure_of
from gateway.errors import (
    OVERLOADED,
    UNSUPPORTED_OPERATION,
    ClientGone,
    GatewayError,
)
from gateway.routes import Route
from gateway.service.clients import ClientLimit
from gateway.service.gateway import Gateway, Reply
from gateway.service.models import ModelList
from gateway.service.protocols import require_on
from gateway.service.work import Admission, Work, start_work
from gateway.telemetry.record import Sink
from gateway.web.auth import authenticate
from gateway.web.body import BodyLimits, read_body
from gateway.web.context import headers_of, request_id_of
from gateway.web.errors import stamp
from gateway.web.server import client_socket, watch_client
from gateway.web.streaming import ReplyBody, remember_body

_JSON: Final = "application/json"


class InferenceResource:
    """`POST` on one inference route.

    Args:
        route: the route.
        gateway: the use cases.
        admission: bounds the requests at work.
        limits: for the reading of bodies.
        send_s: how long a client may not read what it is sent.
        sinks: told of each request when it has ended.
        keys: that clients must present; None: open.
        clients: bounds the requests at work of each client.
    """

    def __init__(
        self,
        route: Route,
        gateway: Gateway,
        admission: Admission,
        limits: BodyLimits,
        send_s: float,
        sinks: Sequence[Sink],
        keys: ApiKeys | None,
        clients: ClientLimit,
    ) -> None:
        self._clients = clients
        self._keys = keys
        self._route = route
        self._gateway = gateway
        self._admission = admission
        self._limits = limits
        self._send_s = send_s
        self._sinks = sinks

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answers an inference request."""
        work = start_work(self._route, request_id_of(req.env), self._sinks)
        try:
            reply = self._reply(req, work)
        except BaseException:
            work.record.outcome = work.record.outcome.replace("ok", "failed")
            work.close()
            raise
        self._send(req, resp, reply, work)

    def _reply(self, req: falcon.Request, work: Work) -> Reply:
        profile = self._gateway.profile
        try:
            require_on(profile, self._route)
            client = authenticate(req.env, self._keys)
            work.hold(self._clients.enter(client))
            work.hold(self._admission.enter())
        except GatewayError as error:
            return self._gateway.error_reply(work, failure_of(error))
        try:
            return self._gateway.respond(
                work,
                lambda: read_body(req.env, profile.max_body_bytes, self._limits),
                headers_of(req.env),
                watch_client(req.env),
            )
        except ClientGone:
            work.record.outcome = "client_gone"
            work.record.status = _CLIENT_CLOSED
            return Reply(_CLIENT_CLOSED, _JSON)

    def _send(self, req: falcon.Request, resp: falcon.Response, reply: Reply, work: Work) -> None:
        body = ReplyBody(reply.frames or iter((reply.body,)), work)
        remember_body(req.env, body)
        resp.status = reply.status
        resp.content_type = reply.content_type
        for name, value in reply.headers.items():
            resp.set_header(name, value)
        stamp(resp, work.record.request_id, anthropic=self._route.dialect.anthropic)
        if reply.frames is None:
            resp.set_stream(body, len(reply.body))
        else:
            resp.stream = body
        client = client_socket(req.env)
        if client is not None:
            client.settimeout(self._send_s)
            work.hold(lambda: client.settimeout(None))


_CLIENT_CLOSED: Final = 499
"""For the log alone: there is nobody to read it."""


class ModelsResource:
    """`GET /v1/models` and `GET /v1/models/{name}`."""

    def __init__(self, models: ModelList, keys: ApiKeys | None, admission: Admission) -> None:
        self._admission = admission
        self._models = models
        self._keys = keys

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The list."""
        self._answer(req, resp, self._models.listing)

    def on_get_one(self, req: falcon.Request, resp: falcon.Response, name: str) -> None:
        """One entry."""
        self._answer(req, resp, lambda: self._models.get(name))

    def _answer(
        self, req: falcon.Request, resp: falcon.Response, use: Callable[[], object]
    ) -> None:
        """Under the same bound as inference: it may wait for engines that do not answer."""
        authenticate(req.env, self._keys)
        leave = self._admission.enter()
        try:
            value = use()
        finally:
            leave()
        resp.content_type = _JSON
        resp.data = jsonbody.render_value(value)
        stamp(resp, request_id_of(req.env), anthropic="HTTP_ANTHROPIC_VERSION" in req.env)


class HealthResource:
    """`GET` of a health route.

    Args:
        problem: what keeps the process from being healthy; None where nothing does.
    """

    def __init__(self, problem: Callable[[], str | None]) -> None:
        self._problem = problem

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """200, or 503 with the reason."""
        del req
        problem = self._problem()
        resp.status = 200 if problem is None else OVERLOADED.status
        resp.content_type = _JSON
        resp.data = jsonbody.render_value({"status": problem or "ok"})
        resp.set_header("cache-control", "no-store")

    def on_head(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The status alone."""
        self.on_get(req, resp)


UNSUPPORTED: Final = {
    "/v1/audio/speech": "speech",
    "/v1/audio/transcriptions": "transcription",
    "/v1/audio/translations": "translation",
    "/v1/images/generations": "image generation",
    "/v1/images/edits": "image edit",
    "/v1/images/variations": "image variation",
    "/v1/files": "files",
    "/v1/batches": "batches",
    "/v1/messages/batches": "batches",
}
"""Operations that clients know and engines do not have, by path; those below a path as well."""


class UnsupportedResource:
    """An operation that is known and refused, whatever the method."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def on_get(self, req: falcon.Request, resp: falcon.Response, rest: str = "") -> None:
        """400."""
        del req, resp, rest
        raise GatewayError(UNSUPPORTED_OPERATION, f"{self._operation} is not supported by SGLang")

    on_post = on_get
    on_delete = on_get
