"""An engine as a process of its own: `engine.py NAME PORT`.

It answers chat requests with its name, a word every 50 ms where they stream. On TERM it drains as
SGLang does: it is not ready any more, takes requests all the same, and ends once it has none.
"""

import http.server
import json
import os
import signal
import socketserver
import sys
import threading
import time

WORDS = 4
WORD_S = 0.05


class Engine(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Counts what it is at."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.ready = True
        self.at_work = 0
        self.changed = threading.Condition()
        super().__init__(("127.0.0.1", port), Handler)

    def drain(self) -> None:
        """Waits until there is no request, and ends the process."""
        self.ready = False
        with self.changed:
            self.changed.wait_for(lambda: self.at_work == 0)
        os._exit(0)

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that leaves is nothing to report."""


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    server: Engine
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        """Health and models."""
        if self.path == "/ready":
            self.reply(200 if self.server.ready else 503, b"", "text/plain")
        else:
            models = {"object": "list", "data": [{"id": "m", "object": "model"}]}
            self.reply(200, json.dumps(models).encode(), "application/json")

    def do_POST(self) -> None:
        """A chat request."""
        with self.server.changed:
            self.server.at_work += 1
        try:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if body.get("stream"):
                self.stream()
            else:
                time.sleep(WORD_S)
                message = {"role": "assistant", "content": self.server.name}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                reply = {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}
                self.reply(200, json.dumps(reply).encode(), "application/json")
        finally:
            with self.server.changed:
                self.server.at_work -= 1
                self.server.changed.notify_all()

    def reply(self, status: int, body: bytes, kind: str) -> None:
        """A whole answer."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self) -> None:
        """Its name, word by word."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.event({"role": "assistant", "content": ""})
        for _ in range(WORDS):
            time.sleep(WORD_S)
            self.event({"content": self.server.name})
        self.event({}, "stop")
        self.piece(b"data: [DONE]\n\n")
        self.piece(b"")

    def event(self, delta: dict[str, str], finish: str | None = None) -> None:
        """A chunk of a chat stream."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
        self.piece(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def piece(self, data: bytes) -> None:
        """One write, framed."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


if __name__ == "__main__":
    engine = Engine(sys.argv[1], int(sys.argv[2]))
    signal.signal(
        signal.SIGTERM, lambda *_: threading.Thread(target=engine.drain, daemon=True).start()
    )
    engine.serve_forever()
