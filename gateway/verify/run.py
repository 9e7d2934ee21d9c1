"""Runs a plan: one request after another, slowly enough, and again where an endpoint is busy."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.verify.cases import Case, Finding, Row, RuleKind, State
from gateway.verify.endpoint import Endpoint, NoAnswer
from gateway.verify.expect import ROUTER_CODE
from gateway.verify.plan import Plan
from gateway.verify.seen import Answered, Seen, read

_BUSY: Final = frozenset({429, 503, 529})
"""Statuses that say nothing about a rule: the endpoint has no room now."""

_NOT_THERE: Final = frozenset({404, 405, 501})
_TRIES: Final = 4
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0


class VerifyError(Exception):
    """The endpoint cannot be verified at all: one line that says why."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How an endpoint is treated.

    Attributes:
        max_requests: in all, repetitions counted.
        rate: requests a second at most.
        clock: gives monotonic seconds.
        sleep: waits for so many seconds.
    """

    max_requests: int = 1000
    rate: float = 20.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class Report:
    """What came of a run.

    Attributes:
        rows: every check and its outcome, in the order of the plan.
        requests: how many were sent.
        repeated: how many of them because the endpoint was busy or did not answer.
        notes: what is to be known beside the checks, such as a route that is not served.
    """

    plan: Plan
    rows: list[Row] = field(default_factory=list)
    requests: int = 0
    repeated: int = 0
    notes: list[str] = field(default_factory=list)

    def count(self, state: State) -> int:
        """How many checks came to this."""
        return sum(row.finding.state is state for row in self.rows)


def run_plan(
    plan: Plan,
    endpoint: Endpoint,
    pace: Pace,
    *,
    observing: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Puts every case of a plan to an endpoint.

    Args:
        plan: what to ask.
        endpoint: whom.
        pace: how fast, and how much.
        observing: the endpoint's engine echoes what it gets.
        progress: told after each case how many are done.

    Raises:
        VerifyError: nothing can be told: it is not there, or answers no plain request.
    """
    run = _Run(plan, endpoint, pace, observing)
    for number, case in enumerate(plan.cases, start=1):
        run.do(case)
        progress(number)
    run.check_ground()
    return run.report


class _Run:
    """A run under way."""

    def __init__(self, plan: Plan, endpoint: Endpoint, pace: Pace, observing: bool) -> None:
        self.report = Report(plan)
        self._endpoint = endpoint
        self._pace = pace
        self._observing = observing
        self._next_s = pace.clock()
        self._closed: dict[str, str] = {}
        self._open: set[str] = set()
        self._taken: set[str] = set()
        self._echoed = False

    def do(self, case: Case) -> None:
        """Asks one case, unless it could not say anything."""
        reason = self._closed.get(case.route.name)
        if reason is not None and not case.control and case.body is not None:
            self._note(case, Finding(State.SKIPPED, reason))
            return
        answered = self._ask(case)
        if isinstance(answered, Finding):
            self._note(case, answered)
            if case.control:
                self._close(case, answered.reason)
            return
        seen = read(answered, case.route.dialect, observing=self._observing)
        self._learn(case, seen)
        if self._says_nothing(case, seen):
            self._note(case, Finding(State.UNSEEN, f"it is not so that {case.needs}"))
            return
        absent = case.control and seen.status in _NOT_THERE
        for check in case.checks:
            finding = check.judge(seen)
            if absent and check.rule.kind is not RuleKind.PROTOCOL:
                finding = Finding(State.SKIPPED, self._closed[case.route.name])
            self.report.rows.append(Row(case, check, finding))

    def _says_nothing(self, case: Case, seen: Seen) -> bool:
        """Whether a refusal may be for want of what the case needs, and not by a rule.

        Of its own refusals this gateway says so.
        """
        lacking = bool(case.needs) and case.needs not in self._taken
        return lacking and seen.status != 200 and ROUTER_CODE not in seen.headers

    def check_ground(self) -> None:
        """Something must have been answered, or the run tells nothing."""
        if self._closed and not self._open:
            reasons = "; ".join(f"{name}: {why}" for name, why in self._closed.items())
            raise VerifyError(f"no route answers a plain request ({reasons})")
        if self._observing and not self._echoed:
            raise VerifyError(
                "the endpoint's engine does not echo what it gets; try it in front of"
                " sgl-gateway demo --engine-echo"
            )

    def _learn(self, case: Case, seen: Seen) -> None:
        fine = seen.status == 200
        if fine and case.gives:
            self._taken.add(case.gives)
        if fine and seen.echo is not None:
            self._echoed = True
        if not case.control:
            return
        if fine:
            self._open.add(case.route.name)
        elif seen.status in _NOT_THERE:
            self._close(case, f"{case.route.path} is not served: {seen.told}")
        else:
            self._close(case, f"a plain request is not answered: {seen.told}")

    def _close(self, case: Case, reason: str) -> None:
        self._closed[case.route.name] = reason
        self.report.notes.append(f"{case.route.name}: {reason}")

    def _note(self, case: Case, finding: Finding) -> None:
        self.report.rows += (Row(case, check, finding) for check in case.checks)

    def _ask(self, case: Case) -> Answered | Finding:
        """The answer, after several tries where the endpoint is busy."""
        pause_s, reason = _FIRST_PAUSE_S, ""
        for attempt in range(_TRIES):
            if self.report.requests >= self._pace.max_requests:
                return Finding(State.SKIPPED, f"more than {self._pace.max_requests} requests")
            if attempt:
                self._pace.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
                self.report.repeated += 1
            self._wait_turn()
            self.report.requests += 1
            try:
                answered = self._endpoint.ask(case)
            except NoAnswer as none:
                if none.unreached and self.report.requests == 1:
                    raise VerifyError(str(none)) from None
                reason = str(none)
                continue
            if answered.status not in _BUSY:
                return answered
            reason = f"{answered.status} after {attempt + 1} tries"
            pause_s = _asked_pause_s(answered, pause_s)
        return Finding(State.UNANSWERED, reason)

    def _wait_turn(self) -> None:
        wait_s = self._next_s - self._pace.clock()
        if wait_s > 0:
            self._pace.sleep(wait_s)
        self._next_s = max(self._next_s, self._pace.clock()) + 1 / self._pace.rate


def _asked_pause_s(answered: Answered, otherwise_s: float) -> float:
    """What `retry-after` asks for, within reason."""
    text = answered.headers.get("retry-after", "")
    if not text.isascii() or not text.isdigit():
        return otherwise_s
    return min(max(float(text), otherwise_s), _LONGEST_PAUSE_S)
