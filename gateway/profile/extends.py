"""Follows `extends` and merges child over parent.

Rules: mappings merge key by key, everything else replaces, null deletes at any depth, also where
the parent never had the key. A rule that changes kind, between an exact value and a range, is
replaced. `default`, `pin`, `values` and `normalize` of a rule are values and replace whole.
"""

import os.path
from dataclasses import dataclass
from typing import Final

from gateway.profile.definition import FREE_PREFIX
from gateway.profile.findings import Finding, Mark, ProfileError, build_finding, one_line
from gateway.profile.keys import check_keys
from gateway.profile.nodes import MapNode, Node, ScalarNode, is_null, show
from gateway.profile.presets import preset_path, unknown_preset
from gateway.profile.source import load_document

_PATH_SUFFIXES: Final = (".yaml", ".yml")
_RANGE_KEYS: Final = frozenset({"default", "min", "max", "values"})
_PARAM_RULE_DEPTH: Final = 2


@dataclass(frozen=True, slots=True)
class Reference:
    """What names a profile.

    Attributes:
        path: of its file, as the operator wrote it; of a preset's file.
        source: how findings and origins name it: the path, or the preset's name.
    """

    path: str
    source: str


def is_path(text: str) -> bool:
    """Whether a text names a file: it contains `/` or ends in `.yaml` or `.yml`."""
    return "/" in text or text.endswith(_PATH_SUFFIXES)


def load_merged(start: Reference) -> tuple[MapNode, list[Finding]]:
    """Reads a profile and its parents, and merges them.

    Returns:
        The merged tree without null, `extends` and free keys, and the findings in the files
        (repeated and unknown keys); values are not judged yet.

    Raises:
        ProfileError: a file of the chain cannot be read, or the chain is a circle.
    """
    documents: list[MapNode] = []
    findings: list[Finding] = []
    seen: dict[str, str] = {}
    reference: Reference | None = start
    while reference is not None:
        try:
            document, faults = load_document(reference.path, reference.source)
        except ProfileError as error:
            raise ProfileError([*findings, *_as_parent(error, documents)]) from None
        findings += [*faults, *check_keys(document)]
        seen[_identity(reference.path)] = reference.source
        documents.append(document)
        try:
            reference = _parent(document, reference, seen)
        except ProfileError as error:
            raise ProfileError([*findings, *error.findings]) from None
    merged = MapNode(documents[0].mark)
    for document in reversed(documents):
        merged = merge(merged, _contract(document))
    return merged, findings


def merge(parent: MapNode, child: MapNode, path: tuple[str, ...] = ()) -> MapNode:
    """Child over parent. The result has no null but inside lists."""
    result = parent.copied(child.mark)
    for key, node in child.items():
        below = (*path, key)
        old = result.get(key)
        if is_null(node):
            result.pop(key, None)
            continue
        result.take(key, child)
        if isinstance(node, MapNode) and not _is_value(below):
            keeps = isinstance(old, MapNode) and not _changes_kind(old, node, below)
            base = old if keeps and isinstance(old, MapNode) else MapNode(node.mark)
            result[key] = merge(base, node, below)
    return result


def _is_value(path: tuple[str, ...]) -> bool:
    """Whether what stands at a path is a value, which replaces whole."""
    return path[0] == "params" and len(path) > _PARAM_RULE_DEPTH


def _changes_kind(old: MapNode, new: MapNode, path: tuple[str, ...]) -> bool:
    """Whether a rule of `params` turns from a range into a pin, or from a pin into a range."""
    if path[0] != "params" or len(path) != _PARAM_RULE_DEPTH:
        return False
    given = {key for key, node in new.items() if not is_null(node)}
    pins, ranges = "pin" in given, bool(given & _RANGE_KEYS)
    return (pins and not ranges and "pin" not in old) or (ranges and not pins and "pin" in old)


def _contract(document: MapNode) -> MapNode:
    """The document without what speaks about the file itself."""
    result = MapNode(document.mark)
    for key in document:
        if key != "extends" and not key.startswith(FREE_PREFIX):
            result.take(key, document)
    return result


def _parent(document: MapNode, child: Reference, seen: dict[str, str]) -> Reference | None:
    node: Node | None = document.get("extends")
    if node is None or is_null(node):
        return None
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or not node.value:
        message = f"extends: is {show(node)}; it must be a preset's name or a path"
        raise ProfileError([build_finding(node.mark, "wrong-type", message, "extends")])
    text = node.value
    if is_path(text):
        # As the operator wrote the child's path: the links of a mounted volume stay unresolved.
        path = os.path.join(os.path.dirname(child.path), text)  # noqa: PTH118, PTH120
        reference = Reference(path, path)
    else:
        preset = preset_path(text)
        if preset is None:
            raise ProfileError([unknown_preset(text, node.mark, "extends")])
        reference = Reference(preset, text)
    if _identity(reference.path) in seen:
        chain = " -> ".join(map(one_line, (*seen.values(), reference.source)))
        message = f"extends: the profile extends itself: {chain}"
        raise ProfileError([build_finding(node.mark, "extends-cycle", message, "extends")])
    return reference


def _identity(path: str) -> str:
    """The same for every spelling of a file, links included."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path  # no path at all (a null character): reading it says so


def _as_parent(error: ProfileError, children: list[MapNode]) -> list[Finding]:
    """Where a parent is missing, the fault is the child's that names it."""
    findings = list(error.findings)
    if not children or findings[0].rule != "unreadable":
        return findings
    mark: Mark = children[-1]["extends"].mark
    return [build_finding(mark, "unreadable", f"extends: {findings[0].message}", "extends")]
