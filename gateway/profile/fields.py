"""The values that keys of a profile take: each reads a node, and describes itself as JSON Schema.

Voluptuous calls them; what they refuse they raise as a `Problem`, which says what was found and
what would be right. A path is added on the way up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

import voluptuous as vol

from gateway.profile.findings import Mark
from gateway.profile.nodes import (
    ListNode,
    MapNode,
    Node,
    ScalarNode,
    is_null,
    json_number,
    show,
    value_of,
    walk,
    whole_of,
    whole_value,
)
from gateway.profile.rules import Band, Exact, Value

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

Json = dict[str, Any]


class Problem(vol.Invalid):  # type: ignore[misc, unused-ignore]
    """A refused value.

    Args:
        rule: a key of `findings.RULES`.
        message: without the key, which is put in front: "is 5; it must be ...".
        path: keys below the value that was judged.
        mark: where, if not at the value itself.
        below: what to append to the path in messages, such as `[0]`.
    """

    def __init__(
        self,
        rule: str,
        message: str,
        path: list[Any] | None = None,
        *,
        mark: Mark | None = None,
        below: str = "",
    ) -> None:
        super().__init__(message, path)
        self.rule = rule
        self.mark = mark
        self.below = below


def _wrong_type(node: Node, wanted: str, hint: str = "", below: str = "") -> Problem:
    message = f"is {show(node)}; it must be {wanted}{hint}"
    return Problem("wrong-type", message, mark=node.mark, below=below)


def _out_of_domain(node: Node, wanted: str) -> Problem:
    return Problem("out-of-domain", f"is {show(node)}; it must be {wanted}")


def _number_hint(node: Node) -> str:
    """How to fix a text that was meant as a number."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        digits = node.value.replace("_", "").strip()
        if re.fullmatch(r"[0-9]{1,30}", digits):
            return f"; write {digits}"
    return ""


def _finite(node: Node, wanted: str) -> ScalarNode:
    if not isinstance(node, ScalarNode) or not node.is_number:
        raise _wrong_type(node, wanted, _number_hint(node))
    if not node.is_finite_number:
        raise _out_of_domain(node, f"{wanted}, finite")
    return node


class Text:
    """A text; `name` may be empty, others may not."""

    def __init__(self, *, empty: bool = False) -> None:
        self._empty = empty

    def __call__(self, node: Node) -> str:
        """Reads a text."""
        return self.read(node)

    def read(self, node: Node, below: str = "") -> str:
        """Reads a text, perhaps as an entry of a list."""
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            scalar = isinstance(node, ScalarNode) and node.value is not None
            hint = f'; put it in quotes: "{show(node)}"' if scalar else ""
            raise _wrong_type(node, "text", hint, below)
        if not node.value and not self._empty:
            message = "is empty; it must be a text that is not empty"
            raise Problem("out-of-domain", message, mark=node.mark, below=below)
        return node.value

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "string"} if self._empty else {"type": "string", "minLength": 1}


class Flag:
    """A boolean, in the spellings of the core schema only."""

    def __call__(self, node: Node) -> bool:
        """Reads a boolean."""
        if isinstance(node, ScalarNode) and isinstance(node.value, bool):
            return node.value
        raise _wrong_type(node, "true or false")

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "boolean"}


class OneOf:
    """One of a few words."""

    def __init__(self, words: type[StrEnum]) -> None:
        self._words = words
        self._wanted = " or ".join(words)

    def __call__(self, node: Node) -> StrEnum:
        """Reads one of the words."""
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            raise _wrong_type(node, self._wanted)
        if node.value not in list(self._words):
            raise _out_of_domain(node, self._wanted)
        return self._words(node.value)

    def json(self) -> Json:
        """As JSON Schema."""
        return {"enum": list(self._words)}


class Whole:
    """An integer, however it is spelled (`1e5`), from 1 to the largest of 64 bits."""

    _wanted: ClassVar[str] = "a whole number of at least 1"

    def __call__(self, node: Node) -> int:
        """Reads an integer."""
        return self.within(whole_of(json_number(_finite(node, self._wanted))), node)

    def within(self, number: int | None, node: Node) -> int:
        """Refuses what is no integer of the domain."""
        if number is None or not 1 <= number <= INT64_MAX:
            raise _out_of_domain(node, self._wanted)
        return number

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "integer", "minimum": 1, "maximum": INT64_MAX}


class Size(Whole):
    """Bytes: a plain integer, or text of digits, alone or with a binary unit."""

    _wanted = "a number of bytes, at least 1, alone or with B, KiB, MiB or GiB"
    _units: ClassVar[dict[str, int]] = {
        "": 1,
        "B": 1,
        "KiB": 1 << 10,
        "MiB": 1 << 20,
        "GiB": 1 << 30,
    }
    _pattern: ClassVar[str] = "^ *[0-9]+ *(B|KiB|MiB|GiB)? *$"

    def __call__(self, node: Node) -> int:
        """Reads a number of bytes."""
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            return super().__call__(node)
        match = re.fullmatch(r" *0*([0-9]{1,19}) *(B|KiB|MiB|GiB|) *", node.value)
        if match is None:
            raise _out_of_domain(node, self._wanted)
        return self.within(int(match.group(1)) * self._units[match.group(2)], node)

    def json(self) -> Json:
        """As JSON Schema."""
        return {"anyOf": [super().json(), {"type": "string", "pattern": self._pattern}]}


class TextList:
    """A list of texts that are not empty."""

    _entry: ClassVar[Text] = Text()

    def __call__(self, node: Node) -> tuple[str, ...]:
        """Reads a list of texts."""
        if not isinstance(node, ListNode):
            text = isinstance(node, ScalarNode) and isinstance(node.value, str)
            hint = f"; write [{show(node)}]" if text else ""
            raise _wrong_type(node, "a list of texts", hint)
        texts: list[str] = []
        problems: list[vol.Invalid] = []
        for index, item in enumerate(node.items):
            try:
                texts.append(self._entry.read(item, f"[{index}]"))
            except Problem as problem:
                problems.append(problem)
        if problems:
            raise vol.MultipleInvalid(problems)
        return tuple(texts)

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "array", "items": self._entry.json()}


class Number:
    """Any finite number, kept with its literal."""

    def __call__(self, node: Node) -> Value:
        """Reads a number."""
        return value_of(_finite(node, "a number"))

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "number"}


@dataclass(frozen=True, slots=True)
class Domain:
    """What a sampling field accepts.

    Attributes:
        low: the least value, itself accepted unless `open_below`.
        high: the largest; None is the largest integer of 64 bits.
        whole: only integers.
        also: one value more, which cannot be the end of a band.
    """

    low: int
    high: int | None
    whole: bool = False
    open_below: bool = False
    also: int | None = None

    def accepts(self, value: float) -> bool:
        """Whether a number lies in the domain, `also` left aside."""
        above = value > self.low if self.open_below else value >= self.low
        return above and value <= (INT64_MAX if self.high is None else self.high)

    def describe(self, *, band: bool = False) -> str:
        """In words."""
        kind = "a whole number" if self.whole else "a number"
        if self.high is None:
            reach = f" of at least {self.low}"
        elif self.open_below:
            reach = f" over {self.low}, up to {self.high}"
        else:
            reach = f" from {self.low} to {self.high}"
        more = "" if band or self.also is None else f", or exactly {self.also}"
        return f"{kind}{reach}{more}"

    def json(self, *, band: bool) -> Json:
        """As JSON Schema, of an exact value or of the end of a band."""
        lower = "exclusiveMinimum" if self.open_below else "minimum"
        upper = INT64_MAX if self.high is None else self.high
        base: Json = {
            "type": "integer" if self.whole else "number",
            lower: self.low,
            "maximum": upper,
        }
        return base if band or self.also is None else {"anyOf": [base, {"const": self.also}]}


class SamplingRule:
    """A number, or exactly `{min, max}`."""

    def __init__(self, field: str, domain: Domain) -> None:
        self._field = field
        self._domain = domain
        self.mapping: Mapping[Any, Any] = {
            vol.Required("min", description="The least value accepted."): self._end,
            vol.Required("max", description="The largest value accepted."): self._end,
        }
        self._band = vol.Schema(dict(self.mapping))

    def __call__(self, node: Node) -> Exact | Band:
        """Reads an exact value or a band."""
        if isinstance(node, MapNode):
            ends = self._band(node)
            low, high = ends["min"], ends["max"]
            if low.value > high.value:
                message = f"has min {show(node['min'])} above max {show(node['max'])}"
                raise Problem("empty-range", message)
            return Band(self._field, low, high)
        wanted = self._domain.describe()
        if not isinstance(node, ScalarNode) or not node.is_number:
            raise _wrong_type(node, f"{wanted}, or a band {{min, max}}", _number_hint(node))
        return Exact(self._field, self._read(node, wanted, also=self._domain.also))

    def _end(self, node: Node) -> Value:
        wanted = self._domain.describe(band=True)
        return self._read(_finite(node, wanted), wanted, also=None)

    def _read(self, node: ScalarNode, wanted: str, *, also: int | None) -> Value:
        number = _finite(node, wanted)
        value = value_of(number)
        if self._domain.whole:
            value = whole_value(value)
        exact: Any = value.value
        whole_missing = self._domain.whole and not isinstance(exact, int)
        if whole_missing or not (self._domain.accepts(exact) or exact == also):
            raise _out_of_domain(node, wanted)
        return value

    def json(self) -> Json:
        """As JSON Schema."""
        end = self._domain.json(band=True)
        band = {
            "type": "object",
            "properties": {
                str(key): {**end, "description": key.description} for key in self.mapping
            },
            "additionalProperties": False,
        }
        return {"anyOf": [self._domain.json(band=False), band]}


class AnyValue:
    """Any JSON value but null, at any depth; it replaces whole in a merge."""

    def __call__(self, node: Node) -> Node:
        """Checks a value; it stays a node, for its literal."""
        for path, part in walk(node):
            if is_null(part):
                message = "is null; null deletes, it cannot be a value"
                raise Problem("wrong-type", message, mark=part.mark, below=_below(path))
            if isinstance(part, ScalarNode) and part.is_number and not part.is_finite_number:
                message = f"is {show(part)}; a number must be finite"
                raise Problem("out-of-domain", message, mark=part.mark, below=_below(path))
        return node

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": ["string", "number", "boolean", "array", "object"]}


class ValueList(AnyValue):
    """A list of accepted values, at least one."""

    def __call__(self, node: Node) -> Node:
        """Checks a list of values."""
        if not isinstance(node, ListNode):
            raise _wrong_type(node, "a list of accepted values")
        if not node.items:
            raise Problem("empty-range", "is empty: no value would be accepted")
        return super().__call__(node)

    def json(self) -> Json:
        """As JSON Schema."""
        return {"type": "array", "minItems": 1, "items": super().json()}


class Pairs(AnyValue):
    """A list of `[from, to]`, at least one."""

    def __call__(self, node: Node) -> Node:
        """Checks a list of pairs."""
        if not isinstance(node, ListNode):
            raise _wrong_type(node, "a list of pairs [from, to]")
        if not node.items:
            raise Problem("empty-rule", "is empty: there is nothing to normalize")
        for index, item in enumerate(node.items):
            if not isinstance(item, ListNode) or len(item.items) != _PAIR:
                raise _wrong_type(item, "a pair [from, to]", below=f"[{index}]")
        return super().__call__(node)

    def json(self) -> Json:
        """As JSON Schema."""
        pair = {"type": "array", "items": super().json(), "minItems": _PAIR, "maxItems": _PAIR}
        return {"type": "array", "minItems": 1, "items": pair}


class NoEffect:
    """Any value, which is then left alone: the key is another program's."""

    def __call__(self, node: Node) -> None:
        """Accepts everything."""


_PAIR: Final = 2


def _below(path: str) -> str:
    return path if not path or path.startswith("[") else f".{path}"
