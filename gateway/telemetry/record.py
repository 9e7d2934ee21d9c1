"""What is known of one request when it has ended: the log and the metrics are made from it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.contract import Decision

OK: Final = "ok"
"""The outcome of an attempt, and of a request, that ended as it should."""

CLIENT_GONE: Final = "client_gone"
"""The outcome where the client left before the end."""


@dataclass(slots=True)
class Attempt:
    """One server that was asked.

    Attributes:
        server: its name.
        outcome: `ok` (it answered, and the answer went on to the client), `client_gone`, the
            gateway's code for what went wrong, or `status_503` and the like for its own errors.
    """

    server: str
    outcome: str = OK


@dataclass(slots=True)
class Record:
    """One request, filled in as it becomes known.

    Attributes:
        request_id: as in the reply's `x-request-id`.
        route: the route's name.
        dialect: what the client spoke.
        model: the name that the client sent; None where it sent none.
        served: the name that the engine was sent.
        server: the name of the last server that was asked, never its address.
        attempts: the servers that were asked, in order.
        stream: the client asked for a stream.
        status: of the reply.
        outcome: `ok`, `rejected`, `failed`, `cut` (failed after the commit point), `client_gone`.
        error_code: of the error that the client was told; None where there was none.
        engine_error: the error was the engine's own, its code the engine's word.
        duration_ms: from arrival to the last byte.
        first_event_ms: from arrival to the first byte of the answer's content.
        bytes_in: of the request's body, decoded.
        bytes_out: of the reply's body.
        tokens_in: that the engine says it read; None where it does not say.
        tokens_out: that the engine says it wrote; None where it does not say.
        decisions: what the contract did.
        removed: the fields of which something was removed on the way to the engine.
        dropped_tools: the types of the hosted tools that were dropped.
    """

    request_id: str
    route: str
    dialect: str
    model: str | None = None
    served: str | None = None
    server: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    stream: bool = False
    status: int = 0
    outcome: str = OK
    error_code: str | None = None
    engine_error: bool = False
    duration_ms: float = 0.0
    first_event_ms: float | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    decisions: tuple[Decision, ...] = ()
    removed: tuple[str, ...] = ()
    dropped_tools: tuple[str, ...] = ()

    def ask(self, server: str) -> Attempt:
        """Notes that a server is asked; its outcome is `ok` until the caller says otherwise."""
        attempt = Attempt(server)
        self.attempts.append(attempt)
        self.server = server
        return attempt


Sink = Callable[[Record], None]
"""Is told of each request, once, when it has ended."""
