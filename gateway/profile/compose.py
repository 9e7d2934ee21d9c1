"""Builds the document from the parser's events, so that every value knows where it stands.

Rules: a repeated key, a tag of one's own, a second document and an alias inside its own anchor
are errors; merge keys work, explicit keys win. PyYAML's own composer is not used: it recurses,
and it shares an anchor's value without counting what that grows to.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from gateway.profile.findings import MAX_FINDINGS, Finding, Mark, ProfileError, build_finding
from gateway.profile.nodes import ListNode, MapNode, Node, ScalarNode, moved
from gateway.profile.scalars import (
    CORE_TAG,
    TAGGED,
    NotOfTypeError,
    ScalarValue,
    is_numeral,
    resolve,
)

MAX_VALUES: Final = 10_000
MAX_CHARACTERS: Final = 1024 * 1024
MAX_DEPTH: Final = 50
MAX_KEY_CHARACTERS: Final = 128
MAX_NUMBER_CHARACTERS: Final = 400

_COLLECTION_TAGS: Final = (None, "!", f"{CORE_TAG}seq", f"{CORE_TAG}map")
_SHOWN_CHARACTERS: Final = 60
_SURROGATE: Final = re.compile("[\\ud800-\\udfff]")


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an anchor names, and how much that is, aliases counted in full."""

    node: Node
    values: int
    characters: int
    height: int


_UNFINISHED: Final = _Anchored(ScalarNode(None, "", Mark("")), 0, 0, 0)
"""Stands for an anchor whose value has not ended yet."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A key whose value has not come yet."""

    text: str
    mark: Mark
    merges: bool
    odd: bool


@dataclass(slots=True)
class _Frame:
    """A collection that is being read. `mapping` is None in a list, `items` unused in a mapping."""

    mark: Mark
    anchor: str | None
    mapping: MapNode | None
    values_before: int
    characters_before: int
    items: list[Node] = field(default_factory=list)
    merge: tuple[Mark, Node] | None = None
    key: _Key | None = None
    height: int = 0


class Composer:
    """Takes the parser's events one at a time.

    Args:
        source: the name that findings carry.
        secret: no message shows how a value is spelled.

    Attributes:
        root: the document's value, once all events are in; None where there is no document.
        findings: faults that do not keep the rest from being read.
    """

    def __init__(self, source: str, *, secret: bool = False) -> None:
        self._secret = secret
        self.root: Node | None = None
        self.findings: list[Finding] = []
        self._source = source
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._values = 0
        self._characters = 0
        self._documents = 0

    def feed(self, event: Any) -> None:  # the stubs of yaml's events are looser than the events
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
            case yaml.SequenceStartEvent():
                self._open(event, mark, None)
            case yaml.MappingStartEvent():
                self._open(event, mark, MapNode(mark))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close()

    def _stop(self, mark: Mark, rule: str, message: str) -> ProfileError:
        return ProfileError([*self.findings, build_finding(mark, rule, message)])

    def _report(self, mark: Mark, rule: str, message: str) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            raise self._stop(mark, rule, f"{message} (the check of this file stops here)")
        self.findings.append(build_finding(mark, rule, message))

    def _count(self, mark: Mark, *, values: int, characters: int, height: int) -> None:
        """Adds to what the document has grown to, before the value is built."""
        self._values += values
        self._characters += characters
        depth = len(self._frames) + height
        for grown, limit, what in (
            (self._values, MAX_VALUES, "values, aliases counted in full"),
            (self._characters, MAX_CHARACTERS, "characters, aliases counted in full"),
            (depth, MAX_DEPTH, "levels"),
        ):
            if grown > limit:
                raise self._stop(mark, "yaml-limits", f"the document has more than {limit} {what}")
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, height)

    def _alias(self, name: str, mark: Mark) -> None:
        target = self._anchors.get(name)
        shown = self._shown(f"*{name}")
        if target is None:
            raise self._stop(mark, "yaml-syntax", f"the alias {shown} has no anchor before it")
        if target is _UNFINISHED:
            message = f"the alias {shown} stands inside its own anchor: that has no end"
            raise self._stop(mark, "yaml-limits", message)
        self._count(mark, values=target.values, characters=target.characters, height=target.height)
        self._add(moved(target.node, mark), mark)

    def _scalar(self, event: yaml.ScalarEvent, mark: Mark) -> None:
        text = event.value
        if not text.isascii() and _SURROGATE.search(text):
            message = "an escape is half of a surrogate pair, which is no character"
            raise self._stop(mark, "yaml-syntax", message)
        quoted = event.tag is None and not event.implicit[0]
        if len(text) > MAX_NUMBER_CHARACTERS and not quoted and is_numeral(text):
            message = f"a number has more than {MAX_NUMBER_CHARACTERS} characters"
            raise self._stop(mark, "yaml-limits", message)
        self._count(mark, values=1, characters=len(text), height=1)
        value = text if quoted else self._resolve(event.tag, text, mark)
        node = ScalarNode(value, text, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, 1, len(text), 1)
        self._add(node, mark, merges=event.tag is None and not quoted and text == "<<")

    def _resolve(self, tag: str | None, text: str, mark: Mark) -> ScalarValue:
        if tag is None:
            return resolve(text)
        read = TAGGED.get(tag)
        if read is None:
            self._refuse_tag(tag, mark)
            return text
        try:
            return read(text)
        except NotOfTypeError:
            shown = self._shown(repr(text[:_SHOWN_CHARACTERS]))
            message = f"{shown} is not a value of the tag {_spell(tag)}"
            self._report(mark, "yaml-tag", message)
            return text

    def _refuse_tag(self, tag: str, mark: Mark) -> None:
        self._report(mark, "yaml-tag", f"the tag {self._shown(_spell(tag))} is not allowed")

    def _shown(self, text: str) -> str:
        return "(not shown)" if self._secret else text[: _SHOWN_CHARACTERS + 2]

    def _open(self, event: Any, mark: Mark, mapping: MapNode | None) -> None:
        if event.tag not in _COLLECTION_TAGS:
            self._refuse_tag(event.tag, mark)
        frame = _Frame(mark, event.anchor, mapping, self._values, self._characters)
        self._count(mark, values=1, characters=0, height=1)
        if event.anchor is not None:
            self._anchors[event.anchor] = _UNFINISHED
        self._frames.append(frame)

    def _close(self) -> None:
        frame = self._frames.pop()
        node: Node
        if frame.mapping is None:
            node = ListNode(tuple(frame.items), frame.mark)
        else:
            node = self._merged(frame.mapping, frame.merge)
        height = frame.height + 1
        if self._frames:
            self._frames[-1].height = max(self._frames[-1].height, height)
        if frame.anchor is not None:
            values = self._values - frame.values_before
            characters = self._characters - frame.characters_before
            self._anchors[frame.anchor] = _Anchored(node, values, characters, height)
        self._add(node, frame.mark)

    def _add(self, node: Node, mark: Mark, *, merges: bool = False) -> None:
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        if frame.mapping is None:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._key(node, mark, merges=merges)
        else:
            self._put(frame, frame.mapping, frame.key, node)
            frame.key = None

    def _key(self, node: Node, mark: Mark, *, merges: bool) -> _Key:
        if not isinstance(node, ScalarNode):
            raise self._stop(mark, "wrong-type", "a key must be text, not a list or a mapping")
        if len(node.text) > MAX_KEY_CHARACTERS:
            message = f"a key has more than {MAX_KEY_CHARACTERS} characters"
            raise self._stop(mark, "yaml-limits", message)
        return _Key(node.text, mark, merges, not isinstance(node.value, str))

    def _put(self, frame: _Frame, mapping: MapNode, key: _Key, node: Node) -> None:
        if key.merges:
            first = None if frame.merge is None else frame.merge[0]
        else:
            first = mapping.key_marks.get(key.text)
        if first is not None:
            message = (
                f"the key {key.text!r} is given twice: "
                f"first on line {first.line}, again on line {key.mark.line}"
            )
            self._report(key.mark, "duplicate-key", message)
        elif key.merges:
            frame.merge = (key.mark, node)
        else:
            mapping.put(key.text, node, key.mark, odd=key.odd)

    def _merged(self, explicit: MapNode, merge: tuple[Mark, Node] | None) -> MapNode:
        """With what the merge key brings in: of several the earlier wins, explicit keys first."""
        if merge is None:
            return explicit
        mark, brought = merge
        result = MapNode(explicit.mark)
        for source in brought.items if isinstance(brought, ListNode) else (brought,):
            if not isinstance(source, MapNode):
                self._report(mark, "merge-key", "<< takes a mapping, or a list of mappings")
                break
            for key in source:
                if key not in result:
                    result.take(key, source)
        for key in explicit:
            result.take(key, explicit)
        return result


def _spell(tag: str) -> str:
    """A tag as it is written in a file."""
    return f"!!{tag.removeprefix(CORE_TAG)}" if tag.startswith(CORE_TAG) else tag
