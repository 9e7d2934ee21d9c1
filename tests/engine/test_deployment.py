"""A deployment's own profile file, on the wire before SGLang itself."""

import pytest
from rig.raw import request

HELLO = [{"role": "user", "content": "Say hello."}]
ALIAS = "kimi-latest"


@pytest.fixture
def gateway(serve, engine):
    """A profile that extends Kimi's with everything that a deployment may add."""
    profile = f"""\
extends: moonshot-kimi
output:
  max_tokens: {{cap: 4096, on_exceed: clamp, default: 512}}
limits: {{max_body_bytes: 16 KiB}}
models: {{aliases: [{ALIAS}]}}
errors: {{bad_request_type: request_params_invalid}}
"""
    return serve(engine, profile=profile)


def ask(gateway, **fields):
    """A chat request; its reply."""
    body = {"model": gateway.model, "messages": HELLO, "stop": ["e", " "], **fields}
    return request(gateway, "/v1/chat/completions", body)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ({}, {"max_tokens": 512}),
        ({"max_tokens": 0}, {"max_tokens": 512}),
        ({"max_tokens": 4096}, {"max_tokens": 4096}),
        ({"max_tokens": 4097}, {"max_tokens": 4096}),
        ({"max_completion_tokens": 100_000}, {"max_completion_tokens": 4096}),
        ({"max_completion_tokens": 0, "max_tokens": 5000}, {"max_tokens": 4096}),
    ],
    ids=["none", "zero", "the-cap", "above-it", "under-its-other-name", "hidden-by-zero"],
)
def test_the_output_budget(gateway, asked, got, stream):
    """Without a budget the default is written in, above the cap it is lowered to it."""
    reply = ask(gateway, stream=stream, **asked)

    assert reply.status == 200
    [sent] = gateway.sent
    budgets = ("max_tokens", "max_completion_tokens")
    assert {name: sent[name] for name in budgets if sent.get(name)} == got


def test_the_contract_of_the_parent(gateway):
    """What the file does not say is the parent's."""
    assert ask(gateway).status == 200
    assert gateway.sent[0]["top_k"] == 1000
    assert ask(gateway, temperature=1.1).status == 400


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_an_alias(gateway, stream):
    """The engine is asked for its own model, and the client reads the name that it asked for."""
    reply = ask(gateway, model=ALIAS, stream=stream)

    assert gateway.sent[0]["model"] == gateway.model
    named = {data["model"] for _, data in reply.events[:-1]} if stream else {reply.json["model"]}
    assert named == {ALIAS}


def test_the_model_list(gateway):
    """The list has the served name and the alias; any other name is a 404 without the engine."""
    listed = request(gateway, "/v1/models").json
    assert {card["id"] for card in listed["data"]} == {gateway.model, ALIAS}
    assert request(gateway, f"/v1/models/{ALIAS}").json["id"] == ALIAS

    reply = ask(gateway, model="another")

    assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
    assert gateway.sent == []


def test_the_body_limit(gateway):
    """A larger body is a 413, and the engine sees nothing of it."""
    reply = ask(gateway, messages=[{"role": "user", "content": "x" * 17_000}])

    assert (reply.status, reply.json["error"]["code"]) == (413, "request_too_large")
    assert gateway.sent == []


def test_the_type_of_a_400(gateway, bodies):
    """Every 400 has the profile's type: the gateway's own, and the engine's in both its shapes."""
    bodies.refused = True

    own = ask(gateway, n=2)
    engines = ask(gateway, min_p="much")

    assert (own.status, own.json["error"]["type"]) == (400, "request_params_invalid")
    assert own.json["error"]["code"] == "sampling_contract_violation"
    assert (engines.status, engines.json["type"]) == (400, "request_params_invalid")
    assert engines.json["error"]["type"] == "request_params_invalid"
    assert engines.json["object"] == "error"
    assert len(gateway.sent) == 1


def test_other_types_stay(gateway):
    """Other statuses keep theirs."""
    assert ask(gateway, model="another").json["error"]["type"] == "invalid_request_error"
