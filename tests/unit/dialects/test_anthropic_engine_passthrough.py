"""Messages clients before an engine that speaks Messages: what passes, and what does not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sse
from gateway.dialects.anthropic_engine import (
    MessagesRelay,
    parse_messages_reply,
    passthrough_edits,
)
from gateway.dialects.errors import EngineFailure, failure_of_kind
from gateway.errors import UPSTREAM_TIMEOUT, GatewayError
from gateway.jsonbody import parse_object


def passed(raw: bytes) -> bytes:
    """The bytes that the engine gets for a client's."""
    body = parse_object(raw)
    return body.edit(passthrough_edits(body))


@pytest.mark.parametrize(
    "raw",
    [
        b'{ "model" : "m", "max_tokens" : 1e2, "messages" : [ {"role":"user","content":"hi"} ] }',
        b'{"messages":[{"role":"user","content":[{"type":"text","text":"\\u00e9"}]}],"x":1.0}',
        (
            b'{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t",'
            b'"signature":"s"},{"type":"tool_use","id":"c","name":"web_search","input":{}}]}]}'
        ),
        b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}',
        b'{"tools":[{"name":"web_search","input_schema":{}},{"type":"custom","name":"f"}]}',
        b'{"tools":null,"tool_choice":{"type":"tool","name":"g"},"system":null}',
        b'{"tools":[],"messages":"malformed","system":5}',
        b'{"messages":[5,{"role":"user"},{"content":[5,{"type":7},{"type":[]}]}]}',
        b'{"system":[],"messages":[]}',
        b'{"system":[5]}',
        b'{"system":[{"type":"text"}]}',
        b'{"system":"about x-anthropic-billing-header: lines"}',
        (
            b'{"system":[{"type":"text","text":"S"},{"type":"text","text":'
            b'"x-anthropic-billing-header: a"}]}'
        ),
        b'{"messages":[{"role":"user","content":"x-anthropic-billing-header: a"}]}',
        b"{}",
    ],
)
def test_what_has_nothing_to_drop_keeps_its_bytes(raw: bytes) -> None:
    """Where nothing has to go, the engine gets what the client sent, malformed or not."""
    body = parse_object(raw)
    assert passthrough_edits(body) == {}
    assert body.edit(passthrough_edits(body)) is raw


DROPS = [
    pytest.param(
        b'{"x":1.0,"messages":[{"role":"assistant", "content":[{"type":"redacted_thinking",'
        b'"data":"d"}, {"type":"tool_use","id":"c","name":"f","input":{"a": 1.0, "b": 1e2}}]},'
        b' {"role":"user","content":"\\u00e9" }],"y":2 }',
        b'{"x":1.0,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c",'
        b'"name":"f","input":{"a": 1.0, "b": 1e2}}]},{"role":"user","content":"\\u00e9" }],"y":2}',
        id="redacted-thinking",
    ),
    pytest.param(
        b'{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},'
        b'{"type":"server_tool_use","id":"s","name":"web_search","input":{}},'
        b'{"type":"web_search_tool_result","tool_use_id":"s","content":[]},'
        b'{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{}},'
        b'{"type":"mcp_tool_use","id":"q"},{"type":"mcp_tool_result","tool_use_id":"q"},'
        b'{"type":"text","text":"b"}]}]}',
        b'{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},'
        b'{"type":"text","text":"b"}]}]}',
        id="blocks-of-server-tools",
    ),
    pytest.param(
        b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":'
        b'[{"type":"redacted_thinking","data":"d"}]},{"role":"user","content":"b"}]}',
        b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""},'
        b'{"role":"user","content":"b"}]}',
        id="an-emptied-turn-stays",
    ),
    pytest.param(
        b'{"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f",'
        b'"input_schema":{"minimum": 1.0}}],"tool_choice":{"type":"any"}}',
        b'{"tools":[{"name":"f","input_schema":{"minimum": 1.0}}],"tool_choice":{"type":"any"}}',
        id="a-hosted-tool",
    ),
    pytest.param(
        b'{"tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any"},"x":1}',
        b'{"x":1}',
        id="hosted-tools-only",
    ),
    pytest.param(
        b'{"tools":[{"type":"bash_20250124","name":"bash"}]}', b"{}", id="hosted-without-a-choice"
    ),
    pytest.param(
        b'{"tools":[{"type":"bash_20250124","name":"bash"},{"name":"f"}],'
        b'"tool_choice":{"type":"tool","name":"bash"}}',
        b'{"tools":[{"name":"f"}]}',
        id="a-choice-of-a-hosted-tool",
    ),
    pytest.param(
        b'{"tools":[{"type":"bash_20250124","name":"bash"},{"name":"bash"}],'
        b'"tool_choice":{"type":"tool","name":"bash"}}',
        b'{"tools":[{"name":"bash"}],"tool_choice":{"type":"tool","name":"bash"}}',
        id="a-choice-of-a-namesake",
    ),
    pytest.param(
        b'{"tools":[{"type":"bash_20250124","name":"bash"},{"name":"f"}],'
        b'"tool_choice":{"type":"tool","name":"g"}}',
        b'{"tools":[{"name":"f"}],"tool_choice":{"type":"tool","name":"g"}}',
        id="a-choice-of-nothing-is-left-to-the-engine",
    ),
    pytest.param(
        b'{"system":[{"type":"text","text":"x-anthropic-billing-header: a; cch=b;"}, '
        b'{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]}',
        b'{"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]}',
        id="billing-block",
    ),
    pytest.param(
        b'{"system":[{"cache_control": null, "type":"text",'
        b'"text":"x-anthropic-billing-header: a\\nS"}]}',
        b'{"system":[{"cache_control": null,"type":"text","text":"S"}]}',
        id="billing-line-of-a-block",
    ),
    pytest.param(
        b'{"x":1,"system":[{"type":"text","text":"x-anthropic-billing-header: a"}]}',
        b'{"x":1}',
        id="billing-block-alone",
    ),
    pytest.param(
        b'{"system":"x-anthropic-billing-header: a\\nS\\nx-anthropic-billing-header: b"}',
        b'{"system":"S\\nx-anthropic-billing-header: b"}',
        id="billing-line-of-a-text",
    ),
    pytest.param(
        b'{"system":"x-anthropic-billing-header: a","x":1}', b'{"x":1}', id="billing-text-alone"
    ),
]


@pytest.mark.parametrize(("raw", "sent"), DROPS)
def test_what_an_engine_refuses_is_dropped_in_place(raw: bytes, sent: bytes) -> None:
    """What goes goes alone: every other value keeps its bytes."""
    assert passed(raw) == sent


@pytest.mark.parametrize(("raw", "sent"), DROPS)
def test_dropping_twice_is_dropping_once(raw: bytes, sent: bytes) -> None:
    """What was dropped leaves nothing behind that would have to be dropped."""
    assert passed(passed(raw)) == sent


def test_a_tool_of_an_unknown_type_is_refused() -> None:
    """It is neither the client's own nor of a vendor's families: the 400 names it."""
    with pytest.raises(GatewayError) as caught:
        passed(b'{"tools":[{"type":"laser","name":"l"}]}')
    assert (caught.value.kind.status, caught.value.param) == (400, "tools[0].type")


REPLY = b'{"type":"message", "model":"served","content":[{"type":"text","text":"\\u00e9"}],"x":1.0}'


def test_a_reply_keeps_its_bytes() -> None:
    """A reply passes as it came; only the model's name is put right, where an alias was used."""
    assert parse_messages_reply(REPLY, None) is REPLY
    assert parse_messages_reply(REPLY, "asked") == (
        b'{"type":"message","model":"asked","content":[{"type":"text","text":"\\u00e9"}],"x":1.0}'
    )


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 502),
        (b"{", 502),
        (b"[]", 502),
        (b"Internal Server Error", 502),
        (b'{"type":"message"}', 502),
        (b'{"content":"a"}', 502),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"full"}}', 503),
        (b'{"error":{"message":"bad","code":400}}', 400),
    ],
)
def test_a_reply_that_is_none(raw: bytes, status: int) -> None:
    """What is no reply is the engine's failure, or the error that it tells of."""
    with pytest.raises(EngineFailure) as caught:
        parse_messages_reply(raw, None)
    assert caught.value.failure.status == status


def event(kind: str, **keys: Any) -> sse.Event:
    """One event, as SGLang writes it."""
    data = json.dumps({"type": kind, **keys}, separators=(",", ":")).encode()
    return sse.Event(kind, data, sse.render_event(data, kind))


START = event("message_start", message={"id": "msg_1", "model": "served", "content": []})
BLOCK = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
WORD = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "é"})
CLOSE = event("content_block_stop", index=0)
CALL = event(
    "content_block_start",
    index=1,
    content_block={"type": "tool_use", "id": "c", "name": "f", "input": {}},
)
PING = event("ping")
ODD = event("some_day", x=1)
DELTA = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
STOP = event("message_stop")
FULL = event("error", error={"type": "overloaded_error", "message": "full"})
WHOLE = [START, BLOCK, WORD, CLOSE, PING, DELTA, STOP]


def raws(*events: sse.Event) -> list[bytes]:
    """The bytes of events."""
    return [item.raw for item in events]


def relay_of(model: str | None = None) -> MessagesRelay:
    """A relay to a Messages client."""
    return MessagesRelay(model=model, request_id="req_1")


def run(relay: MessagesRelay, events: list[sse.Event]) -> tuple[list[bytes], Any]:
    """The frames of a stream, and the failure that ended it, if one did."""
    frames = []
    try:
        for item in events:
            frames += relay.feed(item)
        frames += relay.finish()
    except EngineFailure as failure:
        return frames, failure.failure
    return frames, None


def kinds(frames: list[bytes]) -> list[str]:
    """The types of frames; the name of each event is that of its payload."""
    found = []
    for frame in frames:
        name, data = frame.decode().removesuffix("\n\n").split("\n")
        found.append(json.loads(data.removeprefix("data: "))["type"])
        assert name == f"event: {found[-1]}"
    return found


def test_a_stream_keeps_its_bytes() -> None:
    """Events pass as they came, an element a write, what was held with the first word."""
    relay = relay_of()
    assert [relay.feed(item) for item in WHOLE] == [
        [],
        [],
        raws(START, BLOCK, WORD),
        raws(CLOSE),
        raws(PING),
        raws(DELTA),
        raws(STOP),
    ]
    assert relay.done
    assert relay.finish() == []
    assert relay.feed(PING) == []


def test_the_model_is_the_one_that_was_asked_for() -> None:
    """An alias reads its own name; the rest of the event keeps its bytes."""
    frames, _ = run(relay_of("asked"), WHOLE)
    assert frames == [
        (
            b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
            b'"model":"asked","content":[]}}\n\n'
        ),
        *raws(*WHOLE[1:]),
    ]


@pytest.mark.parametrize(
    ("events", "committed"),
    [
        pytest.param([BLOCK], False, id="empty-text"),
        pytest.param([BLOCK, CLOSE], False, id="empty-text-closed"),
        pytest.param([PING], False, id="ping"),
        pytest.param([ODD], False, id="unknown"),
        pytest.param(
            [
                BLOCK,
                event("content_block_delta", index=0, delta={"type": "text_delta", "text": ""}),
            ],
            False,
            id="empty-piece",
        ),
        pytest.param([BLOCK, WORD], True, id="word"),
        pytest.param(
            [event("content_block_start", index=0, content_block={"type": "text", "text": "a"})],
            True,
            id="text-at-the-start",
        ),
        pytest.param([CALL], True, id="call"),
        pytest.param([DELTA], True, id="the-end"),
        pytest.param([STOP], True, id="an-empty-message"),
    ],
)
def test_the_commit_point(events: list[sse.Event], committed: bool) -> None:
    """Nothing is written before something is said; then all that was held, but for pings."""
    relay = relay_of()
    assert relay.feed(START) == []
    frames = [frame for item in events for frame in relay.feed(item)]
    assert frames == (raws(START, *events) if committed else [])


def test_pings_before_the_first_word_are_gone() -> None:
    """A ping that was held back would only come late."""
    frames, _ = run(relay_of(), [START, PING, ODD, BLOCK, WORD, CLOSE, DELTA, STOP])
    assert frames == raws(START, ODD, BLOCK, WORD, CLOSE, DELTA, STOP)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("overloaded_error", 503), ("invalid_request_error", 400), ("api_error", 502)],
)
@pytest.mark.parametrize("before", [[START], [START, BLOCK, CLOSE], []], ids=len)
def test_an_error_before_the_first_word_is_an_http_error(
    kind: str, status: int, before: list[sse.Event]
) -> None:
    """The engine starts a message before it refuses it; the client sees the refusal alone."""
    relay = relay_of()
    refusal = event("error", error={"type": kind, "message": "why"})
    frames, failure = run(relay, [*before, refusal])
    assert frames == []
    assert (failure.status, failure.message) == (status, "why")
    assert relay.feed(STOP) == []


def test_the_end_after_an_error_does_not_pass() -> None:
    """One error event is the ending; the SDKs would take a `message_stop` for success."""
    relay = relay_of()
    frames, failure = run(relay, [START, BLOCK, WORD, CLOSE, FULL])
    frames += relay.feed(STOP) + relay.fail(failure) + relay.feed(STOP)
    assert kinds(frames) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "error",
    ]
    assert json.loads(frames[-1].partition(b"data: ")[2]) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "full"},
        "request_id": "req_1",
    }


def test_blocks_that_are_open_are_closed_before_an_error() -> None:
    """Clients refuse a block that never stops, so a stream that is given up closes its own."""
    relay = relay_of()
    run(relay, [START, BLOCK, WORD, CALL])
    frames = relay.fail(failure_of_kind(UPSTREAM_TIMEOUT, "slow"))
    assert kinds(frames) == ["content_block_stop", "content_block_stop", "error"]
    assert frames[0] == CLOSE.raw
    assert relay.done
    assert relay.finish() == relay.fail(failure_of_kind(UPSTREAM_TIMEOUT, "slow")) == []


@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_stream_that_is_cut_anywhere_never_looks_whole(cut: int) -> None:
    """Without `message_stop` there is one error, at the end, and every block is closed."""
    relay = relay_of()
    frames, failure = run(relay, WHOLE[:cut])
    assert failure.status == 502
    said = kinds(frames + relay.fail(failure))
    assert said.count("error") == 1
    assert said[-1] == "error"
    assert "message_stop" not in said
    assert said.count("content_block_start") == said.count("content_block_stop")


@pytest.mark.parametrize(
    "item",
    [
        sse.Event("message_start", b"{", b"event: message_start\ndata: {\n\n"),
        sse.Event("ping", b"5", b"event: ping\ndata: 5\n\n"),
        sse.Event(None, b"{}", b"data: {}\n\n"),
        event("content_block_start", index=None, content_block={"type": "text", "text": ""}),
        event("content_block_start", index=0),
        event("content_block_delta", index=0),
        event("content_block_stop"),
        event("message_start", message=5),
        event("message_start"),
    ],
    ids=lambda item: item.data.decode(),
)
def test_a_malformed_event_is_a_failure(item: sse.Event) -> None:
    """What cannot be read ends the stream as the engine's failure, and nothing follows it."""
    relay = relay_of("asked")
    with pytest.raises(EngineFailure) as caught:
        relay.feed(item)
    assert caught.value.failure.status == 502
    assert relay.feed(STOP) == []
    with pytest.raises(EngineFailure):
        relay.finish()


def test_an_end_without_a_message_is_a_failure() -> None:
    """An end alone is no answer."""
    _, failure = run(relay_of(), [STOP])
    assert failure.status == 502


def test_an_event_without_a_name_gets_one() -> None:
    """Anthropic's SDKs go by the name of an event, so one that only its data names is named."""
    unnamed = sse.Event(None, CALL.data, sse.render_event(CALL.data))
    relay = relay_of()
    assert relay.feed(START) + relay.feed(unnamed) == raws(START, CALL)


def test_an_event_without_data_is_none() -> None:
    """Some senders keep a connection alive with it; no client could read it."""
    relay = relay_of()
    relay.feed(START)
    relay.feed(CALL)
    assert relay.feed(sse.Event("ping", b"", b"event: ping\ndata:\n\n")) == []
