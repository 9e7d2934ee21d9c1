"""Two processes, full of streams: what still answers, what is refused, and how slots come back."""

import pytest

from gateway.demo.engine import DemoEngine

STREAMS = 64


@pytest.fixture
def engine():
    """An engine whose streams rest after their first word."""
    with DemoEngine(model="m") as running:
        running.hold()
        yield running


@pytest.fixture
def full(start_gateway, engine, call, wire):
    """A gateway of two processes with all its slots taken by streams."""
    gateway = start_gateway(
        "--model-id=m",
        f"--worker-urls={engine.url}",
        "--workers=2",
        f"--max-inflight={STREAMS // 2}",
    )
    streams = [call(gateway).post(wire.chat_body(stream=True)) for _ in range(STREAMS)]
    for stream in streams:
        assert b"200 OK" in stream.until(b"\r\n\r\n")
        stream.until(b'"content"')
    return gateway, streams


def test_full(full, engine, call, wire):
    """Every slot of both processes is used; beyond them 503 and `retry-after`; health answers."""
    gateway, streams = full
    for _ in range(4):
        shed = call(gateway).post(wire.chat_body(), headers=["connection: close"]).rest()
        assert shed.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in shed.lower()
        alive = call(gateway).send(b"GET /livez HTTP/1.1\r\nhost: g\r\n\r\n").until(b"\r\n\r\n")
        assert b"200 OK" in alive
    for stream in streams:
        stream.close()
    gateway.requests(STREAMS + 4)
    engine.resume()
    again = [call(gateway).post(wire.chat_body(stream=True)) for _ in range(STREAMS)]
    for stream in again:
        stream.until(b"data: [DONE]\n\n")


def test_all_are_told_at_the_end(full, engine, call):
    """On TERM each of the streams goes on to its end, and the processes end."""
    gateway, streams = full
    gateway.process.terminate()
    gateway.wait_for("Handling signal: term")
    engine.resume()
    for stream in streams:
        stream.until(b"data: [DONE]\n\n")
    assert gateway.ended() == 0
