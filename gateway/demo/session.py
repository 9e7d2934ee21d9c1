"""A demo from start to end: the engine, a real gateway before it, three lines to paste."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from gateway.contract import decide
from gateway.demo.engine import DemoEngine
from gateway.jsonbody import parse_object
from gateway.profile import Loaded
from gateway.routes import CHAT
from gateway.settings import demo_environment
from gateway.startup import check_addresses

_WORD_DELAY_S: Final = 0.06
_START_S: Final = 20.0
_STOP_S: Final = 10.0
_POLL_S: Final = 0.05

_REFUSED: Final[tuple[dict[str, Any], ...]] = (
    {"temperature": 1.5},
    {"temperature": 3},
    {"n": 64},
    {"top_p": 0.123},
)
"""Tried in this order, until one is refused by the profile."""


def run_demo(
    loaded: Loaded,
    flags: Iterable[str],
    port: int,
    say: Callable[[str], None],
    *,
    echoes: bool = False,
) -> int:
    """Runs until the gateway ends or the process is told to.

    Args:
        loaded: the profile in effect, for the lines that show it.
        flags: that make `serve` choose the same one.
        port: of the gateway.
        say: takes what the user is to read.
        echoes: the engine answers with what it gets, for `verify --engine-echo`.

    Returns:
        The exit status: the gateway's where it could not start, else 0.

    Raises:
        SettingsError: the port is taken.
        KeyboardInterrupt: on ^C, when all has ended.
    """
    stop = threading.Event()
    name = model_name(loaded)
    check_addresses([("127.0.0.1", port)])  # else what listens there might be taken for ours
    with DemoEngine(model=name, word_delay_s=_WORD_DELAY_S, echoes=echoes) as engine:
        command = [sys.executable, "-m", "gateway", "serve", "--port", str(port)]
        command += ["--worker-urls", engine.url, "--model-id", name, "--workers", "1", *flags]
        command += ["--log-format", "text", "--log-level", "warning"]
        command += ["--", "--graceful-timeout", "4"]
        # In a session of its own, so that ^C at the terminal reaches it through us alone.
        gateway = subprocess.Popen(command, env=demo_environment(), start_new_session=True)  # noqa: S603 - our own program
        before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            if _wait_ready(gateway, port, stop):
                say(render_lines(loaded, name, port))
            while gateway.poll() is None and not stop.wait(_POLL_S):
                pass
            return gateway.returncode or 0
        finally:
            _end(gateway)
            signal.signal(signal.SIGTERM, before)


def model_name(loaded: Loaded) -> str:
    """The demo's model: `kimi-demo` for the profile moonshot-kimi."""
    words = re.findall(r"[a-z0-9.]+", (loaded.profile.name or "").lower())
    return f"{words[-1] if words else 'model'}-demo"


def render_lines(loaded: Loaded, model: str, port: int) -> str:
    """What the user reads: comments and command lines, to be pasted whole or one by one."""
    profile = loaded.profile
    url = f"http://127.0.0.1:{port}"
    hello: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
    refused = next((extra for extra in _REFUSED if _refuses(loaded, hello | extra)), None)
    if refused is None:
        refusal = "# This profile refuses nothing; what the engine refuses is passed on:"
        refused = {"temperature": -1}
    else:
        field, value = next(iter(refused.items()))
        refusal = f"# A refusal: {field} {value} is not in the contract."
    written = ", ".join(_written(loaded, hello))
    default = (
        f"# Defaults written in ({written}): the engine tells what it was asked with."
        if written
        else "# This profile writes nothing in: the engine tells what it was asked with."
    )
    return "\n".join(
        (
            f"# {model} on {url}, with the profile {profile.name or loaded.source}.",
            default,
            _curl(url, hello),
            refusal,
            _curl(url, hello | refused),
            "# A stream.",
            _curl(url, hello | {"stream": True}, stream=True),
            "# ^C ends the demo.",
        )
    )


def _curl(url: str, body: Mapping[str, Any], *, stream: bool = False) -> str:
    option = "-sN" if stream else r"-s -w '\n'"
    return (
        f"curl {option} {url}/v1/chat/completions -H 'content-type: application/json'"
        f" -d '{json.dumps(body)}'"
    )


def _refuses(loaded: Loaded, body: Mapping[str, Any]) -> bool:
    verdict = decide(loaded.profile, CHAT, parse_object(json.dumps(body).encode()))
    return verdict.rejection is not None


def _written(loaded: Loaded, body: Mapping[str, Any]) -> list[str]:
    return sorted(decide(loaded.profile, CHAT, parse_object(json.dumps(body).encode())).edits)


def _wait_ready(gateway: "subprocess.Popen[bytes]", port: int, stop: threading.Event) -> bool:
    """Whether the gateway came up; not where it ended, took too long, or the demo is to stop."""
    for _ in range(int(_START_S / _POLL_S)):
        if gateway.poll() is not None or stop.wait(_POLL_S):
            return False
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == http.client.OK:
                    return True
            finally:
                connection.close()
    return False


def _end(gateway: "subprocess.Popen[bytes]") -> None:
    """Ends the gateway: it drains, and is killed where it does not."""
    gateway.terminate()
    try:
        gateway.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        gateway.kill()
        gateway.wait()
