"""The tools that a vendor would run on its own servers, and that no SGLang engine can run.

Clients list them beside their own functions. They are taken out on every route, told apart by
`type` alone: a client's own function may well be *called* `web_search`. Vendors date and vary
their types (`web_search_20250305`, `web_search_preview`, `tool_search_tool_regex_20251119`), so
the table holds families, not types.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from gateway.errors import bad_request

HOSTED_FAMILIES: Final = (
    "advisor",
    "apply_patch",
    "bash",
    "browser",
    "code_execution",
    "code_interpreter",
    "computer",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "memory",
    "programmatic_tool_calling",
    "shell",
    "text_editor",
    "tool_search",
    "web_fetch",
    "web_search",
)
"""A type belongs to a family when it is the word itself, or the word, `_` and anything."""

CHAT_TOOL_TYPES: Final = frozenset({None, "function", "custom", "namespace"})
"""The tool types that Chat and Responses clients bring themselves (none means a function)."""

MESSAGES_TOOL_TYPES: Final = frozenset({None, "custom"})
"""The tool types that Messages clients bring themselves."""

_PREFIXES: Final = tuple(f"{family}_" for family in HOSTED_FAMILIES)


class Split(NamedTuple):
    """The tools of a request, told apart.

    Attributes:
        kept: the client's own tools, in their order.
        dropped_types: the types of the hosted ones, each once, in the order of their first use.
    """

    kept: list[Mapping[str, object]]
    dropped_types: tuple[str, ...]


def is_hosted(tool_type: str) -> bool:
    """Whether a tool of this type would run on a vendor's servers."""
    return tool_type in HOSTED_FAMILIES or tool_type.startswith(_PREFIXES)


def family_of(tool_type: str) -> str | None:
    """The family of a hosted tool; None where it is of none."""
    own = (word for word in HOSTED_FAMILIES if f"{tool_type}_".startswith(f"{word}_"))
    return max(own, key=len, default=None)


def split_tools(tools: object, ours: Collection[str | None]) -> Split:
    """Tell the client's own tools from the hosted ones.

    Args:
        tools: the value of the request's `tools`; null counts as none.
        ours: the types that the dialect lets a client define itself. None in it stands for a
            tool without a type.

    Returns:
        The kept tools, as the very objects that were given, and the types that were dropped.

    Raises:
        GatewayError: 400, where `tools` is not a list of objects, or names a type that is
            neither ours nor of a hosted family: dropping it in silence would cost the client a
            tool that it counts on.
    """
    if tools is None:
        return Split([], ())
    if not isinstance(tools, list):
        raise bad_request("tools: expected an array of tools", "tools")
    kept: list[Mapping[str, object]] = []
    dropped: dict[str, None] = {}
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise bad_request(f"tools[{index}]: expected an object", f"tools[{index}]")
        tool_type = tool.get("type")
        if tool_type is not None and not isinstance(tool_type, str):
            field = f"tools[{index}].type"
            raise bad_request(f"{field}: expected a string", field)
        if tool_type in ours:
            kept.append(tool)
        elif tool_type is not None and is_hosted(tool_type):
            dropped[tool_type] = None
        else:
            raise _unknown_type(f"tools[{index}].type", tool_type, ours)
    return Split(kept, tuple(dropped))


def _unknown_type(field: str, tool_type: str | None, ours: Collection[str | None]) -> Exception:
    own = ", ".join(sorted(name for name in ours if name is not None))
    got = "a tool without a type" if tool_type is None else f"the tool type {tool_type!r}"
    return bad_request(f"{field}: {got} is not supported (known here: {own})", field)
