"""How one request meets one engine: what is sent, and how its answer is read.

A table over (the client's dialect, the engine's dialect). The request is prepared once; an
exchange is built for each server that is tried, since aliases and the engine's dialect are its.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway import jsonbody
from gateway.dialects import chat
from gateway.dialects.relay import Relay
from gateway.jsonbody import Body, Edits
from gateway.routes import Dialect, Route

EVENT_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that passed the contract.

    Attributes:
        body: the client's.
        edits: of the contract and the filters, by top-level field.
        asked: the model name that the client sent.
        stream: the client asked for a stream.
        rename_reasoning: see `chat.Look`.
    """

    route: Route
    body: Body
    edits: Edits
    asked: str
    stream: bool
    request_id: str
    rename_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to one engine.

    Attributes:
        path: on the engine.
        body: for the engine.
        parse_reply: a buffered reply's bytes to the client's; raises EngineFailure.
        build_relay: a fresh relay for the streamed reply.
        keepalive: written to the client in silence.
        messages: the engine is spoken to in Messages.
    """

    path: str
    body: bytes
    parse_reply: Callable[[bytes], bytes]
    build_relay: Callable[[], Relay]
    keepalive: bytes
    messages: bool = False


def build_exchange(prepared: Prepared, sent_model: str) -> Exchange:
    """The exchange of a request with a server that knows the model as `sent_model`."""
    edits = dict(prepared.edits)
    if sent_model != prepared.asked:
        edits["model"] = jsonbody.render_value(sent_model)
    look = chat.Look(
        model=prepared.asked if sent_model != prepared.asked else None,
        rename_reasoning=prepared.rename_reasoning,
        usage_chunk=asks_for_usage(prepared.body),
        choices=choice_count(prepared.body, edits),
    )
    return Exchange(
        path=prepared.route.path,
        body=prepared.body.edit(edits),
        parse_reply=lambda raw: chat.parse_reply(raw, look),
        build_relay=lambda: chat.ChatRelay(
            look, request_id=prepared.request_id, dialect=Dialect.CHAT
        ),
        keepalive=chat.KEEPALIVE,
    )


_TRUE_TEXTS: Final = frozenset({"true", "t", "yes", "y", "on", "1"})


def is_true(value: object) -> bool:
    """Whether the engine reads `value` as true: it coerces as pydantic's lax mode does."""
    if isinstance(value, str):
        return value.strip().lower() in _TRUE_TEXTS
    return isinstance(value, bool | int | float) and value == 1


def asks_for_usage(body: Body) -> bool:
    """Whether the client asked for the usage chunk of a stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and is_true(options.get("include_usage"))


def choice_count(body: Body, edits: Edits) -> int:
    """How many choices the engine was asked for."""
    raw = edits.get("n", body.get_raw("n"))
    try:
        count = int(float(jsonbody.parse_value(raw))) if isinstance(raw, bytes) else 1  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 1
    return max(1, count)
