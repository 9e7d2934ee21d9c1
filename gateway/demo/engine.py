"""The demo's engine: an HTTP server on loopback that answers as SGLang does.

Tests use it as well: they read what it received, give it answers to send instead of its own, and
hold its streams.
"""

import contextlib
import json
import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

from gateway.demo import answers, checks
from gateway.demo.checks import Refusal

_JSON: Final = "application/json"
_POLL_S: Final = 0.02
"""How soon the server notices that it is to end."""
_IDLE_S: Final = 5.0
"""The engine closes a connection that was idle for so long."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived.

    Attributes:
        headers: names in lower case; of a repeated one the last value.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Canned:
    """An answer to be sent as it stands, in place of the engine's own."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"content-type": _JSON})
    )


class DemoEngine:
    """An engine that runs while its context is entered.

    Args:
        model: the name that its model list shows.
        word_delay_s: between two words of a stream.
        api_key: asked for as a Bearer token, except by health checks; None: open.
        echoes: answers tell, as JSON, everything that the engine was asked with.

    Attributes:
        requests: what arrived, in order; health checks included.
        canned: answers to the next requests for an inference route, first one first.
        gone: how many answers could not be sent because the caller had left.
    """

    def __init__(
        self,
        model: str = "demo",
        word_delay_s: float = 0.0,
        api_key: str | None = None,
        *,
        echoes: bool = False,
    ) -> None:
        self.model = model
        self.say: answers.Speech = answers.echo if echoes else answers.tell
        self.word_delay_s = word_delay_s
        self.api_key = api_key
        self.requests: list[Received] = []
        self.canned: list[Canned] = []
        self.gone = 0
        self.changed = threading.Condition()
        self.flowing = threading.Event()
        self.flowing.set()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL."""
        host, port = self._server.socket.getsockname()
        return f"http://{host}:{port}"

    @property
    def inference(self) -> list[Received]:
        """What arrived with a body."""
        return [request for request in self.requests if request.method == "POST"]

    def hold(self) -> None:
        """Lets every stream rest after its first word, until `resume`."""
        self.flowing.clear()

    def resume(self) -> None:
        """Lets streams flow on."""
        self.flowing.set()

    def wait_until(self, happened: Callable[["DemoEngine"], bool], timeout_s: float = 10) -> bool:
        """Waits for something that a request changes (`requests`, `gone`)."""
        with self.changed:
            return self.changed.wait_for(lambda: happened(self), timeout_s)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flowing.set()
        self._server.shutdown()
        self._server.close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, engine: DemoEngine) -> None:
        self.engine = engine
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that leaves is nothing to report."""

    def close(self) -> None:
        self.server_close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):  # the caller has left already
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _IDLE_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """The demo's screen is for the reader."""

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, how: Callable[[Received], None]) -> None:
        engine = self.server.engine
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path, headers, body)
        with engine.changed:
            engine.requests.append(received)
            engine.changed.notify_all()
        try:
            if self._admitted(received):
                how(received)
            else:
                self._send_json(401, {"error": "Unauthorized"})
        except OSError:
            self.close_connection = True
            with engine.changed:
                engine.gone += 1
                engine.changed.notify_all()

    def _admitted(self, received: Received) -> bool:
        key = self.server.engine.api_key
        if key is None or received.path.startswith(("/health", "/ready")):
            return True
        scheme, _, token = received.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and token == key

    def _get(self, received: Received) -> None:
        models = answers.models_reply(self.server.engine.model)
        if received.path in {"/health", "/health_generate", "/ready", "/ping"}:
            self._send(200, b"", "text/plain")
        elif received.path == "/v1/models":
            self._send_json(200, models)
        elif received.path == f"/v1/models/{self.server.engine.model}":
            self._send_json(200, models["data"][0])
        else:
            self._send_json(404, {"detail": "Not Found"})

    def _post(self, received: Received) -> None:
        route = _ROUTES.get(received.path)
        if route is None:
            self._send_json(404, {"detail": "Not Found"})
            return
        if self.server.engine.canned:
            canned = self.server.engine.canned.pop(0)
            self._send(canned.status, canned.body, **canned.headers)
            return
        anthropic = received.path.startswith("/v1/messages")
        try:
            body = _parse(received)
            if body is None:
                self._send(500, b"Internal Server Error", "text/plain; charset=utf-8")
                return
            reply = route(body, self.server.engine.say)
        except Refusal as refusal:
            render = answers.anthropic_error if anthropic else answers.flat_error
            self._send_json(refusal.status, render(refusal))
            return
        if isinstance(reply, dict):
            self._send_json(200, reply)
        else:
            self._send_stream(reply, named=anthropic)

    def _send_json(self, status: int, value: object) -> None:
        self._send(status, json.dumps(value, separators=(",", ":")).encode(), _JSON)

    def _send(self, status: int, body: bytes, kind: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"content-type": kind} if kind else headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_stream(self, events: Iterable[dict[str, Any]], *, named: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if number > 1:
                self._rest()
            name = f"event: {event['type']}\n" if named else ""
            self._send_piece(f"{name}data: {json.dumps(event, separators=(',', ':'))}\n\n")
        if not named:
            self._send_piece("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send_piece(self, text: str) -> None:
        piece = text.encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _rest(self) -> None:
        """Between two words; notices within 20 ms that the caller has left."""
        engine = self.server.engine
        if engine.word_delay_s:
            self._raise_if_gone(engine.word_delay_s)
        while not engine.flowing.is_set():
            self._raise_if_gone(0.02)

    def _raise_if_gone(self, wait_s: float) -> None:
        readable, _, _ = select.select([self.connection], [], [], wait_s)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionAbortedError


def _parse(received: Received) -> dict[str, Any] | None:
    """The body; None for JSON that is no object, over which the engine falls on its face."""

    def refuse_constant(text: str) -> None:
        raise Refusal(f"Invalid JSON: {text}", type="Bad Request")

    if not received.headers.get("content-type", "").startswith(_JSON):
        raise Refusal("Unsupported Media Type: Only 'application/json' is allowed")
    try:
        body = json.loads(received.body, parse_constant=refuse_constant)
    except ValueError as error:
        raise Refusal(f"Invalid JSON: {error}", type="Bad Request") from None
    return body if isinstance(body, dict) else None


Reply = dict[str, Any] | Iterable[dict[str, Any]]


def _chat(body: dict[str, Any], say: answers.Speech) -> Reply:
    checks.check_chat(body)
    answer = answers.compose(body, say)
    shape = answers.chat_chunks if body.get("stream") else answers.chat_reply
    return shape(body, answer)


def _messages(body: dict[str, Any], say: answers.Speech) -> Reply:
    checks.check_messages(body)
    answer = answers.compose(body, say)
    shape = answers.message_events if body.get("stream") else answers.message_reply
    return shape(body, answer)


def _count(body: dict[str, Any], _say: answers.Speech) -> Reply:
    checks.check_messages(body, counting=True)
    return answers.count_reply(body)


def _completions(body: dict[str, Any], say: answers.Speech) -> Reply:
    checks.check_completions(body)
    shape = answers.completion_chunks if body.get("stream") else answers.completion_reply
    return shape(body, say)


def _embeddings(body: dict[str, Any], _say: answers.Speech) -> Reply:
    checks.check_embeddings(body)
    return answers.embeddings_reply(body)


_ROUTES: Final[Mapping[str, Callable[[dict[str, Any], answers.Speech], Reply]]] = {
    "/v1/chat/completions": _chat,
    "/v1/messages": _messages,
    "/v1/messages/count_tokens": _count,
    "/v1/completions": _completions,
    "/v1/embeddings": _embeddings,
}
