"""An engine's Messages stream as Chat chunks, and these as a stream for a Chat client.

    event                              chunks
    message_start                      the role
    content_block_start, tool_use      the call's number, id and name, with empty arguments
    content_block_start, other         its text, where it starts with one
    content_block_delta                text, reasoning or arguments
    content_block_stop, tool_use       the arguments that its start brought, where no delta did
    what follows one without any       `{}`, unless the answer was cut off there
    message_delta                      nothing yet
    message_stop                       the finish reason; the usage; the end
    ping, and what is not known        nothing
    error, or what cannot be read      EngineFailure, and nothing after it

The finish reason waits for `message_stop`, which an engine sends with it: a stream that is cut
before its end never looks finished. Calls are numbered 0, 1, 2… in the order of their blocks,
whatever the blocks' indices are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

from gateway import jsonbody, sse
from gateway.dialects.anthropic_engine.events import parse_event, read_index, read_object
from gateway.dialects.anthropic_engine.reply import (
    completion_id,
    read_usage,
    render_call,
    render_finish,
    render_input,
    render_usage,
    was_cut,
)
from gateway.dialects.chat import DONE, Look
from gateway.dialects.engine_json import read_text
from gateway.dialects.errors import (
    EngineFailure,
    Failure,
    cut_off_failure,
    protocol_failure,
    render_error_event,
)
from gateway.routes import Dialect

Chunk = dict[str, Any]

_SAYS: Final = MappingProxyType({"text": "content", "thinking": "reasoning_content"})
"""The blocks that are a text, and where Chat has it. Each keeps its text under its type."""

_DELTAS: Final = MappingProxyType({"text_delta": "text", "thinking_delta": "thinking"})
_ARGUMENTS_DELTA: Final = "input_json_delta"


@dataclass(slots=True)
class _Call:
    """A call whose arguments may not all have been told.

    Attributes:
        number: its index in Chat.
        input: what its block started with.
        said: some of its arguments were passed on.
    """

    number: int
    input: object
    said: bool = False


class MessagesToChatEvents:
    """One Messages stream's events, as Chat chunks.

    Args:
        model: the name that the client sent.
        created: the time of the reply, in seconds since the epoch.

    Attributes:
        done: `message_stop` was seen, and the last chunk returned.
    """

    def __init__(self, *, model: str, created: int) -> None:
        self._model = model
        self._created = created
        self._id: str | None = None
        self._blocks: dict[int, _Call | None] = {}
        self._bare: _Call | None = None  # the last call, its block over, without arguments
        self._call_count = 0
        self._usage: dict[str, int] = {}
        self._stop: dict[str, Any] = {}
        self._failed = False
        self.done = False

    def feed(self, event: sse.Event) -> list[Chunk]:
        """The chunks that an event amounts to; none after the end or a failure.

        Raises:
            EngineFailure: the event told of an error, or could not be read.
        """
        if self.done or self._failed:
            return []
        try:
            payload = parse_event(event)
            handle = None if payload is None else self._HANDLERS.get(str(payload["type"]))
            return [] if payload is None or handle is None else handle(self, payload)
        except EngineFailure:
            self._failed = True
            raise

    def finish(self) -> list[Chunk]:
        """The engine's stream is over; there is never anything to add to it.

        Raises:
            EngineFailure: its own end is missing, so that the answer may be cut.
        """
        if not self.done:
            raise cut_off_failure()
        return []

    def _on_start(self, payload: Mapping[str, Any]) -> list[Chunk]:
        message = read_object(payload, "message")
        self._usage.update(read_usage(message.get("usage")))
        self._note_stop(message)
        if self._id is not None:
            return []
        self._id = completion_id(message.get("id"))
        return [self._chunk({"role": "assistant", "content": ""})]

    def _on_block_start(self, payload: Mapping[str, Any]) -> list[Chunk]:
        index = read_index(payload)
        block = read_object(payload, "content_block")
        self._blocks[index] = None
        chunks = self._complete_bare()
        kind = str(block.get("type"))
        if kind in _SAYS:
            return [*chunks, *self._say(kind, read_text(block, kind))]
        if kind != "tool_use":
            return chunks
        call = _Call(self._call_count, block.get("input"))
        self._blocks[index] = call
        self._call_count += 1
        return [*chunks, self._call_chunk({"index": call.number, **render_call(block, "")})]

    def _on_delta(self, payload: Mapping[str, Any]) -> list[Chunk]:
        index = read_index(payload)
        if index not in self._blocks:
            raise protocol_failure("The engine sent a piece of a block that it had not started.")
        delta = read_object(payload, "delta")
        kind = str(delta.get("type"))
        if kind in _DELTAS:
            said = _DELTAS[kind]
            return self._say(said, read_text(delta, said))
        call = self._blocks[index]
        if kind != _ARGUMENTS_DELTA or call is None:
            return []
        piece = read_text(delta, "partial_json")
        call.said = call.said or bool(piece)
        return [self._arguments(call, piece)] if piece else []

    def _on_block_stop(self, payload: Mapping[str, Any]) -> list[Chunk]:
        return self._close(read_index(payload))

    def _on_message_delta(self, payload: Mapping[str, Any]) -> list[Chunk]:
        self._usage.update(read_usage(payload.get("usage")))
        self._note_stop(read_object(payload, "delta"))
        return []

    def _on_stop(self, _payload: Mapping[str, Any]) -> list[Chunk]:
        if self._id is None:
            raise protocol_failure("The engine ended its stream without a message.")
        chunks = [chunk for index in list(self._blocks) for chunk in self._close(index)]
        ending = render_finish(self._stop, called=self._call_count > 0)
        if not was_cut(ending):
            chunks += self._complete_bare()
        finish = self._chunk({})
        finish["choices"][0].update(ending)
        usage = self._chunk({})
        usage.update(choices=[], usage=render_usage(self._usage))
        self.done = True
        return [*chunks, finish, usage]

    def _note_stop(self, said: Mapping[str, Any]) -> None:
        for key in ("stop_reason", "stop_sequence"):
            if said.get(key) is not None:
                self._stop[key] = said[key]

    def _say(self, kind: str, text: str) -> list[Chunk]:
        return [self._chunk({_SAYS[kind]: text})] if text else []

    def _close(self, index: int) -> list[Chunk]:
        call = self._blocks.pop(index, None)
        if call is None or call.said:
            return []
        if call.input:
            return [self._arguments(call, render_input(call.input))]
        chunks, self._bare = self._complete_bare(), call
        return chunks

    def _complete_bare(self) -> list[Chunk]:
        """What the model said next, or its proper end, shows that a call has no arguments."""
        call, self._bare = self._bare, None
        return [] if call is None else [self._arguments(call, render_input(None))]

    def _arguments(self, call: _Call, piece: str) -> Chunk:
        return self._call_chunk({"index": call.number, "function": {"arguments": piece}})

    def _call_chunk(self, call: dict[str, Any]) -> Chunk:
        return self._chunk({"tool_calls": [call]})

    def _chunk(self, delta: dict[str, Any]) -> Chunk:
        if self._id is None:
            raise protocol_failure("The engine sent a piece of a message that it had not started.")
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }

    _HANDLERS: ClassVar[
        Mapping[str, Callable[["MessagesToChatEvents", Mapping[str, Any]], list[Chunk]]]
    ] = MappingProxyType(
        {
            "message_start": _on_start,
            "content_block_start": _on_block_start,
            "content_block_delta": _on_delta,
            "content_block_stop": _on_block_stop,
            "message_delta": _on_message_delta,
            "message_stop": _on_stop,
        }
    )


def chunk_event(chunk: Chunk) -> sse.Event:
    """A chunk as an engine that speaks Chat would have sent it, for a relay of Chat streams."""
    data = jsonbody.render_value(chunk)
    return sse.Event(None, data, sse.render_event(data))


class MessagesToChatRelay:
    """A Messages stream to a Chat client; see `Relay`.

    Args:
        model: the name that the client sent.
        created: the time of the reply, in seconds since the epoch.
        look: whether the usage is shown, and what the reasoning is called.
        request_id: of the client's request.
    """

    def __init__(self, *, model: str, created: int, look: Look, request_id: str) -> None:
        self._events = MessagesToChatEvents(model=model, created=created)
        self._look = look
        self._request_id = request_id
        self._held: list[bytes] | None = []
        self.done = False

    def feed(self, event: sse.Event) -> list[bytes]:
        """See `Relay`."""
        if self.done:
            return []
        frames: list[bytes] = []
        speaks = False
        for chunk in self._events.feed(event):
            if chunk["choices"]:
                speaks = speaks or _speaks(chunk["choices"][0])
            elif not self._look.usage_chunk:
                continue
            frames.append(sse.render_event(self._look.apply(jsonbody.render_value(chunk))))
        if self._events.done:
            self.done = True
            frames.append(DONE)
        if self._held is None:
            return frames
        self._held += frames
        if not speaks:
            return []
        held, self._held = self._held, None
        return held

    def finish(self) -> list[bytes]:
        """See `Relay`. An end that the engine left out is a cut: its answer may be one too."""
        if not self.done:
            self._events.finish()
        return []

    def fail(self, failure: Failure) -> list[bytes]:
        """See `Relay`."""
        if self.done:
            return []
        self.done = True
        return [render_error_event(Dialect.CHAT, failure, request_id=self._request_id)]


def _speaks(choice: Mapping[str, Any]) -> bool:
    """Whether a chunk says more than who speaks."""
    said = {key: value for key, value in choice["delta"].items() if key != "role"}
    return choice["finish_reason"] is not None or any(said.values())
