"""Server-Sent Events without I/O: bytes in, events out; an event in, bytes out.

Rules:

1. A line ends with LF, CR or CRLF and with nothing else: U+2028 and the like are text. The bytes
   may be cut anywhere, inside a character or a CRLF too, and the events are the same.
2. An event is complete at its blank line, at once: when that line's CR is the last byte here,
   the LF that may follow is not waited for.
3. `data` lines are joined with LF; one space after the colon is no part of the value. A block
   without a `data` line is no event; one with an empty `data` line is an event with no text.
4. Comments, `id`, `retry` and unknown fields are no events. A byte-order mark is skipped at the
   very beginning only.
5. Bytes are never decoded here: a payload may be any UTF-8 and is passed on as it is.
"""

import re
from typing import Final, NamedTuple

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest line, its ending left out."""

MAX_EVENT_BYTES: Final = 2 * MAX_LINE_BYTES
"""The longest event: a sender that never ends one must not fill the memory."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_CR: Final = 0x0D
_LF: Final = 0x0A
_COLON: Final = 0x3A


class Event(NamedTuple):
    """One event of a stream.

    Attributes:
        event: its type; None where the sender named none.
        data: the `data` lines, joined with LF.
        raw: the very bytes of its lines and of its blank line, comments left out: what to send
            on where nothing has to change. (Where a CRLF blank line is cut after its CR, the LF
            is filled in.)
    """

    event: str | None
    data: bytes
    raw: bytes


class LineTooLong(ValueError):  # noqa: N818 - the name of the rule that was broken
    """A line is longer than `MAX_LINE_BYTES`, or an event longer than `MAX_EVENT_BYTES`."""


class Decoder:
    """Turns the bytes of one stream into its events.

    The work is linear in the bytes, however long a line is and however it is cut: a piece is
    looked through once, and the beginning of an unfinished line is only kept.
    """

    __slots__ = (
        "_block",
        "_block_bytes",
        "_data",
        "_kept",
        "_last_end",
        "_partial",
        "_partial_bytes",
        "_skip_lf",
        "_started",
        "_type",
    )

    def __init__(self) -> None:
        self._started = False  # past the place of a byte-order mark
        self._skip_lf = False  # the last line ended with the CR that ended its piece
        self._partial: list[bytes] = []  # pieces of the line that has not ended
        self._partial_bytes = 0
        self._last_end = b"\n"  # of the line before
        self._reset_block()

    def _reset_block(self) -> None:
        self._block: list[bytes] = []  # the lines since the last blank one
        self._block_bytes = 0
        self._data: list[bytes] = []
        self._type: bytes = b""
        self._kept = False  # the line before is the last of the block

    def feed(self, piece: bytes) -> list[Event]:
        """The events that `piece` completes, in order.

        Args:
            piece: the next bytes of the stream, of any length.

        Raises:
            LineTooLong: the stream cannot be read on.
        """
        if self._started and not (self._skip_lf or self._partial or self._block):
            event = _single(piece)
            if event is not None:
                return [event]
        events: list[Event] = []
        piece = self._past_seams(piece)
        if not piece:
            return events
        lines = piece.splitlines(keepends=True)  # of bytes: LF, CR and CRLF only
        self._skip_lf = piece[-1] == _CR
        rest = b"" if piece[-1] in (_LF, _CR) else lines.pop()
        for line in lines:
            event = self._take(self._joined(line) if self._partial else line)
            if event is not None:
                events.append(event)
        if rest:
            self._keep(rest)
        return events

    def finish(self) -> bytes:
        """What was left at the end of the stream: the bytes of an event that is not complete.

        By the standard it is no event. An empty result says that the stream ended between two.
        """
        left = b"".join((*self._block, *self._partial))
        self.__init__()  # type: ignore[misc]  # ready for another stream
        return left

    def _past_seams(self, piece: bytes) -> bytes:
        """Without the byte-order mark of the stream, or the LF of a CRLF that was cut."""
        if not self._started:
            piece = b"".join((*self._partial, piece))
            self._started = not _BYTE_ORDER_MARK.startswith(piece) or piece == _BYTE_ORDER_MARK
            self._partial = [] if self._started else [piece]
            return piece.removeprefix(_BYTE_ORDER_MARK) if self._started else b""
        if self._skip_lf and piece:
            self._skip_lf = False
            if piece[0] == _LF:
                self._last_end = b"\r\n"
                if self._kept:
                    self._block[-1] += b"\n"
                return piece[1:]
        return piece

    def _keep(self, part: bytes) -> None:
        self._partial.append(part)
        self._partial_bytes += len(part)
        if self._partial_bytes > MAX_LINE_BYTES + 2:
            raise _too_long()

    def _joined(self, end: bytes) -> bytes:
        """The line that `end` completes."""
        self._keep(end)
        line = b"".join(self._partial)
        self._partial = []
        self._partial_bytes = 0
        return line

    def _take(self, line: bytes) -> Event | None:
        """One whole line, with its ending."""
        end = b"\r\n" if line.endswith(b"\r\n") else line[-1:]
        content = line[: -len(end)]
        if not content:
            return self._dispatch(end)
        self._last_end = end
        self._kept = content[0] != _COLON
        if not self._kept:
            return None
        self._block_bytes += len(line)
        if len(content) > MAX_LINE_BYTES or self._block_bytes > MAX_EVENT_BYTES:
            raise _too_long()
        self._block.append(line)
        name, _, value = content.partition(b":")
        if name == b"data":
            self._data.append(value[1:] if value[:1] == b" " else value)
        elif name == b"event":
            self._type = value[1:] if value[:1] == b" " else value
        return None

    def _dispatch(self, end: bytes) -> Event | None:
        block, data, event_type = self._block, self._data, self._type
        self._reset_block()
        if not data:
            return None
        if end == b"\r" and self._last_end == b"\r\n":
            end = b"\r\n"  # cut between the two: the LF is skipped when it comes
        return Event(
            event_type.decode("utf-8", "replace") or None,
            data[0] if len(data) == 1 else b"\n".join(data),
            b"".join((*block, end)),
        )


def _single(piece: bytes) -> Event | None:
    """The event, where `piece` is `data: …` and a blank line and nothing else.

    An engine writes so, one event a write: this spares the splitting and the copies.
    """
    size = len(piece)
    if (
        not piece.startswith(b"data: ")
        or piece.find(b"\n") != size - 2
        or piece[-1] != _LF
        or size > MAX_LINE_BYTES
        or b"\r" in piece
    ):
        return None
    return Event(None, piece[6:-2], piece)


def _too_long() -> LineTooLong:
    return LineTooLong(
        f"a line is longer than {MAX_LINE_BYTES} bytes, or an event than {MAX_EVENT_BYTES}"
    )


def render_event(data: bytes, event: str | None = None) -> bytes:
    """An event as bytes, its blank line included.

    Args:
        data: the payload; one with line ends becomes several `data` lines.
        event: the type, without line ends.

    Raises:
        ValueError: `event` has a line end in it, which would forge a field.
    """
    head = b""
    if event is not None:
        head = b"event: " + event.encode() + b"\n"
        if _LINE_END.search(head, 0, len(head) - 1):
            raise ValueError("an event's type cannot have a line end in it")
    if b"\n" not in data and b"\r" not in data:
        return b"%bdata: %b\n\n" % (head, data)
    lines = b"".join(b"data: %b\n" % line for line in _LINE_END.split(data))
    return b"%b%b\n" % (head, lines)
