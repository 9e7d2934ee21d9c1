"""Engines as processes: started, waited for, stopped, and what their logs say."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from rig.install import HERE, engine_home, interpreter

START_S = 180
STOP_S = 20
SETTINGS = {"SGLANG_REQUEST_STATE_WAIT_TIMEOUT": "1", "OMP_NUM_THREADS": "1"}
"""How often it looks whether a client is still there, in seconds; and one core a process."""
POLL_S = 0.1


class EngineDied(Exception):  # noqa: N818 - it says what happened
    """An engine ended, or did not come up; the text is the end of its log."""


def wait_until(happened, within_s=10.0):
    """Waits for a condition; fails when it does not come true in time."""
    deadline_s = time.monotonic() + within_s
    while not happened():
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        time.sleep(POLL_S / 5)


@dataclass(frozen=True)
class Target:
    """An engine that a gateway is put in front of.

    Attributes:
        url: its base URL.
        model: the name that it serves.
    """

    url: str
    model: str


@dataclass
class Engine:
    """A running engine of the rig.

    Attributes:
        model: the name that it serves.
        log: the file of its output; the twin writes a line of JSON for each event of a request.
    """

    process: subprocess.Popen
    port: int
    model: str
    log: Path
    read_from: int = 0
    events: list = field(default_factory=list)

    @property
    def url(self):
        """The base URL."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, path):
        """The status of a GET; None while nobody answers."""
        with contextlib.suppress(urllib.error.URLError, OSError):
            try:
                return urllib.request.urlopen(f"{self.url}{path}", timeout=5).status
            except urllib.error.HTTPError as error:
                return error.code
        return None

    def wait_ready(self):
        """Waits until it takes requests."""
        deadline_s = time.monotonic() + START_S
        while self.get("/ready") != 200:
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                self.stop()
                raise EngineDied(f"{self.log}:\n{self.log.read_text()[-4000:]}")
            time.sleep(POLL_S)

    def noted(self):
        """The events that the twin has noted so far."""
        with self.log.open("rb") as file:
            file.seek(self.read_from)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read_from += len(line)
                if line.startswith(b'{"event"'):
                    self.events.append(json.loads(line))
        return self.events

    def wait_for(self, event, count=1, within_s=10.0):
        """The first `count` events of this kind since `forget`; fails when they do not come."""
        wait_until(lambda: len(self.named(event)) >= count, within_s)
        return self.named(event)

    def named(self, event):
        """The events of this kind since `forget`."""
        return [one for one in self.noted() if one["event"] == event]

    def forget(self):
        """Begins a new list of events."""
        self.noted()
        self.events.clear()

    def drain(self):
        """Tells it to end, as a rolling restart does: it goes on with what runs."""
        self.process.terminate()

    def kill(self):
        """Ends it and its workers at once, as a machine that fails does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends it."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_S)
        self.kill()


def start_engine(kind, *flags, wait=True):
    """Starts an engine.

    Args:
        kind: `real` or `twin`.
        flags: of SGLang.
        wait: until it is ready.
    """
    home = engine_home()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile(
        "wb", prefix=f"{kind}-{port}-", suffix=".log", delete=False
    ) as log:
        command = [interpreter(home), str(HERE / f"{kind}.py"), str(home / "model")]
        process = subprocess.Popen(
            [*command, "--port", str(port), *flags],
            stdout=log,
            stderr=log,
            env=os.environ | SETTINGS,
            start_new_session=True,  # so that its workers can be ended with it
        )
    engine = Engine(process, port, "tiny" if kind == "real" else "twin", Path(log.name))
    if wait:
        engine.wait_ready()
    return engine
