"""Chat replies become Messages replies."""

from typing import Any

import pytest

from gateway.dialects.errors import EngineFailure
from gateway.dialects.messages import from_chat_reply

_USAGE = {"prompt_tokens": 41, "completion_tokens": 3, "total_tokens": 44}


def _reply(message: Any, finish: object = "stop", **keys: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish, "matched_stop": None}
    matched = keys.pop("matched_stop", None)
    if matched is not None:
        choice["matched_stop"] = matched
    return {"id": "6f1c", "model": "engine", "choices": [choice], "usage": _USAGE, **keys}


def _call(call_id: str | None = "call_a", name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _convert(reply: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return from_chat_reply(reply, model="claude", **keys)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": ""}


def _use(call_id: str, name: str = "f", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def test_a_whole_message() -> None:
    """Every key of the envelope, the client's own name of the model among them."""
    assert _convert(_reply({"role": "assistant", "content": "hi", "reasoning_content": None})) == {
        "id": "msg_6f1c",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [_text("hi")],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 41, "cache_read_input_tokens": 0, "output_tokens": 3},
    }


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": "x", "reasoning_content": "ab"}, [_thinking("ab"), _text("x")]),
        ({"content": "x", "reasoning": "ab"}, [_thinking("ab"), _text("x")]),
        ({"content": "x", "reasoning_content": ""}, [_text("x")]),
        ({"content": "", "reasoning_content": "ab"}, [_thinking("ab")]),
        ({"content": "\n\nx", "reasoning_content": "ab\n"}, [_thinking("ab\n"), _text("\n\nx")]),
        ({"content": "\n\n", "tool_calls": [_call()]}, [_use("call_a")]),
        ({"content": "x", "reasoning_content": "r", "tool_calls": [_call(), _call("b", "g")]},
         [_thinking("r"), _text("x"), _use("call_a"), _use("b", "g")]),
        ({"content": None, "tool_calls": None}, [_text("")]),
        ({"content": ""}, [_text("")]),
        ({"content": " \n"}, [_text(" \n")]),
        ({}, [_text("")]),
        ({"content": [_text("a"), {"type": "refusal"}, _text("b"), "c"]}, [_text("ab")]),
        ({"content": "\ud800"}, [_text("\ud800")]),
    ],
    ids=[
        "thinking",
        "thinking-by-another-name",
        "no-thinking",
        "thinking-alone",
        "white-space-of-parsers",
        "blank-beside-calls",
        "all",
        "null",
        "empty",
        "blank",
        "nothing",
        "parts",
        "lone-surrogate",
    ],
)  # fmt: skip
def test_blocks(message: dict[str, Any], content: list[Any]) -> None:
    """Thinking, text, calls, in that order; one block at least, and no blank one beside others."""
    assert _convert(_reply(message))["content"] == content


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (" ", {}),
        (None, {}),
        ("{}", {}),
        ("[1]", {}),
        ('{"a":', {}),
        ('{"a": NaN}', {}),
        ('{"a": "\ud800"}', {}),
        ("5", {}),
    ],
    ids=[
        "object",
        "decoded",
        "empty",
        "blank",
        "null",
        "no-arguments",
        "array",
        "half",
        "nan",
        "no-unicode",
        "number",
    ],
)
def test_the_input_of_a_call_is_an_object(arguments: object, given: dict[str, Any]) -> None:
    """What is no JSON object is an empty one: a client that reads it does not break."""
    reply = _reply({"tool_calls": [_call(arguments=arguments)]}, "tool_calls")
    assert _convert(reply)["content"] == [_use("call_a", **given)]


def test_a_call_without_an_id_gets_one() -> None:
    """The results of two calls have to be told apart."""
    reply = _reply({"tool_calls": [_call(None), _call("")]}, "tool_calls")
    first, second = (block["id"] for block in _convert(reply)["content"])
    assert first
    assert second
    assert first != second


@pytest.mark.parametrize(
    ("finish", "message", "matched", "stop"),
    [
        ("stop", {"content": "a"}, None, ("end_turn", None)),
        ("stop", {"content": "a"}, 151645, ("end_turn", None)),
        ("stop", {"content": "a"}, "END", ("stop_sequence", "END")),
        ("stop", {"content": "a"}, "<|im_end|>", ("end_turn", None)),
        ("stop", {"content": "a"}, ["END"], ("end_turn", None)),
        ("length", {"content": "a"}, None, ("max_tokens", None)),
        ("length", {"content": "a"}, "END", ("max_tokens", None)),
        ("length", {"tool_calls": [_call(arguments='{"a')]}, None, ("max_tokens", None)),
        ("content_filter", {"content": "a"}, None, ("refusal", None)),
        ("tool_calls", {"tool_calls": [_call()]}, None, ("tool_use", None)),
        ("function_call", {"tool_calls": [_call()]}, None, ("tool_use", None)),
        ("stop", {"tool_calls": [_call()]}, None, ("tool_use", None)),
        ("stop", {"tool_calls": [_call()]}, "END", ("tool_use", None)),
        (None, {"content": "a"}, None, ("end_turn", None)),
        (None, {"tool_calls": [_call()]}, None, ("tool_use", None)),
        ("eos", {"content": "a"}, None, ("end_turn", None)),
    ],
    ids=[
        "stop",
        "token",
        "sequence",
        "not-asked-for",
        "no-text",
        "length",
        "length-over-sequence",
        "length-in-a-call",
        "filter",
        "calls",
        "function-call",
        "calls-with-stop",
        "calls-over-sequence",
        "none",
        "none-with-calls",
        "unknown",
    ],
)
def test_stop_reason(
    finish: str | None, message: dict[str, Any], matched: object, stop: tuple[str, str | None]
) -> None:
    """Each finish reason has its word; a stop sequence is named where the client set it."""
    reply = _reply(message, finish, matched_stop=matched)
    converted = _convert(reply, stop_sequences=("END", "\n"))
    assert (converted["stop_reason"], converted["stop_sequence"]) == stop


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5,
          "prompt_tokens_details": {"cached_tokens": 75}}, (25, 75, 5)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": None},
         (100, 0, 5)),
        ({"prompt_tokens": 100, "completion_tokens": 5,
          "prompt_tokens_details": {"cached_tokens": None}}, (100, 0, 5)),
        ({"prompt_tokens": 100, "completion_tokens": 5,
          "prompt_tokens_details": {"cached_tokens": 120}}, (0, 120, 5)),
        ({"prompt_tokens": None, "completion_tokens": None}, (0, 0, 0)),
        ({}, (0, 0, 0)),
        (None, (0, 0, 0)),
        ("many", (0, 0, 0)),
        ({"prompt_tokens": "9", "completion_tokens": 1.5, "prompt_tokens_details": []},
         (0, 0, 0)),
    ],
    ids=[
        "cached",
        "no-details",
        "null-cached",
        "more-cached-than-prompt",
        "nulls",
        "empty",
        "none",
        "text",
        "no-integers",
    ],
)  # fmt: skip
def test_usage(usage: object, expected: tuple[int, int, int]) -> None:
    """Input is the prompt without its cached part, never below 0; what is missing is 0."""
    found = _convert(_reply({"content": "a"}, usage=usage))["usage"]
    assert tuple(found.values()) == expected
    assert list(found) == ["input_tokens", "cache_read_input_tokens", "output_tokens"]


@pytest.mark.parametrize(
    ("given", "expected"), [("6f1c", "msg_6f1c"), ("msg_6f1c", "msg_6f1c")], ids=["hex", "msg"]
)
def test_id(given: str, expected: str) -> None:
    """It starts with `msg_`, once."""
    assert _convert(_reply({"content": "a"}, id=given))["id"] == expected


@pytest.mark.parametrize("given", [None, "", 5])
def test_a_missing_id_is_made_up(given: object) -> None:
    """Each message has an id of its own."""
    first, second = (_convert(_reply({"content": "a"}, id=given))["id"] for _ in range(2))
    assert first.startswith("msg_")
    assert first != second


def test_only_the_choice_of_index_0_counts() -> None:
    """Messages have no place for more than one answer, whatever their order."""
    reply = _reply({"content": "a"})
    other = {"index": 1, "message": {"content": "b"}, "finish_reason": "abort"}
    reply["choices"].insert(0, other)
    assert _convert(reply)["content"] == [_text("a")]


_ANSWER = _call("call_x", "final_answer", '{"b": 2}')


@pytest.mark.parametrize(
    ("message", "finish", "content", "stop"),
    [
        ({"tool_calls": [_ANSWER]}, "tool_calls", [_text('{"b": 2}')], "end_turn"),
        ({"content": "\n", "tool_calls": [_ANSWER]}, "stop", [_text('{"b": 2}')], "end_turn"),
        ({"reasoning_content": "r", "tool_calls": [_ANSWER]}, "tool_calls",
         [_thinking("r"), _text('{"b": 2}')], "end_turn"),
        ({"tool_calls": [_call(), _ANSWER]}, "tool_calls",
         [_text('{"b": 2}'), _use("call_a")], "tool_use"),
        ({"tool_calls": [_ANSWER, _call("y", "final_answer", '{"b": 3}')]}, "tool_calls",
         [_text('{"b": 2}')], "end_turn"),
        ({"tool_calls": [_call("x", "final_answer", '{"b": ')]}, "length",
         [_text('{"b": ')], "max_tokens"),
        ({"tool_calls": [_call()]}, "tool_calls", [_use("call_a")], "tool_use"),
    ],
    ids=["alone", "blank-text", "thinking", "beside-a-call", "twice", "cut", "not-called"],
)  # fmt: skip
def test_the_call_of_the_format_tool_is_the_answer(
    message: dict[str, Any], finish: str, content: list[Any], stop: str
) -> None:
    """Its arguments are the text, as they came, once; it is no call to the client."""
    converted = _convert(_reply(message, finish), format_tool="final_answer")
    assert converted["content"] == content
    assert converted["stop_reason"] == stop


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (_reply({"content": "a"}, "abort"), "upstream_aborted"),
        ({"id": "x", "choices": []}, "upstream_protocol_error"),
        ({"id": "x", "choices": None}, "upstream_protocol_error"),
        ({"id": "x"}, "upstream_protocol_error"),
        ({"choices": {}}, "upstream_protocol_error"),
        ({"choices": ["a"]}, "upstream_protocol_error"),
        ({"choices": [{"index": 0}]}, "upstream_protocol_error"),
        (_reply("a"), "upstream_protocol_error"),
        (_reply({"tool_calls": {}}), "upstream_protocol_error"),
        (_reply({"tool_calls": ["f"]}), "upstream_protocol_error"),
        (_reply({"tool_calls": [{"id": "a"}]}), "upstream_protocol_error"),
    ],
    ids=[
        "abort",
        "no-choice",
        "null-choices",
        "no-choices",
        "choices-object",
        "choice-text",
        "no-message",
        "message-text",
        "calls-object",
        "call-text",
        "call-without-a-name",
    ],
)
def test_no_reply(reply: dict[str, Any], code: str) -> None:
    """An aborted or unreadable reply is the engine's failure, and never an answer."""
    with pytest.raises(EngineFailure) as caught:
        _convert(reply)
    assert caught.value.failure.code == code
    assert caught.value.failure.status == 502


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"message": "full", "type": "SERVICE_UNAVAILABLE", "code": 503}},
        {"object": "error", "message": "full", "type": "503", "code": 503},
    ],
    ids=["nested", "flat"],
)
def test_an_error_with_the_status_200_is_an_error(reply: dict[str, Any]) -> None:
    """Its own status counts."""
    with pytest.raises(EngineFailure) as caught:
        _convert(reply)
    assert caught.value.failure.status == 503
    assert caught.value.failure.message == "full"
