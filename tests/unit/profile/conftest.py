"""Fixtures for the tests of profiles: files in a fresh folder, and what is found in them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.profile import Loaded, check_file, load_file


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes files given by name; returns the path of the first."""

    def write_files(files: dict[str, str | bytes]) -> str:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / next(iter(files)))

    return write_files


@pytest.fixture
def found(write: Callable[..., str]) -> Callable[[str | bytes], list[tuple[int, int, str, str]]]:
    """Line, column, rule and path of every finding in a text."""

    def findings(text: str | bytes) -> list[tuple[int, int, str, str]]:
        path = write({"p.yaml": text})
        return [(one.line, one.column, one.rule, one.path) for one in check_file(path)]

    return findings


@pytest.fixture
def said(write: Callable[..., str]) -> Callable[[str | bytes], str]:
    """The messages of every finding in a text, one a line."""

    def messages(text: str | bytes) -> str:
        return "\n".join(one.message for one in check_file(write({"p.yaml": text})))

    return messages


@pytest.fixture
def load(write: Callable[..., str]) -> Callable[..., Loaded]:
    """Loads the first of some files, or one text."""

    def load_files(files: dict[str, str | bytes] | str) -> Loaded:
        return load_file(write({"p.yaml": files} if isinstance(files, str) else files))

    return load_files
