"""What may end a wait for an engine besides the engine: the client leaving, and the drain.

Rules:

- A client that closes, resets or half-closes its connection has left. Bytes that it sends in the
  meantime (a pipelined request) are neither read nor do they end the wait.
- From the moment that `cut_at` names, work is ended with a 503; the moment may be set while a
  wait is going on.
"""

import math
import select
import socket
import time
from collections.abc import Callable
from typing import Final

from gateway.errors import DRAINING, ClientGone, GatewayError

# Linux reports a half-close by this alone; elsewhere only a full close is seen, as POLLHUP.
_LEFT: Final = getattr(select, "POLLRDHUP", 0)

_LOOK_AGAIN_S: Final = 0.25
"""How soon a wait notices that `cut_at` has been set."""


def _never() -> None:
    return None


class Watch:
    """Waits for an engine on behalf of one client. Of one request, and used by one thread.

    Args:
        client: the connection of the client; None where there is none to watch. It is only
            polled: its blocking mode and its bytes stay as they are.
        cut_at: gives the monotonic time at which work is ended, None for no such time.
    """

    __slots__ = ("_client_fd", "_cut_at", "_events", "_fd", "_poll")

    def __init__(
        self, client: socket.socket | None = None, cut_at: Callable[[], float | None] = _never
    ) -> None:
        self._client_fd = None if client is None else client.fileno()
        self._cut_at = cut_at
        # poll, not select: a busy gateway has descriptors above 1,024.
        self._poll = select.poll()
        if self._client_fd is not None and self._client_fd >= 0:
            self._poll.register(self._client_fd, _LEFT)
        self._fd = -1
        self._events = 0

    def check(self) -> None:
        """Ends the request where it has no client any more, or is past its time.

        Raises:
            ClientGone: the client left.
            GatewayError: 503, the gateway is draining.
        """
        self.wait(-1, 0, -math.inf)

    def wait(self, fd: int, events: int, until_s: float) -> int:
        """Waits until the engine's connection is ready.

        Args:
            fd: of the engine's connection; -1 for none.
            events: `select.POLLIN`, `select.POLLOUT` or both.
            until_s: the monotonic time of the end of the wait. Even where it has passed, the
                connections are looked at once.

        Returns:
            What it is ready for; 0 when the time is over.

        Raises:
            ClientGone: the client left.
            GatewayError: 503, the gateway is draining.
        """
        self._watch_engine(fd, events)
        while True:
            now = time.monotonic()
            cut_s = self._cut_at()
            if cut_s is not None and now >= cut_s:
                raise GatewayError(DRAINING, "The gateway is shutting down.")
            wait_s = min(until_s - now, _LOOK_AGAIN_S)
            if cut_s is not None:
                wait_s = min(wait_s, cut_s - now)
            ready = dict(self._poll.poll(math.ceil(max(wait_s, 0) * 1000)))
            if self._client_fd is not None and (self._client_fd < 0 or self._client_fd in ready):
                raise ClientGone
            if fd in ready:
                return ready[fd]
            if time.monotonic() >= until_s:
                return 0

    def _watch_engine(self, fd: int, events: int) -> None:
        if (fd, events) == (self._fd, self._events):
            return
        if self._fd >= 0 and self._fd != fd:
            self._poll.unregister(self._fd)
        if fd >= 0:
            self._poll.register(fd, events)
        self._fd, self._events = fd, events
