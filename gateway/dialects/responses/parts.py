"""The leaves of a Responses input: parts of messages, outputs of tools, arguments of calls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from gateway.errors import GatewayError, bad_request

# Tuples, not sets: what is looked up in them is a client's, and may be no string.
_TEXT_PARTS: Final = ("input_text", "output_text", "text")
_IMAGE_PARTS: Final = ("input_image", "image_url", "image")
_DETAILS: Final = MappingProxyType({"original": "high"})
"""Image details that Chat spells otherwise."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gave back: its text, and the media that Chat's tool messages cannot hold."""

    text: str
    media: list[dict[str, Any]]


def convert_user_part(part: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A part of a user's message, in Chat's form.

    Raises:
        GatewayError: 400 that names the part: a file, an image without a URL, an unknown type.
    """
    kind = part.get("type")
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": read_string(part, "text", where)}
    if kind in _IMAGE_PARTS:
        image = _image(part, where)
        if image is None:
            raise refused(f"{where}.image_url", "expected a URL, or a data URL")
        return image
    if kind == "input_audio":
        return {"type": kind, kind: part.get(kind)}
    raise _unsupported_part(kind, where)


def read_text(part: Mapping[str, Any], where: str) -> str:
    """The text of a part, where nothing but text can stand.

    Raises:
        GatewayError: 400 that names the part.
    """
    kind = part.get("type")
    if kind == "refusal":
        return read_string(part, "refusal", where)
    if kind in _TEXT_PARTS:
        return read_string(part, "text", where)
    raise _unsupported_part(kind, where)


def _image(part: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """A Chat image; None where the part has none.

    The forms that tools and Chat clients use are understood as well: a URL inside an object,
    and base64 `data` beside its `mimeType`.
    """
    if part.get("file_id") is not None:
        raise refused(f"{where}.file_id", "files are not kept here; send the image as image_url")
    url, detail = part.get("image_url"), part.get("detail")
    if isinstance(url, Mapping):
        detail = url.get("detail", detail)
        url = url.get("url")
    data, media_type = part.get("data"), part.get("mimeType")
    if url is None and isinstance(data, str) and isinstance(media_type, str):
        url = f"data:{media_type};base64,{data}"
    if not isinstance(url, str) or not url:
        return None
    image = {"url": url}
    if isinstance(detail, str):
        image["detail"] = _DETAILS.get(detail, detail)
    return {"type": "image_url", "image_url": image}


def read_output(value: object, where: str) -> ToolOutput:
    """A tool's output: text as it is, blocks taken apart, anything else as its JSON."""
    if value is None or isinstance(value, str):
        return ToolOutput(value or "", [])
    if isinstance(value, Mapping) and value.get("type") in _IMAGE_PARTS:
        value = [value]
    if not isinstance(value, list) or not all(
        isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in value
    ):
        return ToolOutput("" if value == [] else json_text(value), [])
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    for index, block in enumerate(value):
        at = f"{where}[{index}]"
        match block["type"]:
            case "input_file":
                raise _unsupported_part("input_file", at)
            case "input_audio":
                media.append(convert_user_part(block, at))
            case kind if kind in _IMAGE_PARTS:
                image = _image(block, at)
                # A tool's odd block comes back with every later request of the session: a 400
                # would end it for good.
                media.extend([image] if image else [])
                texts.extend([] if image else ["[an image without data]"])
            case kind if kind in _TEXT_PARTS and isinstance(block.get("text"), str | None):
                texts.append(block.get("text") or "")
            case _:
                texts.append(json_text(block))
    return ToolOutput("\n".join(texts), media)


def read_reasoning(item: Mapping[str, Any], where: str) -> list[str]:
    """The texts of a reasoning item: its content, else its summary; encrypted text is nothing."""
    for key in ("content", "summary"):
        parts = item.get(key)
        if parts is None:
            continue
        if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
            raise refused(f"{where}.{key}", "expected an array of parts")
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if any(texts):
            return texts
    return []


def read_arguments(value: object) -> str:
    """A call's arguments, which the engine takes as the JSON of an object only.

    A model's broken arguments come back with every later request, so they become `{}` rather
    than the engine's 400.
    """
    if isinstance(value, Mapping):
        return json_text(value)
    return value if isinstance(value, str) and parse_object_text(value) is not None else "{}"


def json_text(value: object) -> str:
    """A value's JSON as a text for the model, to whom an escaped character would be noise."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_object_text(text: str) -> dict[str, Any] | None:
    """What a text says that is the JSON of an object; None of any other text."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def read_string(mapping: Mapping[str, Any], key: str, where: str) -> str:
    """A required text; names and ids may not be empty.

    Raises:
        GatewayError: 400 that names the key.
    """
    value = mapping.get(key)
    if isinstance(value, str) and (value or key in {"text", "input", "refusal"}):
        return value
    raise refused(f"{where}.{key}", "expected a string" if value else "is required: a string")


def _unsupported_part(kind: object, where: str) -> GatewayError:
    known = "known here: text, images by URL, audio of the user"
    return refused(f"{where}.type", f"a part of type {kind!r} is not supported ({known})")


def refused(field_name: str, reason: str) -> GatewayError:
    """A 400 that begins with the field at fault."""
    return bad_request(f"{field_name}: {reason}", field_name)
