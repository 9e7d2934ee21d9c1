"""Chat clients in front of an engine that is spoken to in Messages."""

import pytest

USER = {"role": "user", "content": "go on"}
DATA_URL = "data:image/png;base64,AA=="
IMAGE_PART = {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "high"}}
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
}
TOOL = {"type": "function", "function": {"name": "f"}}


def call(call_id):
    """A call in a history."""
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def used(call_id):
    """The same in Messages."""
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def text(said):
    """A block, or a part, of text."""
    return {"type": "text", "text": said}


def test_results_are_one_turn_of_the_user(serve_messages):
    """Runs of tool messages are one turn, before what the user says after them."""
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("t1"), call("t2")]},
        {"role": "tool", "tool_call_id": "t1", "content": "A"},
        {"role": "tool", "tool_call_id": "t2", "content": [text("B"), IMAGE_PART]},
        USER,
    ]
    assert serve_messages().sent(messages=messages)["messages"] == [
        USER,
        {"role": "assistant", "content": [used("t1"), used("t2")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "A"},
                {"type": "tool_result", "tool_use_id": "t2", "content": [text("B"), IMAGE]},
                text("go on"),
            ],
        },
    ]


def test_turns_of_one_role_are_merged(serve_messages):
    """Messages wants turns that alternate."""
    messages = [
        USER,
        USER,
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]
    assert serve_messages().sent(messages=messages)["messages"] == [
        {"role": "user", "content": [text("go on"), text("go on")]},
        {"role": "assistant", "content": [text("a"), text("b")]},
    ]


BUDGETS = {
    "the client's": ({"max_tokens": 7}, None, {}, 7),
    "the client's, by its other name": ({"max_completion_tokens": 7}, None, {}, 7),
    "the first that says something": ({"max_completion_tokens": 0, "max_tokens": 7}, None, {}, 7),
    "null": ({"max_tokens": None}, None, {}, 8192),
    "none": ({}, None, {}, 8192),
    "zero": ({"max_tokens": 0}, None, {}, 8192),
    "the profile's default": ({}, "output: {max_tokens: {cap: 99, default: 9}}", {}, 9),
    "the profile's cap": ({}, "output: {max_tokens: {cap: 99}}", {}, 99),
    "the setting's": ({}, None, {"anthropic_default_max_tokens": 55}, 55),
    "as text": ({"max_tokens": "7"}, None, {}, 7),
}


@pytest.mark.parametrize(("fields", "profile", "settings", "budget"), BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_budget_is_always_an_integer(serve_messages, fields, profile, settings, budget, stream):
    """The client's, the profile's, the setting's, else a quarter of the engine's context."""
    body = serve_messages(profile, **settings).sent(**fields, stream=stream)
    assert body["max_tokens"] == budget
    assert type(body["max_tokens"]) is int
    assert "max_completion_tokens" not in body


PARALLEL = {
    "false": (
        {"tools": [TOOL], "parallel_tool_calls": False},
        {"type": "auto", "disable_parallel_tool_use": True},
    ),
    "true": ({"tools": [TOOL], "parallel_tool_calls": True}, None),
    "false without tools": ({"parallel_tool_calls": False}, None),
    "false, required": (
        {"tools": [TOOL], "parallel_tool_calls": False, "tool_choice": "required"},
        {"type": "any", "disable_parallel_tool_use": True},
    ),
    "required": ({"tools": [TOOL], "tool_choice": "required"}, {"type": "any"}),
    "none": ({"tools": [TOOL], "tool_choice": "none"}, {"type": "none"}),
    "named": (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"type": "tool", "name": "f"},
    ),
}


@pytest.mark.parametrize(("fields", "choice"), PARALLEL.values(), ids=PARALLEL)
def test_the_parallel_switch_forces_no_call(serve_messages, fields, choice):
    """It is a flag on `auto` where nothing was chosen, and nothing where nothing is to say."""
    body = serve_messages().sent(**fields)
    assert body.get("tool_choice") == choice
    assert "parallel_tool_calls" not in body
    if "tools" in fields:
        assert body["tools"] == [
            {"name": "f", "input_schema": {"type": "object", "properties": {}}}
        ]


@pytest.mark.parametrize("content", ["", None, [], [text("")]], ids=repr)
def test_no_empty_block_beside_a_call(serve_messages, content):
    """A turn with calls holds these alone."""
    messages = [USER, {"role": "assistant", "content": content, "tool_calls": [call("t1")]}]
    turns = serve_messages().sent(messages=messages)["messages"]
    assert turns[1] == {"role": "assistant", "content": [used("t1")]}


@pytest.mark.parametrize("content", ["", None, [], [text("")]], ids=repr)
def test_an_empty_turn_is_an_empty_text(serve_messages, content):
    """Neither an empty block nor an empty list."""
    messages = [USER, {"role": "assistant", "content": content}, USER]
    assert serve_messages().sent(messages=messages)["messages"][1] == {
        "role": "assistant",
        "content": "",
    }


def test_system_messages_are_lifted(serve_messages):
    """Wherever they stand, in their order."""
    messages = [
        {"role": "system", "content": "one"},
        USER,
        {"role": "system", "content": [text("two")]},
        USER,
    ]
    body = serve_messages().sent(messages=messages)
    assert body["system"] == "one\n\ntwo"
    assert [turn["role"] for turn in body["messages"]] == ["user"]


def test_a_prefill_stays_the_last_turn(serve_messages):
    """An answer that was begun for the model is sent as it is."""
    messages = [USER, {"role": "assistant", "content": "Once"}]
    assert serve_messages().sent(messages=messages)["messages"] == messages


IMAGES = {
    "data": (DATA_URL, {"type": "base64", "media_type": "image/png", "data": "AA=="}),
    "a link": ("https://i/p.png", {"type": "url", "url": "https://i/p.png"}),
}


@pytest.mark.parametrize(("url", "source"), IMAGES.values(), ids=IMAGES)
def test_images(serve_messages, url, source):
    """Data and links have each their source; how closely to look is nothing Messages can say."""
    part = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    (turn,) = serve_messages().sent(messages=[{"role": "user", "content": [part]}])["messages"]
    assert turn["content"] == [{"type": "image", "source": source}]


NO_IMAGES = [
    "data:image/png,raw",
    "data:;base64,AA==",
    "data:image/png;base64,",
    "",
    "file:///x",
    5,
    None,
]


@pytest.mark.parametrize("url", NO_IMAGES, ids=repr)
def test_images_that_are_none(serve_messages, engine, url):
    """Refused by their place."""
    part = {"type": "image_url", "image_url": {"url": url}}
    reply = serve_messages().chat(messages=[{"role": "user", "content": [part]}])
    assert (reply.status_code, reply.json["error"]["code"]) == (400, "bad_request")
    assert reply.json["error"]["param"] == "messages[0].content[0].image_url.url"
    assert engine.inference == []


UNSAYABLE = {
    "n": (2, 1),
    "min_p": (0.1, 0),
    "frequency_penalty": (0.5, 0.0),
    "presence_penalty": (-1, 0),
    "repetition_penalty": (1.1, 1),
    "seed": (7, None),
    "logprobs": (True, False),
    "top_logprobs": (2, 0),
    "logit_bias": ({"5": 1}, {}),
}


@pytest.mark.parametrize(("field", "values"), UNSAYABLE.items())
def test_what_messages_cannot_say(serve_messages, engine, field, values):
    """The engine would ignore it in silence: refused by name, or left out where it says nothing."""
    asked, neutral = values
    client = serve_messages()
    reply = client.chat(**{field: asked})
    assert (reply.status_code, reply.json["error"]["param"]) == (400, field)
    assert engine.inference == []
    assert field not in client.sent(**{field: neutral})


@pytest.mark.parametrize("key", ["", "secret"])
@pytest.mark.parametrize("route", ["chat", "messages", "responses", "count_tokens", "input_tokens"])
def test_headers(serve, engine, route, key):
    """The server's key or none at all, and the interface's version; nothing of the client's."""
    client = serve(servers=[{"use_anthropic_endpoints": True, "api_key": key}])
    client.on(
        route,
        headers={"authorization": "Bearer client", "x-api-key": "c", "anthropic-version": "x"},
    )
    headers = engine.inference[-1].headers
    assert headers.get("authorization") == (f"Bearer {key}" if key else None)
    assert headers["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in headers


MODES = {
    "the key's": (True, {}, "m", True),
    "the alias's over the key's": (True, {"a": ("m", False)}, "a", False),
    "the alias's alone": (False, {"a": ("m", True)}, "a", True),
    "an alias that says nothing": (True, {"a": "m"}, "a", True),
    "neither": (False, {"a": "m"}, "a", False),
    "another alias's": (False, {"a": ("m", True)}, "m", False),
}
PATHS = {
    "chat": ("/v1/chat/completions", "/v1/messages"),
    "responses": ("/v1/chat/completions", "/v1/messages"),
    "messages": ("/v1/chat/completions", "/v1/messages"),
    "count_tokens": ("/v1/messages/count_tokens",) * 2,
    "input_tokens": ("/v1/messages/count_tokens",) * 2,
    "completions": ("/v1/completions",) * 2,
    "embeddings": ("/v1/embeddings",) * 2,
}


@pytest.mark.parametrize(("key", "aliases", "model", "messages"), MODES.values(), ids=MODES)
@pytest.mark.parametrize(("route", "paths"), PATHS.items())
def test_which_route_of_the_engine(serve, engine, key, aliases, model, messages, route, paths):
    """The alias's word over the key's; each request is one on one path of the engine."""
    client = serve(servers=[{"use_anthropic_endpoints": key, "aliases": aliases}])
    assert client.on(route, model=model).status_code == 200
    assert [request.path for request in engine.inference] == [paths[messages]]
    assert engine.inference[-1].json["model"] == "m"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["chat", "messages", "responses"])
def test_an_answer_reads_alike_from_either_route_of_the_engine(
    serve, serve_messages, wire, route, stream
):
    """What the client is told does not depend on how its engine is spoken to."""

    def said(reply):
        if stream:
            events = wire.events(reply)
            pieces = {
                "chat": lambda data: (
                    (data.get("choices") or [{}])[0].get("delta", {}).get("content")
                ),
                "messages": lambda data: data.get("delta", {}).get("text"),
                "responses": lambda data: data.get("delta"),
            }[route]
            return "".join(pieces(data) or "" for _, data in events if data != "[DONE]")
        return {
            "chat": lambda body: body["choices"][0]["message"]["content"],
            "messages": lambda body: body["content"][0]["text"],
            "responses": lambda body: body["output"][0]["content"][0]["text"],
        }[route](reply.json)

    fields = {"temperature": 0.5}
    in_chat = said(serve().on(route, stream=stream, **fields))
    in_messages = said(serve_messages().on(route, stream=stream, **fields))
    assert in_chat == in_messages
    assert "temperature 0.5" in in_chat
