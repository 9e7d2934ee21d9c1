"""The whole contract: its order, its purity, its presets."""

import json
from collections.abc import Callable

import pytest

from gateway.contract import decide, enforce
from gateway.errors import BAD_REQUEST, SAMPLING_CONTRACT, GatewayError
from gateway.jsonbody import parse_object
from gateway.profile import load_preset
from gateway.profile.rules import (
    Conflict,
    Exact,
    OutputBudget,
    ParamRule,
    Profile,
    Sampling,
    Value,
)
from gateway.routes import CHAT, COMPLETIONS, EMBEDDINGS, ROUTES, Route

Outcome = Callable[..., bytes | str]

WHOLE = Profile(
    sampling=Sampling(Conflict.REJECT, (Exact("n", Value(1, b"1")),)),
    params={"seed": ParamRule("seed", numeric=True, pin=Value(7, b"7"))},
    output=OutputBudget(100),
    max_images=1,
)
IMAGES = [{"role": "user", "content": [{"type": "image_url"}, {"type": "image_url"}]}]


@pytest.mark.parametrize(
    ("request_", "params"),
    [
        pytest.param(
            {"n": 2, "seed": 8, "max_tokens": 101, "messages": IMAGES}, ["n", "seed"], id="first"
        ),
        pytest.param({"seed": 8, "max_tokens": 101, "messages": IMAGES}, ["seed"], id="params"),
        pytest.param({"max_tokens": 101, "messages": IMAGES}, ["messages"], id="images"),
        pytest.param({"max_tokens": 101, "messages": []}, ["max_tokens"], id="budget"),
    ],
)
def test_order(request_: dict[str, object], params: list[str]) -> None:
    """Sampling and params, then images, then the budget; the first step that refuses ends it."""
    verdict = decide(WHOLE, CHAT, parse_object(json.dumps(request_).encode()))
    assert [error.param for error in verdict.rejections] == params


def test_all_steps_edit(outcome: Outcome) -> None:
    """What the steps write in comes together in one body, in their order."""
    assert outcome(WHOLE, b'{"messages": [ ] }') == (
        b'{"messages": [ ] ,"n":1,"seed":7,"max_tokens":100}'
    )


def test_enforcing() -> None:
    """`enforce` gives the edits, or raises the first violation."""
    assert enforce(WHOLE, CHAT, parse_object(b'{"seed":7}')) == {"n": b"1", "max_tokens": b"100"}
    with pytest.raises(GatewayError) as refused:
        enforce(WHOLE, CHAT, parse_object(b'{"n":2,"seed":8}'))
    assert (refused.value.kind, refused.value.param) == (SAMPLING_CONTRACT, "n")
    with pytest.raises(GatewayError) as refused:
        enforce(WHOLE, CHAT, parse_object(b'{"seed":8}'))
    assert (refused.value.kind, refused.value.param) == (BAD_REQUEST, "seed")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_no_profile_changes_nothing(outcome: Outcome, route: Route) -> None:
    """Without a profile the engine gets the very bytes of the client."""
    raw = (
        b' { "n" : 1.0,"temperature":"NaN", "max_tokens":-1,\t"n":1e400,'
        b'"x":[12345678901234567890,0.1000000000000000055,"\\u00e9"],"n":[] } '
    )
    assert outcome(load_preset("openai-compatible").profile, raw, route) == raw
    assert decide(Profile(), route, parse_object(raw)).decisions == ()


def test_kimi(outcome: Outcome) -> None:
    """The preset writes its exact values in, leaves the temperature out and holds its band."""
    profile = load_preset("moonshot-kimi").profile
    added = b'"top_p":0.95,"top_k":1000,"frequency_penalty":0,"presence_penalty":0,"n":1'
    for route in (CHAT, COMPLETIONS):
        assert outcome(profile, b'{"model":"kimi"}', route) == b'{"model":"kimi",%b}' % added
        assert outcome(profile, b'{"temperature":1.0}', route) == b'{"temperature":1.0,%b}' % added
        assert "got 1.1, expected a number from 0 up to 1." in str(
            outcome(profile, b'{"temperature":1.1}', route)
        )
    assert outcome(profile, b"{}", EMBEDDINGS) == b"{}"


@pytest.mark.parametrize(
    ("raw", "forwarded"),
    [
        pytest.param(
            b"{}", b'{"temperature":1.0,"top_p":0.95,"max_tokens":64000}', id="written in"
        ),
        pytest.param(
            b'{"temperature":0,"top_p":1,"top_k":0,"max_tokens":64001}',
            b'{"temperature":0,"top_p":1,"top_k":-1,"max_tokens":64000}',
            id="normalised and clamped",
        ),
        pytest.param(
            b'{"top_p":0}',
            "Invalid value for top_p: got 0, expected a number over 0 up to 1. "
            "The field can be left out.",
            id="exclusive end",
        ),
        pytest.param(
            b'{"reasoning_format":"raw"}',
            'Invalid value for reasoning_format: got "raw", '
            'expected one of "general", "deepseek-style". The field can be left out.',
            id="choice",
        ),
    ],
)
def test_step5(outcome: Outcome, raw: bytes, forwarded: bytes | str) -> None:
    """The preset writes in, normalises and clamps."""
    assert outcome(load_preset("stepfun-step5").profile, raw) == forwarded
