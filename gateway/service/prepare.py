"""From a client's body to a request that an engine may get: conversion, contract, filters.

Chat is the hub. A Chat, completions or embeddings body is its own hub, and keeps its bytes; a
Messages or Responses body is converted, and the contract judges what it was converted to, for
that is what the engine acts on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway import jsonbody
from gateway.contract import Change, Verdict, decide, renames_reasoning
from gateway.dialects import messages, responses
from gateway.dialects.messages.count import render_count
from gateway.engine.filters import filter_body
from gateway.errors import GatewayError, bad_request
from gateway.jsonbody import Body, Edits
from gateway.profile import Profile
from gateway.routes import COUNT_TOKENS, EMBEDDINGS, INPUT_TOKENS, Dialect, Route
from gateway.service.work import Work

Converted = messages.Converted | responses.Converted

_OWN_NAMES: Final[Mapping[Dialect, Mapping[str, str]]] = {
    Dialect.MESSAGES: {
        "reasoning_effort": "output_config.effort",
        "response_format": "output_config.format",
        "stop": "stop_sequences",
        "user": "metadata.user_id",
    },
    Dialect.RESPONSES: {
        "max_completion_tokens": "max_output_tokens",
        "reasoning_effort": "reasoning.effort",
        "response_format": "text.format",
    },
}
"""By dialect, what its clients call a field that the contract knows by its name in Chat."""

_TRUE_TEXTS: Final = frozenset({"true", "t", "yes", "y", "on", "1"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that passed the contract; the same for every server that is tried.

    Attributes:
        body: the client's.
        hub: the Chat body that stands for it; `body` itself where nothing is converted.
        edits: what the contract and the filters change in the hub, by top-level field.
        written: the fields that the contract wrote in, rather than the client.
        asked: the model name that the client sent.
        converted: what the reply of a converted request has to be told.
        rename_reasoning: see `chat.Look`.
    """

    route: Route
    body: Body
    hub: Body
    edits: Edits
    asked: str
    stream: bool
    request_id: str
    written: frozenset[str] = frozenset()
    converted: Converted | None = None
    rename_reasoning: bool = False


def prepare(profile: Profile, work: Work, body: Body, asked: str) -> Prepared:
    """Brings a request under the contract; what was done is noted in the work's record.

    Args:
        profile: in force.
        work: of the request.
        body: of the client, whose model is served.
        asked: the model name in it.

    Raises:
        GatewayError: 400, the request is malformed or breaks the contract.
    """
    if work.route in {COUNT_TOKENS, INPUT_TOKENS}:
        return _prepare_count(work, body, asked)
    convert = _CONVERT.get(work.route.dialect)
    hub, converted = body, None
    dropped: tuple[str, ...] = ()
    route = work.route
    if convert is not None:
        chat, converted, dropped = convert(_decoded(body), profile)
        hub = jsonbody.parse_object(jsonbody.render_value(chat))
        route = replace(route, dialect=Dialect.CHAT)
    verdict = decide(profile, route, hub)
    work.record.decisions = verdict.decisions
    if verdict.rejection is not None:
        raise _in_own_words(verdict.rejection, work.route, body)
    filtered = filter_body(hub, route)
    work.record.dropped_tools = (*dropped, *filtered.dropped_tools)
    work.record.removed = filtered.removed
    # An engine's embeddings never stream, whatever the field says.
    work.record.stream = work.route is not EMBEDDINGS and is_true(hub.get("stream"))
    written = frozenset(one.field for one in verdict.decisions if one.change is Change.WRITTEN)
    return Prepared(
        route=work.route,
        body=body,
        hub=hub,
        edits=_merged(verdict, filtered.edits),
        asked=asked,
        stream=work.record.stream,
        request_id=work.record.request_id,
        written=written,
        converted=converted,
        rename_reasoning=converted is None and renames_reasoning(profile, body),
    )


def _in_own_words(rejection: GatewayError, route: Route, body: Body) -> GatewayError:
    """A rejection by the name that the client gave the field."""
    field = rejection.param
    own = _OWN_NAMES.get(route.dialect, {}).get(field or "")
    if field is None or own is None or field in body:
        return rejection
    message = rejection.message.replace(field, own, 1)
    return GatewayError(rejection.kind, message, param=own, headers=rejection.headers)


def _merged(verdict: Verdict, filters: Edits) -> Edits:
    """Both sets of edits.

    What a filter removes the contract may have written in (then it stays), but not merely have
    folded into one.
    """
    folded = {one.field for one in verdict.decisions if one.change is Change.FOLDED}
    kept = {name: value for name, value in verdict.edits.items() if name not in folded}
    return {**verdict.edits, **filters, **kept}


def _prepare_count(work: Work, body: Body, asked: str) -> Prepared:
    """A count is the engine's own, for the Messages body that the generation would come to."""
    fields = _decoded(body)
    if work.route is COUNT_TOKENS:
        converted = messages.to_chat(fields, default_max_tokens=None, require_max_tokens=False)
        work.record.dropped_tools = converted.dropped_tools
        count = render_count(converted)
    else:
        count = responses.count_tokens_body(fields)
    hub = jsonbody.parse_object(jsonbody.render_value(count))
    return Prepared(
        work.route, body, hub, {}, asked, stream=False, request_id=work.record.request_id
    )


_Chat = tuple[Mapping[str, Any], Converted, tuple[str, ...]]


def _convert_messages(fields: Mapping[str, Any], profile: Profile) -> _Chat:
    default = None if profile.output is None else profile.output.written
    converted = messages.to_chat(fields, default_max_tokens=default)
    return converted.body, converted, converted.dropped_tools


def _convert_responses(fields: Mapping[str, Any], profile: Profile) -> _Chat:
    del profile
    converted = responses.to_chat(fields)
    return converted.chat, converted, converted.dropped_tools


_CONVERT: Final = {Dialect.MESSAGES: _convert_messages, Dialect.RESPONSES: _convert_responses}


def _decoded(body: Body) -> dict[str, Any]:
    value = jsonbody.parse_value(body.raw, "The request body")
    if not isinstance(value, dict):  # it was read as an object before
        raise bad_request("The request body must be a JSON object.")
    return value


def is_true(value: object) -> bool:
    """Whether the engine reads `value` as true: it coerces as pydantic's lax mode does."""
    if isinstance(value, str):
        return value.strip().lower() in _TRUE_TEXTS
    return isinstance(value, bool | int | float) and value == 1
