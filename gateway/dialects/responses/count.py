"""The body of a count that equals what a Responses request would be billed.

The engine counts for its Messages route only, so the request takes both steps: to Chat, as for a
generation, and from there to Messages. What shapes the answer and not the prompt is left out: it
costs no tokens, and Messages has no words for some of it.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.dialects.anthropic_engine.request import to_messages
from gateway.dialects.responses.request import to_chat

_PROMPT: Final = frozenset(
    {
        "chat_template_kwargs",
        "messages",
        "model",
        "parallel_tool_calls",
        "reasoning",
        "reasoning_effort",
        "response_format",
        "tool_choice",
        "tools",
    }
)
"""The keys of a Chat body that shape the prompt."""


def count_tokens_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body for the engine's token counter.

    Args:
        body: of `/v1/responses/input_tokens`, decoded.

    Raises:
        GatewayError: 400, for whatever would be refused in a generation too.
    """
    converted = to_chat(body).chat
    chat = {key: value for key, value in converted.items() if key in _PROMPT}
    form = chat.get("response_format")
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        chat.pop("response_format", None)
    effort = chat.get("reasoning_effort")
    if effort is not None and not isinstance(effort, str):
        # A number is an effort to Chat; of it the prompt shows that there is thinking.
        del chat["reasoning_effort"]
        chat["reasoning"] = {"enabled": True}
    count = to_messages(chat, default_max_tokens=1)
    del count["max_tokens"]
    return count


def render_count(input_tokens: int) -> dict[str, Any]:
    """The reply of `/v1/responses/input_tokens`."""
    return {"object": "response.input_tokens", "input_tokens": input_tokens}
