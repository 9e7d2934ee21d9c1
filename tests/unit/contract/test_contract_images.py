"""The limit `max_images`."""

import json
from collections.abc import Callable

import pytest

from gateway.contract import Change, Decision, count_images, decide
from gateway.errors import BAD_REQUEST
from gateway.jsonbody import parse_object
from gateway.profile.rules import Profile
from gateway.routes import CHAT, COMPLETIONS, COUNT_TOKENS, MESSAGES, RESPONSES, Route

Outcome = Callable[..., bytes | str]

CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
INPUT = {"type": "input_image", "image_url": "https://h/image.png"}
TEXT = {"type": "text", "text": '{"type":"image_url"} image "type":"image"'}


def chat(*parts: object, role: str = "user") -> dict[str, object]:
    """A body with one message."""
    return {"messages": [{"role": role, "content": list(parts)}]}


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param(chat(TEXT, CHAT_IMAGE, CHAT_IMAGE), 2, id="chat"),
        pytest.param(chat(CHAT_IMAGE, role="tool"), 1, id="tool message"),
        pytest.param(chat(CHAT_IMAGE, role="system"), 1, id="system message"),
        pytest.param(chat({"type": "image_url", "image_url": "https://h/a"}), 1, id="bare text"),
        pytest.param(chat({"type": "image_url"}), 1, id="no URL"),
        pytest.param(chat({"type": "image_url", "image_url": [1]}), 1, id="malformed URL"),
        pytest.param(chat({"type": "image", "content": [BLOCK]}), 1, id="not also its inside"),
        pytest.param(chat(BLOCK, TEXT), 1, id="block"),
        pytest.param(
            chat({"type": "tool_result", "tool_use_id": "t", "content": [BLOCK, TEXT, BLOCK]}),
            2,
            id="tool_result",
        ),
        pytest.param(
            {"input": [{"role": "user", "content": [INPUT, {"type": "input_text", "text": ""}]}]},
            1,
            id="responses",
        ),
        pytest.param(
            {"input": [{"type": "function_call_output", "call_id": "c", "output": [INPUT, INPUT]}]},
            2,
            id="function_call_output",
        ),
        pytest.param({"system": [BLOCK], "messages": []}, 1, id="system blocks"),
        pytest.param({"input": "input_image"}, 0, id="text input"),
        pytest.param({"messages": [{"role": "user", "content": "image_url"}]}, 0, id="text"),
        pytest.param(chat(TEXT), 0, id="a text that mentions"),
        pytest.param(
            chat({"type": "tool_use", "name": "image", "input": {"content": [CHAT_IMAGE]}}),
            0,
            id="a tool's arguments",
        ),
        pytest.param({**chat(), "tools": [CHAT_IMAGE], "metadata": BLOCK}, 0, id="elsewhere"),
        pytest.param(chat({"image_url": {"url": "x"}}), 0, id="no type"),
        pytest.param(chat({"type": ["image_url"]}, {"type": {"a": "image"}}), 0, id="odd types"),
        pytest.param(chat(None, 1, "image", [CHAT_IMAGE], True), 1, id="odd parts"),
        pytest.param({"messages": [None, 1, "image", [], {}]}, 0, id="odd messages"),
        pytest.param({"messages": {"content": CHAT_IMAGE}}, 1, id="objects for lists"),
        pytest.param({"messages": "image", "input": None, "system": 3}, 0, id="odd holders"),
        pytest.param({}, 0, id="nothing"),
    ],
)
def test_counting(body: dict[str, object], count: int) -> None:
    """Images are counted by type wherever one reaches the engine; nothing stops the count."""
    assert count_images(parse_object(json.dumps(body).encode())) == count


def test_unreadable_numbers_do_not_stop_the_count() -> None:
    """Numbers that have no value are no reason to refuse a request here."""
    numbers = b"1e400," + b"9" * 5000
    raw = b'{"messages":[%b,{"content":[{"type":"image"}]}]}' % numbers
    assert count_images(parse_object(raw)) == 1


@pytest.mark.parametrize(
    ("route", "raw"),
    [
        pytest.param(CHAT, json.dumps(chat(CHAT_IMAGE, CHAT_IMAGE)).encode(), id="chat"),
        pytest.param(MESSAGES, json.dumps(chat(BLOCK, BLOCK)).encode(), id="messages"),
        pytest.param(RESPONSES, b'{"messages":[],"input":[{"content":[%b,%b]}]}', id="responses"),
        pytest.param(
            CHAT,
            b'{"messages":[{"content":[{"type":"\\u0069mage_url"},{"type":"im\\u0061ge_url"}]}]}',
            id="escaped",
        ),
        pytest.param(
            CHAT,
            b'{"messages":[{"content":[{"type":"i\\u006Dage"},{"t\\u0079pe":"image"}]}]}',
            id="one of them escaped",
        ),
    ],
)
def test_limit(route: Route, raw: bytes) -> None:
    """One image too many is refused on every governed route, however its type is spelled."""
    raw = raw % ((json.dumps(INPUT).encode(),) * raw.count(b"%b")) if b"%b" in raw else raw
    body = parse_object(raw)
    assert decide(Profile(max_images=2), route, body).rejection is None
    error = decide(Profile(max_images=1), route, body).rejection
    assert error is not None
    assert error.kind is BAD_REQUEST
    assert error.message == "The request has 2 images, expected at most 1."


def test_no_limit(outcome: Outcome) -> None:
    """Without a limit, on a route without one, and within it nothing happens."""
    raw = json.dumps(chat(*[CHAT_IMAGE] * 5)).encode()
    assert outcome(Profile(), raw) == raw
    assert outcome(Profile(max_images=5), raw) == raw
    for route in (COMPLETIONS, COUNT_TOKENS):
        assert outcome(Profile(max_images=1), raw, route) == raw


def test_refusal_is_told() -> None:
    """The refusal names the place, the count and the rule."""
    raw = json.dumps(chat(*[CHAT_IMAGE] * 5)).encode()
    verdict = decide(Profile(max_images=4), CHAT, parse_object(raw))
    assert verdict.decisions == (
        Decision(Change.REJECTED, "messages", "limits.max_images", b"5", None),
    )
    assert [error.param for error in verdict.rejections] == ["messages"]
