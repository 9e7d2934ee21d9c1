"""Answers that no engine should give: the client gets one proper ending, or one error.

Each example is a whole answer with some places changed for something else. No reply is a 500, no
stream ends twice or not at all, and an error is never followed by what SDKs take for success.
"""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.demo.engine import Canned

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
USAGE["prompt_tokens_details"] = {"cached_tokens": 1}
FUNCTION = {"name": "f", "arguments": '{"a":1}'}
CALL = {"index": 0, "id": "t1", "type": "function", "function": FUNCTION}


def chunk(delta, finish=None, **more):
    """A chunk of a chat stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "matched_stop": None}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [choice],
        **more,
    }


CHAT_STREAM = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "t"}, usage=USAGE),
    chunk({"content": "a"}),
    chunk({"tool_calls": [CALL]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}),
    chunk({}, "tool_calls"),
    {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE},
]
CHAT_REPLY = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "a",
                "reasoning_content": "t",
                "tool_calls": [CALL],
            },
            "finish_reason": "tool_calls",
            "logprobs": {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": []}]},
        }
    ],
    "usage": USAGE,
}
COUNTS = {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3}
USED = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}, USED],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": COUNTS,
}
MESSAGE_STREAM = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {**USED, "input": {}}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": COUNTS},
    {"type": "message_stop"},
]
COMPLETION = {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": None}
TEXT_STREAM = [{"id": "c1", "model": "m", "choices": [COMPLETION]}, CHAT_STREAM[-1]]
JUNK = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 1.5, 2**70, "", " ", "1", "error", [], {}, [None], [[]], [{}], "🙂"]
    ),
    st.sampled_from(["abort", "length", "stop", "message_stop", "text", "tool_use", "ping"]),
    st.sampled_from(
        [{"message": "boom"}, {"message": "full", "code": 503}, {"type": "overloaded_error"}]
    ),
)


def places_of(value, path=()):
    """Every place in an answer, as the keys that lead to it."""
    inner = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, below in inner:
        yield (*path, key)
        yield from places_of(below, (*path, key))


@st.composite
def mangled(draw, answer):
    """The answer with up to three places replaced, deleted, repeated or added."""
    answer = json.loads(json.dumps(answer))
    for _ in range(draw(st.integers(0, 3))):
        places = list(places_of(answer))
        if not places:
            break
        *above, key = draw(st.sampled_from(places))
        holder = answer
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "delete", "repeat", "add"])):
            case "replace":
                holder[key] = copy.deepcopy(draw(JUNK))
            case "delete":
                del holder[key]
            case "repeat" if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case _ if isinstance(holder, dict):
                name = draw(st.sampled_from(["error", "type", "object"]))
                holder[name] = copy.deepcopy(draw(JUNK))
    return answer


def frame(part):
    """A part of an answer as an event, under its type where it has one."""
    kind = part.get("type") if isinstance(part, dict) and "choices" not in part else None
    name = f"event: {kind}\n".encode() if isinstance(kind, str) and kind else b""
    return b"%bdata: %b\n\n" % (name, json.dumps(part).encode())


STREAMS = {
    ("chat", "serve"): CHAT_STREAM,
    ("messages", "serve"): CHAT_STREAM,
    ("responses", "serve"): CHAT_STREAM,
    ("completions", "serve"): TEXT_STREAM,
    ("chat", "serve_messages"): MESSAGE_STREAM,
    ("messages", "serve_messages"): MESSAGE_STREAM,
    ("responses", "serve_messages"): MESSAGE_STREAM,
}
RESPONSES_ENDS = {"response.completed", "response.incomplete", "response.failed"}


def check_ending(events, route):
    """There is one ending, it is the last event, and it is proper or an error."""
    if route == "responses":
        ends = [name for name, _ in events if name in RESPONSES_ENDS]
        assert ends == [events[-1][0]]
        numbers = [data["sequence_number"] for _, data in events]
        assert numbers == list(range(len(events)))
    elif route == "messages":
        ends = [name for name, _ in events if name in {"message_stop", "error"}]
        assert ends == [events[-1][0]]
    else:
        ends = [data for _, data in events if data == "[DONE]" or data.get("error") is not None]
        assert ends == [events[-1][1]]


@pytest.mark.parametrize(("route", "engine_in"), STREAMS)
def test_a_mangled_stream(request, engine, wire, error_of, route, engine_in):
    """An error before anything was said is an HTTP error; after that, there is one ending."""
    client = request.getfixturevalue(engine_in)("models: {aliases: [other]}")

    @settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(mangled(STREAMS[route, engine_in]), st.sampled_from([b"", wire.done]), st.booleans())
    def check(answer, done, alias):
        frames = map(frame, answer if isinstance(answer, list) else [answer])
        body = b"".join(frames) + (done if engine_in == "serve" else b"")
        engine.canned[:] = [Canned(200, body, {"content-type": "text/event-stream"})]
        reply = client.on(route, stream=True, model="other" if alias else "m")
        if reply.status_code == 200:
            check_ending(wire.events(reply), route)
        else:
            assert reply.status_code in {400, 429, 502, 503}, reply.text
            error_of(reply, route)

    check()


REPLIES = {
    **{(route, "serve"): CHAT_REPLY for route in ("chat", "messages", "responses")},
    **{(route, "serve_messages"): MESSAGE for route in ("chat", "messages", "responses")},
    ("completions", "serve"): {"id": "c1", "model": "m", "choices": [COMPLETION], "usage": USAGE},
    ("embeddings", "serve"): {"object": "list", "data": [{"embedding": [0.1]}], "model": "m"},
    ("count_tokens", "serve"): {"input_tokens": 5},
    ("input_tokens", "serve"): {"input_tokens": 5},
}


@pytest.mark.parametrize(("route", "engine_in"), REPLIES)
def test_a_mangled_reply(request, engine, error_of, route, engine_in):
    """It is made sense of, or is a failure of the engine; what is told is JSON in any case."""
    client = request.getfixturevalue(engine_in)("models: {aliases: [other]}")

    @settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(mangled(REPLIES[route, engine_in]), st.booleans())
    def check(answer, alias):
        engine.canned[:] = [Canned(200, json.dumps(answer).encode())]
        reply = client.on(route, model="other" if alias else "m")
        if reply.status_code == 200:
            assert isinstance(reply.json, dict)
            assert reply.json.get("error") is None
        else:
            assert reply.status_code in {400, 429, 502, 503}, reply.text
            error_of(reply, route)

    check()
