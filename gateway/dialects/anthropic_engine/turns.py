"""Chat's messages as Messages' turns.

    Chat                                  Messages
    system, developer, wherever           `system`, joined by blank lines
    user                                  a user turn
    assistant                             an assistant turn: thinking, text, calls
    tool                                  a tool_result in a user turn
    nothing but system messages           one user turn

Turns of one role that follow each other are one. In a user turn the results come first, whatever
was said between them: they have to follow the turn of their calls. Nothing is ever an empty block
or an empty list of blocks; a turn with nothing in it has an empty text for content, so that the
turns still alternate.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from gateway import jsonbody
from gateway.dialects.messages.fields import (
    read_list,
    read_name,
    read_object,
    read_text,
    shown,
    wrong_type,
)
from gateway.errors import GatewayError, bad_request

_Block = dict[str, Any]

_DATA_URL: Final = re.compile(
    r"data:(image/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_WEB_URL: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(slots=True)
class _Turn:
    """A turn while it is gathered.

    Attributes:
        results: of tools; they go before the other blocks.
    """

    role: str
    results: list[_Block] = field(default_factory=list)
    blocks: list[_Block] = field(default_factory=list)

    def render(self) -> dict[str, Any]:
        return {"role": self.role, "content": _render_content([*self.results, *self.blocks])}


def read_conversation(messages: object) -> tuple[str | None, list[dict[str, Any]]]:
    """Converts the `messages` of a Chat request.

    Returns:
        `system`, None where there is none, and `messages`.

    Raises:
        GatewayError: 400, for a message that is malformed or that Messages cannot say.
    """
    system: list[str] = []
    turns: list[_Turn] = []
    for index, item in enumerate(read_list(messages, "messages")):
        path = f"messages[{index}]"
        message = read_object(item, path)
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            known = ", ".join(_ROLES)
            raise bad_request(
                f"{path}.role: expected one of {known}, got {shown(role)}", f"{path}.role"
            )
        turn_role, read = _ROLES[role]
        if read is None:
            blocks = _read_content(message.get("content"), f"{path}.content", _SYSTEM_PARTS)
            system += [block["text"] for block in blocks]
            continue
        if not turns or turns[-1].role != turn_role:
            turns.append(_Turn(turn_role))
        read(turns[-1], message, path)
    text = "\n\n".join(system)
    if turns:
        return text or None, [turn.render() for turn in turns]
    if not messages:
        raise bad_request("messages: expected at least one message", "messages")
    return None, [{"role": "user", "content": text}]


def _render_content(blocks: list[_Block]) -> str | list[_Block]:
    """Blocks as they are written: a text alone as a text."""
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return str(blocks[0]["text"])
    return blocks


def _read_user(turn: _Turn, message: Mapping[str, Any], path: str) -> None:
    at = f"{path}.content"
    content = message.get("content")
    if content is None:
        raise wrong_type(at, "a string or an array of parts", content)
    turn.blocks += _read_content(content, at, _USER_PARTS)


def _read_tool(turn: _Turn, message: Mapping[str, Any], path: str) -> None:
    blocks = _read_content(message.get("content"), f"{path}.content", _TOOL_PARTS)
    turn.results.append(
        {
            "type": "tool_result",
            "tool_use_id": read_name(message.get("tool_call_id"), f"{path}.tool_call_id"),
            "content": _render_content(blocks),
        }
    )


def _read_assistant(turn: _Turn, message: Mapping[str, Any], path: str) -> None:
    for key in ("reasoning_content", "reasoning"):
        thinking = message.get(key)
        if thinking is not None:
            turn.blocks += _thinking(read_text(thinking, f"{path}.{key}"))
            break
    turn.blocks += _read_content(message.get("content"), f"{path}.content", _ASSISTANT_PARTS)
    calls = message.get("tool_calls")
    if calls is None:
        return
    at = f"{path}.tool_calls"
    turn.blocks += [
        _read_call(call, f"{at}[{index}]") for index, call in enumerate(read_list(calls, at))
    ]


def _read_call(call: object, path: str) -> _Block:
    call = read_object(call, path)
    if call.get("type") not in (None, "function"):
        raise _unsupported(f"{path}.type", call["type"], "function")
    function = read_object(call.get("function"), f"{path}.function")
    return {
        "type": "tool_use",
        "id": read_name(call.get("id"), f"{path}.id"),
        "name": read_name(function.get("name"), f"{path}.function.name"),
        "input": _parse_arguments(function.get("arguments")),
    }


def _parse_arguments(arguments: object) -> Mapping[str, Any]:
    """The input of a call, always an object.

    Arguments that a model broke are `{}`, as they are in a reply: the client only tells what it
    was told, and a 400 would end its conversation for good.
    """
    if isinstance(arguments, str):
        try:
            arguments = jsonbody.parse_value(arguments.encode())
        except (GatewayError, UnicodeEncodeError):
            return {}
    return arguments if isinstance(arguments, Mapping) else {}


def _read_content(content: object, path: str, readers: "_Readers") -> list[_Block]:
    """The blocks of a message's content: null, a text, or parts of the known types."""
    if content is None or isinstance(content, str):
        return _text(content or "")
    if not isinstance(content, list):
        raise wrong_type(path, "a string or an array of parts", content)
    blocks: list[_Block] = []
    for index, item in enumerate(content):
        at = f"{path}[{index}]"
        part = read_object(item, at)
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in readers:
            raise _unsupported(f"{at}.type", kind, ", ".join(readers))
        blocks += readers[kind](part, at)
    return blocks


def _text(text: str) -> list[_Block]:
    return [{"type": "text", "text": text}] if text else []


def _thinking(text: str) -> list[_Block]:
    return [{"type": "thinking", "thinking": text}] if text else []


def _text_part(part: Mapping[str, Any], path: str) -> list[_Block]:
    text = read_text(part.get("text"), f"{path}.text")
    return [dict(part)] if text else []


def _thinking_part(part: Mapping[str, Any], path: str) -> list[_Block]:
    key = "text" if part.get("thinking") is None else "thinking"
    return _thinking(read_text(part.get(key), f"{path}.{key}"))


def _reference_part(part: Mapping[str, Any], path: str) -> list[_Block]:
    return [{"type": "tool_reference", "tool_name": read_name(part.get("name"), f"{path}.name")}]


def _image_part(part: Mapping[str, Any], path: str) -> list[_Block]:
    """An image; how closely it is looked at (`detail`) is something Messages cannot say."""
    at = f"{path}.image_url"
    url = read_name(read_object(part.get("image_url"), at).get("url"), f"{at}.url")
    others = {key: value for key, value in part.items() if key not in ("type", "image_url")}
    return [{"type": "image", "source": _image_source(url, f"{at}.url"), **others}]


def _image_source(url: str, path: str) -> dict[str, Any]:
    if _WEB_URL.match(url):
        return {"type": "url", "url": url}
    head = _DATA_URL.match(url)
    data = url[head.end() :] if head else ""
    if head is None or len(data) % 4 or not _BASE64.fullmatch(data):
        raise bad_request(
            f"{path}: expected an http or https URL, or data:image/<type>;base64,<data>, "
            f"got {shown(url)}",
            path,
        )
    return {"type": "base64", "media_type": head[1].lower(), "data": data}


def _unsupported(path: str, kind: object, known: str) -> GatewayError:
    return bad_request(
        f"{path}: {shown(kind)} is not supported for this model, whose engine speaks Anthropic "
        f"Messages (supported here: {known})",
        path,
    )


_Readers = Mapping[str, Callable[[Mapping[str, Any], str], list[_Block]]]

_SYSTEM_PARTS: Final[_Readers] = MappingProxyType({"text": _text_part})
_USER_PARTS: Final[_Readers] = MappingProxyType({"text": _text_part, "image_url": _image_part})
_ASSISTANT_PARTS: Final[_Readers] = MappingProxyType(
    {**_USER_PARTS, "thinking": _thinking_part, "reasoning": _thinking_part}
)
_TOOL_PARTS: Final[_Readers] = MappingProxyType({**_USER_PARTS, "tool_reference": _reference_part})

_Reader = Callable[[_Turn, Mapping[str, Any], str], None]

_ROLES: Final[Mapping[str, tuple[str, _Reader | None]]] = MappingProxyType(
    {
        "system": ("", None),
        "developer": ("", None),
        "user": ("user", _read_user),
        "assistant": ("assistant", _read_assistant),
        "tool": ("user", _read_tool),
    }
)
"""Chat's roles: whose turn the message goes to, and how it is read. Two are lifted out."""
