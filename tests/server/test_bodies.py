"""Request bodies over real sockets: lengths, chunks, slow senders, and garbage."""

import gzip
import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.demo.engine import DemoEngine


@pytest.fixture
def gateway(start_gateway):
    """A gateway that waits little for bodies, in front of an engine that answers everything."""
    with DemoEngine(model="m") as engine:
        yield start_gateway(
            "--model-id=m",
            f"--worker-urls={engine.url}",
            "--workers=1",
            environ={"SGL_GATEWAY_BODY_TIMEOUT_IN_SECONDS": "0.5"},
        )


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n"


def answer(caller):
    """Status and error code (None for a reply that is no error) of the one reply."""
    head, _, body = caller.rest().partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    return status, json.loads(body).get("error", {}).get("code")


def test_chunked(gateway, call, wire):
    """A chunked body is read like any other."""
    body = wire.chat_body()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    caller = call(gateway).send(
        HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    )
    assert answer(caller) == (200, None)


def test_compressed(gateway, call, wire):
    """A compressed body is read like any other."""
    body = gzip.compress(wire.chat_body())
    caller = call(gateway).post(body, headers=["content-encoding: gzip", "connection: close"])
    assert answer(caller) == (200, None)


def test_short_body(gateway, call):
    """A body that ends before its length is a 400."""
    caller = call(gateway).send(HEAD + b"content-length: 50\r\n\r\n{}")
    caller.half_close()
    assert answer(caller) == (400, "bad_request")


def test_too_large_is_refused_unread(gateway, call):
    """An announced length over the limit is refused while the body is still to come."""
    caller = call(gateway).send(HEAD + b"content-length: 99999999\r\n\r\n" + b"x" * 100)
    assert answer(caller) == (413, "request_too_large")


def test_stalled_body(gateway, call):
    """A body that stops arriving is a 408, and a slow one is too."""
    caller = call(gateway).send(HEAD + b"content-length: 50\r\n\r\n{")
    assert answer(caller) == (408, "request_timeout")


def test_slow_body(gateway, call):
    """A byte at a time does not hold a slot for long."""
    caller = call(gateway).send(HEAD + b"content-length: 5000000\r\n\r\n")
    ended = threading.Event()

    def trickle():
        while not ended.wait(0.05):
            try:
                caller.send(b" ")
            except OSError:
                return

    sender = threading.Thread(target=trickle)
    sender.start()
    try:
        assert answer(caller) == (408, "request_timeout")
    finally:
        ended.set()
        sender.join()


def test_cut_chunk(gateway, call):
    """A chunked body that is cut, or malformed, is a 400."""
    for tail in (b"5\r\nab", b"zz\r\n", b"2\r\nabXX"):
        caller = call(gateway).send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + tail)
        caller.half_close()
        assert answer(caller) == (400, "bad_request")


BODIES = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["model", "messages", "n", "stream", "x"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode()),
)


def test_no_body_breaks_it(gateway, call):
    """Whatever the bytes, the answer is a reply of the engine or a clear 4xx, never a 500."""

    @settings(
        max_examples=150,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(BODIES)
    def check(body):
        status, code = answer(call(gateway).post(body, headers=["connection: close"]))
        assert (status, code) in {
            (200, None),
            (400, "bad_request"),
            (404, "model_not_found"),
            (502, "upstream_protocol_error"),
        }

    check()
    assert gateway.process.poll() is None


RAW = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /v1/chat/completions HTTP/1.1\r\n\r\n",
    HEAD + b"content-length: abc\r\n\r\n",
    HEAD + b"content-length: -1\r\n\r\n",
    HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
    HEAD + b"transfer-encoding: gzip\r\n\r\n{}",
    HEAD + b"x: " + b"y" * 70000 + b"\r\n\r\n",
    b"GET /v1/models/%ff%fe HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"GET /v1/models/%00 HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"GET /v1/models/%ED%A0%80 HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"BREW /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"HEAD /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n",
]


def test_raw_requests(gateway, call):
    """No bytes on a socket give a 500 or a hang, and the process lives on."""
    for raw in RAW:
        caller = call(gateway).send(raw)
        caller.half_close()
        reply = caller.rest()
        assert not reply or int(reply.split(b" ")[1]) < 500, raw[:60]
    assert gateway.process.poll() is None


def test_random_requests(gateway, call):
    """The same for bytes that nobody thought of."""

    @settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(st.sampled_from(RAW), st.binary(max_size=8), st.integers(0, 200), st.integers(0, 10))
    def check(raw, noise, at, cut):
        caller = call(gateway).send(raw[:at] + noise + raw[at + cut :])
        caller.half_close()
        reply = caller.rest()
        assert not reply or int(reply.split(b" ")[1]) < 500
        caller.close()

    check()
    assert gateway.process.poll() is None
