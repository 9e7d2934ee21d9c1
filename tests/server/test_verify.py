import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "SGL" not in name}


@pytest.fixture
def port() -> Iterator[int]:
    """A running demo whose engine echoes what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--engine-echo", "--port", str(free)],
        stdout=subprocess.PIPE,
        text=True,
        env=_environ(),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("# ^C"):
            break
    yield free
    process.terminate()  # killed, it could not end its gateway
    process.wait(20)
    process.stdout.close()


def test_the_demo_keeps_its_promises(port: int) -> None:
    """The whole of it, over HTTP: every check passes, with fewer than 300 requests."""
    url = f"http://127.0.0.1:{port}"
    args = ["--base-url", url, "--model", "kimi-demo", "--api-profile", "moonshot-kimi"]
    result = subprocess.run(
        [sys.executable, "-m", "gateway", "verify", *args, "--engine-echo", "--format", "json"],
        capture_output=True,
        text=True,
        env=_environ(),
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert {check["state"] for check in report["checks"]} == {"passed"}
    assert {check["route"] for check in report["checks"]} == {
        "chat",
        "responses",
        "messages",
        "completions",
    }
    assert report["requests"] < 300
