"""One conversation, asked for in each client dialect through its official SDK.

Turns, tools and answers are neutral here, so that a test states a rule once for all dialects:

    answer = DIALECTS["messages"].ask(gateway, [user("hi")], stream=True, tools=[TOOL])
    answer.calls[0].arguments
"""

import json
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

LENGTH, STOP, CALLS = "length", "stop", "calls"


@dataclass(frozen=True)
class Call:
    """A tool call.

    Attributes:
        arguments: as JSON text.
    """

    id: str
    name: str
    arguments: str

    @property
    def values(self):
        """The arguments, decoded."""
        return json.loads(self.arguments)


@dataclass(frozen=True)
class Answer:
    """What was answered.

    Attributes:
        finish: `LENGTH`, `STOP` or `CALLS`.
        prompt_tokens: cached ones included; None where no usage was told.
        raw: the SDK's own object, or the list of a stream's.
    """

    text: str
    thinking: str
    calls: tuple[Call, ...]
    finish: str
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str
    raw: Any = field(repr=False)


@dataclass(frozen=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str
    parameters: dict


@dataclass(frozen=True)
class Turn:
    """A turn of a conversation: of the user, an answer as it was given, or a call's result."""

    text: str = ""
    answer: Answer | None = None
    result_of: Call | None = None


def user(text):
    """A user's turn."""
    return Turn(text=text)


def said(answer):
    """The model's turn."""
    return Turn(answer=answer)


def result(call, text):
    """What a tool gave back."""
    return Turn(text=text, result_of=call)


class Chat:
    """OpenAI Chat Completions."""

    name = "chat"
    path = "/v1/chat/completions"
    error = openai.APIStatusError

    def body(
        self,
        turns,
        *,
        system=None,
        budget=64,
        tools=(),
        choice=None,
        one_call=False,
        schema=None,
        **extra,
    ):
        """The request's fields."""
        messages = [{"role": "system", "content": system}] if system else []
        messages += [self._message(turn) for turn in turns]
        fields = {"messages": messages, "max_completion_tokens": budget, **extra}
        if tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                        "strict": True,
                    },
                }
                for tool in tools
            ]
        if one_call:
            fields["parallel_tool_calls"] = False
        if choice:
            named = {"type": "function", "function": {"name": choice}}
            fields["tool_choice"] = choice if choice in {"auto", "required"} else named
        if schema:
            named = {"name": "answer", "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": named}
        return fields

    def unthinking(self):
        """The fields that turn thinking off."""
        return {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}

    def ask(self, gateway, turns, *, stream=False, model=None, **options):
        """The whole answer."""
        body = {"model": model or gateway.model, **self.body(turns, **options)}
        create = gateway.openai.chat.completions.create
        if not stream:
            return self._answer(create(**body))
        asked = {"include_usage": True}
        return self._folded(list(create(**body, stream=True, stream_options=asked)))

    @staticmethod
    def _message(turn):
        if turn.result_of:
            return {"role": "tool", "tool_call_id": turn.result_of.id, "content": turn.text}
        if turn.answer is None:
            return {"role": "user", "content": turn.text}
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.answer.calls
        ]
        message = {"role": "assistant", "content": turn.answer.text}
        return message | ({"tool_calls": calls} if calls else {})

    @staticmethod
    def _answer(reply):
        [choice] = reply.choices
        calls = tuple(
            Call(call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or ()
        )
        return Answer(
            choice.message.content or "",
            getattr(choice.message, "reasoning_content", None) or "",
            calls,
            _CHAT_FINISHES[choice.finish_reason],
            reply.usage.prompt_tokens,
            reply.usage.completion_tokens,
            reply.model,
            reply,
        )

    @staticmethod
    def _folded(chunks):
        text = thinking = finish = ""
        calls, usage = {}, None
        for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                thinking += getattr(choice.delta, "reasoning_content", None) or ""
                finish = choice.finish_reason or finish
                for piece in choice.delta.tool_calls or ():
                    call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] = piece.id or call["id"]
                    call["name"] += piece.function.name or ""
                    call["arguments"] += piece.function.arguments or ""
        return Answer(
            text,
            thinking,
            tuple(Call(**call) for _, call in sorted(calls.items())),
            _CHAT_FINISHES[finish],
            usage.prompt_tokens,
            usage.completion_tokens,
            chunks[-1].model,
            chunks,
        )


class Responses:
    """OpenAI Responses."""

    name = "responses"
    path = "/v1/responses"
    error = openai.APIStatusError

    def body(
        self,
        turns,
        *,
        system=None,
        budget=64,
        tools=(),
        choice=None,
        one_call=False,
        schema=None,
        **extra,
    ):
        """The request's fields."""
        items = [item for turn in turns for item in self._items(turn)]
        fields = {"input": items, "max_output_tokens": budget, "store": False, **extra}
        if system:
            fields["instructions"] = system
        if tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": True,
                }
                for tool in tools
            ]
        if one_call:
            fields["parallel_tool_calls"] = False
        if choice:
            named = {"type": "function", "name": choice}
            fields["tool_choice"] = choice if choice in {"auto", "required"} else named
        if schema:
            named = {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
            fields["text"] = {"format": named}
        return fields

    def unthinking(self):
        """The fields that turn thinking off."""
        return {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}

    def ask(self, gateway, turns, *, stream=False, model=None, **options):
        """The whole answer."""
        body = {"model": model or gateway.model, **self.body(turns, **options)}
        if not stream:
            return self._answer(gateway.openai.responses.create(**body))
        with gateway.openai.responses.stream(**body) as events:
            # The client's own accumulated object is there for completed answers alone.
            ends = [event for event in events if event.type in _RESPONSES_ENDS]
            return self._answer(ends[-1].response)

    @staticmethod
    def _items(turn):
        if turn.result_of:
            call_id = turn.result_of.id
            return [{"type": "function_call_output", "call_id": call_id, "output": turn.text}]
        if turn.answer is None:
            return [{"role": "user", "content": turn.text}]
        said_text = [{"role": "assistant", "content": turn.answer.text}] if turn.answer.text else []
        return said_text + [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }
            for call in turn.answer.calls
        ]

    @staticmethod
    def _answer(reply):
        calls = tuple(
            Call(item.call_id, item.name, item.arguments)
            for item in reply.output
            if item.type == "function_call"
        )
        thinking = [
            part.text
            for item in reply.output
            if item.type == "reasoning"
            for part in item.content or ()
        ]
        finish = CALLS if calls else STOP
        if reply.status == "incomplete":
            finish = {"max_output_tokens": LENGTH}[reply.incomplete_details.reason]
        return Answer(
            reply.output_text,
            "".join(thinking),
            calls,
            finish,
            reply.usage.input_tokens,
            reply.usage.output_tokens,
            reply.model,
            reply,
        )


class Messages:
    """Anthropic Messages."""

    name = "messages"
    path = "/v1/messages"
    error = anthropic.APIStatusError

    def body(
        self,
        turns,
        *,
        system=None,
        budget=64,
        tools=(),
        choice=None,
        one_call=False,
        schema=None,
        **extra,
    ):
        """The request's fields."""
        messages = [self._message(turn) for turn in turns]
        fields = {"messages": messages, "max_tokens": budget, **extra}
        if system:
            fields["system"] = system
        if tools:
            fields["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                    "strict": True,
                }
                for tool in tools
            ]
        if choice:
            kinds = {"auto": {"type": "auto"}, "required": {"type": "any"}}
            fields["tool_choice"] = kinds.get(choice, {"type": "tool", "name": choice})
            if one_call:
                fields["tool_choice"]["disable_parallel_tool_use"] = True
        if schema:
            fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return fields

    def unthinking(self):
        """The fields that turn thinking off."""
        return {"thinking": {"type": "disabled"}}

    def ask(self, gateway, turns, *, stream=False, model=None, **options):
        """The whole answer."""
        body = {"model": model or gateway.model, **self.body(turns, **options)}
        if not stream:
            return self._answer(gateway.anthropic.messages.create(**body))
        with gateway.anthropic.messages.stream(**body) as events:
            return self._answer(events.get_final_message())

    @staticmethod
    def _message(turn):
        if turn.result_of:
            block = {"type": "tool_result", "tool_use_id": turn.result_of.id, "content": turn.text}
            return {"role": "user", "content": [block]}
        if turn.answer is None:
            return {"role": "user", "content": turn.text}
        blocks = [{"type": "text", "text": turn.answer.text}] if turn.answer.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.values}
            for call in turn.answer.calls
        ]
        return {"role": "assistant", "content": blocks}

    @staticmethod
    def _answer(reply):
        def joined(kind, attribute):
            return "".join(getattr(part, attribute) for part in reply.content if part.type == kind)

        calls = tuple(
            Call(part.id, part.name, json.dumps(part.input))
            for part in reply.content
            if part.type == "tool_use"
        )
        usage = reply.usage
        return Answer(
            joined("text", "text"),
            joined("thinking", "thinking"),
            calls,
            _MESSAGES_FINISHES[reply.stop_reason],
            usage.input_tokens + (usage.cache_read_input_tokens or 0),
            usage.output_tokens,
            reply.model,
            reply,
        )


_CHAT_FINISHES = {"length": LENGTH, "stop": STOP, "tool_calls": CALLS}
_RESPONSES_ENDS = {"response.completed", "response.incomplete", "response.failed"}
_MESSAGES_FINISHES = {
    "max_tokens": LENGTH,
    "end_turn": STOP,
    "stop_sequence": STOP,
    "tool_use": CALLS,
}

DIALECTS = {dialect.name: dialect for dialect in (Chat(), Responses(), Messages())}
