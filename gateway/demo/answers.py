"""What the demo's engine answers, in SGLang's shapes. Pure: a request in, a reply or events out.

The text tells the sampling values that the engine was asked with, so that what a profile wrote
in can be seen by a client. A word is a token.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.demo.checks import CONTEXT_TOKENS, Refusal
from gateway.profile.rules import SAMPLING_FIELDS

_CREATED: Final = 1_760_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer before it has a shape.

    Attributes:
        words: of the text, each with the space that follows it.
        call: the name of the tool to call instead, or None.
        reasoning: what comes before the text; empty for none.
        finish: the finish reason.
        prompt_tokens: of the request.
    """

    words: tuple[str, ...]
    call: str | None
    reasoning: str
    finish: str
    prompt_tokens: int

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.words)

    @property
    def completion_tokens(self) -> int:
        """Of text, reasoning and call, and the end token."""
        return len(self.words) + len(self.reasoning.split()) + bool(self.call) + 1


Speech = Callable[[Mapping[str, Any]], str]
"""What the engine says to a request."""


def compose(body: Mapping[str, Any], say: Speech) -> Answer:
    """The answer to a chat or Messages body."""
    prompt = json.dumps([body.get("system"), body["messages"], body.get("tools")]).split()
    if len(prompt) >= CONTEXT_TOKENS:
        raise Refusal(
            f"The input ({len(prompt)} tokens) is longer than the model's context length"
            f" ({CONTEXT_TOKENS} tokens)."
        )
    call = _forced_tool(body)
    words = tuple(f"{word} " for word in say(body).split()) if call is None else ()
    budget = body.get("max_completion_tokens") or body.get("max_tokens") or CONTEXT_TOKENS
    cut = words[: int(budget)]
    finish = "length" if len(cut) < len(words) else "tool_calls" if call else "stop"
    kwargs = body.get("chat_template_kwargs") or {}
    thinks = kwargs.get("enable_thinking") or kwargs.get("thinking") or body.get("reasoning_effort")
    reasoning = "The demo engine thinks for a moment." if thinks else ""
    return Answer(cut, call, reasoning, finish, len(prompt))


def tell(body: Mapping[str, Any]) -> str:
    """Says with which sampling values it was asked."""
    values = [f"{name} {body[name]}" for name in SAMPLING_FIELDS if body.get(name) is not None]
    if not values:
        asked = "without any sampling value"
    elif len(values) == 1:
        asked = f"with {values[0]}"
    else:
        asked = f"with {', '.join(values[:-1])} and {values[-1]}"
    return f"I am the demo engine, and have no model. I was asked {asked}."


def echo(body: Mapping[str, Any]) -> str:
    """Says, as JSON in one word, every field that it was asked with, but for the conversation.

    One word, so that no budget cuts it.
    """
    fields = {name: value for name, value in body.items() if name not in _CONVERSATION}
    text = json.dumps({"engine_echo": fields}, separators=(",", ":"))
    return text.replace(" ", "\\u0020")  # spaces are within texts only


_CONVERSATION: Final = frozenset({"messages", "system", "tools", "prompt", "input"})


def _forced_tool(body: Mapping[str, Any]) -> str | None:
    """The tool that `tool_choice` asks for, in either dialect's spelling."""
    choice = body.get("tool_choice")
    names = [tool.get("name") or tool["function"]["name"] for tool in body.get("tools") or ()]
    if isinstance(choice, dict):
        named = choice.get("name") or (choice.get("function") or {}).get("name")
        return named or (names[0] if choice.get("type") == "any" and names else None)
    return names[0] if choice == "required" and names else None


def chat_reply(body: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """A buffered chat reply."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text,
        "reasoning_content": answer.reasoning or None,
    }
    if answer.call:
        message["tool_calls"] = [_tool_call(answer.call, "{}")]
    choice = {
        "message": message,
        "logprobs": None,
        "finish_reason": answer.finish,
        "matched_stop": None,
    }
    return {
        "id": uuid.uuid4().hex,
        "object": "chat.completion",
        "created": _CREATED,
        "model": body.get("model", "default"),
        "choices": [{"index": index, **choice} for index in range(int(body.get("n", 1)))],
        "usage": _usage(answer, int(body.get("n", 1))),
        "metadata": {"weight_version": "default"},
    }


def chat_chunks(body: Mapping[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    """The chunks of a chat stream, without its `[DONE]`."""
    options = body.get("stream_options") or {}
    continuous = bool(options.get("continuous_usage_stats"))
    for index in range(int(body.get("n", 1))):
        base = {
            "id": uuid.uuid4().hex,
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": body.get("model", "default"),
        }
        yield {**base, "choices": [_choice(index, {"role": "assistant", "content": ""})]}
        for number, delta in enumerate(_deltas(answer), start=1):
            chunk = {**base, "choices": [_choice(index, delta)]}
            if "tool_calls" in delta:
                chunk["usage"] = None
            if continuous:
                chunk["usage"] = _usage_of(answer.prompt_tokens, number)
            yield chunk
        yield {**base, "choices": [_choice(index, {"reasoning_content": None}, answer.finish)]}
    if options.get("include_usage"):
        yield {**base, "choices": [], "usage": _usage(answer, int(body.get("n", 1)))}


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    for word in answer.reasoning.split():
        yield {"reasoning_content": f"{word} "}
    for word in answer.words:
        yield {"reasoning_content": None, "content": word}
    if answer.call:
        nothing = {"role": None, "content": None, "reasoning_content": None}
        yield {**nothing, "tool_calls": [{**_tool_call(answer.call, ""), "index": 0}]}
        function = {"name": None, "arguments": "{}"}
        yield {**nothing, "tool_calls": [{"id": None, "index": 0, "function": function}]}


def completion_reply(body: Mapping[str, Any], say: Speech) -> dict[str, Any]:
    """A buffered completions reply: a choice a prompt."""
    answers, usage = _completions(body, say)
    choices = [
        {"index": index, "text": text, "logprobs": None, "finish_reason": finish}
        for index, (text, finish) in enumerate(answers)
    ]
    return {**_completion_base(body), "choices": choices, "usage": usage}


def completion_chunks(body: Mapping[str, Any], say: Speech) -> Iterator[dict[str, Any]]:
    """The chunks of a completions stream, without its `[DONE]`."""
    answers, usage = _completions(body, say)
    base = _completion_base(body)
    for index, (text, finish) in enumerate(answers):
        words = text.split()
        for number, word in enumerate(words, start=1):
            end = finish if number == len(words) else None
            choice = {"index": index, "text": f"{word} ", "logprobs": None, "finish_reason": end}
            yield {**base, "choices": [choice], "usage": None}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**base, "choices": [], "usage": usage}


def _completions(
    body: Mapping[str, Any], say: Speech
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    prompt = body["prompt"]
    several = isinstance(prompt, list) and isinstance(prompt[0], str | list)
    prompts = prompt if several else [prompt]
    words = say(body).split()
    cut = words[: int(body.get("max_tokens", 16))]
    finish = "length" if len(cut) < len(words) else "stop"
    answers = [(" ".join(cut), finish)] * (len(prompts) * int(body.get("n", 1)))
    asked = sum(len(each.split() if isinstance(each, str) else each) for each in prompts)
    return answers, _usage_of(asked, len(cut) * len(answers))


def _completion_base(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": uuid.uuid4().hex,
        "object": "text_completion",
        "created": _CREATED,
        "model": body.get("model", "default"),
    }


def embeddings_reply(body: Mapping[str, Any]) -> dict[str, Any]:
    """Embeddings of four numbers; like the engine, `model` is the path of its model."""
    asked = body["input"]
    several = isinstance(asked, list) and not isinstance(asked[0], int)
    inputs = asked if several else [asked]
    vectors = [[len(str(each)) / 100, 0.25, 0.5, 1.0] for each in inputs]
    data = [
        {"embedding": vector, "index": index, "object": "embedding"}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(str(each).split()) for each in inputs)
    return {
        "data": data,
        "model": "/models/demo",
        "object": "list",
        "usage": _usage_of(tokens, 0),
    }


def message_reply(body: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """A buffered Messages reply; like the engine, without `stop_sequence`."""
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning})
    if answer.words:
        content.append({"type": "text", "text": answer.text})
    if answer.call:
        content.append(_tool_use(answer.call))
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "model": body["model"],
        "stop_reason": _STOP_REASONS[answer.finish],
        "usage": {
            "input_tokens": answer.prompt_tokens,
            "output_tokens": answer.completion_tokens,
        },
    }


def message_events(body: Mapping[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    """The events of a Messages stream; the name of each is its `type`."""
    whole = message_reply(body, answer)
    start = {**whole, "content": [], "stop_reason": None}
    start["usage"] = {"input_tokens": answer.prompt_tokens, "output_tokens": 0}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        empty = {**block, **{"thinking": {"thinking": ""}, "text": {"text": ""}}.get(kind, {})}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in _block_deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": answer.completion_tokens}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"]},
        "usage": usage,
    }
    yield {"type": "message_stop"}


def _block_deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": "{}"}
        return
    kind = block["type"]
    for word in block[kind].split():
        yield {"type": f"{kind}_delta", kind: f"{word} "}


def count_reply(body: Mapping[str, Any]) -> dict[str, Any]:
    """The reply of count_tokens: what a Messages request of this body is billed."""
    return {"input_tokens": compose(body, tell).prompt_tokens}


def models_reply(model: str) -> dict[str, Any]:
    """The model list."""
    card = {
        "id": model,
        "object": "model",
        "created": _CREATED,
        "owned_by": "sglang",
        "root": model,
        "parent": None,
        "max_model_len": CONTEXT_TOKENS,
    }
    return {"object": "list", "data": [card]}


def flat_error(refusal: Refusal) -> dict[str, Any]:
    """The engine's error body on the OpenAI routes: flat, without an `error` key."""
    return {
        "object": "error",
        "message": refusal.message,
        "type": refusal.type,
        "param": None,
        "code": refusal.status,
    }


def anthropic_error(refusal: Refusal) -> dict[str, Any]:
    """The engine's error body on the Messages routes."""
    return {"type": "error", "error": {"type": refusal.type, "message": refusal.message}}


_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _choice(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "index": index,
        "delta": delta,
        "logprobs": None,
        "finish_reason": finish,
        "matched_stop": None,
    }


def _tool_call(name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"call_{uuid.uuid4().hex[:24]}",
        "index": 0,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _tool_use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"call_{uuid.uuid4().hex[:24]}", "name": name, "input": {}}


def _usage(answer: Answer, count: int) -> dict[str, Any]:
    return _usage_of(answer.prompt_tokens, answer.completion_tokens * count)


def _usage_of(prompt: int, completion: int) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
        "reasoning_tokens": 0,
        "completion_tokens_details": None,
    }
