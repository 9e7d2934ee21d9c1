"""Errors on the wire: SGLang's five shapes in, two client shapes out."""

import json

import pytest

from gateway.dialects.errors import (
    failure_of,
    parse_engine_error,
    parse_error_frame,
    render_error,
    render_error_event,
)
from gateway.errors import BODY_TOO_LARGE, KINDS, GatewayError, bad_request
from gateway.routes import Dialect

FLAT = {"object": "error", "message": "m", "type": "BadRequestError", "param": None, "code": 400}
DUMP = (
    "2 validation errors:\n"
    "  {'type': 'int_parsing', 'loc': ('body', 'n'), 'msg': 'Input should be a valid integer',"
    " 'input': 'x'}\n"
    "  {'type': 'value_error', 'loc': ('body', 'messages', 0, 'function-after[f(), P]', 'role'),"
    " 'msg': \"Value error, 'role' must be one of 'a'.\", 'input': 'bad'}\n\n"
    '  File "/srv/engine/http_server.py", line 1870, in openai_v1_chat_completions\n'
    "    POST /v1/chat/completions [{'loc': ('body', 'n'), 'msg': 'again'}]"
)


def rendered(dialect, status, body, **options):
    """An engine's error as the client gets it: status and parsed body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    failure = parse_engine_error(status, raw)
    return failure.status, json.loads(render_error(dialect, failure, request_id="r1", **options))


OPENAI = {
    "flat": (
        400,
        FLAT,
        400,
        {
            **FLAT,
            "error": {
                "message": "m",
                "type": "BadRequestError",
                "param": None,
                "code": "bad_request",
            },
        },
    ),
    "flat with a status as its type": (
        503,
        {"object": "error", "message": "full", "type": "503", "param": None, "code": 503},
        503,
        {
            "object": "error",
            "message": "full",
            "type": "503",
            "param": None,
            "code": 503,
            "error": {
                "message": "full",
                "type": "server_error",
                "param": None,
                "code": "overloaded",
            },
        },
    ),
    "nested": (
        404,
        {
            "error": {
                "message": "m",
                "type": "t",
                "param": "model",
                "code": "model_not_found",
                "x": 1,
            }
        },
        404,
        {
            "error": {
                "message": "m",
                "type": "t",
                "param": "model",
                "code": "model_not_found",
                "x": 1,
            }
        },
    ),
    "Anthropic": (
        400,
        {"type": "error", "error": {"type": "BadRequestError", "message": "m"}},
        400,
        {
            "error": {
                "message": "m",
                "type": "invalid_request_error",
                "param": None,
                "code": "bad_request",
            }
        },
    ),
    "unauthorised": (
        401,
        {"error": "Unauthorized"},
        502,
        {
            "error": {
                "message": "The engine refused the gateway's key.",
                "type": "server_error",
                "param": None,
                "code": "upstream_auth_failed",
            }
        },
    ),
    "plain text": (
        500,
        b"Internal Server Error",
        500,
        {
            "error": {
                "message": "The engine answered with status 500.",
                "type": "server_error",
                "param": None,
                "code": "internal_error",
            }
        },
    ),
    "HTML": (
        502,
        b"<html>10.0.0.7</html>",
        502,
        {
            "error": {
                "message": "The engine answered with status 502.",
                "type": "server_error",
                "param": None,
                "code": "upstream_protocol_error",
            }
        },
    ),
}


@pytest.mark.parametrize(("status", "body", "told", "expected"), OPENAI.values(), ids=OPENAI)
def test_engine_error_to_an_openai_client(status, body, told, expected):
    """The status is kept but for the gateway's own key; an OpenAI shape keeps its keys."""
    assert rendered(Dialect.CHAT, status, body) == (told, expected)


ANTHROPIC = {
    "400": (400, FLAT, 400, "invalid_request_error", "m"),
    "404": (404, FLAT, 404, "not_found_error", "m"),
    "413": (413, FLAT, 413, "request_too_large", "m"),
    "422": (422, FLAT, 422, "invalid_request_error", "m"),
    "429": (429, FLAT, 429, "rate_limit_error", "m"),
    "500 text": (500, b"oops", 500, "api_error", "The engine answered with status 500."),
    "503": (503, FLAT, 503, "overloaded_error", "m"),
    "529": (529, FLAT, 529, "overloaded_error", "m"),
    "401": (
        401,
        {"error": "Unauthorized"},
        502,
        "api_error",
        "The engine refused the gateway's key.",
    ),
}


@pytest.mark.parametrize(
    ("status", "body", "told", "type_", "message"), ANTHROPIC.values(), ids=ANTHROPIC
)
def test_engine_error_to_an_anthropic_client(status, body, told, type_, message):
    """Anthropic's envelope, with one of Anthropic's types whatever the engine called it."""
    assert rendered(Dialect.MESSAGES, status, body) == (
        told,
        {"type": "error", "error": {"type": type_, "message": message}, "request_id": "r1"},
    )


def test_own_key_or_the_clients():
    """With the client's key forwarded, the engine's 401 is the client's."""
    body = b'{"error":"Unauthorized"}'
    assert parse_engine_error(401, body).status == 502
    assert parse_engine_error(401, body, own_key=False).status == 401


def test_server_files_are_rewritten_to_fields_and_reasons():
    """A schema error's dump names a server's file; the client reads fields and reasons."""
    failure = parse_engine_error(400, json.dumps({**FLAT, "message": DUMP}).encode())
    assert failure.message == (
        "n: Input should be a valid integer; messages.0.role: 'role' must be one of 'a'."
    )
    assert failure.param == "n"
    assert b"/srv" not in render_error(Dialect.CHAT, failure, request_id="r")


def test_lines_of_the_grammar_compiler_are_left_out():
    """A message tells what is wrong with a grammar, not where in its compiler that was found."""
    compiled = "Failed to compile regex grammar: [02:47:39] /project/cpp/regex_converter.cc:83: "
    told = "Regex parsing error at position 2: The parenthesis is not closed."
    status, body = rendered(Dialect.CHAT, 400, FLAT | {"message": f"{compiled}{told}\n"})
    assert status == 400
    assert body["message"] == body["error"]["message"] == f"Failed to compile regex grammar: {told}"


@pytest.mark.parametrize(
    "text", ['boom\n  File "/srv/x.py", line 1', "Traceback (most recent call last): /srv/x"]
)
def test_unreadable_dump(text):
    """A dump that no field can be read from is not passed on at all."""
    failure = parse_engine_error(500, json.dumps({**FLAT, "message": text}).encode())
    assert failure.message == "The engine refused the request."


RETYPED = {
    "flat": (
        Dialect.CHAT,
        400,
        FLAT,
        {
            **FLAT,
            "type": "X",
            "error": {"message": "m", "type": "X", "param": None, "code": "bad_request"},
        },
    ),
    "nested": (
        Dialect.CHAT,
        400,
        {"error": {"message": "m", "type": "t", "param": "p", "code": "c", "x": 1}},
        {"error": {"message": "m", "type": "X", "param": "p", "code": "c", "x": 1}},
    ),
    "Anthropic": (
        Dialect.MESSAGES,
        400,
        FLAT,
        {"type": "error", "error": {"type": "X", "message": "m"}, "request_id": "r1"},
    ),
    "not JSON": (
        Dialect.CHAT,
        400,
        b"oops",
        {
            "error": {
                "message": "The engine answered with status 400.",
                "type": "X",
                "param": None,
                "code": "bad_request",
            }
        },
    ),
}


@pytest.mark.parametrize(("dialect", "status", "body", "expected"), RETYPED.values(), ids=RETYPED)
def test_bad_request_type(dialect, status, body, expected):
    """It replaces `type` in a 400 of every shape, and no other key."""
    assert rendered(dialect, status, body, bad_request_type="X") == (400, expected)


@pytest.mark.parametrize("status", [404, 413, 422, 429, 500, 503])
def test_bad_request_type_touches_400_only(status):
    """Every other status keeps its type."""
    _, body = rendered(Dialect.CHAT, status, FLAT, bad_request_type="X")
    assert body["error"]["type"] == "BadRequestError"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_own_errors_in_both_dialects(kind):
    """Each row of the table renders as it says."""
    failure = failure_of(GatewayError(kind, "why", param="p"))
    assert json.loads(render_error(Dialect.RESPONSES, failure, request_id="r")) == {
        "error": {"message": "why", "type": kind.type, "param": "p", "code": kind.code}
    }
    assert json.loads(render_error(Dialect.MESSAGES, failure, request_id="r")) == {
        "type": "error",
        "error": {"type": kind.anthropic_type, "message": "why"},
        "request_id": "r",
    }
    assert (failure.status, failure.router_code) == (kind.status, kind.code)


def test_retyping_leaves_the_code_alone():
    """The gateway's own 400 is retyped too, and its 413 is not."""
    own = render_error(
        Dialect.CHAT, failure_of(bad_request("m")), request_id="r", bad_request_type="X"
    )
    assert json.loads(own)["error"] == {
        "message": "m",
        "type": "X",
        "param": None,
        "code": "bad_request",
    }
    large = failure_of(GatewayError(BODY_TOO_LARGE, "m"))
    body = render_error(Dialect.CHAT, large, request_id="r", bad_request_type="X")
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


FRAMES = {
    "code": ({"error": {"message": "m", "code": 503, "type": "SERVICE_UNAVAILABLE"}}, 503),
    "overloaded": ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, 503),
    "invalid": ({"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}, 400),
    "engine's own name": (
        {"type": "error", "error": {"type": "BadRequestError", "message": "m"}},
        400,
    ),
    "api error": ({"type": "error", "error": {"type": "api_error", "message": "m"}}, 502),
    "500": ({"error": {"message": "m", "code": 500}}, 502),
    "key": ({"error": {"message": "m", "code": 401}}, 502),
}


@pytest.mark.parametrize(("payload", "status"), FRAMES.values(), ids=FRAMES)
def test_error_frame_status(payload, status):
    """An error in a stream stands for the status the engine would have answered with."""
    assert parse_error_frame(payload).status == status


@pytest.mark.parametrize("said", [None, "", " ", "\n", {}, []])
def test_a_message_that_says_nothing(said):
    """A client is always told something."""
    told = {
        code: parse_error_frame({"error": {"message": said, "code": code}}).message
        for code in (400, 500)
    }
    assert told == {400: "The engine answered 400.", 500: "The engine failed."}
    assert parse_engine_error(422, json.dumps({"message": said}).encode()).message != ""


def test_error_event():
    """The same failure as the event that ends a stream, in either dialect."""
    failure = parse_error_frame({"error": {"message": "m", "code": 503}})
    assert render_error_event(Dialect.CHAT, failure, request_id="r") == (
        b'data: {"error":{"message":"m","type":"server_error","param":null,'
        b'"code":"overloaded"}}\n\n'
    )
    assert render_error_event(Dialect.MESSAGES, failure, request_id="r") == (
        b"event: error\n"
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"m"},'
        b'"request_id":"r"}\n\n'
    )
