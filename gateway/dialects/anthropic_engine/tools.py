"""Chat's tools and the choice among them, in Messages' words.

tool_choice            parallel_tool_calls: false    without tools
absent                 auto, no parallel use         nothing
auto                   the same flag on auto         nothing
required -> any        the same flag on any          400: there is nothing to call
a function -> tool     the same flag on tool         400
none                   no flag: nothing is called    nothing
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.dialects.messages.fields import (
    read_flag,
    read_list,
    read_name,
    read_object,
    read_text,
    shown,
)
from gateway.errors import GatewayError, bad_request

_CHOICES: Final = MappingProxyType({"auto": "auto", "required": "any", "none": "none"})
_FUNCTION_KEYS: Final = frozenset({"name", "description", "parameters", "strict"})
_CALLS: Final = frozenset({"any", "tool"})


def render_tools(chat: Mapping[str, Any]) -> dict[str, Any]:
    """The keys `tools` and `tool_choice` of a Messages request, where there are any.

    Args:
        chat: the Chat request; hosted tools are gone from it already.

    Raises:
        GatewayError: 400, for a tool or a choice that is malformed or that Messages cannot say.
    """
    sent = chat.get("tools")
    tools = [] if sent is None else read_list(sent, "tools")
    choice = _read_choice(chat.get("tool_choice"))
    if not tools:
        if choice is not None and choice["type"] in _CALLS:
            raise bad_request(
                "tool_choice: a call is required, but there are no tools", "tool_choice"
            )
        return {}
    flag = chat.get("parallel_tool_calls")
    if flag is not None and not read_flag(flag, "parallel_tool_calls"):
        choice = choice or {"type": "auto"}
        if choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True
    rendered: dict[str, Any] = {
        "tools": [_render_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    }
    if choice is not None:
        rendered["tool_choice"] = choice
    return rendered


def _render_tool(tool: object, path: str) -> dict[str, Any]:
    tool = read_object(tool, path)
    if tool.get("type") not in (None, "function"):
        raise _not_a_function(f"{path}.type", tool["type"])
    function = read_object(tool.get("function"), f"{path}.function")
    rendered: dict[str, Any] = {"name": read_name(function.get("name"), f"{path}.function.name")}
    if function.get("description") is not None:
        rendered["description"] = read_text(function["description"], f"{path}.function.description")
    rendered["input_schema"] = _render_schema(
        function.get("parameters"), f"{path}.function.parameters"
    )
    if function.get("strict") is not None:
        rendered["strict"] = function["strict"]
    others = {key: value for key, value in tool.items() if key not in ("type", "function")}
    others |= {key: value for key, value in function.items() if key not in _FUNCTION_KEYS}
    return {**others, **rendered}


def _render_schema(parameters: object, path: str) -> Mapping[str, Any]:
    """The schema of a call's input, which Messages wants to be an object's."""
    if not parameters and parameters in (None, {}):
        return {"type": "object", "properties": {}}
    schema = read_object(parameters, path)
    return schema if "type" in schema else {"type": "object", **schema}


def _read_choice(choice: object) -> dict[str, Any] | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise _unknown_choice("tool_choice", choice)
        return {"type": _CHOICES[choice]}
    named = read_object(choice, "tool_choice")
    if named.get("type") != "function":
        raise _unknown_choice("tool_choice.type", named.get("type"))
    function = read_object(named.get("function"), "tool_choice.function")
    return {"type": "tool", "name": read_name(function.get("name"), "tool_choice.function.name")}


def _unknown_choice(field: str, value: object) -> GatewayError:
    return bad_request(
        f"{field}: expected 'auto', 'required', 'none' or a function, got {shown(value)}",
        "tool_choice",
    )


def _not_a_function(field: str, value: object) -> GatewayError:
    return bad_request(
        f"{field}: {shown(value)} is not supported for this model, whose engine speaks "
        "Anthropic Messages; use 'function'",
        field,
    )
