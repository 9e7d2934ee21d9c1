"""Failures, as the SDKs tell of them: which exception, and what a program can read off it."""

import json
import types

import anthropic
import openai
import pytest
from recorded import ANSWERS

ROUTES = ("chat", "messages")
DIALECTS = ("chat", "responses", "messages")
USER = [{"role": "user", "content": "hi"}]


def flat(message, kind, code):
    """SGLang's error on its OpenAI routes."""
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return json.dumps(error).encode()


def anthropic_shaped(message, kind):
    """SGLang's error on its Messages route."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


TOO_LONG = "The input (9 tokens) is longer than the model's context length (8 tokens)."
FULL = "The request queue is full."
HIDDEN = "Internal server error"

ANSWERED = {
    # name: (engine's status, its bodies by route, openai's class, code and type,
    #        anthropic's class and type, status, message by route)
    "too long": (
        400,
        (flat(TOO_LONG, "BadRequestError", 400), anthropic_shaped(TOO_LONG, "BadRequestError")),
        (openai.BadRequestError, "bad_request"),
        (anthropic.BadRequestError, "invalid_request_error"),
        400,
        (TOO_LONG, TOO_LONG),
    ),
    "not there": (
        404,
        (b'{"detail":"Not Found"}', b'{"detail":"Not Found"}'),
        (openai.NotFoundError, "not_found"),
        (anthropic.NotFoundError, "not_found_error"),
        404,
        ("The engine answered with status 404.",) * 2,
    ),
    "too many": (
        429,
        (flat("slow down", "429", 429), anthropic_shaped("slow down", "rate_limit_error")),
        (openai.RateLimitError, "rate_limit_exceeded"),
        (anthropic.RateLimitError, "rate_limit_error"),
        429,
        ("slow down", "slow down"),
    ),
    "full": (
        503,
        (flat(FULL, "503", 503), anthropic_shaped(HIDDEN, "overloaded_error")),
        (openai.InternalServerError, "overloaded"),
        (anthropic.ServiceUnavailableError, "overloaded_error"),
        503,
        (FULL, HIDDEN),
    ),
    "broken": (
        500,
        (b"Internal Server Error", anthropic_shaped(HIDDEN, "api_error")),
        (openai.InternalServerError, "internal_error"),
        (anthropic.InternalServerError, "api_error"),
        500,
        ("The engine answered with status 500.", HIDDEN),
    ),
    "the gateway's key refused": (
        401,
        (b'{"error":"Unauthorized"}', b'{"error":"Unauthorized"}'),
        (openai.InternalServerError, "upstream_auth_failed"),
        (anthropic.InternalServerError, "api_error"),
        502,
        ("The engine refused the gateway's key.",) * 2,
    ),
    "unreadable": (
        200,
        (b"<html>", b"<html>"),
        (openai.InternalServerError, "upstream_protocol_error"),
        (anthropic.InternalServerError, "api_error"),
        502,
        ("The engine sent an unreadable reply.",) * 2,
    ),
}


def read_error(caught):
    """An exception's class, code or type, and message, as its SDK shows them."""
    if isinstance(caught, anthropic.APIStatusError):
        assert caught.body["type"] == "error"
        assert caught.body["request_id"] == caught.request_id
        return type(caught), caught.type, caught.body["error"]["message"]
    return type(caught), caught.code, caught.body["message"]


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ANSWERED)
def test_an_engines_error_is_the_sdks_own(ask, say, name, dialect, route):
    """The status is kept, the class and the names are those of the dialect, so are the ids."""
    status, bodies, *classes, shown, messages = ANSWERED[name]
    at = ROUTES.index(route)
    say(bodies[at], status=status)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
        ask(dialect, model=f"over-{route}")
    assert caught.value.status_code == shown
    assert read_error(caught.value) == (*classes[dialect == "messages"], messages[at])
    assert caught.value.request_id.startswith("req_")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_model(ask, engine, dialect):
    """It is told by the gateway, in words for the dialect, and never asked of an engine."""
    with pytest.raises((openai.NotFoundError, anthropic.NotFoundError)) as caught:
        ask(dialect, model="gpt-5")
    kind = "not_found_error" if dialect == "messages" else "model_not_found"
    assert read_error(caught.value)[1] == kind
    assert "gpt-5" in str(caught.value)
    assert not engine.inference


REPLIES = {
    "aborted": (b'{"choices":[{"finish_reason":"abort","message":{"content":"a"}}]}', "aborted"),
    "no choice": (b'{"choices":[]}', "without a choice"),
    "an error": (b'{"error":{"message":"lost","code":500}}', "lost"),
}


@pytest.mark.parametrize(("body", "message"), REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_that_is_none(ask, say, dialect, body, message):
    """A 200 of the engine that holds no answer is no answer to the SDK either."""
    say(body)
    with pytest.raises(
        (openai.InternalServerError, anthropic.InternalServerError), match=message
    ) as caught:
        ask(dialect, model="over-chat")
    assert caught.value.status_code == 502


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["no-stream", "stream"])
def test_an_engine_that_takes_no_notice_of_stream(ask, say, streamed, dialect, route):
    """A stream for none, or the other way round: neither SDK could read the other."""
    answer = ANSWERS["text"]
    say((answer.buffered if streamed else answer.streamed)[route], streamed=not streamed)
    with pytest.raises(
        (openai.InternalServerError, anthropic.InternalServerError), match="was asked for"
    ) as caught:
        ask(dialect, streamed=streamed, model=f"over-{route}")
    assert caught.value.status_code == 502


REFUSED = {
    "chat": b'data: {"error": {"object": "error", "message": "The request queue is full.",'
    b' "type": "SERVICE_UNAVAILABLE", "param": null, "code": 503}}\n\ndata: [DONE]\n\n',
    "messages": b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
    b'"type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":0,'
    b'"output_tokens":0}}}\n\nevent: error\ndata: {"type":"error","error":{"type":'
    b'"overloaded_error","message":"The request queue is full."}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
}
"""A full queue, as SGLang tells of it in a stream: with the status 200."""


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_never_began(ask, say, dialect, route):
    """Before the first word an error in a stream is an HTTP error, which SDKs try again."""
    say(REFUSED[route], streamed=True)
    with pytest.raises((openai.InternalServerError, anthropic.ServiceUnavailableError)) as caught:
        ask(dialect, streamed=True, model=f"over-{route}")
    assert caught.value.status_code == 503
    kind = "overloaded_error" if dialect == "messages" else "overloaded"
    assert read_error(caught.value)[1:] == (kind, FULL)


def _ends_with_an_error_frame(route):
    """The first two words of an answer, then an error, and an end as if nothing had been."""
    answer = ANSWERS["text"].streamed[route]
    if route == "chat":
        head = b"\n\n".join(answer.split(b"\n\n")[:3])
        error = b'data: {"error": {"object": "error", "message": "CUDA error", "type":'
        error += b' "INTERNAL_SERVER_ERROR", "param": null, "code": 500}}'
        return head + b"\n\n" + error + b"\n\ndata: [DONE]\n\n"
    head = b"\n\n".join(answer.split(b"\n\n")[:4])
    error = anthropic_shaped("CUDA error", "api_error")
    stop = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    return head + b"\n\nevent: error\ndata: " + error + b"\n\n" + stop


def _is_cut(route):
    """The same, with nothing after them."""
    answer = ANSWERS["text"].streamed[route]
    return b"\n\n".join(answer.split(b"\n\n")[: 3 if route == "chat" else 4]) + b"\n\n"


def _is_aborted(route):
    """The finish reason of an engine that gave up; its Messages route has none."""
    answer = _is_cut(route)
    if route == "messages":
        return answer
    choice = {"index": 0, "delta": {}, "finish_reason": "abort"}
    return answer + b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"


BREAKS = {
    "an error frame": (_ends_with_an_error_frame, ("CUDA error", "CUDA error")),
    "cut": (_is_cut, ("The engine's stream was cut off.",) * 2),
    "abort": (
        _is_aborted,
        ("The engine aborted the generation.", "The engine's stream was cut off."),
    ),
}


def _hear_chat(clients, model):
    fields = {"model": model, "messages": USER, "stream": True}
    heard = []
    with pytest.raises(openai.APIError) as caught:
        heard.extend(
            chunk.choices[0].delta.content
            for chunk in clients.openai.chat.completions.create(**fields)
        )
    return "".join(heard), caught.value.body["message"]


def _hear_responses(clients, model):
    *events, last = clients.openai.responses.create(model=model, input="hi", stream=True)
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.error.code == "server_error"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert last.response.output_text == text
    assert [event.type for event in events[-3:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    return text, last.response.error.message


def _hear_messages(clients, model):
    events = []
    fields = {"model": model, "messages": USER, "max_tokens": 9}
    with pytest.raises(anthropic.APIStatusError) as caught:
        events.extend(clients.anthropic.messages.create(stream=True, **fields))
    assert events[-1].type == "content_block_stop"
    assert (caught.value.type, caught.value.body["type"]) == ("api_error", "error")
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    return text, caught.value.body["error"]["message"]


HEAR = {"chat": _hear_chat, "responses": _hear_responses, "messages": _hear_messages}


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", BREAKS)
def test_a_stream_that_breaks_off(clients, say, name, dialect, route):
    """The SDK has the words that came, and then an error: never an answer that looks whole."""
    build, messages = BREAKS[name]
    say(build(route), streamed=True)
    heard, message = HEAR[dialect](clients, f"over-{route}")
    assert heard
    assert ANSWERS["text"].replies["messages"]["content"][0]["text"].startswith(heard)
    assert message == messages[ROUTES.index(route)]


def test_a_gathered_stream_that_breaks_off(clients, say):
    """The helpers that gather a stream raise, and give no half of an answer."""
    say(_is_cut("chat"), streamed=True)
    fields = {"model": "over-chat", "messages": USER}
    with (
        pytest.raises(openai.APIError, match="cut off"),
        clients.openai.chat.completions.stream(**fields) as stream,
    ):
        stream.get_final_completion()
    say(_is_cut("chat"), streamed=True)
    with (
        pytest.raises(RuntimeError, match=r"response\.completed"),
        clients.openai.responses.stream(model="over-chat", input="hi") as stream,
    ):
        stream.get_final_response()
    say(_is_cut("chat"), streamed=True)
    with (
        pytest.raises(anthropic.APIStatusError, match="cut off"),
        clients.anthropic.messages.stream(**fields, max_tokens=9) as stream,
    ):
        stream.get_final_message()


@pytest.fixture
def slept(monkeypatch):
    """How long the SDKs wait before they try again; they do not really wait."""
    waits = []
    for module in (openai._base_client, anthropic._base_client):
        patient = types.SimpleNamespace(**{**vars(module.time), "sleep": waits.append})
        monkeypatch.setattr(module, "time", patient)
    return waits


ASK = {
    "openai": lambda client: client.chat.completions.create(model="over-chat", messages=USER),
    "anthropic": lambda client: client.messages.create(
        model="over-chat", messages=USER, max_tokens=9
    ),
}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("sdk", ASK)
def test_retry_after_is_kept(clients, engine, say, slept, sdk, status):
    """The engine's word on when to come back reaches the SDK, which waits so long."""
    say(flat("slow down", str(status), status), status=status, retry_after="7")
    say(ANSWERS["text"].buffered["chat"])
    ASK[sdk](getattr(clients, sdk).with_options(max_retries=1))
    assert slept == [7]
    assert len(engine.inference) == 2


@pytest.mark.parametrize("sdk", ASK)
def test_what_would_fail_again_is_not_tried_again(clients, engine, say, slept, sdk):
    """Nothing in the answer to a bad request makes an SDK repeat it."""
    say(flat(TOO_LONG, "BadRequestError", 400), status=400)
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)):
        ASK[sdk](getattr(clients, sdk).with_options(max_retries=3))
    assert slept == []
    assert len(engine.inference) == 1


def test_request_ids(clients, engine, say):
    """An SDK reads the id off every object, and gives its own; the engine gets it too."""
    got = clients.openai.chat.completions.create(model="over-chat", messages=USER)
    assert got._request_id == engine.inference[-1].headers["x-request-id"]
    own = {"x-request-id": "mine-1"}
    got = clients.openai.responses.create(model="over-chat", input="hi", extra_headers=own)
    assert got._request_id == "mine-1"
    got = clients.anthropic.messages.create(
        model="over-chat", messages=USER, max_tokens=9, extra_headers=own
    )
    assert got._request_id == "mine-1" == engine.inference[-1].headers["x-request-id"]
    say(flat("slow down", "429", 429), status=429)
    with pytest.raises(anthropic.RateLimitError) as caught:
        clients.anthropic.messages.create(
            model="over-chat", messages=USER, max_tokens=9, extra_headers=own
        )
    assert caught.value.request_id == "mine-1" == caught.value.body["request_id"]


def test_raw_responses(clients):
    """Headers and object are both at hand."""
    raw = clients.openai.chat.completions.with_raw_response.create(model="m", messages=USER)
    assert raw.headers["content-type"] == "application/json"
    assert raw.headers["x-request-id"] == raw.request_id == raw.parse()._request_id
    raw = clients.anthropic.messages.with_raw_response.create(
        model="m", messages=USER, max_tokens=9, tools=[{"type": "bash_20250124", "name": "bash"}]
    )
    assert raw.headers["x-sgl-gateway-dropped-tools"] == "bash_20250124"
    assert raw.parse().role == "assistant"


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("asked", [None, False, True])
def test_the_usage_chunk_is_for_those_who_ask(clients, say, asked, route):
    """With `include_usage` the last chunk has it and no choice; without, no chunk is like that."""
    say(ANSWERS["text"].streamed[route], streamed=True)
    options = {} if asked is None else {"stream_options": {"include_usage": asked}}
    chunks = list(
        clients.openai.chat.completions.create(
            model=f"over-{route}", messages=USER, stream=True, **options
        )
    )
    bare = [chunk for chunk in chunks if not chunk.choices]
    assert bare == (chunks[-1:] if asked else [])
    assert {chunk.model for chunk in chunks} == {f"over-{route}"}
    if asked:
        assert bare[0].usage.total_tokens == 62
