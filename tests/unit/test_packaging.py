"""What an installed package holds, and that gunicorn's file says nothing gunicorn ignores."""

import ast
import tomllib
from importlib.metadata import files, version
from pathlib import Path

import pytest
from gunicorn.config import make_settings

from gateway import __version__
from gateway.cli.serve import gunicorn_conf
from gateway.profile import preset_names

ROOT = Path(__file__).parents[2]


def test_gunicorn_knows_every_option() -> None:
    """Of a name that it does not know, gunicorn would say nothing."""
    tree = ast.parse(gunicorn_conf().read_text())
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in names if not name.startswith("_")}
    assert {"bind", "worker_class", "on_starting", "post_worker_init"} <= public
    assert public - set(make_settings()) == set()


def test_the_presets_and_the_server_file_are_found() -> None:
    """From a checkout and from an installed package alike."""
    assert gunicorn_conf().is_file()
    assert {"moonshot-kimi", "openai-compatible", "stepfun-step5"} <= set(preset_names())


def test_a_wheel_brings_its_data() -> None:
    """An installed wheel holds every preset and gunicorn's file, under the package."""
    installed = {str(file) for file in files("sgl-gateway") or ()}
    if "gateway/__init__.py" not in installed:
        pytest.skip("an editable install: the data is the checkout's")
    wanted = {f"gateway/_data/profiles/{file.name}" for file in (ROOT / "profiles").glob("*.*")}
    assert wanted | {"gateway/_data/gunicorn.conf.py", "gateway/cli/main.py"} <= installed


def test_one_version() -> None:
    """The package's metadata and the code agree."""
    assert version("sgl-gateway") == __version__


def test_mindeps_names_every_dependency() -> None:
    """The lowest versions that are promised are the ones that the suite is run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = {
        line.partition(";")[0].partition(",")[0].strip().replace(">=", "==")
        for line in project["dependencies"]
    }
    lines = (ROOT / "tests" / "mindeps.txt").read_text().splitlines()
    assert promised <= {line.partition("#")[0].strip() for line in lines}
