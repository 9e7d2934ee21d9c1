from pathlib import Path

import pytest

from gateway.cli.main import build_app
from gateway.settings import SETTING_NAMES

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_is_documented(name: str) -> None:
    """By its flag, or by its variable where it has no flag."""
    flag, variable = f"`--{name.replace('_', '-')}`", f"`SGL_GATEWAY_{name.upper()}`"
    assert flag in TEXT or variable in TEXT


@pytest.mark.parametrize(
    "name", [command.name or "" for command in build_app().registered_commands]
)
def test_every_command_is_documented(name: str) -> None:
    """By a section of its own, with an example."""
    section = TEXT.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"sgl-gateway {name}" in section
