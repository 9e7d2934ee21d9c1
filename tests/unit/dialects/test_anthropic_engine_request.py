"""Chat requests as an engine that speaks Messages gets them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.anthropic_engine import can_say, to_messages, unsayable
from gateway.dialects.messages import to_chat
from gateway.errors import GatewayError

Json = dict[str, Any]

PNG = "iVBORw0KGgo="
USER = {"role": "user", "content": "hi"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def convert(default: int = 4096, **fields: Any) -> Json:
    """A request with one user message, and `fields` over it."""
    chat = {"model": "m", "messages": [USER], **fields}
    before = copy.deepcopy(chat)
    body = to_messages(chat, default_max_tokens=default)
    assert chat == before
    return body


def turns(*messages: Json) -> tuple[str | None, list[Json]]:
    """`system` and `messages` of a conversation."""
    body = convert(messages=list(messages))
    return body.get("system"), body["messages"]


def refused(**fields: Any) -> GatewayError:
    """The error that a request gets."""
    with pytest.raises(GatewayError) as caught:
        convert(**fields)
    assert caught.value.kind.status == 400
    return caught.value


def call(call_id: str = "t1", arguments: Any = "{}", **keys: Any) -> Json:
    """A Chat tool call."""
    function = {"name": "f", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **keys}


def use(call_id: str = "t1", **tool_input: Any) -> Json:
    """A Messages tool call."""
    return {"type": "tool_use", "id": call_id, "name": "f", "input": tool_input}


def result(call_id: str = "t1", content: Any = "r") -> Json:
    """A Messages tool result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def text(said: str) -> Json:
    """A text block, or a text part: they are spelled alike."""
    return {"type": "text", "text": said}


def image(url: str, **keys: Any) -> Json:
    """A Chat image part."""
    return {"type": "image_url", "image_url": {"url": url, **keys}}


def test_a_plain_request_keeps_what_both_dialects_spell_alike() -> None:
    """What is spelled alike passes as it is, unknown keys too; the budget is always there."""
    assert convert(temperature=1.5, top_p=0.9, top_k=-1, stream=True, rid="a", x={"y": None}) == {
        "model": "m",
        "messages": [USER],
        "max_tokens": 4096,
        "temperature": 1.5,
        "top_p": 0.9,
        "top_k": -1,
        "stream": True,
        "rid": "a",
        "x": {"y": None},
    }


@pytest.mark.parametrize(
    ("fields", "budget"),
    [
        pytest.param({}, 4096, id="absent"),
        pytest.param({"max_tokens": None, "max_completion_tokens": None}, 4096, id="null"),
        pytest.param({"max_tokens": 0}, 4096, id="0-sets-none"),
        pytest.param({"max_tokens": 7}, 7, id="max_tokens"),
        pytest.param({"max_completion_tokens": 7}, 7, id="max_completion_tokens"),
        pytest.param({"max_completion_tokens": 7, "max_tokens": 9}, 7, id="the-newer-wins"),
        pytest.param({"max_completion_tokens": 0, "max_tokens": 9}, 9, id="0-gives-way"),
        pytest.param({"max_completion_tokens": None, "max_tokens": 9}, 9, id="null-gives-way"),
        pytest.param({"max_tokens": " 8 "}, 8, id="text"),
        pytest.param({"max_tokens": "8.0"}, 8, id="text-of-a-whole-float"),
        pytest.param({"max_tokens": 8.0}, 8, id="whole-float"),
    ],
)
def test_the_budget_is_always_an_integer(fields: Json, budget: int) -> None:
    """`max_completion_tokens`, unless it sets none, then `max_tokens`, then the default."""
    body = convert(**fields)
    assert body["max_tokens"] == budget
    assert type(body["max_tokens"]) is int
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize(
    "value", [-1, 2.5, "lots", "", "1e3", "9" * 5000, True, [1], float("inf")], ids=repr
)
def test_a_budget_that_is_no_count_is_refused(value: Any) -> None:
    """A budget is an integer of at least 1, however it is spelled."""
    error = refused(max_tokens=value)
    assert error.param == "max_tokens"
    assert "expected an integer of at least 1" in error.message


SAID = [
    pytest.param({"stop": "a"}, {"stop_sequences": ["a"]}, id="stop"),
    pytest.param({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}, id="stops"),
    pytest.param({"stop": []}, {}, id="no-stops"),
    pytest.param({"stop": None}, {}, id="null-stop"),
    pytest.param({"user": "u"}, {"metadata": {"user_id": "u"}}, id="user"),
    pytest.param(
        {"user": "u", "metadata": {"a": "b"}},
        {"metadata": {"a": "b", "user_id": "u"}},
        id="user-beside-metadata",
    ),
    pytest.param({"user": None, "metadata": {"a": "b"}}, {"metadata": {"a": "b"}}, id="metadata"),
    pytest.param({"response_format": {"type": "text"}}, {}, id="format-text"),
    pytest.param({"response_format": None}, {}, id="format-null"),
    pytest.param(
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
            }
        },
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        id="format-schema",
    ),
    pytest.param(
        {"reasoning_effort": "low"},
        {"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}},
        id="effort-switches-thinking-on",
    ),
    pytest.param(
        {"reasoning_effort": "ultra"},
        {"output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}},
        id="effort-ultra",
    ),
    pytest.param(
        {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, id="effort-none"
    ),
    pytest.param({"reasoning_effort": None}, {}, id="effort-null"),
    pytest.param(
        {"reasoning": {"effort": "high"}, "reasoning_effort": "low"},
        {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}},
        id="effort-inside-reasoning-first",
    ),
    pytest.param(
        {"reasoning": {"enabled": True}}, {"thinking": {"type": "adaptive"}}, id="enabled"
    ),
    pytest.param(
        {"reasoning_effort": "low", "output_config": {"task_budget": {"total": 1}}},
        {
            "output_config": {"task_budget": {"total": 1}, "effort": "low"},
            "thinking": {"type": "adaptive"},
        },
        id="own-output-config-is-kept",
    ),
    pytest.param(
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"thinking": {"type": "disabled"}},
        id="enable_thinking",
    ),
    pytest.param(
        {"chat_template_kwargs": {"thinking": True, "enable_thinking": None, "a": 1}},
        {"thinking": {"type": "adaptive"}, "chat_template_kwargs": {"a": 1}},
        id="thinking-and-other-kwargs",
    ),
    pytest.param({"chat_template_kwargs": None}, {}, id="kwargs-null"),
    pytest.param(
        {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"},
        {"thinking": {"type": "adaptive"}},
        id="own-switch-over-effort",
    ),
    pytest.param(
        {"thinking": {"type": "enabled", "budget_tokens": 2048}, "reasoning_effort": "none"},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        id="thinking-in-Messages-words-stays",
    ),
    pytest.param({"stream_options": {"include_usage": True}}, {}, id="stream_options"),
    pytest.param({"parallel_tool_calls": False}, {}, id="parallel-without-tools"),
    pytest.param({"tools": [], "tool_choice": "auto"}, {}, id="no-tools"),
    pytest.param({"tools": None, "tool_choice": "none"}, {}, id="null-tools"),
    pytest.param({"tools": [FUNCTION]}, {"tools": [TOOL]}, id="tools"),
    pytest.param(
        {"tools": [FUNCTION], "parallel_tool_calls": True}, {"tools": [TOOL]}, id="parallel-true"
    ),
    pytest.param(
        {"tools": [FUNCTION], "parallel_tool_calls": None}, {"tools": [TOOL]}, id="parallel-null"
    ),
]


@pytest.mark.parametrize(("fields", "said"), SAID)
def test_fields_in_the_words_of_messages(fields: Json, said: str) -> None:
    """What Messages spells otherwise is respelled, and what asks for nothing is left out."""
    base = {"model": "m", "messages": [USER], "max_tokens": 4096}
    assert convert(**fields) == {**base, **said}


@pytest.mark.parametrize(
    ("choice", "flag", "rendered"),
    [
        pytest.param(None, False, {"type": "auto", "disable_parallel_tool_use": True}, id="flag"),
        pytest.param("auto", None, {"type": "auto"}, id="auto"),
        pytest.param(
            "auto", False, {"type": "auto", "disable_parallel_tool_use": True}, id="auto-flag"
        ),
        pytest.param("auto", True, {"type": "auto"}, id="auto-parallel"),
        pytest.param("required", None, {"type": "any"}, id="required"),
        pytest.param(
            "required", False, {"type": "any", "disable_parallel_tool_use": True}, id="any-flag"
        ),
        pytest.param("none", None, {"type": "none"}, id="none"),
        pytest.param("none", False, {"type": "none"}, id="none-flag"),
        pytest.param(
            {"type": "function", "function": {"name": "f"}},
            None,
            {"type": "tool", "name": "f"},
            id="named",
        ),
        pytest.param(
            {"type": "function", "function": {"name": "f"}},
            False,
            {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            id="named-flag",
        ),
    ],
)
def test_tool_choice_and_the_parallel_flag(choice: Any, flag: bool | None, rendered: Any) -> None:
    """The flag rides on a choice and never makes a call a must."""
    body = convert(tools=[FUNCTION], tool_choice=choice, parallel_tool_calls=flag)
    assert body["tool_choice"] == rendered
    assert "parallel_tool_calls" not in body


@pytest.mark.parametrize(
    ("function", "tool"),
    [
        pytest.param(
            {"name": "f"},
            {"name": "f", "input_schema": {"type": "object", "properties": {}}},
            id="no-parameters",
        ),
        pytest.param(
            {"name": "f", "parameters": None, "description": None, "strict": None},
            {"name": "f", "input_schema": {"type": "object", "properties": {}}},
            id="nulls",
        ),
        pytest.param(
            {"name": "f", "parameters": {}},
            {"name": "f", "input_schema": {"type": "object", "properties": {}}},
            id="empty-parameters",
        ),
        pytest.param(
            {"name": "f", "parameters": {"properties": {"a": {}}}},
            {"name": "f", "input_schema": {"type": "object", "properties": {"a": {}}}},
            id="no-type",
        ),
        pytest.param(
            {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True, "x": 1},
            {"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True, "x": 1},
            id="everything",
        ),
    ],
)
def test_tools(function: Json, tool: Json) -> None:
    """A tool always has a schema, that of an object; unknown keys stay."""
    assert convert(tools=[{"function": function, "defer_loading": True}])["tools"] == [
        {**tool, "defer_loading": True}
    ]


NEUTRAL = [
    ("n", 1),
    ("n", 1.0),
    ("min_p", 0),
    ("min_p", 0.0),
    ("frequency_penalty", 0),
    ("presence_penalty", -0.0),
    ("repetition_penalty", 1.0),
    ("logprobs", False),
    ("top_logprobs", 0),
    ("logit_bias", {}),
]
SPEAKING = [
    ("n", 2, "send 1"),
    ("n", True, "send 1"),
    ("n", "three", "send 1"),
    ("min_p", 0.1, "send 0"),
    ("frequency_penalty", 0.5, "send 0"),
    ("presence_penalty", -2, "send 0"),
    ("repetition_penalty", 1.1, "send 1"),
    ("seed", 0, "leave it out"),
    ("seed", 42, "leave it out"),
    ("logprobs", True, "send false"),
    ("top_logprobs", 3, "send 0"),
    ("logit_bias", {"1": 5}, "send an empty object"),
]


@pytest.mark.parametrize(
    ("field", "value"),
    [*NEUTRAL, *((field, None) for field in sorted({row[0] for row in SPEAKING}))],
)
def test_a_neutral_value_of_what_messages_cannot_say_is_left_out(field: str, value: Any) -> None:
    """It asks for nothing, so nothing is lost."""
    assert convert(**{field: value}) == convert()
    assert can_say(field, value)


@pytest.mark.parametrize(("field", "value", "advice"), SPEAKING)
def test_a_value_that_messages_cannot_say_is_refused(field: str, value: Any, advice: str) -> None:
    """The engine would ignore it in silence: a 400 names the field, and what would be right."""
    error = refused(**{field: value})
    assert error.param == field
    assert error.message.startswith(f"{field}: ")
    assert advice in error.message
    assert not can_say(field, value)


def test_the_fields_of_a_contract_that_messages_cannot_say() -> None:
    """Named in the order given, for a report at the start; what Messages knows is left out."""
    fields = ("temperature", "top_k", "min_p", "repetition_penalty", "max_tokens", "n", "seed")
    assert unsayable(fields) == ("min_p", "repetition_penalty", "n", "seed")
    assert can_say("temperature", 0.3)


REFUSED = [
    ({"response_format": {"type": "json_object"}}, "response_format", "'json_object'"),
    ({"response_format": {"type": "structural_tag"}}, "response_format", "'structural_tag'"),
    ({"response_format": "json_object"}, "response_format", "an object"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        "response_format.json_schema.schema",
        "an object",
    ),
    ({"reasoning_effort": 0.5}, "reasoning_effort", "a word"),
    ({"reasoning_effort": True}, "reasoning_effort", "a word"),
    ({"reasoning": {"effort": 0.5}}, "reasoning.effort", "a word"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs", "an object"),
    (
        {"chat_template_kwargs": {"enable_thinking": "no"}},
        "chat_template_kwargs.enable_thinking",
        "true or false",
    ),
    ({"user": 1}, "user", "a string"),
    ({"user": "u", "metadata": []}, "metadata", "an object"),
    ({"stop": 1}, "stop", "an array"),
    ({"stop": ["a", None]}, "stop[1]", "a string"),
    ({"output_config": 1, "reasoning_effort": "low"}, "output_config", "an object"),
    ({"tools": {}}, "tools", "an array"),
    ({"tools": [1]}, "tools[0]", "an object"),
    ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].type", "'custom'"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "an object"),
    ({"tools": [{"function": {}}]}, "tools[0].function.name", "non-empty"),
    (
        {"tools": [{"function": {"name": "f", "parameters": "x"}}]},
        "tools[0].function.parameters",
        "an object",
    ),
    ({"tool_choice": "required"}, "tool_choice", "no tools"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", "no tools"),
    ({"tools": [FUNCTION], "tool_choice": "any"}, "tool_choice", "'any'"),
    ({"tools": [FUNCTION], "tool_choice": {"type": "auto"}}, "tool_choice", "'auto'"),
    (
        {"tools": [FUNCTION], "parallel_tool_calls": "no"},
        "parallel_tool_calls",
        "true or false",
    ),
    ({"messages": None}, "messages", "an array"),
    ({"messages": []}, "messages", "at least one message"),
    ({"messages": ["a"]}, "messages[0]", "an object"),
    ({"messages": [{"role": "function", "content": "a"}]}, "messages[0].role", "'function'"),
    ({"messages": [{"content": "a"}]}, "messages[0].role", "nothing"),
    ({"messages": [{"role": ["user"], "content": "a"}]}, "messages[0].role", "an array"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "nothing"),
    ({"messages": [{"role": "user", "content": {}}]}, "messages[0].content", "an object"),
    ({"messages": [{"role": "user", "content": ["a"]}]}, "messages[0].content[0]", "an object"),
    ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].tool_call_id", "non-empty"),
    (
        {"messages": [{"role": "system", "content": [image("https://a/b")]}]},
        "messages[0].content[0].type",
        "'image_url'",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "thinking", "thinking": "t"}]}]},
        "messages[0].content[0].type",
        "'thinking'",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]},
        "messages[0].tool_calls[0].id",
        "non-empty",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"type": "custom"}]}]},
        "messages[0].tool_calls[0].type",
        "'custom'",
    ),
    (
        {"messages": [{"role": "assistant", "reasoning_content": 1}]},
        "messages[0].reasoning_content",
        "a string",
    ),
]


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    REFUSED,
    ids=[f"{number}-{case[1]}" for number, case in enumerate(REFUSED)],
)
def test_what_is_malformed_or_unsayable_is_named(fields: Json, param: str, words: str) -> None:
    """A 400 names the field, and the value or what is right."""
    error = refused(**fields)
    assert error.param == param
    assert words in error.message


@pytest.mark.parametrize(
    "kind", ["file", "refusal", "video_url", "audio_url", "input_audio", "tool_reference", None, 1]
)
def test_a_part_that_messages_cannot_say_is_named(kind: str) -> None:
    """A part is never dropped: the 400 says which and what would be right."""
    error = refused(messages=[{"role": "user", "content": [text("a"), {"type": kind}]}])
    assert error.param == "messages[0].content[1].type"
    assert "text, image_url" in error.message


def test_system_texts_are_lifted_wherever_they_stand() -> None:
    """System and developer messages become `system`, in order, a blank line between them."""
    assert turns(
        {"role": "system", "content": "S1"},
        {"role": "user", "content": "a"},
        {"role": "developer", "content": [text("S2"), text("")]},
        {"role": "system", "content": ""},
        {"role": "user", "content": "b"},
    ) == ("S1\n\nS2", [{"role": "user", "content": [text("a"), text("b")]}])


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([{"role": "system", "content": "S"}], "S"),
        ([{"role": "system", "content": "S"}, {"role": "developer", "content": "D"}], "S\n\nD"),
        ([{"role": "system", "content": ""}], ""),
    ],
)
def test_a_conversation_of_system_messages_only_is_one_user_turn(
    messages: list[Json], said: str
) -> None:
    """Messages needs a turn, so the system text is said by the user."""
    assert turns(*messages) == (None, [{"role": "user", "content": said}])


def test_results_of_tools_are_one_user_turn_before_its_text() -> None:
    """A run of tool messages, and the user's words beside it, are one turn: results first."""
    assert turns(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("t1"), call("t2", '{"a": 1}')]},
        {"role": "user", "content": "wait"},
        {"role": "tool", "tool_call_id": "t1", "content": "A"},
        {"role": "tool", "tool_call_id": "t2", "content": [text("B"), image("https://h/i.png")]},
        {"role": "user", "content": "go on"},
    ) == (
        None,
        [
            USER,
            {"role": "assistant", "content": [use("t1"), use("t2", a=1)]},
            {
                "role": "user",
                "content": [
                    result("t1", "A"),
                    result(
                        "t2",
                        [
                            text("B"),
                            {
                                "type": "image",
                                "source": {"type": "url", "url": "https://h/i.png"},
                            },
                        ],
                    ),
                    text("wait"),
                    text("go on"),
                ],
            },
        ],
    )


@pytest.mark.parametrize(
    ("content", "rendered"),
    [
        pytest.param(None, "", id="null"),
        pytest.param("", "", id="empty"),
        pytest.param([], "", id="no-parts"),
        pytest.param([text("")], "", id="an-empty-part"),
        pytest.param([text("a")], "a", id="one-part"),
        pytest.param([text("a"), text("b")], [text("a"), text("b")], id="two-parts"),
        pytest.param(
            [{"type": "tool_reference", "name": "g"}],
            [{"type": "tool_reference", "tool_name": "g"}],
            id="reference",
        ),
    ],
)
def test_the_content_of_a_result_is_always_there(content: Any, rendered: Any) -> None:
    """Whatever its shape, a result has content, and no empty block in it."""
    assert turns({"role": "tool", "tool_call_id": "t1", "content": content}) == (
        None,
        [{"role": "user", "content": [result("t1", rendered)]}],
    )


@pytest.mark.parametrize(
    ("message", "content"),
    [
        pytest.param({"content": ""}, "", id="empty"),
        pytest.param({"content": None}, "", id="null"),
        pytest.param({}, "", id="absent"),
        pytest.param({"content": [text("")]}, "", id="an-empty-part"),
        pytest.param({"content": "a", "tool_calls": []}, "a", id="no-calls"),
        pytest.param({"content": "a", "tool_calls": None, "refusal": None}, "a", id="nulls"),
        pytest.param({"content": "", "tool_calls": [call()]}, [use()], id="empty-beside-a-call"),
        pytest.param({"content": None, "tool_calls": [call()]}, [use()], id="null-beside-a-call"),
        pytest.param(
            {"content": "a", "reasoning_content": "t", "tool_calls": [call()]},
            [{"type": "thinking", "thinking": "t"}, text("a"), use()],
            id="thinking-text-call",
        ),
        pytest.param(
            {"content": "a", "reasoning": "t"},
            [{"type": "thinking", "thinking": "t"}, text("a")],
            id="reasoning-by-its-other-name",
        ),
        pytest.param({"content": "a", "reasoning_content": ""}, "a", id="no-thinking"),
        pytest.param(
            {"content": [{"type": "thinking", "thinking": "t"}, text("a")]},
            [{"type": "thinking", "thinking": "t"}, text("a")],
            id="thinking-part",
        ),
        pytest.param(
            {"content": [{"type": "reasoning", "text": "t"}]},
            [{"type": "thinking", "thinking": "t"}],
            id="reasoning-part",
        ),
    ],
)
def test_assistant_turns(message: Any, content: Any) -> None:
    """Thinking, text, calls; no empty block, and an empty turn keeps its place."""
    said = turns(USER, {"role": "assistant", **message}, USER)
    assert said == (None, [USER, {"role": "assistant", "content": content}, USER])


def test_turns_of_one_role_are_merged() -> None:
    """Neighbours of one role are one turn, their texts in order; empty ones add nothing."""
    assert turns(
        {"role": "user", "content": "a"},
        {"role": "user", "content": ""},
        {"role": "user", "content": [{**text("b"), "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "content": "d"},
    ) == (
        None,
        [
            {
                "role": "user",
                "content": [text("a"), {**text("b"), "cache_control": {"type": "ephemeral"}}],
            },
            {"role": "assistant", "content": [text("c"), text("d")]},
        ],
    )


@pytest.mark.parametrize(
    ("arguments", "tool_input"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param(" ", {}, id="blank"),
        pytest.param(None, {}, id="null"),
        pytest.param("{}", {}, id="object"),
        pytest.param('{"a": {"b": [1, 2.5]}}', {"a": {"b": [1, 2.5]}}, id="nested"),
        pytest.param({"a": 1}, {"a": 1}, id="already-an-object"),
        pytest.param("[1]", {}, id="array"),
        pytest.param('{"a":', {}, id="cut"),
        pytest.param('{"a": NaN}', {}, id="not-json"),
        pytest.param("\ud800", {}, id="lone-surrogate"),
        pytest.param("[" * 5000, {}, id="deep"),
        pytest.param(5, {}, id="number"),
    ],
)
def test_the_input_of_a_call_is_always_an_object(arguments: Any, tool_input: Any) -> None:
    """A client echoes what a model broke; its conversation goes on all the same."""
    _, messages = turns({"role": "assistant", "tool_calls": [call(arguments=arguments)]})
    assert messages == [{"role": "assistant", "content": [use(**tool_input)]}]


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://h/i.png", {"type": "url", "url": "https://h/i.png"}),
        ("HTTP://h/i.png", {"type": "url", "url": "HTTP://h/i.png"}),
        (
            f"data:image/png;base64,{PNG}",
            {"type": "base64", "media_type": "image/png", "data": PNG},
        ),
        (
            f"DATA:image/SVG+xml;charset=utf-8;BASE64,{PNG}",
            {"type": "base64", "media_type": "image/svg+xml", "data": PNG},
        ),
    ],
)
def test_images(url: str, source: Json) -> None:
    """Links stay links, data URLs are taken apart; `detail` has no word in Messages."""
    _, messages = turns({"role": "user", "content": [image(url, detail="low"), text("a")]})
    assert messages == [
        {"role": "user", "content": [{"type": "image", "source": source}, text("a")]}
    ]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "i.png",
        "file:///etc/passwd",
        "ftp://h/i.png",
        "data:image/png,abc",
        "data:image/png;base64,",
        "data:image/png;base64,a",
        "data:image/png;base64,ab*=",
        f"data:;base64,{PNG}",
        f"data:application/pdf;base64,{PNG}",
        f"data:None;base64,{PNG}",
    ],
)
def test_an_image_that_is_none_is_refused(url: str) -> None:
    """A URL that is neither a link nor image data is named, and what would be right."""
    error = refused(messages=[{"role": "user", "content": [image(url)]}])
    assert error.param == "messages[0].content[0].image_url.url"


def test_an_image_url_that_is_a_bare_text_is_refused() -> None:
    """The engine takes `{"url": …}` only, and so does the gateway before it."""
    part = {"type": "image_url", "image_url": "https://h/i.png"}
    error = refused(messages=[{"role": "user", "content": [part]}])
    assert error.param == "messages[0].content[0].image_url"


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip)
EXCHANGES = st.lists(
    st.tuples(
        TEXTS,  # what the user says
        st.none() | TEXTS,  # what the model thinks
        st.none() | TEXTS,  # what it says
        st.lists(st.tuples(TEXTS, TEXTS), max_size=3),  # an argument of each call; its result
    ),
    min_size=1,
    max_size=4,
)


@given(system=st.none() | TEXTS, exchanges=EXCHANGES)
def test_a_conversation_survives_the_way_there_and_back(
    system: str | None, exchanges: list[Any]
) -> None:
    """Chat to Messages and back to Chat is the same conversation, in the same order."""
    messages = [] if system is None else [{"role": "system", "content": system}]
    for number, (said, thought, answer, calls) in enumerate(exchanges):
        messages.append({"role": "user", "content": said})
        turn = {"role": "assistant", "content": answer if answer or calls else ""}
        if thought is not None:
            turn["reasoning_content"] = thought
        if calls:
            turn["tool_calls"] = [
                call(f"t{number}_{index}", '{"a":"x"}') for index in range(len(calls))
            ]
        messages.append(turn)
        messages += [
            {"role": "tool", "tool_call_id": f"t{number}_{index}", "content": gave}
            for index, (_, gave) in enumerate(calls)
        ]
    sent = to_messages({"model": "m", "messages": messages}, default_max_tokens=1)
    back = to_chat(sent, default_max_tokens=None).body["messages"]
    assert _plain(back) == _plain(messages)


def _plain(messages: list[Json]) -> list[Json]:
    """Without the spellings that mean the same: a text in parts, JSON with spaces."""
    plain = []
    for message in messages:
        said = dict(message)
        if isinstance(said.get("content"), list):
            said["content"] = "\n".join(part["text"] for part in said["content"])
        said["content"] = said.get("content") or ""
        said["tool_calls"] = [
            (item["id"], item["function"]["name"], item["function"]["arguments"].replace(" ", ""))
            for item in said.get("tool_calls", [])
        ]
        plain.append(said)
    return plain


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(-1, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "function", "name", "content", "id", "url", "effort"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = [
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stop",
    "user",
    "metadata",
    "response_format",
    "reasoning_effort",
    "reasoning",
    "chat_template_kwargs",
    "output_config",
    "max_tokens",
    "logit_bias",
]
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]) | JSON, "content": JSON},
    optional={"tool_calls": JSON, "tool_call_id": JSON, "reasoning_content": JSON},
)


@given(
    messages=st.lists(MESSAGE, min_size=1, max_size=3),
    fields=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3),
)
def test_any_body_is_converted_or_refused(messages: list[Json], fields: Json) -> None:
    """Whatever the values are, the outcome is a body for the engine, or a 400."""
    refusal: GatewayError | None = None
    body: Json = {"max_tokens": 1, "messages": []}
    try:
        body = to_messages({"messages": messages, **fields}, default_max_tokens=1)
    except GatewayError as error:
        refusal = error
    assert refusal is None or (refusal.kind.status == 400 and refusal.param)
    assert body["max_tokens"] >= 1
    assert all(turn["content"] != [] for turn in body["messages"])
