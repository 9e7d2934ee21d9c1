from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.contract import decide
from gateway.jsonbody import parse_object, render_value
from gateway.profile import Loaded, ProfileError, load_file
from gateway.routes import CHAT
from gateway.verify.cases import RuleKind as K
from gateway.verify.fields import _rules
from gateway.verify.samples import Sample, normalized, samples, written

CORPUS = Path(__file__).parents[2] / "cases" / "profiles" / "valid"
PRESETS = Path(__file__).parents[3] / "profiles"

Load = Callable[[str], Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a profile from its text."""

    def build(text: str) -> Loaded:
        (tmp_path / "p.yaml").write_text(text)
        return load_file(str(tmp_path / "p.yaml"))

    return build


def values(found: list[Sample]) -> dict[bytes | None, bool]:
    """Whether each value is accepted."""
    return {one.value: one.accepted for one in found}


NOTHING = {None: True, b"null": True}
NO = b'"no number"'
RULES = {
    "a pin": (
        "{pin: 0.5}",
        {b"0.5": True, b"0.49": False, b"0.51": False, NO: False, b'"0.5"': True},
    ),
    "a text": ("{pin: low}", {b'"low"': True, b'"low-other"': False}),
    "a boolean": ("{pin: false}", {b"false": True, b"true": False}),
    "a structure": ("{pin: [1]}", {b"[1]": True, b'"another"': False}),
    "a range": (
        "{min: 0, max: 1}",
        {b"0": True, b"-0.01": False, b"1": True, b"1.01": False, NO: False, b'"1"': True},
    ),
    "ends left out": (
        "{min: 0, exclusive_min: true, max: 1, exclusive_max: true}",
        {
            b"0": False,
            b"-0.01": False,
            b"0.01": True,
            b"1": False,
            b"1.01": False,
            b"0.99": True,
            NO: False,
            b'"0.01"': True,
        },
    ),
    "a narrow range": (
        "{min: 0, max: 0.002, exclusive_max: true}",
        {
            b"0": True,
            b"-0.0005": False,
            b"0.002": False,
            b"0.0025": False,
            b"0.0015": True,
            NO: False,
            b'"0"': True,
        },
    ),
    "whole numbers": (
        "{min: 2, max: 4, type: int}",
        {
            b"2": True,
            b"1": False,
            b"4": True,
            b"5": False,
            b"2.5": False,
            NO: False,
            b'"2"': True,
        },
    ),
    "any number": ("{type: number}", {NO: False, b'"1"': True}),
    "numbers of a list": (
        "{values: [1, 2]}",
        {b"1": True, b"2": True, b"0.99": False, NO: False, b'"1"': True},
    ),
    "a list within a range": (
        "{values: [1, 2], max: 1}",
        {b"1": True, b"1.01": False, b"2": False, b"0.99": False, NO: False, b'"1"': True},
    ),
    "texts of a list": ("{values: [a, b]}", {b'"a"': True, b'"b"': True, b'"a-other"': False}),
    "a default": ("{default: x}", {}),
    "other spellings": (
        "{values: [a, b], normalize: [[b, c]]}",
        {b'"a"': True, b'"b"': True, b'"a-other"': False},
    ),
}


@pytest.mark.parametrize(("rule", "expected"), RULES.values(), ids=RULES)
def test_both_sides_of_every_edge(load: Load, rule: str, expected: dict[bytes, bool]) -> None:
    """The ends of a range and a step beyond; each value, and one that is none; other types."""
    [one] = _rules(load(f"params: {{x: {rule}}}"))
    assert values(list(samples(one.rule, one.keys))) == NOTHING | expected


SAMPLING = {
    "an exact value": ("top_p: 0.95", {b"0.95", b"0.94", b"0.96", NO, b'"0.95"'}),
    "at the end of its domain": ("n: 1", {b"1", b"2", NO, b'"1"'}),
    "out of its domain": ("top_k: -1", {b"-1", b"1", b"-2", b"0", NO, b'"-1"'}),
    "a band": ("temperature: {min: 0, max: 1}", {b"0", b"-0.01", b"1", b"1.01", NO, b'"1"'}),
    "whole": ("n: {min: 1, max: 8}", {b"1", b"0", b"8", b"9", b"1.5", NO, b'"1"'}),
}


@pytest.mark.parametrize(("rule", "expected"), SAMPLING.values(), ids=SAMPLING)
def test_what_is_refused_could_have_been_served(
    load: Load, rule: str, expected: set[bytes]
) -> None:
    """Beside an exact value, values are taken that the field can have: a bare engine takes them."""
    [one] = _rules(load(f"sampling: {{params: {{{rule}}}}}"))
    assert values(list(samples(one.rule, one.keys))).keys() == {None, b"null"} | expected


def test_a_sample_is_about_the_key_that_it_tries(load: Load) -> None:
    """What is written in is about the default, an end about its bound, and so on."""
    [one] = _rules(
        load("params: {x: {default: 1, min: 0, max: 5, type: int, normalize: [[0, 9]]}}")
    )
    kinds = {(sample.value, sample.kind) for sample in samples(one.rule, one.keys)}
    assert kinds == {
        (None, K.DEFAULT),
        (b"null", K.DEFAULT),
        (b"0", K.MINIMUM),
        (b"-1", K.MINIMUM),
        (b"5", K.MAXIMUM),
        (b"6", K.MAXIMUM),
        (b"0", K.NORMALIZE),
        (b"1.5", K.TYPE),
        (NO, K.TYPE),
        (b'"1"', K.TYPE),
    }


def loadable() -> list[Path]:
    """Every profile of the corpus, and the presets."""
    found = []
    for path in (*sorted(CORPUS.glob("*.yaml")), *sorted(PRESETS.glob("*.yaml"))):
        try:
            load_file(str(path))
        except ProfileError:
            continue
        found.append(path)
    return found


@pytest.mark.parametrize("path", loadable(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_verifier_and_contract_agree(path: Path) -> None:
    """Two readings of the same words: what is accepted, written in and normalised."""
    loaded = load_file(str(path))
    for one in _rules(loaded):
        for sample in samples(one.rule, one.keys):
            field = one.rule.field
            raw = b"{}"
            if sample.value is not None:
                raw = b"{%b:%b}" % (render_value(field), sample.value)
            verdict = decide(loaded.profile, CHAT, parse_object(raw))
            refused = {decision.field for decision in verdict.decisions if decision.new is None}
            assert (field not in refused) is (sample.accepted or not one.checked)
            if sample.value in {None, b"null"}:
                assert verdict.edits.get(field) == written(one.rule)
            elif sample.accepted and field not in refused and not refused:
                assert verdict.edits.get(field, sample.value) == normalized(one.rule, sample.value)
