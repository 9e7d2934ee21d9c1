"""An engine's Chat replies as a Messages client reads them, whole and streamed."""

import json

import pytest

TOOL = {"name": "f", "input_schema": {"type": "object"}}


def kinds(events):
    """The types of the events, in order, each under its own name."""
    assert all(name == data["type"] for name, data in events)
    return [name for name, _ in events]


def named(events, kind):
    """The data of the events of a type."""
    return [data for name, data in events if name == kind]


def gathered(events):
    """The message that the events add up to, as a client gathers it."""
    message = named(events, "message_start")[0]["message"]
    blocks, open_index = [], None
    for name, data in events:
        if name == "content_block_start":
            assert open_index is None
            assert data["index"] == len(blocks)
            open_index = data["index"]
            blocks.append({**data["content_block"], "_json": ""})
        elif name == "content_block_delta":
            assert data["index"] == open_index
            delta = data["delta"]
            kind = {"text_delta": "text", "thinking_delta": "thinking"}.get(delta["type"])
            assert kind in {None, blocks[-1]["type"]}
            if kind is None:
                blocks[-1]["_json"] += delta["partial_json"]
            else:
                blocks[-1][kind] += delta[kind]
        elif name == "content_block_stop":
            assert data["index"] == open_index
            open_index = None
    for block in blocks:
        pieces = block.pop("_json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(pieces or "{}")
    delta = named(events, "message_delta")[0]
    assert kinds(events)[-1] == "message_stop"
    return {**message, "content": blocks, **delta["delta"], "usage": delta["usage"]}


def test_the_start_has_the_true_number_of_input_tokens(serve, say, wire, engine):
    """The engine is asked for usage in every chunk, and the first chunk with it begins."""
    first = {**wire.text("Par"), "usage": wire.usage(41, 1)}
    say.stream(
        wire.chunk({"role": "assistant"}),
        first,
        wire.text("is"),
        wire.finish("stop"),
        wire.usage_chunk(41, 3),
    )
    events = wire.events(serve().messages(stream=True))
    assert engine.inference[-1].json["stream_options"] == {
        "include_usage": True,
        "continuous_usage_stats": True,
    }
    assert kinds(events) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0][1]["message"]["usage"]["input_tokens"] == 41
    assert named(events, "message_delta")[0]["usage"]["output_tokens"] == 3


def test_late_usage(serve, say, wire):
    """Usage that comes at the end does not hold up the text, and is in the message_delta."""
    say.stream(wire.text("a"), wire.finish("stop"), wire.usage_chunk(41, 3))
    events = wire.events(serve().messages(stream=True))
    assert events[0][1]["message"]["usage"]["input_tokens"] == 0
    usage = named(events, "message_delta")[0]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (41, 3)


def test_no_usage(serve, say, wire):
    """An engine that counts nothing gives zeros."""
    say.stream(wire.text("a"), wire.finish("stop"))
    message = gathered(wire.events(serve().messages(stream=True)))
    assert message["usage"]["input_tokens"] == message["usage"]["output_tokens"] == 0


DETAILS = {
    "cached": ({"prompt_tokens_details": {"cached_tokens": 75}}, (25, 75, 5)),
    "null details": ({"prompt_tokens_details": None}, (100, 0, 5)),
    "null cached": ({"prompt_tokens_details": {"cached_tokens": None}}, (100, 0, 5)),
    "more cached than sent": ({"prompt_tokens_details": {"cached_tokens": 120}}, (0, 120, 5)),
    "none": ({}, (100, 0, 5)),
}


@pytest.mark.parametrize(("details", "counts"), DETAILS.values(), ids=DETAILS)
def test_cached_tokens_are_no_input(serve, say, wire, details, counts):
    """The same numbers whole and streamed; Messages counts the cached part apart."""
    usage = wire.usage(100, 5, **details)
    say.whole(wire.reply(usage=usage))
    say.stream(wire.text("a"), wire.finish("stop"), wire.usage_chunk(100, 5, **details))
    client = serve()
    whole = client.messages().json["usage"]
    streamed = gathered(wire.events(client.messages(stream=True)))["usage"]
    expected = dict(
        zip(("input_tokens", "cache_read_input_tokens", "output_tokens"), counts, strict=True)
    )
    assert whole == streamed == expected


@pytest.mark.parametrize("usage", [None, "absent"])
def test_a_reply_without_usage(serve, say, wire, usage):
    """Counts are integers all the same."""
    reply = wire.reply()
    say.whole(reply if usage == "absent" else {**reply, "usage": usage})
    assert serve().messages().json["usage"] == {
        "input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    }


MESSAGES_USAGE = {
    "input_tokens": 25,
    "cache_read_input_tokens": 75,
    "cache_creation_input_tokens": 10,
    "output_tokens": 5,
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "a"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": MESSAGES_USAGE,
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": MESSAGES_USAGE},
    {"type": "message_stop"},
]


def test_cached_tokens_are_added_back(serve_messages, say, wire):
    """From an engine in Messages to Chat and Responses, whole and streamed."""
    client = serve_messages()
    for _ in range(2):
        say.whole(MESSAGE)
        say.stream(*MESSAGE_EVENTS, done=False)
    whole = client.chat().json["usage"]
    streamed = wire.events(client.chat(stream=True, stream_options={"include_usage": True}))
    for usage in (whole, streamed[-2][1]["usage"]):
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (110, 5)
        assert usage["total_tokens"] == 115
        assert usage["prompt_tokens_details"]["cached_tokens"] == 75
    whole = client.responses().json["usage"]
    streamed = wire.events(client.responses(stream=True))
    for usage in (whole, streamed[-1][1]["response"]["usage"]):
        assert (usage["input_tokens"], usage["output_tokens"]) == (110, 5)
        assert usage["total_tokens"] == 115
        assert usage["input_tokens_details"]["cached_tokens"] == 75


def both(client, say, wire, message, finish, *pieces, **fields):
    """The content of a reply, which must be the same whole and streamed, and its stop reason."""
    say.whole(wire.reply({"role": "assistant", **message}, finish))
    say.stream(*pieces, *([] if finish is None else [wire.finish(finish)]))
    whole = client.messages(**fields).json
    streamed = gathered(wire.events(client.messages(stream=True, **fields)))
    assert whole["content"] == streamed["content"]
    assert whole["stop_reason"] == streamed["stop_reason"]
    return whole["content"], whole["stop_reason"]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_block_of_its_own(serve, say, wire, key):
    """It is closed before the text opens, and has an empty signature in either mode."""
    content, _ = both(
        serve(),
        say,
        wire,
        {key: "ab", "content": "x"},
        "stop",
        *(wire.chunk({key: piece}) for piece in "ab"),
        wire.text("x"),
    )
    assert content == [
        {"type": "thinking", "thinking": "ab", "signature": ""},
        {"type": "text", "text": "x"},
    ]


def test_reasoning_alone(serve, say, wire):
    """Then there is no text block."""
    content, stop = both(
        serve(), say, wire, {"reasoning_content": "a", "content": None}, "stop", wire.reasoning("a")
    )
    assert [block["type"] for block in content] == ["thinking"]
    assert stop == "end_turn"


def function(arguments, name="f", call_id="t1"):
    """A whole call of a Chat reply."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_reasoning_and_a_call(serve, say, wire):
    """Thinking first, then the call."""
    content, stop = both(
        serve(),
        say,
        wire,
        {"reasoning_content": "a", "content": None, "tool_calls": [function('{"x":1}')]},
        "tool_calls",
        wire.reasoning("a"),
        wire.call(0, "t1", "f", ""),
        wire.call(0, None, None, '{"x":1}'),
        tools=[TOOL],
    )
    assert content[1] == {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}}
    assert (len(content), stop) == (2, "tool_use")


@pytest.mark.parametrize("empty", ["", None])
def test_empty_reasoning_is_no_block(serve, say, wire, empty):
    """Neither whole nor streamed."""
    content, _ = both(
        serve(),
        say,
        wire,
        {"reasoning_content": empty, "content": "x"},
        "stop",
        wire.chunk({"reasoning_content": empty}),
        wire.chunk({"reasoning_content": empty, "content": "x"}),
    )
    assert content == [{"type": "text", "text": "x"}]


NO_ARGUMENTS = ["", " ", None, "{}"]


@pytest.mark.parametrize("arguments", NO_ARGUMENTS, ids=map(repr, NO_ARGUMENTS))
def test_a_call_without_arguments(serve, say, wire, arguments):
    """Its input is an empty object, and a block that starts has one too."""
    content, stop = both(
        serve(),
        say,
        wire,
        {"content": None, "tool_calls": [function(arguments)]},
        "tool_calls",
        wire.call(0, "t1", "f", arguments),
        tools=[TOOL],
    )
    assert content == [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]
    assert stop == "tool_use"


BROKEN = ["[1]", '{"a":', "oops", '"text"']


@pytest.mark.parametrize("arguments", BROKEN)
def test_arguments_that_are_no_object(serve, say, wire, arguments):
    """Whole, the input is an empty object; a stream has sent them as they came."""
    say.whole(wire.reply({"content": None, "tool_calls": [function(arguments)]}, "tool_calls"))
    say.stream(wire.call(0, "t1", "f", arguments), wire.finish("tool_calls"))
    client = serve()
    (block,) = client.messages(tools=[TOOL]).json["content"]
    assert block["input"] == {}
    events = wire.events(client.messages(tools=[TOOL], stream=True))
    (start,) = named(events, "content_block_start")
    assert start["content_block"]["input"] == {}
    deltas = named(events, "content_block_delta")
    assert "".join(delta["delta"]["partial_json"] for delta in deltas) == arguments
    assert kinds(events)[-1] == "message_stop"


def test_arguments_as_an_object(serve, say, wire):
    """An engine that forgets to write them as text is understood."""
    content, _ = both(
        serve(),
        say,
        wire,
        {"content": None, "tool_calls": [function({"a": 1})]},
        "tool_calls",
        wire.call(0, "t1", "f", {"a": 1}),
        tools=[TOOL],
    )
    assert content[0]["input"] == {"a": 1}


HISTORY = [
    ("", {}),
    (" ", {}),
    (None, {}),
    ("{}", {}),
    ("[1]", {}),
    ('{"a":', {}),
    ({"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("arguments", "sent"), HISTORY, ids=[repr(pair[0]) for pair in HISTORY])
def test_arguments_in_a_history(serve_messages, arguments, sent):
    """On the way from Chat to Messages the input is an object as well."""
    messages = [{"role": "user", "content": "go"}]
    messages.append({"role": "assistant", "content": None, "tool_calls": [function(arguments)]})
    messages.append({"role": "tool", "tool_call_id": "t1", "content": "r"})
    turns = serve_messages().sent(messages=messages)["messages"]
    (used,) = turns[1]["content"]
    assert used == {"type": "tool_use", "id": "t1", "name": "f", "input": sent}


def usage_positions(wire):
    """Streams with the usage at various places, and chunks without choices."""
    text, finish, usage = wire.text("a"), wire.finish("stop"), wire.usage_chunk(7, 2)
    no_choices = {key: value for key, value in usage.items() if key != "choices"}
    return {
        "at the end": [text, finish, usage],
        "at the start": [usage, text, finish],
        "twice": [usage, text, finish, usage],
        "before the finish": [text, usage, finish],
        "without choices": [text, finish, no_choices],
        "choices null": [text, finish, {**usage, "choices": None}],
    }


@pytest.mark.parametrize(
    "position",
    ["at the end", "at the start", "twice", "before the finish", "without choices", "choices null"],
)
def test_a_chunk_of_usage_alone(serve, say, wire, position):
    """Wherever it comes, it is counted once, for Messages and for Responses."""
    client = serve()
    frames = usage_positions(wire)[position]
    say.stream(*frames)
    message = gathered(wire.events(client.messages(stream=True)))
    assert message["content"] == [{"type": "text", "text": "a"}]
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (7, 2)
    say.stream(*frames)
    name, last = wire.events(client.responses(stream=True))[-1]
    assert name == "response.completed"
    usage = last["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 2)


FINISHES = {
    "length": "max_tokens",
    "content_filter": "refusal",
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "odd": "end_turn",
}


@pytest.mark.parametrize(("finish", "stop"), FINISHES.items())
def test_every_finish_has_a_stop_reason(serve, say, wire, finish, stop):
    """And every stream ends with message_delta and message_stop."""
    assert both(serve(), say, wire, {"content": "a"}, finish, wire.text("a")) == (
        [{"type": "text", "text": "a"}],
        stop,
    )


def test_no_finish(serve, say, wire):
    """A stream with its [DONE] has ended, with a reason."""
    _, stop = both(serve(), say, wire, {"content": "a"}, None, wire.text("a"))
    assert stop == "end_turn"


def test_stop_beside_calls(serve, say, wire):
    """It means that the calls are to be made."""
    _, stop = both(
        serve(),
        say,
        wire,
        {"content": None, "tool_calls": [function("{}")]},
        "stop",
        wire.call(0, "t1", "f", "{}"),
        tools=[TOOL],
    )
    assert stop == "tool_use"


def test_half_a_call(serve, say, wire):
    """A budget that ends within a call still ends properly."""
    say.stream(wire.call(0, "t1", "f", '{"a":'), wire.finish("length"))
    events = wire.events(serve().messages(stream=True, tools=[TOOL]))
    assert kinds(events)[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert named(events, "message_delta")[0]["delta"]["stop_reason"] == "max_tokens"


def test_an_abort_is_a_failure(serve, say, wire):
    """An HTTP error before anything was said, an error event after it; never a proper end."""
    client = serve()
    say.whole(wire.reply(finish="abort"))
    reply = client.messages()
    assert (reply.status_code, reply.json["error"]["type"]) == (502, "api_error")
    say.stream(wire.finish("abort"))
    reply = client.messages(stream=True)
    assert (reply.status_code, reply.json["error"]["type"]) == (502, "api_error")
    say.stream(wire.text("a"), wire.finish("abort"))
    events = wire.events(client.messages(stream=True))
    assert kinds(events)[-2:] == ["content_block_stop", "error"]
    assert "message_stop" not in kinds(events)


def test_a_stop_text_is_named(serve, say, wire):
    """Where the engine met a stop text of the client's."""
    say.whole(wire.reply())
    reply = wire.reply()
    reply["choices"][0]["matched_stop"] = "END"
    say.whole(reply)
    client = serve()
    fields = {"stop_sequences": ["END"]}
    assert client.messages(**fields).json["stop_reason"] == "end_turn"
    stopped = client.messages(**fields).json
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "END")


@pytest.mark.parametrize("content", [None, "", "  "])
def test_an_empty_answer_is_a_message(serve, say, wire, content):
    """One block of text at least, with ids, roles and counts in place."""
    say.whole(wire.reply({"role": "assistant", "content": content}, usage=wire.usage(3, 1)))
    message = serve().messages().json
    assert message["content"] == [{"type": "text", "text": content or ""}]
    assert message["id"].startswith("msg_")
    assert (message["type"], message["role"], message["model"]) == ("message", "assistant", "m")
    assert message["usage"]["input_tokens"] == 3


def test_an_empty_stream_is_a_message(serve, say, wire):
    """The same when it is streamed."""
    say.stream(wire.chunk({"role": "assistant", "content": ""}), wire.finish("stop"))
    message = gathered(wire.events(serve().messages(stream=True)))
    assert message["content"] == [{"type": "text", "text": ""}]
    assert message["id"].startswith("msg_")


@pytest.mark.parametrize("choices", [[], None])
@pytest.mark.parametrize("route", ["chat", "messages", "responses"])
def test_a_reply_without_a_choice(serve, say, wire, route, choices):
    """It is no answer, but a failure of the engine."""
    say.whole({**wire.reply(), "choices": choices})
    assert serve().on(route).status_code == 502


IDS = {"c1": "msg_c1", "msg_7": "msg_7"}


@pytest.mark.parametrize(("engines", "own"), IDS.items())
def test_ids(serve, say, wire, engines, own):
    """The engine's id in the dialect's form, whole and streamed."""
    say.whole({**wire.reply(), "id": engines})
    say.stream({**wire.text("a"), "id": engines}, {**wire.finish("stop"), "id": engines})
    client = serve()
    assert client.messages().json["id"] == own
    assert wire.events(client.messages(stream=True))[0][1]["message"]["id"] == own
