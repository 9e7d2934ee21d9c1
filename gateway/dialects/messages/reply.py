"""Chat replies as Messages replies, and what a stream of one shares with it.

    finish_reason                                         stop_reason
    length                                                max_tokens
    content_filter                                        refusal
    tool_calls, function_call                             tool_use
    stop (or none), with calls                            tool_use
    stop, matched_stop is one of the client's texts       stop_sequence, which is named
    anything else                                         end_turn
    abort                                                 no reply: the engine failed

Where the call of the format tool is the answer, it is a text like any other and no call. A blank
text or thought (reasoning parsers leave line breaks behind) is a block only where it is all there
is.
"""

import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from gateway import jsonbody
from gateway.dialects.engine_json import raise_error
from gateway.dialects.errors import (
    aborted_failure,
    protocol_failure,
)
from gateway.errors import GatewayError

_STOP_REASONS: Final = {
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}

_REASONING_KEYS: Final = ("reasoning_content", "reasoning")
"""SGLang's name for it, and that of its kin."""


class _Call(NamedTuple):
    id: str
    name: str
    arguments: str


def from_chat_reply(
    reply: Mapping[str, Any],
    *,
    model: str,
    stop_sequences: Collection[str] = (),
    format_tool: str | None = None,
) -> dict[str, Any]:
    """Converts a buffered Chat reply.

    Args:
        reply: the engine's, decoded.
        model: the name that the client sent.
        stop_sequences: those that the client sent.
        format_tool: the tool whose call is the answer, where one was offered.

    Raises:
        EngineFailure: the reply tells of an error, was aborted, or is none.
    """
    raise_error(reply)
    choice = first_choice(reply)
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, Mapping):
        raise protocol_failure("The engine sent a reply without a choice.")
    finish = finish_of(choice)
    message_id = message_id_of(reply)
    calls = [
        _parse_call(call, fallback_call_id(message_id, index))
        for index, call in enumerate(calls_of(message))
    ]
    own = [call for call in calls if call.name != format_tool]
    answers = [call.arguments for call in calls if call.name == format_tool]
    text = text_of(message)
    blocks = [
        ("thinking", reasoning_of(message)),
        ("text", text),
        # The answer is one text: of several calls of the format tool, the first is it.
        ("text", answers[0] if answers else ""),
    ]
    content = [{**empty_block(kind), kind: said} for kind, said in blocks if said.strip()]
    content += [_tool_use(call) for call in own]
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content or [{"type": "text", "text": text}],
        **stop_of(
            finish,
            matched_stop=choice.get("matched_stop"),
            stop_sequences=stop_sequences,
            called=bool(own),
            answered=bool(answers),
        ),
        "usage": usage_of(reply.get("usage")),
    }


def first_choice(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The choice of index 0; Messages have no place for others.

    Raises:
        EngineFailure: the choices are no list of objects.
    """
    choices = payload.get("choices")
    if choices is None:
        return None
    if not isinstance(choices, list) or not all(isinstance(item, Mapping) for item in choices):
        raise protocol_failure("The engine sent choices that cannot be read.")
    return next((choice for choice in choices if not choice.get("index")), None)


def finish_of(choice: Mapping[str, Any]) -> str | None:
    """Why the engine stopped; None where it has not said so.

    Raises:
        EngineFailure: the engine gave up.
    """
    finish = choice.get("finish_reason")
    if finish == "abort":
        raise aborted_failure()
    return finish if isinstance(finish, str) else None


def message_id_of(payload: Mapping[str, Any]) -> str:
    """The engine's id in the form of a Messages id; a new one where it gave none."""
    given = payload.get("id")
    own = given if isinstance(given, str) and given else uuid.uuid4().hex
    return own if own.startswith("msg_") else f"msg_{own}"


def fallback_call_id(message_id: str, index: int) -> str:
    """The id of a call that the engine gave none; unique within the conversation."""
    return f"call_{message_id.removeprefix('msg_')}_{index}"


def reasoning_of(message: Mapping[str, Any]) -> str:
    """The thinking of a message or a delta; empty where there is none."""
    for key in _REASONING_KEYS:
        said = message.get(key)
        if isinstance(said, str) and said:
            return said
    return ""


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message or a delta, as text or as parts; empty where there is none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tool calls of a message or a delta, complete or in pieces.

    Raises:
        EngineFailure: they are no list of objects.
    """
    calls = message.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise protocol_failure("The engine sent tool calls that cannot be read.")
    return calls


def function_of(call: Mapping[str, Any]) -> tuple[str, str]:
    """Name and arguments of a call or of a piece of one, each empty where it says nothing."""
    function = call.get("function")
    if not isinstance(function, Mapping):
        return "", ""
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(arguments, Mapping):
        arguments = jsonbody.render_value(arguments).decode("ascii")
    return (
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, str) else "",
    )


def parse_arguments(arguments: str) -> dict[str, Any] | None:
    """A call's arguments; None where they are no JSON object (yet)."""
    try:
        value = jsonbody.parse_value(arguments.encode("utf-8", "surrogatepass"))
    except GatewayError:
        return None
    return value if isinstance(value, dict) else None


def empty_block(kind: str) -> dict[str, Any]:
    """A block of thinking or text as it begins.

    The signature is empty: only the vendor could sign, and typed clients ask for the field.
    """
    block = {"type": kind, kind: ""}
    return {**block, "signature": ""} if kind == "thinking" else block


def stop_of(
    finish: str | None,
    *,
    matched_stop: object,
    stop_sequences: Collection[str],
    called: bool,
    answered: bool,
) -> dict[str, str | None]:
    """`stop_reason` and `stop_sequence` of a reply.

    Args:
        finish: the engine's reason; None where it ended without one.
        matched_stop: what it stopped at: a text, the id of a token, or nothing.
        stop_sequences: those that the client sent.
        called: whether the reply holds a call of a tool of the client's.
        answered: whether it holds the call of the format tool.
    """
    reason = _STOP_REASONS.get(finish or "")
    if reason == "tool_use" and answered:
        reason = None
    if reason is None and called:
        reason = "tool_use"
    met = isinstance(matched_stop, str) and matched_stop in stop_sequences
    if reason is None and finish == "stop" and met:
        return {"stop_reason": "stop_sequence", "stop_sequence": str(matched_stop)}
    return {"stop_reason": reason or "end_turn", "stop_sequence": None}


def usage_of(usage: object) -> dict[str, int]:
    """Usage as Messages count it: the cached part of the prompt is no part of the input."""
    if not isinstance(usage, Mapping):
        usage = {}
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    return {
        "input_tokens": max(_count(usage.get("prompt_tokens")) - cached, 0),
        "cache_read_input_tokens": cached,
        "output_tokens": _count(usage.get("completion_tokens")),
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _parse_call(call: Mapping[str, Any], fallback_id: str) -> _Call:
    name, arguments = function_of(call)
    if not name:
        raise protocol_failure("The engine sent a tool call without a name.")
    given = call.get("id")
    return _Call(given if isinstance(given, str) and given else fallback_id, name, arguments)


def _tool_use(call: _Call) -> dict[str, Any]:
    given = parse_arguments(call.arguments)
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given or {}}
