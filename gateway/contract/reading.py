"""How a request's value is read, where a rule asks for a number or compares values.

The engine coerces what it is sent (`"0.7"`, `true`, `" 1 "`), so a rule that compared spellings
would be walked around, and a value that cannot be read is one that cannot be vouched for. These
functions read what the engine would read, from the raw JSON of one value.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.profile.rules import Value

_MAX_TEXT_BYTES: Final = 64
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MAX_SHOWN: Final = 64
_LITERALS: Final = {b"true": 1, b"false": 0, b"null": None}
# Unicode's White_Space, which is what pydantic trims; str.strip() would also take U+001C..U+001F.
_WHITE_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000"
)


def read_number(raw: bytes) -> int | float | None:
    """The number that the engine would take a value for.

    Booleans are 1 and 0. A text is read as pydantic's lax float: trimmed, or with single inner
    underscores (not both), up to 64 bytes. Integers stay exact.

    Args:
        raw: the JSON of the value.

    Returns:
        A finite number; None for what is none: other texts, lists, objects, null, NaN and
        infinities however they are written, numbers beyond a double.
    """
    first = raw[:1]
    if first == b'"':
        return _read_text(raw)
    if first in b"[{tfn":
        return _LITERALS.get(raw)
    number = float(raw)
    if not math.isfinite(number):
        return None
    # An integer within a double has at most 309 digits, so int() is cheap and allowed.
    return int(raw) if raw.removeprefix(b"-").isdigit() else number


def _read_text(raw: bytes) -> int | float | None:
    text = read_text(raw)
    if text is None or len(text.encode()) > _MAX_TEXT_BYTES:
        return None
    literal = text.strip(_WHITE_SPACE)
    if not _NUMBER.fullmatch(literal):
        if text.startswith("_") or text.endswith("_") or "__" in text:
            return None
        literal = text.replace("_", "")
        if not _NUMBER.fullmatch(literal):
            return None
    number = float(literal)
    if not math.isfinite(number):
        return None
    return int(literal) if literal.lstrip("+-").isdigit() else number


def read_text(raw: bytes) -> str | None:
    """The text that a value is; None for any other value."""
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None


def equals(raw: bytes, number: float | None, accepted: Value) -> bool:
    """Whether a request's value is the one that a rule accepts.

    Args:
        raw: the JSON of the request's value.
        number: what it reads as, where the rule is numeric; None where it is not, or where the
            value reads as no number.
        accepted: the operator's value.
    """
    if raw == accepted.wire:
        return True
    if number is not None:
        return number == accepted.value
    try:
        return _same(msgspec.json.decode(raw), accepted.value)
    except msgspec.DecodeError:  # a number beyond a double: no operator can have named it
        return False


def _same(got: object, wanted: object) -> bool:
    """Equality of JSON values: numbers by value, booleans only with booleans."""
    if isinstance(got, bool) or isinstance(wanted, bool):
        return got is wanted
    if isinstance(got, Mapping) and isinstance(wanted, Mapping):
        return got.keys() == wanted.keys() and all(_same(got[k], wanted[k]) for k in wanted)
    if isinstance(got, list) and isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return len(got) == len(wanted) and all(map(_same, got, wanted))
    return got == wanted


def show(raw: bytes) -> str:
    """A value as it is shown in a message: its JSON on one line, shortened to 64 characters."""
    text = raw[: 4 * (_MAX_SHOWN + 1)].decode("utf-8", "ignore")
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
