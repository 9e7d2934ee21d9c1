"""Three engines that die, drain and come back under load: what clients see of it."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ENGINE = Path(__file__).parent / "fleet" / "engine.py"
NAMES = ("a", "b", "c")
PATIENCE_S = 20

CONFIG = {
    "model_id": "m",
    "providers": {"sgl": {"keys": [], "network_config": {"max_retries": 2}}},
}


@dataclass
class Seen:
    """What a client saw of one request.

    `ending` is `whole`, `told` (an error that was said to be one) or `cut`.
    """

    began_s: float
    stream: bool
    status: int = 0
    ending: str = "cut"
    engine: str = ""


class Load:
    """Requests at a steady rate, each second one a stream, from clients of their own."""

    def __init__(self, gateway, rate):
        self.gateway = gateway
        self.seen = []
        self.changed = threading.Condition()
        self._gap_s = 1 / rate
        self._over = threading.Event()
        self._clients = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        for client in self._clients:
            client.join()

    def wait_for(self, happened):
        """Waits until what was seen so far says so."""
        with self.changed:
            assert self.changed.wait_for(lambda: happened(self.seen), PATIENCE_S)

    def wait_served_by(self, name, times=3):
        """Waits until an engine has answered some requests that begin from now on."""
        now_s = time.monotonic()
        self.wait_for(
            lambda seen: sum(one.engine == name and one.began_s > now_s for one in seen) >= times
        )

    def _run(self):
        number = 0
        while not self._over.wait(self._gap_s):
            number += 1
            client = threading.Thread(target=self._ask, args=(number % 2 == 0,))
            client.start()
            self._clients.append(client)

    def _ask(self, stream):
        seen = Seen(time.monotonic(), stream)
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._read(seen)
        with self.changed:
            self.seen.append(seen)
            self.changed.notify_all()

    def _read(self, seen):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=PATIENCE_S)
        message = {"role": "user", "content": "hi"}
        body = {"model": "m", "messages": [message], "stream": seen.stream}
        headers = {"content-type": "application/json", "connection": "close"}
        with contextlib.closing(connection):
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            reply = connection.getresponse()
            seen.status = reply.status
            text = reply.read().decode()
        seen.engine = next(iter(re.findall(r'"content": ?"([abc])"', text)), "")
        if seen.status != 200 or '"error"' in text:
            seen.ending = "told"
        elif not seen.stream or text.endswith("data: [DONE]\n\n"):
            seen.ending = "whole"


class Fleet:
    """Engines by name, each on a port that it keeps."""

    def __init__(self):
        self.ports = {}
        self.processes = {}
        for name in NAMES:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.ports[name] = probe.getsockname()[1]

    def start(self, name):
        """Starts an engine and waits until it takes connections."""
        port = str(self.ports[name])
        self.processes[name] = subprocess.Popen([sys.executable, str(ENGINE), name, port])
        give_up_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            assert self.processes[name].poll() is None
        raise AssertionError(f"{name} does not start")

    def kill(self, name):
        """Ends an engine at once."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self):
        """Ends all that is still there."""
        for name in self.processes:
            self.kill(name)


@pytest.fixture
def fleet():
    """Three engines that run."""
    engines = Fleet()
    try:
        for name in NAMES:
            engines.start(name)
        yield engines
    finally:
        engines.stop()


@pytest.fixture
def gateway(fleet, start_gateway, tmp_path):
    """A gateway of two processes in front of them."""
    config = json.loads(json.dumps(CONFIG))
    config["providers"]["sgl"]["keys"] = [
        {"name": name, "sgl_key_config": {"url": f"http://127.0.0.1:{port}"}}
        for name, port in fleet.ports.items()
    ]
    path = tmp_path / "servers.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return start_gateway("--config", str(path), "--workers=2")


def bad(seen):
    """What went wrong, for the message of a failure."""
    return [one for one in seen if (one.status, one.ending) != (200, "whole")]


def test_an_engine_that_is_killed(fleet, gateway):
    """No client sees it but those whose stream had begun, and they are told.

    The dead engine gets no traffic once it is left out, and gets it again when it is back.
    """
    with Load(gateway, rate=50) as load:
        load.wait_for(lambda seen: {one.engine for one in seen} >= set(NAMES))
        killed_s = time.monotonic()
        fleet.kill("b")
        gateway.wait_for("server b is left out", count=2)  # each process finds out for itself
        load.wait_served_by("a", times=30)
        fleet.start("b")
        load.wait_served_by("b")

    for one in bad(load.seen):
        assert one.stream
        assert one.ending == "told"
        assert one.began_s < killed_s
    again = sum(record["attempts"] - 1 for record in gateway.requests(len(load.seen)))
    # Three in a row for each process, and what was under way at that moment.
    assert 0 < again <= 2 * 3 + 20


def test_engines_that_are_restarted_one_by_one(fleet, gateway):
    """A rolling restart costs no request and no stream: a draining engine is passed over."""
    with Load(gateway, rate=30) as load:
        load.wait_for(lambda seen: {one.engine for one in seen} >= set(NAMES))
        for name in NAMES:
            process = fleet.processes[name]
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
            fleet.start(name)
            load.wait_served_by(name)

    assert bad(load.seen) == []
