"""What is taken out of a request on its way to an engine; whatever is not named here passes.

Rules:

- Fields that only mean something to a vendor's platform are removed, at the top level only.
- `cache_control` is removed where it is a mark (see `cache_control`).
- A `user` of more than 64 characters is dropped whole.
- A key whose value is null is dropped where the engine would refuse null: clients serialise
  unset options so.
- `stream_options` goes where nothing is streamed.
- Hosted tools are dropped (see `tool_drop`).
- Token ids that would end the engine are refused (see `token_ids`).

An engine that is spoken to in Messages needs the tools and the `user` looked after only: what it
does not declare it ignores, the marks included.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from gateway.engine.cache_control import (
    MARK,
    SHAPES,
    join_array,
    split_array,
    strip_raw,
    strip_value,
)
from gateway.engine.token_ids import FIELDS, check_token_ids
from gateway.engine.tool_drop import OURS, Dropped, drop_hosted
from gateway.jsonbody import REMOVE, Body, Edits, Remove, render_value
from gateway.routes import Dialect, Route

PLATFORM_FIELDS: Final = frozenset(
    {"prompt_cache_key", "prompt_cache_retention", "verbosity", "store", "service_tier"}
)
"""Removed from the top level on the engine's default endpoints."""

MAX_USER_CHARACTERS: Final = 64
"""The longest `user` that is sent on: the limit of the vendor's own interface."""

_SHARED_NULLS: Final = frozenset(
    {
        "frequency_penalty",
        "ignore_eos",
        "min_tokens",
        "n",
        "no_stop_trim",
        "presence_penalty",
        "return_cached_tokens_details",
        "return_hidden_states",
        "return_routed_experts",
        "return_spec_tokens_details",
        "return_token_ids",
        "routed_experts_start_len",
        "skip_special_tokens",
        "stream",
    }
)

REFUSED_NULLS: Final[Mapping[Dialect, Collection[str]]] = {
    Dialect.CHAT: _SHARED_NULLS
    | {
        "continue_final_message",
        "logprobs",
        "parallel_tool_calls",
        "return_flat_raw_output_top_logprobs",
        "return_flat_raw_top_logprobs_b64",
        "return_input_ids_in_sglext",
        "return_meta_info",
        "return_output_ids_in_sglext",
        "return_prompt_token_ids",
        "return_sampling_mask",
        "separate_reasoning",
        "stream_reasoning",
        "use_audio_in_video",
    },
    Dialect.COMPLETIONS: _SHARED_NULLS
    | {"echo", "max_tokens", "min_p", "repetition_penalty", "temperature", "top_k", "top_p"},
    Dialect.EMBEDDINGS: frozenset({"encoding_format"}),
}
"""By the dialect that the engine is spoken to in, the fields whose null it refuses: those that
it declares with a default and a type that has no null."""

_TRUE_TEXTS: Final = frozenset({"1", "on", "t", "true", "y", "yes"})


class Fields(Protocol):
    """The top-level fields of a request, as bytes or as values."""

    def keys(self) -> Iterable[str]:
        """The names."""
        ...

    def __contains__(self, name: str, /) -> bool:
        """Whether the field is there, be it null."""
        ...

    def get(self, name: str, /) -> object:
        """The value, decoded."""
        ...


@dataclass(frozen=True, slots=True)
class Filtered:
    """What filtering a body comes to.

    Attributes:
        edits: for `Body.edit`.
        dropped_tools: the types of the hosted tools that were dropped, for the response header.
        removed: the fields of which something was removed, for the log.
    """

    edits: Edits = field(default_factory=dict)
    dropped_tools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilteredFields:
    """The same for decoded fields: `fields` is a new dict, the given one is left alone."""

    fields: dict[str, object]
    dropped_tools: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def filter_body(
    body: Body, route: Route, *, messages_endpoint: bool = False, vocab_size: int | None = None
) -> Filtered:
    """What is taken out of a client's body.

    On a route whose dialect is converted before it is sent (Responses, Messages, and Chat to an
    engine that is spoken to in Messages), only what concerns the client's own body is done here;
    the converted one goes through `filter_fields`.

    Args:
        body: the client's, read strictly.
        route: it came by.
        messages_endpoint: the engine is spoken to in Messages.
        vocab_size: of the model, where it is known.

    Raises:
        GatewayError: 400, a tool of unknown type or a token id that would end the engine.
    """
    dialect = route.dialect
    edits: dict[str, bytes | Literal[Remove.REMOVE]] = {}
    dropped = _hosted(body, dialect)
    if dropped.types:
        edits.update(_tool_edits(body, dropped))
    as_sent = dialect in REFUSED_NULLS and not (messages_endpoint and dialect is Dialect.CHAT)
    gone = removed_fields(body, dialect) if as_sent else _long_user(body, dialect)
    edits.update(dict.fromkeys(gone, REMOVE))
    removed = list(gone)
    if as_sent:
        guarded = FIELDS[dialect]
        if guarded in body:
            check_token_ids(guarded, body.get(guarded), vocab_size)
        if dialect is Dialect.CHAT and _strip_body(body, edits) and MARK not in removed:
            removed.append(MARK)
    return Filtered(edits, dropped.types, tuple(removed))


def filter_fields(
    fields: Mapping[str, object], dialect: Dialect = Dialect.CHAT, *, vocab_size: int | None = None
) -> FilteredFields:
    """What is taken out of a body that was converted and is about to be sent.

    Args:
        fields: decoded.
        dialect: that the engine is spoken to in; in Messages only hosted tools go.
        vocab_size: of the model, where it is known.

    Raises:
        GatewayError: as for `filter_body`.
    """
    dropped = _hosted(fields, dialect)
    result = dict(fields)
    if dropped.types:
        tools = fields["tools"]
        kept = [tools[place] for place in dropped.kept] if isinstance(tools, list) else []
        result["tools"] = kept
        if not kept:
            del result["tools"]
        if dropped.choice_changes:
            result["tool_choice"] = dropped.choice
            if dropped.choice is None:
                del result["tool_choice"]
    if dialect not in REFUSED_NULLS:
        return FilteredFields(result, dropped.types)
    removed = removed_fields(fields, dialect)
    for name in removed:
        del result[name]
    guarded = FIELDS[dialect]
    check_token_ids(guarded, fields.get(guarded), vocab_size)
    if dialect is Dialect.CHAT:
        before = [result.get(name) for name in SHAPES]
        result.update({n: strip_value(result[n], s) for n, s in SHAPES.items() if n in result})
        same = all(result.get(n) is old for n, old in zip(SHAPES, before, strict=True))
        if not same and MARK not in removed:
            removed = (*removed, MARK)
    return FilteredFields(result, dropped.types, removed)


def removed_fields(fields: Fields, dialect: Dialect) -> tuple[str, ...]:
    """The top-level fields that an engine's default endpoint is not sent, in their order."""
    nulls = REFUSED_NULLS[dialect]
    return tuple(
        name
        for name in fields.keys()  # noqa: SIM118 - a Body is no mapping
        if name in PLATFORM_FIELDS
        or name == MARK
        or (name in nulls and fields.get(name) is None)
        or (name == "user" and _is_long(fields.get(name)))
        or (name == "stream_options" and _is_idle(fields))
    )


def _long_user(fields: Fields, dialect: Dialect) -> tuple[str, ...]:
    return ("user",) if dialect is Dialect.CHAT and _is_long(fields.get("user")) else ()


def _is_long(user: object) -> bool:
    return isinstance(user, str) and len(user) > MAX_USER_CHARACTERS


def _is_idle(fields: Fields) -> bool:
    """Whether the options are for a stream that is not asked for."""
    return fields.get("stream_options") is not None and not _is_true(fields.get("stream"))


def _is_true(value: object) -> bool:
    """Whether the engine reads a value as true: it takes more than the literal for it."""
    if isinstance(value, str):
        return value.strip().lower() in _TRUE_TEXTS
    return isinstance(value, int | float) and value == 1


def _hosted(fields: Fields, dialect: Dialect) -> Dropped:
    if dialect not in OURS or "tools" not in fields:
        return Dropped((), ())
    if isinstance(fields, Body):
        return drop_hosted(fields.get_shape("tools"), fields.get_shape("tool_choice"), dialect)
    return drop_hosted(fields.get("tools"), fields.get("tool_choice"), dialect)


def _tool_edits(body: Body, dropped: Dropped) -> Edits:
    edits: dict[str, bytes | Literal[Remove.REMOVE]] = {"tools": REMOVE}
    if dropped.kept:
        elements = split_array(body.get_raw("tools") or b"[]")
        edits["tools"] = join_array(elements[place] for place in dropped.kept)
    if dropped.choice_changes:
        choice = dropped.choice
        edits["tool_choice"] = REMOVE if choice is None else render_value(choice)
    return edits


def _strip_body(body: Body, edits: dict[str, bytes | Literal[Remove.REMOVE]]) -> bool:
    """Strips the marks below the top level, on top of `edits`; whether there were any."""
    found = False
    for name, shape in SHAPES.items():
        raw = edits.get(name, body.get_raw(name))
        stripped = strip_raw(raw, shape) if isinstance(raw, bytes) else None
        if stripped is not None:
            edits[name] = stripped
            found = True
    return found
