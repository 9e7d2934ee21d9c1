"""Ends the reading from clients that send too slowly.

A socket's time-out bounds one `recv`; a client that sends a byte a second never meets it, and
the server's reader loops over many. So one thread a process shuts the receiving side of a
socket whose deadline has passed: the reader then sees the end of the data, and the reply can
still be sent.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Final

_TICK_S: Final = 0.5
"""How late a deadline may be met."""


class Reaper:
    """Keeps the deadlines of the reads in progress; the thread starts with the first of them."""

    def __init__(self) -> None:
        self._reads: dict[int, tuple[socket.socket, float]] = {}
        self._any = threading.Event()
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def cutting(self, client: socket.socket, deadline_s: float) -> Iterator[None]:
        """Shuts the receiving side of `client` at `deadline_s`, unless the block is left before.

        Args:
            client: the socket that is read from.
            deadline_s: on the monotonic clock.
        """
        key = id(client)
        self._reads[key] = (client, deadline_s)
        if not self._any.is_set():
            self._wake()
        try:
            yield
        finally:
            self._reads.pop(key, None)

    def release(self, client: socket.socket) -> None:
        """Forgets the deadline of a read that is over before its block is."""
        self._reads.pop(id(client), None)

    def _wake(self) -> None:
        self._any.set()
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="gateway-reaper", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._any.wait()
            time.sleep(_TICK_S)
            now_s = time.monotonic()
            for client, deadline_s in list(self._reads.values()):
                if deadline_s <= now_s:
                    with contextlib.suppress(OSError):
                        client.shutdown(socket.SHUT_RD)
            if not self._reads:
                self._any.clear()
                if self._reads:  # one came in between
                    self._any.set()
