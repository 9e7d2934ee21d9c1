"""Responses requests, as Codex and its kin send them, and their answers."""

import json

import pytest

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "u"}


def sent(serve, **fields):
    """The Chat body that an engine gets."""
    return serve().sent("responses", **fields)


def refusal(serve, **fields):
    """The error of a request that must be refused before an engine sees it."""
    client = serve()
    reply = client.responses(**fields)
    assert (reply.status_code, reply.json["error"]["code"]) == (400, "bad_request"), reply.text
    assert client.engine.inference == []
    return reply.json["error"]


def kinds(events):
    """The types of the events, in order, each under its own name."""
    assert all(name == data["type"] for name, data in events)
    return [name.removeprefix("response.") for name, _ in events]


def named(events, kind):
    """The data of the events of a type."""
    return [data for name, data in events if name == f"response.{kind}"]


def check_lifecycle(events):
    """What holds for every whole stream; returns the final Response."""
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    assert kinds(events)[:2] == ["created", "in_progress"]
    assert kinds(events)[-1] in {"completed", "incomplete", "failed"}
    begun = events[0][1]["response"]
    final = events[-1][1]["response"]
    assert begun["status"] == "in_progress"
    assert begun["id"] == final["id"]
    assert final["id"].startswith("resp_")
    done = named(events, "output_item.done")
    assert [data["output_index"] for data in done] == list(range(len(done)))
    assert [data["item"] for data in done] == final["output"]
    added = {
        data["item"]["id"]: data["output_index"] for data in named(events, "output_item.added")
    }
    assert list(added) == [item["id"] for item in final["output"]]
    for _, data in events:
        if "item_id" in data:
            assert added[data["item_id"]] == data["output_index"]
    return final


def test_a_whole_stream(serve, say, wire):
    """Reasoning, text in two pieces and a call: each item's life, in the order of the protocol."""
    say.stream(
        wire.chunk({"role": "assistant", "content": ""}),
        wire.reasoning("think"),
        wire.text("Par"),
        wire.text("is"),
        wire.call(0, "call_1", "f", ""),
        wire.call(0, None, None, '{"a":'),
        wire.call(0, None, None, "1}"),
        wire.finish("tool_calls"),
        wire.usage_chunk(41, 7),
    )
    reply = serve().responses(stream=True, tools=[FUNCTION])
    assert b"[DONE]" not in reply.content
    events = wire.events(reply)
    final = check_lifecycle(events)
    assert kinds(events) == [
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
    assert [item["type"] for item in final["output"]] == ["reasoning", "message", "function_call"]
    assert final["output"][1]["content"][0]["text"] == "Paris"
    call = final["output"][2]
    assert (call["call_id"], call["name"], call["arguments"]) == ("call_1", "f", '{"a":1}')
    assert named(events, "function_call_arguments.done")[0]["arguments"] == '{"a":1}'
    assert (final["object"], final["model"], final["status"]) == ("response", "m", "completed")
    assert final["usage"]["total_tokens"] == 48


def test_a_whole_reply_is_the_same_response(serve, say, wire):
    """Whole and streamed, the items are the same but for their ids."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "reasoning_content": "t", "content": "x", "tool_calls": [call]}
    say.whole(wire.reply(message, "tool_calls", usage=wire.usage(3, 2)))
    say.stream(
        wire.reasoning("t"),
        wire.text("x"),
        wire.call(0, "call_1", "f", "{}"),
        wire.finish("tool_calls"),
        wire.usage_chunk(3, 2),
    )
    client = serve()
    whole = client.responses(tools=[FUNCTION]).json
    streamed = check_lifecycle(wire.events(client.responses(tools=[FUNCTION], stream=True)))
    for response in (whole, streamed):
        for item in response["output"]:
            item.pop("id")
    differing = {"id", "created_at"}
    assert whole.keys() == streamed.keys()
    assert {key: whole[key] for key in whole.keys() - differing} == {
        key: streamed[key] for key in whole.keys() - differing
    }


def test_an_end_without_a_finish_reason(serve, say, wire):
    """Items are closed before the end, which is no cut where [DONE] was seen."""
    say.stream(wire.text("a"), wire.usage_chunk(3, 1))
    events = wire.events(serve().responses(stream=True))
    assert kinds(events)[-4:] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert check_lifecycle(events)["usage"]["output_tokens"] == 1


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_an_answer_that_was_cut_short(serve, say, wire, finish, reason):
    """It is incomplete, and says why, whole and streamed."""
    say.whole(wire.reply(finish=finish))
    say.stream(wire.text("a"), wire.finish(finish))
    client = serve()
    whole = client.responses().json
    events = wire.events(client.responses(stream=True))
    assert kinds(events)[-1] == "incomplete"
    for response in (whole, check_lifecycle(events)):
        assert response["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": reason}


def test_a_failure_after_words(serve, say, wire):
    """The open item closes, and the last event says that the Response failed."""
    say.stream(wire.text("a"), {"error": {"message": "broken", "code": 500}})
    events = wire.events(serve().responses(stream=True))
    final = check_lifecycle(events)
    assert kinds(events)[-2:] == ["output_item.done", "failed"]
    assert final["error"]["code"] == "server_error"


CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
DATA_URL = "data:image/png;base64,AA=="
IMAGE = {"type": "input_image", "image_url": DATA_URL}
IMAGE_PART = {"type": "image_url", "image_url": {"url": DATA_URL}}
OK = {"type": "input_text", "text": "ok"}
OUTPUTS = {
    "text": ("ok", "ok", None),
    "empty": ("", "", None),
    "text and image": ([OK, IMAGE], "ok", [IMAGE_PART]),
    "image only": ([IMAGE], "", [IMAGE_PART]),
    "two texts": ([OK, OK], "ok\nok", None),
    "an object": ({"a": 1}, '{"a":1}', None),
    "null": (None, "", None),
    "no blocks": ([], "", None),
    "an image without data": ([{"type": "input_image"}], "[an image without data]", None),
    "an unknown block": ([{"type": "hologram", "x": 1}], '{"type":"hologram","x":1}', None),
}


@pytest.mark.parametrize(("output", "content", "images"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_of_tools(serve, output, content, images):
    """Text is text, images go on as the user's, and an odd block does not end the session."""
    item = {"type": "function_call_output", "call_id": "c1", "output": output}
    messages = sent(serve, input=[USER, CALL, item])["messages"]
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": content}
    assert messages[3:] == ([{"role": "user", "content": images}] if images else [])


def test_an_image_by_the_id_of_a_file(serve):
    """Files are not kept here, and the refusal names the part."""
    part = {"type": "input_image", "file_id": "file_1"}
    item = {"type": "function_call_output", "call_id": "c1", "output": [part]}
    for items in ([USER, CALL, item], [{"role": "user", "content": [part]}]):
        assert "file_id" in refusal(serve, input=items)["param"]


LEADING = {
    "instructions first": (
        {"instructions": "I", "input": [{"role": "developer", "content": "D"}, USER]},
        [{"role": "system", "content": "I\n\nD"}, USER],
    ),
    "a late one": (
        {
            "instructions": "I",
            "input": [
                {"role": "developer", "content": "D"},
                USER,
                {"role": "developer", "content": "late"},
            ],
        },
        [{"role": "system", "content": "I\n\nD\n\nlate"}, USER],
    ),
    "a system item": (
        {"input": [{"role": "system", "content": "S"}, USER]},
        [{"role": "system", "content": "S"}, USER],
    ),
    "nothing": ({"instructions": "", "input": [USER]}, [USER]),
}


@pytest.mark.parametrize(("fields", "messages"), LEADING.values(), ids=LEADING)
def test_there_is_one_leading_system_message(serve, fields, messages):
    """Instructions, then developer and system items in their order, late ones too."""
    assert sent(serve, **fields)["messages"] == messages


def test_the_developer_of_a_chat_client(serve, engine):
    """SGLang knows the role, so a Chat body keeps it."""
    messages = [{"role": "developer", "content": "D"}, USER]
    assert serve().sent(messages=messages)["messages"] == messages


def test_the_developer_of_a_chat_client_before_a_messages_engine(serve_messages):
    """There it is part of `system`."""
    body = serve_messages().sent(messages=[{"role": "developer", "content": "D"}, USER])
    assert (body["system"], body["messages"]) == ("D", [USER])


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}
CUSTOM = {"type": "custom", "name": "patch", "description": "d", "format": GRAMMAR}
SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "about",
    "tools": [{**FUNCTION, "name": "find"}, {**FUNCTION, "name": "add"}],
}
HOSTED = [{"type": "web_search"}, {"type": "image_generation"}, {"type": "local_shell"}]


def test_tools_of_a_client(serve):
    """Hosted ones are dropped and told; the others are functions, in the client's order."""
    client = serve()
    strict = {**FUNCTION, "strict": True}
    reply = client.responses(tools=[strict, *HOSTED, CUSTOM, SPACE])
    told = reply.headers["x-sgl-gateway-dropped-tools"]
    assert told == "web_search, image_generation, local_shell"
    tools = client.engine.inference[-1].json["tools"]
    assert [tool["type"] for tool in tools] == ["function"] * 4
    functions = [tool["function"] for tool in tools]
    assert [function["name"] for function in functions] == ["f", "patch", "crm__find", "crm__add"]
    assert functions[0]["strict"] is True
    assert functions[0]["parameters"] == FUNCTION["parameters"]
    assert functions[1]["parameters"]["required"] == ["input"]
    assert "start: /a+/" in functions[1]["description"]


NAMED = {
    "a function": ({"type": "function", "name": "f"}, "f"),
    "a custom tool": ({"type": "custom", "name": "patch"}, "patch"),
    "one of a namespace": ({"type": "function", "name": "find", "namespace": "crm"}, "crm__find"),
}


@pytest.mark.parametrize(("choice", "name"), NAMED.values(), ids=NAMED)
def test_a_named_tool(serve, choice, name):
    """It is named as the engine knows it."""
    body = sent(serve, tools=[FUNCTION, CUSTOM, SPACE], tool_choice=choice)
    assert body["tool_choice"] == {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize("tool", HOSTED, ids=lambda tool: tool["type"])
def test_a_choice_of_a_hosted_tool_goes_with_it(serve, tool):
    """No choice is left of what is not there."""
    body = sent(serve, tools=[tool], tool_choice={"type": tool["type"]})
    assert not {"tools", "tool_choice"} & body.keys()


def test_a_tool_of_an_unknown_type(serve):
    """It is refused by its type, rather than lost in silence."""
    error = refusal(serve, tools=[{"type": "warp_drive", "name": "w"}])
    assert "warp_drive" in error["message"]
    assert error["param"] == "tools[0].type"


def test_calls_come_back_as_the_client_knows_its_tools(serve, say, wire):
    """A custom call has its text, one of a namespace its own name; whole and streamed."""
    arguments = json.dumps({"input": "*** a"})
    calls = [("c1", "patch", arguments), ("c2", "crm__find", "{}"), ("c3", "f", "{}")]
    whole = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": said}}
        for call_id, name, said in calls
    ]
    say.whole(wire.reply({"content": None, "tool_calls": whole}, "tool_calls"))
    pieces = [wire.call(index, *call) for index, call in enumerate(calls)]
    say.stream(*pieces, wire.finish("tool_calls"))
    client = serve()
    fields = {"tools": [FUNCTION, CUSTOM, SPACE]}
    outputs = [client.responses(**fields).json["output"]]
    streamed = client.responses(stream=True, **fields)
    events = wire.events(streamed)
    outputs.append(check_lifecycle(events)["output"])
    for custom, spaced, plain in outputs:
        assert (custom["type"], custom["name"], custom["input"]) == (
            "custom_tool_call",
            "patch",
            "*** a",
        )
        assert (spaced["name"], spaced["namespace"]) == ("find", "crm")
        assert (plain["name"], plain["call_id"]) == ("f", "c3")
        assert "namespace" not in plain
    assert [data["input"] for data in named(events, "custom_tool_call_input.done")] == ["*** a"]
    assert "crm__find" not in streamed.text


STATE = {
    "previous_response_id": "resp_1",
    "conversation": {"id": "conv_1"},
    "prompt": {"id": "pmpt_1"},
    "background": True,
    "input": [{"type": "item_reference", "id": "msg_1"}],
}


@pytest.mark.parametrize(("field", "value"), STATE.items())
def test_state_is_not_kept(serve, field, value):
    """What refers to it is refused, since a history must not be dropped in silence."""
    error = refusal(serve, **{field: value})
    assert "keeps no state" in error["message"]
    assert error["param"].partition("[")[0] == field


@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "prompt"])
@pytest.mark.parametrize("route", ["responses", "input_tokens"])
def test_no_state_is_fine(serve, field, route):
    """Null is nothing; what the client may store is its own business."""
    body = serve().sent(route, **{field: None}, store=True, background=False)
    assert not {field, "store", "background"} & body.keys()


EMPTY = [[], "", None, {}, 5, True]


@pytest.mark.parametrize("empty", EMPTY, ids=map(repr, EMPTY))
@pytest.mark.parametrize("route", ["responses", "input_tokens"])
def test_an_input_that_says_nothing(serve, engine, empty, route):
    """A 400 that names it."""
    reply = serve().on(route, input=empty)
    assert (reply.status_code, reply.json["error"]["param"]) == (400, "input")
    assert engine.inference == []


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/responses/resp_1/input_items"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_nothing_to_be_fetched(serve, path, method):
    """An unknown path is a 404 in JSON."""
    reply = serve().simulate_request(method, path)
    assert (reply.status_code, reply.json["error"]["code"]) == (404, "not_found")


BOOKKEEPING = {
    "client_metadata": {"a": "b"},
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "max_tool_calls": 3,
    "truncation": "auto",
    "store": False,
    "service_tier": "auto",
    "safety_identifier": "s",
}


def test_bookkeeping_stays_here(serve):
    """What is the client's own does not reach the engine; the Response repeats its settings."""
    client = serve()
    reply = client.responses(**BOOKKEEPING)
    body = client.engine.inference[-1].json
    assert not (BOOKKEEPING.keys() - {"safety_identifier"}) & body.keys()
    echoed = BOOKKEEPING.keys() - {"client_metadata", "include"}
    assert {key: reply.json[key] for key in echoed} == {key: BOOKKEEPING[key] for key in echoed}


MAPPED = {
    "format": (
        {
            "text": {
                "verbosity": "low",
                "format": {"type": "json_schema", "name": "s", "schema": {}},
            }
        },
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}},
    ),
    "text": ({"text": {"format": {"type": "text"}}}, {}),
    "JSON": (
        {"text": {"format": {"type": "json_object"}}},
        {"response_format": {"type": "json_object"}},
    ),
    "effort": ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
    "budget": ({"max_output_tokens": 9}, {"max_completion_tokens": 9}),
    "sampling": ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
    "log probabilities": ({"top_logprobs": 2}, {"top_logprobs": 2, "logprobs": True}),
    "parallel calls": ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
}


@pytest.mark.parametrize(("fields", "mapped"), MAPPED.values(), ids=MAPPED)
def test_settings_under_their_names_in_chat(serve, fields, mapped):
    """What an engine can use arrives under the name that it knows, and nothing beside it."""
    client = serve()
    reply = client.responses(**fields)
    assert (
        client.engine.inference[-1].json
        == {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | mapped
    )
    for key, value in fields.items():
        got = reply.json[key]
        assert got == value or value.items() <= got.items()


def test_a_schema_beside_tools(serve, say, wire):
    """An engine constrains one of the two: the schema is offered as a tool, and answers as text."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    form = {"format": {"type": "json_schema", "name": "s", "schema": schema}}
    client = serve()
    client.responses(tools=[FUNCTION], text=form)
    body = client.engine.inference[-1].json
    assert body["tool_choice"] == "required"
    assert "response_format" not in body
    first, offered = (tool["function"] for tool in body["tools"])
    assert (first["name"], offered["parameters"]) == ("f", schema)
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": offered["name"], "arguments": '{"a":1}'},
    }
    say.whole(wire.reply({"content": None, "tool_calls": [call]}, "tool_calls"))
    (item,) = client.responses(tools=[FUNCTION], text=form).json["output"]
    assert (item["type"], item["content"][0]["text"]) == ("message", '{"a":1}')


@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_a_count_of_input_tokens(request, engine, engine_in):
    """The engine's own counter, in the shape of this dialect."""
    client = request.getfixturevalue(engine_in)()
    bare = client.on("input_tokens").json
    assert bare.keys() == {"object", "input_tokens"}
    assert bare["object"] == "response.input_tokens"
    more = client.on("input_tokens", instructions="be brief", tools=[FUNCTION]).json
    assert more["input_tokens"] > bare["input_tokens"]
    assert {request.path for request in engine.inference} == {"/v1/messages/count_tokens"}
