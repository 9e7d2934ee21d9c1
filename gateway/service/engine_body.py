"""The body that an engine gets, in the dialect that it is spoken to in.

A Chat engine gets the hub with its edits. A Messages engine gets either the client's own Messages
body, edited in place, or the hub converted; what Messages cannot say is settled here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway import jsonbody
from gateway.dialects import anthropic_engine
from gateway.errors import bad_request
from gateway.jsonbody import REMOVE, Edits
from gateway.service.prepare import Prepared

_SAME_IN_MESSAGES: Final = frozenset({"temperature", "top_p", "top_k", "max_tokens"})
"""Fields that Chat and Messages call the same: the contract's edits of them fit either body."""

_MESSAGES_TOKENS: Final = frozenset({"max_completion_tokens", "max_tokens"})


@dataclass(frozen=True, slots=True)
class Side:
    """The engine's side of an exchange.

    Attributes:
        model: the name that it is sent.
        messages: it is spoken to in Messages.
        default_max_tokens: for a Messages engine, where the request sets no budget.
    """

    model: str
    messages: bool = False
    default_max_tokens: Callable[[], int] = lambda: 4096


def engine_edits(prepared: Prepared, side: Side) -> Edits:
    """The hub's edits, the model's name among them."""
    if prepared.hub.get("model") == side.model:
        return prepared.edits
    return {**prepared.edits, "model": jsonbody.render_value(side.model)}


def passed_through(prepared: Prepared, side: Side) -> bytes:
    """A Messages body for a Messages engine: the client's, the contract's edits in place.

    A contract that changes a field under a name that only Chat has cannot be applied so; then
    the body is rendered anew from the hub.
    """
    for name in anthropic_engine.unsayable(prepared.body.keys()):
        _require_sayable(name, prepared.body.get(name))
    changed = {
        name: value
        for name, value in prepared.edits.items()
        if value is not REMOVE and not (name in prepared.written and _cannot_say(name, value))
    }
    if changed.keys() - _SAME_IN_MESSAGES - set(anthropic_engine.unsayable(changed)):
        return messages_body(prepared, side)
    edits = {name: value for name, value in changed.items() if name in _SAME_IN_MESSAGES}
    budget = prepared.hub.get_raw("max_tokens")
    if prepared.body.is_unset("max_tokens") and "max_tokens" not in edits and budget is not None:
        edits["max_tokens"] = budget
    if prepared.asked != side.model:
        edits["model"] = jsonbody.render_value(side.model)
    edited = prepared.body.edited(edits)
    return edited.edit(anthropic_engine.passthrough_edits(edited))


def messages_body(prepared: Prepared, side: Side) -> bytes:
    """The hub as a Messages body.

    What the profile writes in and Messages cannot say is left out: the start says so, and the
    client, who did not send it, is not to blame.
    """
    edits = {
        name: value
        for name, value in engine_edits(prepared, side).items()
        if not (name in prepared.written and _cannot_say(name, value))
    }
    fields = jsonbody.parse_value(prepared.hub.edit(edits))
    if not isinstance(fields, dict):
        raise TypeError("a body is an object")
    default = 1
    if all(not fields.get(name) for name in _MESSAGES_TOKENS):
        default = side.default_max_tokens()
    return jsonbody.render_value(anthropic_engine.to_messages(fields, default_max_tokens=default))


def _cannot_say(name: str, value: object) -> bool:
    return isinstance(value, bytes) and not anthropic_engine.can_say(
        name, jsonbody.parse_value(value)
    )


def _require_sayable(name: str, value: object) -> None:
    if not anthropic_engine.can_say(name, value):
        raise bad_request(f"{name} cannot be served on this model's Messages endpoint.", name)
