"""`check-request` says of every request what the running gateway does with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.routes import ROUTES
from gateway.service.inspect import REQUEST_ID, Inspector, Refused, Sent
from gateway.startup import load_launch

CASES = Path(__file__).parents[1] / "cases"

PROFILE = """
sampling:
  params: {temperature: {min: 0.1, max: 1}, top_p: 0.95, n: 1}
params:
  top_k: {type: int, min: 0, normalize: [[0, -1]]}
  seed: {default: 7}
  reasoning_effort: {values: [low, high]}
output: {max_tokens: {cap: 512, on_exceed: clamp, default: 64}}
limits: {max_images: 2, max_body_bytes: 256KiB}
models: {aliases: [second]}
errors: {bad_request_type: our_type}
protocols: {embeddings: false}
"""

FILES = {
    f"{folder}/{path.stem}": (route, json.dumps(json.loads(path.read_bytes())["request"]).encode())
    for folder, route in (("messages/requests", "messages"), ("responses", "responses"))
    for path in sorted((CASES / folder).glob("*.json"))
}

SMALL = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 64},
    "responses": {"input": "hi"},
    "completions": {"prompt": "hi"},
    "embeddings": {"input": "hi"},
    "count_tokens": {"messages": [{"role": "user", "content": "hi"}]},
    "input_tokens": {"input": "hi"},
}

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

FIELDS = {
    "nothing": {},
    "null": {"top_p": None, "n": None, "temperature": None, "seed": None},
    "equal": {"top_p": 0.950, "n": 1.0},
    "equal, as text": {"top_p": "0.95", "n": "1"},
    "different": {"top_p": 0.9},
    "several": {"top_p": 0.9, "temperature": 2, "top_k": -3},
    "normalised": {"top_k": 0},
    "no number": {"temperature": [1]},
    "a value of a list": {"reasoning_effort": "low"},
    "none of a list": {"reasoning_effort": "medium"},
    "a small budget": {"max_tokens": 3},
    "a large budget": {"max_tokens": 513},
    "no budget": {"max_tokens": 0},
    "a negative budget": {"max_tokens": -1},
    "two budgets": {"max_tokens": 9, "max_completion_tokens": 600},
    "another budget": {"max_output_tokens": 600},
    "a stream": {"stream": True},
    "what engines do not get": {"store": True, "user": "u" * 65, "service_tier": "auto"},
    "a hosted tool": {"tools": [{"type": "web_search"}], "tool_choice": "auto"},
    "an unknown tool": {"tools": [{"type": "telepathy"}]},
    "an alias": {"model": "second"},
    "a prefix": {"model": "sgl/m"},
    "another case": {"model": "SECOND"},
    "no model": {"model": None},
    "an unknown model": {"model": "third"},
    "unknown keys": {"x": {"y": [1.0, None]}},
    "pictures": {"messages": [{"role": "user", "content": [IMAGE] * 3}]},
    "kept state": {"previous_response_id": "resp_1"},
}

RAW = {
    "not JSON": b"{",
    "no object": b"[]",
    "a repeated key": b'{"top_p":0.1,"model":"m","top_p":0.95,"max_tokens":1,"input":"a",'
    b'"prompt":"a","messages":[{"role":"user","content":"a"}]}',
    "literals": b'{"model":"m", "temperature": 1.0e0,"max_tokens":1,"input":"\\u00e9","prompt":"a",'
    b'"messages":[{"role":"user","content":"\\u00e9"}],"seed":12345678901234567890}',
    "too large": b'{"model":"m"}' + b" " * 256 * 1024,
}

REQUESTS = {
    **FILES,
    **{
        f"{route}: {name}": (route, json.dumps({"model": "m", **small, **fields}).encode())
        for route, small in SMALL.items()
        for name, fields in FIELDS.items()
    },
    **{f"{route}: {name}": (route, raw) for route in SMALL for name, raw in RAW.items()},
}


@pytest.mark.parametrize("messages", [False, True], ids=["chat", "messages"])
@pytest.mark.parametrize("profile", ["", PROFILE], ids=["nothing", "rules"])
def test_the_verdict_is_the_gateways(serve, engine, tmp_path, profile, messages):
    """The same body for the engine, or the same reply for the client, header by header.

    Whatever the dialects of client and engine; an engine that refuses is no matter.
    """
    # Else an engine in Messages gets a part of its context, which only a running one tells.
    budget = {"anthropic_default_max_tokens": "77"}
    client = serve(profile, servers=[{"use_anthropic_endpoints": messages}], **budget)
    flags = {"model_id": "m", "worker_urls": engine.url, **budget}
    launch = load_launch({**flags, "api_profile_file": str(tmp_path / "profile.yaml")}, {})
    servers = (replace(launch.servers[0], use_anthropic_endpoints=messages),)
    inspector = Inspector(replace(launch, servers=servers))
    routes = {route.name: route for route in ROUTES}
    verdicts = set()
    for name, (route, raw) in REQUESTS.items():
        engine.requests.clear()
        reply = client.post(raw, routes[route].path, headers={"x-request-id": REQUEST_ID})
        found = inspector.inspect(routes[route], raw)
        verdicts.add(found.accepted)
        if engine.inference:
            first = engine.inference[0]
            assert found.outcome == Sent(first.path, first.body), name
        else:
            headers = {key.lower(): value for key, value in reply.headers.items()}
            assert found.outcome == Refused(reply.status_code, headers, reply.content), name
    assert verdicts == {True, False}
