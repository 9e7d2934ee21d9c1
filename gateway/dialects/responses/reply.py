"""A Chat reply that came whole, as a Response."""

from collections.abc import Mapping
from typing import Any

from gateway.dialects.engine_json import raise_error, read_text
from gateway.dialects.errors import (
    aborted_failure,
    protocol_failure,
)
from gateway.dialects.responses.answer import Answer, Event
from gateway.dialects.responses.request import Converted


def from_chat_reply(
    reply: Mapping[str, Any],
    converted: Converted,
    *,
    model: str,
    response_id: str,
    created_at: int,
) -> dict[str, Any]:
    """The Response of a Chat reply: reasoning, message and calls, in that order.

    Args:
        reply: the engine's.
        converted: the request that it answers.
        model: the name that the client asked for.
        response_id: starts with `resp_`.
        created_at: in seconds since the epoch.

    Raises:
        EngineFailure: the engine gave up, told of an error, or sent no readable choice.
    """
    raise_error(reply)
    choice = _first_choice(reply)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise protocol_failure("The engine sent a choice without a message.")
    finish_reason = read_finish(choice)
    answer = Answer(converted, model=model, response_id=response_id, created_at=created_at)
    answer.usage = read_usage(reply)
    answer.reason(read_reasoning(message))
    answer.say(read_text(message, "content"), parse_logprobs(choice))
    for index, call in enumerate(read_calls(message)):
        answer.call(call, index)
    answer.end(finish_reason)
    return answer.response(answer.status)


def read_finish(choice: Mapping[str, Any]) -> str | None:
    """Why a choice ended, where it has.

    Raises:
        EngineFailure: the engine gave the generation up.
    """
    reason = choice.get("finish_reason")
    if reason == "abort":
        raise aborted_failure()
    if reason is not None and not isinstance(reason, str):
        raise protocol_failure("The engine sent an unreadable finish reason.")
    return reason


def read_usage(reply: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The usage of a reply or a chunk, where it has one."""
    usage = reply.get("usage")
    return usage if isinstance(usage, Mapping) else None


def read_reasoning(message: Mapping[str, Any]) -> str:
    """The reasoning of a message or delta, under either of its names."""
    return read_text(message, "reasoning_content") or read_text(message, "reasoning")


def read_calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tool calls of a message or delta.

    Raises:
        EngineFailure: they are no list of objects.
    """
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise protocol_failure("The engine sent unreadable tool calls.")
    return calls


def parse_logprobs(choice: Mapping[str, Any]) -> list[Event]:
    """Chat's log probabilities of a choice, in Responses' form.

    Raises:
        EngineFailure: they cannot be read.
    """
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    try:
        return [
            {**_logprob(entry), "top_logprobs": [_logprob(e) for e in entry["top_logprobs"] or ()]}
            for entry in content or ()
        ]
    except (TypeError, KeyError, AttributeError):
        raise protocol_failure("The engine sent unreadable log probabilities.") from None


def _first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, Mapping):
        raise protocol_failure("The engine sent a reply without a choice.")
    return first


def _logprob(entry: Mapping[str, Any]) -> Event:
    token, encoded = entry["token"], entry.get("bytes")
    if encoded is None:
        encoded = list(token.encode("utf-8", "surrogatepass"))
    return {"token": token, "bytes": encoded, "logprob": entry["logprob"]}
