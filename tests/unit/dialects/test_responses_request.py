"""Responses requests as Chat requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import jsonbody
from gateway.dialects.responses import ClientTool, count_tokens_body, render_count, to_chat
from gateway.errors import GatewayError

CASES = sorted((Path(__file__).parents[2] / "cases" / "responses").glob("*.json"))
FUNCTION = {"type": "function", "name": "f"}
CUSTOM = {"type": "custom", "name": "c"}
SPACE = {"type": "namespace", "name": "crm", "description": "", "tools": [FUNCTION, CUSTOM]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORMAT = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}


def chat_of(**body: Any) -> dict[str, Any]:
    """The Chat body of a request that has a model and an input."""
    return to_chat({"model": "m", "input": "Hi", **body}).chat


def messages_of(*items: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
    """The Chat messages of some input items."""
    return chat_of(input=list(items), **body)["messages"]


def user(text: str = "u") -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}


def call(call_id: str, name: str = "f", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    """A function call of the history."""
    kind = "function_call"
    return {"type": kind, "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(call_id: str, value: Any = "ok") -> dict[str, Any]:
    """A function call's output."""
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def named(name: str) -> dict[str, Any]:
    """A choice of one function, in Chat's form."""
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_request_of_a_real_client_has_its_chat_form(path: Path) -> None:
    """The whole Chat body of each recorded shape, and the hosted tools that it went without."""
    case = json.loads(path.read_text(encoding="utf-8"))
    request = json.loads(json.dumps(case["request"]))
    converted = to_chat(request)
    assert converted.chat == case["chat"]
    assert list(converted.dropped_tools) == case["dropped"]
    assert request == case["request"], "the client's body is not changed"


@pytest.mark.parametrize(
    ("items", "system"),
    [
        ([{"role": "developer", "content": "D"}, user()], "I\n\nD"),
        ([user(), {"role": "developer", "content": "late"}], "I\n\nlate"),
        ([{"role": "system", "content": ""}, user()], "I"),
        (
            [
                {
                    "type": "message",
                    "role": "system",
                    "content": [
                        {"type": "input_text", "text": "a"},
                        {"type": "input_text", "text": "b"},
                    ],
                },
                user(),
            ],
            "I\n\na\n\nb",
        ),
    ],
    ids=["developer", "late", "empty", "parts"],
)
def test_all_that_leads_is_one_system_message(items: list[Any], system: str) -> None:
    """Instructions, then developer and system messages, are the one leading system message."""
    assert messages_of(*items, instructions="I") == [
        {"role": "system", "content": system},
        {"role": "user", "content": "u"},
    ]


def test_no_system_message_is_made_of_nothing() -> None:
    """Without instructions there is no system message."""
    assert messages_of(user(), instructions="") == [{"role": "user", "content": "u"}]


@pytest.mark.parametrize(
    ("items", "shape"),
    [
        ([call("a"), call("b"), output("b"), output("a")], "A[a b] T[a] T[b]"),
        ([call("a"), output("a"), call("b"), output("b")], "A[a] T[a] A[b] T[b]"),
        ([call("a"), call("b"), output("a"), user(), output("b")], "A[a b] T[a] T[b] U"),
        ([call("a"), user(), output("a")], "A[a] T[a] U"),
        ([call("0"), output("0", "1"), call("0"), output("0", "2")], "A[0] T[0] A[0] T[0]"),
        ([output("x"), user()], "T[x] U"),
        ([call("a"), call("b"), output("b")], "A[a b] T[b]"),
        ([user("1"), user("2")], "U"),
    ],
    ids=[
        "parallel",
        "sequential",
        "output-after-user",
        "user-between",
        "id-used-again",
        "call-elsewhere",
        "output-missing",
        "two-user-messages",
    ],
)
def test_tool_messages_follow_their_turn(items: list[Any], shape: str) -> None:
    """Outputs follow the turn of their calls, in the order of these."""
    letters = {"assistant": "A", "tool": "T", "user": "U"}
    shown = []
    for message in messages_of(*items):
        ids = [each["id"] for each in message.get("tool_calls", [])]
        ids += [message["tool_call_id"]] if "tool_call_id" in message else []
        shown.append(letters[message["role"]] + (f"[{' '.join(ids)}]" if ids else ""))
    assert " ".join(shown) == shape


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            [{"role": "assistant", "content": "x"}],
            {"role": "assistant", "content": "x"},
        ),
        (
            [
                {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            ],
            {"role": "assistant", "content": "x\n\nno"},
        ),
        (
            [{"role": "assistant", "content": ""}],
            {"role": "assistant", "content": ""},
        ),
        (
            [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]}],
            {"role": "assistant", "content": "", "reasoning_content": "s"},
        ),
    ],
    ids=["text", "texts", "empty", "summary"],
)
def test_a_turn_of_the_model_is_one_message(items: list[Any], message: Any) -> None:
    """Texts of one turn are joined; a summary stands in for reasoning that was not shown."""
    assert messages_of(user(), *items) == [user(), message]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"a": 1.0}', '{"a": 1.0}'),
        ("", "{}"),
        (" ", "{}"),
        (None, "{}"),
        ("[1]", "{}"),
        ('{"a":', "{}"),
        ('{"a": NaN}', "{}"),
        ("[" * 5000, "{}"),
        ({"a": "京"}, '{"a":"京"}'),
    ],
    ids=["kept", "empty", "blank", "null", "list", "broken", "nan", "deep", "object"],
)
def test_arguments_in_the_history_are_an_object(arguments: Any, sent: str) -> None:
    """The engine refuses other arguments, and the client would send them again for ever."""
    (message,) = messages_of(call("a", arguments=arguments))
    assert message["tool_calls"][0]["function"]["arguments"] == sent


@pytest.mark.parametrize(
    ("value", "content", "urls"),
    [
        ("text", "text", []),
        (None, "", []),
        ([], "", []),
        ({"exit": 0}, '{"exit":0}', []),
        ([1, "x"], '[1,"x"]', []),
        (3, "3", []),
        ([{"type": "input_text", "text": None}], "", []),
        ([{"type": "input_image", "image_url": "http://x/a.png"}], "", ["http://x/a.png"]),
        ({"type": "input_image", "image_url": "data:,A"}, "", ["data:,A"]),
        ([{"type": "image_url", "image_url": {"url": "data:,A"}}], "", ["data:,A"]),
        ([{"type": "odd", "a": 1}], '{"type":"odd","a":1}', []),
    ],
    ids=[
        "text",
        "null",
        "no-blocks",
        "object",
        "plain-list",
        "number",
        "null-text",
        "image",
        "bare-image",
        "chat-image",
        "unknown-block",
    ],
)
def test_an_output_is_a_text_and_its_images_go_on(value: Any, content: str, urls: Any) -> None:
    """A tool message holds text; images go on in the user message after it, never as text."""
    _, tool, *rest = messages_of(call("a"), output("a", value))
    assert tool == {"role": "tool", "tool_call_id": "a", "content": content}
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert rest == ([{"role": "user", "content": parts}] if urls else [])


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ("plain", "plain"),
        ([], ""),
        ([{"type": "input_text", "text": "one"}], "one"),
        (
            [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        ),
        (
            [{"type": "input_image", "image_url": "http://x", "detail": "low"}],
            [{"type": "image_url", "image_url": {"url": "http://x", "detail": "low"}}],
        ),
        (
            [{"type": "input_image", "image_url": "http://x", "detail": None}],
            [{"type": "image_url", "image_url": {"url": "http://x"}}],
        ),
        (
            [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}],
            [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}],
        ),
    ],
    ids=["easy", "no-parts", "one-text", "texts", "image", "no-detail", "audio"],
)
def test_a_users_parts_have_their_chat_form(content: Any, sent: Any) -> None:
    """One text is a text, anything else a list of Chat parts."""
    assert messages_of({"role": "user", "content": content}) == [{"role": "user", "content": sent}]


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"input": None}, "input"),
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": {"role": "user"}}, "input"),
    ({"input": ["x"]}, "input[0]"),
    ({"input": [{"type": "reasoning", "encrypted_content": "x"}]}, "input"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"background": True}, "background"),
    ({"n": 2}, "n"),
    ({"stream": "true"}, "stream"),
    ({"instructions": ["I"]}, "instructions"),
    ({"reasoning": "low"}, "reasoning"),
    ({"text": []}, "text"),
    ({"text": {"format": {"type": "regex"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "name": "s"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
    ({"input": [{"id": "msg_1"}]}, "input[0]"),
    ({"input": [{"type": "shell_call"}]}, "input[0].type"),
    ({"input": [{"type": ["message"]}]}, "input[0].type"),
    ({"input": [user(), {"role": "tool", "content": "x"}]}, "input[1].role"),
    ({"input": [{"role": "user", "content": None}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "input[0].content[0].type",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0].file_id",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "input[0].content[0].image_url",
    ),
    (
        {"input": [{"role": "developer", "content": [{"type": "input_image"}]}]},
        "input[0].content[0].type",
    ),
    ({"input": [output("a", [{"type": "input_file"}])]}, "input[0].output[0].type"),
    (
        {"input": [output("a", [{"type": "input_image", "file_id": "f"}])]},
        "input[0].output[0].file_id",
    ),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": [call("", "f")]}, "input[0].call_id"),
    ({"input": [call("a", "")]}, "input[0].name"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"type": "wat"}]}, "tools[0].type"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
    ({"tools": [{**FUNCTION, "parameters": "x"}]}, "tools[0].parameters"),
    ({"tools": [{**FUNCTION, "strict": "yes"}]}, "tools[0].strict"),
    ({"tools": [{**CUSTOM, "format": {"type": "grammar"}}]}, "tools[0].format"),
    ({"tools": [FUNCTION, {**SPACE, "tools": [SPACE]}]}, "tools[1].tools[0]"),
    ({"tools": [{**SPACE, "tools": [{"type": "wat"}]}]}, "tools[0].tools[0].type"),
    (
        {"input": [user(), {"type": "additional_tools", "tools": [{"type": "wat"}]}]},
        "input[1].tools[0].type",
    ),
    ({"tools": [FUNCTION], "tool_choice": "any"}, "tool_choice"),
    ({"tools": [FUNCTION], "tool_choice": {"type": "any"}}, "tool_choice.type"),
    (
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "g"}},
        "tool_choice.name",
    ),
    (
        {"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "tools": []}},
        "tool_choice.mode",
    ),
    (
        {
            "tools": [FUNCTION],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "g"}],
            },
        },
        "tool_choice.tools[0]",
    ),
]


@pytest.mark.parametrize(
    ("body", "param"),
    REFUSALS,
    ids=[f"{number}-{param}" for number, (_, param) in enumerate(REFUSALS)],
)
def test_what_cannot_be_served_is_a_400_that_names_it(body: dict[str, Any], param: str) -> None:
    """The message begins with the field, and `param` is that field."""
    with pytest.raises(GatewayError) as caught:
        chat_of(**body)
    assert (caught.value.kind.status, caught.value.param) == (400, param)
    assert caught.value.message.startswith(f"{param}: ")


def test_tools_are_known_by_their_own_names() -> None:
    """Each flat name leads back to the client's tool, its namespace and its kind."""
    clash = {"type": "function", "name": "crm__f"}
    converted = to_chat({"input": "x", "tools": [FUNCTION, CUSTOM, clash, SPACE]})
    assert [tool["function"]["name"] for tool in converted.chat["tools"]] == [
        "f",
        "c",
        "crm__f",
        "crm__f_2",
        "crm__c",
    ]
    assert dict(converted.names.tools) == {
        "f": ClientTool("f"),
        "c": ClientTool("c", custom=True),
        "crm__f": ClientTool("crm__f"),
        "crm__f_2": ClientTool("f", "crm"),
        "crm__c": ClientTool("c", "crm", custom=True),
    }
    assert converted.names.client_tool("made_up") == ClientTool("made_up")


def test_a_call_of_the_history_has_the_name_that_is_offered() -> None:
    """A namespaced call is shown to the model under the name that it can call now."""
    clash = {"type": "function", "name": "crm__f"}
    (message,) = messages_of(call("a", namespace="crm"), tools=[clash, SPACE])
    assert message["tool_calls"][0]["function"]["name"] == "crm__f_2"


def test_a_function_keeps_what_it_says() -> None:
    """`strict` and unknown keys stay; nulls go; a deferred tool is shown all the same."""
    tool = {
        **FUNCTION,
        "parameters": SCHEMA,
        "strict": True,
        "description": None,
        "output_schema": {"type": "string"},
        "defer_loading": True,
    }
    function = chat_of(tools=[tool])["tools"][0]["function"]
    assert list(function.items()) == [
        ("name", "f"),
        ("description", ""),
        ("parameters", SCHEMA),
        ("strict", True),
        ("output_schema", {"type": "string"}),
    ]


@pytest.mark.parametrize(
    ("tools", "choice", "names", "sent"),
    [
        ([FUNCTION], None, ["f"], None),
        ([FUNCTION], "required", ["f"], "required"),
        ([FUNCTION], {"type": "function", "name": "f"}, ["f"], named("f")),
        ([CUSTOM], {"type": "custom", "name": "c"}, ["c"], named("c")),
        ([SPACE], {"type": "function", "name": "f"}, ["crm__f", "crm__c"], named("crm__f")),
        (
            [FUNCTION, SPACE],
            {"type": "function", "name": "f", "namespace": "crm"},
            ["f", "crm__f", "crm__c"],
            named("crm__f"),
        ),
        ([FUNCTION, {"type": "web_search"}], {"type": "web_search"}, ["f"], None),
        ([{"type": "web_search_preview"}], "auto", None, None),
        ([{"type": "mcp"}], "required", None, None),
        ([], "auto", None, "auto"),
        ([], "required", None, "required"),
        (
            [FUNCTION, CUSTOM],
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "custom", "name": "c"}, {"type": "web_search"}],
            },
            ["c"],
            "required",
        ),
        (
            [FUNCTION, SPACE],
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "namespace", "name": "crm"}],
            },
            ["crm__f", "crm__c"],
            "auto",
        ),
        (
            [FUNCTION],
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp"}]},
            None,
            None,
        ),
    ],
    ids=[
        "absent",
        "word",
        "function",
        "custom",
        "only-one-of-that-name",
        "namespaced",
        "hosted",
        "all-hosted",
        "required-hosted",
        "no-tools",
        "required-without-tools",
        "allowed",
        "allowed-namespace",
        "allowed-hosted",
    ],
)
def test_the_choice_is_among_the_tools_that_are_left(
    tools: list[Any], choice: Any, names: Any, sent: Any
) -> None:
    """No empty `tools`, no choice of a dropped tool; allowed tools are the tools offered."""
    chat = chat_of(tools=tools, tool_choice=choice)
    offered = chat.get("tools")
    assert (offered and [tool["function"]["name"] for tool in offered]) == names
    assert chat.get("tool_choice") == sent


@pytest.mark.parametrize(
    ("choice", "tools_left", "format_left", "tool"),
    [
        (None, 2, False, "final_answer"),
        ("auto", 2, False, "final_answer"),
        ("none", 0, True, None),
        ("required", 1, True, None),
        ({"type": "function", "name": "f"}, 1, True, None),
    ],
    ids=["absent", "auto", "none", "required", "named"],
)
def test_a_schema_beside_tools_is_offered_as_a_tool(
    choice: Any, tools_left: int, format_left: bool, tool: Any
) -> None:
    """Only where the model may choose; its call is the answer."""
    converted = to_chat({"input": "x", "tools": [FUNCTION], "tool_choice": choice, "text": FORMAT})
    assert len(converted.chat.get("tools", [])) == tools_left
    assert ("response_format" in converted.chat) is format_left
    assert converted.format_tool == tool


@pytest.mark.parametrize(
    ("body", "key", "value"),
    [
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options", "asked"),
        ({"stream": False, "stream_options": {"x": 1}}, "stream_options", None),
        ({"max_output_tokens": None, "max_completion_tokens": 5}, "max_completion_tokens", 5),
        ({"text": {"format": {"type": "json_object"}}}, "response_format", {"type": "json_object"}),
        ({"text": {"format": {"type": "text"}}}, "response_format", None),
        ({"top_logprobs": 0}, "logprobs", True),
        ({"top_logprobs": None}, "logprobs", None),
        ({"temperature": None}, "temperature", None),
        ({"store": True}, "store", None),
        ({"messages": [{"role": "user"}]}, "messages", [{"role": "user", "content": "Hi"}]),
    ],
    ids=[
        "stream",
        "no-stream",
        "null-budget",
        "json-object",
        "text",
        "logprobs",
        "no-logprobs",
        "null",
        "store",
        "messages",
    ],
)
def test_a_setting_has_its_chat_name(body: dict[str, Any], key: str, value: Any) -> None:
    """What Chat calls a setting, or that it goes without."""
    asked = {"include_usage": True, "continuous_usage_stats": True}
    assert chat_of(**body).get(key) == (asked if value == "asked" else value)


def test_a_count_has_what_shapes_the_prompt_and_nothing_else() -> None:
    """The engine's counter is asked in Messages, with the same turns, tools and thinking."""
    body = {
        "model": "m",
        "instructions": "I",
        "input": [user("a"), user("b"), {"role": "assistant", "content": "c"}],
        "tools": [CUSTOM],
        "reasoning": {"effort": 0.5},
        "text": {"format": {"type": "json_object"}},
        "top_logprobs": 2,
        "temperature": 1,
        "max_output_tokens": 9,
        "stream": True,
    }
    assert count_tokens_body(body) == {
        "model": "m",
        "system": "I",
        "messages": [
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "c"},
        ],
        "tools": [
            {
                "name": "c",
                "description": "",
                "input_schema": {
                    "type": "object",
                    "properties": {"input": {"type": "string"}},
                    "required": ["input"],
                },
                "strict": False,
            }
        ],
        "thinking": {"type": "adaptive"},
    }
    assert render_count(7) == {"object": "response.input_tokens", "input_tokens": 7}


ODD = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.just({}))
ODD |= st.sampled_from([[], {}, [[]], "\ud800", {"type": []}, [{"type": {}}], [None]])


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [path, *(each for key, part in inner for each in paths_of(part, (*path, key)))]


@settings(max_examples=300, deadline=None, database=None)
@given(data=st.data())
def test_no_request_is_more_than_the_converter_can_take(data: st.DataObject) -> None:
    """Whatever stands wherever in a request: it is converted, or refused with its field."""
    path = data.draw(st.sampled_from(CASES))
    request = json.loads(path.read_text(encoding="utf-8"))["request"]
    place = data.draw(st.sampled_from(paths_of(request)[1:]))
    inner = request
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = data.draw(ODD)
    refusal: GatewayError | None = None
    try:
        converted = to_chat(request)
    except GatewayError as error:
        refusal = error
    if refusal is None:
        jsonbody.render_value(converted.chat)
        jsonbody.render_value(dict(converted.echo))
    else:
        assert refusal.kind.status == 400
        assert refusal.param
