"""The command `schema`: what editors check profile files with."""

import json
from pathlib import Path
from typing import Final

import jsonschema
import pytest
import yaml

from gateway.cli.main import run
from gateway.profile import preset_names, preset_text

SHIPPED: Final = Path(__file__).parents[3] / "profiles" / "schema.json"


@pytest.fixture
def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    """What the command prints."""
    assert run(["schema"]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    return out


def test_schema_is_one(printed: bytes) -> None:
    """The output is a JSON Schema of the dialect that it names."""
    schema = json.loads(printed)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_schema_is_the_shipped_one(printed: bytes) -> None:
    """The command and the file beside the presets are the same bytes."""
    assert printed == SHIPPED.read_bytes()


@pytest.mark.parametrize("name", preset_names())
def test_presets_fit_the_schema(printed: bytes, name: str) -> None:
    """Every preset passes in an editor."""
    jsonschema.Draft202012Validator(json.loads(printed)).validate(
        yaml.safe_load(preset_text(name)) or {}
    )


@pytest.mark.parametrize(
    "document",
    [
        {"limit": 1},
        {"limits": {"max_image": 1}},
        {"sampling": {"params": {"temprature": 1}}},
        {"sampling": {"params": {"temperature": 2.01}}},
        {"sampling": {"params": {"top_k": 0}}},
        {"models": {"aliases": "kimi"}},
        {"protocols": {"chat": "no"}},
        {"params": {"model": {"pin": "a"}}},
        {"limits": {"max_body_bytes": "10MB"}},
        [],
    ],
    ids=str,
)
def test_schema_refuses(printed: bytes, document: object) -> None:
    """An editor marks misspelled keys, wrong types and values out of their domain."""
    assert not jsonschema.Draft202012Validator(json.loads(printed)).is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"x-anything": [None, {"a": 1}]},
        {"extends": "moonshot-kimi", "sampling": None, "limits": {"max_images": None}},
        {
            "extends": "moonshot-kimi",
            "sampling": {"params": {"n": None, "temperature": {"max": 0.5}}},
        },
        {"sampling": {"params": {"top_k": -1}}},
        {"limits": {"max_body_bytes": "64 MiB"}},
        {"params": {"top_k": {"type": "int", "min": 0, "normalize": [[0, -1]]}}},
    ],
    ids=str,
)
def test_schema_accepts(printed: bytes, document: object) -> None:
    """An editor does not mark what is right in a file that extends another: nulls, one end."""
    jsonschema.Draft202012Validator(json.loads(printed)).validate(document)
