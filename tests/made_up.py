"""Answers that are made up, in the shapes that SGLang gives them on its two routes.

Those of `cases/sglang` were heard; these come in any number, for properties.
"""

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

_words = st.text(st.sampled_from('ab \n"{}é北\u2028🙂'), min_size=1, max_size=8).filter(
    lambda text: text.strip()
)
_inputs = st.dictionaries(
    _words, st.none() | st.booleans() | st.integers(-9, 9) | _words, max_size=2
)
_finishes = [
    ("stop", "end_turn"),
    ("length", "max_tokens"),
    ("content_filter", "refusal"),
]


@dataclass
class Said:
    """An answer before it has a shape; `cut` is the length of a stream's pieces."""

    reasoning: str
    text: str
    inputs: list
    finish: tuple
    cached: int
    cut: int
    calls: list = field(default_factory=list)

    def __post_init__(self):
        self.calls = [(f"call_{at}", "fg"[at % 2], given) for at, given in enumerate(self.inputs)]
        if self.calls:
            self.finish = ("tool_calls", "tool_use")

    def pieces(self, text):
        """A text, cut."""
        return [text[at : at + self.cut] for at in range(0, len(text), self.cut)]

    @property
    def counts(self):
        """Usage as Chat counts it."""
        return {
            "prompt_tokens": 20,
            "total_tokens": 25,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": self.cached} if self.cached else None,
        }

    @property
    def billed(self):
        """Usage as Messages count it."""
        cached = {"cache_read_input_tokens": self.cached} if self.cached else {}
        return {"input_tokens": 20 - self.cached, **cached}


said_by_engines = st.builds(
    Said,
    reasoning=st.just("") | _words,
    text=st.just("") | _words,
    inputs=st.lists(_inputs, max_size=3),
    finish=st.sampled_from(_finishes),
    cached=st.sampled_from([0, 15]),
    cut=st.integers(1, 4),
)


def chat_reply(said):
    """A whole reply of the Chat route."""
    message = {
        "role": "assistant",
        "content": said.text,
        "reasoning_content": said.reasoning or None,
    }
    if said.calls:
        message["tool_calls"] = [
            chat_call(at, call_id, name, json.dumps(given))
            for at, (call_id, name, given) in enumerate(said.calls)
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": said.finish[0],
        "matched_stop": None,
    }
    return {
        "id": "0f",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": said.counts,
    }


def chat_call(index, call_id, name, arguments):
    """A call, or a piece of one."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "index": index, "type": "function", "function": function}


def chat_stream(said):
    """The chunks of the Chat route."""
    deltas = [{"reasoning_content": None, "role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in said.pieces(said.reasoning)]
    deltas += [{"reasoning_content": None, "content": piece} for piece in said.pieces(said.text)]
    silent = {"role": None, "content": None, "reasoning_content": None}
    for at, (call_id, name, arguments) in enumerate(said.calls):
        told = [chat_call(at, call_id, name, "")]
        told += [chat_call(at, None, None, piece) for piece in said.pieces(json.dumps(arguments))]
        deltas += [{**silent, "tool_calls": [call]} for call in told]
    base = {"id": "0f", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    end = {"index": 0, "delta": {"reasoning_content": None}, "finish_reason": said.finish[0]}
    chunks += [{**base, "choices": [end]}, {**base, "choices": [], "usage": said.counts}]
    frames = [b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks]
    return b"".join(frames) + b"data: [DONE]\n\n"


def messages_reply(said):
    """A whole reply of the Messages route."""
    kinds = {"thinking": said.reasoning, "text": said.text}
    content = [{"type": kind, kind: text} for kind, text in kinds.items() if text]
    content += [
        {"type": "tool_use", "id": call_id, "name": name, "input": given}
        for call_id, name, given in said.calls
    ]
    return {
        "id": "msg_0f",
        "type": "message",
        "role": "assistant",
        "content": content,
        "model": "m",
        "stop_reason": said.finish[1],
        "usage": {**said.billed, "output_tokens": 5},
    }


def messages_stream(said):
    """The events of the Messages route."""
    whole = messages_reply(said)
    start = {**whole, "content": [], "usage": {**said.billed, "output_tokens": 0}}
    del start["stop_reason"]
    events = [{"type": "message_start", "message": start}]
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        call = kind == "tool_use"
        empty = {**block, "input": {}} if call else {"type": kind, kind: ""}
        delta, key = ("input_json_delta", "partial_json") if call else (f"{kind}_delta", kind)
        pieces = said.pieces(json.dumps(block["input"]) if call else block[kind])
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: piece}}
            for piece in pieces
        ]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"]}
    events += [
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    frames = [(event["type"].encode(), json.dumps(event).encode()) for event in events]
    return b"".join(b"event: %b\ndata: %b\n\n" % frame for frame in frames)


SHAPES = {"chat": (chat_reply, chat_stream), "messages": (messages_reply, messages_stream)}
"""By route, what writes a whole reply (as a value) and a stream (as bytes)."""
