"""What the gateway would do with a request, found without an engine.

The request goes the way of any other, through the same use case. Only the client that would ask
the engine is replaced by one that keeps what it was to send; so whatever the gateway comes to do
with requests, this tells it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn

from gateway.contract import Decision
from gateway.dialects.errors import failure_of
from gateway.engine.client import EngineClient
from gateway.engine.servers import Server, ServerPool
from gateway.engine.watch import Watch
from gateway.errors import UPSTREAM_UNREACHABLE, EngineFault, GatewayError, body_too_large
from gateway.profile import ProfileService
from gateway.routes import Route
from gateway.service.gateway import Gateway, Policy
from gateway.service.protocols import require_on
from gateway.service.work import start_work
from gateway.startup import Launch

REQUEST_ID: Final = "check-request"
"""Of every request that is inspected, so that the same request has the same reply."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What an engine would get.

    Attributes:
        path: on the engine.
    """

    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """What the client would get instead of an answer.

    Attributes:
        headers: names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Inspection:
    """What would become of a request.

    Attributes:
        outcome: it is passed on to an engine, or refused.
        decisions: what the contract did, in order; of a refused request only the refusals.
        dropped_tools: the types of the hosted tools that are left out.
    """

    route: Route
    outcome: Sent | Refused
    decisions: tuple[Decision, ...] = ()
    dropped_tools: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether it is passed on."""
        return isinstance(self.outcome, Sent)


class _Reached(Exception):  # noqa: N818 - not a failure: it ends the request's way
    """The request would now be sent."""

    def __init__(self, sent: Sent) -> None:
        super().__init__(sent.path)
        self.sent = sent


class _Recorder(EngineClient):
    """Asks nobody."""

    def post(self, server: Server, path: str, body: bytes, *_: Any, **__: Any) -> NoReturn:
        del server
        raise _Reached(Sent(path, body))

    def get(self, *_: Any, **__: Any) -> NoReturn:
        raise EngineFault(UPSTREAM_UNREACHABLE, "No engine is asked.")


class Inspector:
    """Looks at requests as the gateway of a launch would.

    Args:
        launch: what it would serve with.
    """

    def __init__(self, launch: Launch) -> None:
        policy = Policy(
            model_id=launch.settings.model_id,
            anthropic_default_max_tokens=launch.settings.anthropic_default_max_tokens,
        )
        self._profile = launch.choice.loaded.profile
        self._gateway = Gateway(
            ProfileService(lambda: launch.choice), ServerPool(launch.servers), _Recorder(), policy
        )

    def inspect(self, route: Route, raw: bytes) -> Inspection:
        """What would become of a request with this body, decoded and of any size.

        Args:
            route: that it is sent to.
            raw: the body.
        """
        work = start_work(route, REQUEST_ID)

        def read_body() -> bytes:
            if len(raw) > self._profile.max_body_bytes:
                raise body_too_large(self._profile.max_body_bytes)
            return raw

        try:
            require_on(self._profile, route)
            reply = self._gateway.respond(work, read_body, MappingProxyType({}), Watch())
        except GatewayError as error:
            reply = self._gateway.error_reply(work, failure_of(error))
        except _Reached as reached:
            record = work.record
            return Inspection(route, reached.sent, record.decisions, record.dropped_tools)
        headers = {
            **reply.headers,
            "content-type": reply.content_type,
            "content-length": str(len(reply.body)),
            "x-request-id": REQUEST_ID,
        }
        if route.dialect.anthropic:
            headers["request-id"] = REQUEST_ID
        return Inspection(route, Refused(reply.status, headers, reply.body), work.record.decisions)
