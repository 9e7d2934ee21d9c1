"""Where a body ends, whatever way its bytes are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.framing import Chunked, Framing, FramingError, Sized, UntilClose, framing_of


def feed(framing: Framing, pieces: list[bytes]) -> bytes:
    """The body in these pieces, as far as it goes."""
    return b"".join(framing.feed(piece) for piece in pieces if not framing.done)


@pytest.mark.parametrize(
    ("status", "codings", "lengths", "kind"),
    [
        (200, ["chunked"], [], Chunked),
        (200, [" CHUNKED "], ["5"], Chunked),
        (200, [], ["5"], Sized),
        (200, [], ["5, 5", "5"], Sized),
        (200, [], [], UntilClose),
        (204, ["chunked"], [], Sized),
        (304, [], ["5"], Sized),
    ],
)
def test_told_apart(status: int, codings: list[str], lengths: list[str], kind: type) -> None:
    """By the head alone; chunks win over a length, and some statuses have no body."""
    assert type(framing_of(status, codings, lengths)) is kind


@pytest.mark.parametrize(
    ("codings", "lengths"),
    [
        (["gzip"], []),
        (["gzip, chunked"], []),
        (["chunked", "chunked"], []),
        (["identity"], ["1"]),
        ([], ["1", "2"]),
        ([], [""]),
        ([], ["+1"]),
        ([], ["-1"]),
        ([], ["1_0"]),
        ([], ["0x1"]),
        ([], ["٣"]),
        ([], ["9" * 40]),
    ],
    ids=str,
)
def test_heads_that_contradict(codings: list[str], lengths: list[str]) -> None:
    """A framing that cannot be relied on is an error, not a guess."""
    with pytest.raises(FramingError):
        framing_of(200, codings, lengths)


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=30), max_size=6),
    extension=st.sampled_from([b"", b";a=b", b" ; x", b"\t"]),
    trailers=st.sampled_from([b"", b"a: b\r\n", b"a: b\r\nc: d\r\n"]),
    cuts=st.lists(st.integers(0, 300), max_size=10),
)
def test_chunks_in_every_cut(
    chunks: list[bytes], extension: bytes, trailers: bytes, cuts: list[int]
) -> None:
    """The body is the chunks, and is whole at the chunk of no bytes, wherever the cuts are."""
    wire = b"".join(b"%X%b\r\n%b\r\n" % (len(c), extension, c) for c in chunks)
    wire += b"0\r\n" + trailers + b"\r\n"
    edges = [0, *sorted(cut for cut in cuts if cut < len(wire)), len(wire)]
    framing = Chunked()
    assert feed(framing, [wire[a:b] for a, b in itertools.pairwise(edges)]) == b"".join(chunks)
    assert framing.done
    whole = Chunked()
    assert whole.feed(wire) == b"".join(chunks)
    assert whole.clean


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1_0\r\n",
        b" 1\r\n",
        b"1 1\r\n",
        b"1\na\r\n",
        b"1\r\nab\r\n",
        b"1\r\na\n",
        b"11111111111111111\r\n",
        b"1" * 5000,
        b"1;" + b"x" * 5000,
        b"0\r\n" + b"x" * 70_000,
        b"0\r\n" + b"a: b\r\n" * 20_000,
    ],
    ids=lambda wire: f"{wire[:12]!r} of {len(wire)}",
)
def test_chunks_that_are_none(wire: bytes) -> None:
    """Anything but the grammar is an error, in one piece or byte by byte."""
    for pieces in ([wire], [*(bytes([byte]) for byte in wire[:8000]), wire[8000:]]):
        framing = Chunked()
        with pytest.raises(FramingError):
            feed_all(framing, pieces)


def feed_all(framing: Chunked, pieces: list[bytes]) -> None:
    """Feeds the pieces, and raises what came after the last bytes that could be read."""
    for piece in pieces:
        framing.feed(piece)
        if framing.error is not None:
            raise framing.error


def test_what_came_before_an_error_is_not_lost() -> None:
    """Bytes of the body that arrive together with broken framing are the body's all the same."""
    framing = Chunked()
    assert framing.feed(b"2\r\nab\r\nzz\r\n") == b"ab"
    assert framing.error is not None
    assert not framing.done


@pytest.mark.parametrize(
    ("framing", "wire", "body", "done", "clean"),
    [
        (Sized(0), b"", b"", True, True),
        (Sized(2), b"ab", b"ab", True, True),
        (Sized(2), b"abc", b"ab", True, False),
        (Sized(3), b"ab", b"ab", False, False),
        (UntilClose(), b"ab", b"ab", False, False),
        (Chunked(), b"0\r\n", b"", True, False),
        (Chunked(), b"0\r\n\r\n", b"", True, True),
        (Chunked(), b"0\r\n\r\nx", b"", True, False),
        (Chunked(clean_end=False), b"0\r\n\r\n", b"", True, False),
    ],
)
def test_whole_and_clean(
    framing: Framing, wire: bytes, body: bytes, done: bool, clean: bool
) -> None:
    """Whole: all of the body is there. Clean: the connection stands right behind it."""
    assert framing.feed(wire) == body
    assert (framing.done, framing.clean) == (done, clean)


@pytest.mark.parametrize(
    ("framing", "wire", "proper"),
    [
        (UntilClose(), b"", True),
        (UntilClose(), b"ab", True),
        (Sized(2), b"ab", True),
        (Sized(2), b"a", False),
        (Chunked(), b"", False),
        (Chunked(), b"1\r\na\r\n", False),
        (Chunked(), b"0\r", False),
        (Chunked(), b"0\r\n", True),
        (Chunked(), b"0\r\na: b", True),
    ],
)
def test_the_end_of_the_connection(framing: Framing, wire: bytes, proper: bool) -> None:
    """It ends a body that has no other end, and cuts any other."""
    framing.feed(wire)
    if proper:
        framing.end()
        assert framing.done
        assert not framing.clean
    else:
        with pytest.raises(FramingError):
            framing.end()
