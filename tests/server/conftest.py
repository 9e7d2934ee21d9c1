"""Real processes: the gateway under gunicorn, started and stopped as an operator does."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import types
from dataclasses import dataclass, field

import pytest

READY_S = 20
END_S = 20


@dataclass
class Gateway:
    """A running gateway.

    `url` is its base URL; `lines` are its log lines so far, read from standard error.
    """

    process: subprocess.Popen
    url: str = ""
    lines: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def port(self):
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    def read(self):
        """Collects the log until the process ends."""
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, pattern, count=1, timeout_s=READY_S):
        """Waits until `count` log lines match; returns the last match."""

        def matches():
            return [found for line in self.lines if (found := re.search(pattern, line))]

        with self.changed:
            enough = self.changed.wait_for(lambda: len(matches()) >= count, timeout_s)
            assert enough, f"no {pattern!r} in:\n" + "\n".join(self.lines)
            return matches()[count - 1]

    def requests(self, count):
        """The log records of the first `count` requests that ended, once they have."""
        self.wait_for('"event": ?"request"', count)
        records = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [record for record in records if record["event"] == "request"]

    def ended(self):
        """Waits for the process to end; returns its exit status."""
        return self.process.wait(END_S)

    def stop(self):
        """Ends it as a process manager does; returns its exit status."""
        self.process.terminate()
        return self.ended()


def clean_environment():
    """This process's, without what would change the gateway's settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SGL_GATEWAY_", "SGLANG_ROUTER_", "GUNICORN_"))
    }


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory):
    """Starts processes outside the checkout.

    Python and gunicorn import from the current folder first; what is tested is what is installed.
    """
    with contextlib.chdir(tmp_path_factory.mktemp("elsewhere")):
        yield


@pytest.fixture
def start_gateway():
    """Starts gateways: `start_gateway(*arguments, environ={})` gives a `Gateway` that is ready."""
    with contextlib.ExitStack() as stack:

        def start(*arguments, environ=None, command=None):
            command = command or [sys.executable, "-m", "gateway", "serve", "--port", "0"]
            process = subprocess.Popen(
                [*command, *arguments],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                env=clean_environment() | {"SGL_GATEWAY_LOG_FORMAT": "json"} | (environ or {}),
            )
            gateway = Gateway(process)
            reader = threading.Thread(target=gateway.read)
            reader.start()

            def end():
                process.kill() if process.poll() is None else None
                process.wait()
                reader.join()
                process.stderr.close()

            stack.callback(end)
            stack.callback(lambda: process.poll() is None and gateway.stop())
            gateway.url = gateway.wait_for(r"Listening at: (http://[0-9.:]+)").group(1)
            workers = next((one for one in arguments if one.startswith("--workers=")), "=1")
            gateway.wait_for('"worker ready"', int(workers.partition("=")[2]))
            return gateway

        yield start


def chat_body(**fields):
    """A small chat request."""
    return json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    ).encode()


def chunk(delta=None, finish=None):
    """A chat chunk as an engine writes it."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    payload = {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


ROLE = chunk({"role": "assistant", "content": ""})
WORD = chunk({"content": "word"})
STOP = chunk({}, "stop")
DONE = b"data: [DONE]\n\n"
REPLY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
        ],
    }
).encode()


class Caller:
    """A client's connection, byte by byte."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=READY_S)
        self.buffer = b""

    def post(self, body=None, path="/v1/chat/completions", headers=()):
        """Sends a whole request."""
        body = chat_body() if body is None else body
        lines = [
            f"POST {path} HTTP/1.1",
            "host: gateway",
            "content-type: application/json",
            f"content-length: {len(body)}",
            *headers,
        ]
        self.send("\r\n".join([*lines, "", ""]).encode() + body)
        return self

    def send(self, data):
        """Sends bytes."""
        self.sock.sendall(data)
        return self

    def until(self, mark):
        """Reads until `mark` has come; returns what came up to its end."""
        while mark not in self.buffer:
            data = self.sock.recv(65536)
            assert data, f"the end, and no {mark!r} in {self.buffer!r}"
            self.buffer += data
        got, mark, self.buffer = self.buffer.partition(mark)
        return got + mark

    def rest(self):
        """Reads to the end of the connection (a reset ends it too)."""
        with contextlib.suppress(ConnectionError):
            while data := self.sock.recv(65536):
                self.buffer += data
        return self.buffer

    def close(self):
        """The client leaves."""
        self.sock.close()

    def half_close(self):
        """The client says that it will send no more."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """The client's connection breaks."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


@pytest.fixture
def call():
    """Connects to a gateway: `call(gateway)` gives a `Caller`."""
    callers = []

    def connect(gateway):
        callers.append(Caller(gateway.port))
        return callers[-1]

    yield connect
    for caller in callers:
        caller.close()


@pytest.fixture
def wire():
    """The pieces that scripts and callers write: bodies and chunks."""
    return types.SimpleNamespace(
        chat_body=chat_body,
        chunk=chunk,
        role=ROLE,
        word=WORD,
        stop=STOP,
        done=DONE,
        reply=REPLY,
    )
