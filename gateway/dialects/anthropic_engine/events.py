"""Reading the events of an engine's Messages stream."""

from collections.abc import Mapping
from typing import Any

from gateway import sse
from gateway.dialects.engine_json import parse_engine_object, raise_error
from gateway.dialects.errors import protocol_failure


def parse_event(event: sse.Event) -> Mapping[str, Any] | None:
    """The payload of an event, its `type` filled in from the event's where it has none.

    Returns:
        None for an event without data: some senders keep a connection alive with it.

    Raises:
        EngineFailure: the event tells of an error, or cannot be read.
    """
    if not event.data.strip():
        return None
    payload = parse_engine_object(event.data, "event")
    if payload.get("type") is None:
        payload["type"] = event.event
    raise_error(payload)
    if not isinstance(payload["type"], str):
        raise protocol_failure("The engine sent an event without a type.")
    return payload


def read_object(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object that an event has to have.

    Raises:
        EngineFailure: it has none.
    """
    value = payload.get(key)
    if not isinstance(value, Mapping):
        raise protocol_failure(f"The engine sent an event without its {key}.")
    return value


def read_index(payload: Mapping[str, Any]) -> int:
    """The index of the block that an event is about.

    Raises:
        EngineFailure: it has none.
    """
    index = payload.get("index")
    if not isinstance(index, int) or isinstance(index, bool):
        raise protocol_failure("The engine sent an event without the index of its block.")
    return index
