"""The section `output`: how many tokens an answer may have.

The engine takes `max_completion_tokens` unless it is absent, null or 0, and else `max_tokens`; so
the field that it would take is the one that is judged, and the only one that is changed.
"""

from typing import Final

from gateway.contract.reading import read_number
from gateway.contract.verdict import NOTHING, Change, Decision, Verdict, accept, refuse
from gateway.errors import BAD_REQUEST
from gateway.jsonbody import Body
from gateway.profile.rules import OnExceed, OutputBudget, Profile
from gateway.routes import Dialect, Route

BUDGET_FIELDS: Final = {
    Dialect.CHAT: ("max_completion_tokens", "max_tokens"),
    Dialect.RESPONSES: ("max_output_tokens", "max_completion_tokens", "max_tokens"),
    Dialect.MESSAGES: ("max_tokens",),
}
"""By the dialect of the body: the budget fields, the one that counts first. What is not named
there is no budget to the reader of that dialect, however it is called."""

WRITTEN_FIELDS: Final = {
    Dialect.CHAT: "max_tokens",
    Dialect.RESPONSES: "max_output_tokens",
    Dialect.MESSAGES: "max_tokens",
}
"""By the dialect of the body: where a budget is written in when the request sets none."""

_CAP: Final = "output.max_tokens.cap"
_DEFAULT: Final = "output.max_tokens.default"


def check_budget(profile: Profile, route: Route, body: Body) -> Verdict:
    """Apply `output.max_tokens` to a request.

    Args:
        profile: the profile in force.
        route: its dialect is that of the body.
        body: the request.
    """
    budget = profile.output
    if budget is None or route.dialect not in BUDGET_FIELDS:
        return NOTHING
    field, got = _find_budget(route.dialect, body)
    if got is None:
        rule = _CAP if budget.default is None else _DEFAULT
        new = b"%d" % budget.written
        return accept(Decision(Change.WRITTEN, field, rule, body.get_raw(field), new))
    return _judge(budget, body, field, got)


def _judge(budget: OutputBudget, body: Body, field: str, got: bytes) -> Verdict:
    """The verdict on the budget that a request sets."""
    number = read_number(got)
    if number is None or number < 0 or number != int(number):
        expected = f"a whole number of tokens, at most {budget.cap}"
        return refuse(BAD_REQUEST, field, _CAP, got, expected)
    if number > budget.cap:
        if budget.on_exceed is OnExceed.REJECT:
            return refuse(BAD_REQUEST, field, _CAP, got, f"at most {budget.cap}")
        return accept(Decision(Change.CLAMPED, field, _CAP, got, b"%d" % budget.cap))
    if body.repeats(field):
        return accept(Decision(Change.FOLDED, field, _CAP, got, got))
    return NOTHING


def _find_budget(dialect: Dialect, body: Body) -> tuple[str, bytes | None]:
    """The field that counts and its JSON, or the one to write to and None.

    0 counts as unset, however it is spelled; a value that cannot be read does not.
    """
    for field in BUDGET_FIELDS[dialect]:
        got = body.get_raw(field)
        if got is not None and got != b"null" and read_number(got) != 0:
            return field, got
    return WRITTEN_FIELDS[dialect], None
