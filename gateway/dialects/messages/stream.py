"""A Chat stream as a Messages stream.

    state   event                                  next     to the client
    held    chunk that says nothing yet            held     nothing; its usage is remembered
    held    chunk that says something              open     message_start, and as below
    open    chunk with thinking, text or a call    open     block starts, deltas and stops
    any     finish reason                          same     what is queued, every block closed
    any     usage                                  same     nothing; the last one counts
    any     [DONE], a choice was seen              done     the same, message_delta, message_stop
    any     [DONE], none was seen                  -        EngineFailure
    any     error, `abort`, unreadable             -        EngineFailure: fail()
    any     end of input, finish reason seen       done     message_delta, message_stop
    any     end of input, otherwise                -        EngineFailure: fail()
    open    fail()                                 failed   the open block's stop, error
    done    anything                               done     nothing
    failed  anything                               failed   nothing

Rules of the blocks:

1. One block is open at a time and indices rise by one, while the engine may mix its pieces. What
   it says is therefore queued in segments, in the order in which they began; the first is the
   open block and streams at once, the others wait and leave whole when their turn comes.
2. A text or thought gives way to whatever follows it. A call gives way when its arguments are a
   whole JSON object, to which nothing can be added, or else at the finish.
3. A text or thought begins with its first character that is no white space, and so do the
   arguments of a call: a blank one is no block, unless it is all there is.
"""

from collections import deque
from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Any, Final

from gateway import jsonbody, sse
from gateway.dialects.engine_json import parse_engine_object, raise_error
from gateway.dialects.errors import Failure, cut_off_failure, protocol_failure, render_error_event
from gateway.dialects.messages.reply import (
    calls_of,
    empty_block,
    fallback_call_id,
    finish_of,
    first_choice,
    function_of,
    message_id_of,
    reasoning_of,
    stop_of,
    text_of,
    usage_of,
)
from gateway.dialects.messages.segments import CallSegment, Segment, find_call
from gateway.routes import Dialect

_DONE: Final = b"[DONE]"

_DELTAS: Final = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""For each type of block, the type of its deltas and the key of what they add."""


class _State(Enum):
    HELD = auto()
    OPEN = auto()
    DONE = auto()
    FAILED = auto()


_ENDED: Final = (_State.DONE, _State.FAILED)


class ChatToMessagesRelay:
    """One stream from an engine's Chat route to a Messages client.

    Args:
        model: the name that the client sent.
        stop_sequences: those that the client sent.
        format_tool: the tool whose call is the answer, where one was offered.
        request_id: repeated in an error event.

    Attributes:
        done: `message_stop` was written.
    """

    def __init__(
        self,
        *,
        model: str,
        stop_sequences: Collection[str] = (),
        format_tool: str | None = None,
        request_id: str = "",
    ) -> None:
        self.done = False
        self._model = model
        self._stop_sequences = stop_sequences
        self._format_tool = format_tool
        self._request_id = request_id
        self._state = _State.HELD
        self._id = ""  # of the message; empty until a choice was seen
        self._usage: Mapping[str, Any] = {}
        self._finish: str | None = None
        self._matched_stop: object = None
        self._queue: deque[Segment] = deque()
        self._calls: list[CallSegment] = []
        self._answered = False
        self._blank = ""  # text that made no block
        self._blocks = 0  # that were closed
        # Frames outlive an exception here, so that a failure never leaves a block half told.
        self._frames: list[bytes] = []

    def feed(self, event: sse.Event) -> list[bytes]:
        """Takes an engine's event; returns what the client gets for it.

        Raises:
            EngineFailure: the event told of an error, or could not be read.
        """
        data = event.data.strip()
        if not data or self._state in _ENDED:
            return []
        if data != _DONE:
            self._take_chunk(parse_engine_object(data, "event"))
        elif self._id:
            self._end()
        else:
            raise protocol_failure("The engine sent a reply without a choice.")
        return self._take_frames()

    def finish(self) -> list[bytes]:
        """The engine's stream is over; returns what is missing of a proper ending.

        Raises:
            EngineFailure: the stream was cut.
        """
        if self._state in _ENDED:
            return []
        if self._finish is None:
            raise cut_off_failure()
        self._end()
        return self._take_frames()

    def fail(self, failure: Failure) -> list[bytes]:
        """Ends the stream with an error event, the open block closed first."""
        if self._state in _ENDED:
            return []
        self._state = _State.FAILED
        if self._queue and self._queue[0].begun:
            self._stop()
        error = render_error_event(Dialect.MESSAGES, failure, request_id=self._request_id)
        return [*self._take_frames(), error]

    @staticmethod
    def keepalive() -> bytes:
        """What is sent in silence, after the commit point."""
        return _render({"type": "ping"})

    def _take_frames(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        return frames

    def _emit(self, event: Mapping[str, Any]) -> None:
        self._frames.append(_render(event))

    # What the engine says.

    def _take_chunk(self, chunk: Mapping[str, Any]) -> None:
        raise_error(chunk)
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            self._usage = usage
        choice = first_choice(chunk)
        if choice is None:
            return
        self._id = self._id or message_id_of(chunk)
        finish = finish_of(choice)
        self._take_delta(_delta_of(choice))
        if finish is None:
            return
        if self._finish is None:
            self._finish = finish
            self._matched_stop = choice.get("matched_stop")
        self._flush()

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        for kind, said in (("thinking", reasoning_of(delta)), ("text", text_of(delta))):
            if said:
                self._segment_of(kind).waiting.append(said)
                self._advance()
        for piece in calls_of(delta):
            self._take_call(piece)
            self._advance()

    def _segment_of(self, kind: str) -> Segment:
        """The segment that a piece of text or thought belongs to."""
        last = self._queue[-1] if self._queue else None
        if last is None or last.kind != kind or isinstance(last, CallSegment):
            last = Segment(kind)
            self._queue.append(last)
        return last

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        index, call_id = piece.get("index"), piece.get("id")
        index = index if isinstance(index, int) else None
        call_id = call_id if isinstance(call_id, str) else ""
        name, arguments = function_of(piece)
        call = find_call(self._calls, index=index, call_id=call_id, name=name)
        if call is None:
            call = CallSegment("tool_use", index=index, id=call_id)
            self._calls.append(call)
            self._queue.append(call)
        call.id = call.id or call_id
        call.add(arguments)
        if name and not call.name:
            call.name = name
            if name == self._format_tool:
                call.kind = "text"
                call.ignored = self._answered
                self._answered = True

    # What the client gets.

    def _advance(self) -> None:
        """Sends what can be sent, block after block as far as they are whole."""
        while self._queue:
            self._send(self._queue[0])
            if len(self._queue) == 1 or not self._queue[0].whole:
                return
            self._close()

    def _flush(self) -> None:
        """Sends everything and closes every block."""
        while self._queue:
            head = self._queue[0]
            if isinstance(head, CallSegment) and not head.name:
                raise protocol_failure("The engine sent a tool call without a name.")
            self._send(head)
            self._close()

    def _send(self, head: Segment) -> None:
        """Begins the block where that is due, and sends what waits for it."""
        if not head.begun and head.due:
            self._begin(head)
        if head.begun and head.speaks:
            self._say(head)

    def _begin(self, segment: Segment) -> None:
        if self._state is _State.HELD:
            self._state = _State.OPEN
            self._emit({"type": "message_start", "message": self._message()})
        segment.begun = True
        block = empty_block(segment.kind)
        if isinstance(segment, CallSegment) and segment.kind == "tool_use":
            call_id = segment.id or fallback_call_id(self._id, self._calls.index(segment))
            block = {"type": "tool_use", "id": call_id, "name": segment.name, "input": {}}
        self._emit({"type": "content_block_start", "index": self._blocks, "content_block": block})

    def _say(self, segment: Segment) -> None:
        said = segment.take()
        if said:
            segment.said = True
            delta_type, key = _DELTAS[segment.kind]
            delta = {"type": delta_type, key: said}
            self._emit({"type": "content_block_delta", "index": self._blocks, "delta": delta})

    def _close(self) -> None:
        """Takes the first segment out of the queue, and ends its block where it has one."""
        head = self._queue.popleft()
        if head.begun:
            self._stop()
            self._blocks += 1
        elif head.kind == "text" and not isinstance(head, CallSegment):
            self._blank += head.take()

    def _stop(self) -> None:
        self._emit({"type": "content_block_stop", "index": self._blocks})

    def _message(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage_of(self._usage), "output_tokens": 0},
        }

    def _end(self) -> None:
        """Ends the message as it should end; it has one block at least."""
        self._flush()
        if not self._blocks:
            only = Segment("text", [self._blank])
            self._queue.append(only)
            self._begin(only)
            self._say(only)
            self._close()
        delta = stop_of(
            self._finish,
            matched_stop=self._matched_stop,
            stop_sequences=self._stop_sequences,
            called=any(call.name != self._format_tool for call in self._calls),
            answered=self._answered,
        )
        self._emit({"type": "message_delta", "delta": delta, "usage": usage_of(self._usage)})
        self._emit({"type": "message_stop"})
        self._state = _State.DONE
        self.done = True


def _delta_of(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    delta = choice.get("delta")
    if delta is None:
        return {}
    if not isinstance(delta, Mapping):
        raise protocol_failure("The engine sent a delta that cannot be read.")
    return delta


def _render(event: Mapping[str, Any]) -> bytes:
    return sse.render_event(jsonbody.render_value(event), event["type"])
