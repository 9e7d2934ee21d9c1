"""What holds for each client's dialect in front of each of an engine's routes.

The exchanges are those that the gateway builds; their streams are driven as it drives them, over
what SGLang was heard to say and over answers that are made up.
"""

import itertools
import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import SHAPES, said_by_engines
from recorded import ANSWERS

from gateway import jsonbody, sse
from gateway.dialects.errors import EngineFailure
from gateway.errors import UPSTREAM_PROTOCOL, EngineFault
from gateway.profile.rules import Profile
from gateway.routes import CHAT, MESSAGES, RESPONSES
from gateway.service.engine_body import Side
from gateway.service.exchange import build_exchange
from gateway.service.prepare import prepare
from gateway.service.stream import Stream
from gateway.service.work import start_work

ASKED = "the client's name"
USER = [{"role": "user", "content": "hi"}]
CLIENTS = {
    "chat": (CHAT, {"messages": USER, "stream_options": {"include_usage": True}}),
    "responses": (RESPONSES, {"input": "hi"}),
    "messages": (MESSAGES, {"messages": USER, "max_tokens": 9, "stop_sequences": ["|"]}),
}
PAIRINGS = [
    pytest.param(dialect, engine, id=f"{dialect}-{engine}")
    for dialect, engine in itertools.product(CLIENTS, ("chat", "messages"))
]
FINISHED = {"chat": b'"finish_reason":"', "messages": b'"type":"message_stop"'}
"""By the engine's route, what is in the event with which an answer is whole."""


@dataclass
class Pieces:
    """An engine's answer: its bytes in pieces, and then its end, or what broke it off."""

    left: list
    end: Exception | None = None

    def next(self, timeout_s):
        """The next piece; an empty one at the end."""
        if self.left:
            return self.left.pop(0)
        if self.end is not None:
            raise self.end
        return b""

    def commit(self):
        """Silence counts otherwise from here on; there is none."""


@dataclass
class Pairing:
    """A request's exchange, and its answers."""

    exchange: object
    work: object

    def stream(self, pieces, end=None):
        """The frames that the client gets; raises what is told to it as an HTTP error."""
        stream = Stream(
            Pieces(list(pieces), end),
            self.exchange.build_relay(),
            self.work(),
            keepalive=b"",
            keepalive_s=1,
        )
        stream.open(float("inf"))
        return list(stream)

    def reply(self, body):
        """The whole reply that the client gets."""
        return json.loads(self.exchange.parse_reply(body))


def pair(dialect, engine):
    """A small request of a client, and the exchange that an engine's route makes of it."""
    route, fields = CLIENTS[dialect]
    raw = json.dumps({"model": ASKED, "stream": True, **fields}).encode()
    work = start_work(route, "r")
    prepared = prepare(Profile(), work, jsonbody.parse_object(raw), ASKED)
    exchange = build_exchange(prepared, Side("m", messages=engine == "messages"))
    return Pairing(exchange, lambda: start_work(route, "r"))


# What a client makes of its stream.


@dataclass
class Heard:
    """A stream, read.

    Attributes:
        events: payloads, each with the name of its event.
        ends: how often it ended well, and with an error.
    """

    events: list
    ends: tuple


SUCCESS = {"[DONE]", "message_stop", "response.completed", "response.incomplete"}
FAILURE = {"error", "response.failed"}


def hear(frames):
    """Reads frames; each is one event."""
    kinds, events = [], []
    for frame in frames:
        (event,) = sse.Decoder().feed(frame)
        if event.data == b"[DONE]":
            kinds.append("[DONE]")
            continue
        payload = json.loads(event.data)
        kinds.append(payload.get("type") or ("error" if "error" in payload else "chunk"))
        assert event.event == payload.get("type")
        events.append(payload)
    ends = (sum(kind in SUCCESS for kind in kinds), sum(kind in FAILURE for kind in kinds))
    assert not kinds or not any(kind in SUCCESS | FAILURE for kind in kinds[:-1])
    return Heard(events, ends)


def fold_chat(events):
    """The completion that chunks add up to."""
    message = {"role": None, "content": "", "reasoning_content": ""}
    calls, finish, usage = [], None, None
    for chunk in events:
        assert (chunk["object"], chunk["model"]) == ("chat.completion.chunk", ASKED)
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["role"] = delta.get("role") or message["role"]
            for key in ("content", "reasoning_content"):
                message[key] += delta.get(key) or ""
            for piece in delta.get("tool_calls") or ():
                if piece["index"] == len(calls):
                    calls.append([piece["id"], piece["function"]["name"], ""])
                calls[piece["index"]][2] += piece["function"]["arguments"]
            finish = choice["finish_reason"] or finish
    return message, read_calls(calls), finish, usage["total_tokens"]


def read_chat(reply):
    """The same of a whole completion."""
    (choice,) = reply["choices"]
    message = choice["message"]
    assert (reply["object"], reply["model"]) == ("chat.completion", ASKED)
    said = {key: message.get(key) or "" for key in ("role", "content", "reasoning_content")}
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    ]
    finish, total = choice["finish_reason"], reply["usage"]["total_tokens"]
    return said, read_calls(calls), finish, total


def read_calls(calls):
    """Calls with their arguments read."""
    return [(call_id, name, json.loads(said)) for call_id, name, said in calls]


def fold_messages(events):
    """The message that events add up to."""
    start, *events = events
    message = start["message"]
    assert message["model"] == ASKED
    blocks = message["content"]
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append({**event["content_block"], "said": ""})
            case "content_block_delta":
                assert event["index"] == len(blocks) - 1
                kind, said = event["delta"].values()
                key = {"thinking_delta": "thinking", "text_delta": "text"}.get(kind)
                if key is None:
                    blocks[-1]["said"] += said
                else:
                    blocks[-1][key] += said
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    for block in blocks:
        said = block.pop("said")
        if block["type"] == "tool_use":
            block["input"] = json.loads(said or "{}")
    return read_messages(message)


def read_messages(reply):
    """What a whole message says; the engine leaves out what is null."""
    assert (reply["type"], reply["role"], reply["model"]) == ("message", "assistant", ASKED)
    usage = reply["usage"]
    counts = [usage.get(f"{key}_tokens", 0) for key in ("input", "cache_read_input", "output")]
    return reply["content"], reply["stop_reason"], reply.get("stop_sequence"), counts


def fold_responses(events):
    """The Response with which a stream ends; its items are those that were told of."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    response = events[-1]["response"]
    told = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert response["output"] == told
    return read_responses(response)


def read_responses(reply):
    """A Response, its calls' arguments read."""
    assert (reply["object"], reply["model"]) == ("response", ASKED)
    for item in reply["output"]:
        if item["type"] == "function_call":
            item["arguments"] = json.loads(item["arguments"])
    return reply


FOLD = {"chat": fold_chat, "responses": fold_responses, "messages": fold_messages}
READ = {"chat": read_chat, "responses": read_responses, "messages": read_messages}


@pytest.mark.parametrize(("dialect", "engine"), PAIRINGS)
@settings(max_examples=60, deadline=None, database=None)
@given(said=said_by_engines)
def test_a_stream_adds_up_to_the_whole_reply(dialect, engine, said):
    """However it is cut, a client puts together what it would have got at once."""
    pairing = pair(dialect, engine)
    whole, stream = (shape(said) for shape in SHAPES[engine])
    heard = hear(pairing.stream([stream]))
    assert heard.ends == (1, 0)
    assert FOLD[dialect](heard.events) == READ[dialect](pairing.reply(json.dumps(whole).encode()))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(("dialect", "engine"), PAIRINGS)
def test_bytes_may_be_cut_anywhere(dialect, engine, name):
    """A byte at a time and all at once, the client gets the same, under its own name."""
    pairing = pair(dialect, engine)
    stream = ANSWERS[name].streamed[engine]
    frames = pairing.stream([stream])
    assert pairing.stream(stream[at : at + 1] for at in range(len(stream))) == frames
    assert hear(frames).ends == (1, 0)
    assert b'"model":"m"' not in b"".join(frames)


@pytest.mark.parametrize(("dialect", "engine"), PAIRINGS)
@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data())
def test_pieces_may_be_of_any_size(dialect, engine, data):
    """Cut at several places at once, within characters too."""
    pairing = pair(dialect, engine)
    stream = ANSWERS["text"].streamed[engine]
    cuts = data.draw(st.lists(st.integers(1, len(stream) - 1), max_size=6).map(sorted))
    pieces = [stream[start:end] for start, end in itertools.pairwise([0, *cuts, len(stream)])]
    assert pairing.stream(piece for piece in pieces if piece) == pairing.stream([stream])


@pytest.mark.parametrize(
    "broken", [None, EngineFault(UPSTREAM_PROTOCOL, "cut")], ids=["end", "cut"]
)
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(("dialect", "engine"), PAIRINGS)
def test_a_stream_that_is_cut_has_one_ending(dialect, engine, name, broken):
    """Wherever it ends, whole events or not: an error, and success only after the finish."""
    pairing = pair(dialect, engine)
    events = ANSWERS[name].streamed[engine].split(b"\n\n")[:-1]
    whole = pairing.stream([ANSWERS[name].streamed[engine]])
    for count, half in itertools.product(range(len(events)), (False, True)):
        sent = b"".join(event + b"\n\n" for event in events[:count])
        finished = FINISHED[engine] in sent
        rest = events[count][: len(events[count]) // 2] if half else b""
        try:
            frames = pairing.stream([sent + rest], broken)
        except (EngineFailure, EngineFault):
            # Nothing was sent, and there is nothing to send yet: it is an HTTP error. An answer
            # of nothing waits for its usage, and is no loss.
            assert not finished or name == "empty"
            continue
        heard = hear(frames)
        if half and finished:
            assert sum(heard.ends) == 1  # half a `[DONE]` is an end, or no event
        else:
            assert heard.ends == ((1, 0) if finished else (0, 1))
        if not finished:
            closed = len(frames) - 1 if dialect == "chat" else 1
            assert frames[:closed] == whole[:closed]
