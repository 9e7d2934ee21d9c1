"""Chat streams as streams of Responses events."""

import json
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent

from gateway import sse
from gateway.dialects.errors import EngineFailure, failure_of_kind
from gateway.dialects.responses import (
    KEEPALIVE,
    ChatToResponsesRelay,
    Converted,
    from_chat_reply,
    to_chat,
)
from gateway.errors import UPSTREAM_PROTOCOL

SDK_EVENTS = {
    get_args(event.model_fields["type"].annotation)[0]: event
    for event in get_args(get_args(ResponseStreamEvent)[0])
}
ENDS = {"response.completed", "response.incomplete", "response.failed"}
TOOLS = [
    {"type": "function", "name": "f"},
    {"type": "custom", "name": "patch"},
    {
        "type": "namespace",
        "name": "crm",
        "description": "d",
        "tools": [{"type": "function", "name": "find"}],
    },
]
FORMAT = {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}
BROKEN = failure_of_kind(UPSTREAM_PROTOCOL, "The engine's stream was cut off.")


def convert(**body: Any) -> Converted:
    """A request that has a model, an input and the tools above."""
    return to_chat({"model": "m", "input": "Hi", "stream": True, "tools": TOOLS, **body})


CONVERTED = convert()


def build_relay(converted: Converted = CONVERTED) -> ChatToResponsesRelay:
    """A relay of the response that the buffered replies here have too."""
    return ChatToResponsesRelay(converted, model="alias", response_id="resp_0f", created_at=7)


def event_of(payload: Any) -> sse.Event:
    """An event of the engine."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return sse.Event(None, data, b"data: " + data + b"\n\n")


def chunk(finish: str | None = None, *, logprobs: Any = None, **delta: Any) -> dict[str, Any]:
    """A chunk of the engine's stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def calls(index: Any, call_id: str | None, name: str | None, said: Any) -> dict[str, Any]:
    """A chunk with a piece of a tool call."""
    piece = {"index": index, "id": call_id, "function": {"name": name, "arguments": said}}
    return chunk(content=None, tool_calls=[piece])


ROLE = chunk(role="assistant", content="")
USED = {"choices": [], "usage": USAGE}
DONE = b"[DONE]"


def parse(frames: list[bytes]) -> list[dict[str, Any]]:
    """The events of frames: one a frame, named as its data says, as the SDK knows them."""
    events = []
    for frame in frames:
        head, data, *rest = frame.decode().split("\n")
        assert rest == ["", ""]
        event = json.loads(data.removeprefix("data: "))
        assert head == f"event: {event['type']}"
        SDK_EVENTS[event["type"]].model_validate(event)
        if "response" in event:
            Response.model_validate(event["response"])
        events.append(event)
    return events


def run(payloads: list[Any], converted: Converted = CONVERTED) -> list[dict[str, Any]]:
    """All events of a stream of the engine, which ends, or breaks, after the payloads."""
    relay = build_relay(converted)
    frames: list[bytes] = []
    try:
        for payload in payloads:
            frames += relay.feed(event_of(payload))
        frames += relay.finish()
    except EngineFailure as error:
        frames += relay.fail(error.failure)
    assert relay.done
    assert relay.feed(event_of(chunk(content="late"))) == []
    assert relay.finish() == []
    assert relay.fail(BROKEN) == []
    return parse(frames)


def feed_in_silence(relay: ChatToResponsesRelay, payloads: list[Any]) -> None:
    """A stream that ends before anything was sent."""
    for payload in payloads:
        assert relay.feed(event_of(payload)) == []
    relay.finish()


def types_of(events: list[dict[str, Any]]) -> list[str]:
    """The events' types, without what they all begin with."""
    return [event["type"].removeprefix("response.") for event in events]


def check(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Checks what holds for every stream; returns the final object."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert types_of(events[:2]) == ["created", "in_progress"]
    assert [event["type"] in ENDS for event in events] == [False] * (len(events) - 1) + [True]
    for event in events[:2]:
        assert event["response"]["status"] == "in_progress"
        assert event["response"]["output"] == []
    final: dict[str, Any] = events[-1]["response"]
    assert events[-1]["type"] == f"response.{final['status']}"
    told = [told_item(events, index) for index in range(len(final["output"]))]
    assert told == final["output"]
    assert {event["output_index"] for event in events[2:-1]} == set(range(len(told)))
    return final


def told_item(events: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """The item that a client puts together from deltas, which every other event agrees with."""
    own = [event for event in events if event.get("output_index") == index]
    added, *inner, done = own
    assert added["type"] == "response.output_item.added"
    assert done["type"] == "response.output_item.done"
    item: dict[str, Any] = done["item"]
    assert (added["item"]["id"], added["item"]["status"]) == (item["id"], "in_progress")
    assert {event["item_id"] for event in inner} <= {item["id"]}
    text = "".join(event.get("delta", "") for event in inner)
    key = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"])
    if key is not None:
        assert added["item"][key] == ""
        assert inner[-1]["type"].endswith(".done")
        assert text == inner[-1][key]
        return {**item, key: text}
    first, *deltas, text_done, part_done = inner
    assert first["type"] == "response.content_part.added"
    assert {event["type"] for event in deltas} <= {text_done["type"].replace(".done", ".delta")}
    assert (added["item"]["content"], first["part"]["text"]) == ([], "")
    assert text == text_done["text"]
    part = {**first["part"], "text": text}
    if item["type"] == "message":
        part["logprobs"] = [each for event in deltas for each in event["logprobs"]]
        assert text_done["logprobs"] == part["logprobs"]
    assert part_done["part"] == part
    return {**item, "content": [part]}


def test_a_whole_stream() -> None:
    """Reasoning, text and a call, each item from its beginning to its end, then the end."""
    events = run(
        [
            ROLE,
            chunk(reasoning_content="Hm"),
            chunk(content="Hel"),
            chunk(content="lo"),
            calls(0, "call_1", "crm__find", ""),
            calls(0, None, None, '{"q":'),
            calls(0, None, None, "1}"),
            chunk("tool_calls"),
            USED,
            DONE,
        ]
    )
    assert types_of(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    final = check(events)
    assert (final["id"], final["model"], final["created_at"]) == ("resp_0f", "alias", 7)
    assert final["usage"]["total_tokens"] == 11
    assert [item["id"] for item in final["output"]] == ["rs_0f_0", "msg_0f_1", "fc_0f_2"]
    assert final["output"][2] == {
        "id": "fc_0f_2",
        "type": "function_call",
        "arguments": '{"q":1}',
        "call_id": "call_1",
        "name": "find",
        "namespace": "crm",
        "status": "completed",
    }


def test_nothing_is_sent_before_the_engine_says_something() -> None:
    """Until then a failure is still a real HTTP error."""
    relay = build_relay()
    for payload in (ROLE, USED, {"choices": None}, {}, chunk(reasoning_content=None, content="")):
        assert relay.feed(event_of(payload)) == []
    assert relay.feed(sse.Event("ping", b"", b"")) == []
    assert types_of(parse(relay.feed(event_of(chunk(content="x"))))) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
    ]


@pytest.mark.parametrize(
    ("payload", "first"),
    [
        (chunk(reasoning="r"), "output_item.added"),
        (calls(0, "a", "f", ""), "output_item.added"),
        (calls(0, "a", "patch", ""), "output_item.added"),
        (chunk("stop"), "output_item.added"),
        (chunk("length"), "output_item.added"),
    ],
    ids=["reasoning", "call", "custom-call", "finish", "cut"],
)
def test_what_says_something_begins_the_stream(payload: Any, first: str) -> None:
    """Reasoning under either name, a call before its arguments, and a bare end."""
    assert types_of(parse(build_relay().feed(event_of(payload))))[2] == first


@pytest.mark.parametrize(
    ("payloads", "end", "texts"),
    [
        ([chunk(content="a"), USED, DONE], "completed", ["a"]),
        ([chunk(content="a"), chunk("stop")], "completed", ["a"]),
        ([chunk(content="a"), chunk("stop"), DONE], "completed", ["a"]),
        ([chunk(content="a"), chunk("stop"), chunk(content="b"), DONE], "completed", ["a"]),
        ([chunk("stop", content="a"), DONE], "completed", ["a"]),
        ([ROLE, chunk("stop"), DONE], "completed", [""]),
        ([ROLE, DONE], "completed", [""]),
        ([chunk(content="a"), b" [DONE] "], "completed", ["a"]),
        ([chunk(content="a"), chunk("length"), USED, DONE], "incomplete", ["a"]),
        ([chunk(content="a"), chunk("content_filter"), DONE], "incomplete", ["a"]),
        ([chunk(content="a")], "failed", ["a"]),
        ([chunk(content="a"), {"error": {"message": "x", "code": 503}}, DONE], "failed", ["a"]),
        ([chunk(content="a"), {"object": "error", "message": "x"}], "failed", ["a"]),
        ([chunk(content="a"), chunk("abort"), DONE], "failed", ["a"]),
        ([chunk(content="a"), b"{"], "failed", ["a"]),
        ([chunk(content="a"), b"[1]"], "failed", ["a"]),
        ([chunk(content="a"), {"choices": "x"}], "failed", ["a"]),
        ([chunk(content="a"), {"choices": [{"delta": "x"}]}], "failed", ["a"]),
        ([chunk(content="a"), chunk(content=1)], "failed", ["a"]),
    ],
    ids=[
        "no-finish",
        "no-done",
        "proper",
        "said-after-the-end",
        "finish-with-text",
        "empty",
        "role-then-done",
        "padded-done",
        "length",
        "filtered",
        "cut",
        "error",
        "flat-error",
        "abort",
        "half-a-frame",
        "no-object",
        "choices",
        "delta",
        "content",
    ],
)
def test_a_stream_ends_once_and_its_items_before_it(
    payloads: list[Any], end: str, texts: list[str]
) -> None:
    """`[DONE]` or a finish reason is an end; anything else is a failure, and told as one."""
    final = check(run(payloads))
    assert final["status"] == end
    assert [item["content"][0]["text"] for item in final["output"]] == texts
    last = "completed" if end == "completed" else "incomplete"
    assert final["output"][-1]["status"] == last
    assert (final["error"] is not None) is (end == "failed")


def test_a_failure_is_told_with_its_reason() -> None:
    """The engine's words, under the one code that every client knows."""
    error = {"error": {"message": "The request queue is full.", "code": 503}}
    final = check(run([chunk(content="a"), {**USED, "choices": []}, error]))
    assert final["error"] == {"code": "server_error", "message": "The request queue is full."}
    assert final["usage"]["input_tokens"] == 5
    assert final["incomplete_details"] is None


@pytest.mark.parametrize(
    ("payloads", "status"),
    [
        ([], 502),
        ([ROLE], 502),
        ([DONE], 502),
        ([USED, DONE], 502),
        ([ROLE, {"error": {"message": "x", "code": 503, "type": "SERVICE_UNAVAILABLE"}}], 503),
        ([chunk("abort")], 502),
        ([b"\xff"], 502),
    ],
    ids=["end", "role", "done", "usage", "full", "abort", "unreadable"],
)
def test_a_failure_before_the_first_word_is_an_http_error(payloads: list[Any], status: int) -> None:
    """Nothing was sent, and the failure says with which status to answer."""
    relay = build_relay()
    with pytest.raises(EngineFailure) as caught:
        feed_in_silence(relay, payloads)
    assert caught.value.failure.status == status


def test_calls_that_are_written_at_once_are_kept_apart() -> None:
    """The first one streams, the others wait for it, and each has its own arguments."""
    relay = build_relay()
    fed = [
        [event["type"] for event in parse(relay.feed(event_of(payload)))]
        for payload in (
            calls(0, "a", "f", ""),
            calls(1, "b", "crm__find", ""),
            calls(0, None, None, '{"x":'),
            calls(1, None, None, '{"y":'),
            calls(1, None, None, "2}"),
            calls(0, None, None, "1}"),
            calls(2, "c", "f", ""),
        )
    ]
    delta = "response.function_call_arguments.delta"
    added = "response.output_item.added"
    done = ["response.function_call_arguments.done", "response.output_item.done"]
    assert fed[1:] == [
        [],
        [delta],
        [],
        [],
        [delta, *done, added, delta],
        [*done, added],
    ]
    (end,) = parse(relay.feed(event_of(chunk("tool_calls"))))[-1:]
    assert end["item"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("payloads", "output"),
    [
        (
            [calls(0, "a", "f", '{"n":1}'), calls(0, "b", "f", '{"n":2}')],
            [("a", '{"n":1}'), ("b", '{"n":2}')],
        ),
        (
            [calls(0, "a", "f", '{"n":'), calls(0, "a", "f", "1}")],
            [("a", '{"n":1}')],
        ),
        (
            [
                calls(None, "a", "f", '{"n":'),
                calls(None, None, None, "1}"),
                calls(None, "b", "f", "{}"),
            ],
            [("a", '{"n":1}'), ("b", "{}")],
        ),
        (
            [calls(0, "a", None, '{"n"'), calls(0, None, "f", ":1}")],
            [("a", '{"n":1}')],
        ),
        (
            [calls(0, "a", "f", "{}"), calls(1, "a", "f", "{}")],
            [("a", "{}"), ("call_0f_1", "{}")],
        ),
        (
            [calls(0, "a", "f", None), calls(1, "b", "f", " ")],
            [("a", "{}"), ("b", "{}")],
        ),
        (
            [calls(0, "a", "f", {"n": 1})],
            [("a", '{"n":1}')],
        ),
        (
            [calls(0, "a", "f", "{}"), chunk(content="\n"), calls(1, "b", "f", "{}")],
            [("a", "{}"), ("b", "{}")],
        ),
        (
            [chunk(content="\n"), chunk(content="\n"), calls(0, "a", "f", "{}")],
            [("a", "{}")],
        ),
    ],
    ids=[
        "number-used-again",
        "name-repeated",
        "no-numbers",
        "late-name",
        "id-used-again",
        "no-arguments",
        "object",
        "blank-between",
        "blank-before",
    ],
)
def test_pieces_find_their_call(payloads: list[Any], output: list[Any]) -> None:
    """By number and id, in the ways in which engines leave either out or use it again."""
    final = check(run([*payloads, chunk("tool_calls"), DONE]))
    assert [(item["call_id"], item["arguments"]) for item in final["output"]] == output


@pytest.mark.parametrize("end", [chunk("length"), b"{"], ids=["length", "failure"])
def test_a_call_that_was_cut_off_is_not_one_without_arguments(end: Any) -> None:
    """A client that runs tools as their items end must not run this one with nothing."""
    final = check(run([calls(0, "a", "f", " "), end]))
    assert final["output"][0]["arguments"] == ""
    assert final["output"][0]["status"] == "incomplete"


def test_a_failure_tells_only_of_items_that_began() -> None:
    """A call that waited for its turn was never announced, so it is not closed either."""
    events = run([calls(0, "a", "f", "{"), calls(1, "b", "f", "{}"), b"{"])
    final = check(events)
    assert [item["call_id"] for item in final["output"]] == ["a"]


def test_text_after_a_call_is_a_message_of_its_own() -> None:
    """Items keep the order in which the engine began them."""
    payloads = [
        chunk(content="a"),
        calls(0, "c", "f", "{}"),
        chunk(content="\n"),
        chunk(content="b"),
    ]
    final = check(run([*payloads, chunk("stop")]))
    assert [item["type"] for item in final["output"]] == ["message", "function_call", "message"]
    assert final["output"][2]["content"][0]["text"] == "\nb"


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ([chunk(content="\n"), chunk(content="a"), chunk(content=" b")], ["\na b"]),
        ([chunk(reasoning_content="r"), chunk(content="\n"), chunk(content="a")], ["r", "\na"]),
        ([chunk(reasoning_content="r"), chunk(content="\n")], ["r"]),
        ([chunk(content="\n"), chunk(content=" ")], ["\n "]),
    ],
    ids=["leading", "after-reasoning", "trailing", "alone"],
)
def test_a_blank_text_is_no_message(said: list[Any], texts: list[str]) -> None:
    """It leaves with the text that follows it; alone it stands only where nothing else does."""
    final = check(run([*said, chunk("stop"), DONE]))
    assert [item["content"][0]["text"] for item in final["output"]] == texts


def test_a_custom_call_streams_its_text_and_no_json() -> None:
    """The text is told when it is whole, out of the property that holds it."""
    payloads = [calls(0, "a", "patch", '{"inp'), calls(0, None, None, 'ut":"x\\ny"}')]
    events = run([*payloads, chunk("tool_calls"), DONE])
    check(events)
    assert types_of(events)[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert events[3]["delta"] == "x\ny"


def test_the_format_tools_call_streams_as_text() -> None:
    """As fast as the engine writes it, and with nothing of a tool about it."""
    converted = convert(text=FORMAT)
    name = converted.format_tool
    payloads = [calls(0, "a", name, ""), calls(0, None, None, '{"a"'), calls(0, None, None, ":1}")]
    events = run([*payloads, chunk("tool_calls"), DONE], converted)
    final = check(events)
    assert [event["delta"] for event in events if "delta" in event] == ['{"a"', ":1}"]
    assert final["output"][0]["content"][0]["text"] == '{"a":1}'


def test_log_probabilities_go_with_their_text() -> None:
    """Each delta has its own, the part has all."""
    entries = [
        {"token": token, "logprob": -0.5, "bytes": [ord(token)], "top_logprobs": []}
        for token in "\nab"
    ]
    payloads = [chunk(content=each["token"], logprobs={"content": [each]}) for each in entries]
    final = check(run([*payloads, chunk("stop"), DONE]))
    assert final["output"][0]["content"][0]["logprobs"] == entries


def test_a_keepalive_is_no_event() -> None:
    """A comment line without the blank line that would end an event."""
    assert build_relay().keepalive() == KEEPALIVE == b": keep-alive\n"


TEXT = st.text(st.sampled_from('ab \n"\\{}é北\u2028🙂\udc00'), max_size=8)
ARGUMENTS = st.one_of(
    st.sampled_from(["", "{}", '{"a":', "[1]", "nope", '{"input":"x\\ny"}', '{"input":"cut']),
    st.dictionaries(TEXT, TEXT | st.integers(), max_size=2).map(json.dumps),
)
NAMES = st.sampled_from(["f", "crm__find", "patch", "made_up"])
ANSWERS = st.fixed_dictionaries(
    {
        "reasoning_content": st.none() | TEXT,
        "content": st.none() | TEXT,
        "calls": st.lists(st.tuples(NAMES, ARGUMENTS), max_size=3),
        "finish": st.sampled_from(["stop", "tool_calls", "length", "content_filter"]),
        "usage": st.sampled_from([None, USAGE]),
    }
)


def pieces(draw: Any, text: str | None) -> list[str]:
    """A text in as many pieces as the engine happens to send it in."""
    if not text:
        return []
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4)))
    bounds = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


@st.composite
def streams(draw: Any) -> tuple[dict[str, Any], list[Any]]:
    """An answer of the engine: whole, and as the payloads of a stream."""
    answer = draw(ANSWERS)
    payloads: list[Any] = [ROLE]
    payloads += [
        chunk(reasoning_content=each) for each in pieces(draw, answer["reasoning_content"])
    ]
    payloads += [chunk(content=each) for each in pieces(draw, answer["content"])]
    queues = []
    whole = []
    for index, (name, said) in enumerate(answer["calls"]):
        call_id = f"call_{index}"
        whole.append({"id": call_id, "function": {"name": name, "arguments": said}})
        first = [calls(index, call_id, name, "")]
        queues.append(first + [calls(index, None, None, each) for each in pieces(draw, said)])
    if draw(st.booleans()):  # calls begin in their order; what they say may be mixed
        payloads += [queue.pop(0) for queue in queues]
        rest = [index for index, queue in enumerate(queues) for _ in queue]
        payloads += [queues[index].pop(0) for index in draw(st.permutations(rest))]
    else:
        payloads += [payload for queue in queues for payload in queue]
    payloads.append(chunk(answer["finish"]))
    if answer["usage"] is not None:
        payloads.append({"choices": [], "usage": answer["usage"]})
    message = {
        "content": answer["content"],
        "reasoning_content": answer["reasoning_content"],
        "tool_calls": whole,
    }
    reply = {
        "choices": [{"message": message, "finish_reason": answer["finish"]}],
        "usage": answer["usage"],
    }
    return reply, [*payloads, DONE]


@settings(max_examples=150, deadline=None, database=None)
@given(streams())
def test_a_stream_tells_what_a_reply_says(stream: tuple[dict[str, Any], list[Any]]) -> None:
    """However an answer is cut into pieces, its events add up to the buffered Response."""
    reply, payloads = stream
    final = check(run(payloads))
    assert final == from_chat_reply(
        reply, CONVERTED, model="alias", response_id="resp_0f", created_at=7
    )


@settings(max_examples=60, deadline=None, database=None)
@given(streams(), st.data())
def test_wherever_a_stream_is_cut_it_ends_once(
    stream: tuple[dict[str, Any], list[Any]], data: st.DataObject
) -> None:
    """Before the finish reason a cut is one `response.failed`; after it, it is no cut."""
    _, payloads = stream
    length = data.draw(st.integers(0, len(payloads)))
    finished = any(
        isinstance(payload, dict) and payload["choices"] and payload["choices"][0]["finish_reason"]
        for payload in payloads[:length]
    )
    events = run(payloads[:length])
    final = check(events)
    assert (final["status"] == "failed") is not finished
