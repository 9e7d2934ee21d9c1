"""A Chat stream becomes a Messages stream."""

import json
from typing import Any

import pytest

from gateway import sse
from gateway.dialects.errors import EngineFailure, failure_of_kind
from gateway.dialects.messages import ChatToMessagesRelay
from gateway.errors import UPSTREAM_PROTOCOL

_FAILURE = failure_of_kind(UPSTREAM_PROTOCOL, "cut")


def _event(payload: Any) -> sse.Event:
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return sse.Event(None, data.encode(), b"")


def _chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> dict[str, Any]:
    chunk = {"id": "6f1c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return chunk if usage is None else {**chunk, "usage": usage}


def _piece(
    arguments: str | None = None,
    *,
    index: int | None = 0,
    call_id: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": call_id, "type": "function", "function": function}
    return _chunk(tool_calls=[call])


def _usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


_ROLE = _chunk(role="assistant", content="")


def _relay(**options: Any) -> ChatToMessagesRelay:
    return ChatToMessagesRelay(model="claude", request_id="req_1", **options)


def _parse(frames: list[bytes]) -> list[dict[str, Any]]:
    events = []
    for frame in frames:
        (event,) = sse.Decoder().feed(frame)
        events.append(json.loads(event.data))
        assert events[-1]["type"] == event.event
    return events


def _feed(relay: ChatToMessagesRelay, *payloads: Any) -> list[dict[str, Any]]:
    frames = []
    for payload in payloads:
        frames += relay.feed(_event(payload))
    return _parse(frames)


def _types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("content_block_") for event in events]


def _blocks(events: list[dict[str, Any]]) -> list[Any]:
    """What a client makes of the blocks."""
    blocks: list[Any] = []
    for event in events:
        if event["type"] == "content_block_start":
            block = event["content_block"]
            kind = block["type"]
            blocks.append([block["name"] if kind == "tool_use" else kind, ""])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            blocks[-1][1] += next(said for key, said in delta.items() if key != "type")
    return blocks


# The commit point and the beginning.


@pytest.mark.parametrize(
    "payload",
    [
        _ROLE,
        _chunk(),
        _chunk(content=None, reasoning_content=None, tool_calls=None),
        _chunk(content="", reasoning_content="", tool_calls=[]),
        _chunk(content="\n\n"),
        {"id": "x", "choices": [], "usage": _usage(5, 0)},
        {"id": "x", "choices": None},
        {"id": "x"},
        {"id": "x", "choices": [{"index": 0, "delta": None}]},
        {"id": "x", "choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]},
        _piece("", call_id="a"),
        "",
        " ",
    ],
    ids=[
        "role",
        "nothing",
        "nulls",
        "empties",
        "blank",
        "usage",
        "null-choices",
        "no-choices",
        "null-delta",
        "another-choice",
        "call-without-its-name",
        "no-data",
        "blank-data",
    ],
)
def test_nothing_is_sent_before_something_is_said(payload: Any) -> None:
    """Until then a failure can still be a real HTTP error."""
    assert _feed(_relay(), payload) == []


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (_chunk(content="a"), "text"),
        (_chunk(reasoning_content="a"), "thinking"),
        (_chunk(reasoning="a"), "thinking"),
        (_piece("", call_id="a", name="f"), "tool_use"),
    ],
    ids=["text", "thinking", "thinking-by-another-name", "call"],
)
def test_what_is_said_first_begins_the_message(payload: Any, kind: str) -> None:
    """The message starts together with its first block."""
    events = _feed(_relay(), _ROLE, payload)
    assert _types(events)[:2] == ["message_start", "start"]
    assert events[1]["index"] == 0
    assert events[1]["content_block"]["type"] == kind


def test_the_start_of_a_message() -> None:
    """It carries the client's name of the model and the input tokens, and no output yet."""
    start = _feed(_relay(), _ROLE, _chunk(content="a", usage=_usage(41, 1)))[0]
    assert start["message"] == {
        "id": "msg_6f1c",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 41, "cache_read_input_tokens": 0, "output_tokens": 0},
    }


def test_usage_that_came_first_is_in_the_start() -> None:
    """A usage chunk says nothing, but it is remembered."""
    usage = {"id": "6f1c", "choices": [], "usage": _usage(41, 0)}
    start = _feed(_relay(), usage, _chunk(content="a"))[0]
    assert start["message"]["usage"]["input_tokens"] == 41


def test_late_usage_does_not_hold_up_the_text() -> None:
    """The text flows at once, and the end has all the numbers."""
    relay = _relay()
    assert _types(_feed(relay, _chunk(content="a"))) == ["message_start", "start", "delta"]
    end = _feed(relay, _chunk("stop"), {"choices": [], "usage": _usage(41, 3)}, "[DONE]")
    assert end[1]["usage"] == {
        "input_tokens": 41,
        "cache_read_input_tokens": 0,
        "output_tokens": 3,
    }


def test_an_empty_answer_waits_for_its_usage() -> None:
    """Nothing is to be hurried where there is nothing to say."""
    relay = _relay()
    assert _feed(relay, _ROLE, _chunk("stop")) == []
    events = _feed(relay, {"choices": [], "usage": _usage(41, 0)}, "[DONE]")
    assert events[0]["message"]["usage"]["input_tokens"] == 41
    assert _types(events) == ["message_start", "start", "stop", "message_delta", "message_stop"]


# Blocks.


def test_thinking_closes_before_text_opens() -> None:
    """One block is open at a time, and a delta is of the type of its block."""
    events = _feed(
        _relay(),
        _chunk(reasoning_content="a"),
        _chunk(reasoning_content="b", content=""),
        _chunk(content="x"),
        "[DONE]",
    )
    assert [(event["type"], event.get("index")) for event in events[1:-2]] == [
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
    ]
    assert events[2]["delta"] == {"type": "thinking_delta", "thinking": "a"}
    assert events[6]["delta"] == {"type": "text_delta", "text": "x"}


def test_a_chunk_may_say_several_things() -> None:
    """Thinking, then text, then calls."""
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    chunk = _chunk("tool_calls", reasoning_content="r", content="t", tool_calls=[call])
    assert _blocks(_feed(_relay(), chunk, "[DONE]")) == [
        ["thinking", "r"],
        ["text", "t"],
        ["f", "{}"],
    ]


def test_pieces_are_not_held_back() -> None:
    """Each piece of the open block is one delta, at once, white space too."""
    relay = _relay()
    _feed(relay, _chunk(content="a"))
    for piece in (" ", "\n", "b", " "):
        (delta,) = _feed(relay, _chunk(content=piece))
        assert delta["delta"]["text"] == piece


def test_a_blank_beginning_leaves_with_what_follows() -> None:
    """White space that a parser left behind opens no block of its own, and is not lost."""
    events = _feed(_relay(), _chunk(content="\n"), _chunk(content="\n"), _chunk(content="x"))
    assert _blocks(events) == [["text", "\n\nx"]]


def test_a_blank_text_is_a_block_where_it_is_all_there_is() -> None:
    """The same as in a buffered reply."""
    assert _blocks(_feed(_relay(), _chunk(content=" \n"), "[DONE]")) == [["text", " \n"]]


def test_blank_arguments_make_no_delta() -> None:
    """Clients parse what the deltas add up to: an empty text is {} to them, a blank one is not."""
    events = _feed(_relay(), _piece(" ", call_id="a", name="f"), _chunk("tool_calls"))
    assert _types(events) == ["message_start", "start", "stop"]
    assert events[1]["content_block"] == {"type": "tool_use", "id": "a", "name": "f", "input": {}}


def test_no_signature_is_invented() -> None:
    """Only the vendor can sign a thought."""
    events = _feed(_relay(), _chunk(reasoning_content="a"), _chunk(content="x"), "[DONE]")
    assert "signature_delta" not in json.dumps(events)


# Calls.

_F = {"index": 0, "call_id": "a", "name": "f"}
_G = {"index": 1, "call_id": "b", "name": "g"}


@pytest.mark.parametrize(
    "pieces",
    [
        [_piece("", **_F), _piece('{"x":'), _piece("1}"),
         _piece("", **_G), _piece('{"y":', index=1), _piece("2}", index=1)],
        [_piece("", **_F), _piece("", **_G), _piece('{"x":'), _piece('{"y":', index=1),
         _piece("1}"), _piece("2}", index=1)],
        [_piece("", **_F), _piece("", **_G), _piece('{"y":2}', index=1), _piece('{"x":1}')],
        [_piece('{"x":', **_F), _piece('{"y":', **_G), _piece("1}"), _piece("2}", index=1)],
        [_piece('{"x":1}', index=0, call_id="a", name="f"),
         _piece('{"y":2}', index=0, call_id="b", name="g")],
        [_piece("", index=0, call_id="a", name="f"), _piece("", index=0, call_id="b", name="g"),
         _piece('{"x":1}', index=0, call_id="a"), _piece('{"y":2}', index=0, call_id="b")],
        [_piece('{"x":', index=None, call_id="a", name="f"), _piece("1}", index=None),
         _piece('{"y":', index=None, call_id="b", name="g"), _piece("2}", index=None)],
        [_piece("", index=None, call_id="a", name="f"), _piece("", index=None, call_id="b",
                                                               name="g"),
         _piece('{"y":2}', index=None, call_id="b"), _piece('{"x":1}', index=None, call_id="a")],
        [_piece('{"x":', **_F), _piece("1}", **_F), _piece('{"y":', **_G), _piece("2}", **_G)],
        [_piece('{"x":', index=0, call_id="a", name="f"), _piece("1}", index=0, call_id="zz"),
         _piece('{"y":', index=1, call_id="b", name="g"), _piece("2}", index=1, call_id="yy")],
        [_piece('{"x":', index=None, call_id="a", name="f"),
         _piece("1}", index=None, call_id="zz"), _piece('{"y":2}', **_G)],
        [_piece('{"x":1}', index=None, name="f"), _piece('{"y":2}', index=None, name="g")],
        [_piece('{"x":1}', index=0, name="f"), _piece('{"y":2}', index=0, name="g")],
        [_piece('{"x":', index=0, call_id="a"), _piece("1}", index=0, name="f"),
         _piece('{"y":2}', **_G)],
    ],
    ids=[
        "one-after-the-other",
        "interleaved",
        "second-whole-first",
        "names-with-arguments",
        "all-of-index-0",
        "interleaved-by-id",
        "no-index",
        "no-index-interleaved",
        "id-and-name-with-every-piece",
        "new-id-with-every-piece",
        "new-id-with-every-piece-and-no-index",
        "neither-index-nor-id",
        "index-0-and-no-id",
        "late-name",
    ],
)  # fmt: skip
def test_calls_are_kept_apart(pieces: list[Any]) -> None:
    """By index and id, whatever the engine's habit: each has its own block and arguments."""
    events = _feed(_relay(), *pieces, _chunk("tool_calls"), "[DONE]")
    assert _blocks(events) == [["f", '{"x":1}'], ["g", '{"y":2}']]
    indices = [event["index"] for event in events if event["type"] == "content_block_start"]
    assert indices == [0, 1]


def test_the_first_open_call_streams_at_once() -> None:
    """The others wait, and leave when the first is a whole object."""
    relay = _relay()
    assert _types(_feed(relay, _piece("", **_F))) == ["message_start", "start"]
    assert _feed(relay, _piece("", **_G)) == []
    assert _types(_feed(relay, _piece('{"x":'))) == ["delta"]
    assert _feed(relay, _piece('{"y":{}', index=1)) == []
    assert _types(_feed(relay, _piece("1}"))) == ["delta", "stop", "start", "delta"]
    assert _types(_feed(relay, _piece("}", index=1))) == ["delta"]


def test_a_call_that_is_never_whole_gives_way_at_the_finish() -> None:
    """What waited behind it leaves then, whole."""
    relay = _relay()
    waiting = [_piece('{"x":', **_F), _piece('{"y":2}', **_G), _chunk(content="t")]
    assert _blocks(_feed(relay, *waiting)) == [["f", '{"x":']]
    events = _feed(relay, _chunk("length"))
    assert _types(events) == ["stop", "start", "delta", "stop", "start", "delta", "stop"]


def test_a_brace_within_a_text_does_not_end_a_call() -> None:
    """Only a whole object gives way."""
    pieces = [_piece('{"x":"}', **_F), _piece("", **_G), _piece('"}'), _piece("{}", index=1)]
    events = _feed(_relay(), *pieces, "[DONE]")
    assert _blocks(events) == [["f", '{"x":"}"}'], ["g", "{}"]]


def test_text_between_calls_is_kept() -> None:
    """It has its place in the order; white space alone is no block."""
    pieces = [_piece("{}", **_F), _chunk(content="\n"), _piece("{}", **_G), _chunk(content="and")]
    assert _blocks(_feed(_relay(), *pieces, "[DONE]")) == [
        ["f", "{}"],
        ["g", "{}"],
        ["text", "and"],
    ]


def test_decoded_arguments_are_text_again() -> None:
    """Some engines send an object where a text belongs."""
    function = {"name": "f", "arguments": {"x": 1}}
    events = _feed(_relay(), _chunk(tool_calls=[{"index": 0, "id": "a", "function": function}]))
    assert _blocks(events) == [["f", '{"x":1}']]


def test_a_call_without_an_id_gets_one() -> None:
    """The same one as in a buffered reply."""
    pieces = [_piece("{}", index=0, name="f"), _piece("{}", index=1, name="g")]
    events = _feed(_relay(), *pieces, "[DONE]")
    ids = [event["content_block"]["id"] for event in events if "content_block" in event]
    assert ids == ["call_6f1c_0", "call_6f1c_1"]


# The answer that comes as a call.


def test_the_call_of_the_format_tool_is_text() -> None:
    """It streams as text, and the reply was no call."""
    pieces = [_piece("", index=0, call_id="a", name="answer"), _piece('{"b"'), _piece(":1}")]
    events = _feed(_relay(format_tool="answer"), *pieces, _chunk("tool_calls"), "[DONE]")
    assert _blocks(events) == [["text", '{"b":1}']]
    assert events[-2]["delta"]["stop_reason"] == "end_turn"


def test_the_answer_beside_a_call() -> None:
    """Both are kept, apart from text; the client has a call to answer."""
    pieces = [
        _chunk(content="t"),
        _piece('{"b":1}', index=0, call_id="a", name="answer"),
        _piece("{}", **_G),
        _piece('{"b":2}', index=2, call_id="c", name="answer"),
        _chunk("tool_calls"),
        "[DONE]",
    ]
    events = _feed(_relay(format_tool="answer"), *pieces)
    assert _blocks(events) == [["text", "t"], ["text", '{"b":1}'], ["g", "{}"]]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


# Ends.


@pytest.mark.parametrize(
    ("finish", "matched", "said", "stop"),
    [
        ("stop", None, _chunk(content="a"), ("end_turn", None)),
        ("stop", "END", _chunk(content="a"), ("stop_sequence", "END")),
        ("stop", "other", _chunk(content="a"), ("end_turn", None)),
        ("length", None, _chunk(content="a"), ("max_tokens", None)),
        ("content_filter", None, _chunk(content="a"), ("refusal", None)),
        ("tool_calls", None, _piece("{}", **_F), ("tool_use", None)),
        ("function_call", None, _piece("{}", **_F), ("tool_use", None)),
        ("stop", None, _piece("{}", **_F), ("tool_use", None)),
        ("length", None, _piece('{"x', **_F), ("max_tokens", None)),
    ],
    ids=[
        "stop",
        "sequence",
        "other-sequence",
        "length",
        "filter",
        "calls",
        "function-call",
        "calls-with-stop",
        "half-a-call",
    ],
)
def test_every_finish_ends_properly(
    finish: str, matched: str | None, said: Any, stop: tuple[str, str | None]
) -> None:
    """Blocks are closed, then the reason, then `message_stop`, once."""
    relay = _relay(stop_sequences=["END"])
    chunk = _chunk(finish)
    chunk["choices"][0]["matched_stop"] = matched
    events = _feed(relay, said, chunk, "[DONE]")
    assert _types(events)[-3:] == ["stop", "message_delta", "message_stop"]
    delta = events[-2]["delta"]
    assert (delta["stop_reason"], delta["stop_sequence"]) == stop
    assert relay.done


def test_the_first_finish_reason_counts() -> None:
    """An engine that repeats itself at the end does not change what was said."""
    events = _feed(_relay(), _chunk("length", content="a"), _chunk("stop"), "[DONE]")
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(
    ("said", "reason"),
    [(_chunk(content="a"), "end_turn"), (_piece("{}", **_F), "tool_use"), (_ROLE, "end_turn")],
    ids=["text", "call", "nothing"],
)
def test_done_without_a_finish_reason_is_an_end(said: Any, reason: str) -> None:
    """The engine's own terminator says that it is no cut."""
    relay = _relay()
    events = _feed(relay, said, "[DONE]")
    assert _types(events)[-3:] == ["stop", "message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == reason
    assert relay.done


def test_a_finish_reason_without_done_is_an_end() -> None:
    """Some engines leave the terminator out."""
    relay = _relay()
    _feed(relay, _chunk(content="a"), _chunk("stop"))
    assert not relay.done
    assert _types(_parse(relay.finish())) == ["message_delta", "message_stop"]
    assert relay.done


@pytest.mark.parametrize("data", ["[DONE]", "[DONE] ", " [DONE]"])
def test_spaces_around_done(data: str) -> None:
    """They change nothing."""
    relay = _relay()
    _feed(relay, _chunk(content="a"), data)
    assert relay.done


def test_nothing_follows_the_end() -> None:
    """What an engine still sends, and every further call, is of no interest."""
    relay = _relay()
    _feed(relay, _chunk(content="a"), "[DONE]")
    assert _feed(relay, _chunk(content="b"), {"error": {"message": "late"}}, "no json") == []
    assert relay.finish() == []
    assert relay.fail(_FAILURE) == []


def test_usage_may_come_anywhere() -> None:
    """At the start, twice, after the finish: the last one counts, and nothing is sent for it."""
    relay = _relay()
    usages = [{"choices": [], "usage": _usage(9, n)} for n in (0, 4, 7)]
    assert _feed(relay, usages[0]) == []
    _feed(relay, _chunk(content="a"), _chunk("stop"))
    assert _feed(relay, usages[1], usages[2], {"choices": [], "usage": None}) == []
    assert _feed(relay, "[DONE]")[0]["usage"]["output_tokens"] == 7


def test_other_choices_are_ignored() -> None:
    """Messages have no place for them: neither their text nor their end counts."""
    relay = _relay()
    other = {"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}
    first = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    events = _feed(relay, {"id": "x", "choices": [other, first]}, {"choices": [other]}, "[DONE]")
    assert _blocks(events) == [["text", "a"]]
    assert events[-2]["delta"]["stop_reason"] == "end_turn"


# Failures.


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        ({"error": {"message": "full", "type": "SERVICE_UNAVAILABLE", "code": 503}}, 503, None),
        ({"error": {"message": "bad", "type": "BAD_REQUEST", "code": 400}}, 400, None),
        ({"error": "broken"}, 502, None),
        ({"object": "error", "message": "full", "code": 503}, 503, None),
        (_chunk("abort"), 502, "upstream_aborted"),
        ("{", 502, "upstream_protocol_error"),
        ("[]", 502, "upstream_protocol_error"),
        ("null", 502, "upstream_protocol_error"),
        ({"choices": {}}, 502, "upstream_protocol_error"),
        ({"choices": ["a"]}, 502, "upstream_protocol_error"),
        ({"choices": [{"delta": "a"}]}, 502, "upstream_protocol_error"),
        (_chunk(tool_calls={}), 502, "upstream_protocol_error"),
        (_chunk(tool_calls=["f"]), 502, "upstream_protocol_error"),
    ],
    ids=[
        "overloaded",
        "invalid",
        "text-error",
        "flat-error",
        "abort",
        "no-json",
        "array",
        "null",
        "choices-object",
        "choice-text",
        "delta-text",
        "calls-object",
        "call-text",
    ],
)
@pytest.mark.parametrize("said", [[], [_chunk(content="a")]], ids=["held", "open"])
def test_an_error_or_unreadable_chunk_is_a_failure(
    said: list[Any], payload: Any, status: int, code: str | None
) -> None:
    """The service decides what becomes of it: an HTTP error, or the error ending."""
    relay = _relay()
    _feed(relay, *said)
    with pytest.raises(EngineFailure) as caught:
        _feed(relay, payload)
    assert caught.value.failure.status == status
    assert code is None or caught.value.failure.code == code
    assert not relay.done


@pytest.mark.parametrize(
    "payloads",
    [["[DONE]"], [{"choices": [], "usage": _usage(1, 0)}, "[DONE]"]],
    ids=["alone", "after-usage"],
)
def test_done_without_a_choice_is_a_failure(payloads: list[Any]) -> None:
    """There was no answer, not even an empty one."""
    with pytest.raises(EngineFailure) as caught:
        _feed(_relay(), *payloads)
    assert caught.value.failure.code == "upstream_protocol_error"


@pytest.mark.parametrize(
    "said", [[], [_ROLE], [_chunk(content="a")], [_piece("{}", **_F)]],
    ids=["nothing", "role", "text", "call"],
)  # fmt: skip
def test_an_end_without_finish_or_done_is_a_cut(said: list[Any]) -> None:
    """Half an answer is never passed off as a whole one."""
    relay = _relay()
    _feed(relay, *said)
    with pytest.raises(EngineFailure) as caught:
        relay.finish()
    assert caught.value.failure.code == "upstream_protocol_error"
    assert not relay.done


def test_the_error_ending_closes_the_open_block_first() -> None:
    """Then one error event, and neither `message_delta` nor `message_stop`."""
    relay = _relay()
    _feed(relay, _chunk(content="a"))
    events = _parse(relay.fail(_FAILURE))
    assert events == [
        {"type": "content_block_stop", "index": 0},
        {
            "type": "error",
            "error": {"type": "api_error", "message": "cut"},
            "request_id": "req_1",
        },
    ]
    assert not relay.done


def test_without_an_open_block_there_is_only_the_error() -> None:
    """After the finish every block is closed already."""
    relay = _relay()
    _feed(relay, _chunk(content="a"), _chunk("stop"))
    assert _types(_parse(relay.fail(_FAILURE))) == ["error"]


def test_nothing_follows_the_error_ending() -> None:
    """Not even a terminator that the engine sends after its error."""
    relay = _relay()
    _feed(relay, _chunk(content="a"))
    relay.fail(_FAILURE)
    assert _feed(relay, _chunk("stop"), "[DONE]") == []
    assert relay.finish() == []
    assert relay.fail(_FAILURE) == []
    assert not relay.done


def test_a_call_that_never_got_its_name_is_a_failure_with_closed_blocks() -> None:
    """Frames that were made before the failure was found are not lost."""
    relay = _relay()
    _feed(relay, _chunk(content="a"))
    nameless = _piece("{}", call_id="a")
    nameless["choices"][0]["finish_reason"] = "tool_calls"
    with pytest.raises(EngineFailure):
        _feed(relay, nameless)
    assert _types(_parse(relay.fail(_FAILURE))) == ["stop", "error"]


def test_keepalive_is_a_ping() -> None:
    """The one event that every Messages client knows to ignore."""
    assert _parse([ChatToMessagesRelay.keepalive()]) == [{"type": "ping"}]
