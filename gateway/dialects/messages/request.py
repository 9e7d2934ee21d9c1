"""Messages requests as Chat requests.

The table of fields, beside the conversation itself (see `turns`):

    max_tokens                               as it is, an integer of at least 1
    stop_sequences                           stop
    tools                                    tools, as functions; hosted ones are dropped
    tool_choice auto, any, none, tool        tool_choice auto, required, none, function
    tool_choice.disable_parallel_tool_use    parallel_tool_calls: false, where it is true
    thinking enabled, adaptive, disabled     chat_template_kwargs.thinking, .enable_thinking
    output_config.effort                     reasoning_effort
    output_config.format                     response_format
    metadata.user_id                         user, up to 64 characters
    stream: true                             stream_options with usage in every chunk

What has no meaning for an engine does not pass (`_NOT_PASSED`); any other key does, as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway import jsonbody
from gateway.dialects.format_tool import offer_format
from gateway.dialects.messages.fields import (
    read_flag,
    read_list,
    read_name,
    read_object,
    read_text,
    shown,
    wrong_type,
)
from gateway.dialects.messages.turns import (
    Call,
    Conversation,
    Image,
    Part,
    Reference,
    Result,
    Text,
    Turn,
    parse_conversation,
)
from gateway.errors import bad_request
from gateway.hosted_tools import MESSAGES_TOOL_TYPES, split_tools

_MAX_USER_CHARACTERS: Final = 64

_MAPPED: Final = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "output_config",
        "stop_sequences",
        "stream",
        "stream_options",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""Keys that are read here; what they say is in the Chat body under other names or in new form."""

_NOT_PASSED: Final = frozenset(
    {"betas", "cache_control", "container", "context_management", "mcp_servers"}
)
"""Keys that only Anthropic's own servers can serve."""

_TOOL_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}

_THINKING: Final = {"enabled": True, "adaptive": True, "disabled": False}

_TOOL_KEYS: Final = frozenset(
    {"type", "name", "description", "input_schema", "strict", "cache_control"}
)


@dataclass(frozen=True, slots=True)
class Converted:
    """A Messages request as the hub knows it, with what its reply has to be told.

    Attributes:
        body: the Chat body.
        dropped_tools: the types of the hosted tools that were left out.
        stop_sequences: the client's own, so that a reply can name the one that was met.
        format_tool: the tool whose call is the answer; None where there is no such tool.
        conversation: what the messages of the body were rendered from.
    """

    body: dict[str, Any]
    dropped_tools: tuple[str, ...]
    stop_sequences: tuple[str, ...]
    format_tool: str | None
    conversation: Conversation


def to_chat(
    body: Mapping[str, Any], *, default_max_tokens: int | None, require_max_tokens: bool = True
) -> Converted:
    """Converts a Messages request.

    Args:
        body: as the client sent it, decoded; it is not changed.
        default_max_tokens: in tokens; stands in for a `max_tokens` that is absent.
        require_max_tokens: whether a request without any budget is refused. A count of tokens
            has none.

    Raises:
        GatewayError: 400, naming the field.
    """
    conversation = parse_conversation(body)
    chat = {key: value for key, value in body.items() if key not in _MAPPED | _NOT_PASSED}
    chat["messages"] = render_messages(conversation)
    budget = _max_tokens(body.get("max_tokens"), default_max_tokens, required=require_max_tokens)
    if budget is not None:
        chat["max_tokens"] = budget
    stop_sequences = _stop_sequences(body.get("stop_sequences"))
    if stop_sequences:
        chat["stop"] = list(stop_sequences)
    if read_flag(body.get("stream"), "stream"):
        chat["stream"] = True
        # Usage in every chunk is what lets a stream begin with the true number of input tokens.
        chat["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    elif body.get("stream") is False:
        chat["stream"] = False
    dropped = _set_tools(chat, body)
    _set_thinking(chat, body.get("thinking"))
    _set_output(chat, body.get("output_config"))
    _set_user(chat, body.get("metadata"))
    return Converted(chat, dropped, stop_sequences, offer_format(chat), conversation)


def render_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The conversation as Chat messages, the system prompt first."""
    messages: list[dict[str, Any]] = []
    if conversation.system is not None:
        messages.append({"role": "system", "content": conversation.system})
    for turn in conversation.turns:
        messages += _user(turn) if turn.role == "user" else [_assistant(turn)]
    return messages


def _user(turn: Turn) -> list[dict[str, Any]]:
    messages = [_tool_message(result) for result in turn.results.values()]
    parts: list[Part] = [*turn.images, *turn.parts]
    if parts or not messages:
        messages.append({"role": "user", "content": _content(parts)})
    return messages


def _tool_message(result: Result) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = result.text
    if result.references:
        # Templates that know references look for them at the head of the message.
        parts: list[Part] = [*result.references]
        content = [_part(part) for part in parts + ([Text(result.text)] if result.text else [])]
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _assistant(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _content(turn.parts)}
    if turn.thinking:
        message["reasoning_content"] = "\n".join(turn.thinking)
    if turn.calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = [_call(call) for call in turn.calls]
    return message


def _content(parts: list[Part]) -> str | list[dict[str, Any]]:
    """Plain text where that is all, else parts; several texts stay apart."""
    match parts:
        case []:
            return ""
        case [Text(text)]:
            return text
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url):
            return {"type": "image_url", "image_url": {"url": url}}
        case Reference(name):
            return {"type": "tool_reference", "name": name}


def _call(call: Call) -> dict[str, Any]:
    arguments = jsonbody.render_value(call.input).decode("ascii")
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _max_tokens(value: object, default: int | None, *, required: bool) -> int | None:
    if value is None:
        if default is None and required:
            raise bad_request("max_tokens: a value is required, an integer ≥ 1", "max_tokens")
        return default
    # A budget of 0 would be none at all to the engine: it reads 0 as absent.
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise wrong_type("max_tokens", "an integer ≥ 1", value)
    return value


def _stop_sequences(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    # An empty text is met at once: the answer would always be empty.
    return tuple(
        read_name(text, f"stop_sequences[{index}]")
        for index, text in enumerate(read_list(value, "stop_sequences"))
    )


def _set_tools(chat: dict[str, Any], body: Mapping[str, Any]) -> tuple[str, ...]:
    """Sets `tools`, `tool_choice` and `parallel_tool_calls`; returns the dropped types."""
    given = body.get("tools")
    dropped = split_tools(given, MESSAGES_TOOL_TYPES).dropped_types
    tools = [
        _tool(tool, f"tools[{index}]")
        for index, tool in enumerate(given or ())
        if tool.get("type") in MESSAGES_TOOL_TYPES
    ]
    if tools:
        chat["tools"] = tools
    if body.get("tool_choice") is None or (dropped and not tools):
        return dropped
    choice = read_object(body["tool_choice"], "tool_choice")
    if read_flag(choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use"):
        chat["parallel_tool_calls"] = False
    mapped = _tool_choice(choice)
    if isinstance(mapped, str) or not _is_dropped(mapped["function"]["name"], given):
        chat["tool_choice"] = mapped
    return dropped


def _is_dropped(name: str, tools: list[Mapping[str, Any]] | None) -> bool:
    """Whether a hosted tool has this name, and no tool of the client's own has it."""
    types = [tool.get("type") for tool in tools or () if tool.get("name") == name]
    return bool(types) and not any(kind in MESSAGES_TOOL_TYPES for kind in types)


def _tool_choice(choice: Mapping[str, Any]) -> str | dict[str, Any]:
    kind = choice.get("type")
    if kind == "tool":
        name = read_name(choice.get("name"), "tool_choice.name")
        return {"type": "function", "function": {"name": name}}
    if not isinstance(kind, str) or kind not in _TOOL_CHOICES:
        raise wrong_type("tool_choice.type", "auto, any, tool or none", kind)
    return _TOOL_CHOICES[kind]


def _tool(tool: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A tool as SGLang's own Messages route would hand it to the chat template, key for key.

    A template may render every key, and a count has to agree with the bill.
    """
    schema = read_object(tool.get("input_schema"), f"{path}.input_schema")
    function = {
        "name": read_name(tool.get("name"), f"{path}.name"),
        "description": read_text(tool.get("description") or "", f"{path}.description"),
        "parameters": schema if "type" in schema else {**schema, "type": "object"},
        "strict": read_flag(tool.get("strict"), f"{path}.strict"),
    }
    others = {key: value for key, value in tool.items() if key not in _TOOL_KEYS}
    return {"type": "function", "function": function, **others}


def _set_thinking(chat: dict[str, Any], value: object) -> None:
    if value is None:
        return
    kind = read_object(value, "thinking").get("type")
    if not isinstance(kind, str) or kind not in _THINKING:
        raise wrong_type("thinking.type", "enabled, adaptive or disabled", kind)
    own = chat.get("chat_template_kwargs")
    own = {} if own is None else read_object(own, "chat_template_kwargs")
    on = _THINKING[kind]
    chat["chat_template_kwargs"] = {"thinking": on, "enable_thinking": on, **own}


def _set_output(chat: dict[str, Any], value: object) -> None:
    if value is None:
        return
    config = read_object(value, "output_config")
    if config.get("effort") is not None:
        chat["reasoning_effort"] = config["effort"]
    if config.get("format") is not None:
        chat["response_format"] = _response_format(config["format"])
    others = {key: item for key, item in config.items() if key not in ("effort", "format")}
    if others:
        chat["output_config"] = others


def _response_format(value: object) -> dict[str, Any]:
    path = "output_config.format"
    given = read_object(value, path)
    if given.get("type") != "json_schema":
        raise bad_request(
            f"{path}.type: expected json_schema, got {shown(given.get('type'))}", f"{path}.type"
        )
    schema = read_object(given.get("schema"), f"{path}.schema")
    described = {"name": "response", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": described}


def _set_user(chat: dict[str, Any], value: object) -> None:
    if value is None:
        return
    user = read_object(value, "metadata").get("user_id")
    if user is None:
        return
    # Claude Code's id has about 150 characters, more than an engine is to be sent.
    if len(read_text(user, "metadata.user_id")) <= _MAX_USER_CHARACTERS:
        chat["user"] = user
