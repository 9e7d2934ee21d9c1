"""Asks servers whether they are ready, when that is due, in a thread that lives no longer.

The thread exists while some server is out of service or gets requests; it asks at most
`_PARALLEL` servers at once, each at most once in two seconds, and gives each a second to answer.
"""

import threading
from collections.abc import Callable
from typing import Final

from gateway.engine.client import EngineClient
from gateway.engine.probe import READY_PATH, probe
from gateway.engine.servers import Server, ServerPool

ANSWER_WITHIN_S: Final = 1.0
"""An engine answers `/ready` at once, however busy it is."""

_PARALLEL: Final = 8
_LOOK_AGAIN_S: Final = 0.25
_LINGER_S: Final = 5.0
_LAST_GOOD_STATUS: Final = 499


class Prober:
    """Asks on behalf of a pool.

    Args:
        pool: whose servers are asked; it is told what they say.
        ask: whether a server is ready; None: it does not answer.
        look_again_s: how often the thread looks whether something is due.
        linger_s: for how long nothing must be due until it ends.
    """

    def __init__(
        self,
        pool: ServerPool,
        ask: Callable[[Server], bool | None],
        *,
        look_again_s: float = _LOOK_AGAIN_S,
        linger_s: float = _LINGER_S,
    ) -> None:
        self._pool = pool
        self._ask = ask
        self._look_again_s = look_again_s
        self._idle_looks = max(1, round(linger_s / look_again_s))
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._woken = False
        self._ended = threading.Event()

    def wake(self) -> None:
        """There may be something to ask: for `ServerPool.ask_with`."""
        self._woken = True
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._ended.is_set():
                    self._thread = threading.Thread(target=self._run, name="prober", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        """Asks no more."""
        self._ended.set()

    def ask_due(self) -> bool:
        """Asks whoever is to be asked now.

        Returns:
            Whether anybody will have to be asked later.
        """
        servers, wait_s = self._pool.due()
        for first in range(0, len(servers), _PARALLEL):
            # No executor: those of a process that ends would wait for their threads.
            threads = [
                threading.Thread(target=self._ask_one, args=(server,), daemon=True)
                for server in servers[first : first + _PARALLEL]
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return bool(servers) or wait_s is not None

    def _ask_one(self, server: Server) -> None:
        self._pool.note_ready(server, ready=self._ask(server))

    def _run(self) -> None:
        idle = 0
        while not self._ended.wait(self._look_again_s):
            self._woken = False
            idle = 0 if self.ask_due() else idle + 1
            if idle >= self._idle_looks:
                with self._lock:
                    # A request that came since would not start another thread.
                    if not self._woken:
                        self._thread = None
                        return


def ready_of(client: EngineClient) -> Callable[[Server], bool | None]:
    """Asks a server with the given client: whether it is ready; None: it does not answer.

    A status of 4xx is an engine that does not know the path: as ready as one can tell.
    """

    def ask(server: Server) -> bool | None:
        status = probe(client, server, READY_PATH, ANSWER_WITHIN_S).status
        return None if status is None else status <= _LAST_GOOD_STATUS

    return ask
