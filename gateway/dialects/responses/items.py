"""The `input` of a Responses request as Chat messages.

Responses lists what happened, item by item; Chat wants turns. The items are gathered into turns
first, and the messages are written from these:

    item                                    goes to
    message, developer or system            the one leading system message, after `instructions`
    message, user                           the user's turn; adjacent ones are one turn
    reasoning, message of the assistant,    the assistant's turn, which ends when one of its
      function_call, custom_tool_call       calls has its output, or the user speaks
    function_call_output,                   the call of that id, wherever it stands, so that
      custom_tool_call_output               tool messages follow their turn, in its order
    additional_tools, tool_search_output    the tools that they bring
    a call of a hosted tool                 nothing, and is reported as dropped
    anything else                           400: a part of the conversation must not vanish
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final

from gateway.dialects.responses.parts import (
    ToolOutput,
    convert_user_part,
    json_text,
    read_arguments,
    read_output,
    read_reasoning,
    read_string,
    read_text,
    refused,
)
from gateway.dialects.responses.tools import CUSTOM_INPUT, ToolNames

Message = dict[str, Any]

_SYSTEM_ROLES: Final = ("system", "developer")
_TOOL_LISTS: Final = ("additional_tools", "tool_search_output")
_HOSTED_ITEMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "code_interpreter_call": "code_interpreter",
        "file_search_call": "file_search",
        "image_generation_call": "image_generation",
        "mcp_approval_request": "mcp",
        "mcp_approval_response": "mcp",
        "mcp_call": "mcp",
        "mcp_list_tools": "mcp",
        "tool_search_call": "tool_search",
        "tool_search_output": "tool_search",
        "web_search_call": "web_search",
    }
)
"""What a vendor's own tools left in a history, and the tool that it tells of."""

_STATE: Final = "the gateway keeps no state; send the items themselves"


@dataclass(slots=True)
class _Call:
    call_id: str
    name: str
    arguments: str
    outputs: list[ToolOutput] = field(default_factory=list)


@dataclass(slots=True)
class _Assistant:
    """A turn of the model."""

    reasoning: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return any(call.outputs for call in self.calls)


@dataclass(slots=True)
class _User:
    """A turn of the user: the parts of each of its messages."""

    messages: list[list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Stray:
    """An output whose call is not in the input."""

    call_id: str
    output: ToolOutput


@dataclass(frozen=True, slots=True)
class Conversation:
    """An input, read.

    Attributes:
        messages: Chat's, the system message first.
        dropped_types: the hosted tools whose calls were left out, each once.
    """

    messages: list[Message]
    dropped_types: tuple[str, ...]


def parse_items(value: object) -> list[Mapping[str, Any]]:
    """The items of `input`, a text standing for one message of the user.

    Raises:
        GatewayError: 400, it is absent, empty, or no text and no list of objects.
    """
    if isinstance(value, str) and value:
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise refused("input", "expected a text or a list of items that is not empty")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise refused(f"input[{index}]", "expected an object")
    return value


def tool_lists(items: list[Mapping[str, Any]]) -> list[tuple[str, object]]:
    """The lists of tools that items bring along, each with the field that it stands in."""
    return [
        (f"input[{index}].tools", item.get("tools"))
        for index, item in enumerate(items)
        if item.get("type") in _TOOL_LISTS
    ]


def convert_items(
    items: list[Mapping[str, Any]], instructions: str | None, names: ToolNames
) -> Conversation:
    """Writes the messages of a conversation.

    Args:
        items: as `parse_items` gave them.
        instructions: they lead the system message.
        names: of the tools that are offered.

    Raises:
        GatewayError: 400, an item or part that cannot be read, or that refers to kept state.
    """
    reader = _Reader(names, [instructions or ""])
    for index, item in enumerate(items):
        reader.read(item, f"input[{index}]")
    messages = reader.messages()
    if not messages:
        raise refused("input", "it holds nothing that the model could be shown")
    return Conversation(messages, tuple(reader.dropped))


class _Reader:
    """Gathers turns from items."""

    def __init__(self, names: ToolNames, system: list[str]) -> None:
        self._names = names
        self._system = system
        self._turns: list[_Assistant | _User | _Stray] = []
        self._calls: dict[str, list[_Call]] = {}
        self.dropped: dict[str, None] = {}

    def read(self, item: Mapping[str, Any], where: str) -> None:
        """Takes the next item."""
        kind = item.get("type")
        if kind is None:
            kind = "message" if "role" in item else "item_reference"
        if isinstance(kind, str) and kind in self._readers:
            self._readers[kind](self, item, where)
        elif isinstance(kind, str) and kind in _HOSTED_ITEMS:
            self.dropped[_HOSTED_ITEMS[kind]] = None
        elif kind == "item_reference":
            raise refused(where, f"item_reference is not supported: {_STATE}")
        elif kind not in _TOOL_LISTS:
            raise refused(f"{where}.type", f"items of type {kind!r} are not supported")

    def messages(self) -> list[Message]:
        """All turns, as messages."""
        written: list[Message] = []
        system = "\n\n".join(text for text in self._system if text)
        if system:
            written.append({"role": "system", "content": system})
        pending: list[list[dict[str, Any]]] = []  # media of tools, which open the user's turn

        def user(more: list[list[dict[str, Any]]]) -> None:
            if pending or more:
                written.append({"role": "user", "content": _user_content([*pending, *more])})
                pending.clear()

        for turn in self._turns:
            match turn:
                case _User():
                    user(turn.messages)
                case _Stray():
                    if not (written and written[-1]["role"] == "tool"):
                        user([])
                    written.append(_tool_message(turn.call_id, turn.output))
                    pending.extend([turn.output.media] if turn.output.media else [])
                case _Assistant():
                    user([])
                    written.extend(_assistant_messages(turn))
                    pending.extend(
                        output.media
                        for call in turn.calls
                        for output in call.outputs
                        if output.media
                    )
        user([])
        return written

    def _assistant(self) -> _Assistant:
        """The model's turn that is under way, or a new one."""
        last = self._turns[-1] if self._turns else None
        if isinstance(last, _Assistant) and not last.answered:
            return last
        turn = _Assistant()
        self._turns.append(turn)
        return turn

    def _message(self, item: Mapping[str, Any], where: str) -> None:
        role, content = item.get("role"), item.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
            raise refused(f"{where}.content", "expected a text or an array of parts")
        at = [(f"{where}.content[{index}]", part) for index, part in enumerate(parts)]
        if role == "user":
            said = [convert_user_part(part, place) for place, part in at]
            last = self._turns[-1] if self._turns else None
            if isinstance(last, _User):
                last.messages.append(said)
            else:
                self._turns.append(_User([said]))
        elif role == "assistant":
            self._assistant().texts.append("".join(read_text(part, place) for place, part in at))
        elif role in _SYSTEM_ROLES:
            self._system.extend(read_text(part, place) for place, part in at)
        else:
            expected = "expected user, assistant, system or developer"
            raise refused(f"{where}.role", f"{expected}, got {role!r}")

    def _reasoning(self, item: Mapping[str, Any], where: str) -> None:
        self._assistant().reasoning.extend(read_reasoning(item, where))

    def _function_call(self, item: Mapping[str, Any], where: str) -> None:
        self._call(item, where, read_arguments(item.get("arguments")))

    def _custom_call(self, item: Mapping[str, Any], where: str) -> None:
        self._call(item, where, json_text({CUSTOM_INPUT: read_string(item, "input", where)}))

    def _call(self, item: Mapping[str, Any], where: str, arguments: str) -> None:
        namespace = item.get("namespace")
        name = self._names.function_name(
            read_string(item, "name", where), namespace if isinstance(namespace, str) else None
        )
        call = _Call(read_string(item, "call_id", where), name, arguments)
        self._assistant().calls.append(call)
        self._calls.setdefault(call.call_id, []).append(call)

    def _output(self, item: Mapping[str, Any], where: str) -> None:
        call_id = read_string(item, "call_id", where)
        output = read_output(item.get("output"), f"{where}.output")
        calls = self._calls.get(call_id)
        if not calls:
            self._turns.append(_Stray(call_id, output))
            return
        # An engine may use an id again in a later turn: the first call still without an output.
        open_calls = [call for call in calls if not call.outputs]
        (open_calls or calls[-1:])[0].outputs.append(output)

    _readers: ClassVar[Mapping[str, Callable[["_Reader", Mapping[str, Any], str], None]]] = (
        MappingProxyType(
            {
                "message": _message,
                "reasoning": _reasoning,
                "function_call": _function_call,
                "custom_tool_call": _custom_call,
                "function_call_output": _output,
                "custom_tool_call_output": _output,
            }
        )
    )


def _assistant_messages(turn: _Assistant) -> list[Message]:
    text = "\n\n".join(text for text in turn.texts if text)
    reasoning = "\n".join(turn.reasoning)
    if not (text or reasoning or turn.calls or turn.texts):
        return []  # reasoning that was encrypted for another server, and nothing else
    message: Message = {"role": "assistant", "content": text or (None if turn.calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    tools = [_tool_message(call.call_id, output) for call in turn.calls for output in call.outputs]
    return [message, *tools]


def _tool_message(call_id: str, output: ToolOutput) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": output.text}


def _user_content(messages: list[list[dict[str, Any]]]) -> str | list[dict[str, Any]]:
    """The content of a user's turn: one text where each message is one, else all parts."""
    if all(len(parts) == 1 and parts[0]["type"] == "text" for parts in messages):
        texts = [parts[0]["text"] for parts in messages]
        return "\n\n".join(text for text in texts if text)
    return [part for parts in messages for part in parts] or ""
