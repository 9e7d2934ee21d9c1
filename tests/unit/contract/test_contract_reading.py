"""How a request's value is read."""

import json
from collections.abc import Callable

import pytest

from gateway.contract.reading import equals, read_number, read_text, show
from gateway.profile.rules import Value

BIG = 2**53 + 1  # the first integer that no double has


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"1", 1),
        (b"-0", 0),
        (b"1.0", 1.0),
        (b"1e2", 100.0),
        (b"1E+2", 100.0),
        (b"0.1000000000000000055", 0.1),
        (b"1e-400", 0.0),
        (b"1e308", 1e308),
        (b"1" + b"0" * 308, 10**308),
        (b"9007199254740993", BIG),
        (b"true", 1),
        (b"false", 0),
    ],
)
def test_numbers(raw: bytes, number: float) -> None:
    """Numbers are what a double has for them, integers exact; booleans are 1 and 0."""
    assert read_number(raw) == number


@pytest.mark.parametrize(
    "raw",
    [
        b"null",
        b"[]",
        b"[1]",
        b"{}",
        b'{"a":1}',
        b"1e309",
        b"-1e400",
        b"1" + b"0" * 309,
        b"9" * 5000,
        b"9" * 5000 + b".5",
    ],
    ids=lambda raw: f"{raw[:12].decode()} of {len(raw)}",
)
def test_no_numbers(raw: bytes) -> None:
    """Lists, objects, null and numbers beyond a double cannot be read."""
    assert read_number(raw) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1),
        ("-1.5", -1.5),
        ("+1", 1),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e2", 100.0),
        ("007", 7),
        (" 1\t\n", 1),
        ("\u00a01\u2003\u3000", 1),
        ("1_0", 10),
        ("1_0_0.5", 100.5),
        ("1_.5", 1.5),
        ("9007199254740993", BIG),
        ("0." + "1" * 62, 0.1111111111111111),
        ("", None),
        (" ", None),
        (".", None),
        ("e5", None),
        ("1e", None),
        ("_1", None),
        ("1_", None),
        ("1__0", None),
        (" 1_0", None),
        ("1_0 ", None),
        ("1 0", None),
        ("0x10", None),
        ("1,5", None),
        ("true", None),
        ("lots", None),
        ("NaN", None),
        ("nan", None),
        ("inf", None),
        ("-Infinity", None),
        ("in_f", None),
        ("1e400", None),
        ("\u0661", None),
        ("\uff11", None),
        ("\x1c1", None),
        ("\ufeff1", None),
        ("1\x00", None),
        ("0." + "1" * 63, None),
        ("\u00a0" * 32 + "1", None),
    ],
    ids=ascii,
)
def test_texts_as_numbers(text: str, number: float | None) -> None:
    """A text is read as pydantic's lax float: trimmed or with single inner underscores.

    Not both, and up to 64 bytes; NaN and infinities satisfy nothing.
    """
    assert read_number(json.dumps(text).encode()) == number
    assert read_number(json.dumps(text, ensure_ascii=False).encode()) == number


def test_texts_written_with_escapes() -> None:
    """A text is what it decodes to."""
    assert read_number(b'"\\u0031\\u002e5"') == 1.5
    assert read_text(b'"gener\\u0061l"') == "general"
    assert read_text(b"1") is None


@pytest.mark.parametrize(
    ("raw", "accepted", "numeric", "equal"),
    [
        (b"1.0", "1", True, True),
        (b'"1"', "1", True, True),
        (b"true", "1", True, True),
        (b"1", "1.0", True, True),
        (b"9007199254740993", "9007199254740992", True, False),
        (b"9007199254740992", "9007199254740993", True, False),
        (b'"9007199254740993"', "9007199254740993", True, True),
        (b"9007199254740992.0", "9007199254740992", True, True),
        (b"0.1", "0.10", True, True),
        (b'"nan"', "1", True, False),
        (b"1e400", "1", True, False),
        (b'"auto"', '"auto"', True, True),
        (b'"1"', "1", False, False),
        (b"true", "true", False, True),
        (b"1", "true", False, False),
        (b"true", "1", False, False),
        (b'"tru\\u0065"', '"true"', False, True),
        (b'"true"', "true", False, False),
        (b'[1, "a", {"b": 2.0}]', '[1,"a",{"b":2}]', False, True),
        (b"[1,true]", "[1,1]", False, False),
        (b"[1]", "[1,2]", False, False),
        (b'{"a":1}', '{"a":1,"b":2}', False, False),
        (b'{"a":1}', '["a"]', False, False),
        (b'"ab"', '["a","b"]', False, False),
        (b"[1e400]", "[1]", False, False),
    ],
)
def test_equality(
    value: Callable[[str], Value],
    raw: bytes,
    accepted: str,
    numeric: bool,
    equal: bool,
) -> None:
    """Under a numeric rule values are compared as numbers, integers exactly.

    Under another one as JSON, where a boolean is no number and a text is not read.
    """
    number = read_number(raw) if numeric else None
    assert equals(raw, number, value(accepted)) is equal


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param(b"0.30", "0.30", id="literal"),
        pytest.param(b'"a\\nb"', '"a\\nb"', id="escapes stay"),
        pytest.param(b"[1,\r\n 2]", "[1,   2]", id="one line"),
        pytest.param('"\u202ex"'.encode(), '" x"', id="nothing that turns text around"),
        pytest.param(b"1" * 64, "1" * 64, id="64 characters"),
        pytest.param(b"1" * 65, "1" * 63 + "…", id="65 characters"),
        pytest.param(('"' + "😀" * 100 + '"').encode(), '"' + "😀" * 62 + "…", id="characters"),
        pytest.param(b"[" + b"0," * 10_000_000 + b"0]", "[" + "0," * 31 + "…", id="20 MB"),
    ],
)
def test_shown_values(raw: bytes, shown: str) -> None:
    """A value in a message is its JSON, on one line, shortened to 64 characters."""
    assert show(raw) == shown
