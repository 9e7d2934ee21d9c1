"""JSON bodies: what holds for any bytes and any object."""

import json
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import BAD_REQUEST, GatewayError
from gateway.jsonbody import REMOVE, Remove, parse_object, parse_value, render_value
from gateway.jsontext import MAX_DEPTH

Read = TypeVar("Read")

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.sampled_from(["a", "b", "n", "", "é", 'q"', "\\", "top_p"]) | texts
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
members = st.lists(st.tuples(names, values), max_size=6)
edits = st.dictionaries(names, values | st.just(REMOVE), max_size=4)
spaces = st.text(" \t\r\n", max_size=2)


@st.composite
def spelled_objects(draw: st.DrawFn) -> tuple[list[tuple[str, bytes]], bytes]:
    """An object in any spelling: spaces, escapes, repeated keys; and its members' own JSON."""
    parts = []
    written = []
    for name, value in draw(members):
        is_ascii = draw(st.booleans())
        key = json.dumps(name, ensure_ascii=is_ascii)
        if name == "n" and draw(st.booleans()):
            key = '"\\u006E"'
        separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
        text = json.dumps(value, ensure_ascii=is_ascii, separators=separators)
        a, b, c, d = draw(st.tuples(spaces, spaces, spaces, spaces))
        parts.append(f"{a}{key}{b}:{c}{text}{d}")
        written.append((name, text.encode()))
    pad = draw(spaces)
    return written, f"{pad}{{{pad}{','.join(parts)}}}{pad}".encode()


@given(spelled_objects(), edits)
def test_edits_are_dict_edits(
    spelled: tuple[list[tuple[str, bytes]], bytes], changes: Mapping[str, object]
) -> None:
    """An edit does what it would do to a dict; untouched members keep bytes and order."""
    written, raw = spelled
    encoded: dict[str, bytes | Remove] = {
        name: value if isinstance(value, Remove) else render_value(value)
        for name, value in changes.items()
    }
    wanted = json.loads(raw)
    for name, value in changes.items():
        if value is REMOVE:
            wanted.pop(name, None)
        else:
            wanted[name] = value

    edited = parse_object(raw).edit(encoded)

    assert json.loads(edited) == wanted
    pairs = json.loads(edited, object_pairs_hook=list, parse_float=str, parse_int=str)
    assert [name for name, _ in pairs if name not in changes] == [
        name for name, _ in written if name not in changes
    ]
    after = parse_object(edited)
    for name, text in dict(written).items():
        if name not in changes:
            assert after.get_raw(name) == text
            assert after.repeats(name) is ([n for n, _ in written].count(name) > 1)
    for name in changes:
        assert after.repeats(name) is False


@given(spelled_objects())
def test_reading_is_json_reading(spelled: tuple[list[tuple[str, bytes]], bytes]) -> None:
    """Every key is found with the value that the standard library reads."""
    _, raw = spelled
    body = parse_object(raw)
    wanted = json.loads(raw)
    assert sorted(body.keys()) == sorted(wanted)
    assert all(body.get(name) == value for name, value in wanted.items())
    assert parse_value(raw) == wanted
    assert body.edit({}) is raw


def parse_clean(parse: Callable[[bytes], Read], raw: bytes) -> Read | None:
    """What is read; None where the bytes are refused, which is all else that may happen."""
    try:
        return parse(raw)
    except GatewayError as refused:
        if refused.kind is not BAD_REQUEST:
            raise
        return None


@given(st.binary(max_size=40) | st.text('{}[]":,\\ud8009 tnNe-.é', max_size=40).map(str.encode))
@example(b'{"a":"\\ud800"}')
@example(b'{"a":1e999}')
def test_any_bytes(raw: bytes) -> None:
    """No bytes raise anything but a clean error, and what is read strictly is JSON."""
    parse_clean(parse_value, raw)
    body = parse_clean(parse_object, raw)
    if body is not None:
        json.loads(raw)
        assert parse_object(body.edit({"n": b"1", "b": REMOVE})).get("n") == 1


def deepest(value: object) -> int:
    """The nesting of a value, counted the plain way."""
    if isinstance(value, dict):
        return 1 + max(map(deepest, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(deepest, value), default=0)
    return 0


@given(values, st.integers(MAX_DEPTH - 6, MAX_DEPTH + 1), texts)
def test_depth_is_exact(value: object, levels: int, text: str) -> None:
    """A body is refused for its nesting exactly where the nesting is beyond the limit."""
    held: object = value
    for level in range(levels):
        held = [text, held] if level % 2 else {text: held, f"x[{text}": []}
    raw = json.dumps({"m": held}, ensure_ascii=False).encode()
    depth = 1 + levels + max(deepest(value), 1 if levels else 0)
    assert (parse_clean(parse_object, raw) is None) is (depth > MAX_DEPTH)


@given(st.text(max_size=10) | st.floats(allow_nan=False, allow_infinity=False))
def test_written_values_come_back(value: str | float) -> None:
    """What is written is read back as it was, lone surrogates included."""
    read = parse_value(render_value(value))
    assert read == value
    if isinstance(value, float) and isinstance(read, float):
        assert math.copysign(1, read) == math.copysign(1, value)
