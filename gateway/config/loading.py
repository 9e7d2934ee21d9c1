"""Reads the settings file: its servers, its settings, and everything that is wrong with it."""

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from gateway.config.definition import NETWORK_SETTINGS, TOP_SETTINGS, build_definition
from gateway.config.readers import MODEL_PREFIX
from gateway.engine.servers import Server
from gateway.profile import Finding, ProfileError
from gateway.profile.document import read_document, without_effect
from gateway.profile.findings import Mark, build_finding
from gateway.profile.nodes import ListNode, MapNode

NO_URL: Final = (
    "no base URL configured: either set sgl_key_config.url on the key"
    " or set network_config.base_url"
)
"""What is said of a server that has no URL, wherever it comes from."""

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unreadable": "A settings file is a regular file that exists and can be read.",
        "not-utf8": "A settings file is text in UTF-8, with or without a byte order mark.",
        "yaml-syntax": "A settings file is one well-formed YAML (or JSON) document.",
        "yaml-limits": "A settings file is bounded in bytes, values, depth and length of keys.",
        "yaml-tag": "Values carry no tag but those of YAML's core schema.",
        "several-documents": "A file holds one YAML document.",
        "duplicate-key": "A mapping gives each key once.",
        "merge-key": "A merge key (<<) takes a mapping, or a list of mappings.",
        "top-level": "The top of a settings file is a mapping.",
        "unknown-key": "Only known keys are allowed, at every depth (x- keys at the top are free).",
        "wrong-type": "Each key takes a value of its type.",
        "missing-key": "A mapping has the keys that it needs.",
        "out-of-domain": "A value lies in the domain of its key.",
        "unset-variable": "A text that stands for an environment variable names one that is set.",
        "no-base-url": "Every key has a URL, its own or that of network_config.",
        "same-name": "Each key has a name of its own, and each alias one spelling.",
        "no-weight": "Some key that is enabled has a weight above 0.",
        "empty-range": "The first wait before a retry is no longer than the longest.",
        "no-effect": "Keys of Bifrost that mean nothing here may as well be left out.",
        "never-used": "Every key and every alias can be reached by some request.",
        "unreachable": "Every server that is enabled is ready and takes its key (with --probe).",
        "unlisted-model": "A server lists the models that its key names (with --probe).",
    }
)
"""Every rule of the settings file: its id, and the rule in one sentence."""

Parts = Mapping[str, Any]
"""What a mapping of the file says, by the keys of its definition."""

_KEYS: Final = "providers.sgl.keys"

WARNINGS: Final = frozenset({"no-effect", "never-used", "unlisted-model"})
"""Rules whose findings do not keep the file from being used."""


@dataclass(frozen=True, slots=True)
class Config:
    """A settings file that is fit for use.

    Attributes:
        path: of the file.
        servers: one for each key, in its order.
        settings: by the setting's name; only what the file gives.
        places: by the server's name, where its key stands, and its path.
        warnings: findings that do not keep it from being used.
    """

    path: str
    servers: tuple[Server, ...]
    settings: Mapping[str, object]
    places: Mapping[str, tuple[Mark, str]]
    warnings: tuple[Finding, ...] = ()


class ConfigError(ProfileError):
    """A settings file that cannot be used."""


def load_config(path: str, environ: Mapping[str, str]) -> Config:
    """Loads a settings file.

    Args:
        path: as the operator wrote it.
        environ: where `env.NAME` is looked up.

    Raises:
        ConfigError: with every finding but warnings.
    """
    config, findings = check_config(path, environ)
    if config is None:
        raise ConfigError(finding for finding in findings if finding.rule not in WARNINGS)
    return config


def check_config(path: str, environ: Mapping[str, str]) -> tuple[Config | None, list[Finding]]:
    """Everything that is wrong with a settings file; it never raises for what the file holds.

    Returns:
        The file where it is fit for use, or None; and every finding, down the file.
    """
    definition = build_definition(environ)
    document, parts, findings = read_document(path, definition, "settings file")
    warnings = [
        build_finding(mark, "no-effect", f"{where}: has no effect here", where)
        for where, mark in without_effect(document, definition)
    ]
    if parts is None:
        return None, _in_order([*findings, *warnings])
    provider = _mapping_at(document, "providers", "sgl")
    keys = parts["providers"]["sgl"]["keys"]
    network = parts["providers"]["sgl"].get("network_config", {})
    nodes = _entries(provider["keys"])
    servers: list[Server] = []
    for index, (entry, node) in enumerate(zip(keys, nodes, strict=True)):
        where = f"{_KEYS}[{index}]"
        if not _url(entry, network):
            findings.append(build_finding(node.mark, "no-base-url", NO_URL, where))
            continue
        servers.append(_build_server(entry, network))
        warnings += _never_used(servers[-1], node, where)
    findings += [
        *_name_faults(keys, nodes),
        *_weight_faults(keys, provider.key_marks["keys"]),
        *_backoff_faults(network, provider),
    ]
    if findings:
        return None, _in_order([*findings, *warnings])
    settings = _settings(parts, network, path)
    warnings += _unserved(settings, servers, document)
    warnings = _in_order(warnings)
    places = {
        entry["name"]: (node.mark, f"{_KEYS}[{index}]")
        for index, (entry, node) in enumerate(zip(keys, nodes, strict=True))
    }
    return Config(path, tuple(servers), settings, places, tuple(warnings)), warnings


def _mapping_at(node: MapNode, *names: str) -> MapNode:
    for name in names:
        child = node[name]
        assert isinstance(child, MapNode)
        node = child
    return node


def _entries(node: object) -> list[MapNode]:
    assert isinstance(node, ListNode)
    return [item for item in node.items if isinstance(item, MapNode)]


def _url(entry: Parts, network: Parts) -> str:
    url: str = entry.get("sgl_key_config", {}).get("url", "") or network.get("base_url", "")
    return url


def _build_server(entry: Parts, network: Parts) -> Server:
    aliases = {
        name.removeprefix(MODEL_PREFIX): alias for name, alias in entry.get("aliases", {}).items()
    }
    return Server(
        name=entry["name"],
        url=_url(entry, network),
        api_key=entry.get("value", ""),
        models=entry.get("models"),
        blacklisted_models=entry.get("blacklisted_models", ()),
        weight=entry.get("weight", 1.0),
        enabled=entry.get("enabled", True),
        use_anthropic_endpoints=entry.get("use_anthropic_endpoints", False),
        aliases=MappingProxyType(aliases),
        extra_headers=MappingProxyType(dict(network.get("extra_headers", {}))),
    )


def _settings(parts: Parts, network: Parts, path: str) -> Mapping[str, object]:
    settings: dict[str, object] = {
        name: source[name]
        for source, names in ((parts, TOP_SETTINGS), (network, NETWORK_SETTINGS))
        for name in names
        if name in source
    }
    if "api_keys_file" in settings:
        folder = os.path.dirname(path)  # noqa: PTH120 - the path as written
        settings["api_keys_file"] = os.path.join(folder, parts["api_keys_file"])  # noqa: PTH118
    return MappingProxyType(settings)


def _name_faults(keys: list[Parts], nodes: list[MapNode]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, (entry, node) in enumerate(zip(keys, nodes, strict=True)):
        name, where = entry["name"], f"{_KEYS}[{index}]"
        if name in seen:
            mark = node.key_marks["name"]
            message = f"{where}.name: is {name!r}, as another key's is; each needs its own"
            yield build_finding(mark, "same-name", message, f"{where}.name")
        seen.add(name)
        yield from _alias_faults(node, f"{where}.aliases")


def _alias_faults(node: MapNode, where: str) -> Iterator[Finding]:
    aliases = node.get("aliases", MapNode())
    assert isinstance(aliases, MapNode)
    for name in aliases:
        bare = name.removeprefix(MODEL_PREFIX)
        if bare != name and bare in aliases:
            message = f"{where}.{name}: is the same name as {bare}; drop one of them"
            yield build_finding(aliases.key_marks[name], "same-name", message, f"{where}.{name}")


def _weight_faults(keys: list[Parts], mark: Mark) -> Iterator[Finding]:
    weights = [entry.get("weight", 1.0) for entry in keys if entry.get("enabled", True)]
    if weights and not any(weights):
        message = f"{_KEYS}: every key that is enabled has the weight 0; one needs more"
        yield build_finding(mark, "no-weight", message, _KEYS)


def _backoff_faults(network: Parts, provider: MapNode) -> Iterator[Finding]:
    first, longest = network.get("retry_backoff_initial"), network.get("retry_backoff_max")
    if first is not None and longest is not None and first > longest:
        where = "providers.sgl.network_config.retry_backoff_max"
        mark = _mapping_at(provider, "network_config").key_marks["retry_backoff_max"]
        message = f"{where}: is {longest}, less than retry_backoff_initial ({first})"
        yield build_finding(mark, "empty-range", message, where)


def _never_used(server: Server, node: MapNode, where: str) -> Iterator[Finding]:
    if not server.enabled:
        return
    if server.models == ():
        at = f"{where}.models"
        message = f'{at}: is empty, so no name fits this key; ["*"] admits all'
        yield build_finding(node.key_marks["models"], "never-used", message, at)
        return
    aliases = node.get("aliases", MapNode())
    assert isinstance(aliases, MapNode)
    for name in aliases:
        if not server.admits(name.removeprefix(MODEL_PREFIX)):
            at = f"{where}.aliases.{name}"
            message = f"{at}: the lists of this key do not admit the alias itself"
            yield build_finding(aliases.key_marks[name], "never-used", message, at)


def _unserved(
    settings: Mapping[str, object], servers: list[Server], document: MapNode
) -> Iterator[Finding]:
    enabled = [server for server in servers if server.enabled]
    model = settings.get("model_id")
    if not enabled:
        mark = _mapping_at(document, "providers", "sgl").key_marks["keys"]
        yield build_finding(mark, "never-used", f"{_KEYS}: no key is enabled", _KEYS)
    elif isinstance(model, str) and not any(server.admits(model) for server in enabled):
        message = f"model_id: no key that is enabled admits the name {model!r}"
        yield build_finding(document.key_marks["model_id"], "never-used", message, "model_id")


def _in_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: (one.line, one.column))
