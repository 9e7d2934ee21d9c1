"""gunicorn's threaded worker, kept from being held up by clients that do not behave.

Three things differ, each measured on gunicorn 27.0.1:

- A connection is closed by the thread that served it. The worker itself closes it on its main
  thread and lingers there until the client closes too, for up to 2 s: 80 clients that kept their
  sockets open took 160 s, one after the other, and nobody else was let in meanwhile.
- The head of a request has a deadline. A client that sends half of one holds a thread for ever
  otherwise.
- A client that does not take its answer is no error of the gateway's, and leaves no traceback.
"""

import time
from concurrent.futures import Future
from typing import Any, Final

from gunicorn.workers.gthread import TConn, ThreadWorker

from gateway.web.reaper import Reaper

HEAD_S: Final = 10.0
"""For the head of a request, from the moment that a thread takes the connection."""

_HEADS: Final = Reaper()


class GatewayWorker(ThreadWorker):
    """See the module."""

    def handle(self, conn: TConn) -> object:
        """Serves a request on a connection; runs in a pool thread."""
        with _HEADS.cutting(conn.sock, time.monotonic() + HEAD_S):
            kept: object = super().handle(conn)  # type: ignore[no-untyped-call]  # gunicorn has none
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
            return
        super().finish_request(conn, fs)  # type: ignore[no-untyped-call]
