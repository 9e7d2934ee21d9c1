"""Anthropic's own client understands the replies and the streams."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from gateway import sse
from gateway.dialects.errors import failure_of_kind
from gateway.dialects.messages import ChatToMessagesRelay, from_chat_reply
from gateway.errors import OVERLOADED

_STREAMS = sorted((Path(__file__).parents[2] / "cases" / "messages" / "streams").glob("*.json"))
_REQUEST: Any = {
    "model": "Qwen/Qwen3-8B",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.fixture
def build_client() -> Iterator[Callable[[bytes, str], anthropic.Anthropic]]:
    """Builds clients that get the given body, whatever they ask for."""
    clients: list[anthropic.Anthropic] = []

    def build(body: bytes, content_type: str) -> anthropic.Anthropic:
        def answer(_: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, content=body, headers={"content-type": content_type})

        transport = httpx2.MockTransport(answer)
        client = anthropic.Anthropic(
            api_key="k", max_retries=0, http_client=httpx2.Client(transport=transport)
        )
        clients.append(client)
        return client

    yield build
    for client in clients:
        client.close()


def _relay_all(case: dict[str, Any], count: int | None = None) -> tuple[ChatToMessagesRelay, bytes]:
    relay = ChatToMessagesRelay(model="Qwen/Qwen3-8B", request_id="req_1", **case["options"])
    frames = []
    for chunk in case["engine"][:count]:
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        frames += relay.feed(sse.Event(None, data.encode(), b""))
        frames.append(relay.keepalive() if frames else b"")
    return relay, b"".join(frames)


@pytest.mark.parametrize("path", _STREAMS, ids=[path.stem for path in _STREAMS])
def test_the_client_gathers_the_message(
    path: Path, build_client: Callable[[bytes, str], anthropic.Anthropic]
) -> None:
    """What it adds the events up to is what a client should get, pings in between or not."""
    case = json.loads(path.read_text())
    _, body = _relay_all(case)
    with build_client(body, "text/event-stream").messages.stream(**_REQUEST) as stream:
        message = stream.get_final_message()
    end = case["client"][-2]
    assert message.stop_reason == end["delta"]["stop_reason"]
    assert message.stop_sequence == end["delta"]["stop_sequence"]
    assert message.usage.output_tokens == end["usage"]["output_tokens"]
    assert message.usage.input_tokens == end["usage"]["input_tokens"]
    starts = [event for event in case["client"] if event["type"] == "content_block_start"]
    assert [block.type for block in message.content] == [
        start["content_block"]["type"] for start in starts
    ]
    for block in message.content:
        assert block.type != "tool_use" or isinstance(block.input, dict)


def test_the_client_raises_the_error_ending(
    build_client: Callable[[bytes, str], anthropic.Anthropic],
) -> None:
    """An error event is an exception to it, and not the end of a message."""
    case = json.loads(_STREAMS[-1].read_text())
    relay, body = _relay_all(case, 2)
    body += b"".join(relay.fail(failure_of_kind(OVERLOADED, "full")))
    client = build_client(body, "text/event-stream")
    with (
        pytest.raises(anthropic.APIStatusError, match="full"),
        client.messages.stream(**_REQUEST) as stream,
    ):
        stream.get_final_message()


def test_the_client_reads_a_buffered_reply(
    build_client: Callable[[bytes, str], anthropic.Anthropic],
) -> None:
    """Thinking, text and a call are blocks of its own types."""
    call = {"id": "call_a", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"reasoning_content": "r", "content": "t", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    reply = from_chat_reply({"id": "x", "choices": [choice]}, model="Qwen/Qwen3-8B")
    client = build_client(json.dumps(reply).encode(), "application/json")
    got = client.messages.create(**_REQUEST)
    thinking, text, use = got.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "r"
    assert text.type == "text"
    assert text.text == "t"
    assert use.type == "tool_use"
    assert use.input == {"a": 1}
    assert got.stop_reason == "tool_use"
