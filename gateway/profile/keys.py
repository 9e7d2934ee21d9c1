"""Which keys are known: judged in each file by itself, also where a child deletes them again."""

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import voluptuous as vol

from gateway.profile.definition import DEFINITION, FORBIDDEN_FIELDS, FREE_PREFIX
from gateway.profile.fields import NoEffect, Problem
from gateway.profile.findings import MAX_FINDINGS, Finding, build_finding, one_line
from gateway.profile.nodes import ListNode, MapNode, Node, join_path, walk

_ELSEWHERE: Final = "sampling.params"


def check_keys(root: MapNode, definition: Mapping[Any, Any] = DEFINITION) -> list[Finding]:
    """The unknown keys of one file, and keys that are not text; at most `MAX_FINDINGS`."""
    return list(islice(_judge_level(root, definition, ""), MAX_FINDINGS))


def mapping_of(schema: object) -> Mapping[Any, Any] | None:
    """The keys that a part of the definition takes, None where it takes no mapping."""
    if isinstance(schema, vol.All):
        schema = schema.validators[0]
    if isinstance(schema, Mapping):
        return schema
    return getattr(schema, "mapping", None)


def _judge_level(node: Node, schema: object, path: str) -> Iterator[Finding]:
    entry = getattr(schema, "entry", None)
    if entry is not None and isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from _judge_level(item, entry, f"{path}[{index}]")
        return
    known = mapping_of(schema)
    if known is None or not isinstance(node, MapNode):
        yield from _odd_keys(node, path)
        return
    named = {str(key): value for key, value in known.items() if isinstance(key, vol.Marker)}
    pattern = next((item for item in known.items() if not isinstance(item[0], vol.Marker)), None)
    for key, child in node.items():
        if not path and key.startswith(FREE_PREFIX):
            continue
        below = join_path(path, key)
        finding = _judge_key(node, key, path, named, pattern)
        if finding is not None:
            yield finding
        else:
            yield from _judge_level(child, named[key] if pattern is None else pattern[1], below)


def _judge_key(
    node: MapNode,
    key: str,
    path: str,
    named: Mapping[str, Any],
    pattern: tuple[Any, Any] | None,
) -> Finding | None:
    mark, below = node.key_marks[key], join_path(path, key)
    if key in node.odd_keys:
        return build_finding(mark, "wrong-type", _odd(below, key), below)
    if pattern is None:
        if key in named:
            return None
        message = f"{below}: there is no such key; {_suggest(key, path, named)}"
        return build_finding(mark, "unknown-key", message, below)
    try:
        pattern[0](key)
    except Problem as problem:
        return build_finding(mark, problem.rule, f"{below}: {problem.msg}", below)
    return None


def _odd_keys(node: Node, path: str) -> Iterator[Finding]:
    for where, part in walk(node, path):
        if isinstance(part, MapNode):
            for key in part.odd_keys:
                below = join_path(where, key)
                yield build_finding(part.key_marks[key], "wrong-type", _odd(below, key), below)


def _odd(path: str, key: str) -> str:
    return f'{path}: a key must be text; put it in quotes: "{one_line(key)}"'


def _suggest(key: str, path: str, named: Mapping[str, Any]) -> str:
    if path == _ELSEWHERE and key in FORBIDDEN_FIELDS:
        return FORBIDDEN_FIELDS[key]
    folded = {name.lower(): name for name in named}
    near = difflib.get_close_matches(key.lower(), folded, n=1)
    if near:
        return f"did you mean {folded[near[0]]}?"
    extra = "; params takes any other field" if path == _ELSEWHERE else ""
    known = (name for name in named if not isinstance(named[name], NoEffect))
    return f"known here: {', '.join(known)}{extra}"
