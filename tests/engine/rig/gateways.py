"""The gateway as an operator runs it, in front of an engine whose wire is recorded."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import anthropic
import openai

from rig.wire import Wire

START_S = 30
STOP_S = 20
POLL_S = 0.02
CLIENT_KEY = "no-key-is-asked-for"


@dataclass
class Gateway:
    """A running gateway.

    Attributes:
        url: its base URL.
        model: the name that is asked for.
        wire: what the engine behind it got.
    """

    process: subprocess.Popen
    log: Path
    model: str
    wire: Wire
    url: str = ""
    clients: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def wait_ready(self):
        """Waits until it takes requests."""
        deadline_s = time.monotonic() + START_S
        while "worker ready" not in (text := self.log.read_text()):
            assert self.process.poll() is None, text
            assert time.monotonic() < deadline_s, text
            time.sleep(POLL_S)
        self.url = re.search(r"Listening at: (http://[0-9.:]+)", text)[1]

    @property
    def openai(self):
        """OpenAI's own client of it, which tries nothing twice."""
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=CLIENT_KEY, max_retries=0)
        return self.clients.enter_context(client)

    @property
    def anthropic(self):
        """Anthropic's own client of it, which tries nothing twice."""
        client = anthropic.Anthropic(base_url=self.url, api_key=CLIENT_KEY, max_retries=0)
        return self.clients.enter_context(client)

    @property
    def sent(self):
        """The bodies that its engine got in this test, decoded."""
        return [exchange.json for exchange in self.wire.exchanges]

    def stop(self):
        """Ends it."""
        self.clients.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.wire.close()


def start_gateway(target, *flags, api_key=None, speaks="chat"):
    """Starts a gateway before a target (anything with `url` and `model`).

    Args:
        target: that is asked.
        flags: of `serve`.
        api_key: that it presents to the engine.
        speaks: the dialect in which it asks the engine, `chat` or `messages`.
    """
    wire = Wire(target.url)
    command = [str(Path(sys.executable).with_name("sgl-gateway")), "serve", "--port", "0"]
    command += ["--workers", "1", "--model-id", target.model, "--log-format", "json"]
    command += [*settings_flags(wire, api_key, speaks), *flags]
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SGL_GATEWAY_", "SGLANG_ROUTER_", "GUNICORN_"))
    }
    with tempfile.NamedTemporaryFile("wb", prefix="gateway-", suffix=".log", delete=False) as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    gateway = Gateway(process, Path(log.name), target.model, wire)
    gateway.wait_ready()
    return gateway


def settings_flags(wire, api_key, speaks):
    """The flags that name the engine: the short form, or a settings file for Messages."""
    if speaks == "chat":
        return ["--worker-urls", wire.url] + (["--worker-api-key", api_key] if api_key else [])
    key = {
        "name": "engine",
        "value": api_key or "",
        "models": ["*"],
        "use_anthropic_endpoints": True,
        "sgl_key_config": {"url": wire.url},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump({"providers": {"sgl": {"keys": [key]}}}, file)
    return ["--config", file.name]
