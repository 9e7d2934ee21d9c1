"""gunicorn's threaded worker, kept from being held up by clients that do not behave.

Four things differ, each measured on gunicorn 27.0.1:

- A connection is closed by the thread that served it. The worker itself closes it on its main
  thread and lingers there until the client closes too, for up to 2 s: 80 clients that kept their
  sockets open took 160 s, one after the other, and nobody else was let in meanwhile.
- The head of a request has a deadline. A client that sends half of one holds a thread for ever
  otherwise.
- A worker that is full lets the others go first. All workers wait on one socket, and a full one
  that wins the race refuses a request for which another has room: 2 to 6 of 64.
- A client that does not take its answer is no error of the gateway's, and leaves no traceback.
"""

import socket
import time
from concurrent.futures import Future
from typing import Any, Final

from gunicorn.workers.gthread import TConn, ThreadWorker

from gateway.settings import RESERVE_THREADS
from gateway.web.reaper import Reaper
from gateway.web.rooms import Courtesy, Rooms

HEAD_S: Final = 10.0
"""For the head of a request, from the moment that a thread takes the connection."""

_PATIENCE_S: Final = 1.0
"""How long a full worker waits for another to take a connection. With two cores and a load of 7,
one whose threads had all begun at once took none for 0.15 s."""

_PAUSE_S: Final = 0.001
"""Between two looks at whether it did: they take it within a millisecond or two."""

_HEADS: Final = Reaper()

_ROOMS: Final = Rooms()
"""Made where this module is first imported: in the arbiter, which loads the worker's class."""


class GatewayWorker(ThreadWorker):
    """See the module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]  # gunicorn has no types
        self._courtesy = Courtesy(_PATIENCE_S)

    def run(self) -> None:
        """Serves until the worker ends."""
        self._note_room()
        try:
            super().run()  # type: ignore[no-untyped-call]
        finally:
            _ROOMS.write(self.age, 0)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Takes connections, or no more; a worker that ends closes its sockets at once.

        gunicorn's keeps them open until its last stream has ended, and the system goes on
        queueing connections that nobody will ever take.
        """
        super().set_accept_enabled(enabled)  # type: ignore[no-untyped-call]
        if not enabled and not self.alive:
            for listener in self.sockets:
                listener.close()
            self.log.info("Worker stops accepting (pid: %s)", self.pid)

    def accept(self, listener: socket.socket) -> None:
        """Takes a connection, unless it is for another worker; runs on the main thread.

        One that is left is looked at again at once, for the listener is still readable.
        """
        if self._room() <= 0 and self._courtesy.leaves(
            _ROOMS.elsewhere(self.age), time.monotonic()
        ):
            time.sleep(_PAUSE_S)
            return
        super().accept(listener)  # type: ignore[no-untyped-call]
        self._note_room()

    def handle(self, conn: TConn) -> object:
        """Serves a request on a connection; runs in a pool thread."""
        with _HEADS.cutting(conn.sock, time.monotonic() + HEAD_S):
            kept: object = super().handle(conn)  # type: ignore[no-untyped-call]
        if kept is False:
            conn.close(graceful=True)  # type: ignore[no-untyped-call]
        return kept

    def handle_request(self, req: Any, conn: TConn) -> bool:
        """Runs the application; the head has arrived."""
        _HEADS.release(conn.sock)
        try:
            return bool(super().handle_request(req, conn))  # type: ignore[no-untyped-call]
        except TimeoutError:
            return False

    def finish_request(self, conn: TConn, fs: Future[object]) -> None:
        """Books a connection in or out; runs on the main thread, and must not wait there."""
        if not fs.cancelled() and fs.exception() is None and fs.result() is False:
            self.nr_conns -= 1
        else:
            super().finish_request(conn, fs)  # type: ignore[no-untyped-call]
        self._note_room()

    def _room(self) -> int:
        return int(self.cfg.threads) - RESERVE_THREADS - int(self.nr_conns)

    def _note_room(self) -> None:
        _ROOMS.write(self.age, self._room() if self.alive else 0)
