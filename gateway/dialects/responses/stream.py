"""A Chat stream as a stream of Responses events.

    state    event                                    next     to the client
    held     role-only or usage-only chunk            held     nothing
    held     chunk that says something, or finishes   open     created, in_progress, its events
    open     chunk                                    open     its events
    open     chunk that finishes                      ending   all items closed
    ending   chunk                                    ending   nothing; its usage is taken
    held     [DONE], no choice seen                   -        EngineFailure: an HTTP error
    any      [DONE], some choice seen                 done     all items closed, the end
    ending   end of the engine's stream               done     the end
    other    end of the engine's stream               -        EngineFailure: fail()
    any      error frame, `abort`, unreadable         -        EngineFailure: fail()
    any      fail()                                   done     the open item closed, failed
    done     anything                                 done     nothing

"the end" is `response.completed` or `response.incomplete`, told after the usage. Sequence numbers
count the events from 0. There is no `[DONE]` in this dialect.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway import jsonbody, sse
from gateway.dialects.engine_json import parse_engine_object, raise_error, read_text
from gateway.dialects.errors import (
    Failure,
    cut_off_failure,
    protocol_failure,
)
from gateway.dialects.responses.answer import Answer, Event
from gateway.dialects.responses.reply import (
    parse_logprobs,
    read_calls,
    read_finish,
    read_reasoning,
    read_usage,
)
from gateway.dialects.responses.request import Converted

KEEPALIVE: Final = b": keep-alive\n"
"""One comment line and no blank line after it: no client takes that for an event."""


class ChatToResponsesRelay:
    """A Chat stream to a Responses client; see `Relay`.

    Args:
        converted: the request that is answered.
        model: the name that the client asked for.
        response_id: starts with `resp_`.
        created_at: in seconds since the epoch.
    """

    def __init__(
        self, converted: Converted, *, model: str, response_id: str, created_at: int
    ) -> None:
        self._answer = Answer(
            converted, model=model, response_id=response_id, created_at=created_at
        )
        self._sequence_number = 0
        self._choice_seen = False
        self.done = False

    def feed(self, event: sse.Event) -> list[bytes]:
        """See `Relay`."""
        data = event.data
        if self.done or not data:
            return []
        if data.strip() == b"[DONE]":
            if not self._choice_seen:
                raise protocol_failure("The engine ended its stream without a choice.")
            return self._end()
        chunk = parse_engine_object(data, "event")
        raise_error(chunk)
        self._answer.usage = read_usage(chunk) or self._answer.usage
        for choice in _choices(chunk):
            self._choice_seen = True
            if not self._answer.ended:
                self._take(choice)
        return self._render(self._answer.take_events())

    def finish(self) -> list[bytes]:
        """See `Relay`. A finish reason is a proper end, with or without `[DONE]` after it."""
        if self.done:
            return []
        if not self._answer.ended:
            raise cut_off_failure()
        return self._end()

    def fail(self, failure: Failure) -> list[bytes]:
        """See `Relay`. The reason is told as a Response that failed."""
        if self.done:
            return []
        self.done = True
        if not self._answer.ended:
            self._answer.abandon()
        error = {"code": "server_error", "message": failure.message}
        failed = self._tell("failed", self._answer.response("failed", error))
        return self._render([*self._answer.take_events(), failed])

    def keepalive(self) -> bytes:
        """What may be written in silence."""
        return KEEPALIVE

    def _take(self, choice: Mapping[str, Any]) -> None:
        finish_reason = read_finish(choice)
        delta = choice.get("delta") or {}
        if not isinstance(delta, Mapping):
            raise protocol_failure("The engine sent an unreadable delta.")
        self._answer.reason(read_reasoning(delta))
        self._answer.say(read_text(delta, "content"), parse_logprobs(choice))
        for call in read_calls(delta):
            self._answer.call(call)
        if finish_reason is not None:
            self._answer.end(finish_reason)

    def _end(self) -> list[bytes]:
        self.done = True
        answer = self._answer
        if not answer.ended:
            answer.end(None)
        end = self._tell(answer.status, answer.response(answer.status))
        return self._render([*answer.take_events(), end])

    def _tell(self, name: str, response: dict[str, Any]) -> Event:
        return {"type": f"response.{name}", "response": response}

    def _render(self, events: list[Event]) -> list[bytes]:
        """The frames of events, the first ones of the stream led by its beginning."""
        if events and not self._sequence_number:
            begun = self._answer.response("in_progress")
            events = [self._tell("created", begun), self._tell("in_progress", begun), *events]
        return [self._frame(event) for event in events]

    def _frame(self, event: Event) -> bytes:
        numbered = {**event, "sequence_number": self._sequence_number}
        self._sequence_number += 1
        return sse.render_event(jsonbody.render_value(numbered), event["type"])


def _choices(chunk: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The first choice's part of a chunk: a Response has room for one."""
    choices = chunk.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(each, Mapping) for each in choices):
        raise protocol_failure("The engine sent unreadable choices.")
    return [choice for choice in choices if choice.get("index") in (None, 0)]
