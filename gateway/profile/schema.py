"""From a merged tree to a `Profile`: the definition is applied, refusals become findings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import voluptuous as vol

from gateway.profile.definition import SCHEMA
from gateway.profile.fields import Problem
from gateway.profile.findings import Finding, Mark, build_finding
from gateway.profile.nodes import ListNode, MapNode, Node, ScalarNode, show, whole_value
from gateway.profile.rules import (
    DEFAULT_MAX_BODY_BYTES,
    PROTOCOLS,
    SAMPLING_FIELDS,
    ParamRule,
    Profile,
    Sampling,
)

_WHOLE_FIELDS: Final = frozenset({"top_k", "n"})
"""Fields that the engine types as integers: a whole number is written as one, also by `params`."""


def check_tree(tree: MapNode) -> tuple[Profile | None, list[Finding]]:
    """Judges a merged tree without null, `extends` and free keys.

    Returns:
        The profile, or None and every finding.
    """
    findings = list(_governed_twice(tree))
    parts, faults = judge_values(tree, SCHEMA)
    findings.extend(faults)
    return (None if parts is None or findings else _profile(parts)), findings


def judge_values(
    tree: MapNode, schema: vol.Schema, show: Callable[[Node], str] = show
) -> tuple[Mapping[str, Any] | None, list[Finding]]:
    """What a tree without null says by a definition, or None and every finding.

    Args:
        tree: to be judged.
        schema: of the definition.
        show: how a value that stands where a mapping belongs is told.
    """
    try:
        return schema(tree), []
    except vol.MultipleInvalid as error:
        return None, [_finding(problem, tree, show) for problem in error.errors]


def _profile(parts: Mapping[str, Any]) -> Profile:
    limits = parts.get("limits", {})
    protocols = parts.get("protocols", {})
    sampling = parts.get("sampling")
    return Profile(
        name=parts.get("name"),
        sampling=None if sampling is None else _in_order(sampling),
        params=MappingProxyType(
            {name: _named(rule, name) for name, rule in parts.get("params", {}).items()}
        ),
        output=parts.get("output", {}).get("max_tokens"),
        max_body_bytes=limits.get("max_body_bytes", DEFAULT_MAX_BODY_BYTES),
        max_images=limits.get("max_images"),
        aliases=parts.get("models", {}).get("aliases", ()),
        bad_request_type=parts.get("errors", {}).get("bad_request_type"),
        protocols_off=frozenset(name for name in PROTOCOLS if protocols.get(name) is False),
    )


def _in_order(sampling: Sampling) -> Sampling:
    rules = sorted(sampling.rules, key=lambda rule: SAMPLING_FIELDS.index(rule.field))
    return replace(sampling, rules=tuple(rules))


def _named(rule: ParamRule, name: str) -> ParamRule:
    rule = replace(rule, field=name)
    if name not in _WHOLE_FIELDS:
        return rule
    return replace(
        rule,
        default=rule.default and whole_value(rule.default),
        pin=rule.pin and whole_value(rule.pin),
        values=tuple(map(whole_value, rule.values)),
        normalize=tuple((whole_value(a), whole_value(b)) for a, b in rule.normalize),
    )


def _governed_twice(tree: MapNode) -> Iterator[Finding]:
    sampling, params = tree.get("sampling"), tree.get("params")
    exact = sampling.get("params") if isinstance(sampling, MapNode) else None
    if not isinstance(exact, MapNode) or not isinstance(params, MapNode):
        return
    for name in exact:
        if name in params:
            here, there = exact.key_marks[name], params.key_marks[name]
            message = (
                f"sampling.params.{name}: the field is also governed by params.{name} "
                f"({there.source}:{there.line}); delete one of them (null deletes an inherited one)"
            )
            yield build_finding(here, "governed-twice", message, f"sampling.params.{name}")


def _finding(error: vol.Invalid, tree: MapNode, show: Callable[[Node], str]) -> Finding:
    path = [key if isinstance(key, int) else str(key) for key in error.path]
    missing = isinstance(error, vol.RequiredFieldInvalid)
    key = path.pop() if missing else ""
    node, mark = _locate(tree, path)
    below = error.below if isinstance(error, Problem) else ""
    dotted = _dotted(path) + below
    if isinstance(error, Problem):
        rule, message = error.rule, error.msg
        mark = error.mark or mark
    elif missing:
        rule, message = "missing-key", f"has no {key}, which it needs"
    elif isinstance(error, vol.DictInvalid):
        rule, message = "wrong-type", f"is {show(node)}; it must be a mapping{_hint(path, node)}"
    else:
        rule, message = "unknown-key", "there is no such key"
    return build_finding(mark, rule, f"{dotted}: {message}" if dotted else message, dotted)


def _dotted(path: list[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _hint(path: list[str | int], node: Node) -> str:
    bare_rule = len(path) == 2 and path[0] == "params" and isinstance(node, ScalarNode)
    return f", such as {{pin: {show(node)}}}" if bare_rule else ""


def _locate(tree: MapNode, path: list[str | int]) -> tuple[Node, Mark]:
    """The value at a path, or the last one on the way to it, and where a reader looks for it."""
    node: Node = tree
    mark = tree.mark
    for key in path:
        if isinstance(node, ListNode) and isinstance(key, int):
            node = node.items[key]
            mark = node.mark
            continue
        if not isinstance(node, MapNode) or not isinstance(key, str) or key not in node:
            break
        mark = node.key_marks[key]
        node = node[key]
        if isinstance(node, ScalarNode | ListNode):
            mark = node.mark
    return node, mark
