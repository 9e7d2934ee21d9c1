"""One request at work: what it holds, what is known of it, and how all of that ends.

A `Work` is made when a request arrives and closed once, whatever happens: after the last byte,
on an error, or when the client leaves. Closing releases the admission slot, closes the engine's
connection and hands the record to the sinks (log, metrics); nothing else does these.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.errors import DRAINING, OVERLOADED, GatewayError
from gateway.routes import Route
from gateway.telemetry.record import Record, Sink

RETRY_AFTER_S: Final = 1
"""What a shed client is told to wait: a slot frees as soon as any request ends."""


class Admission:
    """Bounds the requests at work in this process; never waits.

    Args:
        slots: requests at work at once.
        draining: whether the process is on its way out.
        count: told 1 for each request that enters and -1 for each that leaves.
    """

    def __init__(
        self,
        slots: int,
        draining: Callable[[], bool] = lambda: False,
        count: Callable[[int], None] | None = None,
    ) -> None:
        self._slots = threading.BoundedSemaphore(slots)
        self._draining = draining
        self._count = count or _ignore

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
        self._count(1)
        return self._leave

    def _leave(self) -> None:
        self._count(-1)
        self._slots.release()


def _ignore(_: int) -> None:
    """Nobody counts."""


@dataclass(slots=True, eq=False)
class Work:
    """A request's resources and its record; `close` is idempotent and may come from any thread."""

    route: Route
    record: Record
    sinks: Sequence[Sink]
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
            for sink in self.sinks:
                sink(self.record)


def start_work(route: Route, request_id: str, sinks: Sequence[Sink] = ()) -> Work:
    """The work of a request that has just arrived; each sink is told when it has ended."""
    record = Record(request_id=request_id, route=route.name, dialect=route.dialect.value)
    return Work(route=route, record=record, sinks=sinks)
