import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """A running demo and its three command lines."""
    environ = {name: value for name, value in os.environ.items() if "SGL" not in name}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--port", str(_free_port())],
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("# ^C"):
            break
    yield process, [line for line in lines if line.startswith("curl ")]
    process.terminate()  # killed, it could not end its gateway
    process.wait(20)
    process.stdout.close()


def _send(line: str) -> tuple[int, str]:
    """What the command line would have sent: status and body of the answer."""
    words = shlex.split(line)
    url = next(word for word in words if word.startswith("http://"))
    body = words[words.index("-d") + 1].encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310 - loopback
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_first_line_shows_defaults_written_in(
    demo: tuple["subprocess.Popen[str]", list[str]],
) -> None:
    """The engine tells values that the client did not send."""
    status, body = _send(demo[1][0])
    assert status == 200
    content = json.loads(body)["choices"][0]["message"]["content"]
    assert "top_p 0.95, top_k 1000, frequency_penalty 0, presence_penalty 0 and n 1" in content


def test_the_second_line_is_refused(demo: tuple["subprocess.Popen[str]", list[str]]) -> None:
    """Temperature 1.5 is outside Kimi's band, and the error says so."""
    status, body = _send(demo[1][1])
    assert status == 400
    assert json.loads(body)["error"]["code"] == "sampling_contract_violation"
    assert json.loads(body)["error"]["param"] == "temperature"


def test_the_third_line_streams(demo: tuple["subprocess.Popen[str]", list[str]]) -> None:
    """Word by word, with the proper end."""
    status, body = _send(demo[1][2])
    assert status == 200
    assert body.count("data: {") > 20
    assert body.endswith("data: [DONE]\n\n")


def test_a_taken_port_is_told(
    demo: tuple["subprocess.Popen[str]", list[str]],
) -> None:
    """A second demo on the same port says so and ends with 2."""
    url = next(word for word in demo[1][0].split() if word.startswith("http://"))
    port = url.split(":")[2].partition("/")[0]
    second = subprocess.run(
        [sys.executable, "-m", "gateway", "demo", "--port", port],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        f"sgl-gateway: port {port} on 127.0.0.1 is taken: end what listens there,"
        " or choose another --port\n"
    )


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_it_ends_whole(number: int, status: int) -> None:
    """TERM and ^C end the engine and the gateway; the port is free again."""
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while not process.stdout.readline().startswith("# ^C"):
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (status, "", "")
    with socket.create_server(("127.0.0.1", port)):
        pass
