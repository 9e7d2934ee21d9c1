"""Which profile is in effect: the first source that is set wins, and what is set must be fine."""

import os
from dataclasses import dataclass
from typing import Final

from gateway.profile.findings import Mark, ProfileError, build_finding
from gateway.profile.loading import Loaded, load_file, load_named, load_preset
from gateway.profile.presets import DEFAULT_PRESET

IMAGE_PROFILE: Final = "/etc/sgl-router/profile.yaml"
"""Where a container image may carry its profile."""

ENVIRONMENT_VARIABLE: Final = "SGLANG_ROUTER_API_PROFILE"
"""Names a preset or a path; read by the settings, given to `select` as a text."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The profile in effect, and the source that named it, in words."""

    loaded: Loaded
    why: str


def select(
    *,
    file: str | None,
    name: str | None,
    env: str | None,
    image_path: str = IMAGE_PROFILE,
) -> Choice:
    """Chooses and loads the profile; sources below the one that is set are not read.

    Args:
        file: `--api-profile-file`, always a path.
        name: `--api-profile`, always a preset.
        env: the environment variable, a path or a preset; blank counts as unset.
        image_path: used where something exists there, if only a link to nothing.

    Raises:
        ProfileError: both flags are given, or what is set is missing or invalid.
    """
    if file is not None and name is not None:
        message = "--api-profile-file and --api-profile exclude each other; give one of them"
        raise ProfileError([build_finding(Mark("--api-profile"), "selection", message)])
    if file is not None:
        return Choice(load_file(file), f"--api-profile-file {file}")
    if name is not None:
        return Choice(load_preset(name), f"--api-profile {name}")
    env = (env or "").strip()
    if env:
        return Choice(load_named(env), f"{ENVIRONMENT_VARIABLE}={env}")
    if _is_there(image_path):
        return Choice(load_file(image_path), f"{image_path} exists")
    return Choice(load_preset(DEFAULT_PRESET), "nothing is selected: the built-in default")


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # what cannot be looked at must not be taken for absent
    return True
