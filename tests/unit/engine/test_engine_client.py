"""Asking an engine: what is sent, what comes back, and what each failure says."""

import socket
import threading
from collections.abc import Callable

import pytest

from gateway.engine.client import Answer, EngineClient
from gateway.engine.servers import Server
from gateway.engine.watch import Watch
from gateway.errors import (
    UPSTREAM_PROTOCOL,
    UPSTREAM_TIMEOUT,
    UPSTREAM_UNREACHABLE,
    EngineFault,
    Kind,
)

Ask = Callable[..., Answer]


def pieces(answer: Answer) -> list[bytes]:
    """Everything that comes, as it comes."""
    got = []
    while piece := answer.next(None):
        got.append(piece)
    return got


def failing(act: Callable[[], object]) -> EngineFault:
    """The fault that `act` ends with; its text never names the server."""
    with pytest.raises(EngineFault) as error:
        act()
    fault = error.value
    for secret in ("127.0.0.1", "localhost", "the-name", "http://", "urllib3", "0x"):
        assert secret not in fault.message
    assert fault.message.startswith("The engine ")
    assert fault.message.endswith(".")
    return fault


def test_what_is_sent(scripted, ask: Ask) -> None:
    """The path, the headers and the very bytes; nothing of Python's surroundings."""
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request())
        conn.reply(b'{"a": 1}', headers=("content-type: application/json; charset=utf-8",))

    engine = scripted(script)
    body = b'{"x": 1.0, "y": "\xe5\x8c\x97"}'
    headers = {"content-type": "application/json", "authorization": "Bearer k"}
    answer = ask(engine.url + "/prefix", body, headers)
    assert answer.status == 200
    assert answer.content_type == "application/json"
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.read(1000) == b'{"a": 1}'
    [request] = seen
    assert (request.method, request.path) == ("POST", "/prefix/v1/chat/completions")
    assert request.body == body
    assert request.header("authorization") == "Bearer k"
    assert request.header("accept-encoding") == "identity"
    assert request.header("content-length") == str(len(body))
    assert request.header("content-type") == "application/json"
    assert request.header("user-agent") == "sgl-gateway"
    assert set(request.headers) == {
        "host",
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "user-agent",
    }


def test_get(scripted, client: EngineClient) -> None:
    """A GET has no body."""
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request())
        conn.reply(b"[]")

    engine = scripted(script)
    answer = client.get(Server("s", engine.url), "/v1/models", {"x-a": "b"}, Watch())
    assert answer.read(10) == b"[]"
    assert (seen[0].method, seen[0].path, seen[0].body) == ("GET", "/v1/models", b"")
    assert seen[0].header("x-a") == "b"


def test_the_surroundings_do_not_matter(
    scripted, ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    """No proxy of the environment is used, and no .netrc replaces the key."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request())
        conn.reply()

    answer = ask(scripted(script).url, headers={"authorization": "Bearer k"})
    assert answer.read(10) == b"{}"
    assert seen[0].header("authorization") == "Bearer k"


def test_no_cookies_are_kept(scripted, ask: Ask) -> None:
    """An engine's cookies are not sent back to it."""
    seen = []

    def script(conn) -> None:
        for _ in range(2):
            seen.append(conn.read_request())
            conn.reply(headers=("set-cookie: a=b; path=/",))

    engine = scripted(script)
    for _ in range(2):
        ask(engine.url).read(10)
    assert [request.header("cookie") for request in seen] == [None, None]


@pytest.mark.parametrize("status", [200, 201, 204, 400, 401, 404, 422, 429, 500, 502, 503, 529])
def test_statuses_pass(scripted, ask: Ask, status: int) -> None:
    """An answer with an error is an answer; nothing is retried here."""

    def script(conn) -> None:
        conn.read_request()
        conn.reply(b"" if status == 204 else b"text", status=status, headers=("retry-after: 7",))

    engine = scripted(script)
    answer = ask(engine.url)
    assert answer.status == status
    assert answer.headers["Retry-After"] == "7"
    assert answer.read(10) == (b"" if status == 204 else b"text")
    assert engine.connections == 1


FRAMINGS = ["length", "chunked", "close", "http/1.0"]


def head_of(framing: str, size: int) -> bytes:
    """A reply's head for each framing."""
    return {
        "length": b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size,
        "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n",
        "close": b"HTTP/1.1 200 OK\r\n\r\n",
        "http/1.0": b"HTTP/1.0 200 OK\r\n\r\n",
    }[framing]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_pieces_come_as_they_are_sent(scripted, ask: Ask, framing: str) -> None:
    """In every framing a piece is there before the next one is sent; then the end, for ever."""
    go_on = threading.Semaphore(0)
    sent = [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]

    def script(conn) -> None:
        conn.read_request()
        conn.send(head_of(framing, sum(map(len, sent))))
        for piece in sent:
            assert go_on.acquire(timeout=10)
            if framing == "chunked":
                conn.chunk(piece)
            else:
                conn.send(piece)
        if framing == "chunked":
            conn.chunk(b"")

    answer = ask(scripted(script).url)
    for piece in sent:
        go_on.release()
        assert answer.next(None) == piece
    assert [answer.next(None), answer.next(0), answer.next(None)] == [b"", b"", b""]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_silence_loses_nothing(scripted, ask: Ask, framing: str) -> None:
    """None after the caller's time, at every byte of the reply; then reading goes on."""
    go_on = threading.Semaphore(0)
    wire = b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n" if framing == "chunked" else b"abc"
    payload = (3, 4, 14) if framing == "chunked" else (0, 1, 2)

    def script(conn) -> None:
        conn.read_request()
        conn.send(head_of(framing, 3))
        for byte in wire:
            assert go_on.acquire(timeout=10)
            conn.send(bytes([byte]))

    answer = ask(scripted(script).url)
    for place, byte in enumerate(wire):
        assert answer.next(0) is None
        go_on.release()
        if place in payload:
            assert answer.next(None) == bytes([byte])
    assert answer.next(None) == b""


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx", b"x"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n"
            b"1\r\nx\r\n0\r\n\r\n",
            b"x",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n01\r\nx\r\n0\r\nt: v\r\n\r\n",
            b"x",
        ),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 60_000 + b"\r\ncontent-length: 1\r\n\r\nx", b"x"),
    ],
    ids=[
        "empty",
        "no content",
        "interim",
        "length twice",
        "length in a list",
        "identity",
        "no reason",
        "chunks win",
        "trailers",
        "no blank line at the end",
        "a long header",
    ],
)
def test_replies_that_are_read(scripted, ask: Ask, wire: bytes, body: bytes) -> None:
    """Unusual, but HTTP."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(wire)

    assert ask(scripted(script).url).read(100) == body


BAD_HEADS = {
    "not HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "a status beyond": b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n",
    "another interim": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
    "a redirect": b"HTTP/1.1 307 X\r\nlocation: http://secret-host/\r\ncontent-length: 0\r\n\r\n",
    "a bad redirect": b"HTTP/1.1 302 X\r\nlocation: http://[\r\ncontent-length: 5\r\n\r\n",
    "not modified": b"HTTP/1.1 304 X\r\n\r\n",
    "cut in the status": b"HTTP/1.1 20",
    "cut after the status": b"HTTP/1.1 200 OK",
    "cut in the headers": b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    "a header too long": b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n",
    "a line without colon": b"HTTP/1.1 200 OK\r\nodd\r\ntransfer-encoding: chunked\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    "a negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nx",
    "a length in words": b"HTTP/1.1 200 OK\r\ncontent-length: one\r\n\r\nx",
    "compressed": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
    "a coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("wire", BAD_HEADS.values(), ids=BAD_HEADS)
def test_heads_that_are_not_read(scripted, ask: Ask, wire: bytes) -> None:
    """What is not an answer is a protocol fault, not retried, and shows nothing of it."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(wire)

    engine = scripted(script)
    fault = failing(lambda: ask(engine.url))
    assert fault.kind is UPSTREAM_PROTOCOL
    assert not fault.retriable
    assert "secret" not in fault.message
    assert engine.connections == 1


def test_headers_with_controls_do_not_pass(scripted, ask: Ask) -> None:
    """A header value with a line end or a control character is not handed on."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(
            b"HTTP/1.1 200 OK\r\nx-a: one\n two\r\nx-b: t\x00wo\r\nx-c: fi\tne\r\n"
            b"content-length: 0\r\n\r\n"
        )

    headers = ask(scripted(script).url).headers
    assert "x-b" not in headers
    assert headers["x-c"] == "fi\tne"
    assert not any(set(value) & set("\r\n\0") for value in headers.values())


CUTS = {
    "length": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
    "in a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    "before a size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
    "in a size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1",
    "in the last size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r",
    "a size in words": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\nxx\r\n",
    "a negative size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n-1\r\n",
    "a prefixed size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0x1\r\n",
    "no CRLF after": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n",
    "a bare LF": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\n\n",
    "an endless size": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"
    + b"0" * 9000,
}


@pytest.mark.parametrize("wire", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_bodies_that_break(scripted, ask: Ask, wire: bytes, reset: bool) -> None:
    """What came before is there; then a protocol fault, and never a clean end after it."""
    got_ab = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        head, body = wire.split(b"\r\n\r\n", 1)
        at = body.index(b"ab") + 2
        conn.send(head + b"\r\n\r\n" + body[:at])
        assert got_ab.wait(10)
        conn.send(body[at:])
        if reset:
            conn.reset()

    answer = ask(scripted(script).url)
    assert answer.next(None) == b"ab"
    got_ab.set()
    for _ in range(3):
        fault = failing(lambda: answer.next(None))
        assert fault.kind is UPSTREAM_PROTOCOL
        assert not fault.retriable


def test_half_a_body_is_no_body(scripted, ask: Ask) -> None:
    """`read` gives the whole body or a fault."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab")

    fault = failing(lambda: ask(scripted(script).url).read(100))
    assert fault.kind is UPSTREAM_PROTOCOL


@pytest.mark.parametrize("framing", FRAMINGS)
def test_read_is_bounded(scripted, ask: Ask, framing: str) -> None:
    """A body beyond the limit is a fault, and the engine's connection is closed."""
    closed = []

    def script(conn) -> None:
        conn.read_request()
        conn.send(head_of(framing, 10**9))
        conn.chunk(b"x" * 200) if framing == "chunked" else conn.send(b"x" * 200)
        closed.append(conn.wait_closed())

    engine = scripted(script)
    fault = failing(lambda: ask(engine.url).read(100))
    assert fault.kind is UPSTREAM_PROTOCOL
    engine.close()
    assert closed == [True]


def unreachable_or(kind: Kind, fault: EngineFault, *, refused: bool) -> None:
    """Checks a fault that another server may make good."""
    assert fault.kind is kind
    assert fault.retriable
    assert fault.refused is refused


def test_refused(refused_url: str, ask: Ask) -> None:
    """No connection: nothing was sent, another server may be asked."""
    fault = failing(lambda: ask(refused_url))
    unreachable_or(UPSTREAM_UNREACHABLE, fault, refused=True)
    assert "refused" in fault.message


def test_an_unknown_name(ask: Ask) -> None:
    """A host that does not resolve counts as refused."""
    fault = failing(lambda: ask("http://no-such-host.invalid:1"))
    unreachable_or(UPSTREAM_UNREACHABLE, fault, refused=True)


def test_a_black_hole(impatient, ask: Ask) -> None:
    """A connection that is neither accepted nor refused ends with the time for it."""
    with socket.socket() as full:  # a listener whose queue is full answers no more
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        by = impatient(connect_s=0.1)
        fault = failing(lambda: ask(f"http://127.0.0.1:{port}", by=by))
        for one in waiting:
            one.close()
    unreachable_or(UPSTREAM_UNREACHABLE, fault, refused=True)
    assert "within 0.1 s" in fault.message


@pytest.mark.parametrize("how", ["close", "reset"])
def test_closed_before_an_answer(scripted, ask: Ask, how: str) -> None:
    """A fresh connection that goes without an answer: another server may be asked."""

    def script(conn) -> None:
        conn.read_request()
        if how == "reset":
            conn.reset()

    engine = scripted(script)
    fault = failing(lambda: ask(engine.url))
    unreachable_or(UPSTREAM_UNREACHABLE, fault, refused=False)
    assert engine.connections == 1


def test_no_answer_in_time(scripted, impatient, ask: Ask) -> None:
    """A read time-out is never retried: the engine may still be at work."""
    closed = []

    def script(conn) -> None:
        conn.read_request()
        closed.append(conn.wait_closed())

    engine = scripted(script)
    fault = failing(lambda: ask(engine.url, by=impatient(first_byte_s=0.05)))
    assert fault.kind is UPSTREAM_TIMEOUT
    assert not fault.retriable
    engine.close()
    assert closed == [True]
    assert engine.connections == 1


def test_what_is_left_of_the_time(scripted, ask: Ask) -> None:
    """A request may have less time than the limit."""

    def script(conn) -> None:
        conn.read_request()
        assert conn.wait_closed()

    fault = failing(lambda: ask(scripted(script).url, first_byte_s=0.05))
    assert fault.kind is UPSTREAM_TIMEOUT


def test_a_head_that_trickles(scripted, impatient, ask: Ask) -> None:
    """Until the answer has said something its whole time counts, however it trickles in."""

    def script(conn) -> None:
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nx: ")
        while not conn.closed_within(0.01):
            conn.send(b"y")

    fault = failing(lambda: ask(scripted(script).url, by=impatient(first_byte_s=0.1)))
    assert fault.kind is UPSTREAM_TIMEOUT


def stream_then_stall(conn) -> None:
    """One event, then nothing until the peer leaves."""
    conn.read_request()
    conn.begin_stream()
    conn.chunk(b"data: 1\n\n")
    assert conn.wait_closed()


def test_a_stall_after_the_commit(scripted, impatient, ask: Ask) -> None:
    """Silence beyond the idle limit, counted over calls, is a time-out, and stays one."""
    answer = ask(scripted(stream_then_stall).url, by=impatient(idle_s=0.1))
    assert answer.next(None) == b"data: 1\n\n"
    answer.commit()
    assert answer.next(0.01) is None
    for _ in range(2):
        fault = failing(lambda: answer.next(None))
        assert fault.kind is UPSTREAM_TIMEOUT
        assert not fault.retriable


def test_a_stall_before_the_commit(scripted, impatient, ask: Ask) -> None:
    """Until the answer says something, silence may last as long as the request's time does."""
    by = impatient(idle_s=0.01, first_byte_s=0.2)
    answer = ask(scripted(stream_then_stall).url, by=by)
    assert answer.next(None) == b"data: 1\n\n"
    assert answer.next(0.05) is None
    assert failing(lambda: answer.next(None)).kind is UPSTREAM_TIMEOUT


def test_bytes_that_waited_are_no_stall(scripted, impatient, ask: Ask) -> None:
    """What the engine sent is read even when the idle limit passed in the meantime."""
    sent = threading.Event()

    def script(conn) -> None:
        conn.read_request()
        conn.begin_stream()
        conn.chunk(b"data: 1\n\n")
        conn.chunk(b"")
        sent.set()
        assert conn.wait_closed()

    by = impatient(idle_s=0.0)
    answer = ask(scripted(script).url, by=by)
    answer.commit()
    assert sent.wait(10)
    assert pieces(answer) == [b"data: 1\n\n"]


def test_a_large_body(scripted, ask: Ask) -> None:
    """A body larger than all buffers arrives whole."""
    body = bytes(range(256)) * 40_000
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request().body)
        conn.reply()

    assert ask(scripted(script).url, body).read(10) == b"{}"
    assert seen == [body]


def test_an_engine_that_takes_nothing(scripted, impatient, ask: Ask) -> None:
    """Sending is bounded too; the engine has not begun, so another may be asked."""
    let_go = threading.Event()

    def script(conn) -> None:
        conn.read_head()
        assert let_go.wait(10)

    engine = scripted(script)
    fault = failing(lambda: ask(engine.url, b"x" * 30_000_000, by=impatient(send_s=0.05)))
    let_go.set()
    unreachable_or(UPSTREAM_TIMEOUT, fault, refused=False)


def test_an_early_answer(scripted, ask: Ask) -> None:
    """An engine may answer before it has read the body; its connection is not used again."""
    done = threading.Event()

    def first(conn) -> None:
        conn.read_head()
        conn.reply(b"too large", status=413)
        assert done.wait(10)

    def second(conn) -> None:
        conn.read_request()
        conn.reply()

    engine = scripted(first, second)
    answer = ask(engine.url, b"x" * 30_000_000)
    assert answer.status == 413
    assert answer.read(100) == b"too large"
    done.set()
    assert ask(engine.url).read(10) == b"{}"
    assert engine.connections == 2


def test_an_early_answer_and_a_close(scripted, ask: Ask) -> None:
    """The answer is read as well when the engine closes right after it."""

    def script(conn) -> None:
        conn.read_head()
        conn.reply(b"too large", status=413, headers=("connection: close",))

    answer = ask(scripted(script).url, b"x" * 30_000_000)
    assert answer.status == 413


@pytest.mark.parametrize("path", ["/v1/models?x=y", "/v1/models/Qwen%2FQwen3"])
def test_paths_are_sent_as_they_are(scripted, client: EngineClient, path: str) -> None:
    """A path is not decoded or normalised on the way."""
    seen = []

    def script(conn) -> None:
        seen.append(conn.read_request().path)
        conn.reply()

    client.get(Server("s", scripted(script).url), path, {}, Watch()).read(10)
    assert seen == [path]
