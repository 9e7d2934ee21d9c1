"""Chat streams to chat clients: what passes, what is held back, and how they end."""

import json

import pytest

from gateway import sse
from gateway.dialects import chat
from gateway.dialects.errors import EngineFailure, failure_of_kind
from gateway.errors import UPSTREAM_TIMEOUT
from gateway.routes import Dialect


def chunk(delta=None, finish=None, index=0, **keys):
    """A chat chunk as SGLang writes it."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, "matched_stop": None}
    return {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **keys}


ROLE = chunk({"role": "assistant", "content": "", "reasoning_content": None})
WORD = chunk({"content": "a", "reasoning_content": None})
STOP = chunk({"reasoning_content": None}, "stop")
USAGE = {"id": "1", "model": "m", "choices": [], "usage": {"prompt_tokens": 3}}
ERROR = {
    "error": {"object": "error", "message": "full", "type": "SERVICE_UNAVAILABLE", "code": 503}
}


def frame(payload):
    """One event's bytes."""
    return payload if isinstance(payload, bytes) else sse.render_event(json.dumps(payload).encode())


def relay_of(**look):
    """A relay for a client that asked for nothing special."""
    return chat.ChatRelay(chat.Look(**look), request_id="r")


def feed(relay, *payloads):
    """What the client gets for these events, frame by frame."""
    decoder = sse.Decoder()
    frames = []
    for payload in payloads:
        for event in decoder.feed(frame(payload)):
            frames += relay.feed(event)
    return frames


def test_bytes_pass_as_they_came():
    """Where nothing is asked for, every event's bytes reach the client untouched."""
    relay = relay_of(usage_chunk=True)
    odd = b'data: {"choices" : [{"index":0,"delta":{"content":"\\u00e9"}}], "x":1.0}\n\n'
    sent = [ROLE, odd, STOP, USAGE, chat.DONE]
    assert feed(relay, *sent) == [frame(one) for one in sent]
    assert relay.done
    assert relay.finish() == []


SPEAKS = {
    "content": ({"content": "a"}, True),
    "reasoning": ({"reasoning_content": "a"}, True),
    "tool call": ({"tool_calls": [{"index": 0}]}, True),
    "refusal": ({"refusal": "no"}, True),
    "role": ({"role": "assistant"}, False),
    "empty content": ({"role": "assistant", "content": ""}, False),
    "nulls": ({"content": None, "tool_calls": None, "reasoning_content": None}, False),
    "no tool calls": ({"tool_calls": []}, False),
}


@pytest.mark.parametrize(("delta", "speaks"), SPEAKS.values(), ids=SPEAKS)
def test_commit_point(delta, speaks):
    """Nothing is sent before the first chunk that says something; then all of it is."""
    relay = relay_of()
    first = chunk({"role": "assistant", "content": ""})
    got = feed(relay, first, chunk(delta))
    assert got == ([frame(first), frame(chunk(delta))] if speaks else [])


FAILURES = {
    "full queue": (ERROR, 503, "full"),
    "bad request": ({"error": {"message": "no", "type": "BAD_REQUEST", "code": 400}}, 400, "no"),
    "server error": ({"error": {"message": "no", "code": 500}}, 502, "no"),
    "no code": ({"error": {"message": "no"}}, 502, "no"),
    "error text": ({"error": "broken"}, 502, "broken"),
    "abort": (chunk({}, "abort"), 502, "The engine aborted the generation."),
    "not JSON": (b"data: {oops\n\n", 502, "The engine sent an unreadable event."),
    "a list": (b"data: []\n\n", 502, "The engine sent an unreadable event."),
    "choices of a wrong type": ({"choices": 1}, 502, "The engine sent an unreadable event."),
    "not UTF-8": (
        b'data: {"choices":[{"text":"\xff"}]}\n\n',
        502,
        "The engine sent an unreadable event.",
    ),
    "end without a choice": (chat.DONE, 502, "The engine ended its stream without a choice."),
}


@pytest.mark.parametrize(("payload", "status", "message"), FAILURES.values(), ids=FAILURES)
def test_failure_before_the_commit_point(payload, status, message):
    """An error in the stream before anything was sent is raised, with the status it stands for."""
    with pytest.raises(EngineFailure) as caught:
        feed(relay_of(), payload)
    assert (caught.value.failure.status, caught.value.failure.message) == (status, message)


ENDINGS = {
    "finish and [DONE]": ([WORD, STOP, chat.DONE], 1, True),
    "finish, no [DONE]": ([WORD, STOP], 1, True),
    "[DONE], no finish": ([WORD, chat.DONE], 1, True),
    "neither": ([WORD], 1, False),
    "one finish of two": ([WORD, STOP], 2, False),
    "second choice without a finish": ([WORD, STOP, chunk({"content": "b"}, index=1)], 1, False),
    "both finishes": ([WORD, STOP, chunk({}, "length", index=1)], 2, True),
    "nothing at all": ([], 1, False),
}


@pytest.mark.parametrize(("payloads", "choices", "whole"), ENDINGS.values(), ids=ENDINGS)
def test_ending(payloads, choices, whole):
    """A stream ends well with a finish of every choice or with [DONE]; anything else is a cut."""
    relay = relay_of(choices=choices)
    frames = feed(relay, *payloads)
    if whole:
        frames += relay.finish()
        assert frames.count(chat.DONE) == 1
        assert frames[-1] == chat.DONE
    else:
        with pytest.raises(EngineFailure, match="cut off"):
            relay.finish()
        assert chat.DONE not in frames


def test_nothing_follows_the_end():
    """After [DONE], and after an error event, nothing more is sent."""
    relay = relay_of()
    feed(relay, WORD, STOP, chat.DONE)
    assert feed(relay, WORD, ERROR) == []
    failed = relay_of()
    feed(failed, WORD)
    (event,) = failed.fail(failure_of_kind(UPSTREAM_TIMEOUT, "too slow"))
    assert json.loads(event.removeprefix(b"data: ")) == {
        "error": {
            "message": "too slow",
            "type": "server_error",
            "param": None,
            "code": "upstream_timeout",
        }
    }
    assert feed(failed, WORD, chat.DONE) == []
    assert failed.finish() == []


@pytest.mark.parametrize("asked", [True, False])
def test_usage_chunk(asked):
    """The usage chunk is for the client that asked for it."""
    relay = relay_of(usage_chunk=asked)
    got = feed(relay, WORD, STOP, USAGE, chat.DONE)
    assert (frame(USAGE) in got) is asked
    assert got[-1] == chat.DONE


def test_model_name_is_the_clients():
    """With an alias, every chunk names what the client asked for; other bytes stay."""
    relay = relay_of(model="mine")
    raw = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"\\"model\\":1.0"}}]}\n\n'
    (got,) = feed(relay, raw)
    assert got == raw.replace(b'"m"', b'"mine"')


def test_reasoning_is_renamed_as_a_key_only():
    """`reasoning_content` becomes `reasoning` where it is a key, never inside a text."""
    relay = relay_of(rename_reasoning=True)
    raw = (
        b'data: {"choices":[{"index":0,"delta":{"reasoning_content" :'
        b'"\\"reasoning_content\\":"}}]}\n\n'
    )
    (got,) = feed(relay, raw)
    assert got == raw.replace(b'"reasoning_content" :', b'"reasoning" :')


def test_completion_chunks():
    """Completions are relayed by the same rules; their text is what they say."""
    relay = chat.ChatRelay(chat.Look(), request_id="r", dialect=Dialect.COMPLETIONS)
    silent = {"choices": [{"index": 0, "text": "", "finish_reason": None}]}
    word = {"choices": [{"index": 0, "text": "a", "finish_reason": None}]}
    assert feed(relay, silent) == []
    assert feed(relay, word) == [frame(silent), frame(word)]


REPLIES = {
    "html": (b"<html>", "The engine sent an unreadable reply."),
    "no choices": (b'{"id":"1"}', "The engine sent a reply without a choice."),
    "empty choices": (b'{"choices":[]}', "The engine sent a reply without a choice."),
    "abort": (b'{"choices":[{"finish_reason":"abort"}]}', "The engine aborted the generation."),
    "an error in a 200": (b'{"error":{"message":"broken"}}', "broken"),
}


@pytest.mark.parametrize(("raw", "message"), REPLIES.values(), ids=REPLIES)
def test_reply_that_is_none(raw, message):
    """A buffered reply that is unreadable, empty, aborted or an error is a failure, never a 200."""
    with pytest.raises(EngineFailure) as caught:
        chat.parse_reply(raw, chat.Look())
    assert (caught.value.failure.status, caught.value.failure.message) == (502, message)


def test_reply_keeps_its_bytes():
    """A buffered reply is the engine's bytes, but for the model's name."""
    raw = b'{"model":"m","choices":[{"finish_reason":"stop" , "x":1e2}]}'
    assert chat.parse_reply(raw, chat.Look()) == raw
    assert chat.parse_reply(raw, chat.Look(model="a")) == raw.replace(b'"m"', b'"a"')
