"""Metrics through real processes: right across workers, their deaths and reloads."""

import http.client
import os
import re
import signal
import socket
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.demo.engine import DemoEngine

PROFILE = "sampling: {params: {top_p: 0.95}, conflict: reject}\n"


@pytest.fixture
def engine():
    """An engine whose model is called `m`."""
    with DemoEngine(model="m") as running:
        yield running


def scrape(port, path="/metrics", headers=None):
    """The status of a scrape, and its samples: by name and labels, the value."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        text = reply.read().decode()
    finally:
        connection.close()
    if reply.status != 200 or not reply.headers["content-type"].startswith("text/plain"):
        return reply.status, {}
    samples = {
        (sample.name.removeprefix("sgl_gateway_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return reply.status, samples


def until(gateway, wanted, gone=None):
    """Scrapes until `wanted` is part of the samples, and `gone` in none; returns them."""
    end_s = time.monotonic() + 20
    samples = {}
    while time.monotonic() < end_s:
        samples = scrape(gateway.port)[1]
        if wanted.items() <= samples.items() and not samples.get(gone):
            return samples
    raise AssertionError({name: samples.get(name) for name in wanted})


def free_port():
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def chat(call, gateway, wire, **fields):
    """Sends a chat request on a connection of its own; returns the whole reply."""
    return call(gateway).post(wire.chat_body(**fields), headers=["connection: close"]).rest()


@pytest.fixture
def serve(start_gateway, engine, tmp_path):
    """A gateway in front of the engine, with the profile in a file that a test may rewrite."""
    path = tmp_path / "profile.yaml"
    path.write_text(PROFILE)

    def start(*arguments, **environ):
        return start_gateway(
            *("--model-id=m", f"--worker-urls={engine.url}", f"--api-profile-file={path}"),
            *arguments,
            environ=environ,
        )

    start.profile = path
    return start


REQUESTS = ("requests_total", "200", "chat", "chat", "ok")
REJECTED = ("requests_total", "400", "chat", "chat", "rejected")


def test_counted_across_workers_deaths_and_reloads(serve, call, wire):
    """Counters never go back; gauges count the living; a reload's outcome is told."""
    gateway = serve("--workers=2")
    for _ in range(8):
        assert b" 200 OK" in chat(call, gateway, wire)
    assert b" 400 " in chat(call, gateway, wire, top_p=0.5)
    samples = until(gateway, {REQUESTS: 8, REJECTED: 1, ("in_flight_requests",): 0})
    assert samples["contract_rejections_total", "sampling.params.top_p", "top_p"] == 1
    assert samples["contract_adjustments_total", "top_p", "written"] == 8
    assert samples["engine_attempts_total", "ok", "sgl-1"] == 8
    assert samples["errors_total", "chat", "sampling_contract_violation"] == 1
    digests = [name for name in samples if name[0] == "profile_processes"]
    assert [samples[name] for name in digests] == [2]

    victim = int(
        re.search(r"pid[^0-9]*([0-9]+)", gateway.wait_for("Booting worker.*").group()).group(1)
    )
    os.kill(victim, signal.SIGKILL)
    gateway.wait_for('"worker ready"', 3)
    until(gateway, {REQUESTS: 8, digests[0]: 2})

    serve.profile.write_text("sampling: {params: {top_p: 2}}\n")
    gateway.process.send_signal(signal.SIGHUP)
    gateway.wait_for('"worker ready"', 5)
    until(
        gateway,
        {REQUESTS: 8, ("reloads_total", "refused"): 1, ("last_reload_successful",): 0},
    )

    serve.profile.write_text(PROFILE.replace("0.95", "0.9"))
    gateway.process.send_signal(signal.SIGHUP)
    gateway.wait_for('"worker ready"', 7)
    assert b" 200 OK" in chat(call, gateway, wire)
    wanted = {REQUESTS: 9, ("reloads_total", "ok"): 1, ("last_reload_successful",): 1}
    until(gateway, wanted, gone=digests[0])  # once the old processes have ended


def test_streams(serve, call, wire, engine):
    """A running stream is in flight; its end is timed, and its tokens are counted."""
    gateway = serve("--workers=1")
    engine.hold()
    caller = call(gateway).post(wire.chat_body(stream=True, stream_options={"include_usage": True}))
    caller.until(b"data: ")
    until(gateway, {("in_flight_requests",): 1})
    engine.resume()
    caller.until(b"[DONE]")
    samples = until(gateway, {("in_flight_requests",): 0, REQUESTS: 1})
    assert samples["first_event_seconds_count", "chat", "true"] == 1
    assert samples["request_duration_seconds_count", "chat", "true"] == 1
    assert samples["tokens_total", "chat", "in", "m"] > 0
    assert samples["tokens_total", "chat", "m", "out"] > 0


def test_a_server_that_is_left_out(start_gateway, call, wire):
    """Its gauge says so, its attempts say why; shed requests are counted by reason."""
    port = free_port()
    gateway = start_gateway("--model-id=m", f"--worker-urls=http://127.0.0.1:{port}", "--workers=1")
    for _ in range(3):
        assert b" 502 " in chat(call, gateway, wire)
    samples = until(gateway, {("server_left_out", "sgl-1"): 1})
    assert samples["engine_attempts_total", "sgl-1", "upstream_unreachable"] == 3
    assert samples["requests_total", "502", "chat", "chat", "failed"] == 3


def test_a_port_of_its_own(serve, call, wire):
    """Metrics and health are there, inference is not; and the gateway's port has no metrics."""
    port = free_port()
    gateway = serve("--workers=1", SGL_GATEWAY_METRICS_PORT=str(port))
    assert b" 200 OK" in chat(call, gateway, wire)
    assert scrape(gateway.port)[0] == 404
    assert scrape(port)[1][REQUESTS] == 1
    assert [scrape(port, path)[0] for path in ("/livez", "/v1/models")] == [200, 404]


def test_clients_keys_hold_for_metrics(serve, tmp_path):
    """Where clients need a key, a scraper does too; on a port of its own it needs none."""
    keys = tmp_path / "keys"
    keys.write_text("secret-key\n")
    gateway = serve("--workers=1", f"--api-keys-file={keys}")
    assert scrape(gateway.port)[0] == 401
    assert scrape(gateway.port, headers={"authorization": "Bearer secret-key"})[0] == 200
    port = free_port()
    serve("--workers=1", f"--api-keys-file={keys}", SGL_GATEWAY_METRICS_PORT=str(port))
    assert scrape(port)[0] == 200


def test_the_directory(serve, tmp_path):
    """A named one is emptied of old values and stays; other files in it are not touched."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    old = folder / "counter_1.db"
    old.write_bytes(b"not one")
    (folder / "notes.txt").write_text("mine")
    gateway = serve("--workers=1", PROMETHEUS_MULTIPROC_DIR=str(folder))
    assert scrape(gateway.port)[0] == 200
    assert not old.exists()
    assert gateway.stop() == 0
    assert (folder / "notes.txt").read_text() == "mine"


def test_off(serve):
    """There is nothing at the path."""
    assert scrape(serve("--workers=1", SGL_GATEWAY_METRICS="false").port)[0] == 404
