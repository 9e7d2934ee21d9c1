"""Reading request bodies: limits, lengths, encodings and slow senders."""

import contextlib
import gzip
import io
import socket
import sys
import threading
import zlib

import pytest
from gunicorn.http.errors import InvalidChunkSize, NoMoreData

from gateway.errors import ClientGone, GatewayError
from gateway.web.body import BodyLimits, read_body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMITS = BodyLimits(stall_s=5.0, total_s=10.0)


def environ(body=b"{}", *, chunked=False, **headers):
    """A WSGI request with this body."""
    found = {"wsgi.input": io.BytesIO(body), "CONTENT_TYPE": "application/json"}
    if chunked:
        found["wsgi.input_terminated"] = True
    else:
        found["CONTENT_LENGTH"] = str(len(body))
    return found | headers


def failure(wsgi, max_bytes=1024, limits=LIMITS):
    """The error that reading gives: status, code and message."""
    with pytest.raises(GatewayError) as caught:
        read_body(wsgi, max_bytes, limits)
    return caught.value.kind.status, caught.value.kind.code, caught.value.message


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_limit(chunked):
    """A body of exactly the limit is read, one byte more is 413, with a length or without."""
    assert read_body(environ(b"x" * 1024, chunked=chunked), 1024, LIMITS) == b"x" * 1024
    status, code, message = failure(environ(b"x" * 1025, chunked=chunked))
    assert (status, code) == (413, "request_too_large")
    assert message == "The request body is larger than 1024 bytes."


class Untouched(io.BytesIO):
    """A body that must not be read."""

    def read(self, size=-1, /):
        """Fails the test."""
        raise AssertionError(f"read {size} bytes of a body that is too large")


def test_announced_length_over_the_limit_is_refused_unread():
    """A length over the limit is enough to refuse: nothing is read."""
    wsgi = environ(CONTENT_LENGTH="2048", **{"wsgi.input": Untouched()})
    assert failure(wsgi)[0] == 413


def test_shorter_than_announced():
    """Half a body is not taken for a whole one."""
    assert failure(environ(b"{}", CONTENT_LENGTH="50")) == (
        400,
        "bad_request",
        "The request body ended after 2 of 50 bytes.",
    )


@pytest.mark.parametrize("length", ["abc", "-1", "1.5", "٣"])
def test_length_that_is_no_number(length):
    """A length that is no whole number is 400."""
    assert failure(environ(CONTENT_LENGTH=length))[:2] == (400, "bad_request")


@pytest.mark.parametrize("length", ["", "0"])
def test_no_body(length):
    """No body is an empty body, which the JSON reader then refuses."""
    assert read_body(environ(b"", CONTENT_LENGTH=length), 1024, LIMITS) == b""


TYPES = {
    "application/json": True,
    "application/json; charset=utf-8": True,
    "Application/JSON": True,
    "": True,
    "text/plain": False,
    "application/x-www-form-urlencoded": False,
    "application/jsonp": False,
}


@pytest.mark.parametrize(("kind", "accepted"), TYPES.items())
def test_content_type(kind, accepted):
    """JSON with any parameters, or no type at all; another type is 415."""
    wsgi = environ(CONTENT_TYPE=kind)
    if accepted:
        assert read_body(wsgi, 1024, LIMITS) == b"{}"
    else:
        assert failure(wsgi)[:2] == (415, "unsupported_media_type")


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
    "identity": bytes,
}


@pytest.mark.parametrize(("name", "encode"), ENCODERS.items())
def test_encodings(name, encode):
    """A compressed body is decoded; the limit holds for what comes out."""
    whole = b'{"a":"' + b"x" * 1000 + b'"}'
    wsgi = environ(encode(whole), HTTP_CONTENT_ENCODING=name)
    assert read_body(wsgi, len(whole), LIMITS) == whole
    bomb = environ(encode(b"x" * (10 * 1024 * 1024)), HTTP_CONTENT_ENCODING=name)
    assert failure(bomb, max_bytes=64 * 1024)[0] == 413


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("cut", [1, 5, -1], ids=["a byte", "five bytes", "all but a byte"])
def test_corrupt_compression(name, cut):
    """A compressed body that is cut or is none is 400."""
    whole = ENCODERS[name](b'{"a":1}')
    assert failure(environ(whole[:cut], HTTP_CONTENT_ENCODING=name))[:2] == (400, "bad_request")
    assert failure(environ(b"{}", HTTP_CONTENT_ENCODING=name))[:2] == (400, "bad_request")


def test_several_members():
    """Both formats may hold several members one after the other."""
    for name in ("gzip", "zstd"):
        raw = ENCODERS[name](b'{"a":') + ENCODERS[name](b"1}")
        assert read_body(environ(raw, HTTP_CONTENT_ENCODING=name), 1024, LIMITS) == b'{"a":1}'


@pytest.mark.parametrize("name", ["br", "gzip, gzip", "compress"])
def test_unknown_encoding(name):
    """An encoding that is not known is 415, and the message lists those that are."""
    status, _, message = failure(environ(HTTP_CONTENT_ENCODING=name))
    assert status == 415
    assert message == (f"The content encoding {name!r} is not one of: deflate, gzip, x-gzip, zstd.")


class Failing(io.BytesIO):
    """A body whose reading fails."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def read(self, size=-1, /):
        """Raises."""
        raise self.error


@pytest.mark.parametrize("error", [InvalidChunkSize(b"zz"), NoMoreData(), OSError("x")])
def test_malformed_chunks(error):
    """What the server makes of a malformed or cut chunked body is 400, never a 500."""
    wsgi = environ(chunked=True, **{"wsgi.input": Failing(error)})
    assert failure(wsgi)[:2] == (400, "bad_request")


def test_broken_connection():
    """A connection that breaks while the body is read leaves nobody to answer."""
    wsgi = environ(chunked=True, **{"wsgi.input": Failing(ConnectionResetError())})
    with pytest.raises(ClientGone):
        read_body(wsgi, 1024, LIMITS)


@pytest.fixture
def pair():
    """A client's socket and the server's end of it."""
    client, server = socket.socketpair()
    with client, server:
        yield client, server


def test_stalled_body(pair):
    """A body that stops arriving is 408; the socket's own time-out is put back."""
    client, server = pair
    client.sendall(b"{")
    with server.makefile("rb", buffering=0) as source:
        wsgi = environ(CONTENT_LENGTH="10", **{"wsgi.input": source, "gunicorn.socket": server})
        status, code, _ = failure(wsgi, limits=BodyLimits(stall_s=0.05, total_s=10))
    assert (status, code) == (408, "request_timeout")
    assert server.gettimeout() is None


def test_slow_body(pair):
    """A body that trickles in within the stall limit still ends at its deadline."""
    client, server = pair
    ended = threading.Event()

    def trickle():
        with contextlib.suppress(BrokenPipeError):  # the reader has given up
            while not ended.wait(0.02):
                client.sendall(b" ")

    sender = threading.Thread(target=trickle)
    sender.start()
    try:
        with server.makefile("rb") as source:
            wsgi = environ(
                CONTENT_LENGTH="1000000", **{"wsgi.input": source, "gunicorn.socket": server}
            )
            assert failure(wsgi, 1 << 20, BodyLimits(stall_s=10, total_s=0.2))[0] == 408
    finally:
        ended.set()
        sender.join()
