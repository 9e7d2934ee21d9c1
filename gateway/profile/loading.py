"""Loads a profile: reads it and its parents, merges, judges, and remembers who set what."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from gateway.profile.extends import Reference, is_path, load_merged
from gateway.profile.findings import MAX_FINDINGS, Finding, Mark, ProfileError, build_finding
from gateway.profile.keys import check_keys
from gateway.profile.nodes import MapNode, ScalarNode, plain
from gateway.profile.presets import preset_path, unknown_preset
from gateway.profile.render import digest_of, is_leaf_path, render_tree, render_tree_json
from gateway.profile.rules import Profile
from gateway.profile.schema import check_tree
from gateway.profile.source import parse_document

_PARAMS_FLAG = "--override-sampling-params"
_CONFLICT_FLAG = "--sampling-param-conflict"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value: a path, a preset's name or a flag, and the line from 1."""

    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A profile that is fit for use.

    Attributes:
        profile: what is enforced.
        tree: the merged file as plain data, without null, `extends` and free keys.
        origins: who set each leaf, by the keys that lead to it; a list is one leaf, and so is
            a value of a rule.
        source: the path or the preset's name.
        digest: a short hash of the tree, the same for any order of keys.
        document: the tree with spellings and places, for the renderers.
    """

    profile: Profile
    tree: Mapping[str, object]
    origins: Mapping[tuple[str, ...], Origin]
    source: str
    digest: str
    document: MapNode = field(repr=False, compare=False)


def load_file(path: str) -> Loaded:
    """Loads a file and its parents.

    Raises:
        ProfileError: with every finding.
    """
    return _load(Reference(path, path))


def load_preset(name: str) -> Loaded:
    """Loads a built-in profile.

    Raises:
        ProfileError: there is none of this name.
    """
    path = preset_path(name)
    if path is None:
        raise ProfileError([unknown_preset(name, Mark(name))])
    return _load(Reference(path, name))


def load_named(text: str) -> Loaded:
    """Loads a path or a preset, told apart as `extends` does.

    Raises:
        ProfileError: with every finding.
    """
    return load_file(text) if is_path(text) else load_preset(text)


def check_file(path: str) -> tuple[Finding, ...]:
    """Every finding about a file and its parents; empty where it is fine."""
    try:
        load_file(path)
    except ProfileError as error:
        return error.findings
    return ()


def override_sampling(loaded: Loaded, params_json: str | None, conflict: str | None) -> Loaded:
    """The profile with its whole `sampling` section replaced from the flags.

    Args:
        loaded: the profile.
        params_json: a JSON object as `sampling.params` takes it; None leaves the profile alone.
        conflict: `reject` or `allow`; `reject` where it is None.

    Raises:
        ProfileError: not a JSON object, an empty one, a bad value, or the mode without values.
    """
    if params_json is None:
        if conflict is not None:
            _refuse(_CONFLICT_FLAG, f"needs {_PARAMS_FLAG}: it says nothing alone")
        return loaded
    params = _parse_flag(params_json)
    mark = Mark(_PARAMS_FLAG)
    sampling = MapNode(mark)
    if conflict is not None:
        at = Mark(_CONFLICT_FLAG)
        sampling.put("conflict", ScalarNode(conflict, conflict, at), at)
    sampling.put("params", params, mark)
    document = loaded.document.copied()
    document.put("sampling", sampling, mark)
    return _build(document, check_keys(document), loaded.source)


def render_yaml(loaded: Loaded, *, origins: bool = False) -> str:
    """The merged profile as YAML that loads back to the same profile.

    Args:
        loaded: the profile.
        origins: a comment after each value says which source and line set it.
    """
    return render_tree(loaded.document, origins=origins)


def render_json(loaded: Loaded) -> str:
    """The merged profile as indented JSON, numbers spelled as the operator did."""
    return render_tree_json(loaded.document)


def _load(reference: Reference) -> Loaded:
    merged, findings = load_merged(reference)
    return _build(merged, findings, reference.source)


def _build(merged: MapNode, findings: list[Finding], source: str) -> Loaded:
    profile, faults = check_tree(merged)
    judged = {finding.path for finding in findings} | {_place(finding) for finding in findings}
    findings += [fault for fault in faults if not {fault.path, _place(fault)} & judged]
    if profile is None or findings:
        raise ProfileError(_in_reading_order(findings[:MAX_FINDINGS]))
    document = _pruned(merged)
    return Loaded(
        profile=profile,
        tree=plain(document),  # type: ignore[arg-type]
        origins=dict(_origins(document, ())),
        source=source,
        digest=digest_of(document),
        document=document,
    )


def _place(finding: Finding) -> tuple[str, int, int]:
    return finding.file, finding.line, finding.column


def _in_reading_order(findings: list[Finding]) -> list[Finding]:
    """File by file, in the order in which files came up, and down each file."""
    files = list(dict.fromkeys(finding.file for finding in findings))
    return sorted(findings, key=lambda one: (files.index(one.file), one.line, one.column))


def _pruned(node: MapNode, path: tuple[str, ...] = ()) -> MapNode:
    """Without sections that were emptied: they say nothing."""
    result = MapNode(node.mark)
    for key, child in node.items():
        below = (*path, key)
        result.take(key, node)
        if isinstance(child, MapNode) and not is_leaf_path(below):
            result[key] = pruned = _pruned(child, below)
            if not pruned:
                del result[key]
    return result


def _origins(node: MapNode, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Origin]]:
    for key, child in node.items():
        below = (*path, key)
        if isinstance(child, MapNode) and not is_leaf_path(below):
            yield from _origins(child, below)
        else:
            mark = node.key_marks[key]
            yield below, Origin(mark.source, mark.line)


def _parse_flag(text: str) -> MapNode:
    """A JSON object as a node: read strictly as JSON, then as YAML, which knows places."""

    def refuse_constant(name: str) -> NoReturn:
        message = f"{name} is not a JSON number"
        raise ValueError(message)

    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        _refuse(_PARAMS_FLAG, f"is not JSON: {error}")
    if not isinstance(value, dict):
        _refuse(_PARAMS_FLAG, 'must be a JSON object, such as {"temperature": 1}')
    if not value:
        _refuse(_PARAMS_FLAG, "is an empty object; leave the flag out instead")
    params, findings = parse_document(text.strip(), _PARAMS_FLAG)
    if findings:
        raise ProfileError(findings)
    return params


def _refuse(flag: str, message: str) -> NoReturn:
    raise ProfileError([build_finding(Mark(flag), "selection", f"{flag} {message}")])
