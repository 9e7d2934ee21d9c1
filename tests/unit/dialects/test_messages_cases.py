"""Whole requests and streams, as Claude Code sends and gets them, from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway import sse
from gateway.dialects.messages import ChatToMessagesRelay, count_tokens_body, to_chat

_CASES = Path(__file__).parents[2] / "cases" / "messages"


def _files(folder: str) -> list[Any]:
    paths = sorted((_CASES / folder).glob("*.json"))
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in paths]


def test_the_cases_are_found() -> None:
    """An empty folder would pass every test."""
    assert len(_files("requests")) >= 9
    assert len(_files("streams")) >= 8


@pytest.mark.parametrize("case", _files("requests"))
def test_request(case: dict[str, Any]) -> None:
    """The Chat body, the count's body and the dropped types are those of the file."""
    before = json.dumps(case["request"])
    converted = to_chat(case["request"], default_max_tokens=None, require_max_tokens=False)
    assert converted.body == case["chat"]
    assert list(converted.dropped_tools) == case["dropped_tools"]
    assert count_tokens_body(case["request"]) == case["count"]
    assert json.dumps(case["request"]) == before


@pytest.mark.parametrize("case", _files("streams"))
def test_stream(case: dict[str, Any]) -> None:
    """The events are those of the file, one a write, each under the name of its type."""
    relay = ChatToMessagesRelay(model="claude-sonnet-4-5", **case["options"])
    frames = []
    for chunk in case["engine"]:
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        frames += relay.feed(sse.Event(None, data.encode(), b""))
    events = [_parse_frame(frame) for frame in frames]
    assert events == case["client"]
    assert relay.done
    assert relay.finish() == []


def _parse_frame(frame: bytes) -> Any:
    (event,) = sse.Decoder().feed(frame)
    payload = json.loads(event.data)
    assert payload["type"] == event.event
    return payload
