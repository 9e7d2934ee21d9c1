"""Engines that refuse, break off, hang or answer with what is no answer; and other servers."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.settings import load_settings

GENERATING = ["chat", "messages", "responses", "completions"]
EVERY = [*GENERATING, "embeddings", "count_tokens", "input_tokens"]
ANTHROPIC = {"messages", "count_tokens"}
HTML = b"<html><body>Bad Gateway http://10.0.0.7:30000 sk-secret</body></html>"
NESTED = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "r"}}
FLAT = {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}
ANSWERS = {
    "502 HTML": (502, HTML, 502, "api_error", "server_error"),
    "503 empty": (503, b"", 503, "overloaded_error", "server_error"),
    "429 JSON": (429, NESTED, 429, "rate_limit_error", "rate_limit_error"),
    "500 text": (500, b"Internal Server Error", 500, "api_error", "server_error"),
    "500 JSON list": (500, b"[1]", 500, "api_error", "server_error"),
    "400 flat": (400, FLAT, 400, "invalid_request_error", "BadRequestError"),
    "401": (401, {"error": "Unauthorized"}, 502, "api_error", "server_error"),
    "403": (403, b"Forbidden", 502, "api_error", "server_error"),
    "404": (404, {"detail": "Not Found"}, 404, "not_found_error", "invalid_request_error"),
    "529": (529, b"", 529, "overloaded_error", "server_error"),
    "422": (422, {"detail": "x"}, 422, "invalid_request_error", "invalid_request_error"),
}


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize(
    ("status", "body", "told", "anthropic", "openai"), ANSWERS.values(), ids=ANSWERS
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_an_engine_refuses_with(
    serve, say, route, status, body, told, anthropic, openai, stream, error_of
):
    """Its status in the route's envelope, JSON or not; what it lets slip is not shown."""
    say.whole(body, status=status, retry_after="7")
    reply = serve().on(route, stream=stream)
    assert reply.status_code == told
    error = error_of(reply, route)
    assert error["type"] == (anthropic if route in ANTHROPIC else openai)
    assert error["message"]
    assert "10.0.0.7" not in reply.text
    assert "sk-secret" not in reply.text
    assert reply.headers["x-request-id"]
    if told == status:
        assert reply.headers["retry-after"] == "7"


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "boom"}},
        {"object": "error", "message": "boom"},
        {"type": "error", "error": {"type": "api_error", "message": "boom"}},
        b"not JSON",
        b"[]",
        b"",
        b"{}",
    ],
    ids=lambda body: str(body)[:30],
)
def test_a_200_that_is_no_answer(request, say, route, engine_in, body, error_of):
    """It is never passed on as success."""
    client = request.getfixturevalue(engine_in)()
    say.whole(body)
    reply = client.on(route)
    assert reply.status_code == 502
    assert error_of(reply, route)["type"] in {"api_error", "server_error"}


@pytest.mark.parametrize("status", [204, 206, 301, 307])
@pytest.mark.parametrize("route", EVERY)
def test_statuses_that_make_no_sense(serve, say, route, status):
    """A redirect is not followed, and half an answer is none."""
    say.whole(b"", status=status, location="http://10.0.0.7/")
    reply = serve().on(route)
    assert reply.status_code == 502
    assert "10.0.0.7" not in reply.text


@pytest.mark.parametrize("route", EVERY)
def test_an_engine_that_is_not_there(serve, refused_url, route, error_of):
    """502 in the dialect of the route; its address is not shown."""
    reply = serve(urls=[refused_url]).on(route)
    assert reply.status_code == 502
    error = error_of(reply, route)
    assert error["type"] == ("api_error" if route in ANTHROPIC else "server_error")
    assert reply.headers["x-router-error-code"] == "upstream_unreachable"
    assert "127.0.0.1" not in reply.text


@pytest.fixture
def two(serve):
    """Two servers: the first is drawn first, the second only when nothing else is left."""

    def build(first, second, **settings):
        return serve(servers=[{"url": first}, {"url": second, "weight": 0.0}], **settings)

    return build


def status_of(status, *headers):
    """A script that answers with this status."""

    def script(conn):
        conn.read_request()
        conn.reply(b'{"message":"no"}', status=status, headers=headers)

    return script


def closes(conn):
    """Takes the request and leaves."""
    conn.read_request()


def first_frame_says_full(conn):
    """A full queue, told in the first frame of a 200."""
    conn.read_request()
    conn.begin_stream()
    conn.chunk(b'data: {"error":{"message":"full","code":503}}\n\n')
    conn.chunk(b"")


def whole(body):
    """A script that answers with this whole body."""

    def script(conn):
        conn.read_request()
        conn.reply(json.dumps(body).encode(), headers=("content-type: application/json",))

    return script


ABORTED = {
    "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "abort"}],
}
TRIED_AGAIN = {
    "gives up": (whole(ABORTED), False),
    "no answer": (whole("a page of a proxy"), False),
    "an error in a 200": (whole({"error": {"message": "boom"}}), False),
    "503": (status_of(503), False),
    "502": (status_of(502), False),
    "closes": (closes, False),
    "the gateway's key is not its key": (status_of(401), False),
    "full, in a stream": (first_frame_says_full, True),
}


@pytest.mark.parametrize(("script", "stream"), TRIED_AGAIN.values(), ids=TRIED_AGAIN)
def test_what_another_server_is_asked_for(two, scripted, wire, engine, script, stream):
    """Where the first has not begun, or has given up, the second answers."""
    first = scripted(script)
    reply = two(first.url, engine.url).chat(stream=stream)
    assert reply.status_code == 200
    assert (first.connections, len(engine.inference)) == (1, 1)


def test_a_server_that_refuses_connections(two, engine, refused_url):
    """The next one is asked, and the client sees nothing of it."""
    assert two(refused_url, engine.url).chat().status_code == 200
    assert len(engine.inference) == 1


FINAL = {
    "400": (status_of(400), 400),
    "404": (status_of(404), 404),
    "429": (status_of(429, "retry-after: 9"), 429),
    "500": (status_of(500), 500),
    "504": (status_of(504), 504),
}


@pytest.mark.parametrize(("script", "status"), FINAL.values(), ids=FINAL)
def test_what_no_other_server_is_asked_for(two, scripted, engine, script, status):
    """Other statuses are the answer; `retry-after` is kept."""
    first = scripted(script)
    reply = two(first.url, engine.url).chat()
    assert reply.status_code == status
    assert reply.headers.get("retry-after") == ("9" if status == 429 else None)
    assert (first.connections, engine.inference) == (1, [])


def test_a_read_timeout_is_final(two, scripted, engine):
    """The first may still be at work: asking another would generate twice."""

    def hangs(conn):
        conn.read_request()
        assert conn.wait_closed()

    first = scripted(hangs)
    client = two(first.url, engine.url, default_request_timeout_in_seconds="0.2")
    reply = client.chat()
    assert (reply.status_code, reply.json["error"]["code"]) == (504, "upstream_timeout")
    assert engine.inference == []


def test_nothing_is_tried_after_a_word(two, scripted, wire, engine):
    """The client has read it: there is an error event, and no second generation."""

    def dies(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.frame(wire.text("word")))

    reply = two(scripted(dies).url, engine.url).chat(stream=True)
    events = wire.events(reply)
    assert events[0][1]["choices"][0]["delta"]["content"] == "word"
    assert events[-1][1]["error"]["code"] == "upstream_protocol_error"
    assert engine.inference == []


def test_half_a_reply_is_final(two, scripted, engine):
    """The engine had begun to answer."""

    def half(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        conn.send(b'content-length: 99\r\n\r\n{"a":')

    reply = two(scripted(half).url, engine.url).chat()
    assert (reply.status_code, reply.json["error"]["code"]) == (502, "upstream_protocol_error")
    assert engine.inference == []


def test_all_servers_fail(serve, scripted):
    """Each is tried once at most, and the last failure is the answer."""
    engines = [scripted(status_of(503, f"retry-after: {number}")) for number in (1, 2, 3)]
    reply = serve(urls=[engine.url for engine in engines]).chat()
    assert reply.status_code == 503
    asked = [engine.connections for engine in engines]
    assert sorted(asked) == [0, 1, 1]
    assert asked[int(reply.headers["retry-after"]) - 1] == 1


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)])
def test_the_deadline_is_one_for_all_servers(serve, scripted, refused_url, weights):
    """Tries do not add up: what one server used of the time, the next has not."""

    def hangs(conn):
        conn.read_request()
        assert conn.wait_closed()

    urls = [refused_url, scripted(hangs).url]
    servers = [{"url": url, "weight": weight} for url, weight in zip(urls, weights, strict=True)]
    client = serve(servers=servers, default_request_timeout_in_seconds="0.3")
    assert client.chat().status_code == 504


def test_a_connection_that_the_engine_closed_is_not_noticed(serve, scripted, wire):
    """An engine that closes each connection after its reply costs no request, of two hundred."""

    def once(conn):
        conn.read_request()
        conn.reply(json.dumps(wire.reply()).encode(), headers=("content-type: application/json",))

    engine = scripted(once)
    client = serve(urls=[engine.url])
    assert [client.chat().status_code for _ in range(200)] == [200] * 200


def test_many_at_once_over_kept_connections(serve, scripted, wire):
    """The same from many threads, over connections that are kept for some requests."""

    def few(conn):
        conn.sock.settimeout(0.5)  # the last connections stay open and unused
        with contextlib.suppress(EOFError, TimeoutError):
            for _ in range(3):
                conn.read_request()
                conn.reply(
                    json.dumps(wire.reply()).encode(), headers=("content-type: application/json",)
                )

    client = serve(urls=[scripted(few).url])
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda _: client.chat().status_code, range(200)))
    assert statuses == [200] * 200


def test_time_limits_survive_a_long_prefill():
    """Without settings, an engine may think for minutes; connecting takes seconds at most."""
    settings = load_settings({}, {})
    assert settings.default_request_timeout_in_seconds >= 310
    assert settings.stream_idle_timeout_in_seconds > 70
    assert settings.connect_timeout_in_seconds <= 5


@pytest.mark.parametrize("head", [False, True], ids=["before the head", "after the head"])
@pytest.mark.parametrize("route", GENERATING)
def test_silence_before_the_first_word_is_no_stall(serve, scripted, wire, route, head):
    """The idle limit is for gaps within an answer: before it, the request's own time counts."""

    def slow(conn):
        conn.read_request()
        if head:
            conn.begin_stream()
        assert not conn.closed_within(0.2)
        if not head:
            conn.begin_stream()
        word = wire.text("a")
        word["choices"][0]["text"] = "a"
        conn.chunk(wire.frame(word) + wire.frame(wire.finish("stop")) + wire.done)
        conn.chunk(b"")

    client = serve(
        urls=[scripted(slow).url],
        stream_idle_timeout_in_seconds="0.05",
        default_request_timeout_in_seconds="9",
    )
    reply = client.on(route, stream=True)
    assert reply.status_code == 200
    assert "error" not in [name for name, _ in wire.events(reply)]


@pytest.mark.parametrize("route", GENERATING)
def test_a_stall_within_an_answer(serve, scripted, wire, route):
    """It ends with an error event in the client's dialect."""

    def stalls(conn):
        conn.read_request()
        conn.begin_stream()
        word = wire.text("a")
        word["choices"][0]["text"] = "a"
        conn.chunk(wire.frame(word))
        assert conn.wait_closed()

    client = serve(urls=[scripted(stalls).url], stream_idle_timeout_in_seconds="0.1")
    events = wire.events(client.on(route, stream=True))
    name, data = events[-1]
    if route == "responses":
        assert name == "response.failed"
    else:
        assert name == ("error" if route == "messages" else None)
        assert data["error"]["type"] == ("api_error" if route == "messages" else "server_error")
    assert "[DONE]" not in [data for _, data in events]


@pytest.mark.parametrize("route", EVERY)
def test_an_address_that_swallows_connections(serve, route, error_of):
    """Neither accepted nor refused: told within the time for connecting, in the dialect."""
    with socket.socket() as full:  # a listener whose queue is full answers no more
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        client = serve(urls=[f"http://127.0.0.1:{port}"], connect_timeout_in_seconds="0.1")
        reply = client.on(route)
        for one in waiting:
            one.close()
    assert reply.status_code == 502
    assert "0.1 s" in error_of(reply, route)["message"]


SECRETS = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "proxy-authorization",
]


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize("key", ["", "own"])
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_credentials_of_the_client_stay_here(serve, engine, route, key, spell):
    """In any spelling; the engine sees the configured key, or none at all."""
    headers = {spell(name): "Bearer client-secret" for name in SECRETS}
    client = serve(servers=[{"api_key": key}])
    assert client.on(route, headers=headers).status_code == 200
    got = engine.inference[-1].headers
    assert got.get("authorization") == (f"Bearer {key}" if key else None)
    assert not set(SECRETS[1:]) & got.keys()
    assert "client-secret" not in str(got)


@pytest.mark.parametrize("key", ["", "own"])
def test_a_forwarded_authorization(serve, engine, key):
    """By a named setting, to servers without a key of their own, and nothing else is."""
    client = serve(servers=[{"api_key": key}], forward_authorization=True)
    client.on("chat", headers=dict.fromkeys(SECRETS, "Bearer client"))
    got = engine.inference[-1].headers
    assert got["authorization"] == f"Bearer {key or 'client'}"
    assert not set(SECRETS[1:]) & got.keys()


def test_an_engine_that_refuses_a_forwarded_key(serve, say):
    """The key is the client's, and so is the 401."""
    client = serve(forward_authorization=True)
    say.whole({"error": "Unauthorized"}, status=401)
    assert client.chat().status_code == 401


TRACE = {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "a=b",
}


def ids_of(reply):
    """The request ids of a reply."""
    return [value for name, value in reply.headers.items() if name == "x-request-id"]


@pytest.mark.parametrize("route", EVERY)
def test_a_request_is_known_by_one_id(serve, engine, route):
    """The same to the engine and back; made up where it is missing; traces pass as they are."""
    client = serve()
    reply = client.on(route, headers={"X-Request-ID": "abc-1", **TRACE})
    sent = engine.inference[-1].headers
    assert ids_of(reply) == ["abc-1"]
    assert sent["x-request-id"] == "abc-1"
    assert {name: sent[name] for name in TRACE} == TRACE
    reply = client.on(route)
    (made,) = ids_of(reply)
    assert made
    assert engine.inference[-1].headers["x-request-id"] == made
    if route in ANTHROPIC:
        assert reply.headers["request-id"] == made


@pytest.mark.parametrize("bad", ["a b", "a\tb", "x" * 10240, "é", "<a>", "a;b"], ids=ascii)
@pytest.mark.parametrize("route", ["chat", "messages"])
def test_an_id_that_cannot_be_trusted_is_replaced(serve, engine, route, bad):
    """Of odd letters, or too long."""
    reply = serve().on(route, headers={"x-request-id": bad})
    (made,) = ids_of(reply)
    assert made != bad
    assert engine.inference[-1].headers["x-request-id"] == made


@pytest.mark.parametrize("route", EVERY)
def test_errors_have_the_id_too(serve, say, route):
    """The gateway's own, of every kind, and the engine's."""
    client = serve("limits: {max_body_bytes: 1KiB}")
    headers = {"x-request-id": "abc-1"}
    say.whole(b"", status=502)
    failures = [
        client.on(route, headers=headers),
        client.on(route, headers=headers, model="no-such"),
        client.on(route, headers=headers, model=5),
        client.on(route, headers=headers, pad="x" * 2000),
    ]
    assert [reply.status_code for reply in failures] == [502, 404, 400, 413]
    for reply in failures:
        assert ids_of(reply) == ["abc-1"]
        if route in ANTHROPIC:
            assert reply.json["request_id"] == "abc-1"
