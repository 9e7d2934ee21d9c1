import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.demo.answers import echo
from gateway.demo.engine import Canned, DemoEngine

Ask = Callable[..., tuple[int, dict[str, str], bytes]]
CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def engine() -> Iterator[DemoEngine]:
    """A running engine."""
    with DemoEngine(model="m") as running:
        yield running


@pytest.fixture
def ask(engine: DemoEngine) -> Ask:
    """Sends a request; gives status, headers and body."""

    def send(
        path: str, body: object = None, method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(engine.url.removeprefix("http://"), timeout=10)
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, raw, {"content-type": "application/json"} | headers)
        reply = connection.getresponse()
        answered = reply.read()
        connection.close()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, answered

    return send


def _events(raw: bytes) -> list[Any]:
    blocks = [block for block in raw.decode().split("\n\n") if block]
    data = [block.rpartition("data: ")[2] for block in blocks]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


def test_it_tells_what_it_was_asked_with(ask: Ask) -> None:
    """The text names the sampling values of the request, so that written-in ones are seen."""
    body = {"model": "x", "messages": HELLO, "top_p": 0.95, "n": 1, "temperature": None}
    status, _, raw = ask(CHAT, body)
    reply = json.loads(raw)
    assert status == 200
    assert reply["model"] == "x"
    assert "asked with top_p 0.95 and n 1." in reply["choices"][0]["message"]["content"]
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["choices"][0]["message"]["reasoning_content"] is None


def test_a_stream_says_the_same(ask: Ask) -> None:
    """Role chunk, content chunks without usage, finish chunk, [DONE]."""
    body = {"model": "x", "messages": HELLO}
    whole = json.loads(ask(CHAT, body)[2])["choices"][0]["message"]["content"]
    status, headers, raw = ask(CHAT, body | {"stream": True})
    *chunks, done = _events(raw)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert done == "[DONE]"
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == whole
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "stop"]
    assert all("usage" not in chunk for chunk in chunks)


def test_usage_comes_last_and_only_when_asked_for(ask: Ask) -> None:
    """`include_usage` adds a chunk without choices before [DONE]."""
    body = {"messages": HELLO, "stream": True, "stream_options": {"include_usage": True}}
    last = _events(ask(CHAT, body)[2])[-2]
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > last["usage"]["completion_tokens"] > 0


def test_the_budget_cuts(ask: Ask) -> None:
    """A word is a token; max_completion_tokens goes before max_tokens unless it is 0."""
    body = {"messages": HELLO, "max_completion_tokens": 0, "max_tokens": 2}
    choice = json.loads(ask(CHAT, body)[2])["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("I am ", "length")


def test_a_required_tool_is_called(ask: Ask) -> None:
    """The first tool, with no arguments."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    body = {"messages": HELLO, "tools": [tool], "tool_choice": "required"}
    choice = json.loads(ask(CHAT, body)[2])["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param({"messages": HELLO, "n": None}, "'n'", id="null"),
        pytest.param({"messages": HELLO, "frequency_penalty": None}, "frequency", id="null-float"),
        pytest.param({"messages": HELLO, "model": None}, "'model'", id="null-model"),
        pytest.param({"messages": []}, "Messages cannot be empty.", id="no-messages"),
        pytest.param({}, "'messages'", id="absent-messages"),
        pytest.param({"messages": HELLO, "top_k": 0}, "top_k must be -1", id="top-k-0"),
        pytest.param({"messages": HELLO, "temperature": -1}, "non-negative", id="temperature"),
        pytest.param({"messages": HELLO, "top_p": "x"}, "'top_p'", id="not-a-number"),
        pytest.param({"messages": [{"role": "user", "content": None}]}, "content", id="content"),
        pytest.param({"messages": HELLO, "tool_choice": "any"}, "tool_choice", id="choice"),
        pytest.param(b'{"messages": NaN}', "Invalid JSON: NaN", id="nan"),
        pytest.param(b"{", "Invalid JSON", id="cut"),
    ],
)
def test_refusals_are_flat_400s(ask: Ask, body: object, complaint: str) -> None:
    """The engine's error body has no `error` key, and its `code` is the status."""
    status, _, raw = ask(CHAT, body)
    error = json.loads(raw)
    assert (status, error["object"], error["code"], error["param"]) == (400, "error", 400, None)
    assert complaint in error["message"]


def test_a_body_that_is_no_object_is_a_plain_500(ask: Ask) -> None:
    """The engine falls over it, and says so in plain text."""
    assert ask(CHAT, b"[]")[0::2] == (500, b"Internal Server Error")


def test_messages(ask: Ask) -> None:
    """Buffered and streamed say the same; there is no [DONE] and no stop_sequence."""
    body = {"model": "m", "max_tokens": 50, "messages": HELLO, "top_k": 5}
    reply = json.loads(ask("/v1/messages", body)[2])
    assert reply["id"].startswith("msg_")
    assert "stop_sequence" not in reply
    raw = ask("/v1/messages", body | {"stream": True})[2]
    events = _events(raw)
    text = "".join(event["delta"].get("text", "") for event in events if "delta" in event)
    assert text == reply["content"][0]["text"]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    assert raw.startswith(b"event: message_start\ndata: {")
    counted = json.loads(ask("/v1/messages/count_tokens", {"model": "m", "messages": HELLO})[2])
    assert counted == {"input_tokens": reply["usage"]["input_tokens"]}


@pytest.mark.parametrize(
    "change",
    [{"max_tokens": None}, {"max_tokens": 0}, {"model": ""}, {"messages": []}],
    ids=["no-budget", "budget-0", "no-model", "no-messages"],
)
def test_messages_refusals(ask: Ask, change: dict[str, object]) -> None:
    """In Anthropic's shape, without a request id."""
    body = {"model": "m", "max_tokens": 5, "messages": HELLO} | change
    status, _, raw = ask("/v1/messages", body)
    assert status == 400
    assert json.loads(raw)["error"]["type"] == "invalid_request_error"


def test_completions(ask: Ask) -> None:
    """A choice a prompt and n; the default budget is 16; the last text chunk has the finish."""
    body = {"prompt": ["a b", "c"], "max_tokens": 3}
    reply = json.loads(ask("/v1/completions", body)[2])
    assert [choice["text"] for choice in reply["choices"]] == ["I am the"] * 2
    assert reply["usage"]["prompt_tokens"] == 3
    chunks = _events(ask("/v1/completions", body | {"stream": True})[2])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:3]] == [None, None, "length"]
    assert ask("/v1/completions", {"prompt": "a", "temperature": None})[0] == 400


def test_embeddings(ask: Ask) -> None:
    """A vector an input; `model` is the path of the engine's model, not the name asked for."""
    reply = json.loads(ask("/v1/embeddings", {"model": "x", "input": ["a", "b"]})[2])
    assert [entry["index"] for entry in reply["data"]] == [0, 1]
    assert reply["model"] == "/models/demo"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/ready", 200), ("/health", 200), ("/v1/models", 200), ("/v1/models/m", 200), ("/x", 404)],
)
def test_what_can_be_read(ask: Ask, path: str, status: int) -> None:
    """Health, the model list, and nothing else."""
    assert ask(path, method="GET")[0] == status


def test_a_key_is_asked_for(ask: Ask, engine: DemoEngine) -> None:
    """As a Bearer token only, and not by health checks."""
    engine.api_key = "k"
    assert ask(CHAT, {"messages": HELLO})[0::2] == (401, b'{"error":"Unauthorized"}')
    assert ask(CHAT, {"messages": HELLO}, **{"x-api-key": "k"})[0] == 401
    assert ask(CHAT, {"messages": HELLO}, authorization="Bearer k")[0] == 200
    assert ask("/ready", method="GET")[0] == 200


def test_tests_see_what_arrived_and_say_what_is_answered(ask: Ask, engine: DemoEngine) -> None:
    """Bytes as they came; a canned answer is sent once, as it stands."""
    engine.canned.append(Canned(503, b"full", {"content-type": "text/plain", "retry-after": "7"}))
    status, headers, raw = ask(CHAT, b'{ "messages": 1}', **{"X-Mark": "1"})
    assert (status, headers["retry-after"], raw) == (503, "7", b"full")
    (received,) = engine.inference
    assert (received.path, received.body) == (CHAT, b'{ "messages": 1}')
    assert received.headers["x-mark"] == "1"
    assert received.json == {"messages": 1}
    assert engine.canned == []


def test_a_held_stream_notices_that_its_caller_left(engine: DemoEngine) -> None:
    """A held stream rests after its first word, and counts a caller that goes."""
    engine.hold()
    connection = http.client.HTTPConnection(engine.url.removeprefix("http://"), timeout=10)
    body = json.dumps({"messages": HELLO, "stream": True})
    connection.request("POST", CHAT, body, {"content-type": "application/json"})
    reply = connection.getresponse()
    assert b'"content":"I "' in reply.readline() + reply.readline() + reply.readline()
    assert engine.gone == 0
    reply.close()
    connection.close()
    assert engine.wait_until(lambda running: running.gone == 1)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": HELLO}),
        (CHAT, {"messages": HELLO, "stream": True}),
        ("/v1/completions", {"prompt": "Hello"}),
        ("/v1/messages", {"messages": HELLO}),
        ("/v1/messages", {"messages": HELLO, "stream": True}),
    ],
    ids=["chat", "chat, streamed", "completions", "messages", "messages, streamed"],
)
def test_an_echo(ask: Ask, engine: DemoEngine, path: str, body: dict[str, Any]) -> None:
    """Everything but the conversation, as JSON in one word that no budget cuts."""
    engine.say = echo
    fields = {"model": "m", "max_tokens": 1, "top_p": 0.5, "x": {"y": "a b", "z": [None, True]}}
    _, _, answered = ask(path, {**fields, **body})
    text = json.dumps({"engine_echo": {**fields, **body}}, separators=(",", ":"))
    for name in ("messages", "prompt"):
        text = text.replace(f',"{name}":{json.dumps(body.get(name), separators=(",", ":"))}', "")
    assert json.dumps(text.replace(" ", r"\u0020"))[1:-1].encode() in answered
