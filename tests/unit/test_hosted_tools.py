"""Hosted tools are told apart by their type, as families."""

import pytest

from gateway.errors import GatewayError
from gateway.hosted_tools import (
    CHAT_TOOL_TYPES,
    HOSTED_FAMILIES,
    MESSAGES_TOOL_TYPES,
    is_hosted,
    split_tools,
)


@pytest.mark.parametrize("family", HOSTED_FAMILIES)
def test_a_family_is_its_word_and_whatever_follows_an_underscore(family: str) -> None:
    """The bare word, a dated type and a variant are hosted; a longer word is not."""
    assert is_hosted(family)
    assert is_hosted(f"{family}_20260318")
    assert is_hosted(f"{family}_preview")
    assert not is_hosted(f"{family}s")
    assert not is_hosted(f"my_{family}")


@pytest.mark.parametrize(
    "tool_type",
    [
        "tool_search_tool_regex_20251119",
        "computer_use_preview",
        "web_search_preview_2025_03_11",
        "mcp_toolset",
        "browser_toolset_20260801",
        "advisor_20260301",
    ],
)
def test_types_that_vendors_use_are_hosted(tool_type: str) -> None:
    """Types in the field, with dates and variants, belong to a family."""
    assert is_hosted(tool_type)


@pytest.mark.parametrize("tool_type", ["function", "custom", "namespace", "", "Web_Search", "web"])
def test_other_types_are_not_hosted(tool_type: str) -> None:
    """What clients define themselves, and mere likenesses, are not hosted."""
    assert not is_hosted(tool_type)


def test_tools_are_split_by_type_and_not_by_name() -> None:
    """A function that is called like a hosted tool stays; order is kept, a type listed once."""
    own = {"type": "function", "function": {"name": "web_search"}}
    untyped = {"name": "bash", "input_schema": {}}
    tools = [{"type": "mcp"}, own, {"type": "bash_20250124"}, untyped, {"type": "mcp"}]
    kept, dropped = split_tools(tools, CHAT_TOOL_TYPES)
    assert kept == [own, untyped]
    assert dropped == ("mcp", "bash_20250124")


@pytest.mark.parametrize("tools", [None, []], ids=["null", "empty"])
def test_no_tools_are_no_error(tools: object) -> None:
    """Absent, null and empty lists have nothing to drop."""
    assert split_tools(tools, CHAT_TOOL_TYPES) == ([], ())


@pytest.mark.parametrize(
    ("tools", "ours", "param", "said"),
    [
        ({}, CHAT_TOOL_TYPES, "tools", "array"),
        (["f"], CHAT_TOOL_TYPES, "tools[0]", "object"),
        ([{"type": "custom"}, {"type": 5}], CHAT_TOOL_TYPES, "tools[1].type", "string"),
        ([{"type": "retrieval"}], CHAT_TOOL_TYPES, "tools[0].type", "'retrieval'"),
        ([{"type": "function"}], MESSAGES_TOOL_TYPES, "tools[0].type", "'function'"),
        ([{"name": "x"}], {"function"}, "tools[0].type", "without a type"),
    ],
    ids=["no-list", "no-object", "type-no-text", "unknown", "not-of-messages", "untyped"],
)
def test_an_unknown_tool_is_refused_by_name(
    tools: object, ours: set[str | None], param: str, said: str
) -> None:
    """A tool that nobody knows is a 400 that names it, never lost in silence."""
    with pytest.raises(GatewayError) as caught:
        split_tools(tools, ours)
    assert caught.value.kind.status == 400
    assert caught.value.param == param
    assert said in caught.value.message
