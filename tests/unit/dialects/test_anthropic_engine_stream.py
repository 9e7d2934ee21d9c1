"""Replies and streams of an engine that speaks Messages, as Chat clients get them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sse
from gateway.dialects.anthropic_engine import (
    MessagesToChatEvents,
    MessagesToChatRelay,
    chunk_event,
    from_messages_reply,
)
from gateway.dialects.chat import ChatRelay, Look
from gateway.dialects.errors import EngineFailure, failure_of_kind
from gateway.errors import UPSTREAM_TIMEOUT

Json = dict[str, Any]

USAGE = {"input_tokens": 25, "cache_read_input_tokens": 75, "output_tokens": 5}
CHAT_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 5,
    "total_tokens": 105,
    "prompt_tokens_details": {"cached_tokens": 75},
}
DONE = b"data: [DONE]\n\n"


def text(said: str) -> Json:
    """A text block."""
    return {"type": "text", "text": said}


def think(said: str) -> Json:
    """A thinking block."""
    return {"type": "thinking", "thinking": said}


def use(call_id: str = "call_1", name: str = "f", **tool_input: Any) -> Json:
    """A tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}


def reply(*blocks: Json, stop: str | None = "end_turn", **keys: Any) -> Json:
    """A buffered reply, as SGLang writes it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": list(blocks),
        "model": "served",
        "stop_reason": stop,
        "usage": USAGE,
        **keys,
    }


def convert(answer: Json) -> Json:
    """The Chat completion for a buffered reply."""
    return from_messages_reply(answer, model="asked", created=7)


def event(payload: Any, name: str | None = None) -> sse.Event:
    """One event, as an engine sends it; `payload` may be raw bytes."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    kind = name or (None if isinstance(payload, bytes) else payload["type"])
    return sse.Event(kind, data, sse.render_event(data, kind))


def start(**usage: Any) -> sse.Event:
    """`message_start`."""
    message = reply(stop=None, usage={"input_tokens": 25, "output_tokens": 0, **usage})
    return event({"type": "message_start", "message": message})


def block_start(index: int, block: Json) -> sse.Event:
    """`content_block_start`."""
    return event({"type": "content_block_start", "index": index, "content_block": block})


def piece(index: int, kind: str, said: str) -> sse.Event:
    """`content_block_delta`."""
    key = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    delta = {"type": kind, key.get(kind, "signature"): said}
    return event({"type": "content_block_delta", "index": index, "delta": delta})


def block_stop(index: int) -> sse.Event:
    """`content_block_stop`."""
    return event({"type": "content_block_stop", "index": index})


def ending(stop: str | None = "end_turn", **usage: Any) -> list[sse.Event]:
    """`message_delta` and `message_stop`."""
    delta = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}
    return [event(delta), event({"type": "message_stop"})]


def error(kind: str = "api_error", message: Any = "Internal server error") -> sse.Event:
    """`error`."""
    return event({"type": "error", "error": {"type": kind, "message": message}})


PING = event({"type": "ping"})


def stream_of(answer: Json, cut: int = 1) -> list[sse.Event]:
    """The events for a buffered reply, its texts in pieces of `cut` characters."""
    events = [start(cache_read_input_tokens=75)]
    for index, block in enumerate(answer["content"]):
        kind = block["type"]
        arguments = json.dumps(block["input"]) if block.get("input") else ""
        whole = arguments if kind == "tool_use" else block[kind]
        delta = "input_json_delta" if kind == "tool_use" else f"{kind}_delta"
        empty = {**block, "input": {}} if kind == "tool_use" else {"type": kind, kind: ""}
        pieces = [whole[at : at + cut] for at in range(0, len(whole), cut)]
        events += [block_start(index, empty), *(piece(index, delta, said) for said in pieces)]
        events.append(block_stop(index))
    return [*events, *ending(answer["stop_reason"], output_tokens=5)]


def chunks_of(events: list[sse.Event]) -> list[Json]:
    """The chunks that a stream amounts to."""
    converter = MessagesToChatEvents(model="asked", created=7)
    chunks = [chunk for item in events for chunk in converter.feed(item)]
    assert converter.finish() == []
    return chunks


def fold(chunks: list[Json]) -> Json:
    """The completion that a client makes of a stream's chunks."""
    message = {"role": None, "content": "", "reasoning_content": ""}
    calls = []
    last = {}
    for chunk in chunks:
        assert {key: chunk[key] for key in ("id", "object", "created", "model")} == {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 7,
            "model": "asked",
        }
        for choice in chunk["choices"]:
            delta = dict(choice["delta"])
            for call in delta.pop("tool_calls", []):
                if call["index"] == len(calls):
                    calls.append({**call, "function": dict(call["function"])})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
            message["role"] = delta.pop("role", message["role"])
            for key, said in delta.items():
                message[key] += said
            last = choice
    for call in calls:
        del call["index"]
    message["reasoning_content"] = message["reasoning_content"] or None
    if calls:
        message["tool_calls"] = calls
    keys = ("index", "logprobs", "finish_reason", "matched_stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "asked",
        "choices": [{"message": message, **{key: last[key] for key in keys}}],
        "usage": chunks[-1]["usage"],
    }


def parsed(completion: Json) -> Json:
    """A completion with its calls' arguments read: how they are spaced is nobody's business."""
    read = json.loads(json.dumps(completion))
    for call in read["choices"][0]["message"].get("tool_calls", []):
        said = call["function"]["arguments"]
        call["function"]["arguments"] = json.loads(said) if said else "cut off"
    return read


def relay_of(**look: bool) -> MessagesToChatRelay:
    """A relay to a Chat client."""
    return MessagesToChatRelay(model="asked", created=7, look=Look(**look), request_id="r")


def frames_of(relay: MessagesToChatRelay, events: list[sse.Event]) -> tuple[list[bytes], Any]:
    """The frames of a stream, and those of the failure that ended it, if one did."""
    frames = []
    try:
        for item in events:
            frames += relay.feed(item)
        frames += relay.finish()
    except EngineFailure as failure:
        return frames, failure.failure
    return frames, None


def payloads(frames: list[bytes]) -> list[Json]:
    """The JSON of frames."""
    return [json.loads(frame.removeprefix(b"data: ")) for frame in frames if frame != DONE]


def test_a_reply_with_everything() -> None:
    """Thinking, text and calls find their places; the model is the one that was asked for."""
    answer = reply(think("t"), text("a"), use("c1", a=1), text("\n"), use("c2"), stop="tool_use")
    assert convert(answer) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "asked",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "a\n",
                    "reasoning_content": "t",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"a":1}'},
                        },
                        {
                            "id": "c2",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        },
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
                "matched_stop": None,
            }
        ],
        "usage": CHAT_USAGE,
    }


@pytest.mark.parametrize(
    ("blocks", "content"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param([text("")], "", id="empty"),
        pytest.param([think("t")], "", id="thinking-only"),
        pytest.param([use()], "", id="call-only"),
        pytest.param([text("a"), text("b")], "ab", id="two-texts"),
        pytest.param([{"type": "redacted_thinking", "data": "x"}, text("a")], "a", id="redacted"),
    ],
)
def test_the_text_of_a_reply(blocks: Json, content: Any) -> None:
    """Texts are one text; null beside calls and empty without any."""
    assert convert(reply(*blocks))["choices"][0]["message"]["content"] == content


FINISHES = [
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("pause_turn", "stop"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("tool_use", "tool_calls"),
    ("refusal", "content_filter"),
    ("some_day", "stop"),
    (None, "stop"),
]


@pytest.mark.parametrize(("stop", "finish"), FINISHES)
def test_finish_reasons(stop: str | None, finish: str) -> None:
    """Every stop reason has a finish reason, buffered and streamed; there is always one."""
    assert convert(reply(text("a"), stop=stop))["choices"][0]["finish_reason"] == finish
    folded = fold(chunks_of(stream_of(reply(text("a"), stop=stop))))
    assert folded["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(
    ("stop", "finish"),
    [("end_turn", "tool_calls"), (None, "tool_calls"), ("max_tokens", "length")],
)
def test_a_finish_beside_calls(stop: str | None, finish: str) -> None:
    """Where there are calls, a plain end is that of calls; a cut one stays a cut one."""
    answer = reply(use(a=1), stop=stop)
    assert convert(answer)["choices"][0]["finish_reason"] == finish
    assert fold(chunks_of(stream_of(answer)))["choices"][0]["finish_reason"] == finish


def test_the_stop_text_is_passed_on() -> None:
    """An engine that names the stop sequence has it named to the client."""
    named = convert(reply(text("a"), stop="stop_sequence", stop_sequence="END"))
    assert named["choices"][0]["matched_stop"] == "END"


@pytest.mark.parametrize(
    ("usage", "prompt", "cached", "completion"),
    [
        pytest.param(
            {
                "input_tokens": 25,
                "cache_read_input_tokens": 75,
                "cache_creation_input_tokens": 10,
                "output_tokens": 5,
            },
            110,
            75,
            5,
            id="all",
        ),
        pytest.param({"input_tokens": 3, "output_tokens": 1}, 3, 0, 1, id="no-cache"),
        pytest.param(
            {"input_tokens": 3, "cache_read_input_tokens": None, "output_tokens": None},
            3,
            0,
            0,
            id="nulls",
        ),
        pytest.param({}, 0, 0, 0, id="empty"),
        pytest.param(None, 0, 0, 0, id="none"),
    ],
)
def test_cached_tokens_are_added_back(
    usage: Any, prompt: int, cached: int, completion: int
) -> None:
    """Chat's prompt tokens include what the cache held; Messages' input tokens do not."""
    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    assert convert(reply(text("a"), usage=usage))["usage"] == counted


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"type": "message"},
        reply(content=None),
        reply(content="a"),
        reply(content=["a"]),
        reply({"type": "text", "text": 1}),
        reply({"type": "tool_use", "name": "f", "input": {}}),
        reply({"type": "tool_use", "id": "c", "name": "", "input": {}}),
    ],
)
def test_a_reply_that_is_none(answer: Json) -> None:
    """What cannot be read as a reply is the engine's failure, not an empty answer."""
    with pytest.raises(EngineFailure) as caught:
        convert(answer)
    assert caught.value.failure.status == 502


def test_an_error_in_a_reply() -> None:
    """An error that came with the status 200 keeps its own."""
    with pytest.raises(EngineFailure) as caught:
        convert({"type": "error", "error": {"type": "overloaded_error", "message": "full"}})
    assert (caught.value.failure.status, caught.value.failure.message) == (503, "full")


NAMES = st.sampled_from(["f", "g"])
SAID = st.text(st.characters(codec="utf-8"), max_size=6)
INPUTS = st.dictionaries(SAID, st.none() | st.booleans() | st.integers() | SAID, max_size=2)
BLOCKS = st.lists(
    st.builds(text, SAID) | st.builds(think, SAID) | st.tuples(NAMES, INPUTS), max_size=5
).map(
    lambda blocks: [
        {"type": "tool_use", "id": f"c{at}", "name": block[0], "input": block[1]}
        if isinstance(block, tuple)
        else block
        for at, block in enumerate(blocks)
    ]
)
REPLIES = st.builds(
    lambda blocks, stop: reply(*blocks, stop=stop),
    BLOCKS,
    st.sampled_from([stop for stop, _ in FINISHES]),
)


@given(answer=REPLIES, cut=st.integers(1, 4))
def test_a_stream_amounts_to_the_buffered_reply(answer: Json, cut: int) -> None:
    """However an answer is cut into pieces, a client puts together what it would get at once."""
    assert parsed(fold(chunks_of(stream_of(answer, cut)))) == parsed(convert(answer))


@given(answer=REPLIES, data=st.data())
def test_a_stream_that_is_cut_anywhere_never_looks_whole(answer: Json, data: st.DataObject) -> None:
    """Without `message_stop` there is one error, and neither a finish reason nor an end."""
    events = stream_of(answer)
    relay = relay_of(usage_chunk=True)
    frames, failure = frames_of(relay, events[: data.draw(st.integers(0, len(events) - 1))])
    assert failure is not None
    assert failure.status == 502
    frames += relay.fail(failure)
    said = payloads(frames)
    assert DONE not in frames
    assert [index for index, payload in enumerate(said) if "error" in payload] == [len(said) - 1]
    assert all(item["choices"][0]["finish_reason"] is None for item in said[:-1])
    assert relay.done
    assert relay.feed(events[-1]) == relay.finish() == relay.fail(failure) == []


@pytest.mark.parametrize(
    ("stop", "blocks", "arguments"),
    [
        pytest.param("tool_use", [use("a"), use("b")], ["{}", "{}"], id="whole"),
        pytest.param("max_tokens", [use("a"), use("b")], ["{}", ""], id="cut"),
        pytest.param("max_tokens", [use("a"), text("x")], ["{}"], id="cut-in-a-later-text"),
        pytest.param("max_tokens", [use("a", n=1)], ['{"n":1}'], id="cut-after-the-arguments"),
    ],
)
def test_a_call_that_was_cut_off_has_no_arguments(
    stop: str, blocks: list[Json], arguments: list[str]
) -> None:
    """A budget that ended before the arguments is no call without any: nobody may run it."""
    answer = reply(*blocks, stop=stop)
    for shown in (convert(answer), fold(chunks_of(stream_of(answer)))):
        calls = shown["choices"][0]["message"]["tool_calls"]
        said = [call["function"]["arguments"].replace(" ", "") for call in calls]
        assert said == arguments


def test_calls_are_numbered_by_call_and_have_arguments() -> None:
    """Numbers count the calls, whatever the blocks between them; no deltas means `{}`."""
    events = [
        start(),
        *(block_start(0, text("")), piece(0, "text_delta", "a"), block_stop(0)),
        *(block_start(1, use("c1")), block_stop(1)),
        *(block_start(2, text("")), piece(2, "text_delta", "\n"), block_stop(2)),
        *(block_start(5, use("c2")), piece(5, "input_json_delta", "")),
        *(piece(5, "input_json_delta", '{"a"'), piece(5, "input_json_delta", ":1}")),
        block_stop(5),
        *(block_start(6, use("c3", a=[2])), block_stop(6)),
        *ending("tool_use"),
    ]
    calls = [
        call
        for chunk in chunks_of(events)
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", [])
    ]

    def named(number: int, call_id: str) -> Json:
        function = {"name": "f", "arguments": ""}
        return {"index": number, "id": call_id, "type": "function", "function": function}

    def arguments(number: int, said: str) -> Json:
        return {"index": number, "function": {"arguments": said}}

    assert calls == [
        named(0, "c1"),
        arguments(0, "{}"),
        named(1, "c2"),
        arguments(1, '{"a"'),
        arguments(1, ":1}"),
        named(2, "c3"),
        arguments(2, '{"a":[2]}'),
    ]


def test_calls_that_interleave_or_never_close() -> None:
    """Pieces go to the call of their block; a call left open at the end gets its `{}` there."""
    folded = fold(
        chunks_of(
            [
                start(),
                block_start(0, use("c1")),
                block_start(1, use("c2")),
                piece(0, "input_json_delta", '{"a":'),
                piece(0, "input_json_delta", "1}"),
                *ending("tool_use"),
            ]
        )
    )
    calls = folded["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [
        ("c1", '{"a":1}'),
        ("c2", "{}"),
    ]


def test_what_chat_has_no_place_for_is_left_out() -> None:
    """Pings, signatures, blocks of vendors' tools and unknown events amount to nothing."""
    events = [
        start(),
        PING,
        event(b"", "ping"),
        event({"type": "some_day", "x": 1}),
        block_start(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        piece(0, "input_json_delta", '{"q":1}'),
        block_stop(0),
        block_start(1, {"type": "redacted_thinking", "data": "x"}),
        block_stop(1),
        block_start(2, think("")),
        piece(2, "signature_delta", "s"),
        block_stop(2),
        block_stop(9),
        block_start(3, text("a")),
        *ending(),
    ]
    assert [chunk["choices"] and chunk["choices"][0]["delta"] for chunk in chunks_of(events)] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {},
        [],
    ]


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        pytest.param(
            {"cache_read_input_tokens": 75}, {"output_tokens": 5}, CHAT_USAGE, id="as-sglang"
        ),
        pytest.param(
            {"input_tokens": 0},
            {"input_tokens": 25, "cache_read_input_tokens": 75, "output_tokens": 5},
            CHAT_USAGE,
            id="late",
        ),
        pytest.param(
            {"cache_read_input_tokens": 75},
            {"output_tokens": 5, "input_tokens": None},
            CHAT_USAGE,
            id="nulls-change-nothing",
        ),
    ],
)
def test_usage_is_gathered_over_the_stream(first: Any, last: Json, usage: Any) -> None:
    """The last count of each kind that was stated is the one that is told."""
    chunks = chunks_of([start(**first), *ending("end_turn", **last)])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == usage


@pytest.mark.parametrize(
    "item",
    [
        event(b"{", "message_start"),
        event(b"[]", "message_start"),
        event(b"\xff", "ping"),
        event(b"{}"),
        event(b'{"a": 1e400}', "ping"),
        event({"type": "message_start"}),
        event({"type": "content_block_start", "index": 1}),
        event({"type": "content_block_start", "index": "1", "content_block": text("")}),
        event({"type": "content_block_start", "index": [1], "content_block": text("")}),
        block_start(1, {"type": "tool_use", "id": "c"}),
        block_start(1, {"type": "text", "text": 1}),
        piece(7, "text_delta", "a"),
        piece(0, "text_delta", 5),
        event({"type": "content_block_delta", "index": 0, "delta": None}),
        event({"type": "message_delta"}),
    ],
    ids=lambda item: item.data.decode("latin-1"),
)
def test_a_malformed_event_is_a_failure(item: sse.Event) -> None:
    """What cannot be read ends the stream as the engine's failure, and nothing follows it."""
    converter = MessagesToChatEvents(model="asked", created=7)
    converter.feed(start())
    converter.feed(block_start(0, text("")))
    with pytest.raises(EngineFailure) as caught:
        converter.feed(item)
    assert caught.value.failure.status == 502
    assert converter.feed(event({"type": "message_stop"})) == []
    with pytest.raises(EngineFailure):
        converter.finish()


@pytest.mark.parametrize(
    "events",
    [
        [],
        [PING],
        [event({"type": "message_stop"})],
        ending(),
        [block_start(0, text("a")), *ending()],
    ],
)
def test_a_stream_without_a_message_is_a_failure(events: list[sse.Event]) -> None:
    """An end alone is no answer."""
    frames, failure = frames_of(relay_of(), events)
    assert frames == []
    assert failure is not None
    assert failure.status == 502


def test_a_chat_client_gets_chunks_and_the_end() -> None:
    """The role comes with the first word; then chunks, an element a write, and `[DONE]`."""
    events = [
        start(),
        block_start(0, text("")),
        PING,
        piece(0, "text_delta", "a"),
        block_stop(0),
        *ending(output_tokens=5),
    ]
    relay = relay_of()
    frames = [relay.feed(item) for item in events]
    assert [len(written) for written in frames] == [0, 0, 0, 2, 0, 0, 2]
    flat = [frame for written in frames for frame in written]
    assert [chunk["choices"][0]["delta"] for chunk in payloads(flat)] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
        {},
    ]
    assert flat[-1] == DONE
    assert relay.done
    assert relay.finish() == []


@pytest.mark.parametrize(
    ("first", "committed"),
    [
        (block_start(0, use()), True),
        (block_start(0, text("")), False),
        (block_start(0, text("a")), True),
        (block_start(0, think("")), False),
        (PING, False),
        (ending()[0], False),
    ],
)
def test_the_commit_point(first: Any, committed: bool) -> None:
    """Nothing is written before something is said: a call, a text, a thought, or the end."""
    relay = relay_of()
    assert relay.feed(start()) == []
    assert bool(relay.feed(first)) is committed


@pytest.mark.parametrize("asked", [True, False])
def test_the_usage_chunk_is_for_those_who_asked(asked: bool) -> None:
    """The last chunk before `[DONE]` is the usage, where the client asked for it."""
    frames, _ = frames_of(relay_of(usage_chunk=asked), stream_of(reply(text("a"))))
    usages = [chunk["usage"] for chunk in payloads(frames) if "usage" in chunk]
    assert usages == ([CHAT_USAGE] if asked else [])


def test_reasoning_by_the_name_that_the_client_expects() -> None:
    """`reasoning_content` reads `reasoning` where that was asked for."""
    frames, _ = frames_of(relay_of(rename_reasoning=True), stream_of(reply(think("t"))))
    assert payloads(frames)[1]["choices"][0]["delta"] == {"reasoning": "t"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [("overloaded_error", 503), ("invalid_request_error", 400), ("api_error", 502), ("odd", 502)],
)
def test_an_error_before_the_first_word_is_an_http_error(kind: str, status: int) -> None:
    """The engine starts a message before it refuses it; the client sees the refusal alone."""
    relay = relay_of()
    frames, failure = frames_of(
        relay, [start(), error(kind, "why"), event({"type": "message_stop"})]
    )
    assert frames == []
    assert failure is not None
    assert (failure.status, failure.message) == (status, "why")
    assert relay.feed(event({"type": "message_stop"})) == []


def test_an_error_after_words_is_the_last_event() -> None:
    """One error event, no `[DONE]`, though the engine sends its `message_stop` all the same."""
    relay = relay_of()
    events = [start(), block_start(0, text("a")), block_stop(0), error()]
    frames, failure = frames_of(relay, [*events, event({"type": "message_stop"})])
    assert failure is not None
    frames += relay.fail(failure)
    frames += relay.feed(event({"type": "message_stop"}))
    assert list(payloads(frames)[-1]) == ["error"]
    assert DONE not in frames


def test_a_stream_that_is_given_up_says_why() -> None:
    """A failure that the gateway found ends the stream in the words of Chat."""
    relay = relay_of()
    frames_of(relay, [start(), block_start(0, text("a"))])
    (frame,) = relay.fail(failure_of_kind(UPSTREAM_TIMEOUT, "slow"))
    assert payloads([frame])[0]["error"]["code"] == "upstream_timeout"
    assert relay.finish() == []


def test_chunks_feed_a_relay_of_chat_streams() -> None:
    """Two converters in a row: what comes out is what a Chat engine would have sent."""
    relay = ChatRelay(Look(usage_chunk=True), request_id="r")
    frames = []
    for chunk in chunks_of(stream_of(reply(think("t"), text("a"), use(a=1)))):
        frames += relay.feed(chunk_event(chunk))
    frames += relay.finish()
    assert frames[-1] == DONE
    assert parsed(fold(payloads(frames))) == parsed(convert(reply(think("t"), text("a"), use(a=1))))
