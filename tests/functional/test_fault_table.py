"""Every fault of an engine on the wire, on every route: the exact status, code and message."""

import json
import threading

import pytest

from gateway.service import gateway as service

STREAMING = ["chat", "messages", "responses", "completions"]
EVERY = [*STREAMING, "embeddings", "count_tokens", "input_tokens"]
ANTHROPIC = {"messages", "count_tokens"}

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CLOSED = "The engine closed the connection before it answered."
CUT = "The engine cut its answer off."
LATE = "The engine did not answer within 0.4 s."
UNREADABLE_HEAD = "The engine sent an answer whose head cannot be read."


def script(then):
    """Reads a request and goes on with what is written here."""

    def run(conn):
        conn.read_request()
        then(conn)

    return run


def reset_after(data):
    """Writes this and resets the connection."""

    def then(conn):
        conn.send(data)
        conn.reset()

    return script(then)


def close_after(data):
    """Writes this and closes the connection."""
    return script(lambda conn: conn.send(data))


def hang_after(data):
    """Writes this and nothing more."""

    def then(conn):
        conn.send(data)
        assert conn.wait_closed()

    return script(then)


def drip(first, drop):
    """Writes this, and then a little at a time for as long as somebody listens."""

    def then(conn):
        conn.send(first)
        while not conn.closed_within(0.01):
            conn.send(drop)

    return script(then)


def bomb(data):
    """Writes this, of which not everything may be taken."""

    def then(conn):
        try:
            conn.send(data)
        except OSError:
            return
        conn.wait_closed()

    return script(then)


LENGTH = HEAD + b"content-length: 99\r\n\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
MANY = b"".join(b"x-%d: y\r\n" % number for number in range(5000))

WHOLE = {
    "closed before a byte": (close_after(b""), 502, "upstream_unreachable", CLOSED),
    "reset before a byte": (reset_after(b""), 502, "upstream_unreachable", CLOSED),
    "closed in the head": (close_after(HEAD), 502, "upstream_protocol_error", None),
    "reset in the head": (reset_after(HEAD), 502, "upstream_protocol_error", None),
    "closed after the head": (close_after(LENGTH), 502, "upstream_protocol_error", None),
    "reset after the head": (reset_after(LENGTH), 502, "upstream_protocol_error", None),
    "half a body": (close_after(LENGTH + b'{"a":'), 502, "upstream_protocol_error", None),
    "half a chunk": (close_after(CHUNKED + b"9\r\n{"), 502, "upstream_protocol_error", None),
    "no last chunk": (close_after(CHUNKED + b"2\r\n{}\r\n"), 502, "upstream_protocol_error", None),
    "no size of a chunk": (close_after(CHUNKED + b"zz\r\n"), 502, "upstream_protocol_error", None),
    "silence": (hang_after(b""), 504, "upstream_timeout", LATE),
    "silence in the head": (hang_after(HEAD), 504, "upstream_timeout", LATE),
    "silence after the head": (hang_after(LENGTH), 504, "upstream_timeout", LATE),
    "silence in the body": (hang_after(LENGTH + b'{"a":'), 504, "upstream_timeout", LATE),
    "a head that drips": (drip(HEAD, b"x: y\r\n"), 504, "upstream_timeout", LATE),
    "a body that drips": (drip(CHUNKED, b"1\r\n \r\n"), 504, "upstream_timeout", LATE),
    "no HTTP": (close_after(b"SSH-2.0-x\r\n"), 502, "upstream_protocol_error", None),
    "a header of a megabyte": (
        bomb(HEAD + b"x: " + b"y" * (1 << 20) + b"\r\n\r\n{}"),
        502,
        "upstream_protocol_error",
        UNREADABLE_HEAD,
    ),
    "thousands of headers": (
        bomb(HEAD + MANY + b"content-length: 2\r\n\r\n{}"),
        502,
        "upstream_protocol_error",
        UNREADABLE_HEAD,
    ),
    "two lengths": (
        close_after(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
        502,
        "upstream_protocol_error",
        None,
    ),
    "a compressed body": (
        close_after(HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}"),
        502,
        "upstream_protocol_error",
        "The engine sent a compressed answer, which was not asked for.",
    ),
}


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize(("engine", "status", "code", "message"), WHOLE.values(), ids=WHOLE)
def test_a_fault_of_a_buffered_answer(
    serve, scripted, route, engine, status, code, message, error_of
):
    """It has a status, a code and words of its own, in the dialect of the route."""
    client = serve(urls=[scripted(engine).url], default_request_timeout_in_seconds="0.4")

    reply = client.on(route)

    assert (reply.status_code, reply.headers["x-router-error-code"]) == (status, code)
    error = error_of(reply, route)
    assert error["type"] == ("api_error" if route in ANTHROPIC else "server_error")
    if route not in ANTHROPIC:
        assert (error["code"], error["param"]) == (code, None)
    assert message in {None, error["message"]}
    assert "127.0.0.1" not in reply.text


EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FULL = b'data: {"error":{"message":"full","type":"x","code":503}}\n\n'


def piece(data):
    """A chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


EARLY = {
    "closed": (close_after(EVENTS), 502, "upstream_protocol_error"),
    "reset": (reset_after(EVENTS), 502, "upstream_protocol_error"),
    "half an event": (close_after(EVENTS + piece(b'data: {"a')), 502, "upstream_protocol_error"),
    "an end without a word": (close_after(EVENTS + piece(b"")), 502, "upstream_protocol_error"),
    "no JSON": (close_after(EVENTS + piece(b"data: x\n\n")), 502, "upstream_protocol_error"),
    "full": (close_after(EVENTS + piece(FULL)), 503, "overloaded"),
    "silence": (hang_after(EVENTS), 504, "upstream_timeout"),
    "comments only": (drip(EVENTS, piece(b": x\n\n")), 504, "upstream_timeout"),
}


@pytest.mark.parametrize("route", STREAMING)
@pytest.mark.parametrize(("engine", "status", "code"), EARLY.values(), ids=EARLY)
def test_a_fault_before_the_first_word(serve, scripted, route, engine, status, code, error_of):
    """The engine had answered 200 already; the client gets the status of the fault."""
    client = serve(urls=[scripted(engine).url], default_request_timeout_in_seconds="0.4")

    reply = client.on(route, stream=True)

    assert reply.status_code == status
    error = error_of(reply, route)
    if route in ANTHROPIC:
        assert error["type"] == ("overloaded_error" if status == 503 else "api_error")
    else:
        assert (error["type"], error["code"]) == ("server_error", code)


LATER = {
    "closed": close_after,
    "reset": reset_after,
    "silence": hang_after,
    "no JSON": lambda data: close_after(data + piece(b"data: x\n\n")),
    "an error": lambda data: close_after(data + piece(FULL)),
    "no chunk": lambda data: close_after(data + b"zz\r\n"),
}


@pytest.mark.parametrize("route", STREAMING)
@pytest.mark.parametrize("fault", LATER.values(), ids=LATER)
def test_a_fault_after_the_first_word(serve, scripted, wire, route, fault):
    """One error event in the dialect is the last one; nothing looks like a proper end."""
    word = wire.text("word")
    word["choices"][0]["text"] = "word"
    engine = scripted(fault(EVENTS + piece(wire.frame(word))))
    client = serve(urls=[engine.url], stream_idle_timeout_in_seconds="0.2")

    reply = client.on(route, stream=True)
    events = wire.events(reply)

    assert reply.status_code == 200
    assert "word" in reply.text
    name, last = events[-1]
    if route == "responses":
        assert (name, last["response"]["error"]["code"]) == ("response.failed", "server_error")
    elif route == "messages":
        assert (name, last["type"]) == ("error", "error")
    else:
        assert last["error"]["type"]
    endings = ("[DONE]", "message_stop", "response.completed", "response.incomplete")
    assert not [ending for ending in endings if ending in reply.text]


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in chunks"])
def test_an_answer_of_a_gibibyte(serve, scripted, monkeypatch, route, announced, error_of):
    """It is refused, and no more than the limit is read of it."""
    limit = 1 << 20
    monkeypatch.setattr(service, "_MAX_REPLY_BYTES", limit)
    sent = []
    ended = threading.Event()

    def endless(conn):
        conn.read_request()
        conn.send(HEAD + b"content-length: %d\r\n\r\n" % (1 << 30) if announced else CHUNKED)
        block = b" " * 65536
        try:
            while sum(sent) < 1 << 30:
                conn.send(block if announced else piece(block))
                sent.append(len(block))
        except OSError:
            ended.set()

    reply = serve(urls=[scripted(endless).url]).on(route)

    assert reply.status_code == 502
    assert f"more than {limit} bytes" in error_of(reply, route)["message"]
    assert ended.wait(10)
    assert sum(sent) < 64 << 20  # the limit, and what lies in the buffers of two sockets


SPLITTING = {
    "folded": b"retry-after: 7\r\n x-injected: 1\r\n",
    "a bare CR": b"retry-after: 7\rx-injected: 1\r\n",
    "a bare LF": b"retry-after: 7\nx-injected: 1\r\n",
    "a NUL": b"retry-after: 7\x00x-injected: 1\r\n",
    "two heads": b"retry-after: 7\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\nx-injected: 1\r\n",
}


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize("headers", SPLITTING.values(), ids=SPLITTING)
def test_an_answer_that_would_be_two(serve, scripted, route, headers):
    """No header of an engine but `retry-after` reaches a client, and it cannot bring others."""
    body = b'{"message":"busy"}'
    length = b"" if b"content-length" in headers else b"content-length: %d\r\n" % len(body)
    head = b"HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\n"
    engine = scripted(close_after(head + headers + length + b"\r\n" + body))

    reply = serve(urls=[engine.url]).on(route)

    assert reply.status_code in {502, 503}
    assert "x-injected" not in reply.headers
    assert reply.headers.get("retry-after", "7").partition(" ")[0].isdigit()
    assert json.loads(reply.content)["error"]["message"]
