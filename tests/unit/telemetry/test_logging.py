import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.contract import Change, Decision
from gateway.telemetry.logging import (
    MAX_TEXT,
    JsonFormatter,
    TextFormatter,
    configure,
    formatter_for,
    log_request,
)
from gateway.telemetry.record import Attempt, Record


def record_of(**fields: Any) -> Record:
    """A record with these fields; the others are those of a small answered request."""
    return Record(
        **{"request_id": "r1", "route": "chat", "dialect": "chat", "status": 200, **fields}
    )


RECORD = record_of(
    duration_ms=12.345,
    stream=True,
    model="kimi-latest",
    served="kimi",
    server="sgl-2",
    attempts=[Attempt("sgl-1", "upstream_unreachable"), Attempt("sgl-2")],
    first_event_ms=1.26,
    bytes_in=10,
    bytes_out=20,
    tokens_in=3,
    tokens_out=4,
    decisions=(
        Decision(Change.WRITTEN, "top_p", "sampling.params.top_p", None, b"0.95"),
        Decision(Change.CLAMPED, "max_tokens", "output.max_tokens.cap", b"9", b"8"),
    ),
    removed=("user",),
    dropped_tools=("web_search_20250305",),
)


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the request logger writes, in the shape of the parameter."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request.param())
    logger = logging.getLogger("gateway.request")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize("lines", [JsonFormatter], indirect=True)
def test_a_request_is_one_line_of_json(lines: io.StringIO) -> None:
    """Every field is there, rounded to tenths of a millisecond; a moment in UTC leads."""
    log_request(RECORD)
    (line,) = lines.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "info",
        "event": "request",
        "request_id": "r1",
        "route": "chat",
        "dialect": "chat",
        "stream": True,
        "model": "kimi-latest",
        "served": "kimi",
        "server": "sgl-2",
        "attempts": 2,
        "status": 200,
        "outcome": "ok",
        "error": None,
        "duration_ms": 12.3,
        "first_event_ms": 1.3,
        "bytes_in": 10,
        "bytes_out": 20,
        "tokens_in": 3,
        "tokens_out": 4,
        "decisions": ["written:top_p", "clamped:max_tokens"],
        "removed": ["user"],
        "dropped_tools": ["web_search_20250305"],
        "logger": "gateway.request",
    }


@pytest.mark.parametrize("lines", [TextFormatter], indirect=True)
def test_a_request_is_one_line_of_text(lines: io.StringIO) -> None:
    """name=value, and quotes where a value could be read as two."""
    log_request(
        record_of(
            status=404,
            outcome="rejected",
            error_code="model_not_found",
            duration_ms=1.0,
            model="a b\n=c",
        )
    )
    line = lines.getvalue()
    assert line.count("\n") == 1
    assert " info    request request_id=r1 route=chat dialect=chat " in line
    assert (
        ' model="a b\\n=c" status=404 outcome=rejected error=model_not_found duration_ms=1.0\n'
        in line
    )


@pytest.mark.parametrize("lines", [JsonFormatter, TextFormatter], indirect=True)
@pytest.mark.parametrize(
    "model",
    ["a\nforged", "\x1b[31m", "\ud800", "\u2028"],
    ids=["line-feed", "escape", "lone-surrogate", "line-separator"],
)
def test_a_client_cannot_forge_a_line(lines: io.StringIO, model: str) -> None:
    """What a client chose stays inside its line, and the line can always be encoded."""
    log_request(record_of(model=model))
    text = lines.getvalue()
    assert len(text.splitlines()) == 1
    assert text.isascii()


@pytest.mark.parametrize("lines", [JsonFormatter], indirect=True)
def test_long_names_are_cut(lines: io.StringIO) -> None:
    """A name of megabytes does not fill the log."""
    log_request(record_of(model="x" * 10_000))
    assert json.loads(lines.getvalue())["model"] == "x" * MAX_TEXT + "…"


def test_a_bug_carries_its_traceback() -> None:
    """In JSON as a field, so that it stays one line."""
    error = KeyError("a")
    record = logging.LogRecord("gateway.web", logging.ERROR, "", 0, "a bug", None, None)
    record.exc_info = (KeyError, error, None)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["traceback"].endswith("KeyError: 'a'")
    assert TextFormatter().format(record).endswith("KeyError: 'a'")


@pytest.mark.parametrize(
    ("asked", "terminal", "kind"),
    [
        ("json", True, JsonFormatter),
        ("text", False, TextFormatter),
        (None, True, TextFormatter),
        (None, False, JsonFormatter),
    ],
    ids=["json", "text", "terminal", "no-terminal"],
)
def test_the_format_follows_the_setting_or_the_terminal(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, terminal: bool, kind: type
) -> None:
    """Text is for people; a machine reads JSON."""
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    assert type(formatter_for(asked)) is kind


def test_libraries_are_heard_from_warning_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level is the gateway's; everything goes to standard error in one shape."""
    root, own = logging.getLogger(), logging.getLogger("gateway")
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    levels, raising = (root.level, own.level), logging.raiseExceptions
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    try:
        configure("json", "debug")
        logging.getLogger("urllib3").info("no")
        logging.getLogger("urllib3").warning("yes")
        logging.getLogger("gateway.x").debug("yes")
    finally:
        root.setLevel(levels[0])
        own.setLevel(levels[1])
        logging.raiseExceptions = raising
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["event"], each["logger"]) for each in events] == [
        ("yes", "urllib3"),
        ("yes", "gateway.x"),
    ]
