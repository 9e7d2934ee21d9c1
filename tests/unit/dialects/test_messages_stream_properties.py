"""What holds for every Messages stream, whatever the engine says and wherever it is cut."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import sse
from gateway.dialects.errors import EngineFailure
from gateway.dialects.messages import ChatToMessagesRelay, from_chat_reply

_DELTAS = {
    "thinking_delta": ("thinking", "thinking"),
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_MODEL = "claude"
_FORMAT_TOOL = "answer"
_STOPS = ("END", "\n")
_SETTINGS = settings(max_examples=150, deadline=None, database=None)


@dataclass
class _Answer:
    """An engine's answer, whole and as chunks."""

    reply: dict[str, Any]
    chunks: list[dict[str, Any]]


def _split(draw: st.DrawFn, text: str) -> list[str]:
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    ends = [0, *cuts, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(ends)]


_texts = st.text(max_size=12) | st.sampled_from(["", "\n\n", " x", "x \n"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["}", "{", '"', "é\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
_arguments = st.dictionaries(st.sampled_from(["a", "b"]), _values, max_size=2).map(json.dumps)


@st.composite
def _answers(draw: st.DrawFn) -> _Answer:
    reasoning, text = draw(_texts), draw(_texts)
    names = draw(st.lists(st.sampled_from(["f", "g", _FORMAT_TOOL]), max_size=3))
    calls = [
        {"id": f"call_{index}", "function": {"name": name, "arguments": draw(_arguments)}}
        for index, name in enumerate(names)
    ]
    # A blank text is nothing to a stream until the end, and a repeated answer is ignored: both
    # are told apart from the order of blocks, which a buffered reply makes by kind.
    calls.sort(key=lambda call: call["function"]["name"] != _FORMAT_TOOL)
    usage = draw(
        st.none()
        | st.fixed_dictionaries(
            {
                "prompt_tokens": st.integers(0, 99),
                "completion_tokens": st.integers(0, 99),
                "prompt_tokens_details": st.none()
                | st.fixed_dictionaries({"cached_tokens": st.none() | st.integers(0, 120)}),
            }
        )
    )
    finish = draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))
    matched = draw(st.none() | st.integers(0, 9) | st.sampled_from(["END", "other"]))
    message = {
        "role": "assistant",
        "content": text,
        "reasoning_content": reasoning or None,
        "tool_calls": calls,
    }
    choice = {"index": 0, "message": message, "finish_reason": finish, "matched_stop": matched}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _split(draw, reasoning)]
    deltas += [{"content": piece} for piece in _split(draw, text)]
    deltas += [{"tool_calls": [piece]} for piece in _call_pieces(draw, calls)]
    chunks = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    end = {"index": 0, "delta": {}, "finish_reason": finish, "matched_stop": matched}
    chunks.append(_chunk(end))
    chunks.append({"id": "6f1c", "choices": [], "usage": usage})
    return _Answer({"id": "6f1c", "choices": [choice], "usage": usage}, chunks)


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "6f1c", "choices": [choice]}


def _call_pieces(draw: st.DrawFn, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pieces of all calls, mixed in any way that keeps the order within each call.

    They begin in order, each with its name.
    """
    by_id = draw(st.booleans())  # told apart by id alone, or by index alone
    queues: list[list[dict[str, Any]]] = []
    for index, call in enumerate(calls):
        key = {"index": 0, "id": call["id"]} if by_id else {"index": index, "id": None}
        first = {**key, "id": call["id"], "function": {"name": call["function"]["name"]}}
        parts = _split(draw, call["function"]["arguments"])
        queues.append([first, *({**key, "function": {"arguments": part}} for part in parts)])
    pieces: list[dict[str, Any]] = []
    begun = 0
    while any(queues):
        open_queues = [queue for queue in queues[: begun + 1] if queue]
        queue = draw(st.sampled_from(open_queues)) if open_queues else queues[begun]
        begun = max(begun, 1 + next(at for at, one in enumerate(queues) if one is queue))
        pieces.append(queue.pop(0))
    return pieces


def _relay() -> ChatToMessagesRelay:
    return ChatToMessagesRelay(model=_MODEL, stop_sequences=_STOPS, format_tool=_FORMAT_TOOL)


def _feed(relay: ChatToMessagesRelay, payload: dict[str, Any] | str) -> list[Any]:
    data = payload if isinstance(payload, str) else json.dumps(payload)
    return _parse(relay.feed(sse.Event(None, data.encode(), b"")))


def _parse(frames: list[bytes]) -> list[Any]:
    events = []
    for frame in frames:
        (event,) = sse.Decoder().feed(frame)
        payload = json.loads(event.data)
        assert payload["type"] == event.event
        events.append(payload)
    return events


def _fold(events: list[Any]) -> dict[str, Any]:
    """The message that the events add up to; any disorder in them is an error."""
    first, *blocks, delta, stop = events
    assert first["type"] == "message_start"
    assert delta["type"] == "message_delta"
    assert stop == {"type": "message_stop"}
    message: dict[str, Any] = first["message"]
    message["content"] = _fold_blocks(blocks)
    return {**message, **delta["delta"], "usage": delta["usage"]}


def _fold_blocks(events: list[Any], *, whole: bool = True) -> list[Any]:
    """The blocks; the arguments of calls are read only where the answer is whole."""
    blocks: list[Any] = []
    said: str | None = None  # of the open block
    for event in events:
        if event["type"] == "content_block_start":
            assert said is None, "a block opens while another is open"
            assert event["index"] == len(blocks)
            blocks.append(event["content_block"])
            said = ""
            continue
        assert said is not None, "nothing is open"
        assert event["index"] == len(blocks) - 1
        block = blocks[-1]
        if event["type"] == "content_block_delta":
            kind, key = _DELTAS[event["delta"]["type"]]
            assert kind == block["type"]
            said += event["delta"][key]
            continue
        assert event["type"] == "content_block_stop"
        if block["type"] == "tool_use":
            block["input"] = json.loads(said) if whole and said else {}
        else:
            block[block["type"]] = said
        said = None
    assert said is None, "a block is left open"
    return blocks


@_SETTINGS
@given(_answers())
def test_a_stream_adds_up_to_the_buffered_reply(answer: _Answer) -> None:
    """However it is cut into pieces, and however the pieces of its calls are mixed."""
    relay = _relay()
    events = [event for chunk in [*answer.chunks, "[DONE]"] for event in _feed(relay, chunk)]
    buffered = from_chat_reply(
        answer.reply, model=_MODEL, stop_sequences=_STOPS, format_tool=_FORMAT_TOOL
    )
    assert _fold(events) == buffered
    assert relay.done


@_SETTINGS
@given(_answers(), st.data())
def test_a_cut_anywhere_has_one_error_ending(answer: _Answer, data: st.DataObject) -> None:
    """Before the finish, a cut leaves closed blocks, one error event, and no success after it."""
    relay = _relay()
    before_finish = len(answer.chunks) - 2
    cut = data.draw(st.integers(0, before_finish))
    events = [event for chunk in answer.chunks[:cut] for event in _feed(relay, chunk)]
    with pytest.raises(EngineFailure) as caught:
        relay.finish()
    ending = _parse(relay.fail(caught.value.failure))
    assert [event["type"] for event in ending].count("error") == 1
    assert ending[-1]["type"] == "error"
    told = [*events, *ending[:-1]]
    if told:
        assert told[0]["type"] == "message_start"
        _fold_blocks(told[1:], whole=False)
    assert relay.fail(caught.value.failure) == []
    assert _feed(relay, "[DONE]") == []
    assert not relay.done


@_SETTINGS
@given(_answers())
def test_a_finish_is_an_end_without_a_terminator(answer: _Answer) -> None:
    """A stream that ends after its finish reason adds up to the same message."""
    relay = _relay()
    events = [event for chunk in answer.chunks for event in _feed(relay, chunk)]
    assert not relay.done
    events += _parse(relay.finish())
    assert _fold(events)["stop_reason"] is not None
    assert relay.done


@_SETTINGS
@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5))
def test_no_piece_of_text_is_late(pieces: list[str]) -> None:
    """From the first piece that is not blank, all that was said has been sent."""
    relay = _relay()
    sent = ""
    for at, piece in enumerate(pieces):
        for event in _feed(relay, _chunk({"index": 0, "delta": {"content": piece}})):
            if event["type"] == "content_block_delta":
                sent += event["delta"]["text"]
        so_far = "".join(pieces[: at + 1])
        assert sent == (so_far if so_far.strip() else "")
