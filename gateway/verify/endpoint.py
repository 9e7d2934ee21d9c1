"""The endpoint under verification: asked over HTTP with the gateway's own client of engines."""

from typing import Final, Protocol

from gateway import sse
from gateway.engine.base_url import parse_base_url
from gateway.engine.client import Answer, EngineClient, Limits
from gateway.engine.headers import ANTHROPIC_VERSION
from gateway.engine.servers import Server
from gateway.engine.watch import Watch
from gateway.errors import EngineFault
from gateway.verify.cases import Case
from gateway.verify.seen import Answered, says_something

_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024


class NoAnswer(Exception):  # noqa: N818 - an outcome of a probe, not an error of this program
    """The endpoint cannot be reached, or did not answer in a way that can be read.

    Args:
        message: in one line.
        unreached: no connection was made.
    """

    def __init__(self, message: str, *, unreached: bool) -> None:
        super().__init__(message)
        self.unreached = unreached


class Endpoint(Protocol):
    """What probes are put to."""

    def ask(self, case: Case) -> Answered:
        """Asks once.

        Raises:
            NoAnswer: there is no answer.
        """
        ...


class HttpEndpoint:
    """An endpoint at a URL.

    Args:
        base_url: with or without `/v1`.
        api_key: sent as a Bearer token, to Messages as `x-api-key` too; empty: none.
        timeout_s: for the beginning of an answer, and for a silence within it.

    Raises:
        ValueError: the URL is none, or the key cannot be sent.
    """

    def __init__(self, base_url: str, api_key: str = "", timeout_s: float = 60.0) -> None:
        self._server = Server("endpoint", parse_base_url(base_url), api_key)
        self._client = EngineClient(Limits(first_byte_s=timeout_s, idle_s=timeout_s))

    def close(self) -> None:
        """Closes the connections that idle."""
        self._client.close()

    def ask(self, case: Case) -> Answered:
        """Asks once; see `Endpoint`."""
        headers = self._headers(case)
        try:
            if case.body is None:
                answer = self._client.get(self._server, case.path, headers, Watch())
            else:
                answer = self._client.post(self._server, case.path, case.body, headers, Watch())
        except EngineFault as fault:
            raise NoAnswer(_words(fault), unreached=fault.refused) from None
        try:
            body, left = _read(answer, case)
        except EngineFault as fault:
            raise NoAnswer(_words(fault), unreached=False) from None
        finally:
            answer.close()
        names = {name.lower(): value for name, value in answer.headers.items()}
        return Answered(answer.status, names, body, left)

    def _headers(self, case: Case) -> dict[str, str]:
        headers = {"content-type": "application/json"} if case.body is not None else {}
        if self._server.api_key:
            headers["authorization"] = f"Bearer {self._server.api_key}"
        if case.route.dialect.anthropic:
            headers["anthropic-version"] = ANTHROPIC_VERSION
            if self._server.api_key:
                headers["x-api-key"] = self._server.api_key
        return headers


def _words(fault: EngineFault) -> str:
    return fault.message.replace("The engine", "The endpoint")


def _read(answer: Answer, case: Case) -> tuple[bytes, bool]:
    """The body, or as much of it as the case asks for; and whether it was left."""
    if not (case.cut and answer.content_type == "text/event-stream"):
        return answer.read(_MAX_ANSWER_BYTES), False
    decoder, pieces = sse.Decoder(), b""
    while piece := answer.next(None):
        pieces += piece
        if any(says_something(event, case.route.dialect) for event in decoder.feed(piece)):
            return pieces, True
    return pieces, False
