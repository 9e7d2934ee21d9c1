"""What a step of the contract finds, and what the whole of it decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.contract.reading import show
from gateway.errors import GatewayError, Kind
from gateway.jsonbody import Body, Edits
from gateway.profile.rules import Profile
from gateway.routes import Route


class Change(StrEnum):
    """What was done about a field."""

    WRITTEN = "written"  # absent or null: the profile's value stands in
    NORMALIZED = "normalized"  # accepted, and forwarded under its other spelling
    CLAMPED = "clamped"  # above the cap: lowered to it
    FOLDED = "folded"  # repeated: forwarded once, with its last value
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that the contract did about one field.

    Attributes:
        change: what it did.
        field: the request's field.
        rule: the key of the profile that says so, as a path (`sampling.params.top_p`).
        old: the JSON that the client sent; None where the field was absent. Of a refused value
            only what a message shows of it.
        new: the JSON that is forwarded; None where the request is refused.
    """

    change: Change
    field: str
    rule: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a request.

    Attributes:
        edits: what changes in the body; empty where the request is refused.
        decisions: everything done, in order; where the request is refused, only the refusals.
        rejections: every violation of the step that refused the request.
    """

    edits: Edits
    decisions: tuple[Decision, ...] = ()
    rejections: tuple[GatewayError, ...] = ()

    @property
    def rejection(self) -> GatewayError | None:
        """The violation that the client is told: the first."""
        return self.rejections[0] if self.rejections else None


NOTHING: Final = Verdict({})
"""Nothing to do."""

Step = Callable[[Profile, Route, Body], Verdict]
"""A part of the contract. Pure: the body is only read."""


def accept(*made: Decision) -> Verdict:
    """The verdict of a step that refuses nothing, from what it decided about each field."""
    edits = {one.field: one.new for one in made if one.new is not None}
    return Verdict(edits, made)


def refuse(kind: Kind, field: str, rule: str, got: bytes, expected: str) -> Verdict:
    """The verdict of one violated rule.

    Args:
        kind: the row of the error table.
        field: the request's field.
        rule: the profile's key.
        got: the JSON that the client sent.
        expected: what would be right, to be read after "expected".
    """
    shown = show(got)
    message = f"Invalid value for {field}: got {shown}, expected {expected}."
    error = GatewayError(kind, f"{message} The field can be left out.", param=field)
    decision = Decision(Change.REJECTED, field, rule, shown.encode(), None)
    return Verdict({}, (decision,), (error,))


def refuse_all(refused: Sequence[Verdict]) -> Verdict:
    """The verdict of several violated rules."""
    return Verdict(
        {},
        tuple(decision for one in refused for decision in one.decisions),
        tuple(error for one in refused for error in one.rejections),
    )
