"""The bodies of probes: small ones by route, and fields put where a dialect has them."""

import base64
import struct
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway import jsonbody
from gateway.dialects import messages, responses
from gateway.errors import GatewayError
from gateway.routes import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    INPUT_TOKENS,
    MESSAGES,
    RESPONSES,
    Dialect,
    Route,
)
from gateway.verify.expect import budget_field

PROMPT: Final = "Reply with one word."
GENERATING: Final = (CHAT, RESPONSES, MESSAGES, COMPLETIONS)
"""The routes that answer with text, and can stream it."""

_TURN: Final = {"role": "user", "content": PROMPT}
_SMALL: Final[Mapping[Route, Mapping[str, Any]]] = MappingProxyType(
    {
        CHAT: {"messages": [_TURN]},
        RESPONSES: {"input": PROMPT},
        MESSAGES: {"messages": [_TURN]},
        COMPLETIONS: {"prompt": PROMPT},
        EMBEDDINGS: {"input": PROMPT},
        COUNT_TOKENS: {"messages": [_TURN]},
        INPUT_TOKENS: {"input": PROMPT},
    }
)

_PLACES: Final[Mapping[tuple[Route, str], tuple[str, ...]]] = MappingProxyType(
    {
        (MESSAGES, "stop"): ("stop_sequences",),
        (MESSAGES, "user"): ("metadata", "user_id"),
        (MESSAGES, "reasoning_effort"): ("output_config", "effort"),
        (RESPONSES, "reasoning_effort"): ("reasoning", "effort"),
    }
)
"""Fields that a dialect has a place of its own for."""


def small(route: Route, model: str, tokens: int, *, stream: bool = False) -> dict[str, Any]:
    """A plain request of a route.

    Args:
        route: of the request.
        model: that is asked for.
        tokens: the budget of the answer; 0 sets none.
        stream: a stream is asked for.
    """
    body: dict[str, Any] = {"model": model, **_SMALL[route]}
    if tokens and route in GENERATING:
        body[budget_field(route.dialect)] = tokens
    return {**body, "stream": True} if stream else body


def render(body: Mapping[str, Any], fields: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """The bytes of a body; the values of `fields` are JSON already, and keep their spelling."""
    return jsonbody.parse_object(jsonbody.render_value(body)).edit(fields)


def with_field(
    route: Route, body: Mapping[str, Any], field: str, value: bytes | None
) -> bytes | None:
    """A body with a field of Chat set, where the dialect of the route can say so.

    Args:
        route: of the request.
        body: a plain request.
        field: by its name in Chat.
        value: its JSON; None leaves the field out.

    Returns:
        None where a client of this dialect cannot send the field with this value.
    """
    if value is None:
        return render(body)
    if route.dialect in {Dialect.CHAT, Dialect.COMPLETIONS}:
        return render(body, {field: value})
    plain = jsonbody.parse_value(value)
    place = _PLACES.get((route, field))
    ways = [render(body, {field: value})]
    if place is not None:
        ways.insert(0, render({**body, place[0]: _nested(place[1:], plain)}))
    return next((way for way in ways if plain is None or _carries(route, way, field, plain)), None)


def _nested(keys: tuple[str, ...], value: object) -> object:
    return {keys[0]: _nested(keys[1:], value)} if keys else value


def _carries(route: Route, raw: bytes, field: str, value: object) -> bool:
    """Whether the conversion to Chat, where the rules are, keeps the value."""
    body: Any = jsonbody.parse_value(raw)
    try:
        if route.dialect is Dialect.MESSAGES:
            chat = messages.to_chat(body, default_max_tokens=1).body
        else:
            chat = responses.to_chat(body).chat
    except GatewayError:
        return False
    return field in chat and bool(chat[field] == value)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _picture(side: int = 28) -> str:
    """A white PNG, as base64; engines refuse pictures of a single pixel."""
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\xff" * side for _ in range(side)))
    parts = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)
    return base64.b64encode(png).decode()


_PNG: Final = _picture()
_IMAGE: Final[Mapping[Dialect, Mapping[str, Any]]] = MappingProxyType(
    {
        Dialect.CHAT: {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{_PNG}"},
        },
        Dialect.RESPONSES: {"type": "input_image", "image_url": f"data:image/png;base64,{_PNG}"},
        Dialect.MESSAGES: {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": _PNG},
        },
    }
)
_TEXT_TYPE: Final = {Dialect.RESPONSES: "input_text"}


def _text(dialect: Dialect, text: str = PROMPT) -> dict[str, Any]:
    return {"type": _TEXT_TYPE.get(dialect, "text"), "text": text}


def _with_turns(route: Route, body: Mapping[str, Any], turns: list[Any]) -> dict[str, Any]:
    return {**body, "input" if route.dialect is Dialect.RESPONSES else "messages": turns}


def images_in_a_turn(route: Route, body: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A request with so many images in one message."""
    content = [*[_IMAGE[route.dialect]] * count, _text(route.dialect)]
    return _with_turns(route, body, [{"role": "user", "content": content}])


def images_in_two_turns(route: Route, body: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The images spread over two messages of the conversation."""
    image, text = _IMAGE[route.dialect], _text(route.dialect)
    turns = [
        {"role": "user", "content": [*[image] * (count // 2), text]},
        {"role": "assistant", "content": "White."},
        {"role": "user", "content": [*[image] * (count - count // 2), text]},
    ]
    return _with_turns(route, body, turns)


def images_in_a_result(route: Route, body: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The images in the result of a tool."""
    images = [_IMAGE[route.dialect]] * count
    name, call = "look", "call_1"
    turn = {"role": "user", "content": PROMPT}
    asked: list[dict[str, Any]]
    if route.dialect is Dialect.MESSAGES:
        use = {"type": "tool_use", "id": call, "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": call, "content": images}
        asked = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    elif route.dialect is Dialect.RESPONSES:
        asked = [
            {"type": "function_call", "call_id": call, "name": name, "arguments": "{}"},
            {"type": "function_call_output", "call_id": call, "output": images},
        ]
    else:
        function = {"name": name, "arguments": "{}"}
        calls = [{"id": call, "type": "function", "function": function}]
        asked = [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call, "content": images},
        ]
    return _with_turns(route, body, [turn, *asked])


def words_about_images(route: Route, body: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A text that mentions so many images and has none."""
    text = '{"type": "image_url"} ' * count
    content = [_text(route.dialect, text + PROMPT)]
    return _with_turns(route, body, [{"role": "user", "content": content}])


def padded(body: Mapping[str, Any], size_bytes: int) -> bytes | None:
    """A body of exactly this size: white space follows the object; None where it is too small."""
    raw = render(body)
    return raw + b" " * (size_bytes - len(raw)) if len(raw) <= size_bytes else None
