"""API profiles: the contract in one YAML file, read strictly, merged, judged and frozen.

>>> from gateway.profile import load_preset
>>> load_preset("moonshot-kimi").profile.sampling.rules[1].value.wire
b'0.95'
"""

from gateway.profile.findings import RULES, Finding, Mark, ProfileError
from gateway.profile.json_schema import json_schema
from gateway.profile.loading import (
    Loaded,
    Origin,
    check_file,
    load_file,
    load_named,
    load_preset,
    override_sampling,
    render_json,
    render_yaml,
)
from gateway.profile.presets import DEFAULT_PRESET, preset_names, preset_text
from gateway.profile.rules import (
    DEFAULT_MAX_BODY_BYTES,
    PROTOCOLS,
    SAMPLING_FIELDS,
    Band,
    Conflict,
    Exact,
    OnExceed,
    OutputBudget,
    ParamRule,
    Profile,
    Sampling,
    Value,
)
from gateway.profile.selection import ENVIRONMENT_VARIABLE, IMAGE_PROFILE, Choice, select
from gateway.profile.service import ProfileService

__all__ = [
    "DEFAULT_MAX_BODY_BYTES",
    "DEFAULT_PRESET",
    "ENVIRONMENT_VARIABLE",
    "IMAGE_PROFILE",
    "PROTOCOLS",
    "RULES",
    "SAMPLING_FIELDS",
    "Band",
    "Choice",
    "Conflict",
    "Exact",
    "Finding",
    "Loaded",
    "Mark",
    "OnExceed",
    "Origin",
    "OutputBudget",
    "ParamRule",
    "Profile",
    "ProfileError",
    "ProfileService",
    "Sampling",
    "Value",
    "check_file",
    "json_schema",
    "load_file",
    "load_named",
    "load_preset",
    "override_sampling",
    "preset_names",
    "preset_text",
    "render_json",
    "render_yaml",
    "select",
]
