"""An answer as a client sees it, in whatever dialect: one reading for all checks."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from gateway import sse
from gateway.routes import Dialect

ECHO_KEY: Final = "engine_echo"
"""The one key of the JSON that the demo's engine answers with, when it is asked to echo."""

_ENDINGS: Final[Mapping[Dialect, frozenset[str]]] = MappingProxyType(
    {
        Dialect.RESPONSES: frozenset({"response.completed", "response.incomplete"}),
        Dialect.MESSAGES: frozenset({"message_stop"}),
    }
)
"""By dialect: the types of the events that end a stream properly; elsewhere `[DONE]` does."""

_SHOWN_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as it came.

    Attributes:
        headers: names in lower case.
        body: of a stream that was left, what had come by then.
        left: the stream was left at its first words.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    left: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer, read.

    Attributes:
        streamed: it is an event stream.
        parts: its JSON: the body alone, or the data of each event.
        ended: a stream came to a proper end; a body is valid JSON.
        left: the stream was left before its end.
        observing: the endpoint's engine echoes what it gets.
    """

    status: int
    headers: Mapping[str, str]
    dialect: Dialect
    streamed: bool
    parts: tuple[Mapping[str, Any], ...]
    ended: bool
    left: bool
    observing: bool

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error that the answer tells of, be it inside a stream."""
        for part in self.parts:
            inner = part.get("error")
            if isinstance(inner, Mapping):
                return inner
            if isinstance(inner, str):
                return {"message": inner}
            if part.get("object") == "error" or (self.status >= 400 and "message" in part):
                return part
        return None

    @property
    def told(self) -> str:
        """The answer in a few words, for the reason of a failure."""
        error = self.error
        words = str(self.status)
        if error is not None:
            words = f"{words}: {error.get('message') or dict(error)}"
        elif self.status >= 400 and not self.parts:
            words = f"{words}, without a readable body"
        words = " ".join(words.split())
        return words if len(words) <= _SHOWN_CHARACTERS else f"{words[:_SHOWN_CHARACTERS]}…"

    @property
    def error_types(self) -> frozenset[str]:
        """Every `type` that the error names: nested, and at the top of a flat body."""
        found = [part.get("type") for part in self.parts if part.get("type") != "error"]
        found += [inner.get("type") for inner in (self.error,) if inner is not None]
        return frozenset(name for name in found if isinstance(name, str))

    @property
    def models(self) -> frozenset[str]:
        """Every name of the model that the answer reads."""
        return frozenset(
            name
            for part in self.parts
            for holder in (part, part.get("message"), part.get("response"))
            if isinstance(holder, Mapping) and isinstance(name := holder.get("model"), str)
        )

    @property
    def reasoning_names(self) -> frozenset[str]:
        """What a chat reply calls its reasoning."""
        return frozenset(
            name
            for part in self.parts
            for choice in _list(part.get("choices"))
            for message in (choice.get("message"), choice.get("delta"))
            if isinstance(message, Mapping)
            for name in ("reasoning", "reasoning_content")
            if message.get(name)
        )

    @property
    def echo(self) -> Mapping[str, Any] | None:
        """What the engine got, where it echoes that; None where the answer is no echo."""
        text = "".join(_texts(self.parts, self.dialect)).split(" ", 1)[0]
        try:
            echoed = json.loads(text)
        except ValueError:
            return None
        found = echoed.get(ECHO_KEY) if isinstance(echoed, dict) else None
        return found if isinstance(found, dict) else None


def read(answered: Answered, dialect: Dialect, *, observing: bool = False) -> Seen:
    """Reads an answer.

    Args:
        answered: as it came.
        dialect: of the route.
        observing: see `Seen`.
    """
    streamed = answered.headers.get("content-type", "").startswith("text/event-stream")
    parts, ended = (_events if streamed else _whole)(answered.body, dialect)
    return Seen(
        answered.status,
        answered.headers,
        dialect,
        streamed,
        tuple(parts),
        ended,
        answered.left,
        observing,
    )


def says_something(event: sse.Event, dialect: Dialect) -> bool:
    """Whether an event of a stream has a word of the answer in it, or ends it."""
    if event.data is None or event.data == b"[DONE]":
        return event.data is not None
    parts = list(_objects([event.data]))
    if any(part.get("type") in _ENDINGS.get(dialect, ()) or "error" in part for part in parts):
        return True
    finished = any(c.get("finish_reason") for part in parts for c in _list(part.get("choices")))
    return finished or any(_texts(parts, dialect))


def _whole(body: bytes, _dialect: Dialect) -> tuple[list[Mapping[str, Any]], bool]:
    parts = list(_objects([body]))
    return parts, bool(parts)


def _events(body: bytes, dialect: Dialect) -> tuple[list[Mapping[str, Any]], bool]:
    data = [event.data for event in sse.Decoder().feed(body) if event.data is not None]
    parts = list(_objects(data))
    endings = _ENDINGS.get(dialect)
    if endings is None:
        return parts, b"[DONE]" in data
    return parts, any(part.get("type") in endings for part in parts)


def _objects(texts: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _texts(parts: Iterable[Mapping[str, Any]], dialect: Dialect) -> Iterator[str]:
    """The words of the first choice, in order."""
    for part in parts:
        for text in _READERS[dialect](part):
            if isinstance(text, str) and text:
                yield text


def _chat_texts(part: Mapping[str, Any]) -> Iterator[object]:
    for choice in _list(part.get("choices"))[:1]:
        for message in (choice.get("message"), choice.get("delta")):
            if isinstance(message, Mapping) and choice.get("index", 0) == 0:
                yield message.get("content")


def _completion_texts(part: Mapping[str, Any]) -> Iterator[object]:
    for choice in _list(part.get("choices"))[:1]:
        if choice.get("index", 0) == 0:
            yield choice.get("text")


def _messages_texts(part: Mapping[str, Any]) -> Iterator[object]:
    for block in _list(part.get("content")):
        yield block.get("text")
    delta = part.get("delta")
    if isinstance(delta, Mapping):
        yield delta.get("text")


def _responses_texts(part: Mapping[str, Any]) -> Iterator[object]:
    if part.get("type") == "response.output_text.delta":
        yield part.get("delta")
    for item in _list(part.get("output")):
        for piece in _list(item.get("content")):
            if piece.get("type") == "output_text":
                yield piece.get("text")


def _no_texts(_part: Mapping[str, Any]) -> Iterator[object]:
    return iter(())


_READERS: Final = MappingProxyType(
    {
        Dialect.CHAT: _chat_texts,
        Dialect.COMPLETIONS: _completion_texts,
        Dialect.MESSAGES: _messages_texts,
        Dialect.RESPONSES: _responses_texts,
        Dialect.EMBEDDINGS: _no_texts,
    }
)


def _list(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, Mapping)]
