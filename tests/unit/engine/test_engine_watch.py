"""What ends a wait, and what does not."""

import fcntl
import math
import resource
import select
import socket
import time
from collections.abc import Iterator

import pytest

from gateway.engine.watch import Watch
from gateway.errors import DRAINING, ClientGone, GatewayError


@pytest.fixture
def engine_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection to an engine: our end and its."""
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_the_engine_is_ready(engine_pair) -> None:
    """The wait ends with what the connection is ready for."""
    ours, theirs = engine_pair
    fd = ours.fileno()
    watch = Watch()
    assert watch.wait(fd, select.POLLIN, -math.inf) == 0
    assert watch.wait(fd, select.POLLIN | select.POLLOUT, math.inf) == select.POLLOUT
    theirs.send(b"x")
    assert watch.wait(fd, select.POLLIN, math.inf) == select.POLLIN
    both = select.POLLIN | select.POLLOUT
    assert watch.wait(fd, both, math.inf) == both


def test_the_time_is_over(engine_pair) -> None:
    """A wait is not shorter than it was asked for."""
    until_s = time.monotonic() + 0.02
    assert Watch().wait(engine_pair[0].fileno(), select.POLLIN, until_s) == 0
    assert time.monotonic() >= until_s


@pytest.mark.parametrize("how", ["leave", "half_close", "reset"])
def test_the_client_leaves(engine_pair, client_socket, how: str) -> None:
    """However it leaves, also with the engine ready at the same time."""
    ours, theirs = engine_pair
    watch = Watch(client_socket.near)
    watch.check()
    theirs.send(b"x")
    getattr(client_socket, how)()
    with pytest.raises(ClientGone):
        watch.wait(ours.fileno(), select.POLLIN, math.inf)
    with pytest.raises(ClientGone):
        watch.check()


def test_a_closed_client(client_socket) -> None:
    """A connection that the server has closed itself has no client either."""
    watch = Watch(client_socket.near)
    client_socket.near.close()
    with pytest.raises(ClientGone):
        watch.check()
    with pytest.raises(ClientGone):
        Watch(client_socket.near).check()


def test_unread_bytes_are_no_leaving(client_socket) -> None:
    """A pipelined request does not wake the wait: it would spin."""
    client_socket.far.sendall(b"GET / HTTP/1.1\r\n\r\n")
    watch = Watch(client_socket.near)
    watch.check()
    assert watch.wait(-1, 0, time.monotonic() + 0.01) == 0


def test_the_client_is_only_looked_at(client_socket) -> None:
    """Its socket keeps its time-out and its bytes."""
    client_socket.near.settimeout(7)
    Watch(client_socket.near).check()
    assert client_socket.near.gettimeout() == 7


def test_the_drain() -> None:
    """From its moment on every wait ends with a 503; before it none does."""
    watch = Watch(None, lambda: time.monotonic() + 100)
    watch.check()
    watch = Watch(None, lambda: 0.0)
    with pytest.raises(GatewayError) as error:
        watch.wait(-1, 0, math.inf)
    assert error.value.kind is DRAINING


def test_another_connection(engine_pair, client_socket) -> None:
    """A watch goes on from one connection to the next: a retry has another."""
    ours, theirs = engine_pair
    watch = Watch()
    theirs.send(b"x")
    assert watch.wait(ours.fileno(), select.POLLIN, math.inf) == select.POLLIN
    assert watch.wait(client_socket.near.fileno(), select.POLLIN, -math.inf) == 0
    ours.close()
    client_socket.far.send(b"x")
    assert watch.wait(client_socket.near.fileno(), select.POLLIN, math.inf) == select.POLLIN


def test_descriptors_above_1024(engine_pair, client_socket) -> None:
    """A busy gateway has more descriptors than `select` can wait for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("not enough descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    ours, theirs = engine_pair
    try:
        with (
            socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD, 2000)) as engine,
            socket.socket(fileno=fcntl.fcntl(client_socket.near, fcntl.F_DUPFD, 2100)) as client,
        ):
            watch = Watch(client)
            theirs.send(b"x")
            assert watch.wait(engine.fileno(), select.POLLIN, math.inf) == select.POLLIN
            client_socket.leave()
            with pytest.raises(ClientGone):
                watch.check()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
