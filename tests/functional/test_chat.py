"""A chat request from the client's bytes to the engine's, and back."""

import json

import pytest

from gateway.demo.engine import Canned

BASE = b'{"model":"m","messages":[{"role":"user","content":"hi"}]'


def bodies(engine):
    """The bodies that the engine got."""
    return [request.body for request in engine.inference]


ODD = {
    "spacing and order": b' {"messages" : [ {"role":"user" , "content":"hi"} ],\n\t"model" :"m" } ',
    "numbers": BASE + b',"a":1.0,"b":1e2,"c":12345678901234567890,"d":0.1000000000000000055}',
    "beyond a double": BASE + b',"a":1e400}',
    "escapes": BASE + b',"a":"\\u00e9\\/\\ud83d\\ude00"}',
    "repeated keys": BASE + b',"x":1,"x":2}',
    "unknown keys": BASE
    + b',"chat_template_kwargs":{"enable_thinking":false},"separate_reasoning":true,'
    b'"regex":"a","rid":"1","top_k":5,"min_p":0.1,"logit_bias":{"1":2},'
    b'"parallel_tool_calls":true,"user":"' + b"u" * 64 + b'"}',
}


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_no_profile_means_the_same_bytes(serve, engine, raw):
    """Without a profile, and with nothing to filter, the engine gets the client's bytes."""
    assert serve().post(raw).status_code == 200
    assert bodies(engine) == [raw]


FILTERED = {
    "prompt_cache_key": '"k"',
    "prompt_cache_retention": '"24h"',
    "verbosity": '"low"',
    "store": "true",
    "service_tier": '"auto"',
    "user": json.dumps("é" * 65, ensure_ascii=False),
    "n": "null",
    "stream": "null",
    "stream_options": '{"include_usage":true}',
}


@pytest.mark.parametrize(("field", "value"), FILTERED.items())
def test_filters(serve, engine, field, value):
    """What an engine has no use for is taken out; every other byte stays."""
    raw = BASE + b"," + json.dumps(field).encode() + b":" + value.encode() + b',"z":1.0}'
    assert serve().post(raw).status_code == 200
    assert bodies(engine) == [BASE + b',"z":1.0}']


def test_filtered_names_inside_values_stay(serve, engine):
    """A tool's schema or a message that has such a name keeps it."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"store": 1, "user": 2}}}]
    sent = serve().sent(tools=tools)
    assert sent["tools"] == tools


PINNED = {
    "top_p": "0.95",
    "top_k": "1000",
    "frequency_penalty": "0",
    "presence_penalty": "0",
    "n": "1",
}


def test_pins_are_written_in_and_a_band_is_not(serve, engine):
    """The Kimi preset fills in its exact values with their literals, and no temperature."""
    client = serve(preset="moonshot-kimi")
    assert client.post(BASE + b"}").status_code == 200
    written = "".join(f',"{name}":{value}' for name, value in PINNED.items())
    assert bodies(engine) == [BASE + written.encode() + b"}"]


def test_null_is_absent(serve, engine):
    """An explicit null is filled in like an absent field, and is there once."""
    client = serve("sampling: {conflict: reject, params: {top_p: 0.95, n: 1}}")
    assert client.post(BASE + b',"top_p":null,"n":null}').status_code == 200
    (body,) = bodies(engine)
    assert body.count(b"top_p") == body.count(b'"n"') == 1
    assert (json.loads(body)["top_p"], json.loads(body)["n"]) == (0.95, 1)


ACCEPTED = {
    "temperature": [0, 0.6, 1, 1.0],
    "top_p": [0.95],
    "top_k": [1000],
    "frequency_penalty": [0, 0.0, -0.0],
    "presence_penalty": [0],
    "n": [1, 1.0],
}
REFUSED = {
    "temperature": [1.1, 2, -0.1, "warm"],
    "top_p": [0.8],
    "frequency_penalty": [0.5],
    "presence_penalty": [0.5],
    "n": [2],
}
EXPECTED = {"temperature": ("0", "1"), "top_p": ("0.95",), "frequency_penalty": ("0",)}


def pairs(table):
    """(field, value) of each entry."""
    return [(field, value) for field, values in table.items() for value in values]


@pytest.mark.parametrize(("field", "value"), pairs(ACCEPTED))
@pytest.mark.parametrize("stream", [False, True])
def test_accepted_values(serve, field, value, stream):
    """The values that the contract allows pass, in any spelling."""
    assert serve(preset="moonshot-kimi").sent(**{field: value}, stream=stream)[field] == value


@pytest.mark.parametrize(("field", "value"), pairs(REFUSED))
@pytest.mark.parametrize("stream", [False, True])
def test_refused_values(serve, engine, field, value, stream):
    """Any other value is a 400 that names field, value and what is right; no engine sees it."""
    reply = serve(preset="moonshot-kimi").chat(**{field: value}, stream=stream)
    assert reply.status_code == 400
    error = reply.json["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "sampling_contract_violation",
        field,
    )
    for part in (field, json.dumps(value), *EXPECTED.get(field, ())):
        assert part in error["message"]
    assert reply.headers["x-router-error-code"] == "sampling_contract_violation"
    assert engine.inference == []


CAP = "output: {max_tokens: {cap: 4096, default: 256, on_exceed: %s}}"
BUDGETS = {
    "1": ({"max_tokens": 8000, "max_completion_tokens": 300}, None, {}),
    "2": ({"max_tokens": 300, "max_completion_tokens": 8000}, "max_completion_tokens", {}),
    "3": ({"max_completion_tokens": 0, "max_tokens": 8000}, "max_tokens", {}),
    "4": ({"max_completion_tokens": None, "max_tokens": 8000}, "max_tokens", {}),
    "5": ({"max_tokens": None}, None, {"max_tokens": 256}),
    "6": ({}, None, {"max_tokens": 256}),
    "7": ({"max_tokens": "8000"}, "max_tokens", {}),
    "8": ({"max_tokens": 4096}, None, {}),
}


@pytest.mark.parametrize(("fields", "over", "written"), BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("mode", ["reject", "clamp"])
def test_output_budget(serve, fields, over, written, mode):
    """The field that counts is judged, and it alone is refused or lowered."""
    client = serve(CAP % mode)
    if over and mode == "reject":
        reply = client.chat(**fields)
        assert (reply.status_code, reply.json["error"]["param"]) == (400, over)
        return
    sent = client.sent(**fields)
    expected = {**fields, **written, **({over: 4096} if over else {})}
    assert {key: sent[key] for key in expected} == expected


def test_an_unreadable_budget(serve, engine):
    """A budget that is no number is a 400 in both modes."""
    for mode in ("reject", "clamp"):
        reply = serve(CAP % mode).chat(max_tokens="lots")
        assert (reply.status_code, reply.json["error"]["param"]) == (400, "max_tokens")
    assert engine.inference == []


def test_unknown_model_comes_before_the_contract(serve, engine):
    """A model that is not served gets that answer, whatever else is wrong with the request."""
    client = serve("sampling: {params: {temperature: 1}}")
    reply = client.chat(model="no-such", temperature=0.3)
    assert reply.status_code == 404
    assert reply.json["error"] == {
        "message": "The model 'no-such' is not served here.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    assert engine.inference == []


ALIASED = "models: {aliases: [kimi-latest]}"


@pytest.mark.parametrize("asked", ["kimi-latest", "KIMI-Latest", "M", "sgl/m", "sgl/kimi-latest"])
def test_alias_is_sent_as_the_model_and_read_back_as_asked(serve, engine, asked):
    """The engine gets the served name; the reply, buffered and streamed, has the client's."""
    client = serve(ALIASED)
    assert client.chat(model=asked).json["model"] == asked
    streamed = client.chat(model=asked, stream=True)
    chunks = [line for line in streamed.text.split("\n\n") if line.startswith("data: {")]
    assert len(chunks) > 2
    assert {json.loads(line[6:])["model"] for line in chunks} == {asked}
    assert {request.json["model"] for request in engine.inference} == {"m"}


def test_model_list(serve):
    """The list has the served name and its aliases; each is found by its name."""
    client = serve(ALIASED)
    listed = client.simulate_get("/v1/models").json
    assert [entry["id"] for entry in listed["data"]] == ["m", "kimi-latest"]
    assert listed["object"] == "list"
    for name in ("m", "kimi-latest", "KIMI-LATEST"):
        entry = client.simulate_get(f"/v1/models/{name}").json
        assert (entry["id"], entry["object"], entry["type"]) == (name, "model", "model")
    missing = client.simulate_get("/v1/models/other")
    assert (missing.status_code, missing.json["error"]["code"]) == (404, "model_not_found")


def test_without_a_model_id_every_name_is_served(serve, engine):
    """The engines' own list is the list then, and names go on as they are."""
    client = serve(model_id=None)
    assert client.chat(model="whatever").json["model"] == "whatever"
    assert [entry["id"] for entry in client.simulate_get("/v1/models").json["data"]] == ["m"]


MODELS = {
    "absent": ({"model": None}, "model is required"),
    "a number": ({"model": 5}, "model must be a non-empty text, got 5"),
    "empty": ({"model": ""}, 'model must be a non-empty text, got ""'),
}


@pytest.mark.parametrize(("fields", "message"), MODELS.values(), ids=MODELS)
def test_model_must_be_named(serve, fields, message):
    """A request names its model."""
    reply = serve().chat(**fields)
    assert (reply.status_code, reply.json["error"]["param"]) == (400, "model")
    assert message in reply.json["error"]["message"]


BAD_BODIES = {
    "empty": b"",
    "list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "cut": b'{"model":"m"',
    "trailing": b'{"model":"m"} x',
    "NaN": b'{"model":"m","temperature":NaN}',
    "Infinity": b'{"model":"m","temperature":Infinity}',
    "lone surrogate": b'{"model":"m","x":"\\ud800"}',
    "not UTF-8": b'{"model":"m","x":"\xff"}',
    "too deep": b'{"model":"m","x":' + b"[" * 256 + b"]" * 256 + b"}",
    "very deep": b'{"model":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("raw", BAD_BODIES.values(), ids=BAD_BODIES)
@pytest.mark.parametrize("preset", ["openai-compatible", "moonshot-kimi"])
def test_bad_bodies(serve, engine, raw, preset):
    """What is no JSON object in strict JSON is a 400, with or without a profile."""
    reply = serve(preset=preset).post(raw)
    assert (reply.status_code, reply.json["error"]["code"]) == (400, "bad_request")
    assert engine.inference == []


def test_deep_enough(serve):
    """256 levels, the root being the first, are accepted."""
    raw = BASE + b',"x":' + b"[" * 255 + b"]" * 255 + b"}"
    assert serve().post(raw).status_code == 200


def test_body_limit(serve, engine):
    """The profile's limit is exact, and its 413 keeps its type."""
    client = serve("limits: {max_body_bytes: 1KiB}\nerrors: {bad_request_type: odd}")
    pad = 1024 - len(BASE) - len(b',"p":""}')
    assert client.post(BASE + b',"p":"' + b"x" * pad + b'"}').status_code == 200
    reply = client.post(BASE + b',"p":"' + b"x" * (pad + 1) + b'"}')
    assert (reply.status_code, reply.json["error"]["type"]) == (413, "invalid_request_error")
    assert reply.json["error"]["code"] == "request_too_large"
    assert len(engine.inference) == 1


def test_bad_request_type_is_in_every_400(serve):
    """The gateway's own 400s and the engine's are of the profile's type."""
    client = serve("errors: {bad_request_type: odd}\nsampling: {params: {n: 1}}")
    for reply in (client.post(b"[]"), client.chat(n=2), client.chat(top_k=0)):
        assert (reply.status_code, reply.json["error"]["type"]) == (400, "odd")
    assert reply.json["type"] == "odd"
    assert client.chat(model="x").json["error"]["type"] == "invalid_request_error"


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def test_image_limit(serve, engine):
    """Images are counted over all messages; one too many is a 400."""
    client = serve("limits: {max_images: 2}")
    one = {"role": "user", "content": [IMAGE, {"type": "text", "text": "image_url"}]}
    assert client.chat(messages=[one, one]).status_code == 200
    reply = client.chat(messages=[one, one, one])
    assert reply.status_code == 400
    assert "3" in reply.json["error"]["message"]
    assert "2" in reply.json["error"]["message"]


def test_route_that_is_off(serve):
    """A protocol that the profile turns off is not there."""
    reply = serve("protocols: {chat: false}").chat()
    assert (reply.status_code, reply.json["error"]["code"]) == (404, "not_found")


def test_reasoning_format(serve, engine):
    """`general` renames the reply's reasoning, buffered and streamed; other values do not."""
    client = serve("params: {reasoning_format: {values: [general, deepseek-style]}}")
    assert client.chat(reasoning_format="other").status_code == 400
    for stream in (False, True):
        renamed = client.chat(reasoning_format="general", stream=stream).text
        assert '"reasoning"' in renamed
        assert '"reasoning_content"' not in renamed
        assert (
            '"reasoning_content"'
            in client.chat(reasoning_format="deepseek-style", stream=stream).text
        )


USAGE = {
    "no options": ({}, False),
    "false": ({"stream_options": {"include_usage": False}}, False),
    "true": ({"stream_options": {"include_usage": True}}, True),
}


@pytest.mark.parametrize(("fields", "shown"), USAGE.values(), ids=USAGE)
def test_usage_chunk(serve, fields, shown):
    """The chunk without choices is for the client that asked for it."""
    text = serve().chat(stream=True, **fields).text
    assert ('"choices":[]' in text.replace(" ", "")) is shown
    assert text.endswith("data: [DONE]\n\n")


def test_stream_headers(serve):
    """A stream is marked as one, so that nothing on the way holds it back."""
    reply = serve().chat(stream=True)
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert "content-length" not in reply.headers


IDS = {
    "sane": ("abc-1.2_3:4/5", True),
    "longest": ("a" * 128, True),
    "too long": ("a" * 129, False),
    "spaces": ("a b", False),
    "quote": ('a"b', False),
}


@pytest.mark.parametrize(("sent", "kept"), IDS.values(), ids=IDS)
def test_request_id(serve, engine, sent, kept):
    """A sane request id goes on and comes back; another is replaced; errors carry one too."""
    client = serve()
    headers = {"x-request-id": sent}
    for body in (BASE + b"}", b"[]"):
        got = client.post(body, headers=headers).headers["x-request-id"]
        assert (got == sent) is kept
        assert got
    assert (engine.inference[0].headers["x-request-id"] == sent) is kept


def test_credentials_stay_here(serve, engine):
    """The client's own credentials never reach an engine."""
    secrets = [
        "authorization",
        "x-api-key",
        "api-key",
        "cookie",
        "proxy-authorization",
        "x-goog-api-key",
    ]
    serve().post(
        BASE + b"}", headers=dict.fromkeys(secrets, "Bearer secret") | {"traceparent": "00-a"}
    )
    got = engine.inference[0].headers
    assert not set(secrets) & set(got)
    assert got["traceparent"] == "00-a"


def test_engine_key(serve, engine):
    """A configured key is the one the engine gets, whatever the client sent."""
    client = serve(worker_api_key="k")
    client.post(BASE + b"}", headers={"authorization": "Bearer secret"})
    assert engine.inference[0].headers["authorization"] == "Bearer k"


ROUTES = {
    "unknown path": ("GET", "/v1/nothing", 404, "not_found", {}),
    "wrong method": (
        "GET",
        "/v1/chat/completions",
        405,
        "method_not_allowed",
        {"allow": "POST, OPTIONS"},
    ),
    "delete": ("DELETE", "/v1/chat/completions", 405, "method_not_allowed", {}),
    "engine's admin route": ("GET", "/server_info", 404, "not_found", {}),
    "speech": ("POST", "/v1/audio/speech", 400, "unsupported_operation", {}),
    "a file": ("GET", "/v1/files/x", 400, "unsupported_operation", {}),
}


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "headers"), ROUTES.values(), ids=ROUTES
)
@pytest.mark.parametrize("accept", ["*/*", "text/event-stream", "application/xml"])
def test_other_routes(serve, engine, method, path, status, code, headers, accept):
    """What is not there, or not so, is told in JSON whatever the client accepts."""
    reply = serve().simulate_request(method, path, headers={"accept": accept})
    assert (reply.status_code, reply.json["error"]["code"]) == (status, code)
    assert reply.headers["x-router-error-code"] == code
    assert reply.headers["x-request-id"]
    assert headers.items() <= reply.headers.items()
    assert engine.requests == []


def test_unsupported_operation(serve):
    """The refusal of an operation that no engine has is spelled out."""
    assert serve().simulate_post("/v1/images/generations", body=b"{}").json == {
        "error": {
            "message": "image generation is not supported by SGLang",
            "type": "UnsupportedOperationError",
            "param": None,
            "code": "unsupported_operation",
        }
    }


def test_trailing_slash_and_query(serve):
    """A trailing slash and a query change nothing."""
    assert serve().post(BASE + b"}", "/v1/chat/completions/?beta=true").status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/readyz", "/"])
def test_health(serve, engine, path):
    """Health is answered without asking an engine."""
    client = serve()
    assert client.simulate_get(path).status_code == 200
    assert client.simulate_head(path).status_code == 200
    assert engine.requests == []


def test_client_keys(serve, tmp_path):
    """With a file of keys, a client presents one of them; health stays open."""
    keys = tmp_path / "keys"
    keys.write_text("# team\nk1\n", encoding="utf-8")
    client = serve(api_keys_file=str(keys))
    for headers in ({}, {"authorization": "Bearer no"}, {"authorization": "k1"}, {"x-api-key": ""}):
        reply = client.post(BASE + b"}", headers=headers)
        assert (reply.status_code, reply.json["error"]["code"]) == (401, "invalid_api_key")
        assert client.simulate_get("/v1/models", headers=headers).status_code == 401
    for headers in (
        {"authorization": "Bearer k1"},
        {"authorization": "bearer k1"},
        {"x-api-key": "k1"},
    ):
        assert client.post(BASE + b"}", headers=headers).status_code == 200
        assert client.simulate_get("/v1/models", headers=headers).status_code == 200
    assert client.simulate_get("/readyz").status_code == 200


def test_a_repeated_field_whose_last_value_is_null_is_sent_once(serve, engine):
    """A band leaves null alone, and the values before it do not go on."""
    client = serve("sampling: {params: {temperature: {min: 0, max: 1}}}")
    assert client.post(BASE + b',"temperature":2,"temperature":null}').status_code == 200
    assert bodies(engine)[0].count(b"temperature") == 1


@pytest.mark.parametrize(
    ("types", "shown"),
    [
        (["bash_a\r\nX-Evil: 1"], "bash_a??X-Evil??1"),
        (["bash_\x00", "web_search_é"], "bash_?, web_search_?"),
        (["bash_" + "a" * 100_000], "bash_" + "a" * 59),
        (["bash_1", "bash_1", "web_search"], "bash_1, web_search"),
    ],
    ids=["line end", "control and beyond ASCII", "long", "repeated"],
)
def test_dropped_tools_are_named_in_a_sane_header(serve, types, shown):
    """Clients choose the types: what no header can carry is replaced, and what is long is cut."""
    reply = serve().chat(tools=[{"type": one} for one in types])
    assert reply.status_code == 200
    assert reply.headers["x-sgl-gateway-dropped-tools"] == shown


def test_answers_of_500_do_not_take_a_lone_engine_from_everybody(serve, engine):
    """An engine that answers is there; one client's odd requests are not the others' loss."""
    client = serve()
    broken = Canned(500, b"Internal Server Error", {"content-type": "text/plain"})
    for _ in range(5):
        engine.canned[:] = [broken]
        assert client.chat().status_code == 500
    assert client.chat().status_code == 200
    assert client.simulate_get("/readyz").status_code == 200
