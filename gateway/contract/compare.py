"""What a change of profile means to clients: which requests it refuses, lets in, or treats anew.

A rule is not judged by its spelling. Requests on both sides of every number and value that either
profile names are put to both contracts, and what differs is what the change does. So a rule that
is written in another way but does the same has no effect, and each effect has an example.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from gateway.contract.apply import decide
from gateway.contract.parameters import renames_reasoning
from gateway.contract.reading import read_number
from gateway.jsonbody import Body, parse_object, render_value
from gateway.profile.leaves import Path
from gateway.profile.rules import Band, Exact, Profile, Value
from gateway.routes import CHAT

_FIELD_SECTIONS: Final = (("sampling", "params"), ("params",))
_ONE: Final = Decimal(1)
_STEP: Final = Decimal("0.001")


class Effect(StrEnum):
    """What a change does to clients."""

    TIGHTENS = "tightens"  # a request that was accepted is refused
    LOOSENS = "loosens"  # a request that was refused is accepted
    ALTERS = "alters"  # a request is accepted, or refused, in another way


@dataclass(frozen=True, slots=True)
class Example:
    """A request that shows an effect.

    Attributes:
        request: what it sends, in words.
        before, after: what becomes of it, in words.
    """

    effect: Effect
    request: str
    before: str
    after: str


Judge = Callable[[Profile, Profile, Path], Iterator[Example]]
"""From the profile before, the one after and the path of a value that differs to every effect of
the difference, each with an example. Nothing where clients cannot tell."""


def subject_of(path: Path) -> Path:
    """What a value is judged as a part of: the rule of its field, its section, or itself.

    The two sections with rules on fields have one subject a field, since a field that moves from
    one to the other has one change.
    """
    for section in _FIELD_SECTIONS:
        if path[: len(section)] == section and len(path) > len(section):
            return ("field", path[len(section)])
    return path[:2] if path[0] == "output" else path


def judge(before: Profile, after: Profile, subject: Path) -> tuple[Example, ...]:
    """The effects of what differs in one subject, each once, with the first example of it."""
    key = next(key for key in JUDGES if subject[: len(key)] == key)
    first: dict[Effect, Example] = {}
    for example in JUDGES[key](before, after, subject):
        first.setdefault(example.effect, example)
    return tuple(first[effect] for effect in Effect if effect in first)


def _judge_nothing(_before: Profile, _after: Profile, _subject: Path) -> Iterator[Example]:
    """A name is for logs."""
    return iter(())


def _judge_field(before: Profile, after: Profile, subject: Path) -> Iterator[Example]:
    """A rule of `sampling.params` or `params`."""
    field = subject[-1]
    named = [*_named(before, field), *_named(after, field)]
    yield from _compare(before, after, field, (None, *_around(named)))


def _judge_conflict(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    """The mode alone: the rules before under the mode after."""
    if before.sampling is None or after.sampling is None:
        return
    moded = replace(before, sampling=replace(before.sampling, conflict=after.sampling.conflict))
    for rule in before.sampling.rules:
        yield from _judge_field(before, moded, ("field", rule.field))


def _judge_budget(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    named = [
        Value(number, b"%d" % number)
        for budget in (before.output, after.output)
        if budget is not None
        for number in (budget.cap, budget.written)
    ]
    yield from _compare(before, after, "max_tokens", (None, *_around(named)))


def _judge_size(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    yield from _compare_limits(before.max_body_bytes, after.max_body_bytes, "a body of {} bytes")


def _judge_images(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    yield from _compare_limits(before.max_images, after.max_images, "{} images")


def _compare_limits(before: int | None, after: int | None, request: str) -> Iterator[Example]:
    if before == after:
        return
    if after is not None and (before is None or after < before):
        yield _tightens(request.format(after + 1))
    elif before is not None:
        yield _loosens(request.format(before + 1))


def _judge_aliases(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    for name in before.aliases:
        if name not in after.aliases:
            yield _tightens(f"the model {name}")
    for name in after.aliases:
        if name not in before.aliases:
            yield _loosens(f"the model {name}")


def _judge_error_type(before: Profile, after: Profile, _subject: Path) -> Iterator[Example]:
    old, new = before.bad_request_type, after.bad_request_type
    if old != new:
        request = "a request that gets a 400"
        yield Example(Effect.ALTERS, request, f"had {_type(old)}", f"has {_type(new)}")


def _type(name: str | None) -> str:
    return "its own type" if name is None else f"the type {name}"


def _judge_protocol(before: Profile, after: Profile, subject: Path) -> Iterator[Example]:
    protocol = subject[-1]
    was_off, is_off = protocol in before.protocols_off, protocol in after.protocols_off
    if was_off is not is_off:
        yield (_tightens if is_off else _loosens)(f"any request of {protocol}")


JUDGES: Final[Mapping[Path, Judge]] = MappingProxyType(
    {
        ("name",): _judge_nothing,
        ("sampling", "conflict"): _judge_conflict,
        ("field",): _judge_field,
        ("output",): _judge_budget,
        ("limits", "max_body_bytes"): _judge_size,
        ("limits", "max_images"): _judge_images,
        ("models", "aliases"): _judge_aliases,
        ("errors", "bad_request_type"): _judge_error_type,
        ("protocols",): _judge_protocol,
    }
)
"""By the beginning of a subject: how a difference in it is judged. Every key of a profile has a
row."""


def _compare(
    before: Profile, after: Profile, field: str, values: Iterable[bytes | None]
) -> Iterator[Example]:
    """Puts one request a value to both contracts."""
    for value in values:
        old, new = _outcome(before, field, value), _outcome(after, field, value)
        request = f"no {field}" if value is None else f"{field} {value.decode()}"
        if old.accepted and not new.accepted:
            yield _tightens(request)
        elif new.accepted and not old.accepted:
            yield _loosens(request)
        elif not _alike(old, new):
            yield Example(Effect.ALTERS, request, f"was {old.words}", f"is {new.words}")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of a request.

    Attributes:
        forwarded: the JSON that the engine gets for the field; None where it gets none.
        told: the code of a refusal, or how the reply is changed.
    """

    accepted: bool
    forwarded: bytes | None
    told: str

    @property
    def words(self) -> str:
        """As the end of a sentence."""
        if not self.accepted:
            return f"refused as {self.told}"
        passed = "passed on without it" if self.forwarded is None else "passed on as "
        return f"{passed}{(self.forwarded or b'').decode()}{self.told}"


def _alike(one: _Outcome, other: _Outcome) -> bool:
    if one.told != other.told or (one.forwarded is None) is not (other.forwarded is None):
        return False
    if one.forwarded == other.forwarded or one.forwarded is None or other.forwarded is None:
        return True
    numbers = read_number(one.forwarded), read_number(other.forwarded)
    quoted = one.forwarded.startswith(b'"') or other.forwarded.startswith(b'"')
    return None not in numbers and not quoted and numbers[0] == numbers[1]


def _outcome(profile: Profile, field: str, value: bytes | None) -> _Outcome:
    body = _body(field, value)
    verdict = decide(profile, CHAT, body)
    if verdict.rejection is not None:
        return _Outcome(accepted=False, forwarded=None, told=verdict.rejection.kind.code)
    edit = verdict.edits.get(field)
    forwarded = edit if isinstance(edit, bytes) else body.get_raw(field)
    renamed = field == "reasoning_format" and renames_reasoning(profile, body)
    told = ", with the reply's reasoning renamed" if renamed else ""
    return _Outcome(accepted=True, forwarded=forwarded, told=told)


def _body(field: str, value: bytes | None) -> Body:
    return parse_object(b"{}" if value is None else b"{%b:%b}" % (render_value(field), value))


def _named(profile: Profile, field: str) -> Iterator[Value]:
    """The values that a profile's rule on a field names."""
    for rule in profile.sampling.rules if profile.sampling else ():
        if rule.field == field:
            if isinstance(rule, Exact):
                yield rule.value
            if isinstance(rule, Band):
                yield from (rule.minimum, rule.maximum)
    one = profile.params.get(field)
    if one is not None:
        single = (one.pin, one.default, one.minimum, one.maximum)
        yield from (value for value in single if value is not None)
        yield from one.values
        for source, target in one.normalize:
            yield from (source, target)


def _around(values: Iterable[Value]) -> tuple[bytes, ...]:
    """The values themselves, and what may be judged differently beside and between them.

    A rule's accepted numbers are ranges, ends in or out, perhaps only whole ones, or single
    values; so two rules that agree on every named number, a little beside each, between each
    two of them (whole and not) and beyond them all agree everywhere.
    """
    named = list(values)
    whole: list[Decimal] = []
    fine: list[Decimal] = []
    numbers = sorted({Decimal(value.wire.decode()) for value in named if _is_number(value)})
    for at, number in enumerate(numbers):
        whole += [number - _ONE, number + _ONE]
        fine += [number - _STEP, number + _STEP]
        if at:
            gap = number - numbers[at - 1]
            middle = numbers[at - 1] + gap / 2
            whole.append(Decimal(int(middle)))
            fine += [middle, number - gap / 4, numbers[at - 1] + gap / 4]
    found = [value.wire for value in named]
    found += map(_literal, (*whole, *fine))
    # A text that is no number, one that may be any other, and a value of another type.
    found += [b'"none of these"', b"0", b"1", b"0.5", b'"1"', b"[]"]
    return tuple(dict.fromkeys(found))


def _is_number(value: Value) -> bool:
    return isinstance(value.value, int | float) and not isinstance(value.value, bool)


def _literal(number: Decimal) -> bytes:
    return f"{number.normalize():f}".encode()


def _tightens(request: str) -> Example:
    return Example(Effect.TIGHTENS, request, "was accepted", "is refused")


def _loosens(request: str) -> Example:
    return Example(Effect.LOOSENS, request, "was refused", "is accepted")
