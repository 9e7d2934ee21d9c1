"""Chat replies as Response objects."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai.types.responses import Response

from gateway.dialects.errors import EngineFailure
from gateway.dialects.responses import Converted, from_chat_reply, to_chat

CASES = sorted((Path(__file__).parents[2] / "cases" / "responses").glob("*.json"))
TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
    {"type": "custom", "name": "patch", "description": "d"},
    {
        "type": "namespace",
        "name": "crm",
        "description": "d",
        "tools": [{"type": "function", "name": "find"}, {"type": "custom", "name": "note"}],
    },
]
FORMAT = {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}}


def convert(**body: Any) -> Converted:
    """A request that has a model, an input and the tools above."""
    return to_chat({"model": "m", "input": "Hi", "tools": TOOLS, **body})


def call(name: str, arguments: Any = "{}", call_id: Any = "call_1") -> dict[str, Any]:
    """A tool call of the engine."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "index": 0, "type": "function", "function": function}


def reply_of(
    *, finish: Any = "stop", usage: Any = None, logprobs: Any = None, **message: Any
) -> dict[str, Any]:
    """An engine's reply."""
    message = {"role": "assistant", "content": None, "reasoning_content": None, **message}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}
    return {"id": "0f", "object": "chat.completion", "choices": [choice], "usage": usage}


def respond(reply: dict[str, Any], converted: Converted | None = None) -> dict[str, Any]:
    """The Response, which the official SDK's own model has to accept."""
    response = from_chat_reply(
        reply, converted or convert(), model="alias", response_id="resp_0f", created_at=7
    )
    Response.model_validate(response)
    return response


def test_a_reply_is_a_response() -> None:
    """Every key of the object, items in the order reasoning, message, calls."""
    reply = reply_of(
        reasoning_content="Hm\n",
        content="Hello",
        tool_calls=[call("f", '{"a":1}', "call_1"), call("crm__find", "{}", "call_2")],
        finish="tool_calls",
        usage={
            "prompt_tokens": 41,
            "completion_tokens": 9,
            "total_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 32},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    )
    converted = convert(
        tools=[TOOLS[0], TOOLS[2]], instructions="I", temperature=0.5, user="u", store=True
    )
    assert respond(reply, converted) == {
        "id": "resp_0f",
        "object": "response",
        "created_at": 7,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "alias",
        "output": [
            {
                "id": "rs_0f_0",
                "type": "reasoning",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm\n"}],
                "status": "completed",
            },
            {
                "id": "msg_0f_1",
                "type": "message",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
                ],
                "status": "completed",
            },
            {
                "id": "fc_0f_2",
                "type": "function_call",
                "arguments": '{"a":1}',
                "call_id": "call_1",
                "name": "f",
                "status": "completed",
            },
            {
                "id": "fc_0f_3",
                "type": "function_call",
                "arguments": "{}",
                "call_id": "call_2",
                "name": "find",
                "namespace": "crm",
                "status": "completed",
            },
        ],
        "usage": {
            "input_tokens": 41,
            "input_tokens_details": {"cached_tokens": 32, "cache_write_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 50,
        },
        "background": False,
        "instructions": "I",
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "prompt_cache_retention": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": None,
        "store": True,
        "temperature": 0.5,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [TOOLS[0], TOOLS[2]],
        "top_logprobs": None,
        "top_p": None,
        "truncation": "disabled",
        "user": "u",
    }


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_settings_are_repeated_as_they_were_sent(path: Path) -> None:
    """What the client set reads back as it was, hosted tools and all; the SDK takes the rest."""
    request = json.loads(path.read_text(encoding="utf-8"))["request"]
    response = respond(reply_of(content="x"), to_chat(request))
    echoed = response.keys() & request.keys() - {"model", "text", "reasoning"}
    unset = {key for key in echoed if request[key] is None}
    assert {key: response[key] for key in echoed - unset} == {
        key: request[key] for key in echoed - unset
    }
    for key in ("text", "reasoning"):
        sent = request.get(key, {})
        assert {**response[key], **{k: v for k, v in sent.items() if v}} == response[key]


@pytest.mark.parametrize(
    ("message", "output"),
    [
        ({"content": "x"}, [("message", "x")]),
        ({"content": ""}, [("message", "")]),
        ({}, [("message", "")]),
        ({"reasoning_content": "r"}, [("reasoning", "r")]),
        ({"reasoning": "r", "content": "x"}, [("reasoning", "r"), ("message", "x")]),
        ({"reasoning_content": "", "content": "\n\nx"}, [("message", "\n\nx")]),
        ({"content": "", "tool_calls": [call("f")]}, [("function_call", "{}")]),
        ({"content": "x", "tool_calls": []}, [("message", "x")]),
    ],
    ids=["text", "empty", "nothing", "reasoning", "renamed", "leading", "calls", "no-calls"],
)
def test_what_was_said_is_kept_and_nothing_is_made_up(message: Any, output: Any) -> None:
    """No empty items, but one empty message where the engine said nothing at all."""
    shown = [
        (item["type"], item["content"][0]["text"] if "content" in item else item["arguments"])
        for item in respond(reply_of(**message))["output"]
    ]
    assert shown == output


@pytest.mark.parametrize(
    ("arguments", "finish", "shown"),
    [
        ("", "tool_calls", "{}"),
        (" ", "tool_calls", "{}"),
        (None, "tool_calls", "{}"),
        ("{}", "tool_calls", "{}"),
        ("[1]", "tool_calls", "[1]"),
        ('{"a":', "stop", '{"a":'),
        ({"a": "京"}, "tool_calls", '{"a":"京"}'),
        ("", "length", ""),
        ('{"a":', "length", '{"a":'),
    ],
    ids=["empty", "blank", "null", "none", "list", "broken", "object", "cut-early", "cut"],
)
def test_arguments_are_the_models_text(arguments: Any, finish: str, shown: str) -> None:
    """A call without arguments has `{}`; one that was cut off before them has not."""
    reply = reply_of(tool_calls=[call("f", arguments)], finish=finish)
    assert respond(reply)["output"][0]["arguments"] == shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input":"*** Begin\\n\\u5317"}', "*** Begin\n北"),
        ('{"input": ""}', ""),
        ('{"input": {"a": 1}}', '{"a":1}'),
        ('{"other": 1}', '{"other": 1}'),
        ('{"input": "cut', '{"input": "cut'),
        ("plain", "plain"),
        ("", ""),
        ("[1]", "[1]"),
    ],
    ids=["wrapped", "empty-text", "object", "other", "cut", "plain", "empty", "list"],
)
def test_a_custom_tools_text_is_unwrapped(arguments: str, text: str) -> None:
    """The text out of its one property, or whatever the model wrote in its place."""
    reply = reply_of(tool_calls=[call("crm__note", arguments)], finish="tool_calls")
    assert respond(reply)["output"] == [
        {
            "id": "ctc_0f_0",
            "type": "custom_tool_call",
            "input": text,
            "call_id": "call_1",
            "name": "note",
            "namespace": "crm",
            "status": "completed",
        }
    ]


@pytest.mark.parametrize(
    ("ids", "call_ids"),
    [
        (["a", "b"], ["a", "b"]),
        ([None, ""], ["call_0f_0", "call_0f_1"]),
        (["a", "a"], ["a", "call_0f_1"]),
        (["functions.f:0", "functions.f:1"], ["functions.f:0", "functions.f:1"]),
    ],
    ids=["kept", "missing", "twice", "foreign"],
)
def test_each_call_has_an_id_of_its_own(ids: list[Any], call_ids: list[str]) -> None:
    """An output could not be told to which of two calls it belongs."""
    reply = reply_of(tool_calls=[call("f", "{}", each) for each in ids])
    assert [item["call_id"] for item in respond(reply)["output"]] == call_ids


@pytest.mark.parametrize(
    ("finish", "status", "reason", "statuses"),
    [
        ("stop", "completed", None, ["completed", "completed"]),
        ("tool_calls", "completed", None, ["completed", "completed"]),
        (None, "completed", None, ["completed", "completed"]),
        ("length", "incomplete", "max_output_tokens", ["completed", "incomplete"]),
        ("content_filter", "incomplete", "content_filter", ["completed", "incomplete"]),
    ],
    ids=["stop", "tool_calls", "null", "length", "content_filter"],
)
def test_the_status_says_how_the_answer_ended(
    finish: Any, status: str, reason: Any, statuses: list[str]
) -> None:
    """A cut answer is incomplete, and so is its last item."""
    response = respond(reply_of(content="x", tool_calls=[call("f")], finish=finish))
    assert response["status"] == status
    assert response["incomplete_details"] == ({"reason": reason} if reason else None)
    assert [item["status"] for item in response["output"]] == statuses


@pytest.mark.parametrize(
    ("usage", "numbers"),
    [
        (None, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 0, 4, 0, 7)),
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "total_tokens": 7,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
                "reasoning_tokens": 2,
            },
            (3, 0, 4, 2, 7),
        ),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": None}},
            (5, 0, 0, 0, 5),
        ),
    ],
    ids=["none", "no-total", "reasoning-beside", "nulls"],
)
def test_the_usage_is_whole(usage: Any, numbers: tuple[int, ...]) -> None:
    """Both detail objects are there, and what the engine left out is 0."""
    shown = respond(reply_of(content="x", usage=usage))["usage"]
    assert numbers == (
        shown["input_tokens"],
        shown["input_tokens_details"]["cached_tokens"],
        shown["output_tokens"],
        shown["output_tokens_details"]["reasoning_tokens"],
        shown["total_tokens"],
    )


def test_log_probabilities_come_back_on_the_text() -> None:
    """Where the engine gives no bytes of a token, they are the token's."""
    top = {"token": "é", "logprob": -0.1, "bytes": None}
    logprobs = {"content": [{"token": "é", "logprob": -0.1, "bytes": None, "top_logprobs": [top]}]}
    (item,) = respond(reply_of(content="é", logprobs=logprobs))["output"]
    shown = {"token": "é", "bytes": [195, 169], "logprob": -0.1}
    assert item["content"][0]["logprobs"] == [{**shown, "top_logprobs": [shown]}]


def test_the_call_of_the_format_tool_is_the_answers_text() -> None:
    """The client asked for JSON, not for a tool that it never heard of."""
    converted = convert(text=FORMAT)
    assert converted.format_tool is not None
    calls = [call("f", "{}", "a"), call(converted.format_tool, '{"city":"Oslo"}', "b")]
    output = respond(reply_of(tool_calls=calls, finish="tool_calls"), converted)["output"]
    assert [item["type"] for item in output] == ["function_call", "message"]
    assert output[1]["content"][0]["text"] == '{"city":"Oslo"}'


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({}, "upstream_protocol_error"),
        ({"choices": []}, "upstream_protocol_error"),
        ({"choices": [None]}, "upstream_protocol_error"),
        ({"choices": [{"message": None}]}, "upstream_protocol_error"),
        (reply_of(content=["x"]), "upstream_protocol_error"),
        (reply_of(tool_calls="x"), "upstream_protocol_error"),
        (reply_of(content="x", finish=3), "upstream_protocol_error"),
        (reply_of(content="x", logprobs={"content": [1]}), "upstream_protocol_error"),
        (reply_of(content="x", finish="abort"), "upstream_aborted"),
        ({"error": {"message": "full", "code": 503}}, "overloaded"),
    ],
    ids=[
        "empty",
        "no-choice",
        "null-choice",
        "no-message",
        "content",
        "calls",
        "finish",
        "logprobs",
        "abort",
        "error",
    ],
)
def test_no_answer_is_a_failure_of_the_engine(reply: Any, code: str) -> None:
    """Half an answer is never passed off as one."""
    with pytest.raises(EngineFailure) as caught:
        respond(reply)
    assert caught.value.failure.code == code
    assert caught.value.failure.status in {502, 503}
