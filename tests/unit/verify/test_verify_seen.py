import json
from typing import Any

import pytest

from gateway import sse
from gateway.routes import Dialect
from gateway.verify.seen import Answered, Seen, read, says_something

C, R, M, P = Dialect.CHAT, Dialect.RESPONSES, Dialect.MESSAGES, Dialect.COMPLETIONS
ECHO = '{"engine_echo":{"n":1}}'


def whole(dialect: Dialect, body: Any, status: int = 200, **headers: str) -> Seen:
    """A buffered answer, read."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read(Answered(status, {"content-type": "application/json", **headers}, raw), dialect)


def stream(dialect: Dialect, *events: Any) -> Seen:
    """A streamed answer, read."""
    raw = b"".join(
        b"data: " + (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n\n"
        for one in events
    )
    return read(Answered(200, {"content-type": "text/event-stream; charset=utf-8"}, raw), dialect)


def chat(message: dict[str, Any], key: str = "message", **more: Any) -> dict[str, Any]:
    """A chat reply, or a chunk."""
    return {"model": "m", "choices": [{"index": 0, key: message, **more}]}


ECHOES = {
    "chat": whole(C, chat({"content": ECHO})),
    "chat, streamed": stream(
        C, chat({"role": "assistant"}, "delta"), chat({"content": f"{ECHO} "}, "delta"), b"[DONE]"
    ),
    "chat, in pieces": stream(
        C, chat({"content": ECHO[:5]}, "delta"), chat({"content": ECHO[5:]}, "delta")
    ),
    "completions": whole(P, {"choices": [{"index": 0, "text": ECHO}, {"index": 1, "text": "x"}]}),
    "messages": whole(M, {"content": [{"type": "thinking"}, {"type": "text", "text": ECHO}]}),
    "messages, streamed": stream(
        M,
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ECHO}},
    ),
    "responses": whole(
        R, {"output": [{"content": [{"type": "output_text", "text": ECHO}]}, {"type": "x"}]}
    ),
    "responses, streamed": stream(
        R,
        {"type": "response.output_text.delta", "delta": ECHO},
        {"type": "response.output_text.done", "text": ECHO},
    ),
}


@pytest.mark.parametrize("seen", ECHOES.values(), ids=ECHOES)
def test_echo(seen: Seen) -> None:
    """The words of an answer are found in every dialect, buffered and streamed."""
    assert seen.echo == {"n": 1}


@pytest.mark.parametrize("text", ["", "hello", "1", "[]", '{"n":1}', '{"engine_echo":1}'], ids=repr)
def test_no_echo(text: str) -> None:
    """Any other answer is none."""
    assert whole(C, chat({"content": text})).echo is None


ERRORS = {
    "nested": (whole(C, {"error": {"type": "a", "message": "b"}}, 400), {"a"}, "400: b"),
    "flat": (whole(C, {"object": "error", "type": "a", "message": "b"}, 400), {"a"}, "400: b"),
    "both": (
        whole(C, {"type": "x", "message": "b", "error": {"type": "a", "message": "b"}}, 400),
        {"a", "x"},
        "400: b",
    ),
    "anthropic": (
        whole(M, {"type": "error", "error": {"type": "a", "message": "b"}}, 400),
        {"a"},
        "400: b",
    ),
    "a text": (whole(C, {"error": "Unauthorized"}, 401), set(), "401: Unauthorized"),
    "in a stream": (stream(C, {"error": {"message": "b\n  c", "type": "a"}}), {"a"}, "200: b c"),
    "no JSON": (whole(C, b"Internal Server Error", 500), set(), "500, without a readable body"),
    "long": (
        whole(C, {"error": {"message": "x" * 300}}, 400),
        set(),
        f"400: {'x' * 195}…",
    ),
}


@pytest.mark.parametrize(("seen", "types", "told"), ERRORS.values(), ids=ERRORS)
def test_errors(seen: Seen, types: set[str], told: str) -> None:
    """An error is found in whichever shape it has, and told in a line."""
    assert seen.error_types == types
    assert seen.told == told


def test_no_error() -> None:
    """A fine answer has none, though it has a message, or a type."""
    assert whole(C, chat({"content": "a"})).error is None
    assert whole(M, {"type": "message", "content": []}).error is None


MODELS = {
    "a body": (whole(C, {"model": "a"}), {"a"}),
    "every chunk": (stream(C, {"model": "a"}, {"model": "b"}), {"a", "b"}),
    "message_start": (stream(M, {"type": "message_start", "message": {"model": "a"}}), {"a"}),
    "response.created": (stream(R, {"type": "x", "response": {"model": "a"}}), {"a"}),
    "none": (whole(C, {"model": None}), set()),
}


@pytest.mark.parametrize(("seen", "names"), MODELS.values(), ids=MODELS)
def test_models(seen: Seen, names: set[str]) -> None:
    """Every place that names the model counts."""
    assert seen.models == names


def test_reasoning() -> None:
    """Its names count where they hold something."""
    assert whole(C, chat({"reasoning": "a", "reasoning_content": None})).reasoning_names == {
        "reasoning"
    }
    assert stream(C, chat({"reasoning_content": "a"}, "delta")).reasoning_names == {
        "reasoning_content"
    }


ENDINGS = {
    "chat": (stream(C, chat({}, "delta", finish_reason="stop"), b"[DONE]"), True),
    "chat, cut": (stream(C, chat({}, "delta")), False),
    "messages": (stream(M, {"type": "message_stop"}), True),
    "messages, cut": (stream(M, {"type": "message_delta"}, b"[DONE]"), False),
    "responses": (stream(R, {"type": "response.incomplete"}), True),
    "responses, failed": (stream(R, {"type": "response.failed"}), False),
    "a body": (whole(C, {}), True),
    "half a body": (whole(C, b'{"a":'), False),
}


@pytest.mark.parametrize(("seen", "ended"), ENDINGS.values(), ids=ENDINGS)
def test_endings(seen: Seen, ended: bool) -> None:
    """A stream ends as its dialect says; a body is valid JSON."""
    assert seen.ended is ended


FIRST_WORDS = [
    (C, {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}, False),
    (C, {"choices": [{"index": 0, "delta": {"content": "a"}}]}, True),
    (C, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, True),
    (C, {"error": {"message": "a"}}, True),
    (C, b"[DONE]", True),
    (C, b"not JSON", False),
    (M, {"type": "message_start", "message": {}}, False),
    (M, {"type": "content_block_delta", "delta": {"text": "a"}}, True),
    (M, {"type": "message_stop"}, True),
    (R, {"type": "response.created"}, False),
    (R, {"type": "response.output_text.delta", "delta": "a"}, True),
    (R, {"type": "response.incomplete"}, True),
    (P, {"choices": [{"index": 0, "text": "a"}]}, True),
]


@pytest.mark.parametrize(("dialect", "data", "says"), FIRST_WORDS, ids=str)
def test_first_words(dialect: Dialect, data: Any, says: bool) -> None:
    """A stream is left at a word, an end or an error, not at its opening."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    [event] = sse.Decoder().feed(b"data: " + raw + b"\n\n")
    assert says_something(event, dialect) is says


def test_an_event_without_data_says_nothing() -> None:
    """A comment or a name alone is no word."""
    assert not says_something(sse.Event("ping", None, b"event: ping\n\n"), C)
