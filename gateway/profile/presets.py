"""The built-in profiles: files that ship with the gateway."""

import difflib
from functools import cache
from pathlib import Path
from typing import Final

from gateway.profile.findings import Finding, Mark, ProfileError, build_finding

DEFAULT_PRESET: Final = "openai-compatible"
"""What is in effect where nothing is selected: it enforces nothing."""

_SUFFIX: Final = ".yaml"


@cache
def _folder() -> Path:
    """`_data/profiles` of an installed package, else `profiles` of the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_data" / "profiles"
    return installed if installed.is_dir() else package.parent / "profiles"


@cache
def preset_names() -> tuple[str, ...]:
    """The known presets, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{_SUFFIX}")))


def preset_path(name: str) -> str | None:
    """The file of a preset; None where there is no such preset."""
    return str(_folder() / f"{name}{_SUFFIX}") if name in preset_names() else None


def preset_text(name: str) -> str:
    """A preset's file, as it stands.

    Raises:
        ProfileError: there is no such preset.
    """
    path = preset_path(name)
    if path is None:
        raise ProfileError([unknown_preset(name, Mark(name))])
    return Path(path).read_text(encoding="utf-8")


def unknown_preset(name: str, mark: Mark, path: str = "") -> Finding:
    """The finding about a name that is no preset's; it lists the known ones."""
    near = difflib.get_close_matches(name.lower(), preset_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    known = ", ".join(preset_names())
    message = f"there is no preset {name!r}{hint} (known: {known}; a path has a / or ends in .yaml)"
    return build_finding(mark, "unknown-preset", f"{path}: {message}" if path else message, path)
