"""The seam to gunicorn: what the gateway knows of the server it runs in.

Everything here works without gunicorn too (under another server, or in a test); what cannot be
known then is absent: no client's socket to watch, and no draining.
"""

import logging
import socket
import time
from dataclasses import dataclass
from typing import Any, Final

from gateway.engine.watch import Watch

_LOG: Final = logging.getLogger("gateway.server")

_BEFORE_KILL_S: Final = 2.0
"""Streams are ended so long before the arbiter ends their process."""


@dataclass(slots=True)
class Drain:
    """Whether this process is on its way out, and when its streams must end.

    Attributes:
        worker: gunicorn's; its `alive` turns False on TERM, INT and HUP.
        graceful_s: gunicorn's `graceful_timeout`.
    """

    worker: Any = None
    graceful_s: float = 120.0
    _since_s: float | None = None

    def draining(self) -> bool:
        """Whether the process was told to end."""
        return self.worker is not None and not self.worker.alive

    def cut_at(self) -> float | None:
        """When running streams must end (monotonic clock); None while nothing ends them."""
        if not self.draining():
            return None
        if self._since_s is None:
            self._since_s = time.monotonic()
        return self._since_s + max(0.0, self.graceful_s - _BEFORE_KILL_S)


DRAIN: Final = Drain()
"""Of this process."""


def worker_started(worker: Any) -> None:
    """To be called in each worker once it runs (gunicorn's `post_worker_init`)."""
    DRAIN.worker = worker
    DRAIN.graceful_s = float(worker.cfg.graceful_timeout)
    _LOG.info("worker ready")


def client_socket(environ: dict[str, Any]) -> socket.socket | None:
    """The client's connection, where the server shows it."""
    found = environ.get("gunicorn.socket")
    return found if isinstance(found, socket.socket) else None


def watch_client(environ: dict[str, Any]) -> Watch:
    """What may end a wait for an engine on behalf of this request."""
    return Watch(client_socket(environ), DRAIN.cut_at)
