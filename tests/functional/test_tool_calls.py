"""Tool calls in streams, as engines really write them, for each dialect of clients."""

import json

import pytest

FUNCTIONS = ("f", "g")
TOOLS = {
    "chat": [{"type": "function", "function": {"name": name}} for name in FUNCTIONS],
    "messages": [{"name": name, "input_schema": {"type": "object"}} for name in FUNCTIONS],
    "responses": [{"type": "function", "name": name} for name in FUNCTIONS],
}


def piece(index=None, call_id=None, name=None, arguments=None):
    """A piece of a call, with the keys that are given only."""
    function = {"name": name, "arguments": arguments}
    values = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in values.items() if value is not None}


A, B = '{"a":1}', '{"b":[2]}'
STREAMS = {
    "one after the other": [
        piece(0, "t1", "f", ""),
        piece(0, None, None, A[:3]),
        piece(0, None, None, A[3:]),
        piece(1, "t2", "g", ""),
        piece(1, None, None, B),
    ],
    "interleaved": [
        piece(0, "t1", "f", ""),
        piece(1, "t2", "g", ""),
        piece(0, None, None, A[:3]),
        piece(1, None, None, B[:4]),
        piece(0, None, None, A[3:]),
        piece(1, None, None, B[4:]),
    ],
    "whole calls": [piece(0, "t1", "f", A), piece(1, "t2", "g", B)],
    "id and name in every piece": [
        piece(0, "t1", "f", A[:3]),
        piece(0, "t1", "f", A[3:]),
        piece(1, "t2", "g", B[:4]),
        piece(1, "t2", "g", B[4:]),
    ],
    "index 0 for all": [piece(0, "t1", "f", A), piece(0, "t2", "g", B)],
    "empty ids and names after the first": [
        piece(0, "t1", "f", ""),
        piece(0, "", "", A),
        piece(1, "t2", "g", ""),
        piece(1, "", "", B),
    ],
    "no index": [piece(None, "t1", "f", A), piece(None, "t2", "g", B)],
}


def read_messages(events):
    """The calls of a Messages stream."""
    calls = {}
    for name, data in events:
        if name == "content_block_start" and data["content_block"]["type"] == "tool_use":
            block = data["content_block"]
            calls[data["index"]] = [block["id"], block["name"], ""]
        elif name == "content_block_delta" and data["delta"]["type"] == "input_json_delta":
            calls[data["index"]][2] += data["delta"]["partial_json"]
    return [tuple(call) for call in calls.values()]


def read_responses(events):
    """The calls of a Responses stream, which must be the same in its events and at its end."""
    final = events[-1][1]["response"]["output"]
    done = [data["item"] for name, data in events if name == "response.output_item.done"]
    assert done == final
    said = {}
    for name, data in events:
        if name == "response.function_call_arguments.delta":
            said[data["item_id"]] = said.get(data["item_id"], "") + data["delta"]
    calls = [item for item in final if item["type"] == "function_call"]
    assert [said[item["id"]] for item in calls] == [item["arguments"] for item in calls]
    return [(item["call_id"], item["name"], item["arguments"]) for item in calls]


READERS = {"messages": read_messages, "responses": read_responses}


@pytest.mark.parametrize(("route", "read"), READERS.items())
@pytest.mark.parametrize("pieces", STREAMS.values(), ids=STREAMS)
def test_calls_are_kept_apart(serve, say, wire, route, read, pieces):
    """However an engine writes them, each call has its own id, name and whole arguments."""
    chunks = [wire.chunk({"tool_calls": [one]}) for one in pieces]
    say.stream(*chunks, wire.finish("tool_calls"))
    events = wire.events(serve().on(route, stream=True, tools=TOOLS[route]))
    assert read(events) == [("t1", "f", A), ("t2", "g", B)]


@pytest.mark.parametrize("pieces", STREAMS.values(), ids=STREAMS)
def test_a_chat_client_gets_them_as_they_are(serve, say, wire, pieces):
    """Chat to Chat is relayed byte for byte."""
    chunks = [wire.chunk({"tool_calls": [one]}) for one in pieces]
    say.stream(*chunks, wire.finish("tool_calls"))
    events = wire.events(serve().chat(stream=True, tools=TOOLS["chat"]))
    assert [data for _, data in events[:-2]] == chunks


@pytest.mark.parametrize("route", ["chat", "responses"])
@pytest.mark.parametrize("closed", [True, False])
def test_calls_of_a_messages_engine(serve_messages, say, wire, route, closed):
    """Numbered 0, 1… by call whatever their block; one without arguments has an empty object."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    events = [{"type": "message_start", "message": {**start, "usage": usage}}]
    for index, (call_id, name, said) in enumerate([("t1", "f", A), ("t2", "g", "")], start=1):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": said}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if said:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        if closed:
            events.append({"type": "content_block_stop", "index": index})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    ]
    say.stream(*events, done=False)
    got = wire.events(serve_messages().on(route, stream=True, tools=TOOLS[route]))
    if route == "responses":
        assert read_responses(got) == [("t1", "f", A), ("t2", "g", "{}")]
        return
    calls = {}
    for _, data in got[:-1]:
        for one in data["choices"][0]["delta"].get("tool_calls", ()) if data["choices"] else ():
            call = calls.setdefault(one["index"], ["", "", ""])
            call[0] += one.get("id") or ""
            call[1] += one["function"].get("name") or ""
            call[2] += one["function"].get("arguments") or ""
    assert calls == {0: ["t1", "f", A], 1: ["t2", "g", "{}"]}
    assert [json.loads(call[2]) for call in calls.values()] == [{"a": 1}, {}]
