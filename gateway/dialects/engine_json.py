"""Reading what an engine says: JSON that has to have a shape, and often is an error instead."""

from collections.abc import Mapping
from typing import Any

from gateway import jsonbody
from gateway.dialects.errors import EngineFailure, parse_error_frame, protocol_failure
from gateway.errors import GatewayError


def parse_engine_object(raw: bytes, what: str) -> dict[str, Any]:
    """A reply, or an event of a stream: a JSON object, which may still tell of an error.

    Args:
        raw: from the engine.
        what: how the failure calls it (`reply`, `event`).

    Raises:
        EngineFailure: it is no object, or no JSON.
    """
    try:
        payload = jsonbody.parse_value(raw)
    except GatewayError:
        payload = None
    if not isinstance(payload, dict):
        raise protocol_failure(f"The engine sent an unreadable {what}.")
    return payload


def raise_error(payload: Mapping[str, Any]) -> None:
    """Raises what a reply or an event with the status 200 tells of an error.

    Raises:
        EngineFailure: there is an error in it: nested, flat, or as Messages has it.
    """
    if payload.get("error") is not None or payload.get("type") == "error":
        raise EngineFailure(parse_error_frame(payload))
    if payload.get("object") == "error":
        raise EngineFailure(parse_error_frame({"error": payload}))


def read_text(holder: Mapping[str, Any], key: str) -> str:
    """A text of a message, a delta or a block; empty where it is absent or null.

    Raises:
        EngineFailure: it is no text.
    """
    text = holder.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise protocol_failure(f"The engine sent a {key} that is no text.")
    return text
