"""The YAML document as it was read: values that know where they stand and how they were spelled.

A mapping is a `dict`, so that the schema validates the document itself and no copy of it.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, TypeAlias

from gateway.profile.findings import Mark
from gateway.profile.rules import Value

_LARGEST: Final = sys.float_info.max
_SHOWN_CHARACTERS: Final = 60
_DECIMAL: Final = re.compile(r"([-+]?)([0-9]*)(?:(\.)([0-9]*))?(?:([eE][-+]?[0-9]+))?")


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A text, number, boolean or null.

    Attributes:
        value: as YAML 1.2's core schema reads it.
        text: as it is spelled in the file, without quotes.
    """

    value: str | int | float | bool | None
    text: str
    mark: Mark

    @property
    def is_number(self) -> bool:
        """Whether it is a number; a boolean is none."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    @property
    def is_finite_number(self) -> bool:
        """Whether it is a number that fits a double."""
        # The comparison, unlike float(), is exact for integers of any size, and false for NaN.
        return self.is_number and -_LARGEST <= self.value <= _LARGEST  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: "tuple[Node, ...]"
    mark: Mark


class MapNode(dict[str, "Node"]):
    """A mapping.

    Attributes:
        mark: where it begins.
        key_marks: where each key stands.
        odd_keys: keys that are not text in the file (`1`, `true`), under their spelling.
    """

    __slots__ = ("key_marks", "mark", "odd_keys")

    def __init__(self, mark: Mark | None = None) -> None:
        super().__init__()
        self.mark = mark or Mark("")
        self.key_marks: dict[str, Mark] = {}
        self.odd_keys: set[str] = set()

    def put(self, key: str, node: "Node", mark: Mark, *, odd: bool = False) -> None:
        """Sets a key, and where it stands."""
        self[key] = node
        self.key_marks[key] = mark
        if odd:
            self.odd_keys.add(key)

    def take(self, key: str, other: "MapNode") -> None:
        """Sets a key as it is set in `other`."""
        self.put(key, other[key], other.key_marks[key], odd=key in other.odd_keys)

    def copied(self, mark: Mark | None = None) -> "MapNode":
        """A copy one level deep, optionally standing elsewhere."""
        result = MapNode(mark or self.mark)
        for key in self:
            result.take(key, self)
        return result


Node: TypeAlias = ScalarNode | ListNode | MapNode


def moved(node: Node, mark: Mark) -> Node:
    """The same value, standing where an alias is used; its parts stay where they are."""
    return node.copied(mark) if isinstance(node, MapNode) else replace(node, mark=mark)


def is_null(node: Node) -> bool:
    """Whether it is null, which deletes."""
    return isinstance(node, ScalarNode) and node.value is None


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every value under `node`, with its path."""
    yield path, node
    if isinstance(node, MapNode):
        for key, child in node.items():
            yield from walk(child, join_path(path, key))
    elif isinstance(node, ListNode):
        for index, child in enumerate(node.items):
            yield from walk(child, f"{path}[{index}]")


def join_path(path: str, key: str) -> str:
    """The path of a key under `path`."""
    return f"{path}.{key}" if path else key


def show(node: Node) -> str:
    """A value for a message: its spelling, shortened; texts in quotes."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "null"
    text = node.text
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return json.dumps(text, ensure_ascii=False) if isinstance(node.value, str) else text


def whole_of(literal: str) -> int | None:
    """The integer that a finite JSON number is, however it is spelled (`1e5`, `20.0`), or None."""
    exact = Decimal(literal)
    if not exact:
        return 0  # also 0e999999999, whose integer nobody should ask for
    return int(exact) if exact == exact.to_integral_value() else None


def json_number(node: ScalarNode) -> str:
    """The operator's literal of a finite number, mended only where JSON does not know it.

    `0.950` and `1e5` stay; `.5` is `0.5`, `1.` is `1.0`, `+1` is `1`, `010` is `10`, and
    hexadecimal and octal numbers are written out in decimal.
    """
    match = _DECIMAL.fullmatch(node.text)
    if match is None:
        return str(node.value)
    sign, whole, dot, fraction, exponent = match.groups()
    return "".join(
        (
            "-" if sign == "-" else "",
            whole.lstrip("0") or "0",
            f".{fraction or '0'}" if dot else "",
            exponent or "",
        )
    )


def render_json_node(node: Node) -> str:
    """A value without null, as compact JSON in which numbers keep their literal."""
    if isinstance(node, MapNode):
        pairs = (f"{json_text(key)}:{render_json_node(child)}" for key, child in node.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(node, ListNode):
        return "[" + ",".join(map(render_json_node, node.items)) + "]"
    if node.is_number:
        return json_number(node)
    return json.dumps(node.value, ensure_ascii=False)


def json_text(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def plain(node: Node) -> object:
    """The value alone: dict, list, text, number, boolean."""
    if isinstance(node, MapNode):
        return {key: plain(child) for key, child in node.items()}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return node.value


def value_of(node: Node) -> Value:
    """A value that may go to the wire: without null, its numbers finite."""
    return Value(plain(node), render_json_node(node).encode())


def whole_value(value: Value) -> Value:
    """The same value; a number that is an integer is written as one (`1.0` as `1`)."""
    if isinstance(value.value, bool) or not isinstance(value.value, int | float):
        return value
    integer = whole_of(value.wire.decode())
    return value if integer is None else Value(integer, b"%d" % integer)
