"""Messages requests, as Claude Code and its kin send them, on their way to an engine."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
TWO_CALLS = {"role": "assistant", "content": [USE, {**USE, "id": "t2"}]}
ASK = {"role": "user", "content": "go"}
FUNCTION = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}


def result(call_id="t1", **fields):
    """A block with a tool's result."""
    return {"type": "tool_result", "tool_use_id": call_id, **fields}


def text(said):
    """A block of text."""
    return {"type": "text", "text": said}


def conversation(serve, *turns, **fields):
    """The messages that an engine in Chat gets for these turns."""
    return serve().sent("messages", messages=list(turns), **fields)["messages"]


def test_tool_results_follow_their_calls(serve):
    """Whatever the user said between them, tool messages come first; the texts stay in order."""
    mixed = [text("reminder"), result(content="A"), text("and"), result("t2", content="B")]
    assistant, *rest = conversation(serve, TWO_CALLS, {"role": "user", "content": mixed})
    assert assistant["role"] == "assistant"
    assert [call["id"] for call in assistant["tool_calls"]] == ["t1", "t2"]
    assert rest == [
        {"role": "tool", "tool_call_id": "t1", "content": "A"},
        {"role": "tool", "tool_call_id": "t2", "content": "B"},
        {"role": "user", "content": [text("reminder"), text("and")]},
    ]


PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
LINK = {"type": "image", "source": {"type": "url", "url": "https://i/p.png"}}
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
LINK_PART = {"type": "image_url", "image_url": {"url": "https://i/p.png"}}
FOUND = {"type": "search_result", "title": "T", "source": "S", "content": [text("C")]}
RESULTS = {
    "absent": ({}, "", None),
    "null": ({"content": None}, "", None),
    "empty text": ({"content": ""}, "", None),
    "no blocks": ({"content": []}, "", None),
    "text": ({"content": "A"}, "A", None),
    "two texts": ({"content": [text("A"), text("B")]}, "A\nB", None),
    "text and image": ({"content": [text("A"), PNG]}, "A", [PNG_PART]),
    "link only": ({"content": [LINK]}, "", [LINK_PART]),
    "error": ({"content": "A", "is_error": True}, "A", None),
    "search result": ({"content": [FOUND]}, "Title: T\nSource: S\nContent: C", None),
    "reference": (
        {"content": [{"type": "tool_reference", "tool_name": "g"}]},
        [{"type": "tool_reference", "name": "g"}],
        None,
    ),
}


@pytest.mark.parametrize(("fields", "content", "images"), RESULTS.values(), ids=RESULTS)
def test_the_content_of_a_result(serve, fields, content, images):
    """One tool message with a content, whatever its shape; images go on as the user's."""
    _, *rest = conversation(
        serve,
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [result(**fields)]},
    )
    expected = [{"role": "tool", "tool_call_id": "t1", "content": content}]
    if images:
        expected.append({"role": "user", "content": images})
    assert rest == expected


def test_a_result_that_holds_an_unknown_block(serve, engine):
    """It is named, not lost."""
    block = {"type": "hologram"}
    reply = serve().messages(
        messages=[
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [result(content=[block])]},
        ]
    )
    assert (reply.status_code, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert "hologram" in reply.json["error"]["message"]
    assert engine.inference == []


CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURNS = {
    "empty text and a call": (
        [text(""), USE],
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
    ),
    "a call alone": ([USE], {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    "text and a call": (
        [text("a"), USE],
        {"role": "assistant", "content": "a", "tool_calls": [CALL]},
    ),
    "no blocks": ([], {"role": "assistant", "content": ""}),
    "an empty text": ("", {"role": "assistant", "content": ""}),
    "an empty block": ([text("")], {"role": "assistant", "content": ""}),
    "redacted thinking": (
        [{"type": "redacted_thinking", "data": "x"}],
        {"role": "assistant", "content": ""},
    ),
    "thinking and text": (
        [{"type": "thinking", "thinking": "t", "signature": "s"}, text("a")],
        {"role": "assistant", "content": "a", "reasoning_content": "t"},
    ),
    "what a vendor's own tool did": (
        [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            text("a"),
        ],
        {"role": "assistant", "content": "a"},
    ),
}


@pytest.mark.parametrize(("content", "message"), TURNS.values(), ids=TURNS)
def test_turns_of_the_assistant(serve, content, message):
    """A turn that is emptied stays, so that turns still alternate; nothing is said twice."""
    sent = conversation(serve, ASK, {"role": "assistant", "content": content}, ASK)
    assert sent == [ASK, message, ASK]


def test_an_empty_turn_of_the_user(serve):
    """It stays as an empty text, not as an empty list."""
    sent = conversation(serve, {"role": "user", "content": [text("")]})
    assert sent == [{"role": "user", "content": ""}]


BILLING = "x-anthropic-billing-header: cc_version=1; cch=abc;"
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEMS = {
    "billing line, marks": ([text(BILLING), {**text("S1"), **MARK}, text("S2")], "S1\n\nS2"),
    "billing line in a text": (f"{BILLING}\nS1\nS2", "S1\nS2"),
    "billing line elsewhere": ([text("S1"), text(BILLING)], f"S1\n\n{BILLING}"),
    "billing line alone": (BILLING, None),
    "empty text": ("", None),
    "no blocks": ([], None),
    "empty blocks": ([text(""), text("S"), text(" ")], "S"),
    "text": ("S", "S"),
    "null": (None, None),
}


@pytest.mark.parametrize(("system", "said"), SYSTEMS.values(), ids=SYSTEMS)
def test_the_system_prompt_is_one_leading_message(serve, system, said):
    """Blocks in order, empty ones left out, and without the line that changes each time."""
    expected = [] if said is None else [{"role": "system", "content": said}]
    assert conversation(serve, ASK, system=system) == [*expected, ASK]


def test_the_billing_line_goes_before_a_messages_engine_too(serve_messages):
    """It would defeat the prefix cache there as well; nothing else goes."""
    blocks = [text(BILLING), {**text("S1"), **MARK}]
    assert serve_messages().sent("messages", system=blocks)["system"] == blocks[1:]


SYSTEM_TURN = {"role": "system", "content": [text("mid")]}
U1, U2 = {"role": "user", "content": "u1"}, {"role": "user", "content": "u2"}
INLINE = {
    "in the middle": ("top", [U1, SYSTEM_TURN, U2], "top\n\nmid", [text("u1"), text("u2")]),
    "at the head": (None, [SYSTEM_TURN, U1, U2], "mid", [text("u1"), text("u2")]),
    "at the end": ("top", [U1, SYSTEM_TURN], "top\n\nmid", "u1"),
}


@pytest.mark.parametrize(("top", "turns", "said", "user"), INLINE.values(), ids=INLINE)
def test_a_system_turn_joins_the_leading_message(serve, top, turns, said, user):
    """Templates accept a system message at the head only; the user's texts keep their order."""
    assert conversation(serve, *turns, system=top) == [
        {"role": "system", "content": said},
        {"role": "user", "content": user},
    ]


@pytest.mark.parametrize(("top", "turns", "said", "user"), INLINE.values(), ids=INLINE)
def test_a_count_folds_alike(serve, engine, top, turns, said, user):
    """What is counted is what a generation would be sent."""
    assert serve().on("count_tokens", messages=turns, system=top).status_code == 200
    sent = engine.inference[-1].json
    blocks = user if isinstance(user, list) else [text(user)]
    assert (sent["system"], sent["messages"]) == (said, [{"role": "user", "content": blocks}])


CHOICES = {
    "auto": ({"type": "auto"}, "auto"),
    "any": ({"type": "any"}, "required"),
    "none": ({"type": "none"}, "none"),
    "tool": ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
}


@pytest.mark.parametrize(("choice", "mapped"), CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("flag", [None, True, False])
def test_tool_choice_and_the_parallel_switch(serve, choice, mapped, flag):
    """Each choice has its word in Chat; only a true switch is told."""
    switch = {} if flag is None else {"disable_parallel_tool_use": flag}
    sent = serve().sent("messages", tools=[FUNCTION], tool_choice={**choice, **switch})
    assert sent["tool_choice"] == mapped
    assert sent.get("parallel_tool_calls") == (False if flag else None)


THINKING = {
    "enabled": ({"type": "enabled", "budget_tokens": 1024}, True),
    "adaptive": ({"type": "adaptive"}, True),
    "disabled": ({"type": "disabled"}, False),
}


@pytest.mark.parametrize(("thinking", "on"), THINKING.values(), ids=THINKING)
def test_thinking_is_a_switch_of_the_template(serve, engine, thinking, on):
    """Under both names that templates have for it; the budget has no meaning here."""
    kwargs = serve().sent("messages", thinking=thinking)["chat_template_kwargs"]
    assert kwargs == {"thinking": on, "enable_thinking": on}
    assert b"budget_tokens" not in engine.inference[-1].body


@pytest.mark.parametrize("thinking", [{"type": "sometimes"}, {}, "on", [], 5])
def test_an_unknown_way_of_thinking(serve, engine, thinking):
    """It is refused by name."""
    reply = serve().messages(thinking=thinking)
    assert (reply.status_code, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert "thinking" in reply.json["error"]["message"]
    assert engine.inference == []


USERS = {
    "64": ("u" * 64, "u" * 64),
    "65": ("u" * 65, None),
    "as long as Claude Code's": ("u" * 150, None),
    "65 of two bytes": ("é" * 65, None),
    "null": (None, None),
    "JSON in a text": ('{"device":1}', '{"device":1}'),
}


@pytest.mark.parametrize(("user_id", "user"), USERS.values(), ids=USERS)
def test_the_users_id(serve, user_id, user):
    """It is Chat's `user` up to 64 characters, else nothing; metadata itself stays here."""
    sent = serve().sent("messages", metadata={"user_id": user_id})
    assert sent.get("user") == user
    assert "metadata" not in sent


def test_a_users_id_that_is_no_text(serve, engine):
    """It is refused by name."""
    reply = serve().messages(metadata={"user_id": 5})
    assert reply.status_code == 400
    assert "metadata.user_id" in reply.json["error"]["message"]
    assert engine.inference == []


HOSTED = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
BIG = {**FUNCTION, "name": "g", "description": "several words more of it"}


def count_of(client, **fields):
    """The tokens of a small request with these fields."""
    reply = client.on("count_tokens", **fields)
    assert reply.status_code == 200, reply.text
    assert reply.json.keys() == {"input_tokens"}
    assert isinstance(reply.json["input_tokens"], int)
    return reply.json["input_tokens"]


@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_a_count_grows_with_all_that_is_sent(request, engine, engine_in):
    """Tools, system and results count; a hosted tool, which is dropped, does not."""
    client = request.getfixturevalue(engine_in)("models: {aliases: [other]}")
    nested = [
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [result(content=[text("a b"), text("c d")])]},
    ]
    bare = count_of(client)
    one = count_of(client, tools=[FUNCTION])
    three = count_of(client, tools=[FUNCTION, BIG, {**BIG, "name": "h"}])
    assert bare < one < three
    assert bare < count_of(client, system="be brief")
    assert bare < count_of(client, messages=[ASK, *nested])
    assert bare == count_of(client, tools=[]) == count_of(client, tools=[HOSTED])
    assert one == count_of(client, tools=[HOSTED, FUNCTION])
    assert bare == count_of(client, max_tokens=5) == count_of(client, model="other")
    assert {request.path for request in engine.inference} == {"/v1/messages/count_tokens"}
    assert {request.json["model"] for request in engine.inference} == {"m"}


NO_COUNTS = {
    "no such route": (404, b'{"detail":"Not Found"}', 404),
    "a bug": (500, b"Internal Server Error", 500),
    "no number": (200, b'{"input_tokens":"many"}', 502),
    "no count": (200, b"{}", 502),
    "true": (200, b'{"input_tokens":true}', 502),
    "below zero": (200, b'{"input_tokens":-1}', 502),
    "beside an error": (200, b'{"input_tokens":5,"error":{"message":"full","code":503}}', 503),
}


@pytest.mark.parametrize(("status", "body", "told"), NO_COUNTS.values(), ids=NO_COUNTS)
def test_a_count_is_never_made_up(serve, say, status, body, told):
    """Where the engine does not count, that is an error in the dialect."""
    say.whole(body, status=status)
    reply = serve().on("count_tokens")
    assert reply.status_code == told
    assert reply.json["type"] == "error"
    assert "input_tokens" not in reply.json


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_query_changes_nothing(serve, engine, path):
    """Claude Code adds `?beta=true` to each of its paths."""
    body = {"model": "m", "max_tokens": 5, "messages": [ASK]}
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "x"}
    assert serve().post(body, path, params={"beta": "true"}, headers=headers).status_code == 200
    (sent,) = engine.inference
    assert "?" not in sent.path


def test_other_paths_that_claude_code_calls(serve, engine):
    """A look at the root is answered, and the model list has Anthropic's keys."""
    client = serve()
    assert client.simulate_head("/").status_code == 200
    listed = client.simulate_get("/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert listed.json["data"][0].items() >= {"type": "model", "id": "m"}.items()
    assert listed.json["has_more"] is False
    assert listed.headers["request-id"]
    assert engine.inference == []


def test_many_counts_at_once(serve, engine):
    """Claude Code asks for some fifty when it starts: each is one request to an engine."""
    client = serve()
    with ThreadPoolExecutor(16) as threads:
        counts = list(threads.map(lambda _: client.on("count_tokens").status_code, range(50)))
    assert counts == [200] * 50
    assert len(engine.inference) == 50


MALFORMED = {
    "no max_tokens": ({"max_tokens": None}, "max_tokens"),
    "max_tokens 0": ({"max_tokens": 0}, "max_tokens"),
    "max_tokens -1": ({"max_tokens": -1}, "max_tokens"),
    "max_tokens as text": ({"max_tokens": "10"}, "max_tokens"),
    "max_tokens 1.5": ({"max_tokens": 1.5}, "max_tokens"),
    "max_tokens true": ({"max_tokens": True}, "max_tokens"),
    "no messages": ({"messages": None}, "messages"),
    "empty messages": ({"messages": []}, "messages"),
    "messages as text": ({"messages": "hi"}, "messages"),
    "no role": ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    "unknown role": ({"messages": [{"role": "tool", "content": "hi"}]}, "messages[0].role"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content"),
    "model as number": ({"model": 5}, "model"),
    "stream as text": ({"stream": "true"}, "stream"),
    "hosted choice of an unknown type": ({"tools": [{"type": "warp_drive"}]}, "tools[0].type"),
}


@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
@pytest.mark.parametrize(("fields", "named"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_requests(request, engine, engine_in, fields, named):
    """A 400 in Anthropic's envelope that names the field; no engine is asked."""
    reply = request.getfixturevalue(engine_in)().messages(**fields)
    assert (reply.status_code, reply.json["type"]) == (400, "error")
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert named in reply.json["error"]["message"]
    assert engine.inference == []


@pytest.mark.parametrize("raw", [b"[]", b'"x"', b"{", b"", b"null", b'{"model":NaN}'])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_body_that_is_no_object(serve, engine, raw, path):
    """The same envelope."""
    reply = serve().post(raw, path)
    assert (reply.status_code, reply.json["type"]) == (400, "error")
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert engine.inference == []


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_a_wrong_method(serve, path, method):
    """Told in the dialect of the path."""
    reply = serve().simulate_request(method, path)
    assert (reply.status_code, reply.json["type"]) == (405, "error")
    assert reply.json["error"]["type"] == "invalid_request_error"
    assert "POST" in reply.headers["allow"]


def test_a_profiles_budget_stands_in(serve):
    """Where a profile has a default, a request without max_tokens is no mistake."""
    client = serve("output: {max_tokens: {cap: 100, default: 10}}")
    assert client.sent("messages", max_tokens=None)["max_tokens"] == 10


SOURCES = {
    "base64": ({"type": "base64", "media_type": "image/jpeg", "data": "AA=="}, "image/jpeg"),
    "base64 without a media type": ({"type": "base64", "data": "AA=="}, "image/png"),
    "a data URL as data": (
        {"type": "base64", "media_type": "image/png", "data": "data:image/gif;base64,AA=="},
        "image/gif",
    ),
}


@pytest.mark.parametrize(("source", "media_type"), SOURCES.values(), ids=SOURCES)
def test_images_as_data(serve, source, media_type):
    """One data URL, with its head exactly once."""
    block = {"type": "image", "source": source}
    (message,) = conversation(serve, {"role": "user", "content": [block]})
    url = f"data:{media_type};base64,AA=="
    assert message["content"] == [{"type": "image_url", "image_url": {"url": url}}]


def test_images_as_links(serve):
    """A link stays one."""
    (message,) = conversation(serve, {"role": "user", "content": [LINK, text("see")]})
    assert message["content"] == [LINK_PART, text("see")]


BAD_SOURCES = {
    "a file": {"type": "file", "file_id": "f"},
    "no data": {"type": "base64", "media_type": "image/png", "data": ""},
    "data null": {"type": "base64", "media_type": "image/png", "data": None},
    "no link": {"type": "url"},
    "media type null": {"type": "base64", "media_type": 5, "data": "AA=="},
    "nothing": {},
    "null": None,
}


@pytest.mark.parametrize("source", BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_images_that_are_none(serve, engine, source):
    """Refused by the place in the request; nothing like `data:None` is ever sent."""
    block = {"type": "image", "source": source}
    reply = serve().messages(messages=[{"role": "user", "content": [block]}])
    assert reply.status_code == 400
    assert "messages[0].content[0].source" in reply.json["error"]["message"]
    assert engine.inference == []


def test_dropped_tools_are_told_in_a_header(serve, engine):
    """Each type once; no empty list of tools and no choice of a dropped one is sent on."""
    client = serve()
    reply = client.messages(
        tools=[HOSTED, HOSTED, {"type": "bash_20250124", "name": "bash"}],
        tool_choice={"type": "tool", "name": "web_search"},
    )
    assert reply.headers["x-sgl-gateway-dropped-tools"] == "web_search_20250305, bash_20250124"
    assert not {"tools", "tool_choice"} & engine.inference[-1].json.keys()
    own = {**FUNCTION, "name": "web_search"}
    (tool,) = client.sent("messages", tools=[own])["tools"]
    assert tool["function"]["name"] == "web_search"


def test_history_is_converted_as_text_of_json(serve):
    """A call's input is the text of its JSON in Chat."""
    used = {**USE, "input": {"a": 1.5, "b": "é"}}
    (message,) = conversation(serve, {"role": "assistant", "content": [used]})
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"a": 1.5, "b": "é"}
