"""Streams through real processes: when they flow, how they end, and that nothing is left over."""

import json
import threading

import pytest

LEAVE = ["close", "half_close", "reset"]


@pytest.fixture
def serve(start_gateway):
    """A gateway of one process in front of engines, with these settings."""

    def start(*engines, environ=None, **settings):
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        urls = ",".join(engine.url for engine in engines)
        return start_gateway(
            "--model-id=m", f"--worker-urls={urls}", "--workers=1", *flags, environ=environ
        )

    return start


def error_of(text):
    """The one error event of a chat stream."""
    events = [line for line in text.split(b"\n") if line.startswith(b'data: {"error"')]
    assert len(events) == 1
    return json.loads(events[0].removeprefix(b"data: "))["error"]


def test_events_arrive_one_by_one(serve, scripted, call, wire):
    """Each event reaches the client before the engine sends the next; the role chunk waits."""
    seen = [threading.Event() for _ in range(2)]

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.role)
        conn.chunk(wire.word)
        for event in seen:
            assert event.wait(10)
            conn.chunk(wire.word)
        conn.chunk(wire.stop)
        conn.chunk(wire.done)
        conn.chunk(b"")

    caller = call(serve(scripted(script))).post(wire.chat_body(stream=True))
    assert b"text/event-stream" in caller.until(b"\r\n\r\n").lower()
    for event in seen:
        caller.until(wire.word)
        event.set()
    caller.until(wire.word)
    caller.until(wire.stop)
    caller.until(wire.done)
    caller.until(b"0\r\n\r\n")


def before_headers(conn, wire):
    """The engine has not answered at all."""
    del conn, wire


def before_data(conn, wire):
    """The engine has sent its headers, and nothing that says anything."""
    conn.begin_stream()
    conn.chunk(wire.role)


def mid_stream(conn, wire):
    """The engine is sending."""
    conn.begin_stream()
    conn.chunk(wire.word)


def half_a_reply(conn, wire):
    """The engine has sent half of a buffered reply."""
    conn.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
    conn.send(b"content-length: %d\r\n\r\n" % len(wire.reply) + wire.reply[:9])


POSITIONS = {
    "before headers": (before_headers, True),
    "before data": (before_data, True),
    "mid-stream": (mid_stream, True),
    "buffered, before headers": (before_headers, False),
    "buffered, half a reply": (half_a_reply, False),
}


@pytest.mark.parametrize(("position", "stream"), POSITIONS.values(), ids=POSITIONS)
def test_a_client_that_leaves_closes_the_engines_connection(
    serve, scripted, call, wire, position, stream
):
    """At any moment, in any way, on a buffered request too; and no other server is tried."""
    reached = threading.Semaphore(0)
    closed = threading.Semaphore(0)

    def script(conn):
        conn.read_request()
        position(conn, wire)
        reached.release()
        assert conn.wait_closed()
        closed.release()

    first, second = scripted(script), scripted(script)
    gateway = serve(first, second)
    for leave in LEAVE:
        caller = call(gateway).post(wire.chat_body(stream=stream))
        assert reached.acquire(timeout=10)
        if position is mid_stream:
            caller.until(wire.word)
        getattr(caller, leave)()
        assert closed.acquire(timeout=10)
    records = gateway.requests(len(LEAVE))
    assert [record["outcome"] for record in records] == ["client_gone"] * len(LEAVE)
    assert first.connections + second.connections == len(LEAVE)


def cut_chunked(conn, wire):
    """The engine's connection is closed within a chunked body."""
    conn.begin_stream()
    conn.chunk(wire.word)


def cut_plain(conn, wire):
    """A body that only the connection's end delimits ends too soon."""
    conn.begin_stream(chunked=False)
    conn.send(wire.word)


def reset(conn, wire):
    """The engine's connection breaks."""
    cut_chunked(conn, wire)
    conn.reset()


def bad_chunk(conn, wire):
    """The framing of the body is broken."""
    cut_chunked(conn, wire)
    conn.send(b"zz\r\n")
    conn.wait_closed()


def error_frame(conn, wire):
    """The engine tells of an error, and then ends as if all were well."""
    cut_chunked(conn, wire)
    conn.chunk(b'data: {"error":{"message":"broken","code":500}}\n\n')
    conn.chunk(wire.done)
    conn.chunk(b"")


def garbage(conn, wire):
    """An event that is no JSON."""
    cut_chunked(conn, wire)
    conn.chunk(b"data: oops\n\n")
    conn.wait_closed()


def stall(conn, wire):
    """The engine falls silent for longer than the idle limit."""
    cut_chunked(conn, wire)
    conn.wait_closed()


CUTS = {
    cut_chunked: "upstream_protocol_error",
    cut_plain: "upstream_protocol_error",
    reset: "upstream_protocol_error",
    bad_chunk: "upstream_protocol_error",
    error_frame: "upstream_aborted",
    garbage: "upstream_protocol_error",
    stall: "upstream_timeout",
}


def failing(cut, wire):
    """The script of an engine that takes a request and then fails in a way."""

    def script(conn):
        conn.read_request()
        cut(conn, wire)

    return script


@pytest.fixture
def impatient(serve):
    """A gateway whose limits are short."""
    return lambda *engines: serve(
        *engines,
        environ={
            "SGL_GATEWAY_STREAM_IDLE_TIMEOUT_IN_SECONDS": "0.5",
            "SGL_GATEWAY_DEFAULT_REQUEST_TIMEOUT_IN_SECONDS": "0.5",
        },
    )


def test_a_failure_mid_stream_is_told(impatient, scripted, call, wire):
    """After the commit point a failure is one error event and the end, never a [DONE]."""
    gateway = impatient(scripted(*(failing(cut, wire) for cut in CUTS)))
    for cut, code in CUTS.items():
        caller = call(gateway).post(wire.chat_body(stream=True), headers=["connection: close"])
        text = caller.rest()
        assert b"word" in text, cut
        assert error_of(text)["code"] == code, cut
        assert b"[DONE]" not in text, cut
        assert text.endswith(b"0\r\n\r\n"), cut


def test_a_finished_stream_that_breaks_is_whole(serve, scripted, call, wire):
    """With every finish reason sent, a missing [DONE] is added, however the connection ended."""

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word + wire.stop)
        conn.reset()

    gateway = serve(scripted(script))
    text = call(gateway).post(wire.chat_body(stream=True), headers=["connection: close"]).rest()
    assert wire.done in text
    assert b"error" not in text


def first_frame_error(conn, wire):
    """A full queue, told in the first frame of a 200."""
    conn.begin_stream()
    conn.chunk(b'data: {"error":{"message":"full","type":"SERVICE_UNAVAILABLE","code":503}}\n\n')
    conn.chunk(wire.done)
    conn.chunk(b"")


def silence(conn, wire):
    """The engine never answers."""
    del wire
    conn.wait_closed()


def plain_json(conn, wire):
    """The engine ignores `stream`."""
    conn.reply(wire.reply, headers=("content-type: application/json",))


def unavailable(conn, wire):
    """The engine refuses, and says when to come back."""
    del wire
    headers = ("content-type: application/json", "retry-after: 7")
    conn.reply(b'{"object":"error","message":"busy","code":503}', status=503, headers=headers)


EARLY = {
    first_frame_error: (503, "overloaded", None),
    silence: (504, "upstream_timeout", None),
    plain_json: (502, "upstream_protocol_error", None),
    unavailable: (503, "overloaded", "7"),
}


def test_a_failure_before_the_first_event_is_an_http_error(impatient, scripted, call, wire):
    """Until something was said, a failure has its status, though the engine had answered 200."""
    gateway = impatient(scripted(*(failing(cut, wire) for cut in EARLY)))
    for cut, (status, code, retry_after) in EARLY.items():
        caller = call(gateway).post(wire.chat_body(stream=True), headers=["connection: close"])
        head, _, body = caller.rest().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), cut
        assert json.loads(body)["error"]["code"] == code, cut
        assert (b"retry-after: 7" in head.lower()) is (retry_after is not None), cut


def test_keepalives_in_silence(serve, scripted, call, wire):
    """A silent stream gets comment lines, which no client takes for events."""
    heard = threading.Event()

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word)
        assert heard.wait(10)
        conn.chunk(wire.stop + wire.done)
        conn.chunk(b"")

    gateway = serve(scripted(script), environ={"SGL_GATEWAY_STREAM_KEEPALIVE_IN_SECONDS": "0.05"})
    caller = call(gateway).post(wire.chat_body(stream=True))
    caller.until(wire.word)
    caller.until(b": keep-alive\n\r\n")
    heard.set()
    caller.until(wire.done)


def test_capacity(serve, scripted, call, wire):
    """A full gateway sheds at once and stays alive; a slot is free as soon as a client leaves."""

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word)
        assert conn.wait_closed()

    gateway = serve(scripted(script), max_inflight=2)
    streams = [call(gateway).post(wire.chat_body(stream=True)) for _ in range(2)]
    for stream in streams:
        stream.until(wire.word)
    for _ in range(3):
        shed = call(gateway).post(wire.chat_body(stream=True), headers=["connection: close"]).rest()
        assert shed.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in shed.lower()
        assert b'"code":"overloaded"' in shed
    alive = (
        call(gateway).send(b"GET /livez HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n").rest()
    )
    assert alive.startswith(b"HTTP/1.1 200 ")
    streams[0].close()
    gateway.requests(4)
    call(gateway).post(wire.chat_body(stream=True)).until(wire.word)


def test_drain(serve, scripted, call, wire):
    """On TERM a running stream goes on to its end, and the process ends with it."""
    told = threading.Event()

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word)
        assert told.wait(10)
        conn.chunk(wire.word + wire.stop + wire.done)
        conn.chunk(b"")

    gateway = serve(scripted(script))
    caller = call(gateway).post(wire.chat_body(stream=True))
    caller.until(wire.word)
    gateway.process.terminate()
    gateway.wait_for("Handling signal: term")
    told.set()
    caller.until(wire.done)
    assert gateway.ended() == 0


def test_drain_has_an_end(start_gateway, scripted, call, wire):
    """A stream that outlives the drain time ends with an error event, and the process ends."""

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word)
        assert conn.wait_closed()

    gateway = start_gateway(
        "--model-id=m",
        f"--worker-urls={scripted(script).url}",
        "--workers=1",
        "--",
        "--graceful-timeout=3",
    )
    caller = call(gateway).post(wire.chat_body(stream=True))
    caller.until(wire.word)
    gateway.process.terminate()
    text = caller.rest()
    assert error_of(text)["code"] == "draining"
    assert b"[DONE]" not in text
    assert gateway.ended() == 0


def test_a_client_that_does_not_read_is_cut(serve, scripted, call, wire):
    """It holds its own slot only so long, and then the engine is let go."""
    closed = threading.Event()

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        big = wire.chunk({"content": "x" * 65536})
        try:
            while True:
                conn.chunk(big)
        except OSError:
            closed.set()

    gateway = serve(scripted(script), environ={"SGL_GATEWAY_SEND_TIMEOUT_IN_SECONDS": "0.5"})
    caller = call(gateway).post(wire.chat_body(stream=True))
    caller.until(b"\r\n\r\n")
    assert closed.wait(10)
    (record,) = gateway.requests(1)
    assert record["outcome"] == "client_gone"
