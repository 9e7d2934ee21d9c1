from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.contract.compare import JUDGES, Effect, judge, subject_of
from gateway.profile import Loaded, json_schema, load_file
from gateway.profile.leaves import leaves_of

T, L, A = Effect.TIGHTENS, Effect.LOOSENS, Effect.ALTERS

Load = Callable[[str], Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a profile from its text."""

    def build(text: str) -> Loaded:
        file = tmp_path / "profile.yaml"
        file.write_text(text, encoding="utf-8")
        return load_file(str(file))

    return build


def exact(value: str, mode: str = "reject", field: str = "top_p") -> str:
    """A profile with a rule of `sampling`."""
    return f"sampling: {{conflict: {mode}, params: {{{field}: {value}}}}}"


def rule(text: str, field: str = "top_p") -> str:
    """A profile with a rule of `params`."""
    return f"params: {{{field}: {{{text}}}}}"


def budget(text: str) -> str:
    """A profile with an output budget."""
    return f"output: {{max_tokens: {{{text}}}}}"


EFFECTS = {
    "an exact value where there was none": ("", exact("0.95"), {T, A}),
    "none where there was an exact value": (exact("0.95"), "", {L, A}),
    "another exact value": (exact("0.95"), exact("0.9"), {T, L, A}),
    "the same exact value, spelled otherwise": (exact("0.95"), exact("0.950"), set()),
    "exact values are written in only": (exact("0.95"), exact("0.95", "allow"), {L}),
    "exact values are asked for": (exact("0.95", "allow"), exact("0.95"), {T}),
    "the mode that is the default": (
        "sampling: {params: {n: 1}}",
        "sampling: {conflict: reject, params: {n: 1}}",
        set(),
    ),
    "a narrower band": (exact("{min: 0.1, max: 1}"), exact("{min: 0.1, max: 0.5}"), {T}),
    "a wider band": (exact("{min: 0.2, max: 1}"), exact("{min: 0.1, max: 1}"), {L}),
    "a band moved": (exact("{min: 0.2, max: 0.5}"), exact("{min: 0.4, max: 0.8}"), {T, L}),
    "a band by a hair": (exact("{min: 0.2, max: 0.5}"), exact("{min: 0.2, max: 0.5001}"), {L}),
    "a band to one of its values": (exact("{min: 0.1, max: 1}"), exact("0.5"), {T, A}),
    "a band in the other section": (
        exact("{min: 0.1, max: 1}"),
        rule("min: 0.1, max: 1"),
        {A},  # the code of a refusal
    ),
    "an exact value in the other section": (exact("0.95"), rule("pin: 0.95"), {A}),
    "a default": ("", rule("default: 0.9"), {T, A}),  # it makes the rule one about numbers
    "another default": (rule("default: 0.9"), rule("default: 0.8"), {A}),
    "a default of the same value": (rule("default: 1.0"), rule("default: 1"), set()),
    "a pin for a default": (rule("default: 0.9"), rule("pin: 0.9"), {T}),
    "another end": (rule("min: 0.5"), rule("min: 0.4"), {L}),
    "an end taken out": (rule("max: 1"), rule("max: 1, exclusive_max: true"), {T}),
    "an end that was in anyway": (rule("max: 1"), rule("max: 1, exclusive_max: false"), set()),
    "whole numbers only": (rule("min: 0"), rule("min: 0, type: int"), {T}),
    "a range as values": (
        rule("min: 0, max: 1, type: int", "seed"),
        rule("values: [0, 1]", "seed"),
        set(),
    ),
    "one value less": (rule("values: [a, b]", "x"), rule("values: [a]", "x"), {T}),
    "one value more": (rule("values: [a]", "x"), rule("values: [a, b]", "x"), {L}),
    "values in another order": (rule("values: [a, b]", "x"), rule("values: [b, a]", "x"), set()),
    "a structure for another": (
        rule("values: [{a: 1}]", "x"),
        rule("values: [{a: 2}]", "x"),
        {T, L},
    ),
    "another spelling for the engine": (
        rule("min: 0", "top_k"),
        rule("min: 0, normalize: [[0, -1]]", "top_k"),
        {A},
    ),
    "reasoning by its other name": (
        "",
        rule("values: [general, deepseek-style]", "reasoning_format"),
        {T, A},
    ),
    "a budget": ("", budget("cap: 100"), {T, A}),
    "a lower cap": (budget("cap: 100, default: 50"), budget("cap: 99, default: 50"), {T}),
    "a higher cap": (budget("cap: 100, default: 50"), budget("cap: 101, default: 50"), {L}),
    "a lower cap that is written in": (budget("cap: 100"), budget("cap: 99"), {T, A}),
    "a lower cap that is clamped to": (
        budget("cap: 100, default: 9, on_exceed: clamp"),
        budget("cap: 99, default: 9, on_exceed: clamp"),
        {A},
    ),
    "clamped instead of refused": (budget("cap: 100"), budget("cap: 100, on_exceed: clamp"), {L}),
    "refused by name": (budget("cap: 100"), budget("cap: 100, on_exceed: reject"), set()),
    "the default that it was": (budget("cap: 100"), budget("cap: 100, default: 100"), set()),
    "larger bodies": ("limits: {max_body_bytes: 1MiB}", "limits: {max_body_bytes: 2MiB}", {L}),
    "smaller bodies": ("", "limits: {max_body_bytes: 2MiB}", {T}),
    "the limit that it was": ("", "limits: {max_body_bytes: 32MiB}", set()),
    "fewer images": ("limits: {max_images: 4}", "limits: {max_images: 3}", {T}),
    "any number of images": ("limits: {max_images: 4}", "", {L}),
    "another name": ("models: {aliases: [a]}", "models: {aliases: [b]}", {T, L}),
    "names in another order": (
        "models: {aliases: [a, b]}",
        "models: {aliases: [b, a]}",
        set(),
    ),
    "another type": ("errors: {bad_request_type: a}", "errors: {bad_request_type: b}", {A}),
    "a route off": ("", "protocols: {responses: false}", {T}),
    "a route back on": ("protocols: {messages: false}", "protocols: {messages: true}", {L}),
    "a route on by name": ("", "protocols: {chat: true}", set()),
    "another name of the profile": ("name: a", "name: b", set()),
}


@pytest.mark.parametrize(("before", "after", "effects"), EFFECTS.values(), ids=EFFECTS)
def test_effects(load: Load, before: str, after: str, effects: set[Effect]) -> None:
    """What a change does to clients, whatever its spelling; back again, it does the reverse."""
    old, new = load(before), load(after)
    subjects = {subject_of(path) for path in leaves_of(old).keys() ^ leaves_of(new).keys()}
    subjects |= {subject_of(path) for path in leaves_of(old).keys() & leaves_of(new).keys()}

    def found(one: Loaded, other: Loaded) -> set[Effect]:
        return {
            example.effect
            for subject in subjects
            for example in judge(one.profile, other.profile, subject)
        }

    assert found(old, new) == effects
    assert found(new, old) == {{T: L, L: T, A: A}[effect] for effect in effects}


def test_an_effect_has_an_example(load: Load) -> None:
    """It names a request, and what becomes of it before and after."""
    old, new = load(exact("0.95")), load(exact("0.9"))
    found = judge(old.profile, new.profile, ("field", "top_p"))
    assert [(one.request, one.before, one.after) for one in found] == [
        ("top_p 0.95", "was accepted", "is refused"),
        ("top_p 0.9", "was refused", "is accepted"),
        ("no top_p", "was passed on as 0.95", "is passed on as 0.9"),
    ]


def _keys(schema: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for one in (schema, *schema.get("anyOf", ())):
        for name, below in one.get("properties", {}).items():
            found += _keys(below, (*prefix, name)) or [(*prefix, name)]
        extra = one.get("additionalProperties")
        if isinstance(extra, dict):
            found += _keys(extra, (*prefix, "some_field"))
    return found


@pytest.mark.parametrize("path", [path for path in _keys(json_schema()) if path != ("extends",)])
def test_every_key_is_judged(path: tuple[str, ...]) -> None:
    """No key of a profile is without a row in the table."""
    subject = subject_of(path)
    assert any(subject[: len(key)] == key for key in JUDGES)
