"""Bodies that nobody would send on purpose, on every route: no 500, no hang, no broken JSON.

Each example is a rich, valid body of the route with some places changed for something else. What
the gateway accepts goes to an engine that answers everything, so every failure is the gateway's.
"""

import copy
import itertools
import json
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.demo.engine import Canned

ANTHROPIC = {"messages", "count_tokens"}
TEXT = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}
DATA_URL = "data:image/png;base64,AA=="
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":"x"}'}}
SAMPLING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0,
    "repetition_penalty": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "n": 1,
    "seed": None,
    "user": "u",
    "stream": False,
}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": [TEXT]},
        {"role": "user", "content": [TEXT, {"type": "image_url", "image_url": {"url": DATA_URL}}]},
        {"role": "assistant", "content": None, "reasoning_content": "t", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "user", "content": "go"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}, {"type": "web_search"}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "max_tokens": 5,
    "max_completion_tokens": 6,
    "stop": ["a", "b"],
    "logit_bias": {},
    "logprobs": False,
    "top_logprobs": 0,
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
    "reasoning_effort": "low",
    "chat_template_kwargs": {"enable_thinking": True},
    "stream_options": {"include_usage": True},
    "metadata": {"a": "b"},
    "input_ids": [1, 2],
    **SAMPLING,
}
USED = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "x"}}
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
}
FOUND = {"type": "search_result", "title": "T", "source": "S", "content": [TEXT]}
DOCUMENT = {"type": "document", "source": {"type": "text", "data": "d"}, "title": "T"}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "t1",
    "content": [TEXT, IMAGE, FOUND, {"type": "tool_reference", "tool_name": "g"}],
    "is_error": False,
}
MESSAGES = {
    "model": "m",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "x-anthropic-billing-header: a"}, TEXT],
    "messages": [
        {"role": "user", "content": [TEXT, IMAGE, DOCUMENT]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                TEXT,
                USED,
            ],
        },
        {"role": "user", "content": [RESULT, TEXT]},
        {"role": "system", "content": "mid"},
        {"role": "user", "content": "go"},
    ],
    "tools": [
        {"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
    "stop_sequences": ["a", "b"],
    "metadata": {"user_id": "u"},
    "chat_template_kwargs": {"a": 1},
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 5,
    "stream": False,
    "container": None,
    "mcp_servers": [],
}
RESPONSES = {
    "model": "m",
    "instructions": "I",
    "input": [
        {"role": "developer", "content": "D"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": DATA_URL, "detail": "high"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}]},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "content": [{"type": "output_text", "text": "a", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "p", "input": "x"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": DATA_URL},
            ],
        },
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"role": "user", "content": "go"},
    ],
    "tools": [
        {"type": "function", **FUNCTION},
        {
            "type": "custom",
            "name": "p",
            "description": "d",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
        },
        {
            "type": "namespace",
            "name": "crm",
            "description": "d",
            "tools": [{"type": "function", **FUNCTION}],
        },
        {"type": "web_search"},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "f"}],
    },
    "parallel_tool_calls": True,
    "text": {
        "verbosity": "low",
        "format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True},
    },
    "reasoning": {"effort": "low", "summary": "auto"},
    "max_output_tokens": 5,
    "top_logprobs": 1,
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "truncation": "auto",
    "previous_response_id": None,
    "temperature": 0.5,
    "top_p": 0.9,
    "user": "u",
    "stream": False,
    "store": True,
}
COMPLETIONS = {
    "model": "m",
    "prompt": [[1, 2], [3]],
    "max_tokens": 5,
    "stop": ["a"],
    "logprobs": 0,
    "echo": False,
    "suffix": "x",
    "logit_bias": {"5": 1},
    "stream_options": {"include_usage": True},
    **SAMPLING,
}
EMBEDDINGS = {
    "model": "m",
    "input": ["a", "b"],
    "encoding_format": "base64",
    "dimensions": 3,
    "user": "u",
}
BODIES = {
    "chat": CHAT,
    "messages": MESSAGES,
    "responses": RESPONSES,
    "completions": COMPLETIONS,
    "embeddings": EMBEDDINGS,
    "count_tokens": MESSAGES,
    "input_tokens": RESPONSES,
}
PROFILE = """
sampling: {params: {temperature: {min: 0, max: 1}, top_p: 0.9, n: 1}}
output: {max_tokens: {cap: 100, default: 10, on_exceed: clamp}}
limits: {max_images: 4, max_body_bytes: 1MiB}
params:
  seed: {min: 0, type: int}
  user: {values: [u, v]}
  reasoning_format: {values: [general]}
"""


@dataclass(frozen=True)
class Raw:
    """JSON that is put into a body as it stands, by its name."""

    name: str


RAW = {
    "beyond a double": "1e400",
    "minus zero": "-0.0",
    "an exponent": "1E5",
    "400 digits": "9" * 400,
    "no number": "NaN",
    "no end": "Infinity",
    "half a surrogate": '"\\ud800"',
    "octal": "01",
    "quotes": "'a'",
    "nothing": "",
    "long": f'"{"x" * 100_000}"',
    "deep": "[" * 240 + "]" * 240,
    "too deep": "[" * 100_000 + "]" * 100_000,
}
JUNK = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            1.5,
            2**63,
            "",
            " ",
            "0",
            "1",
            "true",
            "5e1000",
            "\u0000",
            "🙂" * 70,
            "data:image/png;base64,",
            [],
            {},
            [None],
            [[]],
            [{}],
            {"type": None},
            {"type": "text"},
            {"type": []},
            {"role": "user"},
            [{"type": "text", "text": None}],
        ]
    ),
    st.sampled_from(list(RAW)).map(Raw),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["type", "role", "content", "name", "text"]), inner)
        ),
        max_leaves=5,
    ),
)


def places_of(value, path=()):
    """Every place in a body, as the keys that lead to it."""
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        inner = ()
    for key, below in inner:
        yield (*path, key)
        yield from places_of(below, (*path, key))


@st.composite
def mangled(draw, body):
    """The body with up to three places replaced, deleted or repeated."""
    body = json.loads(json.dumps(body))  # no two places hold one object
    for _ in range(draw(st.integers(1, 3))):
        places = list(places_of(body))
        if not places:
            break
        *above, key = draw(st.sampled_from(places))
        holder = body
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "replace", "delete", "repeat", "add"])):
            case "replace":
                holder[key] = copy.deepcopy(draw(JUNK))
            case "delete":
                del holder[key]
            case "repeat" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case _ if isinstance(holder, dict):
                name = draw(st.sampled_from(["type", "cache_control", "content", "x", "id"]))
                holder[name] = copy.deepcopy(draw(JUNK))
    return body


def render(value):
    """JSON, junk included."""
    if isinstance(value, Raw):
        return RAW[value.name]
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{render(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(render, value)) + "]"
    return json.dumps(value)


TRUE = {"true", "1", "1.0", "t", "y", "yes", "on"}


class Anything(list):
    """The answers of an engine that takes everything; whole or streamed, as it was asked."""

    def __init__(self, engine, wire):
        super().__init__([None])
        self.engine = engine
        self.wire = wire

    def pop(self, _place):
        """The answer to the request that came last."""
        request = self.engine.requests[-1]
        body = json.loads(request.body, parse_constant=pytest.fail)
        streams = str(body.get("stream")).strip().lower() in TRUE
        if "count_tokens" in request.path:
            return whole({"input_tokens": 5})
        if request.path == "/v1/embeddings":
            return whole({"object": "list", "data": [], "model": "m"})
        if request.path == "/v1/messages":
            return streamed(EVENTS, self.wire, b"") if streams else whole(MESSAGE)
        frames = [self.wire.text("a"), self.wire.finish("stop")]
        return streamed(frames, self.wire, self.wire.done) if streams else whole(self.wire.reply())


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "a"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
    {"type": "message_stop"},
]


def whole(value):
    """A buffered answer."""
    return Canned(200, json.dumps(value).encode())


def streamed(frames, wire, end):
    """A streamed one."""
    body = b"".join(map(wire.frame, frames)) + end
    return Canned(200, body, {"content-type": "text/event-stream"})


ROLES = {"system", "user", "assistant", "tool"}


def check_chat(body):
    """What holds of every Chat body that the gateway converted something to."""
    messages = body["messages"]
    assert [message["role"] for message in messages[1:]].count("system") == 0
    for message in messages:
        assert message["role"] in ROLES
        content = message["content"]
        assert (
            isinstance(content, str) or content is None or (isinstance(content, list) and content)
        )
        assert content is not None or message["tool_calls"]
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert body.get("tools") != []
    assert type(body["model"]) is str


def check_messages(body):
    """What holds of every Messages body that the gateway converted something to."""
    turns = body["messages"]
    for turn, following in itertools.pairwise(turns):
        assert turn["role"] != following["role"]
    for turn in turns:
        assert turn["role"] in {"user", "assistant"}
        assert isinstance(turn["content"], str) or turn["content"]
    assert body.get("tools") != []


CHECKS = {
    ("messages", "serve"): check_chat,
    ("responses", "serve"): check_chat,
    ("chat", "serve_messages"): check_messages,
    ("responses", "serve_messages"): check_messages,
    ("count_tokens", "serve"): check_messages,
    ("input_tokens", "serve"): check_messages,
}


@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("profile", ["", PROFILE], ids=["no profile", "a strict profile"])
def test_a_mangled_body(request, engine, wire, error_of, route, profile, engine_in):
    """It is served, or refused in the envelope of the route; what is sent on is sound."""
    client = request.getfixturevalue(engine_in)(profile)
    engine.canned = Anything(engine, wire)
    check_sent = CHECKS.get((route, engine_in))

    @settings(
        max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(mangled(BODIES[route]))
    def check(body):
        engine.requests.clear()
        reply = client.post(render(body).encode(), wire.paths[route])
        if reply.status_code == 200:
            (sent,) = engine.inference
            if check_sent is not None:
                check_sent(sent.json)
            return
        allowed = {400: "invalid_request_error"}
        if body.get("model") != "m":
            allowed[404] = "not_found_error" if route in ANTHROPIC else "invalid_request_error"
        assert reply.status_code in allowed, reply.text
        assert error_of(reply, route)["type"] == allowed[reply.status_code]
        assert engine.inference == []

    check()


@pytest.mark.parametrize("route", BODIES)
def test_the_body_itself_is_served(serve, engine, wire, route):
    """What is mangled is right to begin with, so that the examples reach far."""
    engine.canned = Anything(engine, wire)
    for stream in (False, True):
        body = {**BODIES[route], "stream": stream}
        reply = serve().post(render(body).encode(), wire.paths[route])
        assert reply.status_code == 200, reply.text
