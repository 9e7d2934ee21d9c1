"""Probes of the rules on request fields: the sections `sampling` and `params`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gateway.errors import BAD_REQUEST, SAMPLING_CONTRACT
from gateway.profile import (
    SAMPLING_FIELDS,
    Conflict,
    Exact,
    Loaded,
    ParamRule,
    Sampling,
)
from gateway.profile.definition import DOMAINS
from gateway.routes import CHAT, Governs, Route
from gateway.verify.bodies import render
from gateway.verify.builder import Builder
from gateway.verify.cases import Rule, RuleKind
from gateway.verify.expect import Expected, forwarded, reasoning_called
from gateway.verify.samples import KIND_OF_KEY, Sample, holds, normalized, samples, written

_GENERAL: Final = b'"general"'
_REASONING_FORMAT: Final = "reasoning_format"
_SWITCHES: Final = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
"""What makes models reason that do so on demand."""


@dataclass(frozen=True, slots=True)
class _FieldRule:
    """A rule of either section.

    Attributes:
        rule: what it says.
        keys: that it has, in the terms of `params`.
        path: in the profile.
        code: of a refusal.
        part: of the profile, which governs a route or not.
        checked: what a client sends is looked at.
    """

    rule: ParamRule
    keys: tuple[str, ...]
    path: tuple[str, ...]
    code: str
    part: Governs
    checked: bool = True


def probe_fields(builder: Builder) -> None:
    """Adds the probes of every rule on a field."""
    for one in _rules(builder.loaded):
        _probe(builder, one)
    _probe_conflict(builder)
    _probe_reasoning(builder)


def _rules(loaded: Loaded) -> Iterator[_FieldRule]:
    sampling = loaded.profile.sampling
    if sampling is not None:
        yield from _sampling_rules(sampling)
    for field, rule in loaded.profile.params.items():
        path = ("params", field)
        keys = tuple(leaf[2] for leaf in loaded.origins if leaf[:2] == path)
        part = Governs.SAMPLING if field in SAMPLING_FIELDS else Governs.PARAMS
        yield _FieldRule(rule, keys, path, BAD_REQUEST.code, part)


def _sampling_rules(sampling: Sampling) -> Iterator[_FieldRule]:
    checked = sampling.conflict is Conflict.REJECT
    for one in sampling.rules:
        rule = ParamRule(one.field, numeric=True)
        if isinstance(one, Exact):
            rule = replace(rule, pin=one.value)
            keys: tuple[str, ...] = ("pin",)
        else:
            whole = DOMAINS[one.field].whole
            rule = replace(rule, whole=whole, minimum=one.minimum, maximum=one.maximum)
            keys = ("min", "max")
        yield _FieldRule(
            rule,
            keys,
            ("sampling", "params", one.field),
            SAMPLING_CONTRACT.code,
            Governs.SAMPLING,
            checked=checked,
        )


def _named_rule(builder: Builder, one: _FieldRule, kind: RuleKind) -> Rule:
    """The rule that a sample is about: in `params` a key, in `sampling` the field."""
    if one.path[0] == "sampling":
        exact = one.rule.pin is not None
        return builder.rule(one.path, RuleKind.EXACT if exact else RuleKind.BAND)
    key = next(key for key in one.keys if KIND_OF_KEY[key] is kind)
    return builder.rule((*one.path, key), kind)


def _probe(builder: Builder, one: _FieldRule) -> None:
    for route in builder.generating(one.part):
        refused_stream = False
        for sample in samples(one.rule, one.keys):
            if not (sample.accepted or one.checked):
                continue  # passed on, whatever the engine makes of it
            asked = _ask(builder, one, route, sample)
            if asked and not (sample.accepted or refused_stream):
                refused_stream = _ask(builder, one, route, sample, stream=True)


def _ask(
    builder: Builder, one: _FieldRule, route: Route, sample: Sample, *, stream: bool = False
) -> bool:
    """Adds the probe of a sample on a route; says whether its dialect can say so."""
    field = one.rule.field
    body = builder.field_body(route, field, sample.value, stream=stream)
    if body is None:
        return False
    rule = _named_rule(builder, one, sample.kind)
    what = _words(field, sample)
    if sample.accepted:
        builder.accept(route, body, rule, what, *_forwarded(one, sample), stream=stream)
    else:
        builder.refuse(route, body, rule, what, code=one.code, stream=stream)
    return True


def _words(field: str, sample: Sample) -> str:
    value = sample.value or b"null"
    return (
        f"{field} {sample.what}" if value == b"null" else f"{field} {value.decode()}, {sample.what}"
    )


def _forwarded(one: _FieldRule, sample: Sample) -> tuple[Expected, ...]:
    """What the engine gets, where the profile has a say in it."""
    field = one.rule.field
    if sample.value is None or sample.value == b"null":
        return (forwarded(field, written(one.rule)),)
    new = normalized(one.rule, sample.value)
    if new != sample.value or sample.kind is RuleKind.NORMALIZE:
        return (forwarded(field, new),)
    return ()


def _probe_conflict(builder: Builder) -> None:
    """Another value than the exact one, on the first field that has one."""
    sampling = builder.loaded.profile.sampling
    path = ("sampling", "conflict")
    if sampling is None or path not in builder.loaded.origins:
        return
    rule = builder.rule(path, RuleKind.CONFLICT)
    exact_first = sorted(_sampling_rules(sampling), key=lambda one: one.rule.pin is None)
    for one in exact_first[:1]:
        others = [s for s in samples(one.rule, one.keys) if s.value and not s.accepted]
        sample = next((s for s in others if s.kind is RuleKind.PIN), others[0])
        for route in builder.generating(Governs.SAMPLING):
            body = builder.field_body(route, one.rule.field, sample.value)
            if body is None:
                continue
            what = _words(one.rule.field, sample)
            if one.checked:
                builder.refuse(route, body, rule, what, code=one.code)
            else:
                passed = forwarded(one.rule.field, sample.value)
                builder.accept(route, body, rule, what, passed)


def _probe_reasoning(builder: Builder) -> None:
    """A rule on `reasoning_format` has a Chat reply call its reasoning as the request asks."""
    if _REASONING_FORMAT not in builder.loaded.profile.params or CHAT not in builder.routes:
        return
    about = builder.rule(("params", _REASONING_FORMAT), RuleKind.REASONING)
    [one] = [one for one in _rules(builder.loaded) if one.rule.field == _REASONING_FORMAT]
    accepted = {sample.value for sample in samples(one.rule, one.keys) if sample.accepted}
    formats = dict.fromkeys(accepted - {None, b"null"}, "reasoning_content")
    formats[_GENERAL] = "reasoning"
    for stream in (False, True):
        plain = {**builder.plain(CHAT, stream=stream), **_SWITCHES}
        for value, name in formats.items():
            if value is not None and holds(one.rule, value):
                body = render(plain, {_REASONING_FORMAT: value})
                what = f"{_REASONING_FORMAT} {value.decode()}"
                builder.accept(CHAT, body, about, what, reasoning_called(name), stream=stream)
