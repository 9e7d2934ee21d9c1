"""Completions, embeddings and the model list, which are passed on rather than converted."""

import base64
import struct

import openai
import pytest
from rig.raw import request


def test_a_completion(serve, engine, stream):
    """A prompt is continued, with usage and the name that was asked for."""
    gateway = serve(engine)
    create = gateway.openai.completions.create
    asked = {"model": gateway.model, "prompt": "one two", "max_tokens": 6}

    if not stream:
        answer = create(**asked)
        assert (answer.usage.completion_tokens, answer.model) == (6, gateway.model)
        assert answer.choices[0].finish_reason == "length"
        return
    chunks = list(create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens == 6
    assert {chunk.model for chunk in chunks} == {gateway.model}
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert reasons[-1] == "length"


def test_several_prompts(serve, engine, stream):
    """Several prompts with several answers each come back in order, each with its end."""
    gateway = serve(engine)
    asked = {"model": gateway.model, "prompt": ["one", "two"], "n": 2, "max_tokens": 3}

    answer = gateway.openai.completions.create(**asked, stream=stream)

    if stream:
        ends = [one.index for chunk in answer for one in chunk.choices if one.finish_reason]
    else:
        ends = [choice.index for choice in answer.choices]
    assert sorted(ends) == [0, 1, 2, 3]


def test_a_completion_of_token_ids(serve, engine):
    """Ids are passed on; one below zero, over which the engine would die, is a 400."""
    gateway = serve(engine)
    asked = {"model": gateway.model, "max_tokens": 2}
    gateway.openai.completions.create(**asked, prompt=[5, 6, 7])
    assert gateway.sent[-1]["prompt"] == [5, 6, 7]

    with pytest.raises(openai.BadRequestError):
        gateway.openai.completions.create(**asked, prompt=[5, -6])

    assert len(gateway.sent) == 1


def test_the_contract_on_completions(serve, engine):
    """The sampling fields are governed on this route as well."""
    gateway = serve(engine, "--api-profile", "moonshot-kimi")
    asked = {"model": gateway.model, "prompt": "one", "max_tokens": 2}

    gateway.openai.completions.create(**asked)
    with pytest.raises(openai.BadRequestError):
        gateway.openai.completions.create(**asked, temperature=1.5)

    [sent] = gateway.sent
    assert (sent["top_p"], sent["top_k"], sent["n"]) == (0.95, 1000, 1)


@pytest.mark.parametrize(
    ("given", "count"),
    [("hello", 1), (["hello", "there"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2)],
    ids=["text", "texts", "ids", "lists-of-ids"],
)
def test_embeddings(serve, embedder, given, count):
    """Every kind of input is embedded, and the reply names the model that was asked for."""
    gateway = serve(embedder)

    answer = gateway.openai.embeddings.create(
        model=gateway.model, input=given, encoding_format="float"
    )

    assert answer.model == gateway.model
    assert [one.index for one in answer.data] == list(range(count))
    assert {len(one.embedding) for one in answer.data} == {64}


def test_embeddings_in_base64(serve, embedder):
    """Both encodings give the same numbers; the SDK asks for base64 of its own accord."""
    gateway = serve(embedder)
    body = {"model": gateway.model, "input": "hello"}

    plain = request(gateway, "/v1/embeddings", {**body, "encoding_format": "float"}).json
    packed = request(gateway, "/v1/embeddings", {**body, "encoding_format": "base64"}).json

    numbers = struct.unpack("<64f", base64.b64decode(packed["data"][0]["embedding"]))
    assert list(numbers) == pytest.approx(plain["data"][0]["embedding"], rel=1e-6)
    assert packed["model"] == gateway.model


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": ""}, "mpty"),
        ({"input": []}, "mpty"),
        ({"input": "hi", "encoding_format": "binary"}, "encoding_format"),
        ({"input": "hi", "dimensions": 8}, "dimensions"),
        ({"input": [1, -2]}, "-2"),
    ],
)
def test_embeddings_that_are_refused(serve, embedder, bodies, fields, message):
    """What the engine or the gateway does not embed is a 400 that says why."""
    bodies.refused = True
    gateway = serve(embedder)

    reply = request(gateway, "/v1/embeddings", {"model": gateway.model, **fields})

    assert reply.status == 400, reply.body
    assert message in reply.json["error"]["message"]


def test_embeddings_of_an_engine_that_generates(serve, engine):
    """The engine's refusal is passed on."""
    gateway = serve(engine)
    with pytest.raises(openai.BadRequestError, match="embedding"):
        gateway.openai.embeddings.create(model=gateway.model, input="hi")


def test_the_model_list(serve, engine):
    """Both SDKs read the list, and a model's card."""
    gateway = serve(engine)

    assert [card.id for card in gateway.openai.models.list()] == [gateway.model]
    assert [card.id for card in gateway.anthropic.models.list()] == [gateway.model]
    assert gateway.openai.models.retrieve(gateway.model).id == gateway.model
    assert gateway.anthropic.models.retrieve(gateway.model).type == "model"
    with pytest.raises(openai.NotFoundError):
        gateway.openai.models.retrieve("another")


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info", "/generate", "/flush_cache"])
def test_what_is_the_engines_alone(serve, engine, path):
    """The engine's own routes, one of which shows its key, are not there."""
    gateway = serve(engine)

    assert request(gateway, path).status == 404
    assert request(gateway, path, {}).status == 404
    assert gateway.sent == []
