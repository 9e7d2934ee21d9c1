"""urllib3's connections, so that every wait for an engine watches the client as well.

    requests → urllib3's pool → EngineConnection → http.client
                                      │ reads through EngineReader, writes through `send`
                                      └─ both wait in Watch.wait, never in the socket

The socket is non-blocking while a reply is read, and all waiting is done by polling it together
with the client's connection. So a client that leaves ends the wait at once, whether the engine
has not answered yet, is between two events or does not read the request.

One thread owns a request; the `Exchange` of the request is handed to the connection through a
context variable, since requests has no way to pass it along.
"""

import contextlib
import http.client
import io
import math
import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from gateway.engine.watch import Watch
from gateway.errors import UPSTREAM_TIMEOUT, EngineFault

READ_BYTES: Final = 65536


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an engine may take; times in seconds.

    Attributes:
        connect_s: for a connection, to each of its addresses.
        send_s: without taking any of the request.
        first_byte_s: from the request to the first byte of its answer, and, until the answer is
            committed, to anything that it says.
        idle_s: of silence in an answer.
        pool_size: connections to one server that are kept for later use: the threads.
        reuse_idle_s: a connection that idled longer is not used again. The engine closes it
            after 5 s; a request that crosses that close would be lost.
    """

    connect_s: float = 5.0
    send_s: float = 60.0
    first_byte_s: float = 600.0
    idle_s: float = 120.0
    pool_size: int = 264
    reuse_idle_s: float = 4.0


@dataclass(slots=True)
class Exchange:
    """One request on one connection, and how far it got.

    Attributes:
        fresh: a connection that was used before will not do.
        deadline_s: the monotonic time by which the answer must have said something.
        connected: there is a connection.
        reused: the connection was used before.
        begun: a byte of the answer came.
        unsent: the engine did not take the whole request.
        committed: the answer has said something: only its silences count from now on.
        last_byte_s: the monotonic time of the last byte of the answer.
    """

    watch: Watch
    limits: Limits
    deadline_s: float
    fresh: bool = False
    connected: bool = False
    reused: bool = False
    begun: bool = False
    unsent: bool = False
    committed: bool = False
    last_byte_s: float = field(default=-math.inf)

    def silent_until_s(self) -> float:
        """The monotonic time until which the engine may be silent."""
        return self.last_byte_s + self.limits.idle_s if self.committed else self.deadline_s

    def note_bytes(self) -> None:
        """Bytes of the answer came."""
        self.last_byte_s = time.monotonic()
        self.begun = True

    def raise_silent(self) -> NoReturn:
        """Raises the fault of an engine that was silent too long; never to be retried."""
        limits = self.limits
        if not self.committed:
            text = f"The engine did not answer within {limits.first_byte_s:g} s."
        else:
            text = f"The engine sent nothing for {limits.idle_s:g} s."
        raise EngineFault(UPSTREAM_TIMEOUT, text)


_EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


@contextlib.contextmanager
def exchanging(exchange: Exchange) -> Iterator[None]:
    """Makes `exchange` the one that connections of this thread work for."""
    token = _EXCHANGE.set(exchange)
    try:
        yield
    finally:
        _EXCHANGE.reset(token)


class Silence(Exception):  # noqa: N818 - no failure: the caller asked for it
    """The caller's own time passed without a byte; nothing was lost."""


class EngineReader(io.RawIOBase):
    """Reads one reply from the socket, waiting for the engine and the client together.

    Args:
        sock: of the engine's connection; non-blocking from now on.
        exchange: that the reply belongs to.

    Attributes:
        until_s: the monotonic time after which a read raises `Silence`.
        ended: the engine closed the connection.
    """

    def __init__(self, sock: socket.socket, exchange: Exchange) -> None:
        super().__init__()
        # http.client closes the socket of a reply that ends with the connection before it is
        # read; this keeps it open until the reader is closed.
        self._file = sock.makefile("rb", buffering=0)
        self._sock = sock
        self._exchange = exchange
        self.until_s = math.inf
        self.ended = False
        sock.setblocking(False)

    def readable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """Of the socket."""
        return self._file.fileno()

    def readinto(self, buffer: Any, /) -> int:
        """Waits for bytes and reads what is there; 0 when the engine closed the connection.

        Raises:
            Silence: `until_s` has passed.
            ClientGone, GatewayError: as `Watch.wait`.
            EngineFault: the engine was silent too long.
        """
        exchange = self._exchange
        events = select.POLLIN
        while True:
            # Bytes that TLS has decrypted already make no socket readable.
            if not (isinstance(self._sock, ssl.SSLSocket) and self._sock.pending()):
                self._wait(events)
            try:
                count = self._file.readinto(buffer)
            except ssl.SSLWantReadError:  # a part of a record
                events = select.POLLIN
                continue
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
                continue
            if count is None:  # woken for nothing
                continue
            if count == 0:
                self.ended = True
            else:
                exchange.note_bytes()
            return count

    def _wait(self, events: int) -> None:
        exchange = self._exchange
        limit_s = exchange.silent_until_s()
        # Until the answer has said something its whole time counts, though bytes may trickle in.
        if not exchange.committed and time.monotonic() >= limit_s:
            exchange.raise_silent()
        if exchange.watch.wait(self._file.fileno(), events, min(limit_s, self.until_s)):
            return
        if time.monotonic() >= limit_s:
            exchange.raise_silent()
        raise Silence

    def close(self) -> None:
        """Lets go of the socket; idempotent."""
        if not self.closed:
            self._file.close()
        super().close()


class _ReplySocket:
    """What http.client sees of the socket when it makes a reply's file of it."""

    def __init__(self, connection: "_Watched") -> None:
        self._connection = connection

    def makefile(self, *_: object, **__: object) -> io.BufferedReader:
        return self._connection.open_reader()


class _Watched(HTTPConnection):
    """What plain and TLS connections have in common.

    Attributes:
        exchange: the request that the connection works for, or worked for last.
        reader: of the current reply.
        buffered: the same, buffered: a reply's head and body are read through it.
        replies: that were read to their end since the connection was made.
        idle_since_s: the monotonic time of the end of the last reply.
    """

    exchange: Exchange
    reader: EngineReader
    buffered: io.BufferedReader
    replies: int = 0
    _holds: bool = False  # the head waits for the body
    _head: bytes = b""
    idle_since_s: float = math.inf

    @property
    def is_connected(self) -> bool:
        """Whether the pool may hand the connection out again; if not, it connects anew."""
        exchange = _EXCHANGE.get()
        idle_s = time.monotonic() - self.idle_since_s
        usable = not exchange.fresh and idle_s <= exchange.limits.reuse_idle_s
        return usable and super().is_connected

    def connect(self) -> None:
        """Connects, within the time for it (watched only afterwards: it is short)."""
        super().connect()
        self.replies = 0

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Sends a request for the current exchange."""
        exchange = self.exchange = _EXCHANGE.get()
        if self.sock is None:
            self.connect()
        exchange.connected = True
        exchange.reused = self.replies > 0
        self._holds, self._head = bool(kwargs.get("body")), b""
        super().request(*args, **kwargs)

    def keep(self) -> None:
        """The reply is over and the connection stands at its end: it may be used again."""
        self.replies += 1
        self.idle_since_s = time.monotonic()

    def send(self, data: Any) -> None:
        """Writes the head of a request together with a small body: one packet, not two."""
        if self._holds:
            self._holds, self._head = False, data
            return
        head, self._head = self._head, b""
        if head and len(data) <= READ_BYTES:
            data = head + data
        elif head:
            self._write(head)
        self._write(data)

    def _write(self, data: bytes) -> None:
        """Writes all of `data`, watching the client, within the limit for a stuck engine.

        Raises:
            BrokenPipeError: the engine answers although it did not take everything: the answer
                is to be read (urllib3 does so after this error).
            EngineFault: the engine takes nothing.
        """
        exchange, sock = self.exchange, self.sock
        sock.setblocking(False)
        plain = not isinstance(sock, ssl.SSLSocket)
        # TLS becomes readable for reasons of its own: there it says nothing of an answer.
        ready_to = select.POLLOUT | (select.POLLIN if plain else 0)
        left = memoryview(data)
        while left:
            events = ready_to
            try:
                left = left[sock.send(left) :]
                continue
            except ssl.SSLWantReadError:
                events = select.POLLIN
            except (BlockingIOError, ssl.SSLWantWriteError):
                pass
            except OSError:
                exchange.unsent = True
                raise
            until_s = time.monotonic() + exchange.limits.send_s
            ready = exchange.watch.wait(sock.fileno(), events, until_s)
            if not ready:
                raise EngineFault(
                    UPSTREAM_TIMEOUT,
                    f"The engine took nothing of the request for {exchange.limits.send_s:g} s.",
                    retriable=True,
                )
            if plain and not ready & select.POLLOUT:
                exchange.unsent = True
                raise BrokenPipeError

    def open_reader(self) -> io.BufferedReader:
        """The file that http.client reads a reply from."""
        self.reader = EngineReader(self.sock, self.exchange)
        self.buffered = io.BufferedReader(self.reader, READ_BYTES)
        return self.buffered

    def response_class(self, _: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """http.client's reply, reading through this connection's reader."""
        reply_socket: Any = _ReplySocket(self)
        return http.client.HTTPResponse(reply_socket, **kwargs)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own
        """The head of the reply.

        Raises:
            HTTPException: it is not whole, or cannot be read.
        """
        response = super().getresponse()
        # http.client takes a head that was cut off, or that it could not parse to its end, for
        # one that is short; its framing would be lost with the missing lines.
        reply = response._original_response  # noqa: SLF001 - it has no public name
        message = None if reply is None else reply.msg
        if message is None or self.reader.ended or message.defects or message.get_payload():
            response.close()
            raise http.client.HTTPException("the head of the reply is not whole")
        self.exchange.note_bytes()
        return response


class EngineConnection(_Watched):
    """A plain connection to an engine."""


class EngineTLSConnection(_Watched, HTTPSConnection):
    """A TLS connection to an engine."""


class EnginePool(HTTPConnectionPool):
    """The plain connections to one server."""

    ConnectionCls = EngineConnection


class EngineTLSPool(HTTPSConnectionPool):
    """The TLS connections to one server."""

    ConnectionCls = EngineTLSConnection


POOL_CLASSES: Final = {"http": EnginePool, "https": EngineTLSPool}
"""By scheme, for urllib3's PoolManager."""
