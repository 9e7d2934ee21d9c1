"""A soak: the gateway under a steady mix of requests, watched for growth.

    python tests/soak/soak.py --minutes 10 --rate 200

Three engines (tests/server/fleet/engine.py) and a gateway of two processes are started. Of the
requests, 40 % stream, 30 % do not, 10 % are refused by the gateway (a bad body, an unknown model),
10 % leave after the first word and 10 % before the first byte. Every ten seconds the memory, the
threads and the descriptors of the gateway's processes are read.

It ends with 1 where, after the first minute, one of these has grown for good, or where a request
ended in any other way than it should. Each minute is one line.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "server" / "fleet" / "engine.py"
WORKERS = 2
SAMPLE_S = 10.0
WARM_UP_S = 60.0
PATIENCE_S = 30.0

MEMORY_GROWTH = 1.10
"""How much larger the memory of the last third may be than that of the first one."""

DESCRIPTORS_GROWTH = 16
THREADS_GROWTH = 8

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def request_of(body: bytes) -> bytes:
    """A whole request."""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: soak\r\nconnection: close\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def json_of(**fields: object) -> bytes:
    """A small chat request."""
    return json.dumps({**ASK, **fields}).encode()


@dataclass(frozen=True)
class Kind:
    """One kind of request.

    Attributes:
        share: of all requests, in hundredths.
        request: its bytes.
        read: how much of the answer is read: all of it, up to the first word, or nothing.
        right: whether an answer is as it should be.
    """

    share: int
    request: bytes
    read: str
    right: Callable[[bytes], bool]


def whole_stream(answer: bytes) -> bool:
    """A stream with its proper end."""
    return answer.startswith(b"HTTP/1.1 200") and b"data: [DONE]" in answer


def status(number: int) -> Callable[[bytes], bool]:
    """An answer of this status."""
    return lambda answer: answer.startswith(b"HTTP/1.1 %d " % number)


KINDS = {
    "stream": Kind(40, request_of(json_of(stream=True)), "all", whole_stream),
    "whole": Kind(30, request_of(json_of()), "all", status(200)),
    "refused": Kind(5, request_of(b'{"model": "m", "messages": 1'), "all", status(400)),
    "unknown": Kind(5, request_of(json_of(model="other")), "all", status(404)),
    "leaves": Kind(10, request_of(json_of(stream=True)), "word", status(200)),
    "leaves at once": Kind(10, request_of(json_of()), "nothing", lambda answer: answer == b""),
}
TURNS = [name for name, kind in KINDS.items() for _ in range(kind.share)]


@dataclass(frozen=True)
class Sample:
    """What the gateway's workers took at one moment, together."""

    at_s: float
    memory_bytes: int
    threads: int
    descriptors: int


def read_sample(began_s: float, pids: list[int]) -> Sample:
    """Reads what the processes take from /proc."""
    memory = threads = descriptors = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        fields = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", text, re.MULTILINE))
        memory += int(fields["VmRSS"]) * 1024
        threads += int(fields["Threads"])
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - only their number
    return Sample(time.monotonic() - began_s, memory, threads, descriptors)


def workers_of(pid: int) -> list[int]:
    """The processes that a process has forked."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


async def ask(port: int, name: str, ends: Counter[tuple[str, str]]) -> None:
    """One request of a kind, and what came of it."""
    kind = KINDS[name]
    try:
        answer = await asyncio.wait_for(_answer(port, kind), PATIENCE_S)
        ends[name, "right" if kind.right(answer) else repr(answer[:60])] += 1
    except (OSError, TimeoutError, EOFError) as error:
        ends[name, type(error).__name__] += 1


async def _answer(port: int, kind: Kind) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(kind.request)
        if kind.read == "nothing":
            await writer.drain()
            return b""
        if kind.read == "word":
            return await reader.readuntil(b'"content"')
        return await reader.read(-1)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def soak(port: int, pids: list[int], rate: float, minutes: float) -> int:
    """Runs the load, and tells what it found; 0 where nothing is wrong."""
    began_s = time.monotonic()
    ends: Counter[tuple[str, str]] = Counter()
    samples: list[Sample] = []
    running: set[asyncio.Task[None]] = set()
    number, sampled_s = 0, 0.0
    while (now_s := time.monotonic() - began_s) < minutes * 60:
        for number in range(number, int(now_s * rate)):  # noqa: B020 - catches up where it was late
            task = asyncio.create_task(ask(port, TURNS[number * 37 % len(TURNS)], ends))
            running.add(task)
            task.add_done_callback(running.discard)
        number = int(now_s * rate)
        if now_s >= sampled_s:
            samples.append(read_sample(began_s, pids))
            sampled_s += SAMPLE_S
            if len(samples) % round(60 / SAMPLE_S) == 1:
                _tell(samples[-1], ends)
        await asyncio.sleep(0.005)
    await asyncio.gather(*running)
    samples.append(read_sample(began_s, pids))
    _tell(samples[-1], ends)
    return _judge(samples, ends)


def _tell(sample: Sample, ends: Counter[tuple[str, str]]) -> None:
    right = sum(count for (_, end), count in ends.items() if end == "right")
    sys.stdout.write(
        f"{sample.at_s:6.0f} s  {right:8d} right  {ends.total() - right:4d} wrong"
        f"  {sample.memory_bytes / 2**20:7.1f} MiB  {sample.threads:4d} threads"
        f"  {sample.descriptors:4d} descriptors\n"
    )
    sys.stdout.flush()


def _judge(samples: list[Sample], ends: Counter[tuple[str, str]]) -> int:
    faults = [f"{name}: {end} ({count})" for (name, end), count in ends.items() if end != "right"]
    warm = [sample for sample in samples if sample.at_s >= WARM_UP_S]
    third = len(warm) // 3
    if third:
        first, last = warm[:third], warm[-third:]
        for what, allowed in (
            ("memory_bytes", lambda before: before * MEMORY_GROWTH),
            ("threads", lambda before: before + THREADS_GROWTH),
            ("descriptors", lambda before: before + DESCRIPTORS_GROWTH),
        ):
            before = max(getattr(sample, what) for sample in first)
            after = min(getattr(sample, what) for sample in last)
            if after > allowed(before):
                faults.append(f"{what} grew from {before} to {after}")
    for fault in faults:
        sys.stdout.write(f"{fault}\n")
    sys.stdout.write("nothing wrong\n" if not faults else "")
    return 1 if faults else 0


def free_port() -> int:
    """A port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Waits until something listens."""
    give_up_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def main() -> int:
    """Starts everything, and ends it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    options = parser.parse_args()
    ports = {name: free_port() for name in "abc"}
    keys = [
        {"name": name, "sgl_key_config": {"url": f"http://127.0.0.1:{port}"}}
        for name, port in ports.items()
    ]
    config = {"model_id": "m", "providers": {"sgl": {"keys": keys}}}
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        (folder / "servers.json").write_text(json.dumps(config), encoding="utf-8")

        def start(*command: str) -> subprocess.Popen[bytes]:
            log = held.enter_context((folder / "log").open("ab"))
            process = subprocess.Popen(command, stderr=log, stdout=log)
            held.callback(process.wait)
            held.callback(process.send_signal, signal.SIGTERM)
            return process

        for name, engine_port in ports.items():
            start(sys.executable, str(ENGINE), name, str(engine_port))
            wait_for(engine_port)
        port = free_port()
        serve = ("-m", "gateway", "serve", "--config", str(folder / "servers.json"))
        options_of = (f"--port={port}", f"--workers={WORKERS}", "--log-level=warning")
        gateway = start(sys.executable, *serve, *options_of)
        wait_for(port)
        time.sleep(1)  # every worker listens
        return asyncio.run(soak(port, workers_of(gateway.pid), options.rate, options.minutes))


if __name__ == "__main__":
    sys.exit(main())
