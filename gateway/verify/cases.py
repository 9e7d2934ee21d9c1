"""What a plan is made of: cases, each one request, with checks of its answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gateway.profile import Origin
from gateway.routes import Route
from gateway.verify.seen import Seen


class RuleKind(StrEnum):
    """The kinds of rules that a profile can have; each has probes of its own."""

    EXACT = "exact value"
    BAND = "band"
    CONFLICT = "conflict mode"
    PIN = "pin"
    DEFAULT = "default"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    VALUES = "accepted values"
    TYPE = "type"
    NORMALIZE = "normalisation"
    CAP = "output cap"
    EXCESS = "output above the cap"
    BUDGET = "output default"
    BODY = "body size"
    IMAGES = "images"
    ALIASES = "aliases"
    ERROR_TYPE = "type of a 400"
    PROTOCOL = "protocol"
    REASONING = "name of reasoning"


class State(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    UNSEEN = "not observable"
    SKIPPED = "skipped"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check; a reason for every state but `passed`."""

    state: State
    reason: str = ""


PASSED = Finding(State.PASSED)

Judge = Callable[[Seen], Finding]
"""From an answer to the outcome of one expectation. Pure."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the profile, as reports name it.

    Attributes:
        key: its path in the profile, with dots.
        origin: who set it; None where nothing did (a protocol that is on by itself).
    """

    key: str
    kind: RuleKind
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation of one answer.

    Attributes:
        what: is sent, in words: "top_p 0.95, as text".
        expected: in words: "is refused with a 400".
    """

    rule: Rule
    what: str
    expected: str
    judge: Judge


@dataclass(frozen=True, slots=True)
class Case:
    """One request.

    Attributes:
        route: whose dialect the answer is read in.
        path: that is asked.
        body: None for a GET.
        stream: a stream is asked for.
        cut: the answer is left at its first words, since it may be long.
        tokens: the most that the answer can have; 0 where it is cut or nothing is generated.
        control: the case is a plain request: where the route does not answer it, nothing can be
            said of the route's other cases.
        needs: what the route has to do before a refusal says anything of a rule; empty for
            nothing.
        gives: what the route does if it accepts this case.
    """

    route: Route
    path: str
    body: bytes | None
    checks: tuple[Check, ...]
    stream: bool = False
    cut: bool = False
    tokens: int = 0
    control: bool = False
    needs: str = ""
    gives: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A check and what became of it."""

    case: Case
    check: Check
    finding: Finding
