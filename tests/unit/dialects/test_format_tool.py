"""A JSON-schema answer beside function tools is offered as one more tool."""

import copy
from typing import Any

import pytest

from gateway.dialects.format_tool import offer_format

_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def _chat(**keys: Any) -> dict[str, Any]:
    return {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "response", "schema": _SCHEMA, "strict": True},
        },
        **keys,
    }


@pytest.mark.parametrize(
    "keys", [{}, {"tool_choice": None}, {"tool_choice": "auto"}], ids=["absent", "null", "auto"]
)
def test_with_a_free_choice_the_format_becomes_a_tool(keys: dict[str, Any]) -> None:
    """The schema is the tool's parameters, a call is required and the format is gone."""
    chat = _chat(**keys)
    name = offer_format(chat)
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["f", name]
    assert chat["tools"][1]["function"]["parameters"] == _SCHEMA
    assert chat["tools"][1]["function"]["strict"] is True
    assert chat["tool_choice"] == "required"
    assert "response_format" not in chat


def test_with_none_the_format_goes_alone() -> None:
    """No tool can be called, so that only the format is left."""
    chat = _chat(tool_choice="none", parallel_tool_calls=False)
    assert offer_format(chat) is None
    assert chat == {"response_format": _chat()["response_format"]}


@pytest.mark.parametrize(
    "chat",
    [
        _chat(tool_choice="required"),
        _chat(tool_choice={"type": "function", "function": {"name": "f"}}),
        _chat(tools=[]),
        _chat(tools=None),
        _chat(response_format={"type": "json_object"}),
        _chat(response_format={"type": "json_schema"}),
        _chat(response_format="json_schema"),
        _chat(response_format=None),
        _chat(
            response_format={"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}
        ),
    ],
    ids=[
        "required",
        "named",
        "no-tools",
        "null-tools",
        "json-object",
        "no-schema",
        "format-no-object",
        "no-format",
        "array-schema",
    ],
)
def test_otherwise_nothing_changes(chat: dict[str, Any]) -> None:
    """A forced call, a lone format and a schema that no tool can have are left to the engine."""
    before = copy.deepcopy(chat)
    assert offer_format(chat) is None
    assert chat == before


def test_the_name_is_none_of_the_clients() -> None:
    """A client's own tool of that name keeps it; the answer's tool takes another."""
    first = offer_format(_chat())
    chat = _chat(tools=[{"type": "function", "function": {"name": first}}, {"function": None}])
    second = offer_format(chat)
    assert second is not None
    assert second != first


def test_values_of_the_client_are_not_changed() -> None:
    """The list of tools and the schema are replaced, not written to."""
    tools = _chat()["tools"]
    chat = _chat(tools=tools)
    chat["response_format"]["json_schema"]["schema"] = schema = {"properties": {}}
    offer_format(chat)
    assert len(tools) == 1
    assert schema == {"properties": {}}
    assert chat["tools"][1]["function"]["parameters"] == {"properties": {}, "type": "object"}
