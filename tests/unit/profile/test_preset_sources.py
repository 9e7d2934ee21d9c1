import re
from pathlib import Path

import pytest

from gateway.profile import load_preset, preset_names
from gateway.profile.leaves import Leaf, leaves_of

README = (Path(__file__).parents[3] / "profiles" / "README.md").read_text("utf-8")

SOURCES = re.compile(r"\]\(https://|SGLang's preset|own choice: .")
"""What a source is: a public page, SGLang's own preset, or a choice with its reason."""

LEAVES = [
    pytest.param(name, leaf, id=f"{name}-{'.'.join(leaf.path)}")
    for name in preset_names()
    for leaf in leaves_of(load_preset(name)).values()
    if leaf.path != ("name",)
]


def rows_of(preset: str) -> list[tuple[list[str], str, str]]:
    """The table of a preset: the keys of each row, its value, its source."""
    section = README.partition(f"\n## {preset}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", section, re.MULTILINE)
    return [(re.findall(r"`([^`]+)`", keys), value, source) for keys, value, source in cells]


def row_of(preset: str, leaf: Leaf) -> tuple[str, str]:
    """The value and the source of the one row about a leaf."""
    path = f".{'.'.join(leaf.path)}."
    found = [
        (value, source)
        for keys, value, source in rows_of(preset)
        if any(f".{key}." in path for key in keys)
    ]
    assert len(found) == 1, f"profiles/README.md has {len(found)} rows about {path.strip('.')}"
    return found[0]


@pytest.mark.parametrize(("preset", "leaf"), LEAVES)
def test_every_value_has_a_source(preset: str, leaf: Leaf) -> None:
    """It is a public page, SGLang's own preset, or a choice of ours that says why."""
    assert SOURCES.search(row_of(preset, leaf)[1])


@pytest.mark.parametrize(("preset", "leaf"), LEAVES)
def test_the_value_is_the_one_that_is_told(preset: str, leaf: Leaf) -> None:
    """The row tells each number and word of the file; what is only `true` it tells in words."""
    told = re.findall(r"[\w.-]+", row_of(preset, leaf)[0])
    assert set(re.findall(r"[\w.-]+", leaf.text)) - {"true"} <= set(told)


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_has_a_section(preset: str) -> None:
    """A preset without a value, too, is told of."""
    assert f"\n## {preset}\n" in README


@pytest.mark.parametrize("preset", preset_names())
def test_every_row_is_about_a_value(preset: str) -> None:
    """A row about what is not in the file any more is stale."""
    paths = [f".{'.'.join(path)}." for path in leaves_of(load_preset(preset))]
    for keys, _, _ in rows_of(preset):
        for key in keys:
            assert any(f".{key}." in path for path in paths)
