"""Reply bodies that end their work, whatever becomes of them.

Falcon drops a stream without closing it in four cases (HEAD, a middleware or a responder that
raises after setting it, a server that refuses the headers), so the application is wrapped once
more, outermost: whatever Falcon did not hand on to the server is closed there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from gateway.service.work import Work

_BODY_KEY: Final = "gateway.body"


class ReplyBody(Iterator[bytes]):
    """The frames of a reply; closing it ends the work, once.

    It has no `read`: Falcon would take it for a file.

    Args:
        frames: written one by one.
        work: ended by `close`.
    """

    def __init__(self, frames: Iterator[bytes], work: Work) -> None:
        self._frames = frames
        self._work = work
        self._exhausted = False

    def __next__(self) -> bytes:
        try:
            frame = next(self._frames)
        except StopIteration:
            self._exhausted = True
            raise
        self._work.record.bytes_out += len(frame)
        return frame

    def close(self) -> None:
        """Ends the work; a body that was not sent to its end means that the client left."""
        record = self._work.record
        if not self._exhausted and record.outcome == "ok":
            record.outcome = "client_gone"
        self._work.close()


def remember_body(environ: WSGIEnvironment, body: ReplyBody) -> None:
    """Puts the body under the guard."""
    environ[_BODY_KEY] = body


def guarded(application: WSGIApplication) -> WSGIApplication:
    """Closes every body that the application made and did not return."""

    def guard(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        returned: object = None
        try:
            returned = result = application(environ, start_response)
        finally:
            body = environ.get(_BODY_KEY)
            if body is not None and returned is not body:
                _close(body)
        return result

    return guard


def _close(body: Any) -> None:
    close: Callable[[], None] = body.close
    close()
