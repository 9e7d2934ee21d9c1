"""Chat Completions and completions from an engine that speaks them: relayed, not converted.

Bytes pass as they came, but for three edits, each made only where it is asked for: the model's
name where an alias was used, `reasoning_content` renamed `reasoning`, and the usage chunk that
the client did not ask for.

    state      event                                next       to the client
    held       role-only chunk                      held       (kept back)
    held       chunk that says something            open       what was kept back, and the chunk
    held       error frame                          -          EngineFailure: an HTTP error
    open       chunk                                open       the chunk
    open       usage chunk, not asked for           open       nothing
    open       error frame, `abort`, unreadable     -          EngineFailure: fail()
    any        [DONE], some choice seen             done       [DONE]
    any        end, every choice finished           done       [DONE]
    any        end, otherwise                       -          EngineFailure: fail()
    done       anything                             done       nothing
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway import jsonbody, sse
from gateway.dialects.errors import (
    EngineFailure,
    Failure,
    aborted_failure,
    cut_off_failure,
    parse_error_frame,
    protocol_failure,
    render_error_event,
)
from gateway.errors import GatewayError
from gateway.routes import Dialect

DONE: Final = b"data: [DONE]\n\n"
KEEPALIVE: Final = b": keep-alive\n"
"""One comment line and no blank line after it: no client takes that for an event."""

_REASONING_KEY: Final = re.compile(rb'"reasoning_content"(?=\s*:)')
"""As a key only: inside a text, its quotes would be escaped."""

_EMPTY_VALUES: Final = frozenset({b"null", b'""', b"[]", b"{}"})


_NO_ERROR: Final = msgspec.Raw(b"null")


class _Choice(msgspec.Struct):
    index: int = 0
    delta: dict[str, msgspec.Raw] | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    error: msgspec.Raw = _NO_ERROR


class _ReplyChoice(msgspec.Struct):
    finish_reason: str | None = None


class _Reply(msgspec.Struct):
    choices: list[_ReplyChoice] | None = None
    error: msgspec.Raw = _NO_ERROR


_CHUNK: Final = msgspec.json.Decoder(_Chunk)
_REPLY: Final = msgspec.json.Decoder(_Reply)


@dataclass(frozen=True, slots=True)
class Look:
    """How the client is to see the engine's answer.

    Attributes:
        model: the name that the client asked for, where the engine names another; else None.
        rename_reasoning: `reasoning_content` reads `reasoning`.
        usage_chunk: the client asked for the usage chunk of a stream.
        choices: how many choices the client asked for (`n`).
    """

    model: str | None = None
    rename_reasoning: bool = False
    usage_chunk: bool = False
    choices: int = 1

    def apply(self, data: bytes) -> bytes:
        """One JSON document of the engine, as the client is to see it."""
        if self.rename_reasoning:
            data = _REASONING_KEY.sub(b'"reasoning"', data)
        if self.model is not None:
            try:
                body = jsonbody.parse_object(data)
            except GatewayError:
                raise protocol_failure("The engine sent an unreadable reply.") from None
            if "model" in body:
                data = body.edit({"model": jsonbody.render_value(self.model)})
        return data

    @property
    def changes(self) -> bool:
        """Whether `apply` can change anything."""
        return self.rename_reasoning or self.model is not None


def parse_reply(raw: bytes, look: Look) -> bytes:
    """A buffered reply, as the client is to see it.

    Raises:
        EngineFailure: it is unreadable, has no choice, was aborted, or tells of an error.
    """
    try:
        reply = _REPLY.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise protocol_failure("The engine sent an unreadable reply.") from None
    if bytes(reply.error) != b"null":
        raise _error_frame(raw)
    if not reply.choices:
        raise protocol_failure("The engine sent a reply without a choice.")
    if any(choice.finish_reason == "abort" for choice in reply.choices):
        raise aborted_failure()
    return look.apply(raw)


class ChatRelay:
    """A stream of chat or completion chunks to a client of the same dialect."""

    def __init__(self, look: Look, *, request_id: str, dialect: Dialect = Dialect.CHAT) -> None:
        self._look = look
        self._request_id = request_id
        self._dialect = dialect
        self._held: list[bytes] | None = []
        self._seen: set[int] = set()
        self._finished: set[int] = set()
        self.done = False

    def feed(self, event: sse.Event) -> list[bytes]:
        """See `Relay`."""
        data = event.data
        if self.done or not data:
            return []
        if data.strip() == b"[DONE]":
            if not self._seen:
                raise protocol_failure("The engine ended its stream without a choice.")
            return self._end()
        chunk = self._parse(data)
        choices = chunk.choices or ()
        if not choices and not self._look.usage_chunk:
            return []
        speaks = self._note(choices)
        frame = event.raw
        if self._look.changes:
            frame = sse.render_event(self._look.apply(data), event.event)
        if self._held is None:
            return [frame]
        self._held.append(frame)
        return self._release() if speaks else []

    def finish(self) -> list[bytes]:
        """See `Relay`. A `[DONE]` that the engine left out after every finish is added."""
        if self.done:
            return []
        if len(self._finished) < self._look.choices or self._seen - self._finished:
            raise cut_off_failure()
        return self._end()

    def fail(self, failure: Failure) -> list[bytes]:
        """See `Relay`."""
        self.done = True
        return [render_error_event(self._dialect, failure, request_id=self._request_id)]

    def _parse(self, data: bytes) -> _Chunk:
        try:
            chunk = _CHUNK.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise protocol_failure("The engine sent an unreadable event.") from None
        if bytes(chunk.error) != b"null":
            raise _error_frame(data)
        return chunk

    def _note(self, choices: Any) -> bool:
        """Keeps count of the choices; says whether any of them says something."""
        speaks = False
        for choice in choices:
            self._seen.add(choice.index)
            if choice.finish_reason is not None:
                if choice.finish_reason == "abort":
                    raise aborted_failure()
                self._finished.add(choice.index)
                speaks = True
            speaks = speaks or bool(choice.text) or _speaks(choice.delta)
        return speaks

    def _release(self) -> list[bytes]:
        held, self._held = self._held or [], None
        return held

    def _end(self) -> list[bytes]:
        self.done = True
        return [*self._release(), DONE]


def _speaks(delta: dict[str, msgspec.Raw] | None) -> bool:
    """Whether a delta holds more than a role."""
    return any(
        name != "role" and bytes(value) not in _EMPTY_VALUES
        for name, value in (delta or {}).items()
    )


def _error_frame(data: bytes) -> EngineFailure:
    payload = jsonbody.parse_value(data)
    return EngineFailure(parse_error_frame(payload if isinstance(payload, dict) else {}))
