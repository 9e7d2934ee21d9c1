"""Values on both sides of every edge of a field's rule, and which of them the rule accepts.

What a rule accepts is worked out anew here, from the meaning of its keys, so that a mistake in the
contract does not vouch for itself.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.profile import ParamRule, Value
from gateway.profile.definition import DOMAINS
from gateway.verify.cases import RuleKind

_STEP: Final = Decimal("0.01")
_HALF: Final = Decimal("0.5")
NO_NUMBER: Final = b'"no number"'


@dataclass(frozen=True, slots=True)
class Sample:
    """A value to send.

    Attributes:
        value: its JSON; None leaves the field out.
        what: it is, in words: "the least", "just below".
        kind: the rule that it is about.
        accepted: by the whole rule.
    """

    value: bytes | None
    what: str
    kind: RuleKind
    accepted: bool


KIND_OF_KEY: Final[Mapping[str, RuleKind]] = MappingProxyType(
    {
        "pin": RuleKind.PIN,
        "default": RuleKind.DEFAULT,
        "min": RuleKind.MINIMUM,
        "max": RuleKind.MAXIMUM,
        "exclusive_min": RuleKind.MINIMUM,
        "exclusive_max": RuleKind.MAXIMUM,
        "values": RuleKind.VALUES,
        "type": RuleKind.TYPE,
        "normalize": RuleKind.NORMALIZE,
    }
)
"""By key of a rule: what it is about. What holds of the rule as a whole counts for the first."""


def samples(rule: ParamRule, keys: Collection[str]) -> Iterator[Sample]:
    """Every sample of a rule; a value may come twice, for two keys of it.

    Args:
        rule: on one field.
        keys: that it has in the profile.
    """
    for kind, value, what in _values(rule, keys):
        yield Sample(value, what, kind, value is None or holds(rule, value))


def written(rule: ParamRule) -> bytes | None:
    """What the engine gets where the field is left out; None: nothing is written in."""
    value = rule.pin or rule.default
    return None if value is None else normalized(rule, value.wire)


def normalized(rule: ParamRule, value: bytes) -> bytes:
    """What the engine gets for an accepted value."""
    for source, target in rule.normalize:
        if _same(rule, value, source):
            return target.wire
    return value


def holds(rule: ParamRule, value: bytes) -> bool:
    """Whether a rule accepts a value. One that is left out as null always is."""
    plain = json.loads(value)
    if plain is None:
        return True
    listed = (rule.pin,) if rule.pin else rule.values
    if listed and not any(_same(rule, value, one) for one in listed):
        return False
    if not rule.numeric:
        return True
    number = _number(plain)
    if number is None:
        return bool(listed) and not (rule.whole or rule.minimum or rule.maximum)
    if rule.whole and number != number.to_integral_value():
        return False
    return _in_range(rule, number)


def _in_range(rule: ParamRule, number: Decimal) -> bool:
    low, high = _bound(rule.minimum), _bound(rule.maximum)
    if low is not None and (number < low or (rule.exclusive_minimum and number == low)):
        return False
    return high is None or number < high or (not rule.exclusive_maximum and number == high)


def _bound(value: Value | None) -> Decimal | None:
    return None if value is None else Decimal(value.wire.decode())


def _number(plain: object) -> Decimal | None:
    """The number that an engine reads a value as."""
    if isinstance(plain, str):
        try:
            number = Decimal(plain.strip())
        except ArithmeticError:
            return None
        return number if number.is_finite() else None
    return Decimal(repr(plain)) if type(plain) in {int, float} else None


def _same(rule: ParamRule, value: bytes, other: Value) -> bool:
    plain = json.loads(value)
    if rule.numeric:
        one, two = _number(plain), _number(other.value)
        if one is not None and two is not None:
            return one == two
    return isinstance(plain, bool) is isinstance(other.value, bool) and bool(
        json.loads(other.wire) == plain
    )


_Values = Iterator[tuple[RuleKind, bytes | None, str]]


def _values(rule: ParamRule, keys: Collection[str]) -> _Values:
    first = next(kind for key, kind in KIND_OF_KEY.items() if key in keys)
    kind = RuleKind.PIN if rule.pin else RuleKind.DEFAULT if rule.default else first
    yield kind, None, "left out"
    yield kind, b"null", "as null"
    if rule.pin is not None:
        yield RuleKind.PIN, rule.pin.wire, "equal"
        yield from ((RuleKind.PIN, value, what) for value, what in _others(rule, rule.pin))
    if rule.minimum is not None:
        yield from ((RuleKind.MINIMUM, *edge) for edge in _at(rule, rule.minimum, "least"))
    if rule.maximum is not None:
        yield from ((RuleKind.MAXIMUM, *edge) for edge in _at(rule, rule.maximum, "most"))
    for value in rule.values:
        yield RuleKind.VALUES, value.wire, "one of the values"
    if rule.values:
        found = (value for value, _ in _others(rule, rule.values[0]))
        none = next((value for value in found if not holds(rule, value)), NO_NUMBER)
        yield RuleKind.VALUES, none, "none of the values"
    for source, _ in rule.normalize:
        yield RuleKind.NORMALIZE, source.wire, "to be normalised"
    inside = _inside(rule) if rule.numeric else None
    if inside is not None:
        of_type = RuleKind.TYPE if "type" in keys else first
        if rule.whole:
            yield of_type, _literal(inside + _HALF), "a fraction"
        yield of_type, NO_NUMBER, "no number"
        yield of_type, b'"%b"' % _literal(inside), "a number as text"


def _others(rule: ParamRule, value: Value) -> Iterator[tuple[bytes, str]]:
    """Values that are not this one: a little less, a little more, or of the same type."""
    plain = value.value
    if isinstance(plain, bool):
        yield (b"false" if plain else b"true"), "the other"
    elif isinstance(plain, int | float):
        number = Decimal(value.wire.decode())
        step = _step(rule)
        near = [(number - step, "just below"), (number + step, "just above")]
        domain = DOMAINS.get(rule.field)
        # An endpoint that enforces nothing refuses only what no model takes.
        sane = [one for one in near if domain is None or domain.accepts(float(one[0]))]
        lowest = Decimal(1) if domain and domain.whole else number
        for other, what in sane or [(lowest, "another"), *near]:
            yield _literal(other), what
    elif isinstance(plain, str):
        yield json.dumps(f"{plain}-other").encode(), "another"
    else:
        yield b'"another"', "another"


def _at(rule: ParamRule, bound: Value, end: str) -> Iterator[tuple[bytes, str]]:
    """The end of a range, and a step to each side of it."""
    number, step = Decimal(bound.wire.decode()), _step(rule)
    outward = -step if end == "least" else step
    yield bound.wire, f"at the {end}"
    yield _literal(number + outward), f"beyond the {end}"
    if rule.exclusive_minimum if end == "least" else rule.exclusive_maximum:
        yield _literal(number - outward), f"within the {end}"


def _step(rule: ParamRule) -> Decimal:
    """Small for the rule: a whole number, or a fraction of the range."""
    if rule.whole or (rule.field in DOMAINS and DOMAINS[rule.field].whole):
        return Decimal(1)
    low, high = _bound(rule.minimum), _bound(rule.maximum)
    if low is None or high is None or high <= low:
        return _STEP
    return min(_STEP, (high - low) / 4)


def _inside(rule: ParamRule) -> Decimal | None:
    """A number that the rule accepts; None where it names none."""
    low, high = _bound(rule.minimum), _bound(rule.maximum)
    named = [value for value in (rule.pin, rule.default, *rule.values) if value is not None]
    numbers = [Decimal(value.wire.decode()) for value in named if _number(value.value) is not None]
    tried = [*numbers, Decimal(1), Decimal(0)]
    for end, step in ((low, _step(rule)), (high, -_step(rule))):
        tried += [] if end is None else [end, end + step]
    return next((one for one in tried if holds(rule, _literal(one))), None)


def _literal(number: Decimal) -> bytes:
    return f"{number.normalize():f}".encode()
