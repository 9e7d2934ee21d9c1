"""The section `output`: the budget of an answer."""

from collections.abc import Callable

import pytest

from gateway.contract import Change, Decision, decide
from gateway.errors import BAD_REQUEST
from gateway.jsonbody import parse_object
from gateway.profile.rules import OnExceed, OutputBudget, Profile
from gateway.routes import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    MESSAGES,
    RESPONSES,
    Route,
)

Outcome = Callable[..., bytes | str]

REJECT = Profile(output=OutputBudget(4096, OnExceed.REJECT, 256))
CLAMP = Profile(output=OutputBudget(4096, OnExceed.CLAMP, 256))


def over(field: str, shown: str = "8000") -> str:
    """The message for a budget above the cap."""
    return (
        f"Invalid value for {field}: got {shown}, expected at most 4096. The field can be left out."
    )


def unreadable(field: str, shown: str) -> str:
    """The message for what is no budget."""
    return (
        f"Invalid value for {field}: got {shown}, "
        "expected a whole number of tokens, at most 4096. The field can be left out."
    )


JUDGED, OTHER = "max_completion_tokens", "max_tokens"


@pytest.mark.parametrize(
    ("raw", "rejecting", "clamping"),
    [
        pytest.param(
            b'{"max_tokens":8000,"max_completion_tokens":300}', None, None, id="preferred fits"
        ),
        pytest.param(
            b'{"max_tokens":300, "max_completion_tokens": 8000}',
            over(JUDGED),
            b'{"max_tokens":300,"max_completion_tokens": 4096}',
            id="preferred is above",
        ),
        pytest.param(
            b'{"max_completion_tokens":0,"max_tokens":8000}',
            over(OTHER),
            b'{"max_completion_tokens":0,"max_tokens":4096}',
            id="0 hides nothing",
        ),
        pytest.param(
            b'{"max_completion_tokens":"0","max_tokens":8000}',
            over(OTHER),
            b'{"max_completion_tokens":"0","max_tokens":4096}',
            id="nor a text of 0",
        ),
        pytest.param(
            b'{"max_completion_tokens":null,"max_tokens":8000}',
            over(OTHER),
            b'{"max_completion_tokens":null,"max_tokens":4096}',
            id="null hides nothing",
        ),
        pytest.param(
            b'{"max_tokens":null}', b'{"max_tokens":256}', b'{"max_tokens":256}', id="null"
        ),
        pytest.param(b"{}", b'{"max_tokens":256}', b'{"max_tokens":256}', id="absent"),
        pytest.param(
            b'{"max_completion_tokens":0.0,"max_tokens":false}',
            b'{"max_completion_tokens":0.0,"max_tokens":256}',
            b'{"max_completion_tokens":0.0,"max_tokens":256}',
            id="0 in both",
        ),
        pytest.param(
            b'{"max_completion_tokens":null,"a":1e2}',
            b'{"max_completion_tokens":null,"a":1e2,"max_tokens":256}',
            b'{"max_completion_tokens":null,"a":1e2,"max_tokens":256}',
            id="null and absent",
        ),
        pytest.param(
            b'{"max_tokens":"8000"}', over(OTHER, '"8000"'), b'{"max_tokens":4096}', id="text"
        ),
        pytest.param(b'{"max_tokens":4096}', None, None, id="the cap"),
        pytest.param(b'{"max_tokens":4096.0}', None, None, id="the cap, as a double"),
        pytest.param(b'{"max_tokens":"100"}', None, None, id="a text that fits"),
        pytest.param(b'{"max_tokens":true}', None, None, id="true is 1"),
        pytest.param(
            b'{"max_tokens":4097}', over(OTHER, "4097"), b'{"max_tokens":4096}', id="cap + 1"
        ),
        pytest.param(
            b'{"max_tokens":1e300}', over(OTHER, "1e300"), b'{"max_tokens":4096}', id="huge"
        ),
        pytest.param(
            b'{"max_tokens":5,"x":1,"max_tokens":8000}',
            over(OTHER),
            b'{"x":1,"max_tokens":4096}',
            id="repeated, the last is above",
        ),
        pytest.param(
            b'{"max_tokens":8000,"x":1,"max_tokens":5}',
            b'{"x":1,"max_tokens":5}',
            b'{"x":1,"max_tokens":5}',
            id="repeated, the last fits",
        ),
        pytest.param(
            b'{"max_tokens":7,"max_tokens":8000,"max_completion_tokens":300}',
            None,
            None,
            id="what is not judged stays, repeated or not",
        ),
    ],
)
def test_budgets(
    outcome: Outcome, raw: bytes, rejecting: bytes | str | None, clamping: bytes | str | None
) -> None:
    """The field that the engine takes is judged.

    Above the cap it is refused, or lowered and nothing else changes; where there is none the
    default is written in.
    """
    assert outcome(REJECT, raw) == (raw if rejecting is None else rejecting)
    assert outcome(CLAMP, raw) == (raw if clamping is None else clamping)


@pytest.mark.parametrize("profile", [REJECT, CLAMP], ids=["reject", "clamp"])
@pytest.mark.parametrize(
    "sent", ["-1", "-0.5", "0.5", "100.5", '"lots"', '"1.5"', '"NaN"', '"inf"', "[1]", "1e400"]
)
@pytest.mark.parametrize("field", [JUDGED, OTHER])
def test_no_budgets(outcome: Outcome, profile: Profile, sent: str, field: str) -> None:
    """A negative, fractional or unreadable budget is refused, also where others are lowered."""
    assert outcome(profile, f'{{"{field}":{sent}}}'.encode()) == unreadable(field, sent)


def test_cap_stands_in(outcome: Outcome) -> None:
    """Without a default the cap is written in."""
    assert outcome(Profile(output=OutputBudget(4096)), b"{}") == b'{"max_tokens":4096}'


@pytest.mark.parametrize("raw", [b"{}", b'{"max_tokens":-1}', b'{"max_tokens":"lots"}'])
def test_no_section(outcome: Outcome, raw: bytes) -> None:
    """Without an `output` section no budget is looked at."""
    assert outcome(Profile(), raw) == raw


@pytest.mark.parametrize("route", [COMPLETIONS, EMBEDDINGS, COUNT_TOKENS], ids=lambda r: r.name)
def test_ungoverned_routes(outcome: Outcome, route: Route) -> None:
    """Completions, embeddings and counting have no budget."""
    assert outcome(REJECT, b'{"max_tokens":8000}', route) == b'{"max_tokens":8000}'


@pytest.mark.parametrize(
    ("route", "raw", "forwarded"),
    [
        pytest.param(MESSAGES, b'{"max_tokens":8000}', over("max_tokens"), id="messages"),
        pytest.param(
            MESSAGES,
            b'{"max_completion_tokens":5,"max_tokens":8000}',
            over("max_tokens"),
            id="messages: only max_tokens is read",
        ),
        pytest.param(
            RESPONSES,
            b'{"max_output_tokens":8000,"max_tokens":5}',
            over("max_output_tokens"),
            id="responses",
        ),
        pytest.param(RESPONSES, b"{}", b'{"max_output_tokens":256}', id="responses: written in"),
        pytest.param(
            RESPONSES, b'{"max_tokens":8000}', over("max_tokens"), id="responses: a Chat field"
        ),
    ],
)
def test_unconverted_bodies(
    outcome: Outcome, route: Route, raw: bytes, forwarded: bytes | str
) -> None:
    """In a body that was not converted the budget is the one of its dialect."""
    assert outcome(REJECT, raw, route) == forwarded


@pytest.mark.parametrize(
    ("profile", "raw", "decision"),
    [
        (
            CLAMP,
            b'{"max_tokens":8e3}',
            Decision(Change.CLAMPED, OTHER, "output.max_tokens.cap", b"8e3", b"4096"),
        ),
        (
            CLAMP,
            b'{"max_tokens":null}',
            Decision(Change.WRITTEN, OTHER, "output.max_tokens.default", b"null", b"256"),
        ),
        (
            Profile(output=OutputBudget(9)),
            b"{}",
            Decision(Change.WRITTEN, OTHER, "output.max_tokens.cap", None, b"9"),
        ),
        (
            REJECT,
            b'{"max_tokens":8e3}',
            Decision(Change.REJECTED, OTHER, "output.max_tokens.cap", b"8e3", None),
        ),
    ],
    ids=["clamped", "default", "cap", "rejected"],
)
def test_decisions(profile: Profile, raw: bytes, decision: Decision) -> None:
    """What was done is told, with the rule that says so."""
    assert decide(profile, CHAT, parse_object(raw)).decisions == (decision,)


def test_code() -> None:
    """A refused budget is a `bad_request` that names the field that was judged."""
    error = decide(REJECT, CHAT, parse_object(b'{"max_completion_tokens":5000}')).rejection
    assert error is not None
    assert (error.kind, error.param) == (BAD_REQUEST, JUDGED)
