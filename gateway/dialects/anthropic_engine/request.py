"""Chat requests as Messages requests.

The table of fields, beside the conversation (see `turns`) and the tools (see `tools`):

    max_completion_tokens, max_tokens    max_tokens, always an integer of at least 1
    stop                                 stop_sequences
    response_format json_schema          output_config.format
    reasoning_effort, reasoning          output_config.effort and thinking
    chat_template_kwargs                 thinking, for the two names that templates have for it
    user                                 metadata.user_id
    stream_options                       not passed: a Messages stream always tells its usage
    the fields of `unsayable`            left out where neutral, else a 400

The engine ignores in silence what its Messages route does not declare. So a field that would
change the answer, and that Messages has no word for, is refused rather than lost; any other key
passes as it is.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.dialects.anthropic_engine.tools import render_tools
from gateway.dialects.anthropic_engine.turns import read_conversation
from gateway.dialects.messages.fields import read_list, read_object, read_text, shown, wrong_type
from gateway.errors import GatewayError, bad_request

_NEUTRAL: Final[Mapping[str, object]] = MappingProxyType(
    {
        "n": 1,
        "min_p": 0,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "repetition_penalty": 1,
        "seed": None,
        "logprobs": False,
        "top_logprobs": 0,
        "logit_bias": {},
    }
)
"""The Chat fields that Messages has no word for, and the value that says nothing anyway."""

_CONVERTED: Final = frozenset(
    {
        *_NEUTRAL,
        "chat_template_kwargs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "parallel_tool_calls",
        "reasoning",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream_options",
        "tool_choice",
        "tools",
        "user",
    }
)
"""The keys of a Chat body that are said in other words, or not at all."""

_BUDGETS: Final = ("max_completion_tokens", "max_tokens")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}(?:\.0+)?")
_THINKING_KWARGS: Final = ("enable_thinking", "thinking")
"""What chat templates call the switch, the more common name first."""

_EFFORTS: Final = MappingProxyType({"ultra": "max"})
"""Efforts that Messages spells otherwise."""


def unsayable(fields: Iterable[str]) -> tuple[str, ...]:
    """Those of some Chat fields that Messages cannot say, in the order given.

    A contract on such a field holds on a Messages engine only as far as its values are neutral:
    see `can_say`.
    """
    return tuple(field for field in fields if field in _NEUTRAL)


def can_say(field: str, value: object) -> bool:
    """Whether a Chat field with this value means the same to a Messages engine.

    True for every field that Messages knows, and for the value of another field that asks for
    nothing: a penalty of 0, `n: 1`, null.
    """
    if field not in _NEUTRAL or value is None:
        return True
    neutral = _NEUTRAL[field]
    return value == neutral and isinstance(value, bool) is isinstance(neutral, bool)


def to_messages(chat: Mapping[str, Any], *, default_max_tokens: int) -> dict[str, Any]:
    """Converts a Chat request.

    Args:
        chat: the request under its contract, with `model` as the engine knows it, decoded. It
            is not changed.
        default_max_tokens: the budget, in tokens, of a request that sets none: Messages has no
            word for "as much as fits".

    Raises:
        GatewayError: 400, for a field that is malformed or that Messages cannot say.
    """
    for field in _NEUTRAL:
        if not can_say(field, chat.get(field)):
            raise _refused(field, chat[field])
    system, messages = read_conversation(chat.get("messages"))
    body = {key: value for key, value in chat.items() if key not in _CONVERTED}
    body["messages"] = messages
    if system is not None:
        body["system"] = system
    body["max_tokens"] = _read_budget(chat) or default_max_tokens
    body.update(render_tools(chat))
    body.update(_render_stop(chat.get("stop")))
    body.update(_render_user(chat))
    body.update(_render_reasoning(chat))
    body.update(_render_output_config(chat))
    return body


def _refused(field: str, value: object) -> GatewayError:
    neutral = _NEUTRAL[field]
    allowed = "leave it out" if neutral is None else f"leave it out or send {shown(neutral)}"
    if neutral == {}:
        allowed = "leave it out or send an empty object"
    return bad_request(
        f"{field}: {shown(value)} is not supported for this model, whose engine speaks "
        f"Anthropic Messages; {allowed}",
        field,
    )


def _read_budget(chat: Mapping[str, Any]) -> int | None:
    """The budget in tokens: of the first field that sets one; null and 0 set none."""
    for field in _BUDGETS:
        budget = _read_tokens(chat.get(field), field)
        if budget:
            return budget
    return None


def _read_tokens(value: object, field: str) -> int:
    """An integer as the engine reads one: `2`, `2.0` and `"2"` are the same."""
    if value is None:
        return 0
    number: int | None = None
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        number = int(value.partition(".")[0])
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None or number < 0:
        raise wrong_type(field, "an integer of at least 1", value)
    return number


def _render_stop(stop: object) -> dict[str, Any]:
    if stop is None or stop == []:
        return {}
    if isinstance(stop, str):
        return {"stop_sequences": [stop]}
    texts = read_list(stop, "stop")
    return {
        "stop_sequences": [read_text(text, f"stop[{index}]") for index, text in enumerate(texts)]
    }


def _render_user(chat: Mapping[str, Any]) -> dict[str, Any]:
    user = chat.get("user")
    if user is None:
        return {}
    metadata = chat.get("metadata")
    own = {} if metadata is None else read_object(metadata, "metadata")
    return {"metadata": {**own, "user_id": read_text(user, "user")}}


def _render_reasoning(chat: Mapping[str, Any]) -> dict[str, Any]:
    """`thinking`, and what is left of `chat_template_kwargs`.

    The client's own switch wins; without one an effort is a switch too, as it is for the engine
    in a Chat request. A `thinking` in Messages' own words stays.
    """
    rendered: dict[str, Any] = {}
    kwargs = chat.get("chat_template_kwargs")
    own = {} if kwargs is None else read_object(kwargs, "chat_template_kwargs")
    others = {key: value for key, value in own.items() if key not in _THINKING_KWARGS}
    if others:
        rendered["chat_template_kwargs"] = others
    switch = _read_switch(own)
    if switch is None:
        effort = _read_effort(chat)
        if effort is not None:
            switch = effort != "none"
        elif _reasoning(chat).get("enabled") is True:
            switch = True
    if switch is not None and chat.get("thinking") is None:
        rendered["thinking"] = {"type": "adaptive" if switch else "disabled"}
    return rendered


def _read_switch(kwargs: Mapping[str, Any]) -> bool | None:
    for name in _THINKING_KWARGS:
        value = kwargs.get(name)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise wrong_type(f"chat_template_kwargs.{name}", "true or false", value)
        return value
    return None


def _reasoning(chat: Mapping[str, Any]) -> Mapping[str, Any]:
    value = chat.get("reasoning")
    return {} if value is None else read_object(value, "reasoning")


def _read_effort(chat: Mapping[str, Any]) -> str | None:
    """The effort; the one inside `reasoning` comes first, as it does for the engine."""
    inner = _reasoning(chat).get("effort")
    field, value = "reasoning.effort", inner
    if inner is None:
        field, value = "reasoning_effort", chat.get("reasoning_effort")
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_type(field, "a word such as 'low' or 'high'", value)
    return _EFFORTS.get(value, value)


def _render_output_config(chat: Mapping[str, Any]) -> dict[str, Any]:
    own = chat.get("output_config")
    config = {} if own is None else dict(read_object(own, "output_config"))
    effort = _read_effort(chat)
    if effort is not None and effort != "none":
        config["effort"] = effort
    schema = _read_schema(chat.get("response_format"))
    if schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema}
    return {"output_config": config} if config else {}


def _read_schema(response_format: object) -> Mapping[str, Any] | None:
    if response_format is None:
        return None
    kind = read_object(response_format, "response_format").get("type")
    match kind:
        case "text":
            return None
        case "json_schema":
            described = read_object(
                response_format.get("json_schema"),  # type: ignore[attr-defined]
                "response_format.json_schema",
            )
            return read_object(described.get("schema"), "response_format.json_schema.schema")
    raise bad_request(
        f"response_format.type: {shown(kind)} is not supported for this model, whose engine "
        "speaks Anthropic Messages; use 'text' or 'json_schema'",
        "response_format",
    )
