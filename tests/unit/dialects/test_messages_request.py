"""Messages requests become Chat requests."""

import copy
from typing import Any

import pytest

from gateway.dialects.messages import Converted, to_chat
from gateway.errors import GatewayError

_USER = {"role": "user", "content": "hi"}
_DATA = "iVBORw0KGgo="
_PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _DATA}}
_PNG_PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_DATA}"}}
_TOOL = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
_HOSTED = {"type": "web_search_20250305", "name": "web_search"}


def _convert(**keys: Any) -> Converted:
    body = {"model": "m", "max_tokens": 8, "messages": [_USER], **keys}
    before = copy.deepcopy(body)
    converted = to_chat(body, default_max_tokens=None)
    assert body == before, "the client's body is not to be changed"
    return converted


def _chat(**keys: Any) -> dict[str, Any]:
    return _convert(**keys).body


def _messages(*messages: dict[str, Any], **keys: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _chat(messages=list(messages), **keys)["messages"]
    return found


def _user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(call_id: str, name: str = "f", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _result(call_id: str, *content: Any, **keys: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, **keys}
    return {**block, "content": content[0]} if content else block


# The system prompt.

_BILLING = "x-anthropic-billing-header: cc_version=1; cch=abc;"


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, None),
        ("", None),
        ([], None),
        (" \n", None),
        ("S", "S"),
        ([_text("S1"), _text(""), _text("S2")], "S1\n\nS2"),
        ([_text(_BILLING), _text("S1"), _text("S2")], "S1\n\nS2"),
        ([_text(_BILLING)], None),
        ([_text(f"{_BILLING}\nS1"), _text("S2")], "S1\n\nS2"),
        (f"{_BILLING}\nS1\nS2", "S1\nS2"),
        ([_text("S1"), _text(_BILLING)], f"S1\n\n{_BILLING}"),
        (f"S1\n{_BILLING}", f"S1\n{_BILLING}"),
    ],
    ids=[
        "null",
        "empty",
        "no-blocks",
        "blank",
        "text",
        "blocks",
        "billing-block",
        "billing-alone",
        "billing-line-of-a-block",
        "billing-line-of-a-text",
        "billing-not-at-the-head",
        "billing-not-the-first-line",
    ],
)
def test_system_is_one_leading_message(system: object, expected: str | None) -> None:
    """Texts are joined by a blank line, empty ones vanish, the billing line goes at the head."""
    lead = [] if expected is None else [{"role": "system", "content": expected}]
    assert _messages(_USER, system=system) == [*lead, _USER]


@pytest.mark.parametrize(
    ("system", "messages", "expected"),
    [
        ("top", [_USER, {"role": "system", "content": "mid"}], "top\n\nmid"),
        (None, [{"role": "system", "content": [_text("first")]}, _USER], "first"),
        (None, [{"role": "system", "content": [_text(_BILLING), _text("S")]}, _USER], "S"),
        ("top", [{"role": "system", "content": ""}, _USER], "top"),
        ("top", [{"role": "system", "content": None}, _USER], "top"),
    ],
    ids=["after-the-top", "no-top", "billing", "empty", "null"],
)
def test_system_turns_join_the_leading_message(
    system: str | None, messages: list[dict[str, Any]], expected: str
) -> None:
    """A turn of the role system goes to the head, and leaves nothing in its place."""
    assert _messages(*messages, system=system) == [{"role": "system", "content": expected}, _USER]


def test_a_conversation_of_system_turns_only_is_kept() -> None:
    """What was said is not lost where there is no user's turn."""
    assert _messages({"role": "system", "content": "S"}) == [{"role": "system", "content": "S"}]


# The user's turns.


def test_tool_results_precede_the_text_of_their_turn() -> None:
    """Tool messages follow the calls directly, whatever stood between them."""
    turn = _user(_text("reminder"), _result("t1", "A"), _text("and"), _result("t2", "B"))
    assert _messages(_USER, _assistant(_use("t1"), _use("t2")), turn)[2:] == [
        {"role": "tool", "tool_call_id": "t1", "content": "A"},
        {"role": "tool", "tool_call_id": "t2", "content": "B"},
        {"role": "user", "content": [_text("reminder"), _text("and")]},
    ]


def test_tool_results_precede_the_text_of_merged_turns() -> None:
    """Two turns of the user are one, so that the later one's result leads."""
    assert _messages(_assistant(_use("t")), _USER, _user(_result("t", "A")))[1:] == [
        {"role": "tool", "tool_call_id": "t", "content": "A"},
        _USER,
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ((), ""),
        ((None,), ""),
        (("",), ""),
        (([],), ""),
        (("A",), "A"),
        (([_text("A"), _text(""), _text("B")],), "A\nB"),
        (
            ([{"type": "tool_reference", "tool_name": "g"}],),
            [{"type": "tool_reference", "name": "g"}],
        ),
        (
            ([_text("A"), {"type": "tool_reference", "name": "g"}],),
            [{"type": "tool_reference", "name": "g"}, _text("A")],
        ),
        (
            ([{"type": "search_result", "title": "T", "source": "u", "content": [_text("c")]}],),
            "Title: T\nSource: u\nContent: c",
        ),
        (([{"type": "document", "source": {"type": "text", "data": "d"}}],), "d"),
    ],
    ids=[
        "absent",
        "null",
        "empty",
        "no-blocks",
        "text",
        "texts",
        "reference",
        "reference-leads",
        "search-result",
        "document",
    ],
)
def test_a_result_is_one_tool_message(content: tuple[Any, ...], expected: object) -> None:
    """Whatever the shape of its content: one message, with a `content`."""
    assert _messages(_assistant(_use("t")), _user(_result("t", *content)))[1:] == [
        {"role": "tool", "tool_call_id": "t", "content": expected}
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [([_PNG], ""), ([_text("A"), _PNG, _text("B")], "A\nB")],
    ids=["alone", "between-texts"],
)
def test_images_of_a_result_go_on_to_the_user_message(content: list[Any], text: str) -> None:
    """They lead the parts of the turn: an engine takes images from users only."""
    turn = _user(_text("look"), _result("t", content))
    assert _messages(_assistant(_use("t")), turn)[1:] == [
        {"role": "tool", "tool_call_id": "t", "content": text},
        {"role": "user", "content": [_PNG_PART, _text("look")]},
    ]


def test_an_image_of_a_lone_result_makes_a_user_message() -> None:
    """The image is not lost where the turn says nothing else."""
    assert _messages(_assistant(_use("t")), _user(_result("t", [_PNG])))[2:] == [
        {"role": "user", "content": [_PNG_PART]}
    ]


def test_is_error_adds_nothing() -> None:
    """The text of a failed call speaks for itself."""
    turn = _user(_result("t", "boom", is_error=True))
    assert _messages(_assistant(_use("t")), turn)[1]["content"] == "boom"


def test_results_of_one_call_are_one_message() -> None:
    """One tool message an id, though a client split the result."""
    turn = _user(_result("t", "A"), _result("t", "B"))
    assert _messages(_assistant(_use("t")), turn)[1:] == [
        {"role": "tool", "tool_call_id": "t", "content": "A\nB"}
    ]


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ({"type": "base64", "media_type": "image/jpeg", "data": "AA"}, "data:image/jpeg;base64,AA"),
        ({"type": "base64", "data": "AA"}, "data:image/png;base64,AA"),
        ({"type": "base64", "media_type": None, "data": "AA"}, "data:image/png;base64,AA"),
        (
            {"type": "base64", "media_type": "image/gif", "data": "data:image/gif;base64,AA"},
            "data:image/gif;base64,AA",
        ),
        ({"type": "url", "url": "https://h/i.png"}, "https://h/i.png"),
    ],
    ids=["base64", "no-media-type", "null-media-type", "data-url-already", "url"],
)
def test_images_become_urls(source: dict[str, Any], url: str) -> None:
    """Base64 becomes one data URL, a link stays as it is."""
    assert _messages(_user({"type": "image", "source": source})) == [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    ]


@pytest.mark.parametrize(
    "content",
    ["", [], [_text("")], [{"type": "web_search_tool_result", "content": []}]],
    ids=["text", "no-blocks", "empty-block", "server-block"],
)
def test_an_emptied_turn_of_the_user_stays(content: object) -> None:
    """Turns go on taking turns, with an empty text."""
    assert _messages({"role": "user", "content": content}) == [{"role": "user", "content": ""}]


def test_a_lone_text_is_plain_and_several_are_parts() -> None:
    """One text is a string; several stay apart, without the empty ones."""
    assert _messages(_user(_text("a"), _text("")))[0]["content"] == "a"
    assert _messages(_user(_text("a"), _text("b")))[0]["content"] == [_text("a"), _text("b")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "text", "data": "d"}, "Title: T\nContext: C\nd"),
        ({"type": "content", "content": "d"}, "Title: T\nContext: C\nd"),
        ({"type": "content", "content": [_text("d"), _text("e")]}, "Title: T\nContext: C\nd\ne"),
        (
            {"type": "content", "content": [_PNG]},
            [_text("Title: T\nContext: C"), _PNG_PART],
        ),
    ],
    ids=["text", "content-text", "content-blocks", "content-image"],
)
def test_documents_with_text_are_text(source: dict[str, Any], expected: object) -> None:
    """A document's title, context and text are read as one text."""
    block = {"type": "document", "title": "T", "context": "C", "source": source}
    assert _messages(_user(block)) == [{"role": "user", "content": expected}]


# The assistant's turns.


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([], {"content": ""}),
        ([_text("")], {"content": ""}),
        ([_text("a")], {"content": "a"}),
        ([{"type": "thinking", "thinking": "t", "signature": "s"}, _text("a")],
         {"content": "a", "reasoning_content": "t"}),
        ([{"type": "thinking", "thinking": "t"}, {"type": "thinking", "thinking": "u"}],
         {"content": "", "reasoning_content": "t\nu"}),
        ([{"type": "thinking", "thinking": "", "signature": "s"}, _text("a")], {"content": "a"}),
        ([{"type": "redacted_thinking", "data": "x"}], {"content": ""}),
        ([{"type": "redacted_thinking", "data": "x"}, _text("a")], {"content": "a"}),
        ([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
          {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, _text("a")],
         {"content": "a"}),
        ([{"type": "mcp_tool_use", "id": "s"}, {"type": "mcp_tool_result", "content": []}],
         {"content": ""}),
    ],
    ids=[
        "no-blocks",
        "empty-text",
        "text",
        "thinking",
        "thinking-twice",
        "empty-thinking",
        "redacted-alone",
        "redacted",
        "server-tool",
        "mcp",
    ],
)  # fmt: skip
def test_assistant_turns(blocks: list[Any], expected: dict[str, Any]) -> None:
    """Thinking is apart from the text; what only a vendor understands goes, the turn stays."""
    assert _messages(_USER, _assistant(*blocks), _USER)[1] == {"role": "assistant", **expected}


@pytest.mark.parametrize(
    ("blocks", "content"),
    [([], None), ([_text("")], None), ([_text("a")], "a")],
    ids=["alone", "empty-text", "text"],
)
def test_calls_keep_a_content_beside_them(blocks: list[Any], content: str | None) -> None:
    """Without text it is null; the arguments are JSON text."""
    assert _messages(_USER, _assistant(*blocks, _use("t", a=[1, "é"])))[1] == {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": "t",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a":[1,"\\u00e9"]}'},
            }
        ],
    }


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": ""}, {"input": {}}])
def test_a_call_without_arguments_has_an_object(given: dict[str, Any]) -> None:
    """The engine reads arguments as an object, so there always is one."""
    block = {"type": "tool_use", "id": "t", "name": "f", **given}
    (call,) = _messages(_assistant(block))[0]["tool_calls"]
    assert call["function"]["arguments"] == "{}"


def test_turns_of_one_role_are_merged() -> None:
    """Texts, thoughts and calls keep their order."""
    merged = _messages(
        _USER,
        _user(_text("b")),
        _assistant({"type": "thinking", "thinking": "t"}, _text("x"), _use("1")),
        {"role": "system", "content": "S"},
        {"role": "assistant", "content": "y"},
        _assistant({"type": "thinking", "thinking": "u"}, _use("2")),
    )
    assert [message["role"] for message in merged] == ["system", "user", "assistant"]
    assert merged[1]["content"] == [_text("hi"), _text("b")]
    assert merged[2]["content"] == [_text("x"), _text("y")]
    assert merged[2]["reasoning_content"] == "t\nu"
    assert [call["id"] for call in merged[2]["tool_calls"]] == ["1", "2"]


def test_lone_surrogates_survive() -> None:
    """A text that is no valid Unicode is carried on, also inside arguments."""
    message = _messages(_USER, _assistant(_text("\ud800"), _use("t", a="\ud800")))[1]
    assert message["content"] == "\ud800"
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a":"\\ud800"}'


# The other fields.


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"temperature": 0.1, "top_p": 0.9, "top_k": 5},
         {"temperature": 0.1, "top_p": 0.9, "top_k": 5}),
        ({"stop_sequences": ["a", "\n"]}, {"stop": ["a", "\n"]}),
        ({"stop_sequences": []}, {}),
        ({"stop_sequences": None}, {}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}},
         {"chat_template_kwargs": {"thinking": True, "enable_thinking": True}}),
        ({"thinking": {"type": "adaptive"}},
         {"chat_template_kwargs": {"thinking": True, "enable_thinking": True}}),
        ({"thinking": {"type": "disabled"}},
         {"chat_template_kwargs": {"thinking": False, "enable_thinking": False}}),
        ({"thinking": {"type": "enabled"},
          "chat_template_kwargs": {"enable_thinking": False, "x": 1}},
         {"chat_template_kwargs": {"thinking": True, "enable_thinking": False, "x": 1}}),
        ({"thinking": None}, {}),
        ({"output_config": {"effort": "low"}}, {"reasoning_effort": "low"}),
        ({"output_config": {"task_budget": {"type": "tokens", "total": 9}}},
         {"output_config": {"task_budget": {"type": "tokens", "total": 9}}}),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
         {"response_format": {"type": "json_schema", "json_schema": {
             "name": "response", "schema": {"type": "object"}, "strict": True}}}),
        ({"output_config": {"format": None, "effort": None}}, {}),
        ({"metadata": {"user_id": "u" * 64}}, {"user": "u" * 64}),
        ({"metadata": {"user_id": "é" * 64}}, {"user": "é" * 64}),
        ({"metadata": {"user_id": "u" * 65}}, {}),
        ({"metadata": {"user_id": '{"device_id":"x"}'}}, {"user": '{"device_id":"x"}'}),
        ({"metadata": {"user_id": None}}, {}),
        ({"metadata": {"other": 1}}, {}),
        ({"metadata": None}, {}),
        ({"betas": ["b"], "container": "c", "mcp_servers": [], "context_management": {},
          "cache_control": {"type": "ephemeral"}}, {}),
        ({"regex": "a+", "rid": "r", "min_p": 0.1, "separate_reasoning": False, "seed": None},
         {"regex": "a+", "rid": "r", "min_p": 0.1, "separate_reasoning": False, "seed": None}),
        ({"stream": False, "stream_options": {"include_usage": True}}, {"stream": False}),
        ({"stream": None}, {}),
        ({"stream": True, "stream_options": {"include_usage": False}},
         {"stream": True,
          "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
    ],
    ids=[
        "sampling",
        "stop",
        "no-stop",
        "null-stop",
        "thinking-on",
        "thinking-adaptive",
        "thinking-off",
        "own-kwargs-win",
        "null-thinking",
        "effort",
        "task-budget",
        "format",
        "null-config",
        "user-of-64",
        "user-of-64-wide",
        "user-of-65",
        "user-like-json",
        "null-user",
        "no-user",
        "null-metadata",
        "not-passed",
        "unknown",
        "no-stream",
        "null-stream",
        "stream",
    ],
)  # fmt: skip
def test_fields(keys: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each field arrives under its Chat name, or as it is, or by a written rule not at all."""
    assert _chat(**keys) == {"model": "m", "max_tokens": 8, "messages": [_USER], **expected}


def test_the_stop_sequences_are_remembered() -> None:
    """A reply has to know which stop was the client's own."""
    assert _convert(stop_sequences=["a", "b"]).stop_sequences == ("a", "b")
    assert _convert().stop_sequences == ()


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (_TOOL, {"type": "function", "function": {
            "name": "f", "description": "", "parameters": _TOOL["input_schema"],
            "strict": False}}),
        ({**_TOOL, "type": "custom", "description": "d", "strict": True,
          "cache_control": {"type": "ephemeral"}},
         {"type": "function", "function": {
             "name": "f", "description": "d", "parameters": _TOOL["input_schema"],
             "strict": True}}),
        ({"name": "f", "input_schema": {"properties": {}}, "defer_loading": True},
         {"type": "function", "defer_loading": True, "function": {
             "name": "f", "description": "", "parameters": {"properties": {}, "type": "object"},
             "strict": False}}),
    ],
    ids=["bare", "custom", "untyped-schema"],
)  # fmt: skip
def test_tools_are_as_the_engine_itself_would_have_them(
    tool: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A description and `strict` are always there, in this order, as counts are made of them."""
    (found,) = _chat(tools=[tool])["tools"]
    assert found == expected
    assert list(found["function"]) == ["name", "description", "parameters", "strict"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "f"},
         {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        ({"type": "auto", "disable_parallel_tool_use": True},
         {"tool_choice": "auto", "parallel_tool_calls": False}),
        ({"type": "any", "disable_parallel_tool_use": True},
         {"tool_choice": "required", "parallel_tool_calls": False}),
        ({"type": "auto", "disable_parallel_tool_use": False}, {"tool_choice": "auto"}),
        (None, {}),
    ],
    ids=["auto", "any", "none", "tool", "auto-single", "any-single", "parallel", "null"],
)  # fmt: skip
def test_tool_choice(choice: object, expected: dict[str, Any]) -> None:
    """Each choice has its Chat word; only a true switch forbids parallel calls."""
    chat = _chat(tools=[_TOOL], tool_choice=choice)
    keys = ("tool_choice", "parallel_tool_calls")
    assert {key: chat[key] for key in keys if key in chat} == expected


@pytest.mark.parametrize(
    ("tools", "choice", "kept", "expected"),
    [
        ([_HOSTED], {"type": "any"}, None, None),
        ([_HOSTED], {"type": "tool", "name": "web_search"}, None, None),
        ([_HOSTED, _TOOL], {"type": "tool", "name": "web_search"}, ["f"], None),
        ([_HOSTED, _TOOL], {"type": "any"}, ["f"], "required"),
        ([_HOSTED, {**_TOOL, "name": "web_search"}], {"type": "tool", "name": "web_search"},
         ["web_search"], {"type": "function", "function": {"name": "web_search"}}),
        ([_HOSTED, _TOOL], {"type": "tool", "name": "g"}, ["f"],
         {"type": "function", "function": {"name": "g"}}),
        ([], {"type": "auto"}, None, "auto"),
    ],
    ids=[
        "none-left",
        "named-and-none-left",
        "named",
        "some-left",
        "own-of-that-name",
        "unknown-name-is-the-engines-to-refuse",
        "empty-list",
    ],
)  # fmt: skip
def test_hosted_tools_go_and_take_their_choice_along(
    tools: list[Any], choice: dict[str, Any], kept: list[str] | None, expected: object
) -> None:
    """No empty `tools` is left, and no choice of what is gone."""
    chat = _chat(tools=tools, tool_choice=choice)
    names = [tool["function"]["name"] for tool in chat["tools"]] if "tools" in chat else None
    assert names == kept
    assert chat.get("tool_choice") == expected


def test_dropped_types_are_told() -> None:
    """The reply's header lists them."""
    assert _convert(tools=[_HOSTED, _TOOL]).dropped_tools == ("web_search_20250305",)


def test_a_format_beside_tools_is_offered_as_a_tool() -> None:
    """The engine would bind only one of the two."""
    converted = _convert(
        tools=[_TOOL],
        output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}},
    )
    assert converted.format_tool is not None
    assert converted.body["tools"][1]["function"]["name"] == converted.format_tool
    assert converted.body["tool_choice"] == "required"


# The budget.


@pytest.mark.parametrize(
    ("given", "default", "expected"),
    [
        ({"max_tokens": 1}, None, 1),
        ({"max_tokens": 9}, 4, 9),
        ({}, 4, 4),
        ({"max_tokens": None}, 4, 4),
    ],
    ids=["given", "given-over-default", "default", "default-for-null"],
)
def test_budget(given: dict[str, Any], default: int | None, expected: int) -> None:
    """The client's budget counts; a default stands in for none."""
    body = {"model": "m", "messages": [_USER], **given}
    assert to_chat(body, default_max_tokens=default).body["max_tokens"] == expected


def test_a_count_needs_no_budget() -> None:
    """Nothing is generated for a count."""
    body = {"model": "m", "messages": [_USER]}
    chat = to_chat(body, default_max_tokens=None, require_max_tokens=False).body
    assert "max_tokens" not in chat


# What is refused.


def _with(*blocks: Any) -> dict[str, Any]:
    return {"messages": [_USER, _assistant(), _user(*blocks)]}


_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "messages-null": ({"messages": None}, "messages"),
    "messages-empty": ({"messages": []}, "messages"),
    "messages-object": ({"messages": {}}, "messages"),
    "messages-text": ({"messages": "hi"}, "messages"),
    "message-text": ({"messages": ["hi"]}, "messages[0]"),
    "all-empty": ({"messages": [{"role": "system", "content": ""}]}, "messages"),
    "no-role": ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    "null-role": ({"messages": [{"role": None, "content": "hi"}]}, "messages[0].role"),
    "unknown-role": ({"messages": [{"role": "tool", "content": "hi"}]}, "messages[0].role"),
    "role-list": ({"messages": [{"role": ["user"], "content": "hi"}]}, "messages[0].role"),
    "no-content": ({"messages": [{"role": "user"}]}, "messages[0].content"),
    "null-content": ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    "content-number": ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    "content-object": (
        {"messages": [{"role": "user", "content": {"type": "text"}}]},
        "messages[0].content",
    ),
    "system-content-number": (
        {"messages": [{"role": "system", "content": 5}]},
        "messages[0].content",
    ),
    "block-text": (_with("hi"), "messages[2].content[0]"),
    "no-type": (_with({"text": "hi"}), "messages[2].content[0].type"),
    "type-number": (_with({"type": 5}), "messages[2].content[0].type"),
    "text-null": (_with(_text("a"), {"type": "text", "text": None}), "messages[2].content[1].text"),
    "unknown-block": (_with({"type": "hologram"}), "messages[2].content[0]"),
    "container-upload": (
        _with({"type": "container_upload", "file_id": "f"}),
        "messages[2].content[0]",
    ),
    "use-of-a-user": (_with(_use("t")), "messages[2].content[0]"),
    "image-no-source": (_with({"type": "image"}), "messages[2].content[0].source"),
    "image-file": (
        _with({"type": "image", "source": {"type": "file", "file_id": "f"}}),
        "messages[2].content[0].source.type",
    ),
    "image-no-data": (
        _with({"type": "image", "source": {"type": "base64", "data": ""}}),
        "messages[2].content[0].source.data",
    ),
    "image-no-url": (
        _with({"type": "image", "source": {"type": "url", "url": ""}}),
        "messages[2].content[0].source.url",
    ),
    "document-file": (
        _with({"type": "document", "source": {"type": "file", "file_id": "f"}}),
        "messages[2].content[0].source.type",
    ),
    "document-pdf": (
        _with({"type": "document", "source": {"type": "base64", "data": "AA"}}),
        "messages[2].content[0].source.type",
    ),
    "result-no-id": (
        _with({"type": "tool_result", "content": "A"}),
        "messages[2].content[0].tool_use_id",
    ),
    "result-number": (_with(_result("t", 5)), "messages[2].content[0].content"),
    "result-unknown-block": (
        _with(_result("t", [{"type": "hologram"}])),
        "messages[2].content[0].content[0]",
    ),
    "result-in-result": (
        _with(_result("t", [_result("u", "x")])),
        "messages[2].content[0].content[0]",
    ),
    "result-of-an-assistant": (
        {"messages": [_assistant(_result("t", "A"))]},
        "messages[0].content[0]",
    ),
    "use-input-list": (
        {"messages": [_assistant({"type": "tool_use", "id": "t", "name": "f", "input": [1]})]},
        "messages[0].content[0].input",
    ),
    "use-no-id": (
        {"messages": [_assistant({"type": "tool_use", "name": "f"})]},
        "messages[0].content[0].id",
    ),
    "use-no-name": (
        {"messages": [_assistant({"type": "tool_use", "id": "t", "name": ""})]},
        "messages[0].content[0].name",
    ),
    "thinking-number": (
        {"messages": [_assistant({"type": "thinking", "thinking": 5})]},
        "messages[0].content[0].thinking",
    ),
    "system-number": ({"system": 5}, "system"),
    "system-image": ({"system": [_PNG]}, "system[0]"),
    "system-texts": ({"system": ["S"]}, "system[0]"),
    "max-tokens-null": ({"max_tokens": None}, "max_tokens"),
    "max-tokens-0": ({"max_tokens": 0}, "max_tokens"),
    "max-tokens-negative": ({"max_tokens": -1}, "max_tokens"),
    "max-tokens-text": ({"max_tokens": "10"}, "max_tokens"),
    "max-tokens-fraction": ({"max_tokens": 1.5}, "max_tokens"),
    "max-tokens-true": ({"max_tokens": True}, "max_tokens"),
    "stop-text": ({"stop_sequences": "END"}, "stop_sequences"),
    "stop-number": ({"stop_sequences": ["END", 5]}, "stop_sequences[1]"),
    "stop-empty": ({"stop_sequences": [""]}, "stop_sequences[0]"),
    "stream-text": ({"stream": "true"}, "stream"),
    "tools-object": ({"tools": {}}, "tools"),
    "tool-unknown": ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
    "tool-no-schema": ({"tools": [_HOSTED, {"name": "f"}]}, "tools[1].input_schema"),
    "tool-no-name": ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
    "tool-description-number": ({"tools": [{**_TOOL, "description": 5}]}, "tools[0].description"),
    "tool-strict-text": ({"tools": [{**_TOOL, "strict": "yes"}]}, "tools[0].strict"),
    "choice-text": ({"tool_choice": "auto"}, "tool_choice"),
    "choice-unknown": ({"tool_choice": {"type": "required"}}, "tool_choice.type"),
    "choice-list": ({"tool_choice": {"type": ["auto"]}}, "tool_choice.type"),
    "choice-no-name": ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    "choice-parallel-number": (
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}},
        "tool_choice.disable_parallel_tool_use",
    ),
    "thinking-true": ({"thinking": True}, "thinking"),
    "thinking-unknown": ({"thinking": {"type": "maybe"}}, "thinking.type"),
    "kwargs-list": (
        {"thinking": {"type": "enabled"}, "chat_template_kwargs": []},
        "chat_template_kwargs",
    ),
    "config-text": ({"output_config": "high"}, "output_config"),
    "format-json-object": (
        {"output_config": {"format": {"type": "json_object"}}},
        "output_config.format.type",
    ),
    "format-no-schema": (
        {"output_config": {"format": {"type": "json_schema"}}},
        "output_config.format.schema",
    ),
    "metadata-text": ({"metadata": "u"}, "metadata"),
    "user-id-number": ({"metadata": {"user_id": 5}}, "metadata.user_id"),
}


@pytest.mark.parametrize(("keys", "param"), _REFUSED.values(), ids=_REFUSED.keys())
def test_refused(keys: dict[str, Any], param: str) -> None:
    """A wrong value is a 400 whose message and `param` name the field."""
    with pytest.raises(GatewayError) as caught:
        _chat(**keys)
    assert caught.value.kind.code == "bad_request"
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (_with({"type": "hologram"}), "'hologram'"),
        (_with({"type": "image", "source": {"type": "file"}}), "'file'"),
        ({"max_tokens": "10"}, "'10'"),
        ({"max_tokens": -1}, "-1"),
        ({"max_tokens": "1" * 100}, "…"),
    ],
    ids=["block", "source", "text", "number", "long"],
)
def test_a_refusal_shows_the_value(keys: dict[str, Any], said: str) -> None:
    """The message shows what was got, and no more of it than helps."""
    with pytest.raises(GatewayError) as caught:
        _chat(**keys)
    assert said in caught.value.message
    assert len(caught.value.message) < 200
