"""The reference of the profile file keeps up with the code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.profile import (
    PROTOCOLS,
    RULES,
    SAMPLING_FIELDS,
    check_file,
    json_schema,
    preset_names,
)
from gateway.profile.definition import FORBIDDEN_FIELDS

DOCUMENT: Final = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text("utf-8")
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
ROWS: Final = re.findall(r"^\| `([^`]+)`(?:, `[^`]+`)* \| (.*) \|$", DOCUMENT, re.MULTILINE)
DOCUMENTED: Final = frozenset(key for key, _ in ROWS)


def keys(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every key that a schema names, with its path."""
    for alternative in schema.get("anyOf", []):
        yield from keys(alternative, prefix)
    for name, below in schema.get("properties", {}).items():
        yield f"{prefix}{name}"
        yield from keys(below, f"{prefix}{name}.")


def rule_schema() -> dict[str, Any]:
    """The schema of a rule of `params`."""
    schema: Any = json_schema()
    rules = schema["properties"]["params"]
    [found] = [
        alternative["additionalProperties"]
        for alternative in (rules, *rules.get("anyOf", []))
        if isinstance(alternative.get("additionalProperties"), dict)
    ]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "key",
    [key for key in keys(json_schema()) if not key.startswith("sampling.params.")],
)
def test_every_key_has_a_row(key: str) -> None:
    """Each key of the file is documented by its whole path (a section by the keys in it)."""
    assert any(row == key or row.startswith(f"{key}.") for row in DOCUMENTED)


@pytest.mark.parametrize("field", SAMPLING_FIELDS)
def test_every_sampling_field_has_a_row(field: str) -> None:
    """Each field of `sampling` is documented with what it accepts."""
    assert field in DOCUMENTED


@pytest.mark.parametrize("key", list(keys(rule_schema())))
def test_every_key_of_a_rule_has_a_row(key: str) -> None:
    """Each key of a rule of `params` is documented."""
    assert key in DOCUMENTED


@pytest.mark.parametrize("field", FORBIDDEN_FIELDS)
def test_every_ungovernable_field_is_named(field: str) -> None:
    """The fields that no rule may stand on are listed under `params`."""
    _, _, rest = DOCUMENT.partition("## `params`")
    assert f"`{field}`" in rest.partition("| key of a rule")[0]


def test_rules_of_findings_are_listed() -> None:
    """The table of rules is the code's, word for word and in its order."""
    _, _, table = DOCUMENT.partition("| rule | what holds |\n|---|---|\n")
    assert table == "".join(f"| `{rule}` | {text} |\n" for rule, text in RULES.items())


def test_every_protocol_is_named() -> None:
    """The keys of `protocols` are documented one by one."""
    assert {f"protocols.{protocol}" for protocol in PROTOCOLS} <= DOCUMENTED


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.splitlines()[0])
def test_example_is_valid(text: str, tmp_path: Path) -> None:
    """What the reference shows as YAML is a profile without findings."""
    file = tmp_path / "example.yaml"
    file.write_text(text, encoding="utf-8")

    assert check_file(str(file)) == ()


def test_examples_were_found() -> None:
    """The reference has an example for each of its sections of keys."""
    sections = ("sampling:", "params:", "output:", "limits:", "models:", "extends:", "<<: ")
    for section in sections:
        assert any(re.search(rf"^ *{section}", text, re.MULTILINE) for text in EXAMPLES)


def test_default_preset_is_one() -> None:
    """The last of the sources that name a profile is a preset that exists."""
    [named] = re.findall(r"the preset `([a-z0-9-]+)`", DOCUMENT)
    assert named in preset_names()
