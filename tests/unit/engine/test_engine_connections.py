"""Connections: when one is used again, when it is closed, and that none is lost."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.engine.client import Answer, EngineClient
from gateway.engine.watch import Watch
from gateway.errors import (
    DRAINING,
    UPSTREAM_PROTOCOL,
    UPSTREAM_UNREACHABLE,
    ClientGone,
    EngineFault,
    GatewayError,
)

Ask = Callable[..., Answer]


def open_files() -> int:
    """The file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def answers_for_ever(conn) -> None:
    """Replies to each request on the connection."""
    try:
        while True:
            conn.read_request()
            conn.reply()
    except EOFError:
        return


@pytest.mark.parametrize("framing", ["length", "chunked", "no body"])
def test_a_read_connection_is_used_again(scripted, ask: Ask, framing: str) -> None:
    """A reply that was read to its end leaves the connection for the next request."""

    def script(conn) -> None:
        for _ in range(3):
            conn.read_request()
            if framing == "length":
                conn.reply()
            elif framing == "chunked":
                conn.begin_stream()
                conn.chunk(b"{}")
                conn.chunk(b"")
            else:
                conn.reply(b"", status=204)

    engine = scripted(script)
    for _ in range(3):
        answer = ask(engine.url)
        assert answer.read(10) == (b"" if framing == "no body" else b"{}")
        answer.close()
    assert engine.connections == 1


ENDS = {
    "connection: close": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "bytes after the end": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n",
    "bytes after the chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    b"2\r\n{}\r\n0\r\n\r\nHTTP/1.1 500",
    "chunks and a length": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
    b"content-length: 7\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("wire", ENDS.values(), ids=ENDS)
def test_a_connection_in_doubt_is_not_used_again(scripted, ask: Ask, wire: bytes) -> None:
    """Where the engine says so, or wrote more than its reply, the connection is closed."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(wire)
        assert conn.wait_closed()

    engine = scripted(script, answers_for_ever)
    assert ask(engine.url).read(10) == b"{}"
    assert ask(engine.url).read(10) == b"{}"
    assert engine.connections == 2


def test_an_idle_connection_is_not_used_again(scripted, impatient, ask: Ask) -> None:
    """One that idled too long is closed: the engine is about to close it as well."""
    closed = threading.Event()

    def first(conn) -> None:
        conn.read_request()
        conn.reply()
        assert conn.wait_closed()
        closed.set()

    engine = scripted(first, answers_for_ever)
    by = impatient(reuse_idle_s=-1)
    assert ask(engine.url, by=by).read(10) == b"{}"
    assert ask(engine.url, by=by).read(10) == b"{}"
    assert closed.wait(10)
    assert engine.connections == 2


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_reset_of_a_reused_connection(scripted, ask: Ask, how: str) -> None:
    """Asked again on a fresh connection of the same server; the first is closed before."""
    requests = []
    closed = threading.Event()

    def first(conn) -> None:
        conn.read_request()
        conn.reply()
        requests.append(conn.read_request())  # the request that crosses the close
        if how == "reset":
            conn.reset()
        else:
            conn.sock.shutdown(socket.SHUT_WR)
            assert conn.wait_closed()
        closed.set()

    def second(conn) -> None:
        assert closed.wait(10)
        requests.append(conn.read_request())
        conn.reply(b"second")

    engine = scripted(first, second)
    assert ask(engine.url).read(10) == b"{}"
    assert ask(engine.url, b"again").read(10) == b"second"
    assert [request.body for request in requests] == [b"again", b"again"]


def test_only_once_more(scripted, ask: Ask) -> None:
    """A fresh connection that goes as well is the server's failure."""

    def first(conn) -> None:
        conn.read_request()
        conn.reply()
        conn.read_request()

    def second(conn) -> None:
        conn.read_request()

    engine = scripted(first, second)
    ask(engine.url).read(10)
    with pytest.raises(EngineFault) as error:
        ask(engine.url)
    assert error.value.kind is UPSTREAM_UNREACHABLE
    assert error.value.retriable
    assert engine.connections == 2


@pytest.mark.parametrize("byte", [b"H", b"HTTP/1.1 200 OK\r\n"])
def test_not_after_a_byte_of_an_answer(scripted, ask: Ask, byte: bytes) -> None:
    """Once the answer began, a reused connection's end is final."""

    def script(conn) -> None:
        conn.read_request()
        conn.reply()
        conn.read_request()
        conn.send(byte)

    engine = scripted(script)
    ask(engine.url).read(10)
    with pytest.raises(EngineFault) as error:
        ask(engine.url)
    assert error.value.kind is UPSTREAM_PROTOCOL
    assert not error.value.retriable
    assert engine.connections == 1


def test_an_engine_that_closes_after_each_reply(scripted, ask: Ask) -> None:
    """An engine that closes without saying so never costs a client its request."""

    def script(conn) -> None:
        conn.read_request()
        conn.reply()

    engine = scripted(script)
    for _ in range(50):
        assert ask(engine.url).read(10) == b"{}"


def test_closing_an_unread_answer(scripted, ask: Ask) -> None:
    """It closes the engine's connection at once, so that generating stops; twice is once."""
    closed = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        conn.begin_stream()
        conn.chunk(b"data: 1\n\n")
        assert conn.wait_closed()
        closed.set()

    answer = ask(scripted(script).url)
    assert answer.next(None) == b"data: 1\n\n"
    answer.close()
    answer.close()
    assert closed.wait(10)
    with pytest.raises(ValueError, match="closed before its end"):
        answer.next(None)


LEAVES = ["leave", "half_close", "reset"]
MOMENTS = ["before the head", "in the head", "before a byte", "in a chunk", "between events"]


@pytest.mark.parametrize("how", LEAVES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_client_that_leaves(scripted, ask: Ask, client_socket, moment: str, how: str) -> None:
    """However it leaves and wherever the answer stands, the engine's connection is closed."""
    closed = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        if moment == "in the head":
            conn.send(b"HTTP/1.1 200 OK\r\ncontent-")
        elif moment != "before the head":
            conn.begin_stream()
        if moment == "in a chunk":
            conn.send(b"1")
        elif moment == "between events":
            conn.chunk(b"data: 1\n\n")
        getattr(client_socket, how)()
        assert conn.wait_closed()
        closed.set()

    engine = scripted(script)

    def act() -> None:
        answer = ask(engine.url, watch=Watch(client_socket.near))
        while answer.next(None):
            pass

    with pytest.raises(ClientGone):
        act()
    assert closed.wait(10)
    assert engine.connections == 1


def test_gone_stays_gone(scripted, ask: Ask, client_socket) -> None:
    """Reading on after the client left says so again."""

    def script(conn) -> None:
        conn.read_request()
        conn.begin_stream()
        assert conn.wait_closed()

    answer = ask(scripted(script).url, watch=Watch(client_socket.near))
    client_socket.leave()
    for _ in range(2):
        with pytest.raises(ClientGone):
            answer.next(None)


def test_a_client_that_leaves_while_the_body_is_sent(scripted, ask: Ask, client_socket) -> None:
    """An engine that does not read cannot hold the request of a client that left."""
    gone = threading.Event()

    def script(conn) -> None:
        conn.read_head()
        client_socket.leave()
        assert gone.wait(10)

    engine = scripted(script)
    with pytest.raises(ClientGone):
        ask(engine.url, b"x" * 30_000_000, watch=Watch(client_socket.near))
    gone.set()


def test_a_client_that_has_left_already(scripted, ask: Ask, client_socket) -> None:
    """Nothing is sent for nobody."""
    engine = scripted(answers_for_ever)
    client_socket.leave()
    with pytest.raises(ClientGone):
        ask(engine.url, watch=Watch(client_socket.near))
    assert engine.connections == 0


def test_no_second_try_for_nobody(scripted, ask: Ask, client_socket) -> None:
    """A reset of a reused connection is not retried when the client left too."""

    def script(conn) -> None:
        conn.read_request()
        conn.reply()
        conn.read_request()
        client_socket.leave()

    engine = scripted(script)
    ask(engine.url).read(10)
    with pytest.raises(ClientGone):
        ask(engine.url, watch=Watch(client_socket.near))
    assert engine.connections == 1


def test_pipelined_bytes_of_the_client(scripted, ask: Ask, client_socket) -> None:
    """What the client sends in the meantime neither ends the wait nor is it read."""
    go_on = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        assert go_on.wait(10)
        conn.reply()

    client_socket.far.sendall(b"GET /next HTTP/1.1\r\n\r\n")
    engine = scripted(script)
    watch = Watch(client_socket.near)
    timer = threading.Timer(0.05, go_on.set)
    timer.start()
    assert ask(engine.url, watch=watch).read(10) == b"{}"
    timer.join()
    assert client_socket.near.recv(100) == b"GET /next HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("moment", ["before the head", "between events"])
def test_the_drain_ends_a_wait(scripted, ask: Ask, moment: str) -> None:
    """A time that is set while the wait goes on ends it with a 503, and the connection."""
    cut_at: list[float] = []
    closed = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        if moment == "between events":
            conn.begin_stream()
            conn.chunk(b"data: 1\n\n")
        cut_at.append(0.0)
        assert conn.wait_closed()
        closed.set()

    engine = scripted(script)

    def act() -> None:
        answer = ask(engine.url, watch=Watch(None, lambda: cut_at[0] if cut_at else None))
        while answer.next(None):
            pass

    with pytest.raises(GatewayError) as error:
        act()
    assert error.value.kind is DRAINING
    assert closed.wait(10)


def test_no_descriptor_is_lost(scripted, client: EngineClient, ask: Ask) -> None:
    """200 clients that leave, at every moment, leave nothing open behind them."""

    def script(conn) -> None:
        try:
            conn.read_request()
            conn.begin_stream()
            conn.chunk(b"data: 1\n\n")
            conn.wait_closed()
        except (EOFError, ConnectionError):
            return

    engine = scripted(script)
    before = open_files()
    for number in range(200):
        near, far = socket.socketpair()
        watch = Watch(near)
        try:
            if number % 2:
                answer = ask(engine.url, watch=watch)
                answer.next(None)
                far.close()
                with pytest.raises(ClientGone):
                    answer.next(None)
            else:
                far.close()
                with pytest.raises(ClientGone):
                    ask(engine.url, watch=watch)
        finally:
            near.close()
            far.close()
    client.close()
    engine.close()
    # The listener and its wake-up are closed too, by now.
    assert open_files() < before


def test_many_threads(scripted, impatient, ask: Ask) -> None:
    """Threads get their own answers, and the pool keeps no more connections than its size."""

    def script(conn) -> None:
        try:
            while True:
                request = conn.read_request()
                conn.begin_stream()
                conn.chunk(request.body)
                conn.chunk(request.body)
                conn.chunk(b"")
        except EOFError:
            return

    engine = scripted(script)
    by = impatient(pool_size=8)
    wrong = []

    def work(number: int) -> None:
        for turn in range(20):
            body = b"%d-%d" % (number, turn)
            if ask(engine.url, body, by=by).read(100) != body * 2:
                wrong.append(body)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert engine.connections <= 8
    by.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path.with_suffix(".crt"))),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.with_suffix(".key").read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.fixture
def secure(scripted, certificate: Path):
    """Makes scripted engines that speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def build(*scripts):
        def secured(script):
            def run(conn) -> None:
                conn.sock = context.wrap_socket(conn.sock, server_side=True)
                script(conn)

            return run

        engine = scripted(*map(secured, scripts))
        return engine, engine.url.replace("http", "https")

    return build


@pytest.fixture
def trusting(certificate: Path) -> Iterator[EngineClient]:
    """A client that trusts the certificate."""
    one = EngineClient(ca_file=str(certificate))
    yield one
    one.close()


def test_tls(secure, trusting: EngineClient, ask: Ask) -> None:
    """Over TLS: large bodies both ways, pieces as they come, connections used again."""
    go_on = threading.Semaphore(0)
    body = b"x" * 3_000_000
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request().body)
        conn.begin_stream()
        for piece in (b"data: 1\n\n", b"data: 2\n\n"):
            assert go_on.acquire(timeout=10)
            conn.chunk(piece)
        conn.chunk(b"")
        conn.read_request()
        conn.reply(body)

    engine, url = secure(script)
    answer = ask(url, body, by=trusting)
    assert answer.next(0) is None
    go_on.release()
    assert answer.next(None) == b"data: 1\n\n"
    go_on.release()
    assert answer.next(None) == b"data: 2\n\n"
    assert answer.next(None) == b""
    assert ask(url, by=trusting).read(len(body)) == body
    assert seen == [body]
    assert engine.connections == 1


def test_tls_and_a_client_that_leaves(
    secure, trusting: EngineClient, ask: Ask, client_socket
) -> None:
    """Over TLS too, a client that leaves closes the engine's connection."""
    closed = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        client_socket.leave()
        with contextlib.suppress(OSError):  # it ended without TLS's own good-bye
            assert conn.wait_closed()
        closed.set()

    _, url = secure(script)
    with pytest.raises(ClientGone):
        ask(url, watch=Watch(client_socket.near), by=trusting)
    assert closed.wait(10)


def test_tls_that_is_not_trusted(scripted, certificate: Path, ask: Ask) -> None:
    """A certificate that nobody vouches for: nothing is sent, another server may be asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def script(conn) -> None:
        with pytest.raises(ssl.SSLError, match=r"(?i)unknown ca"):
            context.wrap_socket(conn.sock, server_side=True)

    url = scripted(script).url.replace("http", "https")
    with pytest.raises(EngineFault) as error:
        ask(url)
    assert error.value.kind is UPSTREAM_UNREACHABLE
    assert error.value.refused
    assert "no secure connection" in error.value.message
