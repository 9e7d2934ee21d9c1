"""JSON bodies: what is refused, what survives, what an edit leaves alone."""

import json
import threading

import pytest

from gateway import jsonbody
from gateway.errors import BAD_REQUEST, GatewayError
from gateway.jsonbody import REMOVE, parse_object, parse_value, render_value

AT_THE_LIMIT = 255  # arrays inside the object that is the root


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "is empty", id="nothing"),
        pytest.param(b" \r\n\t", "is empty", id="space"),
        pytest.param(b"[1]", "must be a JSON object, not an array", id="array"),
        pytest.param(b'"x"', "must be a JSON object, not a text", id="text"),
        pytest.param(b"1.5", "must be a JSON object, not a number", id="number"),
        pytest.param(b"true", "must be a JSON object, not a boolean", id="boolean"),
        pytest.param(b"null", "must be a JSON object, not null", id="null"),
        pytest.param(b'{"a":NaN}', "byte 5, near 'NaN}'", id="NaN"),
        pytest.param(b'{"a":[Infinity]}', "byte 6, near 'Infinity]}'", id="Infinity"),
        pytest.param(b'{"a":-Infinity}', "near 'Infinity}'", id="-Infinity"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', "byte order mark (byte 0)", id="BOM"),
        pytest.param(b'{"a":1} x', "trailing characters (byte 8, near 'x')", id="garbage"),
        pytest.param(b'{"a":1}{"b":2}', "trailing characters (byte 7", id="second object"),
        pytest.param(b'{"a":1}\x00', "trailing characters (byte 7", id="trailing NUL"),
        pytest.param(b'{"a":"\x01"}', "invalid character (byte 6", id="control character"),
        pytest.param(b'{"a":"\n"}', "invalid character (byte 6", id="line break in a text"),
        pytest.param(b'{"a":"\xff"}', "UTF-8 (invalid start byte, byte 6)", id="not UTF-8"),
        pytest.param(b'{"a":{"\xff":1}}', "UTF-8 (invalid start byte, byte 7)", id="key"),
        pytest.param(b'{"a":"\xc0\x80"}', "UTF-8 (invalid start byte, byte 6)", id="overlong"),
        pytest.param(b'{"a":"\xed\xa0\x80"}', "UTF-8 (invalid", id="surrogate in UTF-8"),
        pytest.param(b'{"a":"\xe4\xb8', "UTF-8 (unexpected end of data, byte 6)", id="cut char"),
        pytest.param(b'{"a":"\\ud800"}', "a lone surrogate escape", id="lone high"),
        pytest.param(b'{"a":"\\ud800 and more text"}', "a lone surrogate escape", id="high, text"),
        pytest.param(b'{"a":"\\ud800\\n and more"}', "a lone surrogate escape", id="high, escape"),
        pytest.param(b'{"a":"\\udc00"}', "a lone surrogate escape", id="lone low"),
        pytest.param(b'{"\\ud800":1}', "a lone surrogate escape", id="lone in a key"),
        pytest.param(b'{"a":"\\ud83d\\ude00', "ends too early (byte 18)", id="cut after a pair"),
        pytest.param(b'{"a":"x', "ends too early (byte 7)", id="cut text"),
        pytest.param(b'{"a":[1', "ends too early (byte 7)", id="cut array"),
        pytest.param(b'{"a":1,}', "trailing comma", id="trailing comma"),
        pytest.param(b"{'a':1}", "keys must be strings (byte 1", id="single quotes"),
        pytest.param(b'{"a":01}', "invalid number", id="leading zero"),
        pytest.param(b'{"a":/**/1}', "invalid character (byte 5", id="comment"),
    ],
)
def test_refused_bodies(raw: bytes, said: str) -> None:
    """What is not strict JSON of an object is a 400 that says what is wrong and where."""
    with pytest.raises(GatewayError) as refused:
        parse_object(raw)
    assert refused.value.kind is BAD_REQUEST
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("raw", "name", "kept"),
    [
        pytest.param(b'{"a":1.0}', "a", b"1.0", id="1.0"),
        pytest.param(b'{"a":1e2}', "a", b"1e2", id="exponent"),
        pytest.param(b'{"a":1e400}', "a", b"1e400", id="beyond a double"),
        pytest.param(b'{"a":' + b"9" * 5000 + b"}", "a", b"9" * 5000, id="5000 digits"),
        pytest.param(b'{"a":0.1000000000000000055}', "a", b"0.1000000000000000055", id="long"),
        pytest.param(b'{"a":"\\u00e9"}', "a", b'"\\u00e9"', id="escape"),
        pytest.param(b'{"a":"\\ud83d\\ude00"}', "a", b'"\\ud83d\\ude00"', id="pair"),
        pytest.param(b'{"a": [1 , 2] }', "a", b"[1 , 2]", id="spacing inside"),
        pytest.param(b'{"a":1,"a":2}', "a", b"2", id="last of a repeated key"),
        pytest.param(b'{"\\u0061":3}', "a", b"3", id="escaped key"),
        pytest.param(b'{"":0}', "", b"0", id="empty key"),
        pytest.param(b'{"a":null}', "a", b"null", id="null"),
    ],
)
def test_raw_values(raw: bytes, name: str, kept: bytes) -> None:
    """A value is at hand as the client spelled it; of a repeated key the last one counts."""
    assert parse_object(raw).get_raw(name) == kept


def test_probing() -> None:
    """Absent and null are unset; a default stands in for an absent key only."""
    body = parse_object(b'{"a":null,"b":[1],"a\\tb":"x"}')
    assert list(body.keys()) == ["a", "b", "a\tb"]
    assert ("a" in body, "c" in body) == (True, False)
    assert (body.is_unset("a"), body.is_unset("b"), body.is_unset("c")) == (True, False, True)
    assert (body.get("a", 7), body.get("b", 7), body.get("c", 7)) == (None, [1], 7)
    assert body.get_raw("c") is None


def test_number_without_a_value() -> None:
    """A number beyond a double is a clean 400 where it is asked for, and only there."""
    body = parse_object(b'{"a":[1e400],"b":1}')
    assert body.get("b") == 1
    with pytest.raises(GatewayError, match=r"^a holds a number that is out of range") as refused:
        body.get("a")
    assert refused.value.param == "a"


@pytest.mark.parametrize("number", [b"1e400", b"9" * 5000, b"-1e999"])
def test_shape_has_no_number_to_refuse(number: bytes) -> None:
    """Where only structure and texts matter, no number is refused."""
    body = parse_object(b'{"a":["x",' + number + b"]}")
    assert body.get_shape("a") == ["x", 0]
    assert body.get_shape("b") is None


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param((b"[", b"]"), id="arrays"),
        pytest.param((b'{"a":', b"}"), id="objects"),
        pytest.param((b'["]]]",{"\\"}":', b'},"[[["]'), id="brackets in texts"),
    ],
)
def test_nesting(inner: tuple[bytes, bytes]) -> None:
    """Nesting up to 256 is read, the root being 1; deeper is a 400, at any depth."""
    opened, closed = inner
    levels = opened.count(b"[") + opened.count(b"{") - opened.count(b'"[')
    times = AT_THE_LIMIT // levels

    def nested(times: int) -> bytes:
        return b'{"k":' + opened * times + b"0" + closed * times + b',"l":[]}'

    assert parse_object(nested(times)).get_raw("l") == b"[]"
    for deeper in (times + 1, 100_000):
        with pytest.raises(GatewayError, match="nested more than 256 levels deep"):
            parse_object(nested(deeper))


def test_wide_is_not_deep() -> None:
    """Many brackets side by side, also within texts, are no nesting."""
    wide = b'{"m":[' + b",".join([b'{"c":["[[[[","\\"[\\\\",[]]}'] * 40_000) + b"]}"
    assert len(wide) > 2 * 256 * 1024
    assert "m" in parse_object(wide)


def test_a_long_text_is_not_deep() -> None:
    """Brackets in a text are no nesting, however long the text is."""
    text = b'"' + b"[" * 600_000 + b'"'
    assert "n" in parse_object(b'{"m":%b,"n":%b}' % (text, text))


def test_depth_across_pieces() -> None:
    """Nesting is counted over the whole body, however far apart its levels are."""
    step = b"[" + b"[]," * 100_000
    assert "m" in parse_object(b'{"m":' + step * 3 + b"0" + b"]" * 3 + b"}")
    with pytest.raises(GatewayError, match="nested more than 256"):
        parse_object(b'{"m":' + step * 3 + b"[" * 253 + b"]" * 253 + b"]" * 3 + b"}")


def test_characters_across_pieces() -> None:
    """Characters of several bytes are read wherever the pieces of the check are cut."""
    for shift in range(4):
        text = "x" * shift + "😀" * 200_000
        assert parse_object(f'{{"a":"{text}"}}'.encode()).get("a") == text
        with pytest.raises(GatewayError, match="not valid UTF-8"):
            parse_object(f'{{"a":"{text}'.encode() + b'\xff"}')


@pytest.mark.parametrize("key", [b'"a%d":0', b'"a":%d'], ids=["distinct", "repeated"])
def test_many_keys(key: bytes) -> None:
    """A large body of millions of top-level keys is refused before it fills the memory."""
    raw = b"{" + b",".join(key % index for index in range(150_000)) + b"}"
    with pytest.raises(GatewayError, match="more than 10000 top-level keys"):
        parse_object(raw)


@pytest.mark.parametrize(
    ("raw", "edits", "edited"),
    [
        pytest.param(b'{"a": 1 }', {}, b'{"a": 1 }', id="nothing"),
        pytest.param(b'{"a": 1 }', {"b": REMOVE}, b'{"a": 1 }', id="absent removed"),
        pytest.param(b'{"a": 1 }', {"a": b"1"}, b'{"a": 1 }', id="same value"),
        pytest.param(b"{}", {"a": b"1"}, b'{"a":1}', id="into an empty object"),
        pytest.param(b" { \n} ", {"a": b"1"}, b' { \n"a":1} ', id="into space"),
        pytest.param(b'{"x" : 1e2 }\n', {"a": b"1"}, b'{"x" : 1e2 ,"a":1}\n', id="spliced in"),
        pytest.param(b'{"x":"}"}', {"a": b"1"}, b'{"x":"}","a":1}', id="brace in a text"),
        pytest.param(b'{"x":1}', {"a": b"1", "b": b"2"}, b'{"x":1,"a":1,"b":2}', id="two"),
        pytest.param(b'{"x":1}', {'q"\n': b"1"}, b'{"x":1,"q\\"\\n":1}', id="odd key"),
        pytest.param(
            b'{"x" : 1.0, "a":1 ,"y":"\\u00e9"}',
            {"a": b"2"},
            b'{"x" : 1.0,"a":2,"y":"\\u00e9"}',
            id="replaced",
        ),
        pytest.param(b'{"x":1,"a":1,"y":2}', {"a": REMOVE}, b'{"x":1,"y":2}', id="removed"),
        pytest.param(b'{"a":1}', {"a": REMOVE}, b"{}", id="all removed"),
        pytest.param(b'{"a":1}', {"a": REMOVE, "b": b"2"}, b'{"b":2}', id="removed and added"),
        pytest.param(b'{"a":1,"x":1,"a":2}', {"a": b"3"}, b'{"x":1,"a":3}', id="repeated, once"),
        pytest.param(b'{"a":1,"x":1,"a":2}', {"a": b"2"}, b'{"x":1,"a":2}', id="folded"),
        pytest.param(b'{"a":1,"x":1,"a":2}', {"a": REMOVE}, b'{"x":1}', id="repeated, removed"),
        pytest.param(b'{"x":1,"a":1,"x":2}', {"a": b"9"}, b'{"x":1,"a":9,"x":2}', id="others"),
        pytest.param(b'{"x":12,"a":1,"x":1}', {"a": b"9"}, b'{"x":12,"a":9,"x":1}', id="prefix"),
        pytest.param(b'{"\\u0061":1}', {"a": b"2"}, b'{"\\u0061":2}', id="escaped key"),
        pytest.param(b'{"\\u0061":1,"a":5}', {"a": b"2"}, b'{"a":2}', id="escaped and repeated"),
        pytest.param(b'{"a\\"":1,"b":2}', {"b": REMOVE}, b'{"a\\"":1}', id="quote in a key"),
        pytest.param(
            b'{"x":[{"a":1}],"s":"\\"a\\":1","a":1}',
            {"a": REMOVE},
            b'{"x":[{"a":1}],"s":"\\"a\\":1"}',
            id="never inside a value",
        ),
    ],
)
def test_edits(raw: bytes, edits: jsonbody.Edits, edited: bytes) -> None:
    """Added, replaced and removed keys; every other value keeps its bytes and its place."""
    body = parse_object(raw)
    assert body.edit(edits) == edited
    after = body.edited(edits)
    assert after.raw == edited
    again = parse_object(edited)
    names = sorted(again.keys())
    assert sorted(after.keys()) == names
    assert [after.get_raw(name) for name in names] == [again.get_raw(name) for name in names]


def test_the_shortest_repetition() -> None:
    """The shortest entry there is, repeated, is found."""
    assert parse_object(b'{"":0,"":0}').repeats("")
    assert parse_object(b'{"":0,"":0}').edit({"": b"0"}) == b'{"":0}'


def test_nothing_to_change_is_the_same_object() -> None:
    """Without a change the very same bytes go on, uncopied."""
    body = parse_object(b'{ "a":1, "a":1e400 }')
    assert body.edit({}) is body.raw
    assert body.edited({"b": REMOVE}) is body


@pytest.mark.parametrize(
    ("raw", "repeats"),
    [
        pytest.param(b'{"n":1}', False, id="once"),
        pytest.param(b'{"n":1,"n":2}', True, id="twice"),
        pytest.param(b'{"n":1,"\\u006e":2}', True, id="twice, one escaped"),
        pytest.param(b'{"n" : 1 , "x" : {"n":2} }', False, id="once at the top, spaced"),
        pytest.param(b'{"x":1,"x":2,"n":2}', False, id="another key is repeated"),
        pytest.param(b'{"x":1}', False, id="absent"),
        pytest.param('{"é":"é","n":1,"n":1}'.encode(), True, id="beside characters of two bytes"),
        pytest.param(b'{"":0,"":0,"n":1}', False, id="the shortest entry is another's"),
    ],
)
def test_repeats(raw: bytes, repeats: bool) -> None:
    """A key is repeated where it occurs twice at the top level, however it is escaped."""
    assert parse_object(raw).repeats("n") is repeats


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        pytest.param(b"12345678901234567890123", 12345678901234567890123, id="big integer"),
        pytest.param(b"1.0", 1.0, id="1.0"),
        pytest.param(b'"\\ud800"', "\ud800", id="lone surrogate"),
        pytest.param(b'{"\\udc00":["\\ud83d\\ude00"]}', {"\udc00": ["😀"]}, id="and a pair"),
        pytest.param(b'[null,true,"x",{"a":1,"a":2}]', [None, True, "x", {"a": 2}], id="kinds"),
    ],
)
def test_values(raw: bytes, value: object) -> None:
    """Any value is built; integers stay integers, lone surrogates survive reading and writing."""
    read = parse_value(raw)
    assert (read, type(read)) == (value, type(value))
    assert parse_value(render_value(read)) == value


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "ends too early", id="nothing"),
        pytest.param(b"NaN", "not valid JSON", id="NaN"),
        pytest.param(b"1e400", "out of range", id="beyond a double"),
        pytest.param(b"9" * 5000, "out of range", id="5000 digits"),
        pytest.param(b'["\\ud800",NaN]', "out of range", id="NaN beside a surrogate"),
        pytest.param(b'["\\ud800",1e400]', "out of range", id="beyond, beside a surrogate"),
        pytest.param(b'["\\ud800",' + b"9" * 5000 + b"]", "out of range", id="digits beside one"),
        pytest.param(b'["\\ud800",]', "not valid JSON", id="malformed beside a surrogate"),
        pytest.param(b'"\xff"', "not UTF-8", id="not UTF-8"),
        pytest.param(b'"\\ud800\xff"', "not valid JSON", id="not UTF-8 beside a surrogate"),
        pytest.param(b"[" * 257 + b"]" * 257, "nested more than 256", id="257 levels"),
        pytest.param(b"[" * 100_000, "nested more than 256", id="100000 levels"),
        pytest.param(b'["\\ud800",' + b"[" * 257 + b"]" * 258, "nested more", id="beside one"),
    ],
)
def test_refused_values(raw: bytes, said: str) -> None:
    """A value is read as strictly as a body, and the message names what was read."""
    with pytest.raises(GatewayError, match=r"^arguments ") as refused:
        parse_value(raw, "arguments")
    assert said in refused.value.message


def test_rendering() -> None:
    """Compact ASCII; NaN and infinities, which JSON cannot say, are never written."""
    value = {"a": ["é", "\ud800", 1.0, 10**30, None, True]}
    assert render_value(value) == (
        b'{"a":["\\u00e9","\\ud800",1.0,1000000000000000000000000000000,null,true]}'
    )
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not JSON compliant"):
            render_value([number])


def test_threads_share_the_readers() -> None:
    """Bodies read at once in several threads do not mix."""
    found: list[bool] = []

    def read(number: int) -> None:
        raw = json.dumps({f"k{number}": [number] * 50, "n": number}).encode()
        found.append(all(parse_object(raw).get("n") == number for _ in range(300)))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
