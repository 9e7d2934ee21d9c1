import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from gateway.profile import load_file
from gateway.routes import CHAT, MESSAGES
from gateway.verify.cases import Case, State
from gateway.verify.endpoint import NoAnswer
from gateway.verify.plan import Plan, build_plan
from gateway.verify.run import Pace, Report, VerifyError, run_plan
from gateway.verify.seen import Answered

FINE = {
    "model": "m",
    "choices": [{"index": 0, "message": {"content": "a"}}],
    "content": [],
    "output": [],
}
Answer = Answered | NoAnswer


def fine(body: Any = FINE, status: int = 200, **headers: str) -> Answered:
    """An answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answered(status, named, json.dumps(body).encode())


class Endpoint:
    """Answers as a test says, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Case], Answer]) -> None:
        self.answer = answer
        self.asked: list[Case] = []

    def ask(self, case: Case) -> Answered:
        """Asks once."""
        self.asked.append(case)
        answer = self.answer(case)
        if isinstance(answer, NoAnswer):
            raise answer
        return answer


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def sleep(self, wait_s: float) -> None:
        """Passes time."""
        self.slept.append(round(wait_s, 6))
        self.now_s += wait_s

    def pace(self, rate: float = math.inf, **more: Any) -> Pace:
        """A pace by this clock."""
        return Pace(rate=rate, clock=lambda: self.now_s, sleep=self.sleep, **more)


@pytest.fixture
def plan(tmp_path: Any) -> Callable[..., Plan]:
    """The plan of a small profile on some routes."""

    def build(*routes: str, text: str = "sampling: {params: {n: 1}}") -> Plan:
        (tmp_path / "p.yaml").write_text(text)
        return build_plan(load_file(str(tmp_path / "p.yaml")), "m", routes or ("chat",))

    return build


Planned = Callable[..., Plan]


def states(report: Report) -> set[State]:
    """What the checks came to."""
    return {row.finding.state for row in report.rows}


def test_every_case_is_asked_once(plan: Planned) -> None:
    """In the plan's order; plain requests come first, and progress is told."""
    planned, told = plan(), list[int]()
    endpoint = Endpoint(lambda _: fine())
    report = run_plan(planned, endpoint, Clock().pace(), progress=told.append)
    assert endpoint.asked == list(planned.cases)
    assert endpoint.asked[0].control
    assert told == list(range(1, len(planned.cases) + 1))
    assert (report.requests, report.repeated) == (len(planned.cases), 0)
    assert len(report.rows) == planned.checks


def test_the_rate_is_kept(plan: Planned) -> None:
    """Requests are spread evenly, the first one at once."""
    clock = Clock()
    report = run_plan(plan(), Endpoint(lambda _: fine()), clock.pace(rate=4))
    assert clock.slept == [0.25] * (report.requests - 1)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_busy(plan: Planned, status: int) -> None:
    """A busy endpoint is asked again, each time later; then the check is unanswered, not failed."""
    clock = Clock()
    endpoint = Endpoint(lambda case: fine() if case.control else fine(status=status))
    report = run_plan(plan(), endpoint, clock.pace())
    cases = len(report.plan.cases)
    assert clock.slept[:3] == [1, 2, 4]
    assert (report.requests, report.repeated) == (1 + 4 * (cases - 1), 3 * (cases - 1))
    assert report.count(State.FAILED) == 0
    reasons = {row.finding.reason for row in report.rows if not row.case.control}
    assert reasons == {f"{status} after 4 tries"}


def test_busy_for_a_while(plan: Planned) -> None:
    """What is answered in the end counts like any other answer."""
    left = [fine(status=429), fine(status=503)]
    report = run_plan(plan(), Endpoint(lambda _: left.pop() if left else fine()), Clock().pace())
    assert report.count(State.UNANSWERED) == 0
    assert report.repeated == 2


@pytest.mark.parametrize(
    ("header", "pause_s"),
    [("7", 7), ("0", 1), ("3600", 30), ("soon", 1), ("", 1), ("٣", 1)],
    ids=["seconds", "none", "an hour", "words", "empty", "other digits"],
)
def test_retry_after(plan: Planned, header: str, pause_s: float) -> None:
    """What the endpoint asks for, within reason."""
    clock = Clock()
    left = [fine(status=429, retry_after=header)]
    run_plan(plan(), Endpoint(lambda _: left.pop() if left else fine()), clock.pace())
    assert clock.slept == [pause_s]


def test_no_answer(plan: Planned) -> None:
    """A connection that breaks is tried again, and is no verdict."""
    broken = NoAnswer("The endpoint cut its answer off.", unreached=False)
    endpoint = Endpoint(lambda case: fine() if case.control else broken)
    report = run_plan(plan(), endpoint, Clock().pace())
    assert report.count(State.FAILED) == 0
    assert {row.finding.reason for row in report.rows if not row.case.control} == {str(broken)}


def test_nobody_there(plan: Planned) -> None:
    """Where the first connection is refused, the run ends at once."""
    endpoint = Endpoint(lambda _: NoAnswer("refused", unreached=True))
    with pytest.raises(VerifyError, match="refused"):
        run_plan(plan(), endpoint, Clock().pace())
    assert len(endpoint.asked) == 1


def test_the_bound(plan: Planned) -> None:
    """Beyond it nothing is sent, and what was not asked is said to be so."""
    endpoint = Endpoint(lambda _: fine())
    report = run_plan(plan(), endpoint, Clock().pace(max_requests=3))
    assert len(endpoint.asked) == report.requests == 3
    skipped = [row for row in report.rows if row.finding.state is State.SKIPPED]
    assert {row.finding.reason for row in skipped} == {"more than 3 requests"}
    assert len(report.rows) == report.plan.checks


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_route_that_is_not_served(plan: Planned, status: int) -> None:
    """Its checks are skipped, and the others go on."""
    endpoint = Endpoint(lambda case: fine({}, status) if case.route is MESSAGES else fine())
    report = run_plan(plan("chat", "messages"), endpoint, Clock().pace())
    rows = [row for row in report.rows if row.case.route is MESSAGES]
    assert {row.finding.state for row in rows} == {State.SKIPPED}
    assert report.notes == [f"messages: /v1/messages is not served: {status}"]
    assert sum(case.route is MESSAGES for case in endpoint.asked) == 1
    assert State.PASSED in states(report)


def test_a_route_that_answers_nothing_plain(plan: Planned) -> None:
    """A plain request that breaks the contract fails; nothing else is asked there."""
    refusal = fine({"error": {"message": "n is required"}}, 400)
    endpoint = Endpoint(lambda case: fine() if case.route is CHAT else refusal)
    report = run_plan(plan("chat", "messages"), endpoint, Clock().pace())
    failed = [row for row in report.rows if row.finding.reason == "got 400: n is required"]
    assert {row.check.expected for row in failed} == {"is accepted"}
    assert report.notes == ["messages: a plain request is not answered: 400: n is required"]


def test_no_route_at_all(plan: Planned) -> None:
    """Then nothing is told: a wrong key or name would make every check fail."""
    endpoint = Endpoint(lambda _: fine({"error": "Unauthorized"}, 401))
    with pytest.raises(VerifyError, match=r"no route answers a plain request \(chat: a plain"):
        run_plan(plan(), endpoint, Clock().pace())


def test_an_engine_that_does_not_echo(plan: Planned) -> None:
    """Who asks for the echo and gets none is told so, not that every check failed."""
    with pytest.raises(VerifyError, match="does not echo"):
        run_plan(plan(), Endpoint(lambda _: fine()), Clock().pace(), observing=True)


@pytest.mark.parametrize(
    ("headers", "state"),
    [({}, State.UNSEEN), ({"x_router_error_code": "bad_request"}, State.PASSED)],
    ids=["an engine's own", "the gateway's"],
)
def test_an_endpoint_that_takes_no_image(
    plan: Planned, headers: dict[str, str], state: State
) -> None:
    """There a refused image says nothing of the limit, unless this gateway says so itself."""

    def answer(case: Case) -> Answered:
        images = (case.body or b"").count(b'"image_url":{')
        if images == 0:
            return fine()
        return fine({"error": {"message": "no"}}, 400, **(headers if images > 2 else {}))

    report = run_plan(plan(text="limits: {max_images: 2}"), Endpoint(answer), Clock().pace())
    found = {row.check.what: row.finding.state for row in report.rows}
    assert found == {
        "2 images in a message": State.UNSEEN,
        "3 images in a message": state,
        "3 images over two messages": state,
        "3 images in a tool's result": state,
        "3 images only spoken of": State.PASSED,
    }


def test_a_route_that_is_promised_and_not_served(plan: Planned) -> None:
    """A protocol that the profile names as on has to be there."""
    text = "sampling: {params: {n: 1}}\nprotocols: {messages: true, chat: true}"
    endpoint = Endpoint(lambda case: fine({}, 404) if case.route is MESSAGES else fine())
    report = run_plan(plan("chat", "messages", text=text), endpoint, Clock().pace())
    failed = {row.check.rule.key for row in report.rows if row.finding.reason == "got 404"}
    assert failed == {"protocols.messages"}
