"""One request at work: what it holds, what is known of it, and how all of that ends.

A `Work` is made when a request arrives and closed once, whatever happens: after the last byte,
on an error, or when the client leaves. Closing releases the admission slot, closes the engine's
connection and hands the record to the log; nothing else does these.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.contract import Decision
from gateway.errors import DRAINING, OVERLOADED, GatewayError
from gateway.routes import Route

RETRY_AFTER_S: Final = 1
"""What a shed client is told to wait: a slot frees as soon as any request ends."""


class Admission:
    """Bounds the requests at work in this process; never waits.

    Args:
        slots: requests at work at once.
        draining: whether the process is on its way out.
    """

    def __init__(self, slots: int, draining: Callable[[], bool] = lambda: False) -> None:
        self._slots = threading.BoundedSemaphore(slots)
        self._draining = draining

    def enter(self) -> Callable[[], None]:
        """Takes a slot; returns what gives it back (to be called once).

        Raises:
            GatewayError: 503 with `retry-after`: no slot is free, or the process is draining.
        """
        retry = {"retry-after": str(RETRY_AFTER_S)}
        if self._draining():
            raise GatewayError(DRAINING, "The gateway is shutting down.", headers=retry)
        if not self._slots.acquire(blocking=False):
            raise GatewayError(
                OVERLOADED, "The gateway is at its limit of requests at work.", headers=retry
            )
        return self._slots.release


@dataclass(slots=True)
class Record:
    """What the log says of a request, filled in as it becomes known.

    Attributes:
        model: the name that the client sent.
        served: the name that the engine was sent.
        server: the name of the server that answered.
        outcome: `ok`, `rejected`, `failed`, `cut` (failed after the commit point), `client_gone`.
        first_event_ms: from arrival to the first byte of the answer's content.
    """

    request_id: str
    route: str
    dialect: str
    model: str | None = None
    served: str | None = None
    server: str | None = None
    attempts: int = 0
    stream: bool = False
    status: int = 0
    outcome: str = "ok"
    error_code: str | None = None
    duration_ms: float = 0.0
    first_event_ms: float | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    decisions: tuple[Decision, ...] = ()
    dropped_tools: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Work:
    """A request's resources and its record; `close` is idempotent and may come from any thread."""

    route: Route
    record: Record
    log: Callable[[Record], None]
    started_s: float = field(default_factory=time.monotonic)
    _closers: list[Callable[[], None]] = field(default_factory=list)
    _closed: bool = False

    def hold(self, closer: Callable[[], None]) -> None:
        """Has `closer` called when the work ends; the last one held is the first called."""
        self._closers.append(closer)

    def first_event(self) -> None:
        """Notes that the answer began, once."""
        if self.record.first_event_ms is None:
            self.record.first_event_ms = (time.monotonic() - self.started_s) * 1000

    def close(self) -> None:
        """Ends the work."""
        if self._closed:
            return
        self._closed = True
        try:
            while self._closers:
                self._closers.pop()()
        finally:
            self.record.duration_ms = (time.monotonic() - self.started_s) * 1000
            self.log(self.record)


def start_work(route: Route, request_id: str, log: Callable[[Record], None]) -> Work:
    """The work of a request that has just arrived."""
    record = Record(request_id=request_id, route=route.name, dialect=route.dialect.value)
    return Work(route=route, record=record, log=log)
