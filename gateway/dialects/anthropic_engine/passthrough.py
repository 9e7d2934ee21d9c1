"""A Messages client and an engine that speaks Messages: passed through, not converted.

On the way in, only what the engine would refuse is taken out: hosted tools, what a vendor's own
tools left in the history, redacted thinking; and Claude Code's billing line, which would defeat
the engine's prefix cache. On the way out, bytes pass as they came but for the model's name.

    state    event                                   next    to the client
    held     message_start, an empty text block,     held    (kept back)
             the end of one, what is not known
    held     ping                                    held    nothing
    held     anything that says something            open    what was kept back, and the event
    held     error                                   -       EngineFailure: an HTTP error
    open     event                                   open    the event
    open     error, unreadable                       -       EngineFailure: fail()
    any      message_stop                            done    the event
    any      end                                     -       EngineFailure: fail()
    done     anything                                done    nothing

After an error the engine sends a `message_stop` all the same: it is not passed on, for the SDKs
take it for success.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from gateway import jsonbody, sse
from gateway.dialects.anthropic_engine.events import parse_event, read_index, read_object
from gateway.dialects.anthropic_engine.reply import read_blocks
from gateway.dialects.engine_json import parse_engine_object
from gateway.dialects.errors import (
    EngineFailure,
    Failure,
    cut_off_failure,
    protocol_failure,
    render_error_event,
)
from gateway.dialects.messages.fields import is_server_block, without_billing_line
from gateway.errors import GatewayError
from gateway.hosted_tools import MESSAGES_TOOL_TYPES, split_tools
from gateway.jsonbody import REMOVE, Body, Edits
from gateway.routes import Dialect

_TEXT_OF: Final = MappingProxyType({"text": "text", "thinking": "thinking"})
"""The blocks that may start empty, and where their text is."""

_split_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def passthrough_edits(body: Body) -> Edits:
    """What has to go from a Messages request before an engine that speaks Messages sees it.

    Returns:
        Nothing, where nothing has to go, so that the engine gets the client's bytes. Otherwise
        the new values of some top-level keys, in which everything that stays keeps its bytes.

    Raises:
        GatewayError: 400, for a tool of an unknown type. Whatever else is malformed is left for
            the engine to refuse.
    """
    return {**_tool_edits(body), **_system_edits(body), **_message_edits(body)}


def _tool_edits(body: Body) -> Edits:
    """Hosted tools go, and with them a choice that names one or has no tool left."""
    tools = body.get_shape("tools")
    split = split_tools(tools, MESSAGES_TOOL_TYPES)
    if not split.dropped_types or not isinstance(tools, list):
        return {}
    if not split.kept:
        return {"tools": REMOVE, "tool_choice": REMOVE}
    kept = {id(tool) for tool in split.kept}
    indices = [index for index, tool in enumerate(tools) if id(tool) in kept]
    edits: dict[str, Any] = {"tools": _pick(body.get_raw("tools") or b"[]", indices)}
    choice = body.get_shape("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "tool":
        named = [tool for tool in tools if tool.get("name") == choice.get("name")]
        if named and not any(id(tool) in kept for tool in named):
            edits["tool_choice"] = REMOVE
    return edits


def _system_edits(body: Body) -> Edits:
    """The billing line goes, from the very beginning of the system prompt."""
    system = body.get_shape("system")
    raw = body.get_raw("system") or b"null"
    if isinstance(system, str):
        text = without_billing_line(system)
        if text == system:
            return {}
        return {"system": jsonbody.render_value(text) if text else REMOVE}
    first = system[0] if isinstance(system, list) and system else None
    if not isinstance(first, dict) or not isinstance(first.get("text"), str):
        return {}
    text = without_billing_line(first["text"])
    if text == first["text"]:
        return {}
    head, *rest = _split_array(raw)
    kept = [jsonbody.parse_object(bytes(head)).edit({"text": jsonbody.render_value(text)})]
    blocks = [*(kept if text else []), *(bytes(block) for block in rest)]
    return {"system": _join(blocks) if blocks else REMOVE}


def _message_edits(body: Body) -> Edits:
    """Blocks that no engine knows go; a turn that has no other gets an empty text."""
    messages = body.get_shape("messages")
    if not isinstance(messages, list):
        return {}
    kept = {
        index: indices
        for index, message in enumerate(messages)
        if (indices := _kept_blocks(message)) is not None
    }
    if not kept:
        return {}
    raws = [bytes(raw) for raw in _split_array(body.get_raw("messages") or b"[]")]
    for index, indices in kept.items():
        message = jsonbody.parse_object(raws[index])
        content = _pick(message.get_raw("content") or b"[]", indices) if indices else b'""'
        raws[index] = message.edit({"content": content})
    return {"messages": _join(raws)}


def _kept_blocks(message: object) -> list[int] | None:
    """The indices of the blocks that stay; None where all do."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return None
    kept = [index for index, block in enumerate(content) if not _is_dropped(block)]
    return None if len(kept) == len(content) else kept


def _is_dropped(block: object) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and (kind == "redacted_thinking" or is_server_block(kind))


def _pick(array: bytes, indices: list[int]) -> bytes:
    items = _split_array(array)
    return _join([bytes(items[index]) for index in indices])


def _join(items: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def parse_messages_reply(raw: bytes, model: str | None) -> bytes:
    """An engine's buffered reply, as the client is to see it.

    Args:
        raw: the reply.
        model: the name that the client sent, where the engine names another; else None.

    Raises:
        EngineFailure: it is unreadable, has no content, or tells of an error.
    """
    read_blocks(parse_engine_object(raw, "reply"))
    return raw if model is None else _rename(raw, model)


def _rename(raw: bytes, model: str) -> bytes:
    return _parse_object(raw).edit({"model": jsonbody.render_value(model)})


def _parse_object(raw: bytes) -> Body:
    try:
        return jsonbody.parse_object(raw)
    except GatewayError:
        raise protocol_failure("The engine sent an unreadable message.") from None


class MessagesRelay:
    """An engine's Messages stream to a Messages client; see `Relay`.

    Args:
        model: the name that the client sent, where the engine names another; else None.
        request_id: of the client's request.
    """

    def __init__(self, *, model: str | None, request_id: str) -> None:
        self._model = model
        self._request_id = request_id
        self._held: list[bytes] | None = []
        self._open: set[int] = set()
        self._started = False
        self._failed = False
        self.done = False

    def feed(self, event: sse.Event) -> list[bytes]:
        """See `Relay`."""
        if self.done or self._failed:
            return []
        try:
            payload = parse_event(event)
            return [] if payload is None else self._take(event, payload)
        except EngineFailure:
            self._failed = True
            raise

    def finish(self) -> list[bytes]:
        """See `Relay`. An end that the engine left out is a cut: its answer may be one too."""
        if not self.done:
            raise cut_off_failure()
        return []

    def fail(self, failure: Failure) -> list[bytes]:
        """See `Relay`."""
        if self.done:
            return []
        self.done = True
        shown = sorted(self._open) if self._held is None else ()
        stops = [
            sse.render_event(
                jsonbody.render_value({"type": "content_block_stop", "index": index}),
                "content_block_stop",
            )
            for index in shown
        ]
        error = render_error_event(Dialect.MESSAGES, failure, request_id=self._request_id)
        return [*stops, error]

    def _take(self, event: sse.Event, payload: Mapping[str, Any]) -> list[bytes]:
        kind = str(payload["type"])
        match kind:
            case "message_start":
                read_object(payload, "message")
                self._started = True
            case "content_block_start":
                self._open.add(read_index(payload))
            case "content_block_stop":
                self._open.discard(read_index(payload))
            case "message_stop":
                if not self._started:
                    raise protocol_failure("The engine ended its stream without a message.")
                self.done = True
        frame = self._render(event, kind)
        if self._held is None:
            return [frame]
        if kind == "ping":
            return []
        self._held.append(frame)
        if not _speaks(kind, payload):
            return []
        held, self._held = self._held, None
        return held

    def _render(self, event: sse.Event, kind: str) -> bytes:
        """The event as it came, unless its model or its name has to be put right."""
        data = event.data
        if kind == "message_start" and self._model is not None:
            data = _rename_inner(data, self._model)
        if data is event.data and event.event == kind:
            return event.raw
        return sse.render_event(data, kind)


def _rename_inner(data: bytes, model: str) -> bytes:
    start = _parse_object(data)
    return start.edit({"message": _rename(start.get_raw("message") or b"{}", model)})


def _speaks(kind: str, payload: Mapping[str, Any]) -> bool:
    """Whether an event says something to the client: content, a call, or the end."""
    match kind:
        case "content_block_start":
            block = read_object(payload, "content_block")
            text = _TEXT_OF.get(str(block.get("type")))
            return text is None or bool(block.get(text))
        case "content_block_delta":
            delta = read_object(payload, "delta")
            return any(value for key, value in delta.items() if key != "type")
    return kind in {"message_delta", "message_stop"}
