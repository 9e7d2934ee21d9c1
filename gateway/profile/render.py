"""Writes a merged profile as YAML that loads back to the same profile, or as JSON."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Final

from gateway.profile.findings import one_line
from gateway.profile.nodes import ListNode, MapNode, Node, json_number

_DIGEST_CHARACTERS: Final = 12
_SAFE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]*")
_RESERVED: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_ESCAPED: Final = re.compile(r"[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_SECTION_DEPTH: Final = 2


def render_tree(tree: MapNode, *, origins: bool = False) -> str:
    """As block YAML, values with structure in flow style.

    Args:
        tree: merged, without null.
        origins: append to each line the source and line that set its value.
    """
    return "".join(f"{line}\n" for line in _lines(tree, (), origins=origins)) or "{}\n"


def render_tree_json(tree: MapNode) -> str:
    """As JSON, indented, numbers with the operator's literal."""
    return _json(tree, "") + "\n"


def digest_of(tree: MapNode) -> str:
    """A short hash of the merged tree, whatever the order of its keys."""
    canonical = _canonical(tree).encode()
    return hashlib.sha256(canonical).hexdigest()[:_DIGEST_CHARACTERS]


def _lines(node: MapNode, path: tuple[str, ...], *, origins: bool) -> Iterator[str]:
    indent = "  " * len(path)
    for key, child in node.items():
        below = (*path, key)
        if isinstance(child, MapNode) and child and not is_leaf_path(below):
            yield f"{indent}{_text(key)}:"
            yield from _lines(child, below, origins=origins)
            continue
        mark = node.key_marks[key]
        comment = f"  # {one_line(mark.source)}:{mark.line}" if origins else ""
        yield f"{indent}{_text(key)}: {render_flow(child)}{comment}"


def is_leaf_path(path: tuple[str, ...]) -> bool:
    """Whether what stands at a path is one value, though it may be a mapping."""
    return path[0] == "params" and len(path) > _SECTION_DEPTH


def render_flow(node: Node) -> str:
    """A value as YAML on one line, numbers with the operator's literal."""
    if isinstance(node, MapNode):
        pairs = (f"{_text(key)}: {render_flow(child)}" for key, child in node.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(node, ListNode):
        return "[" + ", ".join(map(render_flow, node.items)) + "]"
    if isinstance(node.value, str):
        return _text(node.value)
    return json_number(node) if node.is_number else json.dumps(node.value)


def _text(text: str) -> str:
    if _SAFE.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda hit: f"\\u{ord(hit.group()):04x}", quoted)


def _json(node: Node, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(node, MapNode) and node:
        pairs = (
            f"{deeper}{json.dumps(key, ensure_ascii=False)}: {_json(child, deeper)}"
            for key, child in node.items()
        )
        return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"
    if isinstance(node, ListNode):
        return "[" + ", ".join(_json(item, deeper) for item in node.items) + "]"
    return _canonical(node)


def _canonical(node: Node) -> str:
    if isinstance(node, MapNode):
        pairs = (f"{json.dumps(key)}:{_canonical(node[key])}" for key in sorted(node))
        return "{" + ",".join(pairs) + "}"
    if isinstance(node, ListNode):
        return "[" + ",".join(map(_canonical, node.items)) + "]"
    return json_number(node) if node.is_number else json.dumps(node.value, ensure_ascii=False)
