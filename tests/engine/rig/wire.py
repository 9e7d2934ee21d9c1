"""A proxy before an engine: bytes pass as they are, and every request is kept.

It understands just enough of HTTP to tell requests and the status of their answers apart: what the
gateway writes has a length, and an answer begins when a request is whole.
"""

import contextlib
import json
import re
import socket
import threading
from dataclasses import dataclass, field

WAIT_S = 60


@dataclass
class Exchange:
    """A request as the engine got it.

    Attributes:
        headers: names in lower case.
        status: of the answer, once it has begun; None before.
        closed: set when the gateway has closed the connection it came on.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int | None = None
    closed: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self):
        """The body, decoded."""
        return json.loads(self.body)


class Wire:
    """A listening proxy.

    Attributes:
        exchanges: every request with a body since `forget`, in order.
        cutting: while set, an answer's connection is closed after its first bytes.
    """

    def __init__(self, url):
        host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
        self._engine = (host, int(port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.exchanges = []
        self._sockets = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def forget(self):
        """Begins a new list of exchanges."""
        self.exchanges.clear()

    def close(self):
        """Ends it and its connections."""
        self._listener.close()
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        with contextlib.ExitStack() as stack:
            stack.callback(near.close)
            try:
                far = socket.create_connection(self._engine, WAIT_S)
            except OSError:
                return
            stack.callback(far.close)
            far.settimeout(None)
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.add(each)
                stack.callback(self._sockets.discard, each)
            seen = []
            back = threading.Thread(target=self._pass_back, args=(far, near, seen), daemon=True)
            back.start()
            self._pass_on(near, far, seen)
            for exchange in seen:
                exchange.closed.set()
            for each in (far, near):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            back.join(WAIT_S)

    def _pass_on(self, near, far, seen):
        """Requests, to the engine; returns when the gateway has closed."""
        pending = b""
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                pending = self._take(pending + data, seen)
                far.sendall(data)

    def _take(self, pending, seen):
        while b"\r\n\r\n" in pending:
            head, _, rest = pending.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            size = int(headers.get("content-length", "0"))
            if len(rest) < size:
                return pending
            method, path, _ = first.split(" ")
            exchange = Exchange(method, path, headers, rest[:size])
            seen.append(exchange)
            if method == "POST":
                self.exchanges.append(exchange)
            pending = rest[size:]
        return pending

    @staticmethod
    def _pass_back(far, near, seen):
        """Answers, to the gateway."""
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                begins = re.match(rb"HTTP/1\.1 (\d{3}) ", data)
                if begins and seen:
                    seen[-1].status = int(begins[1])
                near.sendall(data)
        with contextlib.suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
