"""When a server is in service, passed over, out, on trial, and asked whether it is ready."""

import threading
from collections.abc import Callable

import pytest

from gateway.engine.client import EngineClient, Limits
from gateway.engine.health import (
    BUSY_S,
    FAILURES_TO_LEAVE,
    FIRST_COOL_DOWN_S,
    LAST_COOL_DOWN_S,
    LONGEST_BUSY_S,
    READY_EVERY_S,
    Health,
    Outcome,
)
from gateway.engine.prober import Prober, ready_of
from gateway.engine.servers import Server, ServerPool

START_S = 100.0


def after(*outcomes: Outcome) -> Health:
    """A server to which these happened."""
    health = Health()
    for outcome in outcomes:
        health.note(outcome, START_S)
    return health


A, N, B, F = Outcome.ANSWERED, Outcome.NEUTRAL, Outcome.BUSY, Outcome.FAILED


@pytest.mark.parametrize(
    ("outcomes", "out"),
    [
        pytest.param([F, F], False, id="two"),
        pytest.param([F, F, F], True, id="three"),
        pytest.param([F, F, A, F, F], False, id="an-answer-between"),
        pytest.param([F, F, B, F, F], False, id="a-busy-answer-between"),
        pytest.param([F, F, N, F], True, id="a-refusal-does-not-count"),
        pytest.param([B] * 10, False, id="busy-is-no-failure"),
        pytest.param([N] * 10, False, id="refusals-are-no-failures"),
        pytest.param([F, F, F, F], True, id="a-late-failure"),
        pytest.param([F, F, F, A], False, id="a-late-answer"),
        pytest.param([F, F, F, N], True, id="a-late-refusal"),
    ],
)
def test_what_puts_a_server_out(outcomes: list[Outcome], out: bool) -> None:
    """Three failures in a row; a refusal says nothing, any other answer starts the count again."""
    assert after(*outcomes).is_out is out


@pytest.mark.parametrize("outcome", [A, N, B])
def test_a_trial_that_is_answered(outcome: Outcome) -> None:
    """Any answer brings the server back, a refusal or a busy one as well."""
    health = after(*[F] * FAILURES_TO_LEAVE)
    health.draw(START_S + FIRST_COOL_DOWN_S)
    health.note(outcome, START_S + 2)
    assert not health.is_out


@pytest.mark.parametrize(
    ("busy_s", "passed_over_s"),
    [
        pytest.param(BUSY_S, BUSY_S, id="without-a-time"),
        pytest.param(3.0, 3.0, id="with-one"),
        pytest.param(3600.0, LONGEST_BUSY_S, id="no-longer-than-this"),
        pytest.param(0.0, 0.0, id="none"),
    ],
)
def test_a_busy_server(busy_s: float, passed_over_s: float) -> None:
    """It is passed over for the time it asks for, within a bound, and stays in service."""
    health = Health()
    health.note(B, START_S, busy_s)
    assert health.can_be_drawn(START_S, asked=True)
    assert health.is_passed_over(START_S) is (busy_s > 0)
    assert health.is_passed_over(START_S + passed_over_s * 0.99) is (busy_s > 0)
    assert not health.is_passed_over(START_S + passed_over_s)


def test_an_answer_does_not_end_the_passing_over() -> None:
    """A request from before may be answered while the queue is full."""
    health = after(B, A)
    assert health.is_passed_over(START_S)


def test_out_until_it_says_ready() -> None:
    """Where servers are asked, the cool-down alone does not let a client's request try."""
    health = after(*[F] * FAILURES_TO_LEAVE)
    over_s = START_S + FIRST_COOL_DOWN_S
    assert not health.can_be_drawn(over_s, asked=True)
    assert health.can_be_drawn(over_s, asked=False)
    assert health.ask_at() == over_s

    health.note_ready(True, over_s)

    assert health.can_be_drawn(over_s, asked=True)
    assert health.ask_at() is None


@pytest.mark.parametrize("ready", [False, None])
def test_out_and_not_ready(ready: bool | None) -> None:
    """Each time the cool-down doubles, up to its limit; it is asked again at the end of it."""
    health = after(*[F] * FAILURES_TO_LEAVE)
    waits = []
    for _ in range(4):
        now_s = health.ask_at()
        assert now_s is not None
        health.note_ready(ready, now_s)
        waits.append(health.out_until_s - now_s)
    assert waits == [2.0, 4.0, LAST_COOL_DOWN_S, LAST_COOL_DOWN_S]


def test_ready_but_failing() -> None:
    """A trial that fails puts the server out again, until it is asked anew."""
    health = after(*[F] * FAILURES_TO_LEAVE)
    now_s = START_S + FIRST_COOL_DOWN_S
    health.note_ready(True, now_s)
    health.draw(now_s)
    assert not health.can_be_drawn(now_s, asked=True)

    health.note(F, now_s)

    assert health.ask_at() == now_s + 2 * FIRST_COOL_DOWN_S
    assert not health.can_be_drawn(now_s + 2 * FIRST_COOL_DOWN_S, asked=True)


def test_in_service_and_used() -> None:
    """It is asked some time after a request went to it, and then not until the next one."""
    health = Health()
    assert health.ask_at() is None
    health.draw(START_S)
    health.draw(START_S + 1)
    assert health.ask_at() == START_S + READY_EVERY_S

    health.note_ready(True, START_S + READY_EVERY_S)

    assert health.ask_at() is None
    assert not health.is_passed_over(START_S + READY_EVERY_S)


def test_in_service_and_not_ready() -> None:
    """It shuts down: it is passed over, and asked on, until it is ready or gone."""
    health = Health()
    health.draw(START_S)
    health.note_ready(False, START_S + 2)
    health.note(A, START_S + 3)
    assert health.is_passed_over(START_S + 1000)
    assert health.ask_at() == START_S + 2 + READY_EVERY_S

    health.note_ready(True, START_S + 4)

    assert not health.is_passed_over(START_S + 4)


def test_in_service_and_silent() -> None:
    """No answer is a failure as a client's request would have it, and clients are kept off."""
    health = after(F)
    health.note_ready(None, START_S)
    assert not health.is_out
    assert health.is_passed_over(START_S + 1000)
    health.note_ready(None, START_S + READY_EVERY_S)
    assert health.is_out


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


Asked = Callable[..., tuple[ServerPool, Prober, Clock, dict[str, bool | None], list[str]]]


@pytest.fixture
def asked() -> Asked:
    """A pool, who asks its servers, the clock, what they say, and who was asked."""

    def build(*names: str) -> tuple[ServerPool, Prober, Clock, dict[str, bool | None], list[str]]:
        clock, says, log = Clock(), dict.fromkeys(names, True), []
        servers = [Server(name, f"http://{name}:1") for name in names]
        pool = ServerPool(servers, clock=clock, rand=lambda: 0.0)

        def ask(server: Server) -> bool | None:
            log.append(server.name)
            return says[server.name]

        prober = Prober(pool, ask)
        pool.ask_with(lambda: None)
        return pool, prober, clock, says, log

    return build


def test_a_server_that_is_out_is_asked(asked: Asked) -> None:
    """From the end of its cool-down on; it is drawn again once it says that it is ready."""
    pool, prober, clock, says, log = asked("a")
    [one] = pool.servers
    says["a"] = None
    for _ in range(FAILURES_TO_LEAVE):
        pool.report(one, F)
    assert prober.ask_due()
    assert log == []
    clock.now_s += FIRST_COOL_DOWN_S
    prober.ask_due()
    assert (log, pool.draw("m")) == (["a"], None)

    says["a"] = True
    clock.now_s += 2 * FIRST_COOL_DOWN_S
    prober.ask_due()

    assert not pool.out_of_service(one)
    assert (pool.draw("m"), pool.draw("m")) == (one, None)
    pool.report(one, A)
    assert pool.draw("m") == one
    assert not prober.ask_due()


def test_a_server_that_shuts_down_is_passed_over(asked: Asked) -> None:
    """The others get its requests; it is drawn where it alone is left."""
    pool, prober, clock, says, log = asked("a", "b")
    says["a"] = False
    assert pool.draw("m", ["b"]) == pool.servers[0]
    clock.now_s += READY_EVERY_S
    prober.ask_due()
    assert log == ["a"]
    assert [pool.draw("m") for _ in range(10)] == [pool.servers[1]] * 10
    assert pool.draw("m", ["b"]) == pool.servers[0]
    assert not pool.out_of_service(pool.servers[0])


def test_a_lone_server_is_not_asked_while_in_service(asked: Asked) -> None:
    """Nothing would come of it."""
    pool, prober, clock, _, log = asked("a")
    pool.draw("m")
    clock.now_s += READY_EVERY_S
    assert not prober.ask_due()
    assert log == []


def test_passed_over_is_worse_than_the_last_resort() -> None:
    """A busy server is drawn after one of weight 0, which is there for such moments."""
    clock = Clock()
    servers = [Server("a", "http://a:1"), Server("spare", "http://s:1", weight=0.0)]
    pool = ServerPool(servers, clock=clock)
    pool.report(servers[0], B)
    assert pool.draw("m") == servers[1]
    assert pool.draw("m", ["spare"]) == servers[0]
    clock.now_s += BUSY_S
    assert pool.draw("m") == servers[0]


def test_changes_are_told() -> None:
    """Who wants to know learns of each server that leaves or comes back, once."""
    told: list[tuple[str, bool]] = []
    pool = ServerPool(
        [Server("a", "http://a:1")], notice=lambda name, out: told.append((name, out))
    )
    for outcome in (F, F, F, F, A, A):
        pool.report(pool.servers[0], outcome)
    assert told == [("a", True), ("a", False)]


def test_the_thread_lives_while_it_is_needed() -> None:
    """It begins when a server is left out, and ends when nothing is due for a while."""
    pool = ServerPool([Server("a", "http://a:1")])
    asked, ended = threading.Event(), threading.Event()

    def ask(_: Server) -> bool:
        asked.set()
        pool.report(pool.servers[0], A)
        return True

    class Watched(Prober):
        def _run(self) -> None:
            super()._run()
            ended.set()

    prober = Watched(pool, ask, look_again_s=0.01, linger_s=0.02)
    pool.ask_with(prober.wake)
    assert prober._thread is None
    for _ in range(2):
        for _ in range(FAILURES_TO_LEAVE):
            pool.report(pool.servers[0], F)
        assert asked.wait(10)
        assert ended.wait(10)
        assert prober._thread is None
        asked.clear()
        ended.clear()


@pytest.mark.parametrize(
    ("status", "ready"),
    [(200, True), (503, False), (500, False), (404, True), (401, True)],
)
def test_what_ready_means(scripted, status: int, ready: bool) -> None:
    """200 is ready, 5xx is not; an engine that does not know the path is taken to be."""

    def script(conn):
        assert conn.read_request().path == "/ready"
        conn.reply(b"", status=status)

    client = EngineClient(Limits())
    assert ready_of(client)(Server("a", scripted(script).url)) is ready
    client.close()


def test_nothing_is_not_an_answer(scripted) -> None:
    """A server that closes the connection says nothing."""
    client = EngineClient(Limits())
    assert ready_of(client)(Server("a", scripted(lambda conn: conn.read_request()).url)) is None
    client.close()
