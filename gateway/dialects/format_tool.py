"""A JSON-schema answer beside function tools, for an engine that constrains one of the two.

SGLang's grammar binds either the tool calls or the answer. Where a client asks for both and
leaves the choice to the model, the schema is offered as one more tool and a call is required:
whichever the model picks, it is well-formed. The call of that tool is the answer, and the
reply's converter turns it back into text.

Only Responses and Messages clients get this; a Chat client's body is never rewritten for it.
"""

from collections.abc import Mapping
from typing import Any, Final

_NAME: Final = "final_answer"
_DESCRIPTION: Final = (
    "Gives the final answer to the user. Call this, and write no text, "
    "as soon as no other tool is needed."
)


def offer_format(chat: dict[str, Any]) -> str | None:
    """Rewrites a Chat body in which a JSON schema and tools meet.

    - `tool_choice` absent or `auto`: the schema becomes a tool and a call is required;
    - `none`: no tool can be called, so the format goes alone;
    - `required` or a named tool: left as it is, the engine judges.

    A schema whose root is no object is left alone too: a tool takes nothing but an object.

    Args:
        chat: changed in place; its values are not, they are replaced.

    Returns:
        The name of the tool whose call is the answer, or None where none was added.
    """
    tools = chat.get("tools")
    schema = _schema(chat.get("response_format"))
    if not tools or schema is None:
        return None
    choice = chat.get("tool_choice")
    if choice == "none":
        for key in ("tools", "tool_choice", "parallel_tool_calls"):
            chat.pop(key, None)
        return None
    if choice not in (None, "auto") or schema.get("type", "object") != "object":
        return None
    name = _free_name(tools)
    function = {
        "name": name,
        "description": _DESCRIPTION,
        "parameters": {**schema, "type": "object"},
        "strict": True,
    }
    chat["tools"] = [*tools, {"type": "function", "function": function}]
    chat["tool_choice"] = "required"
    del chat["response_format"]
    return name


def _schema(response_format: object) -> Mapping[str, Any] | None:
    if not isinstance(response_format, Mapping) or response_format.get("type") != "json_schema":
        return None
    described = response_format.get("json_schema")
    schema = described.get("schema") if isinstance(described, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def _free_name(tools: list[Any]) -> str:
    """A name that none of the client's tools has."""
    taken = [_name(tool) for tool in tools]
    name, number = _NAME, 1
    while name in taken:
        number += 1
        name = f"{_NAME}_{number}"
    return name


def _name(tool: object) -> object:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None
