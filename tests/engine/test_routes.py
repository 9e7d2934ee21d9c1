"""Every client dialect through its official SDK, before SGLang itself and before its twin."""

import json

from rig.asking import CALLS, LENGTH, STOP, Tool, result, said, user
from rig.scripts import script

WEATHER = Tool(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Berlin"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SCHEMA = {
    "type": "object",
    "properties": {"sunny": {"type": "boolean"}, "days": {"type": "integer", "enum": [1, 2, 3]}},
    "required": ["sunny", "days"],
    "additionalProperties": False,
}


def test_a_text(serve, engine, speaks, dialect, stream):
    """A plain question gets an answer cut at its budget, with usage and the model's name."""
    gateway = serve(engine, speaks=speaks)

    answer = dialect.ask(gateway, [user("Say something.")], stream=stream, budget=12)

    assert answer.finish in {LENGTH, STOP}
    assert answer.text or answer.thinking
    assert 0 < answer.completion_tokens <= 12
    assert answer.prompt_tokens > 0
    assert answer.model == gateway.model


def test_a_forced_call(serve, engine, speaks, dialect, stream):
    """A tool that must be called is called, with arguments that its schema allows."""
    gateway = serve(engine, speaks=speaks)

    answer = dialect.ask(
        gateway,
        [user("What is the weather?")],
        stream=stream,
        budget=200,
        tools=[WEATHER],
        choice="get_weather",
        one_call=True,
        **dialect.unthinking(),
    )

    assert {call.name for call in answer.calls} == {"get_weather"}
    assert answer.calls[0].values["city"] in {"Paris", "Berlin"}


def test_a_schema(serve, engine, speaks, dialect, stream):
    """An answer that is bound to a schema is JSON of that schema."""
    gateway = serve(engine, speaks=speaks)

    answer = dialect.ask(
        gateway,
        [user("How long does the sun shine?")],
        stream=stream,
        budget=400,
        schema=SCHEMA,
        **dialect.unthinking(),
    )

    assert json.loads(answer.text).keys() == {"sunny", "days"}


def test_a_tool_loop(serve, twin, speaks, dialect, stream):
    """Call, result, answer: the engine is shown the call and its result, in this order."""
    gateway = serve(twin, speaks=speaks)
    asked = user(script(calls=[["get_weather", {"city": "Paris"}]]))
    options = {"stream": stream, "budget": 400, "tools": [WEATHER], "system": "Be brief."}
    first = dialect.ask(gateway, [asked], **options)
    assert (first.finish, first.text.strip()) == (CALLS, "")
    [call] = first.calls
    assert (call.name, call.values) == ("get_weather", {"city": "Paris"})

    answer = dialect.ask(
        gateway,
        [asked, said(first), result(call, script("17 degrees", say="It is 17."))],
        **options,
    )

    assert (answer.text, answer.finish, answer.calls) == ("It is 17.", STOP, ())
    assert answer.prompt_tokens > first.prompt_tokens
