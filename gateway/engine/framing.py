"""Where the body of an engine's reply ends, without I/O: bytes in, the body's bytes out.

HTTP has three framings: chunks, a length, and the end of the connection. They are told apart by
the head (`framing_of`); each is a small machine with the same face. urllib3 reads a body in
calls that block until a chunk's size line is whole and lose what they had read when they are
interrupted; a machine that is fed bytes can wait for them in between as long as it likes.

Rules: a chunk's size is hexadecimal digits and nothing else, its extensions are ignored, lines
end with CRLF; anything else is no longer HTTP and is an error, as is a body that ends early.
Bytes after the end are never part of the body, and the connection is not used again.
"""

import re
from collections.abc import Sequence
from typing import Final, Protocol

MAX_SIZE_LINE_BYTES: Final = 4096
MAX_TRAILER_BYTES: Final = 65536

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;.*)?", re.DOTALL)
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_NO_BODY: Final = frozenset({204, 304})


class FramingError(ValueError):
    """The reply is not HTTP, or ended early; the text goes on "the engine …"."""


class Framing(Protocol):
    """A body being read.

    Attributes:
        done: the body is whole.
        clean: the connection stands at the end of the reply, so that it can be used again.
        error: what came after the bytes that were fed last cannot be read.
    """

    done: bool
    clean: bool
    error: FramingError | None

    def feed(self, data: bytes) -> bytes:
        """The body's bytes in the connection's next bytes.

        Raises:
            FramingError: these cannot be read.
        """
        ...

    def end(self) -> None:
        """The connection ended.

        Raises:
            FramingError: the body is not whole.
        """
        ...


def framing_of(
    status: int, transfer_encodings: Sequence[str], content_lengths: Sequence[str]
) -> Framing:
    """The framing of a reply to a GET or POST.

    Args:
        status: of the reply.
        transfer_encodings: the values of that header; they win over a length.
        content_lengths: the values of that header.

    Raises:
        FramingError: they contradict each other, or name a coding that was not asked for.
    """
    if status in _NO_BODY:
        return Sized(0)
    codings = [part.strip().lower() for value in transfer_encodings for part in value.split(",")]
    if codings:
        if codings != ["chunked"]:
            raise FramingError("framed its reply in a way that was not asked for")
        return Chunked(clean_end=not content_lengths)
    lengths = {part.strip() for value in content_lengths for part in value.split(",")}
    if not lengths:
        return UntilClose()
    if len(lengths) > 1 or not _LENGTH.fullmatch(min(lengths)):
        raise FramingError("sent a reply whose length cannot be read")
    return Sized(int(min(lengths)))


class Sized:
    """A body of known length."""

    error: FramingError | None = None

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.clean = self.done

    def feed(self, data: bytes) -> bytes:
        """The part of `data` that belongs to the body."""
        body = data[: self._left]
        self._left -= len(body)
        self.done = self._left == 0
        self.clean = self.done and len(body) == len(data)
        return body

    def end(self) -> None:
        """The connection ended: an error while bytes are missing."""
        self.clean = False
        if not self.done:
            raise FramingError(f"sent {self._left} bytes less than its reply has")


class UntilClose:
    """A body that ends with the connection."""

    error: FramingError | None = None

    def __init__(self) -> None:
        self.done = False
        self.clean = False

    def feed(self, data: bytes) -> bytes:
        """All of it."""
        return data

    def end(self) -> None:
        """The connection ended, and with it the body."""
        self.done = True


class Chunked:
    """A body in chunks: size line, bytes, CRLF; a chunk of no bytes, trailers, a blank line.

    The body is whole at the chunk of no bytes: trailers say nothing that is used here.

    Args:
        clean_end: whether the connection may be used again after the end.
    """

    def __init__(self, *, clean_end: bool = True) -> None:
        self.done = False
        self.clean = False
        self._clean_end = clean_end
        self._left = 0  # bytes of the chunk that are still to come
        self._after = False  # the chunk's own CRLF is still to come
        self._line = b""  # the beginning of a line that is not whole
        self._trailer_bytes = 0
        self.error: FramingError | None = None

    def feed(self, data: bytes) -> bytes:
        """The chunks' bytes in `data`, joined."""
        parts: list[bytes] = []
        try:
            self._feed(data, parts)
        except FramingError as error:
            if not parts:
                raise
            self.error = error  # what came before it is the caller's
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _feed(self, data: bytes, parts: list[bytes]) -> None:
        if self._line:
            data = self._line + data
            self._line = b""
        at = 0
        while at < len(data):
            if self.clean:
                self.clean = False  # bytes after the end
                break
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                self._left -= len(part)
                self._after = self._left == 0
                at += len(part)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line = data[at:]
                self._check_line(len(self._line))
                break
            self._check_line(end - at)
            self._take_line(data[at:end])
            at = end + 1

    def end(self) -> None:
        """The connection ended: an error before the chunk of no bytes."""
        self.clean = False
        if not self.done:
            raise FramingError("cut its reply off")

    def _check_line(self, length: int) -> None:
        limit = 1 if self._after else MAX_TRAILER_BYTES if self.done else MAX_SIZE_LINE_BYTES
        if length > limit:
            raise FramingError("sent a chunk that cannot be read")

    def _take_line(self, line: bytes) -> None:
        """A line without its LF."""
        if not line.endswith(b"\r"):
            raise FramingError("sent a chunk that cannot be read")
        line = line[:-1]
        if self.done:
            self._trailer_bytes += len(line) + 2
            self._check_line(self._trailer_bytes)
            self.clean = not line and self._clean_end
        elif self._after:
            self._after = False  # longer than its CR it cannot be: see `_check_line`
        else:
            size = _SIZE_LINE.fullmatch(line)
            if size is None:
                raise FramingError("sent a chunk that cannot be read")
            self._left = int(size[1], 16)
            self.done = self._left == 0
