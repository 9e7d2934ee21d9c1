"""Event streams: whatever an engine's bytes look like, clients get theirs whole and at once."""

import contextlib
import json
import threading

import pytest

ROUTES = ["chat", "messages", "responses"]
SAID = "北京🙂é\u2028\x85"


def message_events(said):
    """The events of an engine in Messages that says this."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    delta = {"type": "text_delta", "text": said}
    return [
        {"type": "message_start", "message": {**start, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]


def text_of(events, route):
    """What the events say, put together."""
    read = {
        "chat": lambda data: (data.get("choices") or [{}])[0].get("delta", {}).get("content"),
        "messages": lambda data: data.get("delta", {}).get("text"),
        "responses": lambda data: data["delta"] if "output_text.delta" in data["type"] else "",
    }[route]
    return "".join(read(data) or "" for _, data in events if data != "[DONE]")


def ended(events, route):
    """Whether the last event is the dialect's proper end."""
    name, data = events[-1]
    return {"chat": data, "messages": name, "responses": name}[route] in {
        "[DONE]",
        "message_stop",
        "response.completed",
    }


@pytest.fixture
def stream_of(serve, serve_messages, scripted):
    """The reply to a streamed request, for an engine that writes these pieces."""

    def ask(route, pieces, *, messages=False, **fields):
        def script(conn):
            conn.read_request()
            conn.begin_stream()
            with contextlib.suppress(OSError):  # the gateway may have heard enough
                for piece in pieces:
                    conn.chunk(piece)
                conn.chunk(b"")

        engine = scripted(script)
        servers = [{"use_anthropic_endpoints": messages, "url": engine.url}]
        return serve(servers=servers).on(route, stream=True, **fields)

    return ask


def one_by_one(data):
    """Each byte in a piece of its own."""
    return [data[place : place + 1] for place in range(len(data))]


@pytest.mark.parametrize("route", ROUTES)
def test_characters_are_cut_anywhere(stream_of, wire, route):
    """A byte at a time, nothing is lost and nothing is replaced."""
    data = b"".join(map(wire.frame, [wire.text(SAID), wire.text("!"), wire.finish("stop")]))
    reply = stream_of(route, one_by_one(data + wire.done))
    events = wire.events(reply)
    assert text_of(events, route) == SAID + "!"
    assert ended(events, route)
    assert "\ufffd" not in reply.text


@pytest.mark.parametrize("route", ROUTES)
def test_characters_of_a_messages_engine_are_cut_anywhere(stream_of, wire, route):
    """The same from its other route."""
    data = b"".join(map(wire.frame, message_events(SAID)))
    reply = stream_of(route, one_by_one(data), messages=True)
    events = wire.events(reply)
    assert text_of(events, route) == SAID
    assert ended(events, route)


def decorated(frames, done):
    """Streams with everything that the protocol allows and few engines write."""
    first, *rest = frames
    lines = [line for frame in frames for line in frame.split(b"\n\n") if line]
    broken = first.replace(b', "choices"', b',\ndata: "choices"')
    return {
        "comments": b": PROCESSING\n\n" + b": PROCESSING\n\n".join([*frames, done]),
        "glued comments": b"".join(b": PROCESSING\n" + frame for frame in [*frames, done]),
        "pings": b"event: ping\ndata:\n\n" + b"event: ping\ndata:\n\n".join([*frames, done]),
        "no space": b"".join([*frames, done]).replace(b"data: ", b"data:"),
        "ids": b"".join(b"id: 7\nretry: 10\n" + frame for frame in [*frames, done]),
        "two lines": b"".join([broken, *rest, done]),
        "a byte-order mark": b"\xef\xbb\xbf" + b"".join([*frames, done]),
        "spaces after the end": b"".join([*frames, b"data: [DONE] \n\n"]),
        "CRLF": b"".join([*frames, done]).replace(b"\n", b"\r\n"),
        "CR": b"\r\r".join([*lines, b"data: [DONE]", b""]),
        "unknown fields": b"".join(b"x: y\nnoise\n" + frame for frame in [*frames, done]),
    }


DECORATIONS = list(decorated([b"data: x\n\n"], b"data: [DONE]\n\n"))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("how", DECORATIONS)
def test_whatever_the_protocol_allows(stream_of, wire, route, how):
    """Comments never become data, several lines are one payload, and the end is known."""
    frames = [wire.frame(part) for part in (wire.text("a"), wire.text("b"), wire.finish("stop"))]
    data = decorated(frames, wire.done)[how]
    reply = stream_of(route, [data])
    events = wire.events(reply)
    assert text_of(events, route) == "ab"
    assert ended(events, route)
    assert "PROCESSING" not in reply.text


@pytest.mark.parametrize("done", [b"data: [DONE]\n\n", b""], ids=["DONE", "no DONE"])
@pytest.mark.parametrize("route", [*ROUTES, "completions"])
def test_a_finish_reason_is_an_end(stream_of, wire, route, done):
    """With or without the terminator after it."""
    finish = wire.finish("stop")
    text = wire.text("a")
    if route == "completions":
        text["choices"][0]["text"] = "a"
    reply = stream_of(route, [wire.frame(text), wire.frame(finish), done])
    assert reply.status_code == 200
    if route != "completions":
        assert ended(wire.events(reply), route)
    else:
        assert reply.text.endswith("data: [DONE]\n\n")


KEEPALIVES = {
    "chat": b": keep-alive\n",
    "completions": b": keep-alive\n",
    "responses": b": keep-alive\n",
    "messages": b'event: ping\ndata: {"type": "ping"}\n\n',
}


@pytest.mark.parametrize(("route", "keepalive"), KEEPALIVES.items())
def test_a_sign_of_life_in_silence(serve, scripted, wire, route, keepalive):
    """A comment that no client takes for an event, or the ping that Messages has for it."""
    heard = threading.Event()

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        word = wire.text("a")
        word["choices"][0]["text"] = "a"
        conn.chunk(wire.frame(word))
        assert heard.wait(10)
        conn.chunk(wire.frame(wire.finish("stop")) + wire.done)
        conn.chunk(b"")

    client = serve(urls=[scripted(script).url], stream_keepalive_in_seconds="0.02")
    with contextlib.closing(client.frames(route, stream=True)) as frames:
        before = next(frames)
        while before != keepalive:
            before = next(frames)
        heard.set()
        assert b"ping" not in b"".join(frame for frame in frames if frame != keepalive)


def words(scripted, wire, seen):
    """An engine that sends a word, and the next one only when the one before was seen."""

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        for event in seen:
            conn.chunk(wire.frame(wire.text("word")))
            assert event.wait(10)
        conn.chunk(wire.frame(wire.finish("stop")) + wire.done)
        conn.chunk(b"")

    return scripted(script)


@pytest.mark.parametrize("route", ROUTES)
def test_nothing_waits_for_what_follows(serve, scripted, wire, route):
    """Each event is written before the engine sends the next, one event a write."""
    seen = [threading.Event() for _ in range(5)]
    client = serve(urls=[words(scripted, wire, seen).url])
    with contextlib.closing(client.frames(route, stream=True)) as frames:
        waiting = iter(seen)
        for frame in frames:
            assert frame.count(b"\n\n") == 1
            if b"word" in frame and b"delta" in frame and b".done" not in frame:
                event = next(waiting, None)
                if event is not None:
                    event.set()
    assert all(event.is_set() for event in seen)


@pytest.mark.parametrize("route", [*ROUTES, "completions"])
def test_a_stream_says_that_it_is_one(serve, route):
    """Marked so that nothing on the way buffers or compresses it."""
    client = serve()
    headers = {"accept-encoding": "gzip, br", "accept": "application/json"}
    reply = client.on(route, stream=True, headers=headers)
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert not {"content-length", "content-encoding"} & reply.headers.keys()


USAGES = {
    "no options": ({}, False),
    "false": ({"stream_options": {"include_usage": False}}, False),
    "null": ({"stream_options": None}, False),
    "true": ({"stream_options": {"include_usage": True}}, True),
}


@pytest.mark.parametrize(("fields", "shown"), USAGES.values(), ids=USAGES)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
@pytest.mark.parametrize("route", ["chat", "completions"])
def test_usage_is_for_the_client_that_asked(request, wire, fields, shown, engine_in, route):
    """The chunk without choices comes for `true` only, just before the end."""
    client = request.getfixturevalue(engine_in)()
    events = wire.events(client.on(route, stream=True, **fields))
    assert events[-1][1] == "[DONE]"
    without = [data["choices"] == [] for _, data in events[:-1]]
    assert without == [False] * (len(without) - 1) + [shown]


@pytest.mark.parametrize("stream", [False, None, "absent"])
@pytest.mark.parametrize("route", [*ROUTES, "completions"])
def test_stream_options_never_go_without_a_stream(serve, engine, route, stream):
    """Engines refuse them so."""
    fields = {} if stream == "absent" else {"stream": stream}
    body = serve().sent(route, stream_options={"include_usage": True}, **fields)
    assert "stream_options" not in body


@pytest.mark.parametrize("route", [*ROUTES, "completions"])
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_an_engine_that_ignores_stream(request, say, wire, route, engine_in):
    """A stream for a whole answer, or a whole answer for a stream, is a failure of the engine."""
    client = request.getfixturevalue(engine_in)()
    say.stream(wire.text("a"), wire.finish("stop"))
    say.whole(wire.reply())
    for stream in (False, True):
        reply = client.on(route, stream=stream)
        assert reply.status_code == 502
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["x-router-error-code"] == "upstream_protocol_error"


@pytest.mark.parametrize("route", [*ROUTES, "completions"])
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_a_refusal_of_a_stream_is_an_http_error(request, say, route, engine_in):
    """An engine that is full answers a stream with its status, and so does the gateway."""
    client = request.getfixturevalue(engine_in)()
    say.whole({"object": "error", "message": "busy", "code": 503}, status=503, retry_after="7")
    reply = client.on(route, stream=True)
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "7")
    error = reply.json["error"]
    assert error["type"] == ("overloaded_error" if route == "messages" else "server_error")
    assert error["message"] == "busy"


ERRORS = {
    "overloaded": ({"error": {"message": "full", "code": 503}}, 503, "overloaded_error"),
    "invalid": (
        {"error": {"message": "too long", "type": "BadRequestError", "code": 400}},
        400,
        "invalid_request_error",
    ),
    "a bug": ({"error": {"message": "boom", "code": 500}}, 502, "api_error"),
}


@pytest.mark.parametrize("route", [*ROUTES, "completions"])
@pytest.mark.parametrize(("frame", "status", "type_"), ERRORS.values(), ids=ERRORS)
def test_an_error_before_anything_was_said(serve, say, wire, route, frame, status, type_):
    """Though the engine answered 200, it is the HTTP error that it stands for."""
    say.stream(wire.chunk({"role": "assistant", "content": ""}), frame)
    reply = serve().on(route, stream=True)
    assert reply.status_code == status
    if route == "messages":
        assert reply.json["error"]["type"] == type_


@pytest.mark.parametrize("route", ROUTES)
def test_an_error_of_a_messages_engine_before_anything_was_said(serve_messages, say, route):
    """It sends the start of a message first, always."""
    start, *_ = message_events("a")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "full"}}
    say.stream(start, b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n", done=False)
    assert serve_messages().on(route, stream=True).status_code == 503


@pytest.mark.parametrize("route", [*ROUTES, "completions"])
def test_a_cut_after_words_never_looks_like_success(stream_of, wire, route):
    """One error event in the client's dialect, and none of the dialects' proper ends."""
    word = wire.text("a")
    word["choices"][0]["text"] = "a"
    reply = stream_of(route, [wire.frame(word)])
    assert reply.status_code == 200
    for proper in ("[DONE]", "message_stop", "response.completed"):
        assert proper not in reply.text
    name, data = wire.events(reply)[-1]
    if route == "responses":
        assert name == "response.failed"
        assert data["response"]["status"] == "failed"
    else:
        assert data["error"]["type"] == ("api_error" if route == "messages" else "server_error")
