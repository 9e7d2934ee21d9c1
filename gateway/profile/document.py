"""Any other file of the gateway's that is read as strictly as a profile is.

A definition is a mapping of keys, made with `key` and `required_key`, to what reads their values:
a reader of `fields` or one of its kind, a mapping of keys again, or `Items`, a list of such
mappings. Unlike in a profile, null is the same as leaving a key out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import voluptuous as vol

from gateway.profile.definition import FREE_PREFIX
from gateway.profile.fields import NoEffect, Problem
from gateway.profile.findings import MAX_FINDINGS, Finding, Mark, ProfileError
from gateway.profile.keys import check_keys, mapping_of
from gateway.profile.nodes import ListNode, MapNode, Node, is_null, join_path
from gateway.profile.schema import judge_values
from gateway.profile.source import load_document


def key(name: str, description: str) -> Any:
    """A key of a definition that may be left out."""
    return vol.Optional(name, description=description)


def required_key(name: str, description: str) -> Any:
    """A key that a mapping needs."""
    return vol.Required(name, description=description)


class Items:
    """A list of mappings, at least one.

    Args:
        entry: the definition of each.
        noun: what one of them is, for messages.
    """

    def __init__(self, entry: Mapping[Any, Any], noun: str) -> None:
        self.entry = entry
        self._schema = vol.Schema(dict(entry))
        self._noun = noun

    def __call__(self, node: Node) -> list[Mapping[str, Any]]:
        """Reads every entry, and refuses all that are at fault."""
        if not isinstance(node, ListNode):
            raise Problem("wrong-type", f"is {kind_of(node)}; it must be a list")
        if not node.items:
            raise Problem("out-of-domain", f"is empty; it must have at least one {self._noun}")
        read, problems = [], []
        for index, item in enumerate(node.items):
            try:
                read.append(self._schema(item))
            except vol.MultipleInvalid as error:
                error.prepend([index])
                problems.extend(error.errors)
        if problems:
            raise vol.MultipleInvalid(problems)
        return read


class Mapped:
    """A mapping of the given keys, or what it is made into.

    Args:
        mapping: the definition of its keys.
    """

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        self.mapping = mapping
        self._schema = vol.Schema(dict(mapping))

    def read(self, node: Node) -> Mapping[str, Any]:
        """Reads the keys of a mapping."""
        read: Mapping[str, Any] = self._schema(node)
        return read


def read_document(
    path: str, definition: Mapping[Any, Any], what: str
) -> tuple[MapNode, Mapping[str, Any] | None, list[Finding]]:
    """Reads a file by a definition; no message shows a value that could be a secret.

    Args:
        path: as the operator wrote it.
        definition: of its keys.
        what: the kind of file, for messages.

    Returns:
        The file with the place of every value, without null; what it says, or None; and every
        finding, down the file.
    """
    try:
        document, findings = load_document(path, what=what, secret=True)
    except ProfileError as error:
        return MapNode(Mark(path)), None, list(error.findings)
    findings += check_keys(document, definition)
    document = _without_null(document)
    for name in [name for name in document if name.startswith(FREE_PREFIX)]:
        del document[name]
    parts, faults = judge_values(document, vol.Schema(dict(definition)), kind_of)
    judged = {finding.path for finding in findings}
    findings += [fault for fault in faults if fault.path not in judged]
    findings.sort(key=lambda one: (one.line, one.column))
    return document, None if findings else parts, findings[:MAX_FINDINGS]


def without_effect(node: Node, definition: object, path: str = "") -> Iterator[tuple[str, Mark]]:
    """The path and the place of each key of a file that `NoEffect` reads."""
    entry = getattr(definition, "entry", None)
    if entry is not None and isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from without_effect(item, entry, f"{path}[{index}]")
    if not isinstance(node, MapNode):
        return
    known = mapping_of(definition) or {}
    readers = {str(name): known[name] for name in known if isinstance(name, vol.Marker)}
    pattern = next((known[name] for name in known if not isinstance(name, vol.Marker)), None)
    for name, child in node.items():
        below = join_path(path, name)
        reader = readers.get(name, pattern)
        if isinstance(reader, NoEffect):
            yield below, node.key_marks[name]
        else:
            yield from without_effect(child, reader, below)


def kind_of(node: Node) -> str:
    """What a value is, without what it says."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node.value, bool):
        return "true or false"
    if node.value is None:
        return "null"
    return "a number" if node.is_number else "a text"


def _without_null(node: MapNode) -> MapNode:
    result = MapNode(node.mark)
    for name, child in node.items():
        if not is_null(child):
            result.put(name, _cleaned(child), node.key_marks[name], odd=name in node.odd_keys)
    return result


def _cleaned(node: Node) -> Node:
    if isinstance(node, MapNode):
        return _without_null(node)
    if isinstance(node, ListNode):
        return ListNode(tuple(map(_cleaned, node.items)), node.mark)
    return node
