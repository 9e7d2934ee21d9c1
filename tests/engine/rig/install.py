"""Builds what the tests of the real engine run on, once: outside the checkout, versions pinned.

A home is built into place and marked as the last step, so that an interrupted build is begun
anew; it is rebuilt when what it was built from has changed. A step that fails ends the test run.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ENGINE_VERSION = "0.5.23"
MODEL_VERSIONS = ("0.5.9", "0.5.13", "0.5.18", ENGINE_VERSION)
"""The releases whose request models bodies are held against."""
MODEL_FILES = tuple(
    f"sglang/srt/entrypoints/{dialect}/protocol.py" for dialect in ("openai", "anthropic")
)

_MARK = "built-from"


class InstallError(Exception):
    """A home could not be built; the text says which step, and what it said."""


def rig_home() -> Path:
    """Where everything is kept: `ENGINE_RIG_HOME`, or a folder in the user's cache."""
    named = os.environ.get("ENGINE_RIG_HOME")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or f"{cache}/sgl-gateway-engine").expanduser()


def engine_home() -> Path:
    """The engine with its model: `python`, `model`."""
    return _built("engine", ("requirements.txt", "tiny_model.py"), _build_engine)


def bodies_home() -> Path:
    """SGLang's request models: `python`, and a folder of sources for each version."""
    return _built("bodies", ("requirements-bodies.txt",), _build_bodies, *MODEL_VERSIONS)


def interpreter(home: Path) -> str:
    """The interpreter of a home."""
    return str(home / "venv" / "bin" / "python")


def _built(part: str, sources: tuple[str, ...], build: Callable[[Path], None], *more: str) -> Path:
    if platform.machine() != "x86_64" or sys.version_info[:2] != (3, 11):
        raise InstallError("SGLang's pinned packages need Python 3.11 on x86-64")
    home = rig_home() / part
    digest = hashlib.sha256(" ".join(more).encode())
    for source in sources:
        digest.update((HERE / source).read_bytes())
    mark = home / _MARK
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{part}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != digest.hexdigest():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            _run("make a virtual environment", sys.executable, "-m", "venv", str(home / "venv"))
            build(home)
            mark.write_text(digest.hexdigest())
    return home


def _build_engine(home: Path) -> None:
    pinned = str(HERE / "requirements.txt")
    _pip(home, "install torch", "install", "-c", pinned, _pin("torch"))
    _pip(home, "install the engine", "install", "--no-deps", "-r", pinned)
    _run(
        "make the model",
        interpreter(home),
        str(HERE / "tiny_model.py"),
        str(home / "model"),
    )


def _build_bodies(home: Path) -> None:
    pinned = str(HERE / "requirements-bodies.txt")
    _pip(home, "install pydantic", "install", "--no-deps", "-r", pinned)
    for version in MODEL_VERSIONS:
        wheels = home / "wheels" / version
        name = f"sglang=={version}"
        _pip(home, f"download {name}", "download", "--no-deps", "-d", str(wheels), name)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(home / version, MODEL_FILES)
    shutil.rmtree(home / "wheels")


def _pin(package: str) -> str:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))


def _pip(home: Path, what: str, *arguments: str) -> None:
    _run(what, interpreter(home), "-m", "pip", "--quiet", *arguments)


def _run(what: str, *command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"could not {what}:\n{done.stdout}{done.stderr}")
