"""The sections `sampling` and `params`: which values a request's fields may have.

Both come down to one rule a field: check what was sent, normalise what was accepted, write in
what was left out. They differ in what a violation is called, and in that `sampling` under
`conflict: allow` checks nothing. A field that is absent or null counts as left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gateway.contract.reading import equals, read_number, read_text
from gateway.contract.verdict import Change, Decision, Verdict, accept, refuse, refuse_all
from gateway.errors import BAD_REQUEST, SAMPLING_CONTRACT, Kind
from gateway.jsonbody import Body
from gateway.profile.rules import (
    SAMPLING_FIELDS,
    Conflict,
    Exact,
    ParamRule,
    Profile,
    Sampling,
    Value,
)
from gateway.routes import Governs, Route

_WHOLE_FIELDS: Final = frozenset({"top_k", "n"})
_REASONING_FORMAT: Final = "reasoning_format"
_GENERAL: Final = "general"


@dataclass(frozen=True, slots=True)
class _FieldRule:
    """A rule of either section, ready to be applied.

    Attributes:
        rule: what it says.
        path: the profile's key.
        kind: what a violation is.
        part: the part of a profile that it belongs to on a route.
        checked: whether what a client sends is looked at.
        absent, null: what is decided where the field is left out; None where nothing is.
    """

    rule: ParamRule
    path: str
    kind: Kind
    part: Governs
    checked: bool
    absent: Decision | None
    null: Decision | None


def check_parameters(profile: Profile, route: Route, body: Body) -> Verdict:
    """Apply `sampling` and `params` to a request.

    All violations are found. They are in the order of the eight sampling fields, then of the
    `params` section.
    """
    made: list[Decision] = []
    refused: list[Verdict] = []
    for one in _rules_of(profile):
        if one.part not in route.governs:
            continue
        got = body.get_raw(one.rule.field)
        if got is None:
            decision = one.absent
        elif got == b"null":
            decision = one.null or _folded(one, body, got)
        elif one.checked and not _accepts(one.rule, got):
            refused.append(refuse(one.kind, one.rule.field, one.path, got, describe(one.rule)))
            continue
        else:
            decision = _forward(one, body, got)
        if decision is not None:
            made.append(decision)
    return refuse_all(refused) if refused else accept(*made)


def renames_reasoning(profile: Profile, body: Body) -> bool:
    """Whether the reply's `reasoning_content` is to be called `reasoning`.

    So it is where the profile has a rule for `reasoning_format` and the request sends `general`.

    Args:
        profile: the profile in force.
        body: as the client sent it.
    """
    if _REASONING_FORMAT not in profile.params:
        return False
    got = body.get_raw(_REASONING_FORMAT)
    return got is not None and read_text(got) == _GENERAL


def describe(rule: ParamRule) -> str:
    """What a rule accepts, in words, with the operator's literals."""
    listed = (rule.pin,) if rule.pin else rule.values
    if listed:
        words = [value.wire.decode() for value in listed]
        return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    number = "a whole number" if rule.whole else "a number"
    low, high = rule.minimum, rule.maximum
    over, below = rule.exclusive_minimum, rule.exclusive_maximum
    ends = []
    if low:
        ends.append(f"{'over' if over else 'from' if high else 'of at least'} {low.wire.decode()}")
    if high:
        ends.append(f"{'below' if below else 'up to'} {high.wire.decode()}")
    return " ".join((number, *ends))


def _forward(one: _FieldRule, body: Body, got: bytes) -> Decision | None:
    """What becomes of an accepted value: its other spelling, or itself, once."""
    rule = one.rule
    new = _normalize(rule, got)
    if new != got:
        return Decision(Change.NORMALIZED, rule.field, one.path, got, new)
    return _folded(one, body, got)


def _folded(one: _FieldRule, body: Body, got: bytes) -> Decision | None:
    """A repeated field is forwarded once, with its last value."""
    if body.repeats(one.rule.field):
        return Decision(Change.FOLDED, one.rule.field, one.path, got, got)
    return None


def _accepts(rule: ParamRule, got: bytes) -> bool:
    number = read_number(got) if rule.numeric else None
    listed = (rule.pin,) if rule.pin else rule.values
    if listed and not any(equals(got, number, value) for value in listed):
        return False
    if not rule.numeric:
        return True
    if number is None:
        # A listed text may stand beside listed numbers, but it has no place in a range.
        return bool(listed) and not (rule.whole or rule.minimum or rule.maximum)
    if rule.whole and number != int(number):
        return False
    return _is_above(rule, number) and _is_below(rule, number)


def _is_above(rule: ParamRule, number: float) -> bool:
    if rule.minimum is None:
        return True
    low = _number_of(rule.minimum)
    return number > low or (number == low and not rule.exclusive_minimum)


def _is_below(rule: ParamRule, number: float) -> bool:
    if rule.maximum is None:
        return True
    high = _number_of(rule.maximum)
    return number < high or (number == high and not rule.exclusive_maximum)


def _number_of(value: Value) -> float:
    if not isinstance(value.value, int | float):
        msg = f"a bound is no number: {value.wire!r}"
        raise TypeError(msg)
    return value.value


def _normalize(rule: ParamRule, got: bytes) -> bytes:
    """The spelling under which an accepted value is forwarded."""
    if not rule.normalize:
        return got
    number = read_number(got) if rule.numeric else None
    targets = (target.wire for source, target in rule.normalize if equals(got, number, source))
    return next(targets, got)


def _compile(profile: Profile) -> Iterator[_FieldRule]:
    if profile.sampling is not None:
        yield from _compile_sampling(profile.sampling)
    for field, rule in profile.params.items():
        part = Governs.SAMPLING if field in SAMPLING_FIELDS else Governs.PARAMS
        yield _build(rule, f"params.{field}", BAD_REQUEST, part)


def _compile_sampling(sampling: Sampling) -> Iterator[_FieldRule]:
    checked = sampling.conflict is Conflict.REJECT
    for one in sampling.rules:
        if isinstance(one, Exact):
            rule = ParamRule(one.field, numeric=True, pin=one.value)
        else:
            rule = ParamRule(
                one.field,
                numeric=True,
                whole=one.field in _WHOLE_FIELDS,
                minimum=one.minimum,
                maximum=one.maximum,
            )
        path = f"sampling.params.{one.field}"
        yield replace(_build(rule, path, SAMPLING_CONTRACT, Governs.SAMPLING), checked=checked)


def _build(rule: ParamRule, path: str, kind: Kind, part: Governs) -> _FieldRule:
    stands_in = rule.pin or rule.default
    absent = null = None
    if stands_in is not None:
        new = _normalize(rule, stands_in.wire)
        absent = Decision(Change.WRITTEN, rule.field, path, None, new)
        null = replace(absent, old=b"null")
    return _FieldRule(rule, path, kind, part, checked=True, absent=absent, null=null)


# By the profile's identity: a profile is loaded once and asked on every request, and hashing
# its rules would cost as much as applying them. The profile is held, so that its id stays its.
_compiled: Final[dict[int, tuple[Profile, tuple[_FieldRule, ...]]]] = {}
_MAX_COMPILED: Final = 16


def _rules_of(profile: Profile) -> tuple[_FieldRule, ...]:
    known = _compiled.get(id(profile))
    if known is not None:
        return known[1]
    rules = tuple(_compile(profile))
    if len(_compiled) >= _MAX_COMPILED:
        _compiled.clear()
    _compiled[id(profile)] = (profile, rules)
    return rules
