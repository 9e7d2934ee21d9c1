import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from gateway.cli.main import run


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], tuple[int, list[bytes]]]]:
    """Starts a server that answers one request with these bytes; returns its port and requests."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(answer: bytes) -> tuple[int, list[bytes]]:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        requests: list[bytes] = []

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                requests.append(connection.recv(65536))
                connection.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return listener.getsockname()[1], requests

    yield start
    for thread in threads:
        thread.join()
    for listener in listeners:
        listener.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
DRAINING = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "out", "err"),
    [
        pytest.param(OK, 0, "ready\n", "", id="ready"),
        pytest.param(DRAINING, 1, "", "not ready: /readyz answered 503\n", id="draining"),
        pytest.param(b"", 1, "", "not ready: ", id="no-answer"),
        pytest.param(b"SSH-2.0\r\n\r\n", 1, "", "not ready: ", id="not-http"),
    ],
)
def test_health(
    answering: Callable[[bytes], tuple[int, list[bytes]]],
    capsys: pytest.CaptureFixture[str],
    answer: bytes,
    status: int,
    out: str,
    err: str,
) -> None:
    """0 when the gateway is ready; 1 and the reason on standard error when it is not."""
    port, requests = answering(answer)
    assert run(["health", "--url", f"http://127.0.0.1:{port}"]) == status
    shown = capsys.readouterr()
    assert shown.out == out
    assert shown.err.startswith(err)
    assert requests[0].startswith(b"GET /readyz HTTP/1.1\r\n")


def test_a_path_is_asked_as_it_is(answering: Callable[[bytes], tuple[int, list[bytes]]]) -> None:
    """Behind a proxy, readiness has another path."""
    port, requests = answering(OK)
    assert run(["health", "--url", f"http://127.0.0.1:{port}/gw/livez?x=1"]) == 0
    assert requests[0].startswith(b"GET /gw/livez?x=1 HTTP/1.1\r\n")


def test_without_a_url_the_settings_say_where(
    answering: Callable[[bytes], tuple[int, list[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe in the container needs no URL; a gateway on all addresses is asked on loopback."""
    port, _ = answering(OK)
    monkeypatch.setenv("SGL_GATEWAY_HOST", "0.0.0.0")  # noqa: S104
    monkeypatch.setenv("SGL_GATEWAY_PORT", str(port))
    assert run(["health"]) == 0


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    """A refused connection is a gateway that is not ready."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert run(["health", "--url", f"http://127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err.startswith("not ready: ")


@pytest.mark.parametrize("url", ["127.0.0.1:1", "ftp://h", "http://", "http://h:x"])
def test_no_url(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A URL that is none is the caller's mistake: status 2."""
    assert run(["health", "--url", url]) == 2
    assert capsys.readouterr().err.startswith(f"sgl-gateway: --url: {url!r} is not ")
