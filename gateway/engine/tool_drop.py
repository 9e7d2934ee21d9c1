"""Drops hosted tools from a request, and a `tool_choice` that is left without its tool.

Which tools are hosted is a table elsewhere; here is what follows from dropping them: no empty
`tools` is left, and no `tool_choice` that names a dropped tool or has no tools left to choose
from. A request without hosted tools is left as it is, an empty `tools` included.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from gateway.hosted_tools import (
    CHAT_TOOL_TYPES,
    MESSAGES_TOOL_TYPES,
    is_hosted,
    split_tools,
)
from gateway.routes import Dialect

OURS: Final[Mapping[Dialect, Collection[str | None]]] = {
    Dialect.CHAT: CHAT_TOOL_TYPES,
    Dialect.RESPONSES: CHAT_TOOL_TYPES,
    Dialect.MESSAGES: MESSAGES_TOOL_TYPES,
}
"""By dialect, the types of tools that are the client's own; the other dialects have no tools."""

_NAMED_IN: Final = ("function", "custom", "tool")
_UNCHANGED: Final = object()


class Dropped(NamedTuple):
    """What dropping the hosted tools of a request comes to.

    Attributes:
        kept: the places in `tools` that stay.
        types: the types that were dropped, each once, in order; empty: nothing changes.
        choice: the new `tool_choice`; None: it goes. Only looked at where `choice_changes`.
        choice_changes: whether `tool_choice` is touched.
    """

    kept: tuple[int, ...]
    types: tuple[str, ...]
    choice: object = None
    choice_changes: bool = False


def drop_hosted(tools: object, choice: object, dialect: Dialect) -> Dropped:
    """What becomes of `tools` and `tool_choice`.

    Args:
        tools: decoded; None where there are none.
        choice: decoded; None where there is none.
        dialect: of the request.

    Raises:
        GatewayError: 400, a tool is of a type that nobody knows, or `tools` is no list of
            objects.
    """
    split = split_tools(tools, OURS[dialect])
    if not split.dropped_types or not isinstance(tools, list):
        return Dropped((), ())
    kept_ids = {id(tool) for tool in split.kept}
    kept = tuple(place for place, tool in enumerate(tools) if id(tool) in kept_ids)
    if choice is None:
        return Dropped(kept, split.dropped_types)
    if not kept:
        return Dropped(kept, split.dropped_types, None, choice_changes=True)
    gone = set(_names(tool for tool in tools if id(tool) not in kept_ids))
    new = _remaining(choice, gone - set(_names(split.kept)))
    if new is _UNCHANGED:
        return Dropped(kept, split.dropped_types)
    return Dropped(kept, split.dropped_types, new, choice_changes=True)


def _names(tools: Iterable[object]) -> Iterator[str]:
    """The names that a choice may use for these tools."""
    for tool in tools:
        if not isinstance(tool, Mapping):
            continue
        name = _name(tool)
        if name is not None:
            yield name
        inner = tool.get("tools")
        if isinstance(inner, list):  # a namespace
            yield from _names(inner)


def _name(entry: Mapping[str, object]) -> str | None:
    holders = (entry, *(entry.get(key) for key in _NAMED_IN))
    found = (holder.get("name") for holder in holders if isinstance(holder, Mapping))
    return next((name for name in found if isinstance(name, str)), None)


def _remaining(choice: object, gone: Collection[str]) -> object:
    """The choice without dropped tools: None where nothing of it is left."""
    if not isinstance(choice, Mapping):
        return _UNCHANGED
    if _means_dropped(choice, gone):
        return None
    nested = choice.get("allowed_tools")
    holder = nested if isinstance(nested, Mapping) else choice
    allowed = holder.get("tools")
    if not isinstance(allowed, list):
        return _UNCHANGED
    left = [entry for entry in allowed if not _means_dropped(entry, gone)]
    if len(left) == len(allowed):
        return _UNCHANGED
    if not left:
        return None
    fewer = {**holder, "tools": left}
    return {**choice, "allowed_tools": fewer} if holder is nested else fewer


def _means_dropped(entry: object, gone: Collection[str]) -> bool:
    if not isinstance(entry, Mapping):
        return False
    entry_type = entry.get("type")
    return (isinstance(entry_type, str) and is_hosted(entry_type)) or _name(entry) in gone
