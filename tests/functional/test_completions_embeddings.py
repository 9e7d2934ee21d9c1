"""Completions and embeddings: passed on as they come, both ways."""

import base64
import json
import struct

import pytest

STRICT = """
output: {max_tokens: {cap: 5, default: 2}}
limits: {max_images: 1}
errors: {bad_request_type: odd}
params: {stop: {default: "x"}}
"""
VECTOR = base64.b64encode(struct.pack("<3f", 0.1, 0.2, 0.3)).decode()
INPUTS = {
    "text": "hi",
    "list": ["hi", "there"],
    "tokens": [1, 2, 3],
    "lists of tokens": [[1, 2], [3]],
}
FORMATS = {
    "absent": {},
    "float": {"encoding_format": "float"},
    "base64": {"encoding_format": "base64"},
    "dimensions": {"dimensions": 3, "encoding_format": "base64"},
}


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("fields", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_embeddings_pass_as_they_are(request, say, engine, given, fields, engine_in):
    """The body byte for byte; the vectors, in whatever form, as the engine wrote them."""
    entry = {"object": "embedding", "index": 0, "embedding": VECTOR}
    answer = {"object": "list", "data": [entry], "model": "m", "usage": {"prompt_tokens": 1}}
    raw = json.dumps(answer, indent=1).encode()
    say.whole(raw)
    body = json.dumps({"model": "m", "input": given, **fields}, indent=1).encode()
    reply = request.getfixturevalue(engine_in)(STRICT).post(body, "/v1/embeddings")
    assert reply.status_code == 200
    assert engine.inference[-1].body == body
    assert reply.json == answer
    assert VECTOR in reply.text


def test_the_model_of_embeddings_is_the_one_that_was_asked_for(serve):
    """Engines name the path of their model there."""
    client = serve("models: {aliases: [other]}")
    assert client.on("embeddings", model="other").json["model"] == "other"
    assert client.on("embeddings").json["model"] == "m"


@pytest.mark.parametrize("given", ["", [], None], ids=repr)
def test_an_empty_input_is_the_engines_to_refuse(serve, engine, given):
    """It is passed on, and its refusal comes back, of its own type."""
    reply = serve(STRICT).on("embeddings", input=given)
    assert reply.status_code == 400
    assert reply.json["error"]["type"] != "odd"
    assert len(engine.inference) == 1


def test_embeddings_never_stream(serve, engine):
    """The field is passed on, and engines ignore it."""
    client = serve()
    reply = client.on("embeddings", stream=True)
    assert (reply.status_code, reply.json["object"]) == (200, "list")
    assert engine.inference[-1].json["stream"] is True


PROMPTS = {
    "text": ("hi", 1),
    "list": (["hi", "ho"], 2),
    "tokens": ([1, 2], 1),
    "several": ([[1], [2]], 2),
}
SETTINGS = {
    "n": {"n": 2},
    "falsy": {"logprobs": 0, "echo": False, "seed": 0, "best_of": 1},
    "stop": {"stop": "a"},
    "stops": {"stop": ["a", "b", "c", "d"]},
    "echo": {"echo": True, "suffix": "x"},
    "large budget": {"max_tokens": 9000},
}


@pytest.mark.parametrize(("prompt", "count"), PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("fields", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_completions_pass_as_they_are(request, wire, engine, prompt, count, fields, engine_in):
    """Byte for byte, falsy values too; budgets and rules of chat are not for them."""
    client = request.getfixturevalue(engine_in)(STRICT)
    for stream in (False, True):
        body = json.dumps({"model": "m", "prompt": prompt, "stream": stream, **fields}, indent=1)
        reply = client.post(body.encode(), "/v1/completions")
        assert reply.status_code == 200
        assert engine.inference[-1].body == body.encode()
        assert engine.inference[-1].path == "/v1/completions"
        choices = count * fields.get("n", 1)
        if stream:
            events = wire.events(reply)
            assert events[-1][1] == "[DONE]"
            indices = {choice["index"] for _, data in events[:-1] for choice in data["choices"]}
            assert indices == set(range(choices))
        else:
            assert len(reply.json["choices"]) == choices


def test_a_reply_of_completions_keeps_its_bytes(serve, say):
    """Log probabilities and whatever else an engine adds."""
    raw = b'{"id":"1", "choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"]},"x":1e2}]}'
    say.whole(raw)
    assert serve(STRICT).on("completions", logprobs=0).content == raw


BAD_TOKENS = {
    "negative": [1, -1],
    "in a list of lists": [[1], [-5]],
    "a text among them": [1, "-5"],
    "fraction below zero": [-0.5],
}


@pytest.mark.parametrize("tokens", BAD_TOKENS.values(), ids=BAD_TOKENS)
@pytest.mark.parametrize(("route", "field"), [("completions", "prompt"), ("embeddings", "input")])
def test_tokens_that_would_end_the_engine(serve, engine, tokens, route, field):
    """They never get there."""
    reply = serve().on(route, **{field: tokens})
    assert (reply.status_code, reply.json["error"]["param"]) == (400, field)
    assert engine.inference == []


def test_sampling_governs_completions_and_not_embeddings(serve, engine):
    """The fields that both dialects have."""
    client = serve("sampling: {params: {temperature: 1}}")
    assert client.on("completions", temperature=0.5).status_code == 400
    assert client.on("embeddings", temperature=0.5).status_code == 200
    assert client.sent("completions")["temperature"] == 1
    assert "temperature" not in client.sent("embeddings")
