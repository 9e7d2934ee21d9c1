"""Short ways to write profiles' rules and to see what becomes of a request."""

from collections.abc import Callable

import msgspec
import pytest

from gateway.contract import decide
from gateway.jsonbody import parse_object
from gateway.profile.rules import Profile, Value
from gateway.routes import CHAT, Route

Outcome = Callable[..., bytes | str]


def read_value(literal: str) -> Value:
    """A value as the loader makes it of an operator's literal."""
    return Value(msgspec.json.decode(literal), literal.encode())


@pytest.fixture(name="value")
def build_value() -> Callable[[str], Value]:
    """A value of a profile, from its JSON."""
    return read_value


@pytest.fixture(name="outcome")
def see_outcome() -> Outcome:
    """The body that is forwarded, or the message of the refusal."""

    def outcome(profile: Profile, raw: bytes, route: Route = CHAT) -> bytes | str:
        body = parse_object(raw)
        verdict = decide(profile, route, body)
        if verdict.rejection is not None:
            assert not verdict.edits
            return verdict.rejection.message
        return body.edit(verdict.edits)

    return outcome
