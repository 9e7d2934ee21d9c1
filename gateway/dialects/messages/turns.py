"""The conversation of a Messages body, folded into the order that chat templates can render.

Both a generation and a token count are rendered from the `Conversation` that is read here, so
the two cannot drift apart.

Rules:
- every system text, top-level or of a turn with that role, goes to the one system prompt, in
  order, joined by a blank line; a blank one vanishes;
- turns of one role that follow each other are one turn, their parts in order;
- within a turn the tool results come first, so that they follow the calls that they answer;
  one result per call, its text in one piece; its images lead the turn's own parts;
- blocks that only a vendor's servers understand (server tools, redacted thinking, signatures)
  are left out; a block that nobody here understands is a 400 that names it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.dialects.messages.fields import (
    is_server_block,
    read_list,
    read_name,
    read_object,
    read_text,
    shown,
    without_billing_line,
    wrong_type,
)
from gateway.errors import GatewayError, bad_request

_DEFAULT_IMAGE_TYPE: Final = "image/png"


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is not empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image, as a data URL or a link."""

    url: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A deferred tool that the model is shown from here on; SGLang's templates know it."""

    name: str


Part = Text | Image | Reference


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model made in an earlier turn."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(slots=True)
class Result:
    """What a call gave back, its images apart."""

    call_id: str
    texts: list[str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All texts, a line break between them; empty where there is none."""
        return "\n".join(self.texts)


@dataclass(slots=True)
class Turn:
    """A turn, neighbours of the same role merged in.

    Attributes:
        role: `user` or `assistant`.
        results: of a user's turn, in order, one a call.
        images: of the results; they precede the parts.
        parts: in order.
        calls: of an assistant's turn, in order.
        thinking: of an assistant's turn, in order.
    """

    role: str
    results: dict[str, Result] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole conversation; `system` is None where nothing was said there."""

    system: str | None
    turns: tuple[Turn, ...]


def parse_conversation(body: Mapping[str, Any]) -> Conversation:
    """Reads `system` and `messages` of a Messages body.

    Raises:
        GatewayError: 400, naming the field that is missing, of a wrong type or unknown here.
    """
    messages = read_list(body.get("messages"), "messages")
    if not messages:
        raise bad_request("messages: expected at least one message", "messages")
    system = _system_texts(body.get("system"), "system")
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = read_object(message, path).get("role")
        if role == "system":
            system += _system_texts(message.get("content"), f"{path}.content")
            continue
        if role not in ("user", "assistant"):
            raise wrong_type(f"{path}.role", "user, assistant or system", role)
        if not turns or turns[-1].role != role:
            turns.append(Turn(role))
        _read_content(turns[-1], message.get("content"), f"{path}.content")
    prompt = _join_system(system)
    if prompt is None and not turns:
        raise bad_request("messages: every message is empty", "messages")
    return Conversation(prompt, tuple(turns))


def _system_texts(content: object, path: str) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    texts = []
    for index, block in enumerate(read_list(content, path)):
        at = f"{path}[{index}]"
        if _block_type(block, at) != "text":
            raise _unsupported(block, at, "a system prompt")
        texts.append(read_text(block.get("text"), f"{at}.text"))
    return texts


def _join_system(texts: list[str]) -> str | None:
    kept = [text for text in texts if text.strip()]
    if kept:
        kept[0] = without_billing_line(kept[0])
    return "\n\n".join(text for text in kept if text.strip()) or None


def _read_content(turn: Turn, content: object, path: str) -> None:
    if isinstance(content, str):
        _add_text(turn.parts, content)
        return
    if not isinstance(content, list):
        raise wrong_type(path, "a string or an array of blocks", content)
    readers = _READERS[turn.role]
    for index, block in enumerate(content):
        at = f"{path}[{index}]"
        block_type = _block_type(block, at)
        reader = readers.get(block_type)
        if reader is not None:
            reader(turn, block, at)
        elif not is_server_block(block_type):
            raise _unsupported(block, at, f"a turn of the {turn.role}")


def _add_text(parts: list[Part], text: str) -> None:
    if text:
        parts.append(Text(text))


def _block_type(block: object, path: str) -> str:
    return read_name(read_object(block, path).get("type"), f"{path}.type")


def _unsupported(block: Mapping[str, Any], path: str, place: str) -> GatewayError:
    return bad_request(
        f"{path}: a block of type {shown(block['type'])} is not supported in {place}", path
    )


# One reader a block type. Each adds to the turn what the model is to see of the block.


def _read_parts(turn: Turn, block: Mapping[str, Any], path: str) -> None:
    turn.parts += _PARTS[block["type"]](block, path)


def _read_result(turn: Turn, block: Mapping[str, Any], path: str) -> None:
    call_id = read_name(block.get("tool_use_id") or block.get("id"), f"{path}.tool_use_id")
    result = turn.results.setdefault(call_id, Result(call_id))
    for part in _result_parts(block.get("content"), f"{path}.content"):
        match part:
            case Text(text):
                result.texts.append(text)
            case Image():
                turn.images.append(part)
            case Reference():
                result.references.append(part)


def _read_call(turn: Turn, block: Mapping[str, Any], path: str) -> None:
    # Clients that gather a stream may keep "" for the input of a call without arguments.
    given = block.get("input")
    turn.calls.append(
        Call(
            id=read_name(block.get("id"), f"{path}.id"),
            name=read_name(block.get("name"), f"{path}.name"),
            input={} if given in (None, "") else read_object(given, f"{path}.input"),
        )
    )


def _read_thinking(turn: Turn, block: Mapping[str, Any], path: str) -> None:
    thought = read_text(block.get("thinking"), f"{path}.thinking")
    if thought:
        turn.thinking.append(thought)


def _skip(turn: Turn, block: Mapping[str, Any], path: str) -> None:
    """Encrypted for the vendor's eyes."""


# What the model is to see of a block, as parts.


def _text_parts(block: Mapping[str, Any], path: str) -> list[Part]:
    parts: list[Part] = []
    _add_text(parts, read_text(block.get("text"), f"{path}.text"))
    return parts


def _image_parts(block: Mapping[str, Any], path: str) -> list[Part]:
    source = read_object(block.get("source"), f"{path}.source")
    match source.get("type"):
        case "base64":
            data = read_name(source.get("data"), f"{path}.source.data")
            if data.startswith("data:"):
                return [Image(data)]
            media_type = source.get("media_type")
            if media_type is not None:
                media_type = read_name(media_type, f"{path}.source.media_type")
            return [Image(f"data:{media_type or _DEFAULT_IMAGE_TYPE};base64,{data}")]
        case "url":
            return [Image(read_name(source.get("url"), f"{path}.source.url"))]
        case other:
            raise _unsupported_source("image", other, path, "base64 or url")


def _search_parts(block: Mapping[str, Any], path: str) -> list[Part]:
    content = "\n".join(
        part.text
        for part in _inner_parts(block.get("content"), f"{path}.content", ("text",))
        if isinstance(part, Text)
    )
    parts: list[Part] = []
    _add_text(parts, _labelled(block, (("Title", "title"), ("Source", "source")), content))
    return parts


def _document_parts(block: Mapping[str, Any], path: str) -> list[Part]:
    source = read_object(block.get("source"), f"{path}.source")
    parts: list[Part] = []
    _add_text(parts, _labelled(block, (("Title", "title"), ("Context", "context")), ""))
    match source.get("type"):
        case "text":
            _add_text(parts, read_text(source.get("data"), f"{path}.source.data"))
        case "content":
            at = f"{path}.source.content"
            parts += _inner_parts(source.get("content"), at, ("text", "image"))
        case other:
            raise _unsupported_source("document", other, path, "text or content")
    return _join_texts(parts)


def _join_texts(parts: list[Part]) -> list[Part]:
    """The parts with neighbouring texts in one, on lines of their own."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(f"{last.text}\n{part.text}")
        else:
            joined.append(part)
    return joined


def _reference_parts(block: Mapping[str, Any], path: str) -> list[Part]:
    name = block.get("tool_name") or block.get("name")
    return [Reference(read_name(name, f"{path}.tool_name"))]


def _result_parts(content: object, path: str) -> list[Part]:
    return [] if content is None else _inner_parts(content, path, tuple(_PARTS))


def _inner_parts(content: object, path: str, allowed: tuple[str, ...]) -> list[Part]:
    """The parts of content inside a block, which is a text or blocks of some types."""
    parts: list[Part] = []
    if isinstance(content, str):
        _add_text(parts, content)
        return parts
    if not isinstance(content, list):
        raise wrong_type(path, "a string or an array of blocks", content)
    for index, block in enumerate(content):
        at = f"{path}[{index}]"
        block_type = _block_type(block, at)
        if block_type not in allowed:
            raise _unsupported(block, at, path.rpartition(".")[0])
        parts += _PARTS[block_type](block, at)
    return parts


def _labelled(block: Mapping[str, Any], labels: tuple[tuple[str, str], ...], content: str) -> str:
    lines = [
        f"{label}: {block[key]}"
        for label, key in labels
        if isinstance(block.get(key), str) and block[key]
    ]
    if content:
        lines.append(f"Content: {content}" if lines else content)
    return "\n".join(lines)


def _unsupported_source(kind: str, got: object, path: str, known: str) -> GatewayError:
    at = f"{path}.source.type"
    return bad_request(
        f"{at}: a {kind} of source {shown(got)} is not supported (known here: {known})", at
    )


_Reader = Callable[[Turn, Mapping[str, Any], str], None]

_PARTS: Final[Mapping[str, Callable[[Mapping[str, Any], str], list[Part]]]] = {
    "text": _text_parts,
    "image": _image_parts,
    "search_result": _search_parts,
    "document": _document_parts,
    "tool_reference": _reference_parts,
}

_READERS: Final[Mapping[str, Mapping[str, _Reader]]] = {
    "user": {**dict.fromkeys(_PARTS, _read_parts), "tool_result": _read_result},
    "assistant": {
        **dict.fromkeys(_PARTS, _read_parts),
        "tool_use": _read_call,
        "thinking": _read_thinking,
        "redacted_thinking": _skip,
    },
}
