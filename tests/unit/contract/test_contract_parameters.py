"""The sections `sampling` and `params`."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.contract import Change, Decision, decide, renames_reasoning
from gateway.errors import BAD_REQUEST, SAMPLING_CONTRACT
from gateway.jsonbody import parse_object
from gateway.profile.rules import (
    SAMPLING_FIELDS,
    Band,
    Conflict,
    Exact,
    ParamRule,
    Profile,
    Sampling,
    Value,
)
from gateway.routes import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    INPUT_TOKENS,
    MESSAGES,
    RESPONSES,
    Route,
)

Outcome = Callable[..., bytes | str]
MakeValue = Callable[[str], Value]


@pytest.fixture(name="sampling")
def build_sampling(value: MakeValue) -> Callable[..., Profile]:
    """A profile of a `sampling` section: a literal is exact, a pair of them a band."""

    def sampling(conflict: str = "reject", **rules: str | tuple[str, str]) -> Profile:
        made: list[Exact | Band] = []
        for name in SAMPLING_FIELDS:
            rule = rules.get(name)
            if isinstance(rule, str):
                made.append(Exact(name, value(rule)))
            elif rule is not None:
                made.append(Band(name, value(rule[0]), value(rule[1])))
        return Profile(sampling=Sampling(Conflict(conflict), tuple(made)))

    return sampling


@pytest.fixture(name="params")
def build_params(value: MakeValue) -> Callable[..., Profile]:
    """A profile of one `params` rule, its values given as literals."""

    def params(field: str, **parts: object) -> Profile:
        def read(part: object) -> object:
            if isinstance(part, str):
                return value(part)
            return tuple(map(read, part)) if isinstance(part, tuple) else part

        made = {name: read(part) for name, part in parts.items()}
        return Profile(params={field: ParamRule(field, **made)})  # type: ignore[arg-type]

    return params


@pytest.mark.parametrize("conflict", ["reject", "allow"])
@pytest.mark.parametrize(
    ("raw", "forwarded"),
    [
        pytest.param(b"{}", b'{"top_p":0.95,"n":1}', id="absent"),
        pytest.param(b'{"top_p":null,"n":null}', b'{"top_p":0.95,"n":1}', id="null"),
        pytest.param(b'{"n":null,"a":1e2}', b'{"n":1,"a":1e2,"top_p":0.95}', id="one of each"),
        pytest.param(b'{"n":2,"n":null}', b'{"n":1,"top_p":0.95}', id="null is the last value"),
        pytest.param(b'{"\\u006e":null}', b'{"\\u006e":1,"top_p":0.95}', id="escaped key"),
        pytest.param(b'{"top_p":0.950,"n":1.0}', b'{"top_p":0.950,"n":1.0}', id="sent, equal"),
        pytest.param(b'{"top_p":0.95,"n":"1"}', b'{"top_p":0.95,"n":"1"}', id="sent as a text"),
        pytest.param(b'{"top_p":0.95,"n":true}', b'{"top_p":0.95,"n":true}', id="sent as true"),
        pytest.param(b'{"top_p":0.95,"n":9,"n":1}', b'{"top_p":0.95,"n":1}', id="folded"),
        pytest.param(b'{"x":1,"x":2}', b'{"x":1,"x":2,"top_p":0.95,"n":1}', id="others stay"),
    ],
)
def test_exact_values(
    outcome: Outcome,
    sampling: Callable[..., Profile],
    conflict: str,
    raw: bytes,
    forwarded: bytes,
) -> None:
    """An exact value is written in, once, where it is absent or null.

    An equal one passes as the client spelled it; a repeated key is judged on its last value and
    forwarded once.
    """
    assert outcome(sampling(conflict, top_p="0.95", n="1"), raw) == forwarded


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"0.3", "0.3"),
        (b"0.9500000001", "0.9500000001"),
        (b'"0.9"', '"0.9"'),
        (b'"lots"', '"lots"'),
        (b'"NaN"', '"NaN"'),
        (b"[0.95]", "[0.95]"),
        (b"{}", "{}"),
        (b"1e400", "1e400"),
        (b"true", "true"),
    ],
)
def test_conflicts_with_an_exact_value(
    outcome: Outcome, sampling: Callable[..., Profile], sent: bytes, shown: str
) -> None:
    """Another value is refused under `reject`, naming field, value and what is right.

    Under `allow` it passes untouched, be it readable or not.
    """
    raw = b'{"a": 1 ,"top_p": %b}' % sent
    assert outcome(sampling(top_p="0.95"), raw) == (
        f"Invalid value for top_p: got {shown}, expected 0.95. The field can be left out."
    )
    assert outcome(sampling("allow", top_p="0.95"), raw) == raw


@pytest.mark.parametrize(
    ("rule", "sent", "passes"),
    [
        (("0", "1"), b"0", True),
        (("0", "1"), b"1", True),
        (("0", "1"), b"1.0", True),
        (("0", "1"), b'" 0.5 "', True),
        (("0", "1"), b"true", True),
        (("0", "1"), b"-0.0", True),
        (("0", "1"), b"1.0000000001", False),
        (("0", "1"), b"-1e-9", False),
        (("0", "1"), b'"NaN"', False),
        (("0", "1"), b'"lots"', False),
        (("0", "1"), b"[]", False),
        (("0", "1"), b"1e400", False),
        (("0", "1"), b'"1_0"', False),
    ],
)
def test_bands(
    outcome: Outcome,
    sampling: Callable[..., Profile],
    rule: tuple[str, str],
    sent: bytes,
    passes: bool,
) -> None:
    """A band has both its ends; what cannot be read as a number is not in it."""
    raw = b'{"temperature":%b}' % sent
    message = (
        f"Invalid value for temperature: got {sent.decode()}, expected a number from 0 up to 1. "
        "The field can be left out."
    )
    assert outcome(sampling(temperature=rule), raw) == (raw if passes else message)


@pytest.mark.parametrize("raw", [b"{}", b'{"temperature":null}', b'{"x":1 }'])
def test_bands_write_nothing(
    outcome: Outcome, sampling: Callable[..., Profile], raw: bytes
) -> None:
    """A band writes nothing in."""
    assert outcome(sampling(temperature=("0", "1")), raw) == raw


def test_bands_of_whole_numbers(outcome: Outcome, sampling: Callable[..., Profile]) -> None:
    """A band on a field of whole numbers has the whole numbers in it only."""
    profile = sampling(n=("1", "8"))
    assert outcome(profile, b'{"n":"2.0"}') == b'{"n":"2.0"}'
    assert outcome(profile, b'{"n":2.5}') == (
        "Invalid value for n: got 2.5, expected a whole number from 1 up to 8. "
        "The field can be left out."
    )


def test_all_violations_are_counted(sampling: Callable[..., Profile]) -> None:
    """Every violated field is counted, and the first in the order of the table is reported."""
    profile = sampling(temperature=("0", "1"), top_p="0.95", top_k="20", n="1")
    verdict = decide(profile, CHAT, parse_object(b'{"n":2,"top_p":0.5,"temperature":7}'))
    assert [error.param for error in verdict.rejections] == ["temperature", "top_p", "n"]
    assert verdict.rejection is verdict.rejections[0]
    assert {error.kind for error in verdict.rejections} == {SAMPLING_CONTRACT}
    assert verdict.decisions == (
        Decision(Change.REJECTED, "temperature", "sampling.params.temperature", b"7", None),
        Decision(Change.REJECTED, "top_p", "sampling.params.top_p", b"0.5", None),
        Decision(Change.REJECTED, "n", "sampling.params.n", b"2", None),
    )
    assert verdict.edits == {}


def test_decisions_tell_what_was_done(
    sampling: Callable[..., Profile], params: Callable[..., Profile]
) -> None:
    """Each thing written in, normalised or folded is told with its old and new JSON."""
    profile = replace(
        sampling(top_p="0.95", top_k="20", n="1"),
        params=params("user", normalize=(('"a"', '"b"'),)).params,
    )
    raw = b'{"top_p":null,"n":3,"n":1,"user":"a"}'
    assert decide(profile, CHAT, parse_object(raw)).decisions == (
        Decision(Change.WRITTEN, "top_p", "sampling.params.top_p", b"null", b"0.95"),
        Decision(Change.WRITTEN, "top_k", "sampling.params.top_k", None, b"20"),
        Decision(Change.FOLDED, "n", "sampling.params.n", b"1", b"1"),
        Decision(Change.NORMALIZED, "user", "params.user", b'"a"', b'"b"'),
    )


RULES: dict[str, dict[str, object]] = {
    "pin": {"pin": "1", "numeric": True},
    "default": {"default": "0.9", "numeric": True},
    "range": {"minimum": "0", "maximum": "1", "exclusive_minimum": True, "numeric": True},
    "below": {"maximum": "1", "exclusive_maximum": True, "numeric": True},
    "at least": {"minimum": "0", "numeric": True},
    "number": {"numeric": True},
    "int": {"minimum": "1", "maximum": "8", "whole": True, "numeric": True},
    "values": {"values": ("1", "2.5"), "numeric": True},
    "mixed": {"values": ("1", '"auto"'), "numeric": True},
    "mixed in a range": {"values": ("1", '"auto"'), "minimum": "0", "numeric": True},
    "choice": {"values": ('"general"', '"deepseek-style"')},
    "flag": {"pin": "true"},
    "object": {"pin": '{"type":"text"}'},
    "text default": {"default": '"low"'},
    "step": {"minimum": "0", "whole": True, "numeric": True, "normalize": (("0", "-1"),)},
    "written": {"default": "0", "numeric": True, "normalize": (("0", "-1"),)},
    "spelled": {"normalize": (('"a"', '"b"'), ('"b"', '"c"'))},
}


@pytest.mark.parametrize(
    ("rule", "sent", "forwarded"),
    [
        ("pin", None, b"1"),
        ("pin", b"null", b"1"),
        ("pin", b"1.0", b"1.0"),
        ("pin", b'"1"', b'"1"'),
        ("pin", b"true", b"true"),
        ("pin", b"2", "expected 1."),
        ("pin", b'"x"', "expected 1."),
        ("default", None, b"0.9"),
        ("default", b"null", b"0.9"),
        ("default", b"77", b"77"),
        ("default", b'"x"', "expected a number."),
        ("range", None, None),
        ("range", b"null", b"null"),
        ("range", b"1", b"1"),
        ("range", b"1e-9", b"1e-9"),
        ("range", b"0", "expected a number over 0 up to 1."),
        ("range", b"1.1", "expected a number over 0 up to 1."),
        ("range", b"[]", "expected a number over 0 up to 1."),
        ("below", b"1", "expected a number below 1."),
        ("below", b"-5", b"-5"),
        ("at least", b"0", b"0"),
        ("at least", b"-1", "expected a number of at least 0."),
        ("at least", b'"inf"', "expected a number of at least 0."),
        ("number", b"1e400", "expected a number."),
        ("number", b'"1e3"', b'"1e3"'),
        ("int", b"1.0", b"1.0"),
        ("int", b'"3"', b'"3"'),
        ("int", b"2.5", "expected a whole number from 1 up to 8."),
        ("int", b"9", "expected a whole number from 1 up to 8."),
        ("values", b'"2.50"', b'"2.50"'),
        ("values", b"2", "expected one of 1, 2.5."),
        ("mixed", b'"auto"', b'"auto"'),
        ("mixed", b'"1"', b'"1"'),
        ("mixed", b'"other"', 'expected one of 1, "auto".'),
        ("mixed in a range", b"1", b"1"),
        ("mixed in a range", b'"auto"', 'expected one of 1, "auto".'),
        ("choice", b'"gener\\u0061l"', b'"gener\\u0061l"'),
        ("choice", b'"other"', 'expected one of "general", "deepseek-style".'),
        ("choice", b"1", 'expected one of "general", "deepseek-style".'),
        ("choice", None, None),
        ("flag", None, b"true"),
        ("flag", b"true", b"true"),
        ("flag", b"1", "expected true."),
        ("flag", b'"true"', "expected true."),
        ("object", b'{ "type": "text" }', b'{ "type": "text" }'),
        ("object", b'{"type":"json"}', 'expected {"type":"text"}.'),
        ("text default", None, b'"low"'),
        ("text default", b"[1e400]", b"[1e400]"),
        ("step", b"0", b"-1"),
        ("step", b'"0"', b"-1"),
        ("step", b"0.0", b"-1"),
        ("step", b"5", b"5"),
        ("step", b"-1", "expected a whole number of at least 0."),
        ("step", None, None),
        ("written", None, b"-1"),
        ("written", b"null", b"-1"),
        ("written", b"0", b"-1"),
        ("spelled", b'"a"', b'"b"'),
        ("spelled", b'"b"', b'"c"'),
        ("spelled", b'"d"', b'"d"'),
    ],
)
def test_param_rules(
    outcome: Outcome,
    params: Callable[..., Profile],
    rule: str,
    sent: bytes | None,
    forwarded: bytes | str | None,
) -> None:
    """A rule checks, then normalises, then writes in; what passes keeps its spelling."""
    raw = b"{}" if sent is None else b'{"f":%b}' % sent
    got = outcome(params("f", **RULES[rule]), raw)
    if isinstance(forwarded, str):
        assert got == (
            f"Invalid value for f: got {(sent or b'').decode()}, {forwarded} "
            "The field can be left out."
        )
    else:
        assert got == (b"{}" if forwarded is None else b'{"f":%b}' % forwarded)


def test_param_rules_have_their_own_code(params: Callable[..., Profile]) -> None:
    """A violated `params` rule is a `bad_request`, on a sampling field too."""
    verdict = decide(params("top_p", pin="1", numeric=True), CHAT, parse_object(b'{"top_p":2}'))
    assert verdict.rejection is not None
    assert verdict.rejection.kind is BAD_REQUEST
    assert verdict.rejection.param == "top_p"


@pytest.mark.parametrize("name", ["n", "f"])
def test_repeated_keys_under_param_rules(
    outcome: Outcome, params: Callable[..., Profile], name: str
) -> None:
    """The last value is judged, and forwarded once."""
    profile = params(name, maximum="8", numeric=True)
    raw = b'{"%b":99,"x":1,"%b":2}' % (name.encode(), name.encode())
    assert outcome(profile, raw) == b'{"x":1,"%b":2}' % name.encode()
    raw = b'{"%b":2,"x":1,"%b":99}' % (name.encode(), name.encode())
    assert "got 99" in str(outcome(profile, raw))


@pytest.mark.parametrize(
    ("route", "sampling_fields", "other_fields"),
    [
        (CHAT, True, True),
        (RESPONSES, True, True),
        (MESSAGES, True, True),
        (COMPLETIONS, True, False),
        (EMBEDDINGS, False, False),
        (COUNT_TOKENS, False, False),
        (INPUT_TOKENS, False, False),
    ],
    ids=lambda value: value.name if isinstance(value, Route) else None,
)
def test_governed_routes(
    outcome: Outcome,
    sampling: Callable[..., Profile],
    params: Callable[..., Profile],
    route: Route,
    sampling_fields: bool,
    other_fields: bool,
) -> None:
    """Completions are governed in the sampling fields only, by either section.

    Embeddings and counting are governed by nothing.
    """
    section = sampling(top_p="0.95")
    rule = params("top_k", pin="20", numeric=True)
    other = params("reasoning_effort", pin='"low"')
    for profile, added, governed in (
        (section, b'"top_p":0.95', sampling_fields),
        (rule, b'"top_k":20', sampling_fields),
        (other, b'"reasoning_effort":"low"', other_fields),
    ):
        assert outcome(profile, b"{}", route) == (b"{%b}" % added if governed else b"{}")


@pytest.mark.parametrize(
    ("raw", "renames"),
    [
        (b'{"reasoning_format":"general"}', True),
        (b'{"reasoning_format":"gener\\u0061l"}', True),
        (b'{"reasoning_format":"x","reasoning_format":"general"}', True),
        (b'{"reasoning_format":"deepseek-style"}', False),
        (b'{"reasoning_format":null}', False),
        (b'{"reasoning_format":["general"]}', False),
        (b'{"reasoning_format":1e400}', False),
        (b"{}", False),
    ],
)
def test_reasoning_is_renamed(params: Callable[..., Profile], raw: bytes, renames: bool) -> None:
    """Only with a rule for the field, and only where the request sends `general`."""
    profile = params("reasoning_format", values=('"general"', '"deepseek-style"'))
    body = parse_object(raw)
    assert renames_reasoning(profile, body) is renames
    assert renames_reasoning(Profile(), body) is False


def test_profiles_are_told_apart(outcome: Outcome, sampling: Callable[..., Profile]) -> None:
    """Many profiles in turn, as after reloads, are each enforced by their own rules."""
    for number in range(40):
        profile = sampling(top_k=str(number + 1))
        assert outcome(profile, b"{}") == b'{"top_k":%d}' % (number + 1)
