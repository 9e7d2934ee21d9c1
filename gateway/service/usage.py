"""Reads what an engine says of the tokens it used, from replies and streams in either dialect.

The gateway asks for no usage that nobody else wants: where an engine does not say, nothing is
counted.
"""

import re
from typing import Final

import msgspec

from gateway.telemetry.record import Record

_MENTION: Final = re.compile(rb'"usage"\s*:\s*\{')
"""As a key only: inside a text, its quotes would be escaped."""


class _Counts(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None

    def read(self) -> int | None:
        """What was read, from a cache or not: Messages tells cached tokens apart."""
        if self.prompt_tokens is not None or self.input_tokens is None:
            return self.prompt_tokens
        cached = (self.cache_read_input_tokens, self.cache_creation_input_tokens)
        return self.input_tokens + sum(filter(None, cached))

    def written(self) -> int | None:
        return self.output_tokens if self.completion_tokens is None else self.completion_tokens


class _Message(msgspec.Struct):
    usage: _Counts | None = None


class _Document(msgspec.Struct):
    usage: _Counts | None = None
    message: _Message | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def note_usage(record: Record, *documents: bytes | None) -> None:
    """Writes down the largest counts that a reply, or the events of a stream, give.

    What cannot be read is left out: whether a reply is sound is for others to judge.
    """
    for document in documents:
        if document is None:
            continue
        try:
            found = _DOCUMENT.decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        counts = found.usage or (found.message.usage if found.message else None)
        if counts is not None:
            record.tokens_in = _larger(record.tokens_in, counts.read())
            record.tokens_out = _larger(record.tokens_out, counts.written())


class StreamUsage:
    """The usage of a stream: what its first and its last mention say.

    Engines count up as they go, and Messages tells what was read at the start only. So two
    events are kept and decoded when the stream has ended, rather than every one as it passes.
    """

    def __init__(self) -> None:
        self._first: bytes | None = None
        self._last: bytes | None = None

    def see(self, data: bytes) -> None:
        """Looks at an event."""
        if b'"usage"' in data and _MENTION.search(data):
            if self._first is None:
                self._first = data
            else:
                self._last = data

    def write(self, record: Record) -> None:
        """Writes down what was seen."""
        note_usage(record, self._first, self._last)


def _larger(known: int | None, new: int | None) -> int | None:
    if new is None or new < 0:
        return known
    return new if known is None else max(known, new)
