"""Engines that fail while they answer, or have no room: what each dialect is told."""

import contextlib
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from rig.asking import DIALECTS, user
from rig.processes import wait_until
from rig.raw import Leaver, request
from rig.scripts import script

SUCCESS = {"chat": "[DONE]", "responses": "response.completed", "messages": "message_stop"}
"""What an SDK takes for a proper end."""


def names(events):
    """The events' names; chat has none, so of its events the data where it is a text."""
    return [name or (data if isinstance(data, str) else "chunk") for name, data in events]


def error_of(dialect, events):
    """The message of the one error that ends a stream; its place and shape are checked."""
    name, data = events[-1]
    match dialect.name:
        case "chat":
            assert set(data["error"]) == {"message", "type", "param", "code"}
            assert [key for key, other in events[:-1] if "error" in other] == []
            message = data["error"]["message"]
        case "responses":
            assert name == "response.failed"
            assert data["response"]["status"] == "failed"
            assert data["response"]["error"]["code"] == "server_error"
            message = data["response"]["error"]["message"]
        case "messages":
            assert name == "error"
            assert data["type"] == "error"
            message = data["error"]["message"]
    assert SUCCESS[dialect.name] not in names(events)
    return message


def streamed(gateway, dialect, prompt, **options):
    """A stream's reply, read to its end."""
    body = dialect.body([user(prompt)], budget=6000, **options)
    return request(gateway, dialect.path, {"model": gateway.model, "stream": True, **body})


@pytest.mark.parametrize("status", [500, 503])
def test_a_failure_within_a_stream(serve, twin, speaks, dialect, status):
    """After the first words a failure is the one error event of the dialect, and no proper end."""
    gateway = serve(twin, speaks=speaks)
    fail = {"status": status, "message": "The batch failed.", "after": 12}

    reply = streamed(gateway, dialect, script(words=100, fail=fail))

    assert reply.status == 200
    assert "word" in reply.body.decode()
    assert error_of(dialect, reply.events)


def test_an_abort_within_a_stream(serve, twin, dialect):
    """An abort without a reason (`finish_reason: abort`) is an engine's failure, not an end."""
    gateway = serve(twin)

    reply = streamed(gateway, dialect, script(words=100, fail={"after": 8}))

    assert error_of(dialect, reply.events) == "The engine aborted the generation."


def test_an_abort_of_a_buffered_answer(serve, twin, dialect):
    """The same is a 502 where nothing was sent yet."""
    gateway = serve(twin)
    body = dialect.body([user(script(words=100, fail={"after": 8}))])

    reply = request(gateway, dialect.path, {"model": gateway.model, **body})

    assert (reply.status, reply.headers["x-router-error-code"]) == (502, "upstream_aborted")


def test_an_engine_that_is_killed(serve, start_engine):
    """A machine that fails: streams are told, buffered requests get a 502, then so does each."""
    engine = start_engine("twin")
    gateways = [serve(engine, speaks=speaks) for speaks in ("chat", "messages")]
    pairs = [(gateway, dialect) for gateway in gateways for dialect in DIALECTS.values()]
    prompt = script(words=4000, token_ms=20)
    with ThreadPoolExecutor(12) as pool:
        engine.forget()
        streams = [pool.submit(streamed, *pair, prompt) for pair in pairs]
        for wire in [gateway.wire for gateway in gateways]:
            wait_until(lambda wire=wire: [one.status for one in wire.exchanges] == [200] * 3)
        whole = [pool.submit(buffered, *pair, prompt) for pair in pairs]
        engine.wait_for("begin", 12)
        engine.kill()

        for (_, dialect), reply in zip(pairs, streams, strict=True):
            assert reply.result().status == 200
            message = error_of(dialect, reply.result().events)
            assert message == "The engine cut its reply off."
        for reply in whole:
            assert reply.result().status == 502
    for gateway, dialect in pairs:
        after = buffered(gateway, dialect, "Hello?")
        assert (after.status, after.headers["x-router-error-code"]) == (502, "upstream_unreachable")


def buffered(gateway, dialect, prompt):
    """A whole answer's reply."""
    body = dialect.body([user(prompt)], budget=6000)
    return request(gateway, dialect.path, {"model": gateway.model, **body})


def test_an_engine_that_drains(serve, start_engine, dialect):
    """A rolling restart: what runs is answered to its end, and so is what still comes in."""
    engine = start_engine("twin")
    gateway = serve(engine)
    with ThreadPoolExecutor(1) as pool:
        engine.forget()
        running = pool.submit(streamed, gateway, dialect, script(words=120, token_ms=20))
        engine.wait_for("begin")

        engine.drain()
        wait_until(lambda: engine.get("/ready") == 503)
        late = buffered(gateway, dialect, "Still there?")

        assert late.status == 200
        reply = running.result()
    assert SUCCESS[dialect.name] in names(reply.events)


def loads(engine):
    """Running and waiting requests of an engine."""
    with urllib.request.urlopen(f"{engine.url}/v1/loads", timeout=5) as reply:  # noqa: S310
        [rank] = json.load(reply)["loads"]
    return rank["num_running_reqs"], rank["num_waiting_reqs"]


@pytest.fixture(scope="module")
def crowd():
    """The clients that keep an engine busy; they leave when all tests are done."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def crowded(serve, narrow, crowd):
    """An engine that has no room for a request more."""
    gateway = serve(narrow)
    chat = DIALECTS["chat"]
    body = chat.body([user("Go on.")], budget=8000, ignore_eos=True)

    def is_full():
        if loads(narrow) == (1, 1):
            return True
        client = Leaver(gateway, chat.path, {"model": gateway.model, "stream": True, **body})
        crowd.callback(client.leave)
        return False

    wait_until(is_full)
    return narrow


def test_a_full_queue(serve, crowded, speaks, dialect, stream):
    """A full engine is a 503 in the caller's dialect, though its streams begin with a 200."""
    gateway = serve(crowded, speaks=speaks)
    body = dialect.body([user("Hello.")])

    reply = request(gateway, dialect.path, {"model": gateway.model, "stream": stream, **body})

    assert reply.status == 503
    if dialect.name == "messages":
        assert reply.json["error"]["type"] == "overloaded_error"
    else:
        error = reply.json["error"]
        assert (error["type"], error["code"]) == ("server_error", "overloaded")
