"""What an installed package holds, and that gunicorn's file says nothing gunicorn ignores."""

import ast
import tarfile
import tomllib
import zipfile
from importlib.metadata import files, version
from pathlib import Path

import pytest
from gunicorn.config import make_settings
from hatchling.build import build_sdist, build_wheel

import gateway
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


def test_what_a_wheel_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, the presets with their schema, gunicorn's file; no tests, and nothing else."""
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        held = set(wheel.namelist())
    info = f"sgl_gateway-{__version__}.dist-info"
    package = {str(file.relative_to(ROOT)) for file in (ROOT / "gateway").rglob("*.py")}
    presets = {f"gateway/_data/profiles/{file.name}" for file in (ROOT / "profiles").glob("*.*")}
    assert {"gateway/_data/profiles/schema.json", "gateway/__main__.py"} <= presets | package
    assert held == package | presets | {"gateway/_data/gunicorn.conf.py"} | {
        f"{info}/{name}"
        for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }


def test_what_a_source_archive_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the suite and its checks need, so that a packager can run them."""
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build_sdist(str(tmp_path))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    needed = ("pyproject.toml", "tox.ini", "README.md", "LICENSE", "conf/gunicorn.conf.py")
    assert {*needed, "profiles/schema.json", "docs/errors.md", "tests/mindeps.txt"} <= held


def test_the_suite_tests_what_is_installed() -> None:
    """Where a wheel is installed, its files are imported, and the checkout's are not."""
    installed = {Path(str(file.locate())) for file in files("sgl-gateway") or ()}
    editable = not any(file.name == "__main__.py" for file in installed)
    assert editable or Path(gateway.__file__) in installed


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
