r"""An engine whose every byte a test writes, and the socket of a client that a test holds.

A test gives a function for each connection; it runs in a thread of its own, reads requests and
writes exact bytes. Tests and scripts meet at events, never at times:

    def test_cut(scripted):
        def script(conn):
            conn.read_request()
            conn.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")

        engine = scripted(script)
        ...  # talk to engine.url

A connection is closed when its script returns. What a script raises fails its test.
"""

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

LONG_S = 10.0
"""A wait that only a failure uses up."""


@dataclass(frozen=True)
class Request:
    """A request as it arrived.

    Attributes:
        headers: names in lower case; of one that is repeated, all values.
    """

    method: str
    path: str
    headers: dict[str, list[str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The one value of a header, or None; a repeated one fails the script."""
        values = self.headers.get(name, [])
        if len(values) > 1:
            raise AssertionError(f"{name} was sent {len(values)} times: {values}")
        return values[0] if values else None


class Conn:
    """One connection, on the engine's side."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = bytearray()
        sock.settimeout(LONG_S)

    def read_head(self) -> Request:
        """The next request without its body; an EOFError where the peer closed instead."""
        while b"\r\n\r\n" not in self._buffer:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the connection was closed before a whole request came")
            self._buffer += data
        head, self._buffer = self._buffer.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, value = line.split(":", 1)
            headers.setdefault(name.lower(), []).append(value.strip())
        return Request(method, path, headers, b"")

    def read_request(self) -> Request:
        """The next request, its body of `content-length` bytes included."""
        head = self.read_head()
        size = int(head.header("content-length") or 0)
        while len(self._buffer) < size:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the connection was closed within a body")
            self._buffer += data
        body = bytes(self._buffer[:size])
        del self._buffer[:size]
        return Request(head.method, head.path, head.headers, body)

    def send(self, *parts: bytes) -> None:
        """Writes the bytes, each part in a write of its own."""
        for part in parts:
            self.sock.sendall(part)

    def reply(
        self, body: bytes = b"{}", *, status: int = 200, headers: tuple[str, ...] = ()
    ) -> None:
        """A whole reply with a length."""
        lines = (f"HTTP/1.1 {status} Reason", *headers, f"content-length: {len(body)}", "", "")
        self.send("\r\n".join(lines).encode("latin-1") + body)

    def begin_stream(self, *, chunked: bool = True) -> None:
        """The head of an event stream; without chunks it ends with the connection."""
        framing = b"transfer-encoding: chunked\r\n" if chunked else b"connection: close\r\n"
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + framing + b"\r\n")

    def chunk(self, data: bytes) -> None:
        """One chunk; an empty one ends the body."""
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def wait_closed(self) -> bool:
        """Waits until the peer closed or reset the connection; False when it wrote instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def closed_within(self, wait_s: float) -> bool:
        """Whether the peer closes the connection within this time."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(wait_s * 1000)) and self.wait_closed()

    def reset(self) -> None:
        """Ends the connection with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


Script = Callable[[Conn], None]


@dataclass
class ScriptedEngine:
    """A listening engine; its n-th connection runs the n-th script, later ones the last.

    Attributes:
        port: of the loopback address.
        connections: how many were accepted.
    """

    scripts: tuple[Script, ...]
    connections: int = 0
    errors: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _conns: list[Conn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.connections, len(self.scripts) - 1)]
            self.connections += 1
            conn = Conn(sock)
            self._conns.append(conn)
            thread = threading.Thread(target=self._run, args=(script, conn), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, script: Script, conn: Conn) -> None:
        try:
            script(conn)
        except BaseException as error:  # noqa: BLE001 - told at the end of the test
            self.errors.append(error)
        finally:
            conn.sock.close()

    def stop_listening(self) -> None:
        """From now on connections are refused."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(LONG_S)

    def close(self) -> None:
        """Stops and waits for the scripts; raises what one of them raised."""
        self.stop_listening()
        for thread in self._threads:
            thread.join(LONG_S)
        still = sum(thread.is_alive() for thread in self._threads)
        for conn in self._conns:
            conn.sock.close()
        if self.errors:
            raise self.errors[0]
        if still:
            raise AssertionError(f"{still} scripts did not end")


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedEngine]]:
    """Makes scripted engines: `scripted(first, second…)`, a script for each connection."""
    engines: list[ScriptedEngine] = []

    def build(*scripts: Script) -> ScriptedEngine:
        engines.append(ScriptedEngine(scripts))
        return engines[-1]

    yield build
    with contextlib.ExitStack() as stack:
        for engine in engines:
            stack.callback(engine.close)


@pytest.fixture
def refused_url() -> str:
    """A base URL that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@dataclass
class ClientSocket:
    """A client's connection to the gateway.

    Attributes:
        near: the gateway's end.
        far: the client's end.
    """

    near: socket.socket
    far: socket.socket

    def leave(self) -> None:
        """The client closes its connection."""
        self.far.close()

    def half_close(self) -> None:
        """The client says that it will send no more."""
        self.far.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """The client's connection breaks."""
        self.far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.far.close()


@pytest.fixture
def client_socket() -> Iterator[ClientSocket]:
    """A TCP connection of a client, both ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        near, _ = listener.accept()
    pair = ClientSocket(near, far)
    yield pair
    near.close()
    far.close()
