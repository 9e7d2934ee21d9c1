"""Log lines: one JSON object (or one line of text) each, on standard error.

A request leaves one line, at its end. Bodies, keys and servers' addresses are never logged;
what a client chose is cut to a sane length, and its control characters are escaped, so that a
request cannot forge a line.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, overload

from gateway.telemetry.record import Record

LEVELS: Final = ("debug", "info", "warning", "error")

MAX_TEXT: Final = 256
"""Characters of a logged text that came from outside."""

_REQUESTS: Final = logging.getLogger("gateway.request")


def log_request(record: Record) -> None:
    """Writes the line of a finished request (level info).

    The log record is made by hand: what `Logger.info` adds, a walk up the stack for the
    caller's name, would cost as much as all the rest and always give the same answer.
    """
    if not _REQUESTS.isEnabledFor(logging.INFO):
        return
    entry = logging.LogRecord(_REQUESTS.name, logging.INFO, __file__, 0, "request", None, None)
    entry.fields = {
        "request_id": record.request_id,
        "route": record.route,
        "dialect": record.dialect,
        "stream": record.stream,
        "model": _cut(record.model),
        "served": _cut(record.served),
        "server": record.server,
        "attempts": len(record.attempts),
        "status": record.status,
        "outcome": record.outcome,
        "error": _cut(record.error_code),
        "duration_ms": round(record.duration_ms, 1),
        "first_event_ms": _rounded(record.first_event_ms),
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "decisions": tuple(f"{one.change}:{one.field}" for one in record.decisions),
        "removed": record.removed,
        "dropped_tools": tuple(map(_cut, record.dropped_tools)),
    }
    _REQUESTS.handle(entry)


def configure(log_format: str | None = None, level: str = "info") -> None:
    """Sends every log line of the process to standard error, in one shape.

    Args:
        log_format: `json` or `text`; None: text on a terminal, else json.
        level: one of `LEVELS`, for the gateway's own lines; libraries are heard from warning on.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_for(log_format))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("gateway").setLevel(level.upper())
    # A log that cannot be written (its reader is gone) must not fill standard error with
    # tracebacks about it, nor stop the service.
    logging.raiseExceptions = False


def formatter_for(log_format: str | None) -> logging.Formatter:
    """The formatter of a log format; None: by what standard error is."""
    chosen = log_format or ("text" if sys.stderr.isatty() else "json")
    return TextFormatter() if chosen == "text" else JsonFormatter()


class JsonFormatter(logging.Formatter):
    """One JSON object a line, ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        """The line: time, level, event, then the record's own fields or its logger."""
        line: dict[str, object] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= _fields(record)
        line.setdefault("logger", _LOGGER_NAMES.get(record.name, record.name))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, separators=(",", ":"), default=str)


class TextFormatter(logging.Formatter):
    """One line for people: time, level, event, then name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a traceback follows it where there is one."""
        parts = [_timestamp(record.created), f"{record.levelname.lower():7}"]
        parts.append(_printable(record.getMessage()))
        parts += [f"{name}={_shown(value)}" for name, value in _fields(record).items() if value]
        if record.exc_info:
            parts.append("\n" + self.formatException(record.exc_info))
        return " ".join(parts)


_LOGGER_NAMES: Final = {"gunicorn.error": "gunicorn", "gunicorn.access": "gunicorn"}


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


def _timestamp(created: float) -> str:
    moment = datetime.fromtimestamp(created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


@overload
def _cut(text: str) -> str: ...
@overload
def _cut(text: None) -> None: ...
def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_TEXT:
        return text
    return text[:MAX_TEXT] + "…"


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _shown(value: object) -> str:
    """A value as one word: quoted where it could be read as something else."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if re.fullmatch(r"[\w.:/@+,\-…]+", text, re.ASCII) else json.dumps(text)
