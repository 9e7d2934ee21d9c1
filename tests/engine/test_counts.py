"""What a count says is what the request is billed."""

import pytest
from rig.asking import DIALECTS, Answer, Call, Tool, result, said, user

ADD = Tool(
    "add",
    "Adds two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
BARE = Tool("noop", "", {"type": "object", "properties": {}})
CALL = Call("call_1", "add", '{"a": 1, "b": 2}')
CALLED = Answer("Let me see.", "", (CALL,), "calls", 0, 0, "", None)

REQUESTS = {
    "a-question": ([user("What is two plus two?")], {}),
    "system": ([user("Hi.")], {"system": "You answer in one word."}),
    "tools": ([user("Hi.")], {"tools": [ADD, BARE]}),
    "a-forced-tool": ([user("Hi.")], {"tools": [ADD], "choice": "add"}),
    "a-conversation": (
        [user("Add 1 and 2."), said(CALLED), result(CALL, "3"), user("Sure?")],
        {"tools": [ADD], "system": "Be brief."},
    ),
    "a-schema": (
        [user("Hi.")],
        {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    ),
    "beyond-ascii": ([user("Grüße, 世界 🙂\n\n\ttab")], {"system": "  spaces  "}),
}
THINKING = {
    "messages": [
        {},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"output_config": {"effort": "low"}},
        {"system": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
    ],
    "responses": [{}, {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "none"}}],
}


def counted(gateway, name, turns, options):
    """The count of a request, through the SDK."""
    body = {"model": gateway.model, **DIALECTS[name].body(turns, **options)}
    if name == "messages":
        del body["max_tokens"]
        return gateway.anthropic.messages.count_tokens(**body).input_tokens
    for own in ("max_output_tokens", "store"):
        del body[own]
    return gateway.openai.responses.input_tokens.count(**body).input_tokens


@pytest.mark.parametrize("name", ["messages", "responses"])
@pytest.mark.parametrize(("turns", "options"), REQUESTS.values(), ids=REQUESTS)
def test_a_count_is_what_is_billed(serve, engine, speaks, name, turns, options):
    """The count of a request equals the input tokens in the usage of the same request."""
    gateway = serve(engine, speaks=speaks)

    count = counted(gateway, name, turns, options)

    assert count == DIALECTS[name].ask(gateway, turns, budget=4, **options).prompt_tokens


@pytest.mark.parametrize(
    ("name", "extra"), [(name, extra) for name, extras in THINKING.items() for extra in extras]
)
def test_a_count_with_thinking(serve, engine, speaks, name, extra):
    """How much is to be thought changes the prompt, and the count with it."""
    gateway = serve(engine, speaks=speaks)
    turns = [user("What is two plus two?")]

    count = counted(gateway, name, turns, extra)

    assert count == DIALECTS[name].ask(gateway, turns, budget=4, **extra).prompt_tokens
