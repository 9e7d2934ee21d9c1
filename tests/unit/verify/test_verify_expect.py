import json
from typing import Any

import pytest

from gateway.routes import Dialect
from gateway.verify import expect
from gateway.verify.cases import State
from gateway.verify.expect import Expected
from gateway.verify.seen import Answered, Seen, read

FINE = {"model": "m", "choices": [{"index": 0, "message": {"content": "a"}}]}


def answer(body: Any = FINE, status: int = 200, *, observing: bool = True, **headers: str) -> Seen:
    """A buffered chat answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read(Answered(status, named, raw), Dialect.CHAT, observing=observing)


def stream(raw: bytes, *, left: bool = False) -> Seen:
    """A streamed chat answer."""
    return read(Answered(200, {"content-type": "text/event-stream"}, raw, left), Dialect.CHAT)


def echo(**fields: Any) -> Seen:
    """The answer of an engine that got these fields."""
    text = json.dumps({"engine_echo": fields}, separators=(",", ":"))
    return answer({"choices": [{"index": 0, "message": {"content": text}}]})


def error(type: str = "t", status: int = 400, **headers: str) -> Seen:  # noqa: A002 - the wire's name
    """A refusal."""
    return answer({"error": {"message": "no", "type": type}}, status, **headers)


CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
CODE = "x_router_error_code"
P, F, U = State.PASSED, State.FAILED, State.UNSEEN

JUDGED: dict[str, tuple[Expected, Seen, State, str]] = {
    "accepted": (expect.accepted(), answer(), P, ""),
    "accepted: a 400": (expect.accepted(), error(), F, "got 400: no"),
    "accepted: nothing": (expect.accepted(), answer(b""), F, "got 200 with nothing in it"),
    "accepted: an error within": (
        expect.accepted(),
        stream(b'data: {"error": {"message": "no"}}\n\n'),
        F,
        "got 200: no",
    ),
    "accepted: a stream": (expect.accepted(), stream(CHUNK + b"data: [DONE]\n\n"), P, ""),
    "accepted: a stream that was left": (expect.accepted(), stream(CHUNK, left=True), P, ""),
    "accepted: a stream that was cut": (
        expect.accepted(),
        stream(CHUNK),
        F,
        "got a stream without a proper end",
    ),
    "refused": (expect.refused("c"), error(), P, ""),
    "refused by this gateway": (expect.refused("c"), error(**{CODE: "c"}), P, ""),
    "refused by another rule": (
        expect.refused("c"),
        error(**{CODE: "d"}),
        F,
        "got a 400 with the code d, not c",
    ),
    "refused: a 200": (expect.refused("c"), answer(), F, "got 200"),
    "refused: a 422": (expect.refused("c"), error(status=422), F, "got 422: no"),
    "refused: within a 200": (
        expect.refused("c"),
        stream(b'data: {"error": {"message": "no"}}\n\n'),
        F,
        "got 200: no",
    ),
    "refused: no error": (expect.refused("c"), answer({}, 400), F, "got a 400 without an error"),
    "a status": (expect.has_status(404), error(status=404), P, ""),
    "another status": (expect.has_status(404), answer(), F, "got 200"),
    "there": (expect.is_there(), error(), P, ""),
    "not there": (expect.is_there(), error(status=404), F, "got 404: no"),
    "forwarded": (expect.forwarded("n", b"1.0"), echo(n=1), P, ""),
    "forwarded: another": (
        expect.forwarded("n", b"1"),
        echo(n=2),
        F,
        "reached the engine with n 2",
    ),
    "forwarded: a boolean": (
        expect.forwarded("n", b"1"),
        echo(n=True),
        F,
        "reached the engine with n true",
    ),
    "forwarded: a text": (
        expect.forwarded("n", b"1"),
        echo(n="1"),
        F,
        'reached the engine with n "1"',
    ),
    "forwarded: nothing": (expect.forwarded("n", b"1"), echo(), F, "reached the engine without n"),
    "not forwarded": (expect.forwarded("n", None), echo(), P, ""),
    "not forwarded but as null": (expect.forwarded("n", None), echo(n=None), P, ""),
    "forwarded after all": (
        expect.forwarded("n", None),
        echo(n=1),
        F,
        "reached the engine with n 1",
    ),
    "forwarded: no echo": (
        expect.forwarded("n", b"1"),
        answer(),
        F,
        "the answer is no echo of what the engine got",
    ),
    "forwarded: refused": (expect.forwarded("n", b"1"), error(), F, "got 400: no"),
    "forwarded: out of sight": (
        expect.forwarded("n", b"1"),
        answer(observing=False),
        U,
        "what the engine gets is not seen from outside",
    ),
    "the model": (expect.names_model("m"), answer(), P, ""),
    "another model": (expect.names_model("a"), answer(), F, "the answer names 'm'"),
    "no model": (expect.names_model("a"), answer({}), U, "the answer names no model"),
    "no answer about a model": (expect.names_model("a"), error(), F, "got 400: no"),
    "the type": (expect.error_type("t"), error("t"), P, ""),
    "another type": (expect.error_type("a"), error("t"), F, "the type of the 400 is t"),
    "no type": (expect.error_type("a"), answer({}, 400), F, "the type of the 400 is none"),
    "the type of no 400": (expect.error_type("a"), answer(), U, "there was no 400"),
    "not the type": (expect.other_error_type("a"), error("t"), P, ""),
    "the type elsewhere": (expect.other_error_type("t"), error("t"), F, "the type of the 400 is t"),
    "reasoning": (
        expect.reasoning_called("reasoning"),
        answer({"choices": [{"message": {"reasoning": "a"}}]}),
        P,
        "",
    ),
    "reasoning by another name": (
        expect.reasoning_called("reasoning"),
        answer({"choices": [{"message": {"reasoning_content": "a"}}]}),
        F,
        "it is called reasoning_content",
    ),
    "reasoning by both names": (
        expect.reasoning_called("reasoning"),
        answer({"choices": [{"message": {"reasoning": "a", "reasoning_content": "a"}}]}),
        F,
        "it is called reasoning, reasoning_content",
    ),
    "no reasoning": (expect.reasoning_called("x"), answer(), U, "the model did not reason"),
    "no answer to reason in": (expect.reasoning_called("x"), error(), F, "got 400: no"),
    "listed": (
        expect.lists_models(("a", "b")),
        answer({"data": [{"id": "b"}, {"id": "a"}, {"id": "c"}]}),
        P,
        "",
    ),
    "not listed": (
        expect.lists_models(("a", "b")),
        answer({"data": [{"id": "b"}]}),
        F,
        "the list is without 'a'",
    ),
    "no list": (expect.lists_models(("a",)), answer({"data": 1}), F, "the list is without 'a'"),
    "no answer of a list": (expect.lists_models(("a",)), error(status=401), F, "got 401: no"),
}


@pytest.mark.parametrize(("expected", "seen", "state", "reason"), JUDGED.values(), ids=JUDGED)
def test_judged(expected: Expected, seen: Seen, state: State, reason: str) -> None:
    """What passes, what fails and why, and what cannot be told, which never passes."""
    _, judge = expected
    finding = judge(seen)
    assert finding.state is state
    assert finding.reason == reason or (reason and finding.reason.startswith(reason))
