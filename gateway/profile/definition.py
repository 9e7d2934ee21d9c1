"""The one definition of the profile's keys: validation and the JSON Schema both read it.

It is judged on the merged tree. Which keys are known is judged in each file, by `keys`.
"""

from types import MappingProxyType
from typing import Final

import voluptuous as vol

from gateway.profile.checks import RuleType, check_budget, check_param_rule, check_sampling
from gateway.profile.fields import (
    AnyValue,
    Domain,
    Flag,
    Number,
    OneOf,
    Pairs,
    Problem,
    SamplingRule,
    Size,
    Text,
    TextList,
    ValueList,
    Whole,
)
from gateway.profile.rules import PROTOCOLS, Conflict, OnExceed

FREE_PREFIX: Final = "x-"
"""Top-level keys that begin so are a home for anchors and notes, and say nothing."""

DOMAINS: Final = MappingProxyType(
    {
        "temperature": Domain(0, 2),
        "top_p": Domain(0, 1, open_below=True),
        "top_k": Domain(1, None, whole=True, also=-1),
        "min_p": Domain(0, 1),
        "repetition_penalty": Domain(0, 2, open_below=True),
        "frequency_penalty": Domain(-2, 2),
        "presence_penalty": Domain(-2, 2),
        "n": Domain(1, 128, whole=True),
    }
)
"""What each sampling field accepts, in the order in which violations are reported."""

FORBIDDEN_FIELDS: Final = MappingProxyType(
    {
        "model": "models.aliases says which names are answered to",
        "messages": "limits.max_images bounds what messages carry",
        "stream": "whether to stream is the client's choice",
        "max_tokens": "output.max_tokens governs it",
        "max_completion_tokens": "output.max_tokens governs it",
    }
)
"""Request fields that `params` cannot govern, and what stands in."""


class FieldName:
    """A key of `params`: the name of a top-level request field."""

    def __call__(self, key: str) -> str:
        """Refuses the fields that have sections of their own."""
        if key in FORBIDDEN_FIELDS:
            message = f"cannot be governed by a rule: {FORBIDDEN_FIELDS[key]}"
            raise Problem("forbidden-field", message)
        if not key:
            raise Problem("unknown-key", "is empty; a key is the name of a request field")
        return key

    def json(self) -> dict[str, object]:
        """As JSON Schema."""
        return {"minLength": 1, "not": {"enum": list(FORBIDDEN_FIELDS)}}


def _key(name: str, description: str) -> vol.Optional:
    return vol.Optional(name, description=description)


_SAMPLING: Final = vol.All(
    {
        _key(
            "conflict",
            "What a request that sends another value gets: reject (default), a 400; "
            "or allow, its own value.",
        ): OneOf(Conflict),
        _key("params", "The contract of each field: an exact value, or a band {min, max}."): {
            _key(
                name, f"Exact: {domain.describe()}. Band: {domain.describe(band=True)}."
            ): SamplingRule(name, domain)
            for name, domain in DOMAINS.items()
        },
    },
    check_sampling,
)

_PARAM_RULE: Final = vol.All(
    {
        _key("default", "Written into a request that leaves the field out."): AnyValue(),
        _key("pin", "The only accepted value, also written in where it is left out."): AnyValue(),
        _key("min", "The least value accepted."): Number(),
        _key("max", "The largest value accepted."): Number(),
        _key("exclusive_min", "Whether min itself is refused."): Flag(),
        _key("exclusive_max", "Whether max itself is refused."): Flag(),
        _key("values", "The accepted values."): ValueList(),
        _key("type", "int refuses fractions."): OneOf(RuleType),
        _key("normalize", "Pairs [from, to]: how an accepted value is forwarded."): Pairs(),
    },
    check_param_rule,
)

_BUDGET: Final = vol.All(
    {
        vol.Required("cap", description="The largest answer, in tokens."): Whole(),
        _key(
            "on_exceed", "Above the cap: reject (default), a 400; or clamp, lowered to it."
        ): OneOf(OnExceed),
        _key(
            "default", "Written into a request that sets no budget; the cap where absent."
        ): Whole(),
    },
    check_budget,
)

DEFINITION: Final = {
    _key("name", "Shown in logs and by print-profile."): Text(empty=True),
    _key(
        "extends",
        "The parent: a preset's name, or a path (it contains / or ends in .yaml or "
        ".yml), relative to the folder of this file.",
    ): Text(),
    _key("sampling", "Exact values and bands under one conflict mode."): _SAMPLING,
    _key("params", "One rule for each top-level field of a chat request."): {
        FieldName(): _PARAM_RULE
    },
    _key("output", "How large an answer may be."): {
        _key("max_tokens", "The output budget."): _BUDGET
    },
    _key("limits", "How large a request may be."): {
        _key("max_body_bytes", "413 above it; 32 MiB where absent."): Size(),
        _key("max_images", "400 above it."): Whole(),
    },
    _key("models", "Which model names are answered to."): {
        _key("aliases", "Names accepted beside the served model, and routed as it."): TextList()
    },
    _key("errors", "How errors are spelled."): {
        _key("bad_request_type", "Replaces `type` in every 400 of the governed routes."): Text()
    },
    _key("protocols", "Which routes are on; one that is off answers 404."): {
        _key(name, "Whether the routes of this protocol are on (default true)."): Flag()
        for name in PROTOCOLS
    },
}
"""The keys of a profile. Values are judged on the merged tree, keys in each file."""

SCHEMA: Final = vol.Schema(DEFINITION)
