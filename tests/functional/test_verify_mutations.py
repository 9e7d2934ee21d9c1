"""The verifier is put to the test: a gateway with one rule broken is caught, by that rule."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.demo.engine import DemoEngine
from gateway.profile import load_file, load_preset
from gateway.verify.cases import RuleKind, State
from gateway.verify.plan import PROBERS, build_plan
from gateway.verify.run import Pace, run_plan
from gateway.verify.seen import Answered

EVERY_KEY = Path(__file__).parents[1] / "cases" / "profiles" / "valid" / "every-key.yaml"

RICH = """\
name: rich
sampling:
  conflict: reject
  params:
    temperature: {min: 0.1, max: 1}
    top_p: 0.95
    n: 1
params:
  top_k: {type: int, min: 0, max: 50, normalize: [[0, -1]]}
  min_p: {default: 0.05, min: 0, exclusive_min: true, max: 0.5, exclusive_max: true}
  repetition_penalty: {pin: 1.05}
  presence_penalty: {values: [0, 0.5, 1]}
  priority: {type: number}
  reasoning_format: {values: [general, deepseek-style]}
  seed: {default: 7}
  ignore_eos: {pin: false}
output: {max_tokens: {cap: 512, on_exceed: clamp, default: 64}}
limits: {max_body_bytes: 64KiB, max_images: 3}
models: {aliases: [rich-latest, rich-1]}
errors: {bad_request_type: our_type}
protocols: {chat: true, embeddings: false}
"""

MUTATIONS = {
    "an exact value is not kept": (RuleKind.EXACT, "    top_p: 0.95\n", ""),
    "another exact value": (RuleKind.EXACT, "top_p: 0.95", "top_p: 0.9"),
    "an exact value is only a band": (RuleKind.EXACT, "n: 1\n", "n: {min: 1, max: 2}\n"),
    "a band is not kept": (RuleKind.BAND, "    temperature: {min: 0.1, max: 1}\n", ""),
    "a band begins lower": (RuleKind.BAND, "min: 0.1, max: 1}", "min: 0, max: 1}"),
    "a band begins higher": (RuleKind.BAND, "min: 0.1, max: 1}", "min: 0.2, max: 1}"),
    "a band ends lower": (RuleKind.BAND, "min: 0.1, max: 1}", "min: 0.1, max: 0.9}"),
    "a band ends higher": (RuleKind.BAND, "min: 0.1, max: 1}", "min: 0.1, max: 1.5}"),
    "a band is one value": (RuleKind.BAND, "{min: 0.1, max: 1}", "1"),
    "conflicts are allowed": (
        RuleKind.CONFLICT,
        "conflict: reject\n  params:\n    temperature: {min: 0.1, max: 1}\n",
        "conflict: allow\n  params:\n",
    ),
    "a least value is not kept": (
        RuleKind.MINIMUM,
        "int, min: 0, max: 50, norm",
        "int, max: 50, norm",
    ),
    "a least value too high": (
        RuleKind.MINIMUM,
        "min: 0, max: 50, normalize: [[0",
        "min: 1, max: 50, normalize: [[1",
    ),
    "an end is taken in": (RuleKind.MINIMUM, ", exclusive_min: true", ""),
    "the other end is taken in": (RuleKind.MAXIMUM, ", exclusive_max: true", ""),
    "an end is left out": (RuleKind.MAXIMUM, "max: 50", "max: 50, exclusive_max: true"),
    "a largest value is not kept": (RuleKind.MAXIMUM, ", max: 50", ""),
    "a largest value too low": (RuleKind.MAXIMUM, "max: 50", "max: 49"),
    "fractions are taken": (RuleKind.TYPE, "type: int, ", ""),
    "texts are taken": (RuleKind.TYPE, "  priority: {type: number}\n", ""),
    "a value is not normalised": (RuleKind.NORMALIZE, ", normalize: [[0, -1]]", ""),
    "a value is normalised otherwise": (RuleKind.NORMALIZE, "[[0, -1]]", "[[0, 1]]"),
    "a default is not written in": (RuleKind.DEFAULT, "{default: 0.05, ", "{"),
    "another default": (RuleKind.DEFAULT, "seed: {default: 7}", "seed: {default: 8}"),
    "a pin is not kept": (RuleKind.PIN, "  repetition_penalty: {pin: 1.05}\n", ""),
    "a pin is only a default": (RuleKind.PIN, "{pin: 1.05}", "{default: 1.05}"),
    "another pin": (RuleKind.PIN, "{pin: 1.05}", "{pin: 1.06}"),
    "a pin that is no number": (RuleKind.PIN, "{pin: false}", "{pin: true}"),
    "one value less": (RuleKind.VALUES, "[0, 0.5, 1]", "[0, 1]"),
    "any value": (RuleKind.VALUES, "{values: [0, 0.5, 1]}", "{type: number}"),
    "a text less": (RuleKind.VALUES, "[general, deepseek-style]", "[general]"),
    "reasoning keeps its name": (
        RuleKind.REASONING,
        "  reasoning_format: {values: [general, deepseek-style]}\n",
        "",
    ),
    "a lower cap": (RuleKind.CAP, "cap: 512", "cap: 511"),
    "a higher cap": (RuleKind.EXCESS, "cap: 512", "cap: 513"),
    "no cap at all": (
        RuleKind.CAP,
        "output: {max_tokens: {cap: 512, on_exceed: clamp, default: 64}}\n",
        "",
    ),
    "refused instead of lowered": (RuleKind.EXCESS, "on_exceed: clamp", "on_exceed: reject"),
    "another budget": (RuleKind.BUDGET, "default: 64", "default: 65"),
    "the cap as the budget": (RuleKind.BUDGET, ", default: 64", ""),
    "smaller bodies": (RuleKind.BODY, "64KiB", "65535B"),
    "larger bodies": (RuleKind.BODY, "64KiB", "65537B"),
    "fewer images": (RuleKind.IMAGES, "max_images: 3", "max_images: 2"),
    "more images": (RuleKind.IMAGES, "max_images: 3", "max_images: 4"),
    "a name is unknown": (RuleKind.ALIASES, "[rich-latest, rich-1]", "[rich-latest]"),
    "a name is spelled otherwise": (RuleKind.ALIASES, "rich-1]", "rich-2]"),
    "another type": (RuleKind.ERROR_TYPE, "our_type", "their_type"),
    "the usual type": (RuleKind.ERROR_TYPE, "errors: {bad_request_type: our_type}\n", ""),
    "a route is on": (RuleKind.PROTOCOL, ", embeddings: false", ""),
    "a route is off": (RuleKind.PROTOCOL, "chat: true", "chat: false"),
}

STRICTER = RICH.replace("clamp", "reject")
"""Budgets above the cap are refused: the other half of that rule."""

LENIENT = """\
sampling:
  conflict: allow
  params: {top_p: 0.95, n: 1}
"""

MORE_MUTATIONS = {
    "lowered instead of refused": (STRICTER, RuleKind.EXCESS, "reject, default", "clamp, default"),
    "a cap that is not refused": (STRICTER, RuleKind.EXCESS, "cap: 512", "cap: 513"),
    "conflicts are refused": (LENIENT, RuleKind.CONFLICT, "allow", "reject"),
    "an exact value is not written in": (LENIENT, RuleKind.EXACT, "top_p: 0.95, ", ""),
}


class InProcess:
    """The endpoint of a client in this process."""

    def __init__(self, client):
        self.client = client

    def ask(self, case):
        """Asks once."""
        reply = self.client.simulate_request(
            "GET" if case.body is None else "POST",
            case.path,
            body=case.body,
            headers={"content-type": "application/json"},
        )
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return Answered(reply.status_code, headers, reply.content, case.cut)


@pytest.fixture
def engine():
    """An engine that echoes what it gets."""
    with DemoEngine(model="m", echoes=True) as running:
        yield running


@pytest.fixture
def verify(serve, tmp_path):
    """The report on a gateway with one profile, verified by another."""

    def run(promised, served, *, kind=None, observing=True, **more):
        path = tmp_path / "promised.yaml"
        path.write_text(promised)
        plan = build_plan(load_file(str(path)), "m")
        if kind is not None:  # the other cases cannot be the ones that catch it
            plan = replace(plan, cases=tuple(case for case in plan.cases if is_about(case, kind)))
        endpoint = InProcess(serve(served, **more))
        pace = Pace(rate=1e9, sleep=lambda _: pytest.fail("nothing is busy here"))
        return run_plan(plan, endpoint, pace, observing=observing)

    return run


def is_about(case, kind):
    """Whether a case has a check of this kind, or is the ground that others stand on."""
    kinds = {check.rule.kind for check in case.checks}
    return kind in kinds or case.control or bool(case.gives)


def failed(report):
    """The rules that were found broken, each once."""
    rows = [row for row in report.rows if row.finding.state is State.FAILED]
    return {(row.check.rule.key, row.check.rule.kind) for row in rows}


@pytest.mark.parametrize(
    "text",
    [RICH, STRICTER, LENIENT, EVERY_KEY.read_text()],
    ids=["rich", "stricter", "lenient", "every key"],
)
def test_an_unbroken_gateway_is_clean(verify, text):
    """Every check of every rule passes; with the echo, none is out of sight."""
    report = verify(text, text)
    assert {row.finding.state for row in report.rows} == {State.PASSED}
    assert report.notes == []


@pytest.mark.parametrize("name", ["moonshot-kimi", "stepfun-step5", "openai-compatible"])
def test_the_presets_are_clean(serve, name):
    """So is each preset."""
    plan = build_plan(load_preset(name), "m")
    report = run_plan(
        plan, InProcess(serve(preset=name)), Pace(rate=1e9), observing=bool(plan.cases)
    )
    assert {row.finding.state for row in report.rows} <= {State.PASSED}
    assert len(plan.cases) <= 300


@pytest.mark.parametrize(("kind", "old", "new"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_broken_rule_is_caught(verify, kind, old, new):
    """A gateway that breaks one rule fails in a check of that kind."""
    assert RICH.count(old) == 1
    assert kind in {kind for _, kind in failed(verify(RICH, RICH.replace(old, new), kind=kind))}


@pytest.mark.parametrize(
    ("text", "kind", "old", "new"), MORE_MUTATIONS.values(), ids=MORE_MUTATIONS
)
def test_a_broken_rule_of_another_mode_is_caught(verify, text, kind, old, new):
    """So does one whose profile is of the other mode."""
    assert text.count(old) == 1
    assert kind in {kind for _, kind in failed(verify(text, text.replace(old, new), kind=kind))}


def test_every_kind_of_rule_is_broken_once():
    """The kinds are the code's own: a new one needs its probes, and a mutation here."""
    mutated = {kind for kind, *_ in MUTATIONS.values()} | {
        one[1] for one in MORE_MUTATIONS.values()
    }
    assert mutated == set(RuleKind) == set(PROBERS)


def test_every_key_of_the_rich_profile_is_checked(tmp_path):
    """No key of a profile is without a check, its name aside."""
    path = tmp_path / "rich.yaml"
    path.write_text(RICH)
    loaded = load_file(str(path))
    keys = {row.rule.key for case in build_plan(loaded, "m").cases for row in case.checks}
    leaves = {re.sub(r"exclusive_", "", ".".join(leaf)) for leaf in loaded.origins}
    assert {leaf for leaf in leaves if not any(leaf.startswith(key) for key in keys)} == {"name"}


def test_a_gateway_without_a_profile_fails_in_all_that_the_engine_does_not_enforce(verify):
    """What the engine itself refuses passes; everything else that is promised is missed."""
    keys = {key for key, _ in failed(verify(RICH, ""))}
    assert keys == {
        "errors.bad_request_type",
        "limits.max_body_bytes",
        "limits.max_images",
        "models.aliases",
        "output.max_tokens.cap",
        "output.max_tokens.default",
        "output.max_tokens.on_exceed",
        "params.ignore_eos.pin",
        "params.min_p.default",
        "params.min_p.max",
        "params.min_p.min",
        "params.presence_penalty.values",
        "params.priority.type",
        "params.reasoning_format",
        "params.reasoning_format.values",
        "params.repetition_penalty.pin",
        "params.seed.default",
        "params.top_k.max",
        "params.top_k.min",
        "params.top_k.normalize",
        "params.top_k.type",
        "protocols.embeddings",
        "sampling.conflict",
        "sampling.params.n",
        "sampling.params.temperature",
        "sampling.params.top_p",
    }


def test_without_the_echo_what_the_engine_gets_is_not_observable(verify):
    """It is marked so, and never as passed; what can be seen still passes."""
    report = verify(RICH, RICH, observing=False)
    unseen = [row for row in report.rows if row.finding.state is State.UNSEEN]
    assert {row.finding.state for row in report.rows} == {State.PASSED, State.UNSEEN}
    assert all(row.check.expected.startswith("reaches the engine") for row in unseen)
    assert all(
        row.finding.reason == "what the engine gets is not seen from outside" for row in unseen
    )
