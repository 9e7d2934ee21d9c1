"""What holds on every route, over real sockets: clients that leave, large bodies, headers."""

import contextlib
import json
import threading
from pathlib import Path

import pytest

MESSAGES = [{"role": "user", "content": "hi"}]
BODIES = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 5},
    "/v1/responses": {"input": "hi"},
    "/v1/completions": {"prompt": "hi"},
    "/v1/embeddings": {"input": "hi"},
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/v1/responses/input_tokens": {"input": "hi"},
}
STREAMED = ["/v1/messages", "/v1/responses", "/v1/completions"]
WHOLE = ["/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/messages/count_tokens"]


def body_of(path, **fields):
    """A small request of a route."""
    return json.dumps({"model": "m", **BODIES[path], **fields}).encode()


@pytest.fixture
def serve(start_gateway):
    """A gateway of one process in front of engines."""

    def start(*engines, flags=()):
        urls = ",".join(engine.url for engine in engines)
        return start_gateway("--model-id=m", f"--worker-urls={urls}", "--workers=1", *flags)

    return start


def before_the_head(conn, wire):
    """The engine thinks."""
    del conn, wire


def before_data(conn, wire):
    """The engine has only said who speaks."""
    conn.begin_stream()
    conn.chunk(wire.role)


def mid_stream(conn, wire):
    """The engine has said a word."""
    conn.begin_stream()
    conn.chunk(wire.chunk({"content": "word"}).replace(b'"delta"', b'"text": "word", "delta"'))


MOMENTS = [
    *((path, before_the_head, False) for path in WHOLE),
    *((path, moment, True) for path in STREAMED for moment in (before_the_head, before_data)),
    *((path, mid_stream, True) for path in STREAMED),
]


def test_a_client_that_leaves_stops_the_engine(serve, scripted, call, wire):
    """On every route and at every moment; the other server is not asked instead."""
    plan = [(*moment, leave) for moment in MOMENTS for leave in ("close", "half_close", "reset")]
    turns = iter(plan)
    reached, closed = threading.Semaphore(0), threading.Semaphore(0)

    def script(conn):
        conn.read_request()
        next(turns)[1](conn, wire)
        reached.release()
        assert conn.wait_closed()
        closed.release()

    first, second = scripted(script), scripted(script)
    gateway = serve(first, second)
    for path, moment, stream, leave in plan:
        caller = call(gateway).post(body_of(path, stream=stream), path)
        assert reached.acquire(timeout=10)
        if moment is mid_stream:
            caller.until(b"word")
        getattr(caller, leave)()
        assert closed.acquire(timeout=10), (path, moment, leave)
    records = gateway.requests(len(plan))
    assert [record["outcome"] for record in records] == ["client_gone"] * len(plan)
    assert first.connections + second.connections == len(plan)


def descriptors(gateway):
    """The open files of the worker process."""
    parent = gateway.process.pid
    (worker,) = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    return len(list(Path(f"/proc/{worker}/fd").iterdir()))


def test_clients_that_leave_cost_nothing_for_good(serve, scripted, call, wire):
    """After two hundred of them every slot is free, and no file is open that was not before."""
    reached = threading.Semaphore(0)

    def script(conn):
        request = conn.read_request()
        if b"stay" in request.body:
            conn.reply(wire.reply, headers=("content-type: application/json",))
            return
        reached.release()
        assert conn.wait_closed()

    gateway = serve(scripted(script), flags=["--max-inflight=4"])
    paths = ["/v1/messages", "/v1/responses", "/v1/chat/completions"]
    open_files = []
    for number in range(200):
        path = paths[number % 3]
        caller = call(gateway).post(body_of(path, stream=True), path)
        assert reached.acquire(timeout=10)
        caller.close()
        gateway.requests(number + 1)
        if number == 20:
            open_files.append(descriptors(gateway))
    open_files.append(descriptors(gateway))
    assert open_files[1] <= open_files[0] + 4
    for path in paths:
        reply = call(gateway).post(body_of(path, user="stay"), path, ["connection: close"]).rest()
        assert reply.startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def limited(serve, scripted, wire, tmp_path):
    """A gateway that takes bodies of 1 KiB, in front of an engine that is never asked."""
    profile = tmp_path / "profile.yaml"
    text = "limits: {max_body_bytes: 1KiB}\nerrors: {bad_request_type: odd}\n"
    profile.write_text(text, encoding="utf-8")

    def script(conn):
        raise AssertionError(conn.read_request())

    return serve(scripted(script), flags=[f"--api-profile-file={profile}"])


def check_too_large(reply, path):
    """413 in the dialect of the path, its type its own."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 "), path
    error = json.JSONDecoder().raw_decode(body.decode())[0]
    if path.startswith("/v1/messages"):
        assert (error["type"], error["error"]["type"]) == ("error", "request_too_large")
    else:
        assert error["error"]["type"] == "invalid_request_error"
        assert error["error"]["code"] == "request_too_large"


def head_of(path, *lines):
    """The head of a request."""
    return "\r\n".join((f"POST {path} HTTP/1.1", "host: g", *lines, "", "")).encode()


def test_a_chunked_body_counts_as_it_comes(limited, call):
    """No length is needed for the limit, and what is left of the body is never a request."""
    body = b"x" * 2048
    chunks = b"".join(b"100\r\n%b\r\n" % body[at : at + 256] for at in range(0, 2048, 256))
    following = b"GET /livez HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n"
    for path in BODIES:
        head = head_of(path, "transfer-encoding: chunked")
        reply = call(limited).send(head + chunks + b"0\r\n\r\n" + following).rest()
        check_too_large(reply, path)
        others = reply.split(b"HTTP/1.1 ")[2:]
        assert all(other.startswith(b"200 ") for other in others), path


def test_an_announced_length_is_refused_at_once(limited, call):
    """While the client is still to send the most of it, which is never taken for a request."""
    following = b"GET /livez HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n"
    for path in BODIES:
        caller = call(limited).send(head_of(path, "content-length: 2048") + b"x" * 100)
        refused = caller.until(b"larger than 1024 bytes")
        with contextlib.suppress(ConnectionError):  # it may have been closed
            caller.send(b"x" * 1948 + following)
        reply, *others = (refused + caller.rest()).split(b"HTTP/1.1 ")[1:]
        check_too_large(b"HTTP/1.1 " + reply, path)
        assert all(other.startswith(b"200 ") for other in others), path


def test_a_length_that_is_no_number(limited, call):
    """It is a malformed request on every route."""
    for path in BODIES:
        caller = call(limited).send(head_of(path, "content-length: abc") + b"{}")
        caller.half_close()
        assert caller.rest().startswith(b"HTTP/1.1 400 "), path


def test_an_id_comes_back_once(limited, call):
    """In replies that fail too, and however often it was sent."""
    for path in BODIES:
        for ids in (["x-request-id: a-1"], ["X-REQUEST-ID: a-1"], []):
            caller = call(limited).post(b"[]", path, [*ids, "connection: close"])
            head = caller.rest().partition(b"\r\n\r\n")[0].lower()
            assert head.count(b"\r\nx-request-id:") == 1, path
            assert (b"\r\nx-request-id: a-1" in head) is bool(ids), path


def test_repeated_credentials_stay_here(serve, scripted, call, wire):
    """In any spelling and however often they are sent."""
    seen = []

    def script(conn):
        seen.append(conn.read_request())
        conn.reply(wire.reply, headers=("content-type: application/json",))

    gateway = serve(scripted(script), flags=["--worker-api-key=own"])
    names = ["Authorization", "AUTHORIZATION", "X-Api-Key", "x-api-key", "Cookie", "Api-Key"]
    for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
        headers = [f"{name}: Bearer client-secret" for name in names]
        reply = call(gateway).post(body_of(path), path, [*headers, "connection: close"]).rest()
        assert reply.startswith(b"HTTP/1.1 200 "), path
    for request in seen:
        assert request.header("authorization") == "Bearer own"
        assert "client-secret" not in str(request.headers)
    assert len(seen) == 3
