"""The profile's JSON Schema (2020-12), for editors: generated from the one definition."""

from collections.abc import Mapping
from typing import Any

import voluptuous as vol

from gateway.profile.definition import DEFINITION, FREE_PREFIX
from gateway.profile.keys import mapping_of

Json = dict[str, Any]


def json_schema() -> dict[str, object]:
    """The schema of one file.

    A file may delete an inherited key with null, so null is allowed everywhere; what a section
    needs is asked for only in a file that extends nothing.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sgl-gateway API profile",
        "description": "What an API promises at its edge: sampling, budgets, limits, names.",
        **_object(DEFINITION),
        "patternProperties": {f"^{FREE_PREFIX}": True},
        "if": {"required": ["extends"], "properties": {"extends": {"type": "string"}}},
        "else": _needs(DEFINITION) or True,
    }


def _describe(schema: Any) -> Json:
    if hasattr(schema, "json"):
        described: Json = schema.json()
        return described
    mapping = mapping_of(schema)
    if mapping is None:
        message = f"the definition holds {schema!r}, which has no JSON Schema"
        raise TypeError(message)
    return _object(mapping)


def _object(mapping: Mapping[Any, Any]) -> Json:
    result: Json = {"type": "object", "additionalProperties": False}
    for key, value in mapping.items():
        nullable = {"anyOf": [_describe(value), {"type": "null"}]}
        if isinstance(key, vol.Marker):
            properties = result.setdefault("properties", {})
            properties[str(key)] = {"description": key.description, **nullable}
        else:
            result["propertyNames"] = key.json()
            result["additionalProperties"] = nullable
    return result


def _needs(schema: Any) -> Json:
    """Only the required keys, at every depth; empty where there are none."""
    mapping = mapping_of(schema)
    if mapping is None:
        return {}
    result: Json = {}
    required = [str(key) for key in mapping if isinstance(key, vol.Required)]
    if required:
        result["required"] = required
    for key, value in mapping.items():
        below = _needs(value)
        if below and isinstance(key, vol.Marker):
            result.setdefault("properties", {})[str(key)] = below
    return result
