"""What each SDK makes of each answer, whichever way it came.

An engine's answer is one row of `EXPECTED`; by the client's dialect it says what the SDK's
object holds. It is the same whether the answer was streamed or not, and whether the engine was
spoken to in Chat or in Messages, except where `DIFFERS` says what the engine itself does.
"""

import pytest
from recorded import ANSWERS

ROUTES = ("chat", "messages")


def completion(content, finish, usage, *, reasoning=None, calls=()):
    """A chat completion."""
    prompt, cached, said = usage
    return {
        "content": content,
        "reasoning": reasoning,
        "calls": list(calls),
        "finish": finish,
        "usage": {"prompt": prompt, "cached": cached, "completion": said, "total": prompt + said},
    }


def response(output, usage, *, reasoning_tokens=0, reason=None):
    """A Response; the last item of one that was cut is incomplete as well."""
    given, cached, said = usage
    status = "completed" if reason is None else "incomplete"
    states = ["completed"] * (len(output) - 1) + [status]
    return {
        "output": [(item[0], state, *item[1:]) for item, state in zip(output, states, strict=True)],
        "status": status,
        "reason": reason,
        "usage": {
            "input": given,
            "cached": cached,
            "output": said,
            "reasoning": reasoning_tokens,
            "total": given + said,
        },
    }


def message(content, stop, usage):
    """A Messages reply; what the cache held is no part of its input."""
    given, cached, said = usage
    stop = stop if isinstance(stop, tuple) else (stop, None)
    return {
        "content": content,
        "stop": stop,
        "usage": {"input": given - cached, "cached": cached, "output": said},
    }


def call(number, city):
    """A call of the answer: id, name, arguments."""
    return (f"call_{number:024}", "get_weather", {"city": city})


PARIS, OSLO, LIMA, ROME = call(1, "Paris"), call(2, "Oslo"), call(3, "Lima"), call(1, "Rome")
TIME = (f"call_{1:024}", "get_time", {})
CUT = (f"call_{1:024}", "get_weather", "")


def calls_of(kind, *calls):
    """The calls as items or blocks."""
    return [(kind, *one) for one in calls]


HELLO = "Hello, friend. ☀️"
THOUGHT, BLUE = "\nLet me look.\n", "\n\nIt is blue."

EXPECTED = {
    "text": {
        "chat": completion(HELLO, "stop", (43, 0, 19)),
        "responses": response([("message", HELLO)], (43, 0, 19)),
        "messages": message([("text", HELLO)], "end_turn", (43, 0, 19)),
    },
    "reasoning": {
        "chat": completion(BLUE, "stop", (49, 0, 20), reasoning=THOUGHT),
        "responses": response(
            [("reasoning", THOUGHT), ("message", BLUE)], (49, 0, 20), reasoning_tokens=10
        ),
        "messages": message([("thinking", THOUGHT), ("text", BLUE)], "end_turn", (49, 0, 20)),
    },
    "one_call": {
        "chat": completion("", "tool_calls", (225, 0, 41), calls=[PARIS]),
        "responses": response(calls_of("function_call", PARIS), (225, 0, 41)),
        "messages": message(calls_of("tool_use", PARIS), "tool_use", (225, 0, 41)),
    },
    "three_calls": {
        "chat": completion("", "tool_calls", (277, 0, 117), calls=[PARIS, OSLO, LIMA]),
        "responses": response(calls_of("function_call", PARIS, OSLO, LIMA), (277, 0, 117)),
        "messages": message(calls_of("tool_use", PARIS, OSLO, LIMA), "tool_use", (277, 0, 117)),
    },
    "text_and_calls": {
        "chat": completion("I will look.", "tool_calls", (263, 0, 84), calls=[PARIS, OSLO]),
        "responses": response(
            [("message", "I will look."), *calls_of("function_call", PARIS, OSLO)], (263, 0, 84)
        ),
        "messages": message(
            [("text", "I will look."), *calls_of("tool_use", PARIS, OSLO)],
            "tool_use",
            (263, 0, 84),
        ),
    },
    "everything": {
        "chat": completion(
            "I look.", "tool_calls", (249, 0, 54), reasoning="\nA city.\n", calls=[ROME]
        ),
        "responses": response(
            [
                ("reasoning", "\nA city.\n"),
                ("message", "I look."),
                *calls_of("function_call", ROME),
            ],
            (249, 0, 54),
            reasoning_tokens=9,
        ),
        "messages": message(
            [("thinking", "\nA city.\n"), ("text", "I look."), *calls_of("tool_use", ROME)],
            "tool_use",
            (249, 0, 54),
        ),
    },
    "bare_call": {
        "chat": completion("", "tool_calls", (165, 0, 27), calls=[TIME]),
        "responses": response(calls_of("function_call", TIME), (165, 0, 27)),
        "messages": message(calls_of("tool_use", TIME), "tool_use", (165, 0, 27)),
    },
    "json_schema": {
        "chat": completion('{"ok": true}', "stop", (35, 0, 10)),
        "responses": response([("message", '{"ok": true}')], (35, 0, 10)),
        "messages": message([("text", '{"ok": true}')], "end_turn", (35, 0, 10)),
    },
    "stop_sequence": {
        "chat": completion("one two", "stop", (36, 0, 7)),
        "responses": response([("message", "one two")], (36, 0, 7)),
        "messages": message([("text", "one two")], ("stop_sequence", "|"), (36, 0, 7)),
    },
    "length": {
        "chat": completion("one t", "length", (44, 0, 4)),
        "responses": response([("message", "one t")], (44, 0, 4), reason="max_output_tokens"),
        "messages": message([("text", "one t")], "max_tokens", (44, 0, 4)),
    },
    "length_in_reasoning": {
        "chat": completion("", "length", (53, 0, 6), reasoning="\none two"),
        "responses": response(
            [("reasoning", "\none two")],
            (53, 0, 6),
            reasoning_tokens=6,
            reason="max_output_tokens",
        ),
        "messages": message([("thinking", "\none two")], "max_tokens", (53, 0, 6)),
    },
    "length_in_call": {
        "chat": completion("Ok.", "length", (235, 0, 22)),
        "responses": response([("message", "Ok.")], (235, 0, 22), reason="max_output_tokens"),
        "messages": message([("text", "Ok.")], "max_tokens", (235, 0, 22)),
    },
    "refusal": {
        "chat": completion(HELLO, "content_filter", (43, 0, 19)),
        "responses": response([("message", HELLO)], (43, 0, 19), reason="content_filter"),
        "messages": message([("text", HELLO)], "refusal", (43, 0, 19)),
    },
    "cached": {
        "chat": completion("Once more.", "stop", (31, 30, 9)),
        "responses": response([("message", "Once more.")], (31, 30, 9)),
        "messages": message([("text", "Once more.")], "end_turn", (31, 30, 9)),
    },
    "empty": {
        "chat": completion("", "stop", (30, 0, 1)),
        "responses": response([("message", "")], (30, 0, 1)),
        "messages": message([("text", "")], "end_turn", (30, 0, 1)),
    },
}

DIFFERS = [
    # Beside tools, the engine trims the text of a whole answer and not that of a stream.
    ("everything", "chat", ROUTES, [True], {"content": "\n\nI look."}),
    (
        "everything",
        "responses",
        ROUTES,
        [True],
        {
            "output": [
                ("reasoning", "completed", "\nA city.\n"),
                ("message", "completed", "\n\nI look."),
                ("function_call", "completed", *ROME),
            ]
        },
    ),
    (
        "everything",
        "messages",
        ROUTES,
        [True],
        {
            "content": [
                ("thinking", "\nA city.\n"),
                ("text", "\n\nI look."),
                ("tool_use", *ROME),
            ]
        },
    ),
    # It writes line breaks around calls into a stream alone. In a dialect of their own they pass.
    ("three_calls", "chat", ROUTES, [True], {"content": "\n"}),
    (
        "three_calls",
        "messages",
        ["messages"],
        [True],
        {"content": [("text", "\n"), *calls_of("tool_use", PARIS, OSLO, LIMA)]},
    ),
    # It shows a call that the budget cut off in a stream alone.
    ("length_in_call", "chat", ROUTES, [True], {"calls": [CUT]}),
    (
        "length_in_call",
        "responses",
        ROUTES,
        [True],
        {"output": [("message", "completed", "Ok."), ("function_call", "incomplete", *CUT)]},
    ),
    (
        "length_in_call",
        "messages",
        ROUTES,
        [True],
        {"content": [("text", "Ok."), ("tool_use", *CUT[:2], {})]},
    ),
    # Its Messages route names no stop sequence, and counts no reasoning apart.
    ("stop_sequence", "messages", ["messages"], [False, True], {"stop": ("end_turn", None)}),
    *(
        (name, "responses", ["messages"], [False, True], {"usage": {"reasoning": 0}})
        for name in ("reasoning", "everything", "length_in_reasoning")
    ),
    # There, a stream of nothing has no block, and counts no input.
    ("empty", "messages", ["messages"], [True], {"content": [], "usage": {"input": 0}}),
    ("empty", "responses", ["messages"], [True], {"usage": {"input": 0, "total": 1}}),
    ("empty", "chat", ["messages"], [True], {"usage": {"prompt": 0, "total": 1}}),
]
"""By answer, dialect, engine's routes and ways (streamed or not): what is not as in the row."""


def expected(name, dialect, route, streamed):
    """What the SDK's object has to say."""
    value = EXPECTED[name][dialect] | {"model": f"over-{route}"}
    for what, whom, routes, ways, other in DIFFERS:
        if (what, whom) == (name, dialect) and route in routes and streamed in ways:
            usage = value["usage"] | other.get("usage", {})
            value = value | other | {"usage": usage}
    return value


def test_every_recorded_answer_is_a_row():
    """No answer of the engine goes unread."""
    assert EXPECTED.keys() == ANSWERS.keys()


@pytest.mark.parametrize("streamed", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
@pytest.mark.parametrize("name", EXPECTED)
def test_an_answer_reaches_the_client_whole(ask, say, name, dialect, route, streamed):
    """The SDK's object says what the engine said, under the name that the client used."""
    answer = ANSWERS[name]
    say((answer.streamed if streamed else answer.buffered)[route], streamed=streamed)
    fields = {"stop_sequences": ["|"]} if dialect == "messages" else {}
    got = ask(dialect, streamed=streamed, model=f"over-{route}", **fields)
    assert got == expected(name, dialect, route, streamed)
