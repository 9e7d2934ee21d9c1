"""Reads a request's body: within a limit, within a deadline, and whole.

Falcon's own reading does none of the three: it sees nothing of a chunked body and takes half a
body for a whole one. The limit holds without a `Content-Length` and after decompression.
"""

import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gunicorn.http.errors import ParseException

from gateway.errors import (
    BODY_STALLED,
    UNSUPPORTED_MEDIA,
    ClientGone,
    GatewayError,
    bad_request,
    body_too_large,
)
from gateway.web.reaper import Reaper

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP_BYTES: Final = 64 * 1024
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How long a body may take.

    Attributes:
        stall_s: without a byte.
        total_s: from its first to its last byte.
    """

    stall_s: float = 30.0
    total_s: float = 120.0


_REAPER: Final = Reaper()


class _Input(Protocol):
    def read(self, size: int, /) -> bytes: ...


def read_body(environ: dict[str, Any], max_bytes: int, limits: BodyLimits) -> bytes:
    """The decoded body of a request.

    Args:
        environ: of the WSGI request; a chunked body is known by `wsgi.input_terminated`.
        max_bytes: of the body as sent and as decoded.
        limits: for the time that it may take.

    Raises:
        GatewayError: 415 for another type than JSON or an unknown encoding, 413 beyond the
            limit, 408 when it stalls, 400 when it is shorter than announced or corrupt.
        ClientGone: the connection broke.
    """
    _require_json(environ.get("CONTENT_TYPE", ""))
    decode = _decoder_of(environ.get("HTTP_CONTENT_ENCODING", ""))
    length = _content_length(environ)
    if length is not None and length > max_bytes:
        raise body_too_large(max_bytes)
    raw = _read(environ, length, max_bytes, limits)
    return raw if decode is None else decode(raw, max_bytes)


def _require_json(content_type: str) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in {"", "application/json"}:
        raise GatewayError(
            UNSUPPORTED_MEDIA, f"The content type must be application/json, got {kind[:64]!r}."
        )


def _content_length(environ: dict[str, Any]) -> int | None:
    """None for a chunked body, whose end the server marks."""
    text = environ.get("CONTENT_LENGTH") or ""
    if environ.get("wsgi.input_terminated") and not text:
        return None
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise bad_request("The Content-Length header must be a whole number.")
    return int(text)


def _read(environ: dict[str, Any], length: int | None, max_bytes: int, limits: BodyLimits) -> bytes:
    """The body as sent; the worker sets no time-out on the client's socket, so this does."""
    client = environ.get("gunicorn.socket")
    if client is None:
        return _read_whole(environ["wsgi.input"], length, max_bytes)
    deadline_s = time.monotonic() + limits.total_s
    before_s = client.gettimeout()
    client.settimeout(limits.stall_s)
    try:
        with _REAPER.cutting(client, deadline_s):
            return _read_whole(environ["wsgi.input"], length, max_bytes)
    except GatewayError:
        if time.monotonic() >= deadline_s:
            raise _stalled() from None
        raise
    finally:
        client.settimeout(before_s)


def _read_whole(source: _Input, length: int | None, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    end = max_bytes + 1 if length is None else length
    while size < end:
        try:
            piece = source.read(min(_STEP_BYTES, end - size))
        except TimeoutError:
            raise _stalled() from None
        except ConnectionError:
            raise ClientGone from None
        except (ParseException, OSError):  # a malformed chunk, or one that was cut
            raise bad_request("The chunked request body is malformed or cut off.") from None
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    if size > max_bytes:
        raise body_too_large(max_bytes)
    if length is not None and size < length:
        raise bad_request(f"The request body ended after {size} of {length} bytes.")
    return b"".join(pieces)


_Decode = Callable[[bytes, int], bytes]


def _decoder_of(encoding: str) -> _Decode | None:
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name not in _DECODERS:
        known = ", ".join(sorted(_DECODERS))
        raise GatewayError(
            UNSUPPORTED_MEDIA, f"The content encoding {name[:64]!r} is not one of: {known}."
        )
    return _DECODERS[name]


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _build_decoder(build: Callable[[], _Decompressor], broken: type[Exception]) -> _Decode:
    """Decodes any number of members (gzip) or frames (zstd), one after the other.

    Args:
        build: makes what reads one of them.
        broken: what that raises where it cannot.
    """

    def decode(raw: bytes, max_bytes: int) -> bytes:
        pieces: list[bytes] = []
        room = max_bytes + 1
        rest = raw
        while rest:
            decompressor = build()
            try:
                piece = decompressor.decompress(rest, room)
            except broken:
                raise _corrupt() from None
            pieces.append(piece)
            room -= len(piece)
            if room <= 0:
                raise body_too_large(max_bytes)
            if not decompressor.eof:
                raise _corrupt()
            rest = decompressor.unused_data
        return b"".join(pieces)

    return decode


_inflate: Final = _build_decoder(lambda: zlib.decompressobj(_GZIP_OR_ZLIB), zlib.error)

_DECODERS: Final[dict[str, _Decode]] = {
    "gzip": _inflate,
    "x-gzip": _inflate,
    "deflate": _inflate,
    "zstd": _build_decoder(zstd.ZstdDecompressor, zstd.ZstdError),
}


def _stalled() -> GatewayError:
    return GatewayError(BODY_STALLED, "The request body did not arrive in time.")


def _corrupt() -> GatewayError:
    return bad_request("The compressed request body is corrupt.")
