"""Messages bodies for the engine's own token counter.

The engine turns what it is sent into a Chat request by rules of its own, which differ from ours
in the order of tool results, in the joints of system texts and in what is refused. So that the
count is that of the very prompt which a generation would be billed for, the body is rendered
back from the converted request: already folded, so that the engine has nothing left to decide.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.dialects.messages.request import Converted, to_chat
from gateway.dialects.messages.turns import Call, Image, Part, Reference, Result, Text, Turn

_COUNTED: Final = frozenset(
    {
        "messages",
        "model",
        "output_config",
        "parallel_tool_calls",
        "reasoning_effort",
        "response_format",
        "tool_choice",
        "tools",
    }
)
"""Keys of a Chat body that are said in another way to the counter."""

_GENERATION: Final = frozenset(
    {"max_tokens", "stop", "stream", "stream_options", "temperature", "top_k", "top_p", "user"}
)
"""Keys of a Chat body that shape the answer and not the prompt."""

_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}

_EFFORTS: Final = frozenset({"minimal", "low", "medium", "high", "xhigh", "max"})
"""The efforts that the counter's schema has words for."""


def count_tokens_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a Messages request to the body of a count that equals its bill.

    Args:
        body: as the client sent it, decoded; `max_tokens` may be absent.

    Raises:
        GatewayError: 400, for whatever would be refused in a generation too.
    """
    return render_count(to_chat(body, default_max_tokens=None, require_max_tokens=False))


def render_count(converted: Converted) -> dict[str, Any]:
    """The body of a count for a request that was converted already."""
    chat = converted.body
    conversation = converted.conversation
    count = {key: value for key, value in chat.items() if key not in _COUNTED | _GENERATION}
    if "model" in chat:
        count["model"] = chat["model"]
    count["messages"] = [_message(turn) for turn in conversation.turns]
    if conversation.system is not None:
        count["system"] = conversation.system
    if "tools" in chat:
        count["tools"] = [_tool(tool) for tool in chat["tools"]]
    if "tool_choice" in chat:
        count["tool_choice"] = _tool_choice(chat["tool_choice"])
    thinking = _thinking(chat)
    if thinking is not None:
        count["thinking"] = {"type": "adaptive" if thinking else "disabled"}
    output_config = _output_config(chat)
    if output_config:
        count["output_config"] = output_config
    return count


def _message(turn: Turn) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": "\n".join(turn.thinking)})
    blocks += [_result(result) for result in turn.results.values()]
    blocks += [_block(part) for part in [*turn.images, *turn.parts]]
    blocks += [_call(call) for call in turn.calls]
    return {"role": turn.role, "content": blocks or ""}


def _result(result: Result) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = result.text
    if result.references:
        parts: list[Part] = [*result.references, *([Text(result.text)] if result.text else [])]
        content = [_block(part) for part in parts]
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": content}


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url):
            return {"type": "image", "source": _source(url)}
        case Reference(name):
            return {"type": "tool_reference", "tool_name": name}


def _source(url: str) -> dict[str, Any]:
    head, mark, data = url.partition(";base64,")
    if mark and head.startswith("data:"):
        media_type = head.removeprefix("data:")
        return {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "url", "url": url}


def _call(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    others = {key: value for key, value in tool.items() if key not in ("type", "function")}
    return {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
        "strict": function["strict"],
        **others,
    }


def _tool_choice(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": _CHOICES[choice]}
    return {"type": "tool", "name": choice["function"]["name"]}


def _thinking(chat: Mapping[str, Any]) -> bool | None:
    """Whether the prompt is rendered with thinking on; None where the template decides.

    An effort switches thinking as well, in a Chat request, unless a template argument does.
    """
    own = chat.get("chat_template_kwargs")
    for key in ("enable_thinking", "thinking"):
        if isinstance(own, Mapping) and isinstance(own.get(key), bool):
            return bool(own[key])
    effort = chat.get("reasoning_effort")
    return None if effort is None else effort != "none"


def _output_config(chat: Mapping[str, Any]) -> dict[str, Any]:
    config = dict(chat.get("output_config") or {})
    effort = "max" if chat.get("reasoning_effort") == "ultra" else chat.get("reasoning_effort")
    if isinstance(effort, str) and effort in _EFFORTS:
        config["effort"] = effort
    response_format = chat.get("response_format")
    if response_format is not None:
        schema = response_format["json_schema"]["schema"]
        config["format"] = {"type": "json_schema", "schema": schema}
    return config
