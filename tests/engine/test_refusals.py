"""What SGLang refuses before it begins, provoked for real through each client dialect."""

import anthropic
import openai
import pytest
from rig.asking import DIALECTS, user
from rig.raw import request
from rig.scripts import script

HELLO = [user("Say hello.")]
SERVER_WORDS = ("Traceback", 'File "', "site-packages", ".py", ".cc", "127.0.0.1", "pydantic")
"""None of these may reach a client."""

REFUSED = {
    "schema": ({"min_p": "much"}, "min_p: ", "min_p"),
    "value": ({"top_k": 0}, "top_k must be -1 (disable) or at least 1, got 0.", None),
    "template": (
        {"chat_template_kwargs": {"chat_template": "mine"}},
        "chat_template",
        None,
    ),
    "grammar": ({"regex": "("}, "grammar: Regex parsing error", None),
}
"""By what of SGLang refuses it: fields that every dialect passes on to the chat route, what the
message tells, and the field that is named."""


def ask(gateway, dialect, stream, **extra):
    """A small request with fields that the SDKs need not know."""
    body = {"model": gateway.model, "stream": stream, **dialect.body(HELLO), **extra}
    return request(gateway, dialect.path, body)


def told(dialect, reply):
    """Type, message, param and code of an error reply; its shape is checked on the way."""
    body = reply.json
    if dialect.name == "messages":
        assert body["type"] == "error"
        assert body["request_id"] == reply.headers["request-id"]
        assert set(body["error"]) == {"type", "message"}
        return body["error"]["type"], body["error"]["message"], None, None
    error = body["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    return error["type"], error["message"], error["param"], error["code"]


@pytest.mark.parametrize(("extra", "message", "param"), REFUSED.values(), ids=REFUSED)
def test_a_400(serve, engine, bodies, dialect, stream, extra, message, param):
    """SGLang's 400 is the client's, readable, in its dialect, before any stream has begun."""
    bodies.refused = True
    gateway = serve(engine)

    reply = ask(gateway, dialect, stream, **extra)

    assert (reply.status, reply.headers["content-type"]) == (400, "application/json")
    kind, said, field, code = told(dialect, reply)
    assert message in said
    assert not [word for word in SERVER_WORDS if word in reply.body.decode()]
    if dialect.name == "messages":
        assert kind == "invalid_request_error"
    else:
        assert (field, code) == (param, "bad_request")


def test_a_value_on_the_messages_route(serve, engine, dialect, stream):
    """The Messages route names some errors as no Anthropic client knows them: it is mended."""
    gateway = serve(engine, speaks="messages")

    reply = ask(gateway, dialect, stream, top_k=0)

    kind, said, _, code = told(dialect, reply)
    assert (reply.status, kind) == (400, "invalid_request_error")
    assert said == "top_k must be -1 (disable) or at least 1, got 0."
    assert code == (None if dialect.name == "messages" else "bad_request")


def test_a_fall(serve, engine, bodies, stream):
    """Over a text for `response_format` SGLang falls with a plain 500: still an error in JSON."""
    bodies.refused = True
    gateway = serve(engine)

    reply = ask(gateway, DIALECTS["chat"], stream, response_format="json")

    kind, said, _, code = told(DIALECTS["chat"], reply)
    assert (reply.status, kind, code) == (500, "server_error", "internal_error")
    assert said == "The engine answered with status 500."


def test_too_long(serve, engine, speaks, dialect, stream):
    """A prompt beyond the context is a 400 that gives both lengths, on a stream too."""
    gateway = serve(engine, speaks=speaks)
    context = gateway.openai.models.retrieve(gateway.model).max_model_len
    body = dialect.body([user("word! " * context)])

    reply = request(gateway, dialect.path, {"model": gateway.model, "stream": stream, **body})

    kind, said, _, code = told(dialect, reply)
    assert (reply.status, kind.removeprefix("BadRequestError")) in (
        [(400, "invalid_request_error"), (400, "")]
    )
    assert str(context) in said
    assert code == (None if dialect.name == "messages" else "bad_request")


FAILED = {
    "queue-full": ({"refuse": {"status": 503, "message": "The request queue is full."}}, 503),
    "failed-at-once": ({"fail": {"status": 500, "message": "The batch failed."}}, 500),
    "bad-request-at-once": ({"fail": {"status": 400, "message": "No such thing."}}, 400),
    "gone-at-once": ({"fail": {"message": "Aborted."}}, 502),
}


@pytest.mark.parametrize(("wanted", "status"), FAILED.values(), ids=FAILED)
def test_a_failure_of_the_scheduler(serve, twin, speaks, dialect, stream, wanted, status):
    """A failure before the first token is a real HTTP error, though streams had begun with 200."""
    gateway = serve(twin, speaks=speaks)
    turns = [user(script(**wanted))]
    body = {"model": gateway.model, "stream": stream, **dialect.body(turns)}

    reply = request(gateway, dialect.path, body)

    if "fail" in wanted and "status" not in wanted["fail"] and speaks == "messages":
        assert reply.status == 200  # the Messages route tells of an abort as of a proper end
        return
    if stream and status == 500:
        status = 502
    kind, _, _, code = told(dialect, reply)
    assert reply.status == status
    if dialect.name == "messages":
        assert kind == {400: "invalid_request_error", 503: "overloaded_error"}.get(
            status, "api_error"
        )
    elif status != 400:
        assert (kind, code) == ("server_error", code)


def test_a_wrong_key(serve, locked, speaks, dialect, stream):
    """An engine that refuses the gateway's key is the gateway's failure, not the client's."""
    gateway = serve(locked, speaks=speaks, api_key="wrong")

    reply = ask(gateway, dialect, stream)

    kind, said, _, _ = told(dialect, reply)
    assert (reply.status, reply.headers["x-router-error-code"]) == (502, "upstream_auth_failed")
    assert kind == ("api_error" if dialect.name == "messages" else "server_error")
    assert "key" in said
    assert "wrong" not in said


def test_the_right_key(serve, locked, speaks, dialect, stream):
    """The gateway presents its key as the engine asks for it, on its Messages route too."""
    gateway = serve(locked, speaks=speaks, api_key="right")

    assert ask(gateway, dialect, stream).status == 200


@pytest.mark.parametrize(
    ("name", "kind", "ask"),
    [
        ("chat", openai.BadRequestError, lambda sdk, **body: sdk.chat.completions.create(**body)),
        ("responses", openai.BadRequestError, lambda sdk, **body: sdk.responses.create(**body)),
        ("messages", anthropic.BadRequestError, lambda sdk, **body: sdk.messages.create(**body)),
    ],
)
def test_the_exception_that_a_client_sees(serve, engine, name, kind, ask):
    """The SDKs raise the class of a bad request, with the message in it."""
    gateway = serve(engine)
    sdk = gateway.anthropic if name == "messages" else gateway.openai

    with pytest.raises(kind, match="top_k must be"):
        ask(
            sdk,
            model=gateway.model,
            **DIALECTS[name].body(HELLO),
            extra_body={"top_k": 0},
        )
