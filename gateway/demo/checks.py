"""What SGLang refuses of a request, and how it says so. Pure.

Only the checks that a gateway can run into are here; like the engine, unknown fields and unknown
model names are not looked at.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

CONTEXT_TOKENS: Final = 32768
"""The context of the demo's model; a word is a token."""


class Refusal(Exception):  # noqa: N818 - an answer, not an error of this program
    """A request that the engine does not take.

    Args:
        message: as the engine words it.
        status: of the answer.
        type: of the error body.
    """

    def __init__(self, message: str, status: int = 400, type: str = "BadRequestError") -> None:  # noqa: A002 - the wire's name
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type


Range = tuple[Callable[[float], bool], str]

_RANGES: Final[Mapping[str, Range]] = {
    "temperature": (lambda value: value >= 0, "temperature must be non-negative, got {}."),
    "top_p": (lambda value: 0 < value <= 1, "top_p must be in (0, 1], got {}."),
    "top_k": (
        lambda value: value == -1 or value >= 1,
        "top_k must be -1 (disable), or at least 1, got {}.",
    ),
    "min_p": (lambda value: 0 <= value <= 1, "min_p must be in [0, 1], got {}."),
    "repetition_penalty": (
        lambda value: 0 < value <= 2,
        "repetition_penalty must be in (0, 2], got {}.",
    ),
    "frequency_penalty": (
        lambda value: -2 <= value <= 2,
        "frequency_penalty must be in [-2, 2], got {}.",
    ),
    "presence_penalty": (
        lambda value: -2 <= value <= 2,
        "presence_penalty must be in [-2, 2], got {}.",
    ),
}

_CHAT_NOT_NULL: Final = (
    "model",
    "n",
    "stream",
    "logprobs",
    "parallel_tool_calls",
    "frequency_penalty",
    "presence_penalty",
    "skip_special_tokens",
    "continue_final_message",
    "ignore_eos",
)
_COMPLETIONS_NOT_NULL: Final = (
    *_CHAT_NOT_NULL,
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "echo",
)
_PARTS: Final = frozenset(
    {"text", "image_url", "video_url", "audio_url", "input_audio", "thinking", "reasoning"}
    | {"tool_reference"}
)
_BLOCKS: Final = frozenset(
    {"text", "image", "tool_use", "tool_result", "tool_reference", "search_result", "thinking"}
)


def check_chat(body: Mapping[str, Any]) -> None:
    """Raises a `Refusal` where the chat route would refuse."""
    _check_fields(body, _CHAT_NOT_NULL)
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise _schema("messages", "Field required" if messages is None else "not a valid list")
    if not messages:
        raise Refusal("Messages cannot be empty.")
    for index, message in enumerate(messages):
        _check_message(f"messages.{index}", message)
    _check_tools(body)
    if body.get("n") == 0:
        raise Refusal("range() arg 3 must not be zero")
    for name in ("max_completion_tokens", "max_tokens"):
        if isinstance(body.get(name), int) and body[name] < 0:
            raise Refusal(f"max_new_tokens must be at least 0, got {body[name]}.")


def check_completions(body: Mapping[str, Any]) -> None:
    """Raises a `Refusal` where the completions route would refuse."""
    _check_fields(body, _COMPLETIONS_NOT_NULL)
    if "prompt" not in body:
        raise _schema("prompt", "Field required")
    if not body["prompt"]:
        raise Refusal("Prompt cannot be empty.")
    if body.get("max_tokens", 16) <= 0:
        raise Refusal("max_tokens must be positive")


def check_embeddings(body: Mapping[str, Any]) -> None:
    """Raises a `Refusal` where the embeddings route would refuse."""
    if not body.get("input"):
        raise Refusal("Input cannot be empty")
    if body.get("encoding_format", "float") not in {"float", "base64"}:
        raise _schema("encoding_format", "Input should be 'float' or 'base64'")


def check_messages(body: Mapping[str, Any], *, counting: bool = False) -> None:
    """Raises a `Refusal` where the Messages route, or its counting, would refuse."""
    if not body.get("model") or not isinstance(body["model"], str):
        raise Refusal("model: Field required", type="invalid_request_error")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise Refusal("messages: Field required", type="invalid_request_error")
    budget = body.get("max_tokens")
    if not counting and (not isinstance(budget, int) or budget <= 0):
        reason = "Field required" if budget is None else "Input should be greater than 0"
        raise Refusal(f"max_tokens: {reason}", type="invalid_request_error")
    for index, message in enumerate(body["messages"]):
        if message.get("role") not in {"user", "assistant", "system"}:
            raise Refusal(f"messages.{index}.role: not a role", type="invalid_request_error")
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        for place, block in enumerate(blocks):
            if block.get("type") not in _BLOCKS:
                what = f"messages.{index}.content.{place}: unsupported block {block.get('type')}"
                raise Refusal(what, type="invalid_request_error")


def _check_fields(body: Mapping[str, Any], not_null: tuple[str, ...]) -> None:
    for name in not_null:
        if name in body and body[name] is None:
            raise _schema(name, "Input should not be None")
    for name, (accepts, message) in _RANGES.items():
        value = body.get(name)
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise _schema(name, "Input should be a valid number") from None
        if not accepts(number):
            raise Refusal(message.format(value))


def _check_tools(body: Mapping[str, Any]) -> None:
    for index, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict) or not isinstance(tool.get("function"), dict):
            raise _schema(f"tools.{index}.function", "Field required")
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) and choice not in {None, "auto", "required", "none"}:
        raise _schema("tool_choice", "not a valid choice")
    if choice == "required" and not body.get("tools"):
        raise Refusal("Tools cannot be empty if tool choice is set to required.")


def _check_message(where: str, message: object) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise _schema(f"{where}.role", "Field required")
    content = message.get("content")
    if content is None and message["role"] == "user":
        raise _schema(f"{where}.content", "Input should be a valid string")
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or part.get("type") not in _PARTS:
            raise _schema(f"{where}.content", "Input should be a known part")
        if part["type"] == "image_url" and not isinstance(part.get("image_url"), dict):
            raise _schema(f"{where}.content.image_url", "Input should be a valid dictionary")


def _schema(field: str, reason: str) -> Refusal:
    """A schema error in the manner of the engine's: long, and with a path of the server."""
    return Refusal(
        f"1 validation error:\n  {{'type': 'value_error', 'loc': ('body', '{field}'), 'msg':"
        f" '{reason}'}}\n\n  File \"/opt/engine/entrypoints/http_server.py\", line 1",
        type="Bad Request",
    )
