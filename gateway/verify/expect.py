"""What a check can expect of an answer: each gives its words and its judge."""

import json
from collections.abc import Mapping
from typing import Any, Final

from gateway.routes import Dialect
from gateway.verify.cases import PASSED, Finding, Judge, State
from gateway.verify.seen import Seen

Expected = tuple[str, Judge]
"""In words, and the judge."""

ROUTER_CODE: Final = "x-router-error-code"
"""The header of this gateway's own errors."""

_ABSENT: Final = object()

UNSEEN_ECHO: Final = "what the engine gets is not seen from outside"


def _failed(seen: Seen) -> Finding:
    return Finding(State.FAILED, f"got {seen.told}")


def accepted() -> Expected:
    """A 200 with a whole answer; of a stream that was left, with a beginning."""

    def judge(seen: Seen) -> Finding:
        if seen.status != 200 or seen.error is not None:
            return _failed(seen)
        if not seen.parts:
            return Finding(State.FAILED, "got 200 with nothing in it that can be read")
        if not (seen.ended or seen.left):
            return Finding(State.FAILED, "got a stream without a proper end")
        return PASSED

    return "is accepted", judge


def refused(code: str) -> Expected:
    """A 400, never a 200 with an error in it.

    Args:
        code: of the error, which only this gateway can be asked for.
    """

    def judge(seen: Seen) -> Finding:
        if seen.status != 400:
            return _failed(seen)
        if seen.error is None:
            return Finding(State.FAILED, "got a 400 without an error in it")
        told = seen.headers.get(ROUTER_CODE)
        if told is not None and told != code:
            return Finding(State.FAILED, f"got a 400 with the code {told}, not {code}")
        return PASSED

    return "is refused with a 400", judge


def has_status(status: int) -> Expected:
    """This status, whatever else."""

    def judge(seen: Seen) -> Finding:
        return PASSED if seen.status == status else _failed(seen)

    return f"gets a {status}", judge


def is_there() -> Expected:
    """Any status but 404."""

    def judge(seen: Seen) -> Finding:
        return _failed(seen) if seen.status == 404 else PASSED

    return "is served", judge


def forwarded(field: str, value: bytes | None) -> Expected:
    """The engine gets this value for a field; None: it does not get the field.

    It is seen only where the engine echoes what it gets. A null is no value.
    """
    wanted = _ABSENT if value is None else json.loads(value)
    words = f"reaches the engine without {field}"
    if value is not None:
        words = f"reaches the engine with {field} {value.decode()}"

    def judge(seen: Seen) -> Finding:
        if not seen.observing:
            return Finding(State.UNSEEN, UNSEEN_ECHO)
        if seen.status != 200:
            return _failed(seen)
        echo = seen.echo
        if echo is None:
            return Finding(State.FAILED, "the answer is no echo of what the engine got")
        got = echo.get(field, _ABSENT)
        if _alike(got, wanted):
            return PASSED
        found = f"without {field}" if got is _ABSENT else f"with {field} {json.dumps(got)}"
        return Finding(State.FAILED, f"reached the engine {found}")

    return words, judge


def _alike(got: object, wanted: object) -> bool:
    if wanted is _ABSENT:
        return got is _ABSENT or got is None  # a null of the client's may pass
    return isinstance(got, bool) is isinstance(wanted, bool) and got == wanted


def names_model(name: str) -> Expected:
    """Every name of the model in the answer is this one."""

    def judge(seen: Seen) -> Finding:
        if seen.status != 200:
            return _failed(seen)
        if not seen.models:
            return Finding(State.UNSEEN, "the answer names no model")
        others = sorted(seen.models - {name})
        if not others:
            return PASSED
        return Finding(State.FAILED, f"the answer names {', '.join(map(repr, others))}")

    return f"reads {name!r} as the model", judge


def error_type(name: str) -> Expected:
    """Every type that the error of a 400 has is this one."""

    def judge(seen: Seen) -> Finding:
        if seen.status != 400:
            return Finding(State.UNSEEN, "there was no 400")
        if seen.error_types == {name}:
            return PASSED
        found = ", ".join(sorted(seen.error_types)) or "none"
        return Finding(State.FAILED, f"the type of the 400 is {found}")

    return f"has the type {name}", judge


def other_error_type(name: str) -> Expected:
    """No type of an error is this one."""

    def judge(seen: Seen) -> Finding:
        if name not in seen.error_types:
            return PASSED
        return Finding(State.FAILED, f"the type of the {seen.status} is {name}")

    return f"has another type than {name}", judge


def reasoning_called(name: str) -> Expected:
    """The reply's reasoning goes by this name alone."""

    def judge(seen: Seen) -> Finding:
        if seen.status != 200:
            return _failed(seen)
        if not seen.reasoning_names:
            return Finding(State.UNSEEN, "the model did not reason")
        if seen.reasoning_names == {name}:
            return PASSED
        return Finding(State.FAILED, f"it is called {', '.join(sorted(seen.reasoning_names))}")

    return f"calls its reasoning {name}", judge


def lists_models(names: tuple[str, ...]) -> Expected:
    """The model list has these names."""

    def judge(seen: Seen) -> Finding:
        if seen.status != 200:
            return _failed(seen)
        listed = {entry.get("id") for entry in _entries(seen.parts[0] if seen.parts else {})}
        missing = [name for name in names if name not in listed]
        if not missing:
            return PASSED
        return Finding(State.FAILED, f"the list is without {', '.join(map(repr, missing))}")

    return f"lists {', '.join(map(repr, names))}", judge


def _entries(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    data = part.get("data")
    return [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []


def budget_field(dialect: Dialect) -> str:
    """What a client of a dialect calls the budget of its answer."""
    return "max_output_tokens" if dialect is Dialect.RESPONSES else "max_tokens"
