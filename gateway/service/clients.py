"""How many requests one client may have at work; clients are told apart by their keys."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from gateway.errors import RATE_LIMITED, GatewayError

_RETRY_AFTER_S: Final = 1


class ClientLimit:
    """Counts the requests of each client in this process; one for all threads.

    Args:
        slots: of one client; None: as many as it likes.
    """

    def __init__(self, slots: int | None) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._taken: Counter[bytes] = Counter()

    def enter(self, client: bytes | None) -> Callable[[], None]:
        """Takes a slot of a client; returns what gives it back (to be called once).

        Args:
            client: what stands for its key; None: it has none, and so no limit.

        Raises:
            GatewayError: 429 with `retry-after`, the client has as many at work as it may.
        """
        if self._slots is None or client is None:
            return _nothing
        with self._lock:
            if self._taken[client] >= self._slots:
                raise GatewayError(
                    RATE_LIMITED,
                    f"This key has {self._slots} requests at work, which is its limit:"
                    " wait for one of them to end.",
                    headers={"retry-after": str(_RETRY_AFTER_S)},
                )
            self._taken[client] += 1
        return lambda: self._leave(client)

    def _leave(self, client: bytes) -> None:
        with self._lock:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]  # keys may come and go with reloads


def _nothing() -> None:
    """Nothing was taken."""
