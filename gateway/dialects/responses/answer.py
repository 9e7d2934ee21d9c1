"""A Response in the making: what an engine says, gathered into items and told as events.

A reply that came whole and one that came in pieces go through the same machine, so that both
give the same Response. It knows nothing of bytes; see `reply` and `stream` for its two users.

An item's life:

    state      when                                             what is told
    waiting    begun by the engine, an earlier item is open     nothing; what it says is kept
    open       it is the first that is not closed, and named    output_item.added, its part, deltas
    closed     see below                                        its *.done, output_item.done

One item is open at a time and they close in their order. An open item closes
- when a later one begins, if it is reasoning or text;
- when a later one begins and its own arguments are a whole JSON object, if it is a call: engines
  may write several calls at once, and a whole object is all that a call can say;
- at the end of the answer.

`output_index` counts from 0 in that order; ids are made of the response's id and this index, so
they are the same in every event and in the final object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from gateway.dialects.responses.parts import json_text, parse_object_text
from gateway.dialects.responses.request import Converted
from gateway.dialects.responses.tools import CUSTOM_INPUT, ClientTool

Event = dict[str, Any]

_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reasons that cut an answer, and the reason that a Response gives for them."""


class Kind(Enum):
    """A kind of output item; the value begins its id."""

    REASONING = "rs"
    MESSAGE = "msg"
    FUNCTION_CALL = "fc"
    CUSTOM_CALL = "ctc"


@dataclass(slots=True)
class _Item:
    """An output item.

    Attributes:
        kind: None for a call whose name is not known yet.
        said: the pieces of its text, its arguments or its reasoning.
        told: how many of these the events have told.
        id: empty until it is open.
    """

    kind: Kind | None
    call_id: str = ""
    tool: ClientTool | None = None
    is_call: bool = False
    said: list[str] = field(default_factory=list)
    told: int = 0
    logprobs: list[Event] = field(default_factory=list)
    logprobs_told: int = 0
    id: str = ""
    closed: bool = False
    _judged: tuple[int, bool] = (0, False)

    @property
    def text(self) -> str:
        return "".join(self.said)

    @property
    def whole(self) -> bool:
        """Whether nothing can follow; read again only where it said something since."""
        if not self.is_call:
            return True
        if self._judged[0] != len(self.said):
            self._judged = (len(self.said), parse_object_text(self.text) is not None)
        return self._judged[1]


class Answer:
    """One answer's items.

    Args:
        converted: the request's names and settings.
        model: the name that the client asked for.
        response_id: starts with `resp_`.
        created_at: in seconds since the epoch.
    """

    def __init__(
        self, converted: Converted, *, model: str, response_id: str, created_at: int
    ) -> None:
        self._converted = converted
        self._model = model
        self._id = response_id
        self._created_at = created_at
        self._items: list[_Item] = []
        self._closed: list[Event] = []
        self._by_index: dict[int, _Item] = {}
        self._call_ids: set[str] = set()
        self._blank: list[tuple[str, list[Event]]] = []  # text that made no message so far
        self._events: list[Event] = []
        self._reason: str | None = None
        self.ended = False
        self.usage: Mapping[str, Any] | None = None

    def reason(self, text: str) -> None:
        """The engine thought this."""
        if text:
            self._say(Kind.REASONING, text, [])

    def say(self, text: str, logprobs: list[Event]) -> None:
        """The engine wrote this; the log probabilities are Chat's."""
        last = self._items[-1] if self._items else None
        if last is None or last.is_call or last.kind is not Kind.MESSAGE:
            # Models put line breaks around calls: alone, they are no message.
            if text or logprobs:
                self._blank.append((text, logprobs))
            text = "".join(said for said, _ in self._blank)
            if not text.strip():
                return
            logprobs = [entry for _, entries in self._blank for entry in entries]
            self._blank.clear()
        if text or logprobs:
            self._say(Kind.MESSAGE, text, logprobs)

    def call(self, fragment: Mapping[str, Any], index: int | None = None) -> None:
        """A tool call of the engine, or a piece of one.

        Args:
            fragment: Chat's; its own `index` counts where no `index` is given.
            index: the call's place in a list of whole calls.
        """
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, call_id, said = function.get("name"), fragment.get("id"), function.get("arguments")
        item = self._find_call(fragment, name) if index is None else self._begin_call(index)
        if isinstance(call_id, str) and not item.call_id:
            item.call_id = call_id
        if isinstance(name, str) and name and item.kind is None:
            self._name_call(item, name)
        if said and not item.closed:
            item.said.append(said if isinstance(said, str) else json_text(said))
        self._advance()

    def end(self, finish_reason: str | None) -> None:
        """The engine finished: all items close."""
        self.ended = True
        self._reason = _INCOMPLETE.get(finish_reason or "")
        if not self._items:
            only = _Item(Kind.MESSAGE)
            for text, logprobs in self._blank:
                only.said.append(text)
                only.logprobs.extend(logprobs)
            self._items.append(only)
        for item in self._items[len(self._closed) :]:
            if item.kind is None:
                self._name_call(item, "")
            cut = self._reason is not None and item is self._items[-1]
            self._open(item)
            self._close(item, cut=cut)

    def abandon(self) -> None:
        """The engine broke off: the open item closes, those that wait were never told of."""
        self.ended = True
        for item in self._items[len(self._closed) :]:
            if item.id:
                self._tell_deltas(item)
                self._close(item, cut=True)

    def take_events(self) -> list[Event]:
        """What happened since this was called last, without sequence numbers."""
        events, self._events = self._events, []
        return events

    @property
    def status(self) -> str:
        """How the answer ended."""
        return "completed" if self._reason is None else "incomplete"

    def response(self, status: str, error: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The Response object as it stands.

        Args:
            status: `in_progress`, `completed`, `incomplete` or `failed`.
            error: why it failed.
        """
        begun = status == "in_progress"
        told = status in {"completed", "incomplete"} or (self.usage is not None and not begun)
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "error": error,
            "incomplete_details": {"reason": self._reason} if status == "incomplete" else None,
            "model": self._model,
            "output": [] if begun else list(self._closed),
            "usage": render_usage(self.usage or {}) if told else None,
            **self._converted.echo,
        }

    def _say(self, kind: Kind, text: str, logprobs: list[Event]) -> None:
        last = self._items[-1] if self._items else None
        if last is None or last.is_call or last.kind is not kind:
            last = _Item(kind)
            self._items.append(last)
        if text:
            last.said.append(text)
        last.logprobs.extend(logprobs)
        self._advance()

    def _find_call(self, fragment: Mapping[str, Any], name: object) -> _Item:
        """The call that a fragment continues, or a new one.

        Engines number their calls; some leave the number out, and some use one again for a call
        with another id and name.
        """
        index, call_id = fragment.get("index"), fragment.get("id")
        if not isinstance(index, int):
            known = [item for item in self._items if item.is_call]
            if call_id or name:
                known = [item for item in known if call_id and item.call_id == call_id]
            return known[-1] if known else self._begin_call(None)
        item = self._by_index.get(index)
        if item is None or (name and call_id and item.call_id not in ("", call_id)):
            return self._begin_call(index)
        return item

    def _begin_call(self, index: int | None) -> _Item:
        item = _Item(None, is_call=True)
        self._items.append(item)
        if index is not None:
            self._by_index[index] = item
        return item

    def _name_call(self, item: _Item, name: str) -> None:
        if name and name == self._converted.format_tool:
            item.kind = Kind.MESSAGE
            return
        item.tool = self._converted.names.client_tool(name)
        item.kind = Kind.CUSTOM_CALL if item.tool.custom else Kind.FUNCTION_CALL

    def _advance(self) -> None:
        """Opens what can be open, closes what is over."""
        for item in self._items[len(self._closed) :]:
            if item.kind is None:
                return
            self._open(item)
            if item is self._items[-1] or not item.whole:
                return
            self._close(item, cut=False)

    def _open(self, item: _Item) -> None:
        if not item.id:
            index = len(self._closed)
            item.id = self._item_id(item.kind, index)
            if item.tool is not None:
                if not item.call_id or item.call_id in self._call_ids:
                    item.call_id = self._item_id(None, index)
                self._call_ids.add(item.call_id)
            self._tell("output_item.added", item=self._render(item, "in_progress", blank=True))
            if item.tool is None:
                self._tell_of(item, "content_part.added", content_index=0, part=_part(item, ""))
        self._tell_deltas(item)

    def _item_id(self, kind: Kind | None, index: int) -> str:
        prefix = "call" if kind is None else kind.value
        return f"{prefix}_{self._id.removeprefix('resp_')}_{index}"

    def _tell_deltas(self, item: _Item) -> None:
        """Tells what the open item said since; a custom tool's text is told when it is whole."""
        if item.kind is Kind.CUSTOM_CALL:
            return
        said = "".join(item.said[item.told :])
        match item.kind:
            case Kind.REASONING:
                if said:
                    self._tell_of(item, "reasoning_text.delta", content_index=0, delta=said)
            case Kind.MESSAGE:
                logprobs = item.logprobs[item.logprobs_told :]
                if said or logprobs:
                    self._tell_of(
                        item, "output_text.delta", content_index=0, delta=said, logprobs=logprobs
                    )
                item.logprobs_told = len(item.logprobs)
            case Kind.FUNCTION_CALL if said.strip() or item.told:
                if said:
                    self._tell_of(item, "function_call_arguments.delta", delta=said)
            case _:
                return  # blanks so far: they may turn out to be no arguments at all
        item.told = len(item.said)

    def _close(self, item: _Item, *, cut: bool) -> None:
        status = "incomplete" if cut else "completed"
        text = item.text
        match item.kind:
            case Kind.REASONING:
                self._tell_of(item, "reasoning_text.done", content_index=0, text=text)
            case Kind.MESSAGE:
                self._tell_of(
                    item, "output_text.done", content_index=0, text=text, logprobs=item.logprobs
                )
            case Kind.FUNCTION_CALL:
                # A call cut off before its arguments must not look like one that has none.
                if not text.strip():
                    text = "" if cut else "{}"
                    item.said, item.told = [text], 0
                    self._tell_deltas(item)
                self._tell_of(item, "function_call_arguments.done", arguments=text)
            case _:
                text = unwrap_input(text)
                item.said = [text]
                if text:
                    self._tell_of(item, "custom_tool_call_input.delta", delta=text)
                self._tell_of(item, "custom_tool_call_input.done", input=text)
        if item.tool is None:
            self._tell_of(item, "content_part.done", content_index=0, part=_part(item, text))
        rendered = self._render(item, status)
        self._tell("output_item.done", item=rendered)
        self._closed.append(rendered)
        item.closed = True

    def _tell(self, name: str, **values: Any) -> None:
        event = {"type": f"response.{name}", "output_index": len(self._closed), **values}
        self._events.append(event)

    def _tell_of(self, item: _Item, name: str, **values: Any) -> None:
        self._tell(name, item_id=item.id, **values)

    def _render(self, item: _Item, status: str, *, blank: bool = False) -> dict[str, Any]:
        """The item as an object; `blank` before it said anything."""
        text = "" if blank else item.text
        parts = [] if blank else [_part(item, text)]
        match item.kind:
            case Kind.REASONING:
                values: dict[str, Any] = {"type": "reasoning", "summary": [], "content": parts}
            case Kind.MESSAGE:
                values = {"type": "message", "role": "assistant", "content": parts}
            case Kind.FUNCTION_CALL:
                values = {"type": "function_call", "arguments": text}
            case _:
                values = {"type": "custom_tool_call", "input": text}
        if item.tool is not None:
            values |= {"call_id": item.call_id, "name": item.tool.name}
            if item.tool.namespace is not None:
                values["namespace"] = item.tool.namespace
        return {"id": item.id, **values, "status": status}


def _part(item: _Item, text: str) -> dict[str, Any]:
    if item.kind is Kind.REASONING:
        return {"type": "reasoning_text", "text": text}
    logprobs = list(item.logprobs) if text else []
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def unwrap_input(arguments: str) -> str:
    """A custom tool's text out of its function's arguments; as they are where it is not there."""
    parsed = parse_object_text(arguments) or {}
    value = parsed.get(CUSTOM_INPUT, arguments)
    return value if isinstance(value, str) else json_text(value)


def render_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Chat's usage as Responses'; what is null or absent is 0."""
    prompt = _count(usage, "prompt_tokens")
    completion = _count(usage, "completion_tokens")
    reasoning = _count(usage, "completion_tokens_details", "reasoning_tokens")
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": _count(usage, "prompt_tokens_details", "cached_tokens"),
            "cache_write_tokens": 0,
        },
        "output_tokens": completion,
        "output_tokens_details": {
            "reasoning_tokens": reasoning or _count(usage, "reasoning_tokens"),
        },
        "total_tokens": _count(usage, "total_tokens") or prompt + completion,
    }


def _count(usage: Mapping[str, Any], *path: str) -> int:
    value: object = usage
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) else 0
