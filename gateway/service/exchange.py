"""How one request meets one engine: what is sent, and how its answer is read.

A table over the client's dialect and the engine's:

    client        engine in Chat                    engine in Messages
    chat          the client's bytes, edited        → Messages; its answers → Chat
    responses     → Chat; answers → Responses       → Chat → Messages; → Chat → Responses
    messages      → Chat; answers → Messages        the client's bytes, edited
    completions   the client's bytes, edited        the same: Messages has no such route
    embeddings    the client's bytes, edited        the same
    counts        the engine's own counter, always

The request is prepared once (`prepare`); an exchange is built for each server that is tried,
since the model's name and the engine's dialect are the server's.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway import jsonbody
from gateway.dialects import anthropic_engine, chat, messages, responses
from gateway.dialects.composed import ComposedRelay
from gateway.dialects.engine_json import parse_engine_object, raise_error
from gateway.dialects.errors import protocol_failure
from gateway.dialects.relay import Relay
from gateway.errors import GatewayError
from gateway.jsonbody import REMOVE, Body, Edits
from gateway.routes import CHAT, COMPLETIONS, COUNT_TOKENS, EMBEDDINGS, INPUT_TOKENS, Dialect
from gateway.routes import MESSAGES as MESSAGES_ROUTE
from gateway.service.engine_body import Side, engine_edits, messages_body, passed_through
from gateway.service.prepare import Prepared, is_true

_PING: Final = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to one engine.

    Attributes:
        path: on the engine.
        body: for the engine.
        parse_reply: a buffered reply's bytes to the client's; raises EngineFailure.
        build_relay: a fresh relay for the streamed reply; None where nothing streams.
        keepalive: written to the client in silence.
        messages: the engine is spoken to in Messages.
        second_body: sent instead where the engine answers 400 to `body`; None: nothing is.
    """

    path: str
    body: bytes
    parse_reply: Callable[[bytes], bytes]
    build_relay: Callable[[], Relay] | None = None
    keepalive: bytes = chat.KEEPALIVE
    messages: bool = False
    second_body: bytes | None = None


def build_exchange(prepared: Prepared, side: Side) -> Exchange:
    """The exchange of a request with an engine.

    Raises:
        GatewayError: 400, an engine that is spoken to in Messages cannot be told a field.
    """
    if prepared.route in _FIXED:
        return _FIXED[prepared.route](prepared, side)
    return _BUILDERS[prepared.route.dialect, side.messages](prepared, side)


def _echo(prepared: Prepared, side: Side) -> str | None:
    """The name that a relayed reply has to be given; None where it has it already."""
    return prepared.asked if prepared.asked != side.model else None


def _look(prepared: Prepared, side: Side, edits: Edits) -> chat.Look:
    return chat.Look(
        model=_echo(prepared, side),
        rename_reasoning=prepared.rename_reasoning,
        usage_chunk=asks_for_usage(prepared.body),
        choices=choice_count(prepared.hub, edits),
    )


def _relayed(prepared: Prepared, side: Side) -> Exchange:
    """Chat to Chat, and completions."""
    edits = engine_edits(prepared, side)
    look = _look(prepared, side, edits)
    dialect = prepared.route.dialect
    return Exchange(
        path=prepared.route.path,
        body=prepared.hub.edit(edits),
        parse_reply=lambda raw: chat.parse_reply(raw, look),
        build_relay=lambda: chat.ChatRelay(look, request_id=prepared.request_id, dialect=dialect),
    )


def _chat_to_messages(prepared: Prepared, side: Side) -> Exchange:
    look = replace(_look(prepared, side, prepared.edits), model=None)
    created = int(time.time())

    def parse_reply(raw: bytes) -> bytes:
        reply = anthropic_engine.from_messages_reply(
            _parsed(raw), model=prepared.asked, created=created
        )
        return look.apply(jsonbody.render_value(reply))

    return Exchange(
        path=MESSAGES_ROUTE.path,
        body=messages_body(prepared, side),
        parse_reply=parse_reply,
        build_relay=lambda: anthropic_engine.MessagesToChatRelay(
            model=prepared.asked, created=created, look=look, request_id=prepared.request_id
        ),
        messages=True,
    )


def _responses_to_chat(prepared: Prepared, side: Side) -> Exchange:
    answer = _response_of(prepared)
    return Exchange(
        path=CHAT.path,
        body=prepared.hub.edit(engine_edits(prepared, side)),
        parse_reply=lambda raw: answer.render(_parsed(raw)),
        build_relay=answer.relay,
        keepalive=responses.KEEPALIVE,
    )


def _responses_to_messages(prepared: Prepared, side: Side) -> Exchange:
    answer = _response_of(prepared)

    def parse_reply(raw: bytes) -> bytes:
        return answer.render(
            anthropic_engine.from_messages_reply(
                _parsed(raw), model=prepared.asked, created=answer.created_at
            )
        )

    def build_relay() -> Relay:
        events = anthropic_engine.MessagesToChatEvents(
            model=prepared.asked, created=answer.created_at
        )
        return ComposedRelay(events, answer.relay())

    return Exchange(
        path=MESSAGES_ROUTE.path,
        body=messages_body(prepared, side),
        parse_reply=parse_reply,
        build_relay=build_relay,
        keepalive=responses.KEEPALIVE,
        messages=True,
    )


@dataclass(frozen=True, slots=True)
class _Response:
    """A Response in the making: its identity is the same however it is sent."""

    converted: responses.Converted
    model: str
    response_id: str
    created_at: int

    def render(self, reply: Mapping[str, Any]) -> bytes:
        return jsonbody.render_value(
            responses.from_chat_reply(
                reply,
                self.converted,
                model=self.model,
                response_id=self.response_id,
                created_at=self.created_at,
            )
        )

    def relay(self) -> Relay:
        return responses.ChatToResponsesRelay(
            self.converted,
            model=self.model,
            response_id=self.response_id,
            created_at=self.created_at,
        )


def _response_of(prepared: Prepared) -> _Response:
    if not isinstance(prepared.converted, responses.Converted):
        raise TypeError("not a Responses request")
    return _Response(
        prepared.converted, prepared.asked, f"resp_{uuid.uuid4().hex}", int(time.time())
    )


def _messages_to_chat(prepared: Prepared, side: Side) -> Exchange:
    converted = prepared.converted
    if not isinstance(converted, messages.Converted):
        raise TypeError("not a Messages request")

    def parse_reply(raw: bytes) -> bytes:
        return jsonbody.render_value(
            messages.from_chat_reply(
                _parsed(raw),
                model=prepared.asked,
                stop_sequences=converted.stop_sequences,
                format_tool=converted.format_tool,
            )
        )

    return Exchange(
        path=CHAT.path,
        body=prepared.hub.edit(engine_edits(prepared, side)),
        parse_reply=parse_reply,
        build_relay=lambda: messages.ChatToMessagesRelay(
            model=prepared.asked,
            stop_sequences=converted.stop_sequences,
            format_tool=converted.format_tool,
            request_id=prepared.request_id,
        ),
        keepalive=_PING,
    )


def _messages_to_messages(prepared: Prepared, side: Side) -> Exchange:
    echo = _echo(prepared, side)
    return Exchange(
        path=MESSAGES_ROUTE.path,
        body=passed_through(prepared, side),
        parse_reply=lambda raw: anthropic_engine.parse_messages_reply(raw, echo),
        build_relay=lambda: anthropic_engine.MessagesRelay(
            model=echo, request_id=prepared.request_id
        ),
        keepalive=_PING,
        messages=True,
    )


def _embeddings(prepared: Prepared, side: Side) -> Exchange:
    def parse_reply(raw: bytes) -> bytes:
        try:
            reply = jsonbody.parse_object(raw)
        except GatewayError:
            raise protocol_failure("The engine sent an unreadable reply.") from None
        raise_error({name: reply.get_shape(name) for name in ("error", "type", "object")})
        if "data" not in reply:
            raise protocol_failure("The engine sent a reply without embeddings.")
        return reply.edit({"model": jsonbody.render_value(prepared.asked)})

    return Exchange(
        path=EMBEDDINGS.path,
        body=prepared.hub.edit(engine_edits(prepared, side)),
        parse_reply=parse_reply,
    )


def _count(prepared: Prepared, side: Side) -> Exchange:
    """A count by the engine.

    Its counter refuses `thinking` where its model has no such mode, and a generation does not:
    then it is asked again without.
    """
    edits = engine_edits(prepared, side)
    again = prepared.hub.edit({**edits, "thinking": REMOVE})
    responding = prepared.route is INPUT_TOKENS

    def parse_reply(raw: bytes) -> bytes:
        answer = _parsed(raw)
        raise_error(answer)
        count = answer.get("input_tokens")
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise protocol_failure("The engine sent a reply without a count.")
        reply = responses.render_count(count) if responding else {"input_tokens": count}
        return jsonbody.render_value(reply)

    return Exchange(
        path=COUNT_TOKENS.path,
        body=prepared.hub.edit(edits),
        parse_reply=parse_reply,
        messages=True,
        second_body=again if "thinking" in prepared.hub else None,
    )


_FIXED: Final = {
    COMPLETIONS: _relayed,
    EMBEDDINGS: _embeddings,
    COUNT_TOKENS: _count,
    INPUT_TOKENS: _count,
}
"""Routes that no setting of a server changes."""

_BUILDERS: Final = {
    (Dialect.CHAT, False): _relayed,
    (Dialect.CHAT, True): _chat_to_messages,
    (Dialect.RESPONSES, False): _responses_to_chat,
    (Dialect.RESPONSES, True): _responses_to_messages,
    (Dialect.MESSAGES, False): _messages_to_chat,
    (Dialect.MESSAGES, True): _messages_to_messages,
}


def _parsed(raw: bytes) -> dict[str, Any]:
    return parse_engine_object(raw, "reply")


def asks_for_usage(body: Body) -> bool:
    """Whether the client asked for the usage chunk of a stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and is_true(options.get("include_usage"))


def choice_count(body: Body, edits: Edits) -> int:
    """How many choices the engine was asked for: `n` for each prompt."""
    raw = edits.get("n", body.get_raw("n"))
    count = 1
    if isinstance(raw, bytes):
        try:
            count = max(1, int(float(jsonbody.parse_value(raw))))  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError, GatewayError):
            count = 1
    return count * _prompt_count(body.get("prompt"))


def _prompt_count(prompt: object) -> int:
    """A list of texts, or of lists of token ids, is so many prompts."""
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        return len(prompt)
    return 1
