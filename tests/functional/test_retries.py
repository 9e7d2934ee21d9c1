"""Which server a request goes to after failures, and when: breaker, busy servers, back-off."""

import itertools
import json
import threading

import pytest

from gateway.service import gateway as service

JSON = ("content-type: application/json", "connection: close")


class Answers:
    """A script that gives one answer to each request, and is always ready.

    Attributes:
        requests: how many there were, the question whether it is ready left aside.
    """

    def __init__(self, body=b'{"message":"no"}', *headers, status=200):
        self.body = body
        self.headers = headers
        self.status = status
        self.requests = 0

    def __call__(self, conn):
        if conn.read_request().path == "/ready":
            conn.reply(b"", headers=JSON)
            return
        self.requests += 1
        conn.reply(self.body, status=self.status, headers=(*JSON, *self.headers))


@pytest.fixture
def ok(wire):
    """A script that answers every request."""
    return Answers(json.dumps(wire.reply()).encode())


@pytest.fixture
def waits(monkeypatch):
    """The longest wait that each retry was allowed, in seconds; none is waited."""
    allowed = []

    def no_wait(low, high):
        assert low == 0
        allowed.append(high)
        return 0.0

    monkeypatch.setattr(service.random, "uniform", no_wait)
    return allowed


def test_a_stream_cut_before_its_first_word(serve, scripted, wire, ok):
    """Nothing was shown of it, so another server is asked; the role alone says nothing."""

    def cut(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.frame(wire.chunk({"role": "assistant", "content": ""})))

    def whole(conn):
        conn.read_request()
        conn.begin_stream()
        for event in (wire.text("word"), wire.chunk(finish="stop")):
            conn.chunk(wire.frame(event))
        conn.chunk(wire.done)
        conn.chunk(b"")

    first, second = scripted(cut), scripted(whole)
    servers = [{"url": first.url}, {"url": second.url, "weight": 0.0}]
    reply = serve(servers=servers).chat(stream=True)
    assert (reply.status_code, b"word" in reply.content, first.connections) == (200, True, 1)


def test_one_generation_at_a_time(serve, scripted, wire):
    """The first server's connection is closed before the second is asked."""
    closed = threading.Event()

    def aborts(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(b'data: {"error":{"message":"full","code":503}}\n\n')
        if conn.wait_closed():
            closed.set()

    def waits_for_it(conn):
        conn.read_request()
        assert closed.wait(10)
        conn.reply(b'{"message":"no"}', status=400, headers=JSON)

    first, second = scripted(aborts), scripted(waits_for_it)
    servers = [{"url": first.url}, {"url": second.url, "weight": 0.0}]
    assert serve(servers=servers).chat(stream=True).status_code == 400


@pytest.mark.parametrize(
    ("retries", "allowed"),
    [
        pytest.param("0", [], id="none"),
        pytest.param("1", [0.1], id="one"),
        pytest.param("3", [0.1, 0.2, 0.25], id="doubled-up-to-the-limit"),
        pytest.param("9", [0.1, 0.2, 0.25], id="each-server-once"),
    ],
)
def test_waits_between_servers(serve, scripted, waits, retries, allowed):
    """Up to `max_retries` others are asked, each once, after a random part of a growing wait."""
    engines = [scripted(Answers(status=502)) for _ in range(4)]
    client = serve(
        urls=[engine.url for engine in engines],
        max_retries=retries,
        retry_backoff_initial="100",
        retry_backoff_max="250",
    )
    assert client.chat().status_code == 502
    assert waits == allowed
    assert sum(engine.connections for engine in engines) == len(allowed) + 1


def test_a_wait_beyond_the_deadline(serve, scripted, monkeypatch):
    """There would be no time left for another server: the failure is told at once."""
    monkeypatch.setattr(service.random, "uniform", lambda _low, high: high)
    engines = [scripted(Answers(status=503)) for _ in range(2)]
    client = serve(
        urls=[engine.url for engine in engines],
        retry_backoff_initial="60000",
        retry_backoff_max="60000",
        default_request_timeout_in_seconds="30",
    )
    assert client.chat().status_code == 503
    assert sum(engine.connections for engine in engines) == 1


@pytest.mark.parametrize("status", [503, 429])
def test_a_busy_server_is_passed_over(serve, scripted, ok, waits, status):
    """The next requests go to the others, while it is left to work."""
    busy = Answers(b'{"message":"no"}', "retry-after: 5", status=status)
    servers = [{"url": scripted(busy).url}, {"url": scripted(ok).url, "weight": 0.0}]
    client = serve(servers=servers)

    statuses = [client.chat().status_code for _ in range(4)]

    assert statuses == ([200] * 4 if status == 503 else [429, 200, 200, 200])
    assert busy.requests == 1


def test_a_busy_lone_server_is_asked_on(serve, scripted):
    """Back-pressure never takes the last server out of service."""
    busy = Answers(status=503)
    client = serve(urls=[scripted(busy).url])
    assert [client.chat().status_code for _ in range(6)] == [503] * 6
    assert busy.requests == 6


@pytest.mark.parametrize(("status", "asked"), [(500, 3), (504, 3), (400, 6), (422, 6)])
def test_failures_in_a_row_take_a_server_out(serve, scripted, ok, status, asked):
    """Three answers of 5xx do, refusals do not; then others have its requests."""
    failing = Answers(status=status)
    servers = [{"url": scripted(failing).url}, {"url": scripted(ok).url, "weight": 0.0}]
    client = serve(servers=servers)

    statuses = [client.chat().status_code for _ in range(6)]

    assert failing.requests == asked
    assert statuses == [status] * asked + [200] * (6 - asked)


def test_a_lone_server_that_answers_is_not_taken_out(serve, scripted):
    """One client's bad requests must not take the only server from all the others."""
    failing = Answers(status=500)
    client = serve(urls=[scripted(failing).url])
    assert [client.chat().status_code for _ in range(6)] == [500] * 6
    assert client.simulate_get("/readyz").status_code == 200


def test_a_lone_server_that_is_dead(serve, refused_url):
    """After three tries clients are told at once, and the gateway is not ready."""
    client = serve(urls=[refused_url])
    codes = [client.chat().json["error"]["code"] for _ in range(4)]
    assert codes == ["upstream_unreachable"] * 3 + ["no_healthy_servers"]
    assert client.simulate_get("/readyz").status_code == 503


def test_a_dead_server_gets_no_traffic(serve, scripted, ok, refused_url, waits):
    """No client notices; the readiness of the gateway does not depend on it."""
    client = serve(urls=[refused_url, scripted(ok).url])
    assert [client.chat().status_code for _ in range(20)] == [200] * 20
    assert ok.requests == 20
    assert client.simulate_get("/readyz").status_code == 200
    assert len(waits) == 3


def test_a_server_comes_back(serve, scripted, ok):
    """Once it says that it is ready, one request tries it, and then all may."""
    said = threading.Event()
    down = threading.Event()
    down.set()

    def script(conn):
        if down.is_set():
            conn.reset()
            return
        ok(conn)
        said.set()

    client = serve(urls=[scripted(script).url])
    assert [client.chat().status_code for _ in range(4)] == [502, 502, 502, 503]
    down.clear()

    assert said.wait(10)
    tries = iter(lambda: client.chat().status_code, 200)  # up to the first that succeeds
    assert set(itertools.islice(tries, 10_000)) <= {503}
    assert [client.chat().status_code for _ in range(5)] == [200] * 5
