"""What must hold between the keys of one section, once each key's own value is fine."""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import voluptuous as vol

from gateway.profile.fields import Problem
from gateway.profile.nodes import ListNode, Node, ScalarNode, plain, show, value_of, whole_value
from gateway.profile.rules import Band, Conflict, OnExceed, OutputBudget, ParamRule, Sampling, Value

_PIN_EXCLUDES: Final = ("default", "min", "max", "values")
_SPEAKING: Final = frozenset({"default", "pin", "min", "max", "values", "type", "normalize"})


class RuleType(StrEnum):
    """The values of `type` in a rule."""

    NUMBER = "number"
    INT = "int"


def check_sampling(parts: Mapping[str, Any]) -> Sampling | None:
    """The `sampling` section; None where it has no rule.

    Raises:
        vol.MultipleInvalid: a band where conflicts are allowed.
    """
    conflict = parts.get("conflict", Conflict.REJECT)
    rules: dict[str, Any] = parts.get("params", {})
    if conflict is Conflict.ALLOW:
        message = "is a band, which does nothing where sampling.conflict is allow"
        problems: list[vol.Invalid] = [
            Problem("useless-band", message, ["params", name])
            for name, rule in rules.items()
            if isinstance(rule, Band)
        ]
        if problems:
            raise vol.MultipleInvalid(problems)
    return Sampling(conflict, tuple(rules.values())) if rules else None


def check_budget(parts: Mapping[str, Any]) -> OutputBudget:
    """The `output.max_tokens` section.

    Raises:
        Problem: the default is above the cap.
    """
    cap, default = parts["cap"], parts.get("default")
    if default is not None and default > cap:
        message = f"is {default}; it must not be above the cap, {cap}"
        raise Problem("refused-value", message, ["default"])
    return OutputBudget(cap, parts.get("on_exceed", OnExceed.REJECT), default)


def check_param_rule(parts: Mapping[str, Any]) -> ParamRule:
    """A rule of `params`, its field left empty.

    Raises:
        vol.MultipleInvalid: the rule contradicts itself, accepts nothing or says nothing.
    """
    problems: list[vol.Invalid] = []
    for check in (_clashes, _mixed, _refusals):
        problems = problems or list(check(parts))
    if problems:
        raise vol.MultipleInvalid(problems)
    whole = parts.get("type") is RuleType.INT

    def written(node: Node | None) -> Value | None:
        if node is None:
            return None
        return whole_value(value_of(node)) if whole else value_of(node)

    return ParamRule(
        field="",
        numeric=_is_numeric(parts),
        whole=whole,
        default=written(parts.get("default")),
        pin=written(parts.get("pin")),
        minimum=parts.get("min"),
        maximum=parts.get("max"),
        exclusive_minimum=parts.get("exclusive_min", False),
        exclusive_maximum=parts.get("exclusive_max", False),
        values=tuple(value for node in _items(parts, "values") if (value := written(node))),
        normalize=tuple(
            (source, target)
            for pair in _items(parts, "normalize")
            if isinstance(pair, ListNode)
            and (source := written(pair.items[0]))
            and (target := written(pair.items[1]))
        ),
    )


def _key_of(value: object) -> Hashable:
    """The same for equal JSON values: numbers by value, and a boolean is never a number."""
    if isinstance(value, dict):
        return frozenset((key, _key_of(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_key_of, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (type(value).__name__, value)
    return float(value)  # as a request's value is read


def _items(parts: Mapping[str, Any], key: str) -> tuple[Node, ...]:
    node = parts.get(key)
    return node.items if isinstance(node, ListNode) else ()


def _sources(parts: Mapping[str, Any]) -> list[Node]:
    """What `normalize` is applied to."""
    return [pair.items[0] for pair in _items(parts, "normalize") if isinstance(pair, ListNode)]


def _is_number(node: Node | None) -> bool:
    return isinstance(node, ScalarNode) and node.is_number


def _is_numeric(parts: Mapping[str, Any]) -> bool:
    """Whether the rule has min, max or type, or numbers for its pin, default or values."""
    if parts.keys() & {"min", "max", "type"}:
        return True
    return any(map(_is_number, (parts.get("default"), parts.get("pin"), *_items(parts, "values"))))


def _clashes(parts: Mapping[str, Any]) -> Iterator[Problem]:
    if not parts.keys() & _SPEAKING:
        message = f"says nothing; a rule has one of {', '.join(sorted(_SPEAKING))}"
        yield Problem("empty-rule", message)
    clash = [key for key in _PIN_EXCLUDES if key in parts]
    if "pin" in parts and clash:
        message = f"cannot be given together with {', '.join(clash)}"
        yield Problem("conflicting-keys", message, ["pin"])
    for bound in ("min", "max"):
        if parts.get(f"exclusive_{bound}") and bound not in parts:
            message = f"says nothing without {bound}"
            yield Problem("conflicting-keys", message, [f"exclusive_{bound}"])


def _mixed(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """Values that a numeric rule could never meet."""
    if not _is_numeric(parts):
        return
    message = (
        "is {}; the rule is about numbers (it has min, max, type, or numbers among its values)"
    )
    for key in ("default", "pin"):
        if key in parts and not _is_number(parts[key]):
            yield Problem("mixed-values", message.format(show(parts[key])), [key])
    for key, nodes in (("values", _items(parts, "values")), ("normalize", _sources(parts))):
        for index, node in enumerate(nodes):
            if not _is_number(node):
                yield Problem(
                    "mixed-values",
                    message.format(show(node)),
                    [key],
                    mark=node.mark,
                    below=f"[{index}]",
                )


def _refusals(parts: Mapping[str, Any]) -> Iterator[Problem]:
    """What the rule itself refuses."""
    limits = _Limits.of(parts)
    if limits.empty:
        yield Problem("empty-range", f"accepts no value: it asks for {limits.describe()}")
        return
    values = [plain(node) for node in _items(parts, "values")]
    if values and not any(map(limits.accepts, values)):
        message = f"has no value that the rest of the rule accepts: {limits.describe()}"
        yield Problem("empty-range", message, ["values"])
        return
    accepted = frozenset(map(_key_of, values))
    for key in ("default", "pin"):
        reason = _refused(parts.get(key), parts, limits, accepted)
        if reason:
            message = f"is {show(parts[key])}, which its own rule does not accept: {reason}"
            yield Problem("refused-value", message, [key])
    earlier: set[Hashable] = set()
    for index, node in enumerate(_sources(parts)):
        reason = _refused(node, parts, limits, accepted)
        if not reason and _key_of(plain(node)) in earlier:
            reason = "an earlier pair has it"
        earlier.add(_key_of(plain(node)))
        if reason:
            message = f"normalizes {show(node)}, which never comes here: {reason}"
            yield Problem(
                "refused-value", message, ["normalize"], mark=node.mark, below=f"[{index}]"
            )


def _refused(
    node: Node | None,
    parts: Mapping[str, Any],
    limits: "_Limits",
    accepted: frozenset[Hashable],
) -> str:
    """Why the rule would refuse a value; empty where it would not."""
    if node is None:
        return ""
    value = plain(node)
    if not limits.accepts(value):
        return f"it must be {limits.describe()}"
    if accepted and _key_of(value) not in accepted:
        return "it is not among values"
    if "pin" in parts and _key_of(value) != _key_of(plain(parts["pin"])):
        return f"only the pin, {show(parts['pin'])}, is accepted"
    return ""


@dataclass(frozen=True, slots=True)
class _Limits:
    """The range of a rule, judged as doubles, which is how a request's value is read."""

    minimum: Value | None
    maximum: Value | None
    exclusive_minimum: bool
    exclusive_maximum: bool
    whole: bool

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> "_Limits":
        return cls(
            parts.get("min"),
            parts.get("max"),
            parts.get("exclusive_min", False),
            parts.get("exclusive_max", False),
            parts.get("type") is RuleType.INT,
        )

    @property
    def least(self) -> float:
        """The least double in the range."""
        if self.minimum is None:
            return -math.inf
        low = _double(self.minimum)
        low = math.nextafter(low, math.inf) if self.exclusive_minimum else low
        return float(math.ceil(low)) if self.whole and math.isfinite(low) else low

    @property
    def most(self) -> float:
        """The largest double in the range."""
        if self.maximum is None:
            return math.inf
        high = _double(self.maximum)
        high = math.nextafter(high, -math.inf) if self.exclusive_maximum else high
        return float(math.floor(high)) if self.whole and math.isfinite(high) else high

    @property
    def empty(self) -> bool:
        """Whether no number (no integer, under `type: int`) lies in the range."""
        return self.least > self.most

    def accepts(self, value: object) -> bool:
        """Whether a value lies in the range; one that is no number has none to lie in."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        number = float(value)
        return self.least <= number <= self.most and (not self.whole or number.is_integer())

    def describe(self) -> str:
        """In words."""
        words = ["a whole number" if self.whole else "a number"]
        if self.minimum is not None:
            reach = "over" if self.exclusive_minimum else "from"
            words.append(f"{reach} {self.minimum.wire.decode()}")
        if self.maximum is not None:
            reach = "below" if self.exclusive_maximum else "up to"
            words.append(f"{reach} {self.maximum.wire.decode()}")
        return " ".join(words)


def _double(value: Value) -> float:
    return float(str(value.wire, "ascii"))
