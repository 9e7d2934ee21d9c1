"""A Responses request as a Chat request.

Every key is in one of the tables below, or passes as it is: the engine knows more fields than
this module does. A null is an absent key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from gateway.dialects.format_tool import offer_format
from gateway.dialects.responses.items import convert_items, parse_items, tool_lists
from gateway.dialects.responses.parts import refused
from gateway.dialects.responses.tools import ToolNames, apply_choice, parse_tools

_STATE: Final = ("previous_response_id", "conversation", "prompt")
"""Keys that refer to what only the vendor's server keeps."""

_NOT_SENT: Final = frozenset(
    {"include", "truncation", "store", "client_metadata", "max_tool_calls", "background"}
)
"""The client's bookkeeping, which is nothing to an engine."""

_CONVERTED: Final = frozenset(
    {
        "input",
        "instructions",
        "max_output_tokens",
        "messages",
        "reasoning",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
    }
)

_ECHOED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "background": False,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "prompt_cache_retention": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": None,
        "store": False,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": None,
        "top_p": None,
        "truncation": "disabled",
        "user": None,
    }
)
"""The settings that a Response object repeats, with what stands for one that was not sent."""

_MERGED: Final = frozenset({"reasoning", "text"})
"""Of these, the parts that were not sent are filled in, not only the whole."""

_STREAM_OPTIONS: Final[Mapping[str, bool]] = MappingProxyType(
    {"include_usage": True, "continuous_usage_stats": True}
)
_REASONING_KEYS: Final = frozenset({"effort", "summary", "generate_summary", "context", "mode"})


@dataclass(frozen=True, slots=True)
class Converted:
    """A request for the engine, and what its answer needs to become a Response.

    Attributes:
        chat: the Chat body.
        echo: the request's own settings, as the Response repeats them.
        names: of the tools, on both sides.
        format_tool: the name of the function whose call is the answer's text; None: there is
            none.
        dropped_tools: the types of the hosted tools that were left out, each once.
    """

    chat: dict[str, Any]
    echo: Mapping[str, Any]
    names: ToolNames
    format_tool: str | None = None
    dropped_tools: tuple[str, ...] = ()


def to_chat(body: Mapping[str, Any]) -> Converted:
    """Converts a request of `/v1/responses`.

    The given body is not changed, but the Chat body shares values with it.

    Raises:
        GatewayError: 400 that names the field: it refers to kept state, or cannot be read.
    """
    _refuse_state(body)
    items = parse_items(body.get("input"))
    tools = parse_tools([("tools", body.get("tools")), *tool_lists(items)])
    conversation = convert_items(items, _instructions(body), tools.names)
    chat: dict[str, Any] = {
        key: value
        for key, value in body.items()
        if value is not None and key not in _CONVERTED and key not in _NOT_SENT
    }
    chat["messages"] = conversation.messages
    apply_choice(chat, body.get("tool_choice"), tools)
    _apply_budget(chat, body)
    _apply_reasoning(chat, _object(body, "reasoning"))
    _apply_format(chat, _object(body, "text"))
    _apply_stream(chat, body)
    if body.get("top_logprobs") is not None:
        chat["top_logprobs"] = body["top_logprobs"]
        chat["logprobs"] = True
    return Converted(
        chat=chat,
        echo=_echo(body),
        names=tools.names,
        format_tool=offer_format(chat),
        dropped_tools=tuple(dict.fromkeys((*tools.dropped_types, *conversation.dropped_types))),
    )


def _refuse_state(body: Mapping[str, Any]) -> None:
    for key in _STATE:
        if body.get(key) is not None:
            raise refused(
                key, "the gateway keeps no state; leave it out and send the whole conversation"
            )
    if body.get("background") not in (None, False):
        raise refused("background", "the gateway keeps no state; expected false")
    if body.get("n") not in (None, 1):
        raise refused("n", "a Response holds one answer; expected 1")


def _instructions(body: Mapping[str, Any]) -> str | None:
    instructions = body.get("instructions")
    if instructions is None or isinstance(instructions, str):
        return instructions
    raise refused("instructions", "expected a string")


def _apply_budget(chat: dict[str, Any], body: Mapping[str, Any]) -> None:
    if body.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = body["max_output_tokens"]


def _apply_reasoning(chat: dict[str, Any], reasoning: Mapping[str, Any]) -> None:
    """The effort; the engine writes no summaries, and takes keys of its own beside it."""
    if reasoning.get("effort") is not None:
        chat["reasoning_effort"] = reasoning["effort"]
    own = {
        key: value
        for key, value in reasoning.items()
        if key not in _REASONING_KEYS and value is not None
    }
    if own:
        chat["reasoning"] = own


def _apply_format(chat: dict[str, Any], text: Mapping[str, Any]) -> None:
    form = text.get("format")
    if form is None:
        return
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "text":
        chat.pop("response_format", None)
    elif kind == "json_object":
        chat["response_format"] = {"type": "json_object"}
    elif kind == "json_schema":
        if not isinstance(form.get("schema"), Mapping):
            raise refused("text.format.schema", "expected a JSON schema, an object")
        if not isinstance(form.get("name"), str):
            raise refused("text.format.name", "expected a string")
        described = {k: v for k, v in form.items() if k != "type" and v is not None}
        chat["response_format"] = {"type": "json_schema", "json_schema": described}
    else:
        raise refused("text.format.type", "expected text, json_object or json_schema")


def _apply_stream(chat: dict[str, Any], body: Mapping[str, Any]) -> None:
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise refused("stream", "expected true or false")
    if stream is not None:
        chat["stream"] = stream
    if stream:
        # The client's own stream options are none of Chat's.
        chat["stream_options"] = dict(_STREAM_OPTIONS)


def _echo(body: Mapping[str, Any]) -> Mapping[str, Any]:
    echo: dict[str, Any] = {}
    for key, unset in _ECHOED.items():
        sent = body.get(key)
        if key in _MERGED and isinstance(sent, Mapping):
            sent = {**unset, **{k: v for k, v in sent.items() if v is not None}}
        echo[key] = unset if sent is None else sent
    return MappingProxyType(echo)


def _object(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise refused(key, "expected an object")
    return value
