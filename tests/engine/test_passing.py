"""What clients send reaches SGLang, except what it would fall over."""

import pytest
from rig.asking import DIALECTS, user
from rig.raw import request
from rig.scripts import script

HELLO = [user("Say hello.")]
CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}

NULLS = (
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
)
"""Every field that OpenAI's SDK sends as null where it is given None."""

COMPLETION_NULLS = (
    "best_of",
    "echo",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_tokens",
    "n",
    "presence_penalty",
    "seed",
    "stop",
    "stream",
    "suffix",
    "temperature",
    "top_p",
    "user",
)


@pytest.mark.parametrize("name", NULLS)
def test_a_null_in_a_chat_request(serve, engine, bodies, name):
    """A null is as good as a field that was left out, though SGLang refuses many."""
    bodies.extra = {name}
    gateway = serve(engine)

    reply = request(gateway, "/v1/chat/completions", {"model": gateway.model, **CHAT, name: None})

    assert reply.status == 200, reply.body


@pytest.mark.parametrize("name", COMPLETION_NULLS)
def test_a_null_in_a_completion_request(serve, engine, bodies, name):
    """The same on the completions route, where SGLang refuses even more."""
    bodies.extra = {name}
    gateway = serve(engine)
    body = {"model": gateway.model, "prompt": "Hello", "max_tokens": 4, name: None}

    reply = request(gateway, "/v1/completions", body)

    assert reply.status == 200, reply.body


def test_nulls_on_the_embeddings_route(serve, embedder, bodies):
    """And on the embeddings route."""
    bodies.extra = {"user"}
    gateway = serve(embedder)
    nulls = dict.fromkeys(["encoding_format", "dimensions", "user"])

    reply = request(gateway, "/v1/embeddings", {"model": gateway.model, "input": "hi", **nulls})

    assert reply.status == 200, reply.body


PASSED = {
    "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": False}},
    "separate_reasoning": {"separate_reasoning": False},
    "regex": {"regex": "[0-9]{4}"},
}


@pytest.mark.parametrize("extra", PASSED.values(), ids=PASSED)
def test_what_only_sglang_knows(serve, engine, dialect, stream, extra):
    """Fields that no vendor has reach SGLang's chat route from every dialect."""
    gateway = serve(engine)
    body = {"model": gateway.model, "stream": stream, **dialect.body(HELLO, budget=16), **extra}

    reply = request(gateway, dialect.path, body)

    assert reply.status == 200, reply.body
    [sent] = gateway.sent
    assert {name: sent[name] for name in extra} == extra


def test_a_regex_is_obeyed(serve, engine, dialect, stream):
    """What was asked for in SGLang's own words is what is answered."""
    gateway = serve(engine)
    wanted = {
        "extra_body": {"regex": "[0-9]{4}", "chat_template_kwargs": {"enable_thinking": False}}
    }

    answer = dialect.ask(gateway, HELLO, stream=stream, budget=16, **wanted)

    assert answer.text.isdigit()
    assert len(answer.text) == 4


def test_reasoning_that_is_left_in_the_text(serve, twin, stream):
    """`separate_reasoning: false` leaves the thinking in the text, and the client gets it so."""
    gateway = serve(twin)
    prompt = script(think="Hm.", say="Yes.")

    answer = DIALECTS["chat"].ask(
        gateway, [user(prompt)], stream=stream, extra_body={"separate_reasoning": False}
    )

    assert answer.thinking == ""
    assert answer.text == "<think>\nHm.\n</think>\n\nYes."


def test_what_nobody_knows(serve, engine, bodies):
    """A field that SGLang does not declare is passed on all the same; it may learn it one day."""
    bodies.extra = {"x_new", "messages.x_mark"}
    gateway = serve(engine)
    messages = [{"role": "user", "content": "Hello.", "x_mark": 1}]
    body = {"model": gateway.model, **CHAT, "messages": messages, "x_new": {"a": [1.0, 1e2]}}

    assert request(gateway, "/v1/chat/completions", body).status == 200

    [sent] = gateway.sent
    assert (sent["x_new"], sent["messages"]) == (body["x_new"], messages)
