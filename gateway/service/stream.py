"""Drives one stream: engine's bytes → events → relay → frames for the client.

    opening    until the first frame: any failure is raised, for it can still be an HTTP error
    flowing    a failure becomes the dialect's error event, and the stream ends
    over       after the dialect's own end, or its error event; never both

A stream is an iterator of frames, one a write. It is a class, not a generator: a generator
that was never started runs no `finally`.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

from gateway import sse
from gateway.dialects.errors import EngineFailure, Failure, failure_of, failure_of_kind
from gateway.dialects.relay import Relay
from gateway.errors import (
    INTERNAL,
    UPSTREAM_PROTOCOL,
    UPSTREAM_TIMEOUT,
    ClientGone,
    EngineFault,
    GatewayError,
)
from gateway.service.usage import StreamUsage
from gateway.service.work import Work

_END_WAIT_S: Final = 0.05
"""How long the end of the engine's body is waited for once the dialect's end was relayed: with
it, the connection can be used again."""

_LOG: Final = logging.getLogger("gateway.stream")


class Pieces(Protocol):
    """Where a stream's bytes come from (an engine's answer)."""

    def next(self, timeout_s: float | None) -> bytes | None:
        """Bytes as they come, `b""` at the end, None after `timeout_s` of silence."""
        ...

    def commit(self) -> None:
        """From now on silence is measured by the idle limit."""
        ...


class Stream(Iterator[bytes]):
    """The frames of one answer.

    Args:
        pieces: the engine's answer.
        relay: turns its events into frames.
        work: told of the first event and the outcome.
        keepalive: written in silence.
        keepalive_s: the silence after which it is.
    """

    def __init__(
        self, pieces: Pieces, relay: Relay, work: Work, *, keepalive: bytes, keepalive_s: float
    ) -> None:
        self._pieces = pieces
        self._relay = relay
        self._work = work
        self._keepalive = keepalive
        self._keepalive_s = keepalive_s
        self._decoder = sse.Decoder()
        self._usage = StreamUsage()
        work.hold(lambda: self._usage.write(work.record))
        self._frames: deque[bytes] = deque()
        self._over = False

    def open(self, deadline_s: float) -> None:
        """Waits for the commit point; nothing was sent to the client before.

        Args:
            deadline_s: on the monotonic clock.

        Raises:
            EngineFault, EngineFailure, GatewayError: told as an HTTP error.
            ClientGone: the client left.
        """
        while not self._frames and not self._over:
            piece = self._pieces.next(max(0.0, deadline_s - time.monotonic()))
            if piece is None:
                raise EngineFault(UPSTREAM_TIMEOUT, "The engine sent no answer in time.")
            try:
                self._take(piece)
            except EngineFailure as error:
                if not self._frames:
                    raise
                self._fail(error.failure)  # what came before it was the commit point
        self._pieces.commit()
        self._work.first_event()

    def __next__(self) -> bytes:
        while not self._frames:
            if self._over:
                self._await_end()
                raise StopIteration
            try:
                piece = self._pieces.next(self._keepalive_s)
                if piece is None:
                    return self._keepalive
                self._take(piece)
            except EngineFailure as error:
                self._fail(error.failure)
            except ClientGone:
                self._work.record.outcome = "client_gone"
                self._over = True
            except GatewayError as error:
                self._cut(error)
            except Exception:  # noqa: BLE001 - a bug must not look like an end to the client
                _LOG.exception("a stream failed")
                self._fail(failure_of_kind(INTERNAL, "The gateway failed."))
        return self._frames.popleft()

    def _take(self, piece: bytes) -> None:
        if not piece:
            for event in self._decoder.feed(b"\n\n"):  # an event whose blank line is missing
                self._frames.extend(self._relay.feed(event))
            self._frames.extend(self._relay.finish())
            self._over = True
            return
        try:
            events = self._decoder.feed(piece)
        except sse.LineTooLong:
            raise EngineFault(
                UPSTREAM_PROTOCOL, "The engine sent a line that is too long."
            ) from None
        for event in events:
            self._usage.see(event.data or b"")
            self._frames.extend(self._relay.feed(event))
            if self._relay.done:
                self._over = True
                return

    def _cut(self, error: GatewayError) -> None:
        """The engine's stream broke off; what was sent may be a whole answer all the same."""
        try:
            self._frames.extend(self._relay.finish())
            self._over = True
        except EngineFailure:
            self._fail(failure_of(error))

    def _fail(self, failure: Failure) -> None:
        record = self._work.record
        record.outcome = "cut"
        record.error_code = failure.router_code or str(failure.code)
        record.engine_error = failure.router_code is None
        self._frames.extend(self._relay.fail(failure))
        self._over = True

    def _await_end(self) -> None:
        if self._work.record.outcome != "ok":
            return
        try:
            while self._pieces.next(_END_WAIT_S):
                pass
        except (GatewayError, ClientGone):
            return
