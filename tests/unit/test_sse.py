"""The rules of Server-Sent Events, and what the gateway decides beyond them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import sse
from gateway.sse import Decoder, Event, LineTooLong, render_event

KINDS = {
    "one": (b"data: {}\n\n", [Event(None, b"{}", b"data: {}\n\n")]),
    "no space": (b"data:[DONE]\n\n", [Event(None, b"[DONE]", b"data:[DONE]\n\n")]),
    "trailing space stays": (b"data: [DONE] \n\n", [Event(None, b"[DONE] ", b"data: [DONE] \n\n")]),
    "one space only": (b"data:  x\n\n", [Event(None, b" x", b"data:  x\n\n")]),
    "two in one piece": (
        b"data: 1\n\ndata: 2\n\n",
        [Event(None, b"1", b"data: 1\n\n"), Event(None, b"2", b"data: 2\n\n")],
    ),
    "typed": (
        b"event: message_stop\ndata: {}\n\n",
        [Event("message_stop", b"{}", b"event: message_stop\ndata: {}\n\n")],
    ),
    "type after the data": (
        b"data: x\nevent: e\n\n",
        [Event("e", b"x", b"data: x\nevent: e\n\n")],
    ),
    "the last type counts": (
        b"event: a\nevent: b\ndata: x\n\n",
        [Event("b", b"x", b"event: a\nevent: b\ndata: x\n\n")],
    ),
    "a type is for one event": (
        b"event: a\ndata: x\n\ndata: y\n\n",
        [Event("a", b"x", b"event: a\ndata: x\n\n"), Event(None, b"y", b"data: y\n\n")],
    ),
    "a type without data is no event": (
        b"event: a\n\ndata: y\n\n",
        [Event(None, b"y", b"data: y\n\n")],
    ),
    "an empty type is none": (b"event:\ndata: x\n\n", [Event(None, b"x", b"event:\ndata: x\n\n")]),
    "two data lines": (
        b"data: a\ndata: b\n\n",
        [Event(None, b"a\nb", b"data: a\ndata: b\n\n")],
    ),
    "an empty data line": (
        b"event: ping\ndata:\n\n",
        [Event("ping", b"", b"event: ping\ndata:\n\n")],
    ),
    "a data line without a colon": (b"data\n\n", [Event(None, b"", b"data\n\n")]),
    "two empty data lines": (b"data\ndata\n\n", [Event(None, b"\n", b"data\ndata\n\n")]),
    "comments alone": (b": PROCESSING\n\n:\n\n", []),
    "a comment glued to data": (
        b": PROCESSING\ndata: x\n: more\n\n",
        [Event(None, b"x", b"data: x\n\n")],
    ),
    "id, retry, unknown": (
        b"id: 7\nretry: 10\nfoo: bar\ndata: x\n\n",
        [Event(None, b"x", b"id: 7\nretry: 10\nfoo: bar\ndata: x\n\n")],
    ),
    "id alone": (b"id: 7\n\n", []),
    "a name is matched whole": (b"dataset: x\n data: y\nDATA: z\n\n", []),
    "CRLF": (b"data: x\r\n\r\n", [Event(None, b"x", b"data: x\r\n\r\n")]),
    "CR": (
        b"data: x\r\rdata: y\r\r",
        [
            Event(None, b"x", b"data: x\r\r"),
            Event(None, b"y", b"data: y\r\r"),
        ],
    ),
    "blank lines between": (b"\n\n\ndata: x\n\n\n\n", [Event(None, b"x", b"data: x\n\n")]),
    "byte-order mark": (b"\xef\xbb\xbfdata: x\n\n", [Event(None, b"x", b"data: x\n\n")]),
    "a second byte-order mark is text": (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", []),
    "a line separator is text": (
        "data: a\u2028b\u2029c\u0085d\x0b\x0c\x1ce\n\n".encode(),
        [
            Event(
                None,
                "a\u2028b\u2029c\u0085d\x0b\x0c\x1ce".encode(),
                "data: a\u2028b\u2029c\u0085d\x0b\x0c\x1ce\n\n".encode(),
            )
        ],
    ),
    "characters": (
        "data: 北京🙂é\n\n".encode(),
        [Event(None, "北京🙂é".encode(), "data: 北京🙂é\n\n".encode())],
    ),
    "no blank line yet": (b"data: x\n", []),
    "nothing": (b"", []),
}


def feed(pieces: list[bytes]) -> list[Event]:
    """The events of a stream that arrives in these pieces."""
    decoder = Decoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize(("stream", "events"), KINDS.values(), ids=KINDS)
def test_decoder_reads(stream: bytes, events: list[Event]) -> None:
    """Each rule of the format, the stream in one piece."""
    assert feed([stream]) == events


@pytest.mark.parametrize(("stream", "events"), KINDS.values(), ids=KINDS)
def test_decoder_reads_byte_by_byte(stream: bytes, events: list[Event]) -> None:
    """A cut anywhere changes nothing: one byte a piece gives the same events, raw included."""
    assert feed([bytes([byte]) for byte in stream]) == events


@pytest.mark.parametrize(("stream", "events"), KINDS.values(), ids=KINDS)
def test_decoder_reads_in_two_pieces(stream: bytes, events: list[Event]) -> None:
    """A cut anywhere changes nothing: every place for one cut."""
    for cut in range(len(stream) + 1):
        assert feed([stream[:cut], stream[cut:]]) == events, cut


@given(
    parts=st.lists(
        st.sampled_from(
            [b"data", b":", b" ", b"x", b"\n", b"\r", b"\r\n", b"event", b"\xef\xbb\xbf", b"\xe2"]
        ),
        max_size=30,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=8),
)
def test_decoder_every_split(parts: list[bytes], cuts: list[int]) -> None:
    """Whatever the stream and wherever it is cut, types and payloads are the same."""
    stream = b"".join(parts)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    whole = feed([stream])
    cut = feed([stream[a:b] for a, b in itertools.pairwise(edges)])
    assert [event[:2] for event in cut] == [event[:2] for event in whole]


@given(
    payloads=st.lists(st.binary(max_size=40).filter(lambda b: not set(b"\r\n") & set(b))),
    end=st.sampled_from([b"\n", b"\r", b"\r\n"]),
    size=st.integers(1, 50),
)
def test_raw_is_the_stream(payloads: list[bytes], end: bytes, size: int) -> None:
    """The `raw` of all events, joined, is the stream that was sent."""
    stream = b"".join(b"data: " + payload + end + end for payload in payloads)
    events = feed([stream[at : at + size] for at in range(0, len(stream), size)])
    assert b"".join(event.raw for event in events) == stream
    assert [event.data for event in events] == payloads


def test_an_event_is_not_held_back() -> None:
    """The blank line's CR completes the event: a LF that may follow is not waited for."""
    decoder = Decoder()
    assert decoder.feed(b"data: x\r\n\r") == [Event(None, b"x", b"data: x\r\n\r\n")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: y\r\n\r\n") == [Event(None, b"y", b"data: y\r\n\r\n")]


@pytest.mark.parametrize(
    ("stream", "left"),
    [
        (b"data: x\n\n", b""),
        (b"data: x\n", b"data: x\n"),
        (b"data: x\n\ndata: [DO", b"data: [DO"),
        (b"event: a\ndata: b", b"event: a\ndata: b"),
        (b"\xef\xbb", b"\xef\xbb"),
        (b"", b""),
    ],
)
def test_finish_tells_what_is_left(stream: bytes, left: bytes) -> None:
    """An event without its blank line is none, and the end says that it was there."""
    decoder = Decoder()
    decoder.feed(stream)
    assert decoder.finish() == left
    assert decoder.feed(b"data: new\n\n") == [Event(None, b"new", b"data: new\n\n")]


def pieces_of(stream: bytes, size: int = 65536) -> list[bytes]:
    """The stream, cut every `size` bytes."""
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@pytest.mark.parametrize("size", [65536, sse.MAX_LINE_BYTES + 2], ids=["pieces", "whole"])
def test_the_longest_line(size: int) -> None:
    """A line of 16 MiB is read, one byte more is an error."""
    payload = b"x" * (sse.MAX_LINE_BYTES - len(b"data: "))
    [event] = feed(pieces_of(b"data: " + payload + b"\n\n", size))
    assert event.data == payload
    with pytest.raises(LineTooLong):
        feed(pieces_of(b"data: x" + payload + b"\n\n", size))


def test_a_line_without_an_end() -> None:
    """A line that never ends is an error once it is too long, not when the stream ends."""
    decoder = Decoder()
    for _ in range(sse.MAX_LINE_BYTES // 65536):
        decoder.feed(b"x" * 65536)
    with pytest.raises(LineTooLong):
        decoder.feed(b"xxx")


def test_an_event_without_an_end() -> None:
    """An event of lines without end is an error: the memory is bounded."""
    decoder = Decoder()
    line = b"data: " + b"x" * 65536 + b"\n"
    for _ in range(sse.MAX_EVENT_BYTES // len(line)):
        decoder.feed(line)
    with pytest.raises(LineTooLong):
        decoder.feed(line)


def test_comments_are_not_kept() -> None:
    """Comments in a long silence take no memory and end up in no event."""
    decoder = Decoder()
    for _ in range(1000):
        assert decoder.feed(b": keep-alive\n") == []
    assert decoder.finish() == b""


@pytest.mark.parametrize(
    ("data", "event", "wire"),
    [
        (b"{}", None, b"data: {}\n\n"),
        (b"{}", "ping", b"event: ping\ndata: {}\n\n"),
        (b"", None, b"data: \n\n"),
        (b"a\nb\r\nc\rd", None, b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
        (b"a\n", None, b"data: a\ndata: \n\n"),
        ("é\u2028".encode(), None, "data: é\u2028\n\n".encode()),
    ],
)
def test_render(data: bytes, event: str | None, wire: bytes) -> None:
    """One `data` line for each line of the payload, and a blank line."""
    assert render_event(data, event) == wire


@pytest.mark.parametrize("event", ["a\nb", "a\rb", "a\n"])
def test_render_refuses_a_forged_field(event: str) -> None:
    """A type with a line end would forge a field."""
    with pytest.raises(ValueError, match="line end"):
        render_event(b"{}", event)


@given(data=st.binary(max_size=60), event=st.none() | st.sampled_from(["error", "a b"]))
def test_what_is_rendered_is_read_back(data: bytes, event: str | None) -> None:
    """Reading what was rendered gives the payload, its line ends as LF."""
    [read] = feed([b"\n", render_event(data, event)])
    assert read.event == event
    assert read.data == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
