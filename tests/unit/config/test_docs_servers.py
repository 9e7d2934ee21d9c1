"""The reference of the settings file is written from the code's own tables."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.config import RULES, WARNINGS, check_config
from gateway.config.definition import WITHOUT_EFFECT, build_definition
from gateway.profile.fields import NoEffect

TEXT = (Path(__file__).parents[3] / "docs" / "servers.md").read_text(encoding="utf-8")


def named(mapping: Mapping) -> Mapping[str, object]:
    """The readers of a mapping's keys by name."""
    return {str(key): reader for key, reader in mapping.items()}


TOP = build_definition({})
PROVIDER = named(named(TOP)["providers"])["sgl"]
TABLES = {
    "top": TOP,
    "provider": PROVIDER,
    "key": named(PROVIDER)["keys"].entry,
    "network": named(PROVIDER)["network_config"],
}


def table(name: str) -> str:
    """The rows that stand between the marks of a table."""
    head, end = rf"<!-- {name} -->\n\|[^\n]*\n\|[-|]*\n", f"<!-- /{name} -->"
    found = re.search(f"{head}(.*?){end}", TEXT, re.DOTALL)
    assert found, name
    return found.group(1)


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_documented(name: str) -> None:
    """A table has the keys of the definition, in its order, with its descriptions."""
    rows = [
        f"| `{key}`{' (required)' * key.__class__.__name__.startswith('Required')} "
        f"| {key.description} |\n"
        for key, reader in TABLES[name].items()
        if not isinstance(reader, NoEffect)
    ]
    assert table(name) == "".join(rows)


def test_keys_without_effect_are_documented() -> None:
    """By the mapping that they stand in."""
    rows = [
        f"| {f'`{where}`' if where else 'the top'} | {', '.join(f'`{key}`' for key in keys)} |\n"
        for where, keys in WITHOUT_EFFECT.items()
    ]
    assert table("no-effect") == "".join(rows)


def test_every_rule_is_documented() -> None:
    """With its sentence, and whether it only warns."""
    rows = [
        f"| `{rule}`{' (a warning)' * (rule in WARNINGS)} | {text} |\n"
        for rule, text in RULES.items()
    ]
    assert table("rules") == "".join(rows)


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_examples_are_fine(block: str, tmp_path: Path) -> None:
    """A file that is shown can be used, without a warning."""
    path = tmp_path / "servers.yaml"
    path.write_text(block, encoding="utf-8")

    assert check_config(str(path), {"SGL_A_KEY": "k"})[1] == []
