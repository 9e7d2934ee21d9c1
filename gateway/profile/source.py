"""Reads one YAML file strictly, and says where every value stands.

Rules: scalars follow YAML 1.2's core schema; a repeated key, a tag of one's own, a second
document, and an alias inside its own anchor are errors; merge keys work, explicit keys win.
However mangled a file is, reading it ends soon: bytes, values (aliases counted at full size),
depth and key lengths are bounded, and nothing here recurses over the file's own depth.

The parser's events are composed here, not by PyYAML, whose composer recurses, and shares an
anchor's value without counting what it grows to.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from gateway.profile.findings import (
    MAX_FINDINGS,
    Finding,
    Mark,
    ProfileError,
    build_finding,
    one_line,
)
from gateway.profile.nodes import ListNode, MapNode, Node, ScalarNode, moved

MAX_FILE_BYTES: Final = 256 * 1024
MAX_VALUES: Final = 10_000
MAX_DEPTH: Final = 50
MAX_KEY_CHARACTERS: Final = 128
MAX_NUMBER_CHARACTERS: Final = 400

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE_TAG: Final = "tag:yaml.org,2002:"
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM: Final = "\ufeff"

_NULL: Final = re.compile(r"null|Null|NULL|~|")
_BOOL: Final = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def load_document(path: str, source: str | None = None) -> tuple[MapNode, list[Finding]]:
    """Reads a file.

    Args:
        path: as the operator wrote it.
        source: the name that findings and origins carry; the path where it is absent.

    Returns:
        The document (an empty file is an empty mapping), and the findings that did not keep it
        from being read.

    Raises:
        ProfileError: it cannot be read at all.
    """
    source = path if source is None else source
    return parse_document(_decode(_read(path, source), source), source)


def parse_document(text: str, source: str) -> tuple[MapNode, list[Finding]]:
    """Like `load_document`, from text."""
    text = text.removeprefix(_BOM)
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML"
        raise ProfileError(
            [build_finding(_mark_at(text, bad.start(), source), "yaml-syntax", message)]
        )
    composer = _Composer(source)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.feed(event)
    except yaml.MarkedYAMLError as error:
        raise ProfileError([_syntax_finding(error, text, source)]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser written in Python lets chr() speak for an escape beyond Unicode.
        raise ProfileError([build_finding(Mark(source), "yaml-syntax", str(error))]) from None
    root = composer.root
    if root is None or (isinstance(root, ScalarNode) and root.value is None):
        return MapNode(Mark(source)), composer.findings
    if not isinstance(root, MapNode):
        kind = "a list" if isinstance(root, ListNode) else "a single value"
        message = f"the top of a profile is {kind}; it must be a mapping of keys to values"
        raise ProfileError([*composer.findings, build_finding(root.mark, "top-level", message)])
    return root, composer.findings


def _read(path: str, source: str) -> bytes:
    def refuse(reason: str) -> ProfileError:
        shown = path or "(an empty path)"
        return ProfileError([build_finding(Mark(source), "unreadable", f"{shown}: {reason}")])

    try:
        # O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if os.path.islink(path):  # noqa: PTH114 - the path as written, not as Path folds it
            raise refuse("is a link that points to nothing") from None
        raise refuse("there is no such file") from None
    except (OSError, ValueError) as error:
        raise refuse(f"cannot be read: {_reason(error)}") from None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise refuse("is a directory; name the file in it")
        if not stat.S_ISREG(mode):
            raise refuse("is not a regular file")
        try:
            raw = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise refuse(f"cannot be read: {_reason(error)}") from None
    if len(raw) > MAX_FILE_BYTES:
        message = f"the file is larger than {MAX_FILE_BYTES // 1024} KiB"
        raise ProfileError([build_finding(Mark(source), "yaml-limits", message)])
    return raw


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _decode(raw: bytes, source: str) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = "the file is UTF-16, not UTF-8; save it as UTF-8"
        raise ProfileError([build_finding(Mark(source), "not-utf8", message)])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        message = f"the byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        mark = _mark_at(good.removeprefix(_BOM), len(good.removeprefix(_BOM)), source)
        raise ProfileError([build_finding(mark, "not-utf8", message)]) from None


def _mark_at(text: str, index: int, source: str) -> Mark:
    breaks = list(_LINE_BREAK.finditer(text, 0, index))
    return Mark(source, len(breaks) + 1, index - (breaks[-1].end() if breaks else 0) + 1)


def _syntax_finding(error: yaml.MarkedYAMLError, text: str, source: str) -> Finding:
    at = error.problem_mark or error.context_mark
    mark = Mark(source) if at is None else Mark(source, at.line + 1, at.column + 1)
    lines = _LINE_BREAK.split(text)
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    if line[mark.column - 1 : mark.column] == "\t" and "cannot start any token" in str(
        error.problem
    ):
        return build_finding(mark, "yaml-syntax", "a tab stands where YAML wants spaces")
    parts = (error.context, error.problem)
    return build_finding(mark, "yaml-syntax", ": ".join(part for part in parts if part))


class _NotOfTag(Exception):  # noqa: N818 - a signal between two functions here
    """A scalar is not what its tag says."""


def _resolve(text: str) -> str | int | float | bool | None:
    """A plain scalar's value under the core schema."""
    if _NULL.fullmatch(text):
        return None
    flag = _BOOL.fullmatch(text)
    if flag:
        return flag.group(1) is not None
    if text[0] not in "0123456789+-.":
        return text
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _NOT_FINITE.fullmatch(text)
    if special:
        sign = special.group(1)
        return float("nan") if sign is None else float(f"{sign}inf")
    return text


def _of_type(*types: type) -> Callable[[str], str | int | float | bool | None]:
    def resolve(text: str) -> str | int | float | bool | None:
        value = _resolve(text)
        if type(value) not in types:
            raise _NotOfTag
        return value

    return resolve


_SCALAR_TAGS: Final[dict[str | None, Callable[[str], str | int | float | bool | None]]] = {
    "!": str,
    f"{_CORE_TAG}str": str,
    f"{_CORE_TAG}int": _of_type(int),
    f"{_CORE_TAG}float": _of_type(float, int),
    f"{_CORE_TAG}bool": _of_type(bool),
    f"{_CORE_TAG}null": _of_type(type(None)),
}
_COLLECTION_TAGS: Final = {
    yaml.SequenceStartEvent: {None, "!", f"{_CORE_TAG}seq"},
    yaml.MappingStartEvent: {None, "!", f"{_CORE_TAG}map"},
}


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an anchor names: the value, how many values it is, and how deep."""

    node: Node
    values: int
    height: int


@dataclass(slots=True)
class _Frame:
    """A collection that is being read."""

    mark: Mark
    anchor: str | None
    mapping: MapNode | None
    items: list[Node] = field(default_factory=list)
    merges: dict[str, tuple[Mark, Node]] = field(default_factory=dict)
    key: tuple[str, Mark, bool, bool] | None = None  # text, mark, is a merge key, is not text
    values_before: int = 0
    height: int = 0


_OPEN: Final = _Anchored(ScalarNode(None, "", Mark("")), 0, 0)
"""Stands for an anchor whose value has not ended yet."""


class _Composer:
    """Builds the document from the parser's events, one at a time."""

    def __init__(self, source: str) -> None:
        self.root: Node | None = None
        self.findings: list[Finding] = []
        self._source = source
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._values = 0
        self._documents = 0

    def feed(self, event: Any) -> None:  # yaml's events, whose stubs are looser than they are
        """Takes the next event.

        Raises:
            ProfileError: the rest need not be read.
        """
        mark = Mark(self._source, event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._stop(mark, "several-documents", "a second document begins here")
            case yaml.AliasEvent():
                self._alias(str(event.anchor), mark)
            case yaml.ScalarEvent():
                self._scalar(event, mark)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._open(event, mark)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close()

    def _stop(self, mark: Mark, rule: str, message: str) -> ProfileError:
        return ProfileError([*self.findings, build_finding(mark, rule, message)])

    def _report(self, mark: Mark, rule: str, message: str) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            raise self._stop(mark, rule, f"{message} (and perhaps more: the check stops here)")
        self.findings.append(build_finding(mark, rule, message))

    def _count(self, values: int, height: int, mark: Mark) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            message = f"the document has more than {MAX_VALUES} values, aliases counted in full"
            raise self._stop(mark, "yaml-limits", message)
        depth = len(self._frames) + height
        if depth > MAX_DEPTH:
            raise self._stop(
                mark, "yaml-limits", f"the document is more than {MAX_DEPTH} levels deep"
            )
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, height)

    def _alias(self, name: str, mark: Mark) -> None:
        target = self._anchors.get(name)
        if target is None:
            raise self._stop(mark, "yaml-syntax", f"the alias *{name} has no anchor before it")
        if target is _OPEN:
            raise self._stop(mark, "yaml-limits", f"the alias *{name} stands inside its own anchor")
        self._count(target.values, target.height, mark)
        self._add(moved(target.node, mark), mark, merge=False)

    def _scalar(self, event: yaml.ScalarEvent, mark: Mark) -> None:
        text = event.value
        if len(text) > MAX_NUMBER_CHARACTERS and _FLOAT.fullmatch(text):
            message = f"a number of more than {MAX_NUMBER_CHARACTERS} characters"
            raise self._stop(mark, "yaml-limits", message)
        plain = event.tag is None and event.implicit[0]
        node = ScalarNode(self._resolve(event, mark, plain=plain), text, mark)
        self._count(1, 1, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, 1, 1)
        self._add(node, mark, merge=plain and text == "<<")

    def _resolve(
        self, event: yaml.ScalarEvent, mark: Mark, *, plain: bool
    ) -> str | int | float | bool | None:
        if plain:
            return _resolve(event.value)
        if event.tag is None:
            return str(event.value)
        read = _SCALAR_TAGS.get(event.tag)
        if read is None:
            self._report_tag(event.tag, mark)
            return str(event.value)
        try:
            return read(event.value)
        except _NotOfTag:
            name = event.tag.removeprefix(_CORE_TAG)
            self._report(
                mark, "yaml-tag", f"{event.value[:60]!r} is not a value of the tag !!{name}"
            )
            return str(event.value)

    def _report_tag(self, tag: Any, mark: Mark) -> None:
        spelled = f"!!{tag.removeprefix(_CORE_TAG)}" if tag.startswith(_CORE_TAG) else tag
        self._report(mark, "yaml-tag", f"the tag {spelled[:60]} is not allowed")

    def _open(self, event: yaml.CollectionStartEvent, mark: Mark) -> None:
        if event.tag not in _COLLECTION_TAGS[type(event)]:
            self._report_tag(event.tag, mark)
        frame = _Frame(mark, event.anchor, None, values_before=self._values)
        self._count(1, 1, mark)
        if isinstance(event, yaml.MappingStartEvent):
            frame.mapping = MapNode(mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
        self._frames.append(frame)

    def _close(self) -> None:
        frame = self._frames.pop()
        node: Node
        if frame.mapping is None:
            node = ListNode(tuple(frame.items), frame.mark)
        else:
            node = self._merged(frame.mapping, frame)
        height = frame.height + 1
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, height)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(
                node, self._values - frame.values_before, height
            )
        self._add(node, frame.mark, merge=False)

    def _add(self, node: Node, mark: Mark, *, merge: bool) -> None:
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        if frame.mapping is None:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._key(node, mark, merge=merge)
        else:
            self._put(frame, frame.mapping, frame.key, node)
            frame.key = None

    def _key(self, node: Node, mark: Mark, *, merge: bool) -> tuple[str, Mark, bool, bool]:
        if not isinstance(node, ScalarNode):
            raise self._stop(mark, "wrong-type", "a key must be text, not a list or a mapping")
        if len(node.text) > MAX_KEY_CHARACTERS:
            message = f"a key of more than {MAX_KEY_CHARACTERS} characters"
            raise self._stop(mark, "yaml-limits", message)
        return node.text, mark, merge, not isinstance(node.value, str)

    def _put(
        self, frame: _Frame, mapping: MapNode, key: tuple[str, Mark, bool, bool], node: Node
    ) -> None:
        name, mark, merge, odd = key
        first = frame.merges[name][0] if merge and name in frame.merges else None
        if not merge:
            first = mapping.key_marks.get(name)
        if first is not None:
            message = (
                f"the key {one_line(name)!r} is given twice: "
                f"first on line {first.line}, again on line {mark.line}"
            )
            self._report(mark, "duplicate-key", message)
        elif merge:
            frame.merges[name] = (mark, node)
        else:
            mapping.put(name, node, mark, odd=odd)

    def _merged(self, explicit: MapNode, frame: _Frame) -> MapNode:
        """The mapping with what its merge key brings in: earlier ones win, explicit keys first."""
        if not frame.merges:
            return explicit
        result = MapNode(explicit.mark)
        for mark, node in frame.merges.values():
            for source in node.items if isinstance(node, ListNode) else (node,):
                if not isinstance(source, MapNode):
                    self._report(mark, "merge-key", "<< takes a mapping, or a list of mappings")
                    continue
                for key in source:
                    if key not in result:
                        result.take(key, source)
        for key in explicit:
            result.take(key, explicit)
        return result
