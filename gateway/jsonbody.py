"""The only reader and writer of JSON bodies: strict reading, cheap probing, byte-exact edits.

A request body is read once, strictly, without building its values: `parse_object` yields a
`Body`, which knows the raw JSON of every top-level key and decodes one when it is asked for.
What has to change is changed in the bytes: an added key is spliced in before the last brace, a
replaced or removed one re-joins the raw text of the other keys. So a value that nobody governs
reaches the engine as the client spelled it (`1.0`, `1e2`, big integers, escapes).

Rules of reading: `NaN` and `Infinity`, bytes that are not UTF-8, a byte order mark, control
characters in texts, anything after the value, nesting beyond 256 (the root counts 1) and, for a
body, another thing than an object are refused. Every refusal is a `GatewayError` that says what
is wrong and at which byte. In a body lone surrogate escapes are refused as well (the engine's own
reader would refuse them, with less to say); in a value on its own they survive.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NoReturn

import msgspec

from gateway.errors import GatewayError, bad_request
from gateway.jsontext import MAX_DEPTH, check_text, is_too_deep

MAX_KEYS: Final = 10_000
"""The most top-level keys a body may have: what is done once per key stays bounded."""


class Remove(Enum):
    """The type of `REMOVE`."""

    REMOVE = "remove"


REMOVE: Final = Remove.REMOVE
"""As the new value of a key: the key goes."""

Edits = Mapping[str, bytes | Remove]
"""By top-level key: its new JSON, or `REMOVE`."""

_LARGE_BYTES: Final = 1024 * 1024
_KEY: Final = re.compile(
    rb'[ \t\n\r]*+[{,][ \t\n\r]*+("[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\n\r]*+:[ \t\n\r]*+)',
    re.DOTALL,
)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE_HIGH: Final = re.compile(rb"\\u[dD][89abAB]..[^\\]")
_OFFSET: Final = re.compile(r"\s*\(byte (\d+)\)")

_NULL: Final = msgspec.Raw(b"null")
_ARTICLES: Final = {
    "array": "an array",
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "a boolean",
}

_decode_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = json.JSONEncoder(
    allow_nan=False, check_circular=False, separators=(",", ":")
).encode


class _Occurrence:
    """A top-level key where it occurs: not equal to another of the same name.

    As the type of a dict's keys it makes the decoder keep every occurrence.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name


class Body:
    """A JSON object as it came, with its top-level keys at hand. Immutable.

    Of a key that is repeated the last value counts, which is also the one the engine reads. Keys
    are known by what they decode to, however they were escaped.

    Attributes:
        raw: the bytes.
    """

    __slots__ = ("_members", "_repeated", "_values", "raw")

    def __init__(self, raw: bytes, values: dict[str, msgspec.Raw]) -> None:
        """Not called directly: see `parse_object`."""
        self.raw: Final = raw
        self._values: Final = values
        self._members: dict[_Occurrence, msgspec.Raw] | None = None
        self._repeated: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        """Whether the key is there, be it with null."""
        return name in self._values

    def keys(self) -> Iterable[str]:
        """The top-level keys, each once, in the order of their first occurrence."""
        return self._values.keys()

    def get_raw(self, name: str) -> bytes | None:
        """The JSON of a key's last value; None where the key is absent."""
        value = self._values.get(name)
        return None if value is None else bytes(value)

    def is_unset(self, name: str) -> bool:
        """Whether the key is absent or null: clients serialise unset options as null."""
        value = self._values.get(name)
        return value is None or value == _NULL

    def get(self, name: str, default: object = None) -> object:
        """A key's last value, decoded; `default` where the key is absent.

        Raises:
            GatewayError: a number in it has no value here (`1e400`).
        """
        value = self._values.get(name)
        if value is None:
            return default
        try:
            return _decode_any(value)
        except msgspec.DecodeError:  # well-formed, so all it can be is a number
            raise _out_of_range(name, name) from None

    def get_shape(self, name: str) -> object:
        """A key's last value, decoded, where only its structure and texts matter.

        Unlike `get` it has no number to refuse: one without a value here is read as 0.
        """
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return _decode_any(value)
        except msgspec.DecodeError:
            return json.loads(bytes(value).decode(), parse_float=_zero, parse_int=_zero)

    def repeats(self, name: str) -> bool:
        """Whether the top-level key occurs more than once."""
        if self._repeated is None:
            self._repeated = self._find_repeated()
        return name in self._repeated

    def edit(self, edits: Edits) -> bytes:
        """The bytes with some top-level keys changed.

        Args:
            edits: an absent key is added at the end, a key that is there gets the new value, or
                goes. A key named here that is repeated is there once afterwards, at the place
                of its last occurrence.

        Returns:
            The very same bytes where nothing changes. Otherwise every other value keeps its
            bytes, and the other keys their order, repeated ones included.
        """
        added: list[bytes] = []
        changed: dict[str, bytes | Remove] = {}
        for name, new in edits.items():
            old = self._values.get(name)
            if old is not None:
                if new is REMOVE or bytes(old) != new or self.repeats(name):
                    changed[name] = new
            elif new is not REMOVE:
                added.append(b"%b:%b" % (render_value(name), new))
        if changed:
            return b"{%b}" % b",".join((*self._kept(changed), *added))
        if not added:
            return self.raw
        brace = self.raw.rindex(b"}")
        comma = b"," if self._values else b""
        return b"".join((self.raw[:brace], comma, b",".join(added), self.raw[brace:]))

    def edited(self, edits: Edits) -> "Body":
        """The body with some top-level keys changed, by the rules of `edit`."""
        raw = self.edit(edits)
        if raw is self.raw:
            return self
        values = dict(self._values)
        for name, new in edits.items():
            if new is REMOVE:
                values.pop(name, None)
            else:
                values[name] = msgspec.Raw(new)
        return Body(raw, values)

    def _kept(self, changed: Mapping[str, bytes | Remove]) -> Iterator[bytes | memoryview]:
        """The text of every member that stays, with the changed values in place."""
        members = self._list_members()
        last = {member.name: member for member in members}
        view, at = memoryview(self.raw), 0
        for member, value in members.items():
            key = _KEY.match(self.raw, at)
            assert key is not None, "the decoder found a key here"
            at = key.end() + len(memoryview(value))
            new = changed.get(member.name)
            if new is None:
                yield view[key.start(1) : at]
            elif new is not REMOVE and last[member.name] is member:
                yield key[1] + new

    def _find_repeated(self) -> frozenset[str]:
        """The names of the keys that occur more than once.

        What most SDKs send has no spaces, so its length alone says that there are none.
        """
        # An entry needs two quotes, a colon and a comma; a repeated one at least five bytes.
        needed = sum(map(len, self._values)) + 4 * len(self._values) + 1
        needed += sum(len(memoryview(value)) for value in self._values.values())
        if len(self.raw) - needed < len(b',"":0'):
            return frozenset()
        counts = Counter(member.name for member in self._list_members())
        return frozenset(name for name, count in counts.items() if count > 1)

    def _list_members(self) -> dict[_Occurrence, msgspec.Raw]:
        """Every top-level key, repeated ones too, in order, with its value."""
        if self._members is None:
            self._members = _decode_members(self.raw)
        return self._members


def parse_object(raw: bytes) -> Body:
    """Read a request body strictly.

    Args:
        raw: the bytes, decompressed.

    Raises:
        GatewayError: `bad_request`, with what is wrong and where.
    """
    check_text(raw)
    try:
        values = _decode_object(raw) if len(raw) < _LARGE_BYTES else _decode_large(raw)
    except RecursionError:
        raise _too_deep("The request body") from None
    except msgspec.ValidationError as error:
        got = str(error).rpartition("got ")[2].strip("`")
        msg = f"The request body must be a JSON object, not {_ARTICLES.get(got, got)}."
        raise bad_request(msg) from None
    except msgspec.DecodeError as error:
        _refuse("The request body", raw, error)
    if is_too_deep(raw):
        raise _too_deep("The request body")
    if len(values) > MAX_KEYS:
        raise _too_many_keys()
    return Body(raw, values)


def parse_value(raw: bytes, name: str = "The value") -> object:
    """Read any JSON value strictly, and build it: for converters and engine replies.

    Integers stay integers at any size. Lone surrogate escapes survive.

    Args:
        raw: the JSON.
        name: what it is, for the message of an error.

    Returns:
        dict, list, str, int, float, bool or None.

    Raises:
        GatewayError: `bad_request`; also for a number beyond a double (`1e400`).
    """
    try:
        value: object = _decode_any(raw)
    except RecursionError:
        raise _too_deep(name) from None
    except msgspec.DecodeError as error:
        if _SURROGATE.search(raw) is None:
            _refuse(name, raw, error)
        try:
            value = json.loads(raw.decode(), parse_constant=_no_value, parse_float=_finite)
        except RecursionError:
            raise _too_deep(name) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as found:
            msg = f"{name} is not valid JSON: {found}."
            raise bad_request(msg) from None
        except ValueError:  # NaN, or too large
            raise _out_of_range(name) from None
    if is_too_deep(raw):
        raise _too_deep(name)
    return value


def render_value(value: object) -> bytes:
    """Write a value as compact JSON in ASCII, so that lone surrogates survive.

    Raises:
        ValueError: NaN or an infinity is in it, which JSON cannot say.
    """
    return _encode(value).encode("ascii")


def _decode_members(raw: bytes) -> dict[_Occurrence, msgspec.Raw]:
    """The top-level members of an object, repeated keys included.

    The decoder is made anew each time because it counts; making it takes 2 µs.
    """
    count = 0

    def occur(_: type, name: str) -> _Occurrence:
        nonlocal count
        count += 1
        if count > MAX_KEYS:
            raise _too_many_keys()
        return _Occurrence(name)

    return msgspec.json.Decoder(dict[_Occurrence, msgspec.Raw], dec_hook=occur).decode(raw)


def _decode_large(raw: bytes) -> dict[str, msgspec.Raw]:
    """Like `_decode_object`, but millions of keys are refused before they fill the memory."""
    return {member.name: value for member, value in _decode_members(raw).items()}


def _refuse(name: str, raw: bytes, error: msgspec.DecodeError) -> NoReturn:
    """Raise what the reader found, in words for a client: what, which byte, near what."""
    text = str(error).removeprefix("JSON is malformed: ")
    offset = _OFFSET.search(text)
    at = len(raw) if offset is None else int(offset[1])
    if isinstance(error, msgspec.ValidationError):
        raise _out_of_range(name) from None
    # The decoder looks for the other half of a pair, and takes a near end of the text for a cut.
    is_cut = offset is None and _LONE_HIGH.search(raw, max(0, at - 16)) is not None
    if is_cut or "surrogate" in text or "hex escape" in text:
        reason = f"a lone surrogate escape (before byte {at})"
    elif offset is not None:
        at -= text.startswith("trailing")  # counted one too many there
        near = ascii(raw[at : at + 12].decode("utf-8", "replace"))
        reason = f"{_OFFSET.sub('', text)} (byte {at}, near {near})"
    else:
        reason = "not UTF-8" if "UTF-8" in text else f"it ends too early (byte {at})"
    msg = f"{name} is not valid JSON: {reason}."
    raise bad_request(msg) from None


def _too_deep(name: str) -> GatewayError:
    return bad_request(f"{name} is nested more than {MAX_DEPTH} levels deep.")


def _out_of_range(name: str, param: str | None = None) -> GatewayError:
    return bad_request(f"{name} holds a number that is out of range.", param)


def _too_many_keys() -> GatewayError:
    return bad_request(f"The request body has more than {MAX_KEYS} top-level keys.")


def _zero(_: str) -> int:
    return 0


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) < float("inf") else _no_value(text)


def _no_value(text: str) -> NoReturn:
    msg = f"{text} is out of range"
    raise ValueError(msg)
