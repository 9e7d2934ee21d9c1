"""An engine's Messages replies as Chat ones, and what a stream of one shares with it.

    stop_reason                                       finish_reason
    max_tokens, model_context_window_exceeded         length
    tool_use                                          tool_calls
    refusal                                           content_filter
    end_turn, stop_sequence, pause_turn, or none      stop; with calls: tool_calls

The text is "" where there is none, beside calls too, as SGLang has it in Chat. A last call without
arguments in an answer that was cut off was cut off before them: they stay empty.

Blocks of other types (redacted thinking, what a vendor's own tools did) have no place in Chat and
are left out.
"""

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway import jsonbody
from gateway.dialects.engine_json import raise_error, read_text
from gateway.dialects.errors import protocol_failure

_FINISH_REASONS: Final = MappingProxyType(
    {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
)
_INPUT_KEYS: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE_KEYS: Final = (*_INPUT_KEYS, "output_tokens")


def from_messages_reply(reply: Mapping[str, Any], *, model: str, created: int) -> dict[str, Any]:
    """Converts a buffered Messages reply to a Chat completion.

    Args:
        reply: the engine's, decoded.
        model: the name that the client sent.
        created: the time of the reply, in seconds since the epoch.

    Raises:
        EngineFailure: the reply tells of an error, or is none.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in read_blocks(reply):
        match block.get("type"):
            case "text":
                texts.append(read_text(block, "text"))
            case "thinking":
                thoughts.append(read_text(block, "thinking"))
            case "tool_use":
                calls.append(render_call(block, render_input(block.get("input"))))
    text = "".join(texts)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text,
        "reasoning_content": "".join(thoughts) or None,
    }
    ending = render_finish(reply, called=bool(calls))
    if calls:
        message["tool_calls"] = calls
        if was_cut(ending) and _is_bare(read_blocks(reply)[-1]):
            calls[-1]["function"]["arguments"] = ""
    return {
        "id": completion_id(reply.get("id")),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                **ending,
            }
        ],
        "usage": render_usage(read_usage(reply.get("usage"))),
    }


def _is_bare(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and not block.get("input")


def read_blocks(reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The content of a Messages reply.

    Raises:
        EngineFailure: the reply tells of an error, or is none.
    """
    raise_error(reply)
    content = reply.get("content")
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise protocol_failure("The engine sent a reply without content.")
    return content


def render_call(block: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    """A Chat call, from a `tool_use` block.

    Raises:
        EngineFailure: the block has no id or no name: the call could never be answered.
    """
    call_id, name = read_text(block, "id"), read_text(block, "name")
    if not call_id or not name:
        raise protocol_failure("The engine sent a tool call without an id or a name.")
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def render_input(tool_input: object) -> str:
    """A call's input as Chat's arguments: the text of an object, `{}` where there is none."""
    return jsonbody.render_value(tool_input if isinstance(tool_input, Mapping) else {}).decode()


def completion_id(message_id: object) -> str:
    """The engine's id of a message, as Chat spells one; a new one where it gave none."""
    own = message_id.removeprefix("msg_") if isinstance(message_id, str) else ""
    return f"chatcmpl-{own or uuid.uuid4().hex}"


def render_finish(said: Mapping[str, Any], *, called: bool) -> dict[str, Any]:
    """Why the generation ended: `finish_reason`, and the stop text where the engine names it.

    Args:
        said: what has the engine's `stop_reason` and `stop_sequence`.
        called: there are calls in the reply.
    """
    reason = said.get("stop_reason")
    finish = _FINISH_REASONS.get(reason, "stop") if isinstance(reason, str) else "stop"
    if finish == "stop" and called:
        finish = "tool_calls"
    return {"finish_reason": finish, "matched_stop": said.get("stop_sequence")}


def was_cut(ending: Mapping[str, Any]) -> bool:
    """Whether a last call without arguments was cut off before them, and is not one without any.

    A client that ran it with nothing would do what the model never asked for.
    """
    return bool(ending["finish_reason"] == "length")


def read_usage(usage: object) -> dict[str, int]:
    """The counts that a `usage` states; what is null or absent is left out."""
    if not isinstance(usage, Mapping):
        return {}
    return {
        key: usage[key]
        for key in _USAGE_KEYS
        if isinstance(usage.get(key), int) and not isinstance(usage[key], bool)
    }


def render_usage(counts: Mapping[str, int]) -> dict[str, Any]:
    """Chat's usage: its prompt tokens include the cached ones, Messages' do not."""
    prompt = sum(counts.get(key, 0) for key in _INPUT_KEYS)
    completion = counts.get("output_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": counts.get("cache_read_input_tokens", 0)},
    }
