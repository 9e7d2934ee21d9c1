"""The body of a count asks for the very prompt that a generation would be billed for."""

from typing import Any

import pytest

from gateway.dialects.messages import count_tokens_body
from gateway.errors import GatewayError

_USER = {"role": "user", "content": "hi"}
_TURN = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
_TOOL = {"name": "f", "input_schema": {"type": "object"}}
_COUNTED_TOOL = {**_TOOL, "description": "", "strict": False}


def _count(**keys: Any) -> dict[str, Any]:
    return count_tokens_body({"model": "m", "messages": [_USER], **keys})


def test_the_prompt_is_folded_already() -> None:
    """Results lead their turn, turns are merged, system texts are one: nothing is left to do."""
    count = _count(
        system=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        messages=[
            _USER,
            {"role": "system", "content": "c"},
            _USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [
                            {"type": "text", "text": "A"},
                            {"type": "text", "text": "B"},
                            {"type": "image", "source": {"type": "url", "url": "https://h/i"}},
                        ],
                    },
                ],
            },
        ],
    )
    assert count["system"] == "a\n\nb\n\nc"
    assert count["messages"] == [
        {"role": "user", "content": _TURN["content"] * 2},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "A\nB"},
                {"type": "image", "source": {"type": "url", "url": "https://h/i"}},
                {"type": "text", "text": "look"},
            ],
        },
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {"max_tokens": 5, "stream": True, "temperature": 1, "top_p": 1, "top_k": 1},
        {"stop_sequences": ["a"], "metadata": {"user_id": "u"}, "betas": [], "mcp_servers": []},
        {"tools": []},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "mcp_toolset"}], "tool_choice": {"type": "any"}},
        {"output_config": {}},
        {"output_config": {"effort": None}},
    ],
    ids=["generation", "not-passed", "no-tools", "hosted", "hosted-choice", "config", "no-effort"],
)
def test_what_is_no_part_of_the_prompt_is_not_sent(keys: dict[str, Any]) -> None:
    """Budget, sampling and what is dropped from a generation do not reach the counter."""
    assert _count(**keys) == {"model": "m", "messages": [_TURN]}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"tools": [_TOOL]}, {"tools": [_COUNTED_TOOL]}),
        (
            {"tools": [{**_TOOL, "defer_loading": True}]},
            {"tools": [{**_COUNTED_TOOL, "defer_loading": True}]},
        ),
        (
            {"tools": [_TOOL], "tool_choice": {"type": "none"}},
            {"tools": [_COUNTED_TOOL], "tool_choice": {"type": "none"}},
        ),
        (
            {"tools": [_TOOL], "tool_choice": {"type": "any"}},
            {"tools": [_COUNTED_TOOL], "tool_choice": {"type": "any"}},
        ),
        (
            {"tools": [_TOOL], "tool_choice": {"type": "tool", "name": "f"}},
            {"tools": [_COUNTED_TOOL], "tool_choice": {"type": "tool", "name": "f"}},
        ),
        (
            {"thinking": {"type": "disabled"}},
            {
                "thinking": {"type": "disabled"},
                "chat_template_kwargs": {"thinking": False, "enable_thinking": False},
            },
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False}},
            {
                "thinking": {"type": "disabled"},
                "chat_template_kwargs": {"enable_thinking": False},
            },
        ),
        (
            {"output_config": {"effort": "low"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        ({"output_config": {"effort": "none"}}, {"thinking": {"type": "disabled"}}),
        (
            {"output_config": {"effort": "ultra"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"a": 1}}}},
            {"output_config": {"format": {"type": "json_schema", "schema": {"a": 1}}}},
        ),
        ({"rid": "r"}, {"rid": "r"}),
    ],
    ids=[
        "tool",
        "deferred-tool",
        "choice-none",
        "choice-any",
        "choice-named",
        "thinking-off",
        "template-arguments",
        "effort",
        "effort-none",
        "effort-ultra",
        "format",
        "unknown",
    ],
)
def test_what_shapes_the_prompt_is_sent(keys: dict[str, Any], expected: dict[str, Any]) -> None:
    """Tools, the choice, thinking and the format count, in words that the counter accepts."""
    assert _count(**keys) == {"model": "m", "messages": [_TURN], **expected}


def test_thinking_needs_no_budget_here() -> None:
    """The counter's schema wants a budget of 1024 beside `enabled`, and none beside this."""
    assert _count(thinking={"type": "enabled", "budget_tokens": 5})["thinking"] == {
        "type": "adaptive"
    }


def test_an_image_in_base64_stays_so() -> None:
    """A data URL is taken apart again, as the counter knows base64 sources."""
    source = {"type": "base64", "media_type": "image/gif", "data": "AA"}
    turn = {"role": "user", "content": [{"type": "image", "source": source}]}
    assert _count(messages=[turn])["messages"] == [turn]


def test_an_emptied_turn_is_an_empty_text() -> None:
    """It takes its turn in the prompt, as it does in a generation."""
    turns = [_USER, {"role": "assistant", "content": [{"type": "redacted_thinking"}]}]
    assert _count(messages=turns)["messages"][1] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("keys", "param"),
    [
        ({"messages": []}, "messages"),
        ({"max_tokens": "10"}, "max_tokens"),
        ({"system": 5}, "system"),
    ],
    ids=["messages", "budget", "system"],
)
def test_a_count_is_refused_where_a_generation_is(keys: dict[str, Any], param: str) -> None:
    """A number for a request that nobody would serve is of no use."""
    with pytest.raises(GatewayError) as caught:
        _count(**keys)
    assert caught.value.param == param
