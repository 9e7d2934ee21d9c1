"""What is asked of JSON text beyond its grammar: UTF-8 throughout, bounded nesting.

The decoder skips what nobody asks for without looking at its encoding, and its own limit of
nesting is the interpreter's, so both are checked here, on bytes, before and after it.
"""

from array import array
from itertools import accumulate
from typing import Final

from gateway.errors import bad_request

MAX_DEPTH: Final = 256
"""The deepest nesting that is read; the root is 1."""

_CHUNK_BYTES: Final = 256 * 1024

# For the depth: brackets become steps of +1 and -1 (as signed bytes), quotes stay, the rest goes.
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_STEPS: Final = bytes(sorted(set(range(256)) - set(b'[{]}"')))


def is_too_deep(raw: bytes) -> bool:
    """Whether valid JSON nests beyond `MAX_DEPTH`.

    Bytes are moved by C code only, in bounded pieces where they turn into objects: 32 MiB of
    brackets take about a second, a long text a few hundredths of one.
    """
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes side by side change nothing about what is inside a text and what is not.
    marks = raw.translate(_STEPS, _NO_STEPS).replace(b'""', b"")
    depth = inside = 0
    for start in range(0, len(marks), _CHUNK_BYTES):
        pieces = marks[start : start + _CHUNK_BYTES].split(b'"')
        steps = array("b", b"".join(pieces[inside::2]))
        inside ^= (len(pieces) - 1) & 1
        if max(accumulate(steps, initial=depth)) > MAX_DEPTH:
            return True
        depth += sum(steps)
    return False


def check_text(raw: bytes) -> None:
    """Refuse what is not UTF-8 text at all, also where no value is ever asked for."""
    if not raw or raw.isspace():
        msg = "The request body is empty; a JSON object is expected."
        raise bad_request(msg)
    if raw.startswith(b"\xef\xbb\xbf"):
        msg = "The request body is not valid JSON: it starts with a byte order mark (byte 0)."
        raise bad_request(msg)
    if raw.isascii():
        return
    # In pieces: one character beyond U+FFFF would make the text of the whole four times as long.
    view, at = memoryview(raw), 0
    while at < len(raw):
        piece = view[at : at + _CHUNK_BYTES]
        try:
            str(piece, "utf-8")
        except UnicodeDecodeError as error:
            # A character cut by the end of the piece is read with the next one.
            is_cut = error.reason == "unexpected end of data" and at + len(piece) < len(raw)
            if not is_cut:
                where = f"({error.reason}, byte {at + error.start})"
                msg = f"The request body is not valid UTF-8 {where}."
                raise bad_request(msg) from None
            at += error.start
        else:
            at += len(piece)
