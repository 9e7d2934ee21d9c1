import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from gateway.cli.serve import gunicorn_conf
from gateway.demo.engine import DemoEngine

KIMI = "extends: moonshot-kimi\n"


class Gunicorn:
    """gunicorn, started directly with the gateway's file, and what it logs."""

    def __init__(self, environ: dict[str, str], *options: str) -> None:
        own = {name: value for name, value in os.environ.items() if "SGL" not in name}
        command = [sys.executable, "-m", "gunicorn", "-c", str(gunicorn_conf()), *options]
        command.append("gateway.web.app:get_app()")
        self.process = subprocess.Popen(
            command, env=own | environ, stderr=subprocess.PIPE, text=True
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.seen: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.put(line)
        self.lines.put(None)

    def wait_for(self, text: str) -> dict[str, Any]:
        """The next log line with this text."""
        while True:
            line = self.lines.get(timeout=30)
            assert line is not None, f"ended without {text!r}: {self.seen}"
            self.seen.append(line)
            if text in line:
                entry: dict[str, Any] = json.loads(line)
                return entry

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def ended(self) -> tuple[int, str]:
        """The status, and what was said."""
        status = self.process.wait(30)
        self._reader.join()
        return status, "".join(line for line in iter(self.lines.get, None))


@pytest.fixture
def start() -> Iterator[Callable[..., Gunicorn]]:
    """Starts gunicorn; ends it after the test."""
    running: list[Gunicorn] = []

    def begin(environ: dict[str, str], *options: str) -> Gunicorn:
        running.append(Gunicorn(environ, *options))
        return running[-1]

    yield begin
    for one in running:
        one.end()


@pytest.fixture
def engine() -> Iterator[DemoEngine]:
    """A running engine."""
    with DemoEngine() as running:
        yield running


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def _environ(url: str, **others: str) -> dict[str, str]:
    own = {"WORKER_URLS": url, "MODEL_ID": "kimi", "WORKERS": "1", "LOG_FORMAT": "json"}
    return {f"SGL_GATEWAY_{name}": value for name, value in (own | others).items()}


def _chat(port: str, **fields: object) -> tuple[int, dict[str, Any]]:
    body = {"model": "kimi", "messages": [{"role": "user", "content": "Hi"}]} | fields
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310 - loopback
            return reply.status, json.loads(reply.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"SGL_GATEWAY_WORKER_URLS": ""}, "no base URL configured: ", id="no-url"),
        pytest.param({"SGL_GATEWAY_PORT": "x"}, "SGL_GATEWAY_PORT: 'x' is not", id="setting"),
        pytest.param({"SGLANG_ROUTER_API_PROFILE": "nope"}, "nope", id="profile"),
        pytest.param({"SGL_GATEWAY_API_KEYS_FILE": "/no"}, "cannot read /no", id="keys"),
        pytest.param({"SGL_GATEWAY_HOST": "192.0.2.1"}, "192.0.2.1 is not an address", id="host"),
    ],
)
def test_gunicorn_started_directly_refuses_too(
    start: Callable[..., Gunicorn], change: dict[str, str], complaint: str
) -> None:
    """One line that says why, status 2, and no worker is forked."""
    status, said = start(_environ("http://127.0.0.1:9", PORT=_free_port()) | change).ended()
    own = [line for line in said.splitlines() if not line.startswith('{"time"')]
    assert (status, len(own)) == (2, 1)
    assert own[0].startswith("sgl-gateway: ")
    assert complaint in own[0]
    assert "Booting worker" not in said


def test_a_taken_port_is_not_tried_again(start: Callable[..., Gunicorn], taken: str) -> None:
    """Status 2 at once; gunicorn alone would try for five seconds and end with 1."""
    status, said = start(_environ("http://127.0.0.1:9", PORT=taken)).ended()
    assert status == 2
    assert f"sgl-gateway: port {taken} on 127.0.0.1 is taken" in said
    assert "Booting worker" not in said


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param(["--threads", "8"], "threads 8: 264 are needed", id="threads"),
        pytest.param(["-k", "asgi"], "worker class asgi", id="worker-class"),
    ],
)
def test_options_that_break_a_promise_are_refused(
    start: Callable[..., Gunicorn], options: list[str], complaint: str
) -> None:
    """Fewer threads than requests at work would let health checks starve."""
    gunicorn = start(_environ("http://127.0.0.1:9", PORT=_free_port()), *options)
    status, said = gunicorn.ended()
    assert status == 2
    assert complaint in said


def test_the_line_at_the_start(start: Callable[..., Gunicorn], engine: DemoEngine) -> None:
    """It names profile, source, digest and servers, and neither an address nor a key."""
    environ = _environ(engine.url, PORT=_free_port(), WORKER_API_KEY="s3cret", WORKER_URL="x")
    gunicorn = start(environ | {"SGLANG_ROUTER_API_PROFILE": "moonshot-kimi"})
    warned = gunicorn.wait_for("SGL_GATEWAY_WORKER_URL ")
    line = gunicorn.wait_for('"serving"')
    assert warned["level"] == "warning"
    assert line["profile"] == "moonshot-kimi"
    assert line["servers"] == ["sgl-1"]
    assert line["model"] == "kimi"
    assert len(line["digest"]) >= 8
    assert line["clients"] == "open"
    gunicorn.wait_for("Booting worker")
    assert not [text for text in gunicorn.seen if "s3cret" in text or engine.url in text]


def test_a_reload_brings_in_the_profile_and_refuses_a_broken_one(
    start: Callable[..., Gunicorn], engine: DemoEngine, tmp_path: Path
) -> None:
    """HUP: a valid profile takes over; a broken one is told, and the old stays in force."""
    profile, port = tmp_path / "p.yaml", _free_port()
    profile.write_text(KIMI)
    environ = _environ(engine.url, PORT=port, CONNECT_TIMEOUT_IN_SECONDS="2")
    gunicorn = start(environ | {"SGLANG_ROUTER_API_PROFILE": str(profile)})
    gunicorn.wait_for("Booting worker")
    assert _chat(port, temperature=1.5)[0] == 400

    profile.write_text(KIMI + "sampling: {params: {temperature: {max: 2}}}\n")
    gunicorn.process.send_signal(signal.SIGHUP)
    gunicorn.wait_for('"serving"')
    gunicorn.wait_for("Worker exiting")
    assert _chat(port, temperature=1.5)[0] == 200

    profile.write_text("samplign: {}\n")
    gunicorn.process.send_signal(signal.SIGHUP)
    refused = gunicorn.wait_for("reload refused")
    assert refused["level"] == "error"
    assert str(profile) in refused["event"]
    gunicorn.wait_for("Worker exiting")
    assert _chat(port, temperature=1.5)[0] == 200
    assert _chat(port, temperature=2.5)[0] == 400

    gunicorn.process.send_signal(signal.SIGTERM)
    assert gunicorn.ended()[0] == 0
