"""The driver of streams: what is raised, what is told, and what is written in silence."""

import pytest

from gateway import sse
from gateway.dialects import chat
from gateway.dialects.errors import EngineFailure
from gateway.errors import (
    DRAINING,
    UPSTREAM_PROTOCOL,
    UPSTREAM_TIMEOUT,
    ClientGone,
    EngineFault,
    GatewayError,
)
from gateway.routes import CHAT
from gateway.service.stream import Stream
from gateway.service.work import start_work

WORD = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
ERROR = b'data: {"error":{"message":"full","code":503}}\n\n'
CUT = EngineFault(UPSTREAM_PROTOCOL, "cut")
SLOW = EngineFault(UPSTREAM_TIMEOUT, "slow")
DRAIN = GatewayError(DRAINING, "ending")


class Pieces:
    """An answer that gives these pieces, and raises those that are errors."""

    def __init__(self, *pieces):
        self.left = list(pieces)
        self.committed = False

    def next(self, timeout_s):
        """The next piece."""
        piece = self.left.pop(0) if self.left else b""
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def commit(self):
        """Notes the commit."""
        self.committed = True


def stream_of(*pieces, relay=None):
    """A stream of these pieces, and its work's record."""
    records = []
    work = start_work(CHAT, "r", [records.append])
    relay = relay or chat.ChatRelay(chat.Look(), request_id="r")
    stream = Stream(Pieces(*pieces), relay, work, keepalive=b":\n", keepalive_s=1)
    return stream, work.record


@pytest.mark.parametrize("error", [CUT, SLOW, DRAIN, ClientGone()], ids=repr)
def test_a_failure_while_opening_is_raised(error):
    """Before the first frame a failure is the caller's to tell, whatever it is."""
    stream, _ = stream_of(error)
    with pytest.raises(type(error)):
        stream.open(float("inf"))


def test_an_error_frame_while_opening_is_raised():
    """An error in the stream too."""
    stream, _ = stream_of(ERROR)
    with pytest.raises(EngineFailure):
        stream.open(float("inf"))


def test_silence_while_opening_is_a_timeout():
    """Silence until the deadline is an engine that was too slow."""
    stream, _ = stream_of(None)
    with pytest.raises(EngineFault) as caught:
        stream.open(0)
    assert caught.value.kind is UPSTREAM_TIMEOUT
    assert not caught.value.retriable


def test_opening_commits_the_answer():
    """The first frame is the commit point: from then on the idle limit counts."""
    stream, record = stream_of(WORD + STOP)
    stream.open(float("inf"))
    assert stream._pieces.committed
    assert record.first_event_ms is not None
    assert list(stream) == [WORD, STOP, chat.DONE]


TOLD = {
    "cut": ([CUT], "upstream_protocol_error"),
    "stall": ([SLOW], "upstream_timeout"),
    "drain": ([DRAIN], "draining"),
    "clean end, no finish": ([b""], "upstream_protocol_error"),
    "error frame": ([ERROR], "overloaded"),
    "long line": ([b"data: " + b"x" * (sse.MAX_LINE_BYTES + 3)], "upstream_protocol_error"),
    "a bug": ([ZeroDivisionError()], "internal_error"),
}


@pytest.mark.parametrize(("pieces", "code"), TOLD.values(), ids=TOLD)
def test_a_failure_in_the_flow_is_told(pieces, code):
    """Afterwards it is one error event, and the end."""
    stream, record = stream_of(WORD, *pieces)
    stream.open(float("inf"))
    first, last = stream
    assert first == WORD
    assert f'"code":"{code}"'.encode() in last
    assert (record.outcome, record.error_code) == ("cut", code)


def test_what_came_with_an_error_is_sent_before_it():
    """Whether both come in one piece or in two makes no difference."""
    for pieces in ([WORD + ERROR], [WORD, ERROR]):
        stream, record = stream_of(*pieces)
        stream.open(float("inf"))
        first, last = stream
        assert (first, record.outcome) == (WORD, "cut")
        assert b'"message":"full"' in last


@pytest.mark.parametrize("error", [CUT, SLOW, DRAIN], ids=repr)
def test_a_whole_answer_survives_a_cut(error):
    """With every finish reason seen, a connection that breaks changes nothing."""
    stream, record = stream_of(WORD + STOP, error)
    stream.open(float("inf"))
    assert list(stream) == [WORD, STOP, chat.DONE]
    assert record.outcome == "ok"


def test_a_client_that_leaves_ends_it_without_a_word():
    """There is nobody to tell."""
    stream, record = stream_of(WORD, ClientGone())
    stream.open(float("inf"))
    assert list(stream) == [WORD]
    assert record.outcome == "client_gone"


def test_keepalives_in_silence():
    """Each silence gives one, and nothing of the stream is lost."""
    stream, _ = stream_of(WORD, None, None, STOP)
    stream.open(float("inf"))
    assert list(stream) == [WORD, b":\n", b":\n", STOP, chat.DONE]


def test_an_event_without_its_blank_line():
    """The last event counts even where the engine left out the blank line after it."""
    stream, _ = stream_of(WORD, STOP.rstrip(b"\n"))
    stream.open(float("inf"))
    assert list(stream) == [WORD, STOP, chat.DONE]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_pieces_of_any_size(size):
    """How the bytes are cut makes no difference."""
    whole = WORD + STOP + chat.DONE
    stream, _ = stream_of(*(whole[at : at + size] for at in range(0, len(whole), size)))
    stream.open(float("inf"))
    assert list(stream) == [WORD, STOP, chat.DONE]
