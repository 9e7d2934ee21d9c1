"""The contract on every route that it governs, whatever dialect the client speaks."""

import gzip
import json
import sys
import zlib

import pytest

from gateway.profile import ProfileError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GENERATING = ["chat", "messages", "responses"]
GOVERNED = [*GENERATING, "completions"]
EVERY = [*GOVERNED, "embeddings", "count_tokens", "input_tokens"]
ANTHROPIC = {"messages", "count_tokens"}
BUDGET = {"chat": "max_tokens", "messages": "max_tokens", "responses": "max_output_tokens"}
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "count_tokens": "/v1/messages/count_tokens",
    "input_tokens": "/v1/responses/input_tokens",
}


PINS = "sampling: {conflict: %s, params: {top_p: 0.95, n: 1}}"


@pytest.mark.parametrize("route", GOVERNED)
@pytest.mark.parametrize("mode", ["reject", "allow"])
@pytest.mark.parametrize("fields", [{}, {"top_p": None, "n": None}], ids=["absent", "null"])
def test_pins_are_written_in_once(serve, engine, route, mode, fields):
    """A pin is written into a request that leaves the field out or null, once, in either mode."""
    serve(PINS % mode).sent(route, **fields)
    raw = engine.inference[-1].body.replace(b": ", b":")
    assert raw.count(b'"top_p":0.95') == raw.count(b'"top_p"') == 1
    assert raw.count(b'"n":1') == raw.count(b'"n"') == 1


@pytest.mark.parametrize("route", GENERATING)
def test_pins_for_an_engine_in_messages(serve_messages, route):
    """What Messages can say is written in there too; what it cannot, and is neutral, is not."""
    sent = serve_messages(PINS % "reject").sent(route, top_p=None)
    assert sent["top_p"] == 0.95
    assert "n" not in sent


@pytest.mark.parametrize("route", GOVERNED)
def test_a_preset_writes_no_temperature(serve, route):
    """A band writes nothing: the Kimi preset must not make its model greedy."""
    sent = serve(preset="moonshot-kimi").sent(route)
    assert "temperature" not in sent
    assert (sent["top_k"], sent["n"], sent["top_p"]) == (1000, 1, 0.95)


UNLOADABLE = {
    "a band that refuses nothing": (
        "sampling: {conflict: allow, params: {temperature: {min: 0, max: 1}}}",
        "temperature",
    ),
    "no whole number": ("sampling: {params: {n: 1.5}}", "n"),
    "zero": ("sampling: {params: {top_k: 0}}", "top_k"),
    "below": ("sampling: {params: {top_k: -2}}", "top_k"),
    "above": ("sampling: {params: {n: 129}}", "n"),
    "beyond 64 bits": ("sampling: {params: {top_k: 9223372036854775808}}", "top_k"),
    "the one exact value, as a bound": (
        "sampling: {params: {top_k: {min: -1, max: 5}}}",
        "top_k",
    ),
}


@pytest.mark.parametrize(("profile", "field"), UNLOADABLE.values(), ids=UNLOADABLE)
def test_a_contract_that_cannot_hold_refuses_to_start(serve, profile, field):
    """Such a file stops the start, and the message names the key by its whole path."""
    with pytest.raises(ProfileError) as caught:
        serve(profile)
    assert f"sampling.params.{field}" in str(caught.value)


WHOLE = {"1.0": b'"n":1', "1": b'"n":1', "1e0": b'"n":1'}


@pytest.mark.parametrize("route", GOVERNED)
@pytest.mark.parametrize(("literal", "written"), WHOLE.items())
def test_whole_numbers_are_written_as_such(serve, engine, route, literal, written):
    """An engine types the field as an integer, whatever the file's spelling."""
    serve(f"sampling: {{params: {{n: {literal}, top_k: 20.0}}}}").sent(route)
    raw = engine.inference[-1].body
    assert written in raw
    assert b'"n":1.' not in raw
    assert b'"top_k":20,' in raw or b'"top_k":20}' in raw


def test_the_one_negative_top_k(serve):
    """-1 (no limit) is allowed as an exact value."""
    assert serve("sampling: {params: {top_k: -1}}").sent()["top_k"] == -1


CAP = "output: {max_tokens: {cap: 4096, default: 256, on_exceed: %s}}"


@pytest.mark.parametrize("route", GENERATING)
def test_a_budget_within_the_cap(serve, route):
    """It passes as it is, and no other is written beside it."""
    sent = serve(CAP % "reject").sent(route, **{BUDGET[route]: 4096})
    budgets = {key: sent[key] for key in ("max_tokens", "max_completion_tokens") if key in sent}
    assert list(budgets.values()) == [4096]


@pytest.mark.parametrize("route", GENERATING)
def test_no_budget(serve, route):
    """The default stands in; for a Messages client as well, whose dialect asks for a budget."""
    sent = serve(CAP % "reject").sent(route, **{BUDGET[route]: None})
    assert sent["max_tokens"] == 256
    assert "max_completion_tokens" not in sent


@pytest.mark.parametrize("route", GENERATING)
def test_the_cap_is_the_default_where_there_is_none(serve, route):
    """Without a default the cap itself is written in."""
    client = serve("output: {max_tokens: {cap: 4096}}")
    assert client.sent(route, **{BUDGET[route]: None})["max_tokens"] == 4096


@pytest.mark.parametrize("route", GENERATING)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_a_budget_over_the_cap(request, engine, route, engine_in, error_of):
    """Refused by the name that the client knows it by, or lowered."""
    build = request.getfixturevalue(engine_in)
    reply = build(CAP % "reject").on(route, **{BUDGET[route]: 8000})
    error = error_of(reply, route)
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
    for part in (BUDGET[route], "8000", "4096"):
        assert part in error["message"]
    if route not in ANTHROPIC:
        assert error["param"] == BUDGET[route]
    assert engine.inference == []
    sent = build(CAP % "clamp").sent(route, **{BUDGET[route]: 8000})
    budgets = {key: sent[key] for key in ("max_tokens", "max_completion_tokens") if key in sent}
    assert list(budgets.values()) == [4096]


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize("stream", [False, True])
def test_an_unknown_model_comes_first(serve, engine, route, stream, error_of):
    """A model that is not served is told as such, whatever else is wrong."""
    client = serve("sampling: {params: {temperature: 1}}")
    reply = client.on(route, model="no-such", temperature=0.3, stream=stream)
    error = error_of(reply, route)
    assert reply.status_code == 404
    assert error["type"] == ("not_found_error" if route in ANTHROPIC else "invalid_request_error")
    assert "no-such" in error["message"]
    assert "temperature" not in error["message"]
    assert engine.inference == []


ONE = "sampling: {params: {temperature: 1, top_p: 0.95}}"
REFUSED = [0.1, 0.5, 0, "0.1", "warm", [1], {}]


@pytest.mark.parametrize("route", GOVERNED)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("value", REFUSED, ids=map(json.dumps, REFUSED))
def test_the_one_accepted_value(serve, engine, route, stream, value, error_of):
    """Any other is a 400 that names field, value and the value that is right."""
    reply = serve(ONE).on(route, temperature=value, stream=stream)
    error = error_of(reply, route)
    assert (reply.status_code, error["type"]) == (400, "invalid_request_error")
    assert reply.headers["x-router-error-code"] == "sampling_contract_violation"
    for part in ("temperature", json.dumps(value), "1"):
        assert part in error["message"]
    assert engine.inference == []


@pytest.mark.parametrize("route", GOVERNED)
@pytest.mark.parametrize("fields", [{"temperature": 1}, {"temperature": 1.0}, {}], ids=str)
def test_the_accepted_value_in_its_spellings(serve, route, fields):
    """The number itself in any spelling, and no value at all, are right."""
    assert serve(ONE).sent(route, **fields)["temperature"] == 1


LIMIT = 1024


def sized(route, size, **fields):
    """A body of a route of exactly so many bytes."""
    extra = {"messages": {"max_tokens": 5}, "completions": {"prompt": "hi"}}.get(route, {})
    key = "input" if route in {"responses", "embeddings", "input_tokens"} else "messages"
    content = "hi" if key == "input" else [{"role": "user", "content": "hi"}]
    body = {"model": "m", key: content, **extra, **fields, "pad": ""}
    short = len(json.dumps(body))
    raw = json.dumps({**body, "pad": "x" * (size - short)}).encode()
    assert len(raw) == size
    return raw


LIMITED = "limits: {max_body_bytes: 1KiB}\nerrors: {bad_request_type: odd}"


def assert_too_large(error_of, reply, route, limit=LIMIT):
    """413 in the dialect of the route, of its own type."""
    error = error_of(reply, route)
    assert reply.status_code == 413
    own = "request_too_large" if route in ANTHROPIC else "invalid_request_error"
    assert error["type"] == own
    if route not in ANTHROPIC:
        assert error["code"] == "request_too_large"
    assert str(limit) in error["message"]


@pytest.mark.parametrize("route", EVERY)
def test_the_body_limit_is_exact_on_every_route(serve, engine, route, error_of):
    """1024 bytes pass, 1025 do not; the profile's type for 400s is none for a 413."""
    client = serve(LIMITED)
    assert client.post(sized(route, LIMIT), PATHS[route]).status_code == 200
    assert_too_large(error_of, client.post(sized(route, LIMIT + 1), PATHS[route]), route)
    assert len(engine.inference) == 1


BOMBS = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("route", EVERY)
@pytest.mark.parametrize(("encoding", "compress"), BOMBS.items(), ids=BOMBS)
def test_the_body_limit_holds_after_decompression(
    serve, engine, route, encoding, compress, error_of
):
    """A body within the limit that inflates to a thousand times as much is too large."""
    client = serve(LIMITED.replace("1KiB", "16KiB"))
    bomb = compress(sized(route, 10 * 1024 * 1024))
    assert len(bomb) < 16 * 1024
    reply = client.post(bomb, PATHS[route], headers={"content-encoding": encoding})
    assert_too_large(error_of, reply, route, 16 * 1024)
    assert engine.inference == []


ALIASED = "models: {aliases: [kimi-latest]}"


@pytest.mark.parametrize("route", EVERY)
def test_an_alias_is_served_on_every_route(serve, route):
    """The engine is sent the served name, and a buffered reply has the client's."""
    client = serve(ALIASED)
    reply = client.on(route, model="kimi-latest")
    assert reply.status_code == 200
    assert client.engine.inference[-1].json["model"] == "m"
    if "count" not in route and "input" not in route:
        assert reply.json["model"] == "kimi-latest"


def models_in(value):
    """Every model that a reply names, however deep."""
    if isinstance(value, dict):
        own = [value["model"]] if "model" in value else []
        return own + [name for inner in value.values() for name in models_in(inner)]
    if isinstance(value, list):
        return [name for inner in value for name in models_in(inner)]
    return []


@pytest.mark.parametrize("route", GOVERNED)
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
def test_a_stream_has_the_name_that_was_asked_for(request, wire, route, engine_in):
    """In every chunk, in message_start, and in each event that holds the Response."""
    client = request.getfixturevalue(engine_in)(ALIASED)
    events = wire.events(client.on(route, model="kimi-latest", stream=True))
    named = [models_in(data) for _, data in events]
    assert {name for names in named for name in names} == {"kimi-latest"}
    if route in {"chat", "completions"}:
        assert all(names for names in named[:-1])
    holders = {
        "messages": ["message_start"],
        "responses": ["response.created", "response.completed"],
    }
    for name in holders.get(route, []):
        assert [names for (kind, _), names in zip(events, named, strict=True) if kind == name] == [
            ["kimi-latest"]
        ]


@pytest.mark.parametrize("path", ["/v1/models/kimi-latest", "/v1/models/m", "/v1/models/M"])
def test_an_alias_has_an_entry_in_the_model_list(serve, path):
    """Under its own name, in the keys of both vendors."""
    entry = serve(ALIASED).simulate_get(path).json
    assert entry["id"] == path.rpartition("/")[2]
    assert (entry["object"], entry["type"]) == ("model", "model")
    assert entry["display_name"]
    assert entry["created_at"].endswith("Z")


ODD = (
    b' {"model" : "m",\n "x":1.0,"a":1e2, "b":12345678901234567890,'
    b'"c":0.1000000000000000055,"d":"\\u00e9\\/","e":1,"e":2,'
)
PLAIN = {
    "completions": ODD + b'"f":1e400,"prompt":"hi","logprobs":0 }',
    "embeddings": ODD + b'"f":1e400,"input":["hi"],"encoding_format":"float"}',
}
CHAT_ONLY = """
output: {max_tokens: {cap: 5}}
limits: {max_images: 1}
params: {stop: {default: x}}
"""


@pytest.mark.parametrize(("route", "raw"), PLAIN.items())
@pytest.mark.parametrize("profile", ["", CHAT_ONLY], ids=["no profile", "chat only"])
def test_what_needs_no_change_keeps_its_bytes(serve, engine, route, raw, profile):
    """Completions and embeddings pass as they came; a profile's chat-only rules do not apply."""
    assert serve(profile).post(raw, PATHS[route]).status_code == 200
    assert engine.inference[-1].body == raw


def test_a_messages_body_for_a_messages_engine_keeps_its_bytes(serve_messages, engine):
    """Nothing is converted, so nothing is spelled anew."""
    raw = ODD + b'"max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    assert serve_messages().post(raw, "/v1/messages").status_code == 200
    assert engine.inference[-1].body == raw


def test_only_the_field_that_changes_is_spelled_anew(serve, engine):
    """A lowered budget leaves the spelling of every other value."""
    raw = ODD + b'"f":1e400,"max_tokens" : 8000.0,"messages":[ {"role":"user","content":"hi"}] }'
    assert serve(CAP % "clamp").post(raw).status_code == 200
    assert engine.inference[-1].body == (
        b'{"model" : "m","x":1.0,"a":1e2,"b":12345678901234567890,'
        b'"c":0.1000000000000000055,"d":"\\u00e9\\/","e":1,"e":2,"f":1e400,'
        b'"max_tokens" : 4096,"messages":[ {"role":"user","content":"hi"}]}'
    )


PASSED = {
    "chat_template_kwargs": {"enable_thinking": False},
    "separate_reasoning": True,
    "regex": "a+",
    "rid": "r1",
    "top_k": 5,
    "min_p": 0.1,
    "logit_bias": {"5": 1},
    "parallel_tool_calls": True,
    "an_unknown_field": {"store": 1, "user": [None]},
}
PLATFORM = {"prompt_cache_key": "k", "verbosity": "low", "store": True, "service_tier": "auto"}


@pytest.mark.parametrize("route", GOVERNED)
def test_unknown_fields_reach_the_engine(serve, route):
    """Whatever is not listed passes as it is; the platform's own fields do not."""
    sent = serve().sent(route, **PASSED, **PLATFORM)
    assert {name: sent.get(name) for name in PASSED} == PASSED
    assert not set(PLATFORM) & set(sent)


@pytest.mark.parametrize("route", ["chat", "responses", "completions"])
@pytest.mark.parametrize("engine_in", ["serve", "serve_messages"])
@pytest.mark.parametrize(
    ("user", "kept"),
    [("u" * 64, True), ("u" * 65, False), ("é" * 64, True), ("é" * 65, False), ("🙂" * 64, True)],
    ids=["64", "65", "64 of two bytes", "65 of two bytes", "64 of four bytes"],
)
def test_a_long_user_is_dropped_whole(request, route, engine_in, user, kept):
    """64 characters are the most, however many bytes they have."""
    sent = request.getfixturevalue(engine_in)().sent(route, user=user)
    got = sent.get("user", (sent.get("metadata") or {}).get("user_id"))
    assert got == (user if kept else None)


@pytest.mark.parametrize("route", GENERATING)
def test_filtered_names_inside_a_tool_stay(serve, route):
    """A schema may have properties of any name."""
    schema = {"type": "object", "properties": {"store": {"type": "string"}, "user": {}, "n": {}}}
    function = {"name": "f", "parameters": schema}
    tool = {
        "chat": {"type": "function", "function": function},
        "messages": {"name": "f", "input_schema": schema},
        "responses": {"type": "function", **function},
    }[route]
    sent = serve().sent(route, tools=[tool])
    assert sent["tools"][0]["function"]["parameters"] == schema


@pytest.mark.parametrize("route", GENERATING)
def test_every_400_has_the_profiles_type(serve, route, error_of):
    """The gateway's own and the engine's; inside Anthropic's envelope it is the inner type."""
    client = serve("errors: {bad_request_type: odd}\nsampling: {params: {top_p: 0.5}}")
    for reply in (
        client.post(b"[]", PATHS[route]),
        client.on(route, top_p=0.9),
        client.on(route, temperature=-1),
    ):
        assert reply.status_code == 400
        assert error_of(reply, route)["type"] == "odd"


IMAGES = {
    "chat": lambda n: {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "http://i"}}] * n,
            }
        ]
    },
    "messages": lambda n: {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "url", "url": "http://i"}}] * n,
            }
        ]
    },
    "responses": lambda n: {
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": "http://i"}] * n}
        ]
    },
}


@pytest.mark.parametrize(("route", "images"), IMAGES.items())
def test_images_are_counted_in_every_dialect(serve, engine, route, images, error_of):
    """As many as the limit pass; one more is a 400 that names both numbers."""
    client = serve("limits: {max_images: 2}")
    assert client.on(route, **images(2)).status_code == 200
    reply = client.on(route, **images(3))
    assert reply.status_code == 400
    message = error_of(reply, route)["message"]
    assert "3" in message
    assert "2" in message
    assert len(engine.inference) == 1


OFF = {
    "chat": ["chat"],
    "completions": ["completions"],
    "embeddings": ["embeddings"],
    "responses": ["responses", "input_tokens"],
    "messages": ["messages", "count_tokens"],
}


@pytest.mark.parametrize(("protocol", "gone"), OFF.items())
def test_a_protocol_that_is_off(serve, protocol, gone, error_of):
    """Its routes are not there, and tell so in their dialect; the others are."""
    client = serve(f"protocols: {{{protocol}: false}}")
    for route in EVERY:
        reply = client.on(route)
        assert reply.status_code == (404 if route in gone else 200), route
        if route in gone:
            error = error_of(reply, route)
            own = "not_found_error" if route in ANTHROPIC else "invalid_request_error"
            assert error["type"] == own
