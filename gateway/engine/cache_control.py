"""Takes `cache_control` out of a Chat body, in its bytes or in its values.

Clients mark what a vendor should cache; SGLang caches by itself, and some of its request models
refuse the mark. It goes from messages, content parts, tools, `tool_calls` and the content of
tool results, and stays wherever it is data: a property in a tool's schema, an argument of a call.
So the places are a table, not a search.

In bytes nothing but the containers on the way to a mark is put together anew: every other value
keeps its spelling.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from gateway.jsonbody import REMOVE, Body, Edits, Remove, parse_object

MARK: Final = "cache_control"

Shape = Mapping[str, "Shape"]
"""Where to look on inside an object, by key; in an array, inside each of its elements."""

_NOTHING: Final[dict[str, Shape]] = {}
_PART: Final[dict[str, Shape]] = {}
_PART["content"] = _PART  # of a tool result
_TOOL: Final[dict[str, Shape]] = {"function": _NOTHING}
_TOOL["tools"] = _TOOL  # of a namespace
_CALL: Final[dict[str, Shape]] = {"function": _NOTHING}

SHAPES: Final[Shape] = {"messages": {"content": _PART, "tool_calls": _CALL}, "tools": _TOOL}
"""By top-level key: the places below it that may hold a mark."""

_MARK: Final = MARK.encode()
_ESCAPED: Final = re.compile(rb"\\u00[567]")
"""Every character of the key that is escaped begins so: a-z and `_` have no shorter escape."""

# The bytes are those of a body that was read strictly; this only finds where the elements end.
_split: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def may_hold_mark(raw: bytes) -> bool:
    """Whether the mark can be in this JSON at all; False for most, by one look at the bytes.

    A key may be spelled with escapes, so a body with escaped letters is looked into as well.
    """
    return _MARK in raw or _ESCAPED.search(raw) is not None


def strip_raw(raw: bytes, shape: Shape) -> bytes | None:
    """Takes the mark out of JSON at the places of `shape`.

    Args:
        raw: valid JSON.
        shape: of the value.

    Returns:
        The new JSON; None where there was no mark.
    """
    if not may_hold_mark(raw):
        return None
    start = raw.lstrip()[:1]
    if start == b"[":
        elements = split_array(raw)
        stripped = [strip_raw(element, shape) for element in elements]
        if all(new is None for new in stripped):
            return None
        return join_array(
            element if new is None else new for element, new in zip(elements, stripped, strict=True)
        )
    if start != b"{":
        return None
    body = parse_object(raw)
    edits = _edits_of(body, shape)
    return body.edit(edits) if edits else None


def split_array(raw: bytes) -> list[bytes]:
    """The elements of a JSON array, each as it is spelled."""
    return [bytes(element) for element in _split(raw)]


def join_array(elements: Iterable[bytes]) -> bytes:
    """A JSON array of elements that are JSON."""
    return b"[%b]" % b",".join(elements)


def _edits_of(body: Body, shape: Shape) -> Edits:
    edits: dict[str, bytes | Literal[Remove.REMOVE]] = {}
    if MARK in body:
        edits[MARK] = REMOVE
    for key, inner in shape.items():
        value = body.get_raw(key)
        new = None if value is None else strip_raw(value, inner)
        if new is not None:
            edits[key] = new
    return edits


def strip_value(value: object, shape: Shape) -> object:
    """Takes the mark out of a decoded value at the places of `shape`.

    Returns:
        The very same object where there was no mark; what is changed is copied.
    """
    if isinstance(value, list):
        elements = [strip_value(element, shape) for element in value]
        same = all(new is old for new, old in zip(elements, value, strict=True))
        return value if same else elements
    if not isinstance(value, dict):
        return value
    changed = {
        key: new
        for key, inner in shape.items()
        if key in value and (new := strip_value(value[key], inner)) is not value[key]
    }
    if MARK not in value and not changed:
        return value
    return {key: changed.get(key, old) for key, old in value.items() if key != MARK}
