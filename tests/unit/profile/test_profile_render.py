"""Printing a profile so that it loads back, its digest, and the JSON Schema of a file."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped, unused-ignore]
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.profile import (
    PROTOCOLS,
    SAMPLING_FIELDS,
    Loaded,
    ProfileError,
    check_file,
    json_schema,
    load_file,
    load_preset,
    preset_names,
    preset_text,
    presets,
    render_json,
    render_yaml,
)
from gateway.profile.definition import DOMAINS, FORBIDDEN_FIELDS

Write = Callable[..., str]
Load = Callable[..., Loaded]
Found = Callable[[str], list[tuple[int, int, str, str]]]


@pytest.mark.parametrize("name", ["openai-compatible", "moonshot-kimi", "stepfun-step5"])
@pytest.mark.parametrize("origins", [False, True])
def test_a_printed_preset_loads_back(write: Write, name: str, origins: bool) -> None:
    """The print loads to an equal profile, and has no nulls."""
    loaded = load_preset(name)
    again = load_file(write({"p.yaml": render_yaml(loaded, origins=origins)}))
    assert (again.profile, again.tree, again.digest) == (loaded.profile, loaded.tree, loaded.digest)
    assert "null" not in render_yaml(loaded)


def test_the_print_of_a_child(load: Load, tmp_path: Path) -> None:
    """Merged, emptied sections gone, each leaf with its origin."""
    loaded = load(
        {
            "c.yaml": "extends: b.yaml\nx-note: 1\nlimits: {max_images: null}\n"
            "models:\n  aliases:\n  - no\n",
            "b.yaml": "limits: {max_images: 5}\n"
            "sampling: {params: {temperature: {min: .5, max: 1}}}\n"
            "params: {a: {default: {b: []}}}\n",
        }
    )
    assert render_yaml(loaded, origins=True) == (
        "sampling:\n"
        "  params:\n"
        "    temperature:\n"
        f"      min: 0.5  # {tmp_path}/b.yaml:2\n"
        f"      max: 1  # {tmp_path}/b.yaml:2\n"
        "params:\n"
        "  a:\n"
        f"    default: {{b: []}}  # {tmp_path}/b.yaml:3\n"
        "models:\n"
        f'  aliases: ["no"]  # {tmp_path}/c.yaml:5\n'
    )


def test_an_empty_profile_prints_as_one(load: Load) -> None:
    """Nothing prints as an empty mapping."""
    assert render_yaml(load("")) == "{}\n"
    assert render_json(load("")) == "{}\n"


def test_the_json_print_keeps_literals(load: Load) -> None:
    """Numbers are spelled as the operator did, where JSON can."""
    text = render_json(load("sampling: {params: {temperature: 0.70, top_p: .5, n: 0x2}}"))
    assert text == (
        "{\n"
        '  "sampling": {\n'
        '    "params": {\n'
        '      "temperature": 0.70,\n'
        '      "top_p": 0.5,\n'
        '      "n": 2\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("name: a\nlimits: {max_images: 1}", "limits: {max_images: 1}\nname: a", True),
        ("name: a", "# note\nname: 'a'\nx-b: 1", True),
        ("extends: moonshot-kimi", "name: moonshot-kimi", False),
        ("limits: {}", "", True),
        ("sampling: {params: {top_p: 0.5}}", "sampling: {params: {top_p: .5}}", True),
        ("sampling: {params: {top_p: 0.5}}", "sampling: {params: {top_p: 0.50}}", False),
        ("models: {aliases: [a, b]}", "models: {aliases: [b, a]}", False),
        ("name: a", "name: b", False),
    ],
)
def test_the_digest(load: Load, left: str, right: str, equal: bool) -> None:
    """Equal trees have equal digests, whatever the order of keys, comments and quotes."""
    assert (load(left).digest == load(right).digest) is equal


def test_the_digest_is_short_hexadecimal() -> None:
    """Twelve digits, the same in every process."""
    assert load_preset("openai-compatible").digest == "8c559cc483e8"


_TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff")
    | st.sampled_from("\u2028'\"#:-&*!|>%@`{}[],?~ \t\n\r\x00\x7f\x85\xa0\ufeff"),
    max_size=12,
) | st.sampled_from(
    [
        "null",
        "true",
        "no",
        "on",
        "010",
        "1e5",
        "-",
        "",
        ".nan",
        "0x1",
        "~",
        "<<",
        "=",
        "---",
        "n",
        "12:30",
    ]
)
_LITERALS = st.sampled_from(
    ["0", "-1", "1.0", "1e5", ".5", "1.", "+2", "010", "0x1F", "0o7", "-0", "0.10"]
)


def _literal_tree(depth: int) -> st.SearchStrategy[str]:
    """A free value, spelled in flow YAML."""
    leaf = _TEXTS.map(_quote) | _LITERALS | st.sampled_from(["true", "false"])
    if not depth:
        return leaf
    below = _literal_tree(depth - 1)
    return (
        leaf
        | st.lists(below, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.dictionaries(_TEXTS, below, max_size=3).map(
            lambda items: "{" + ", ".join(f"{_quote(k)}: {v}" for k, v in items.items()) + "}"
        )
    )


def _quote(text: str) -> str:
    """A double-quoted YAML text with every character outside ASCII's printable ones escaped."""
    return (
        '"'
        + "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
        + '"'
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.tuples(_TEXTS, st.lists(_TEXTS.filter(bool), max_size=3)),
    field=_TEXTS.filter(lambda text: text and text not in FORBIDDEN_FIELDS),
    default=_literal_tree(3),
    temperature=st.floats(0, 2),
)
def test_whatever_loads_prints_and_loads_back(
    tmp_path_factory: pytest.TempPathFactory,
    texts: tuple[str, list[str]],
    field: str,
    default: str,
    temperature: float,
) -> None:
    """Any texts, field names, free values and numbers survive the print."""
    name, aliases = texts
    text = (
        f"name: {_quote(name)}\n"
        f"models: {{aliases: [{', '.join(map(_quote, aliases))}]}}\n"
        f"params: {{? {_quote(field)} : {{default: {default}}}}}\n"
    )
    if field != "temperature":
        text += f"sampling: {{params: {{temperature: {temperature!r}}}}}\n"
    path = tmp_path_factory.getbasetemp() / "roundtrip # é.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load_file(str(path))
    assert (loaded.profile.name, loaded.profile.aliases) == (name, tuple(aliases))
    assert json.loads(render_json(loaded)) == loaded.tree
    for origins in (False, True):
        printed = render_yaml(loaded, origins=origins)
        path.write_text(printed, encoding="utf-8")
        again = load_file(str(path))
        assert again.profile == loaded.profile
        assert again.digest == loaded.digest
    rule = loaded.profile.params[field]
    assert rule.default is not None
    assert json.loads(rule.default.wire) == rule.default.value


# the JSON Schema


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    """The schema of a file."""
    return jsonschema.Draft202012Validator(json_schema())


def test_the_schema_is_itself_valid() -> None:
    """It is a JSON Schema of 2020-12."""
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_the_schema_beside_the_presets_is_fresh() -> None:
    """`profiles/schema.json` is what the definition generates today."""
    shipped = (presets._folder() / "schema.json").read_text(encoding="utf-8")
    assert shipped == json.dumps(json_schema(), indent=2) + "\n"


@pytest.mark.parametrize("name", ["openai-compatible", "moonshot-kimi", "stepfun-step5"])
def test_presets_fit_the_schema(validator: jsonschema.Draft202012Validator, name: str) -> None:
    """Editors find nothing in a preset, nor in its print."""
    assert name in preset_names()
    validator.validate(yaml.safe_load(preset_text(name)))
    validator.validate(load_preset(name).tree)


def test_every_key_is_described() -> None:
    """An editor shows a line for each key, and every sampling field and protocol is there."""
    seen: list[str] = []

    def walk(schema: Any) -> None:
        if not isinstance(schema, dict):
            return
        for key, value in schema.get("properties", {}).items():
            seen.append(key)
            assert value["description"], key
            walk(value)
        walk(schema.get("additionalProperties"))
        for option in schema.get("anyOf", []):
            walk(option)

    walk(json_schema())
    assert {*SAMPLING_FIELDS, *PROTOCOLS, "cap", "normalize", "extends"} <= set(seen)
    assert tuple(DOMAINS) == SAMPLING_FIELDS


_BOTH_ACCEPT = [
    "name: a",
    "x-a: [1]",
    "extends: moonshot-kimi\noutput: {max_tokens: {on_exceed: clamp, cap: 5}}",
    "sampling: {conflict: reject, params: {temperature: {min: 0, max: 1}, top_k: -1, n: 1.0}}",
    "sampling: null",
    "limits: {max_images: null, max_body_bytes: 1 MiB}",
    "limits: {max_body_bytes: 1e6}",
    "params: {a: {default: {b: 1}, normalize: [[1, 2]]}}".replace("default: {b: 1}, ", ""),
    "protocols: {chat: false}",
    "models: {aliases: [a]}",
    "errors: {bad_request_type: x}",
    "output: {max_tokens: {cap: 1e5}}",
]
_BOTH_REFUSE = [
    "limit: {}",
    "limits: {max_image: 1}",
    "limits: {max_images: 0}",
    "limits: {max_images: 1.5}",
    "limits: {max_body_bytes: 1MB}",
    "limits: {max_body_bytes: 0}",
    "sampling: {params: {n: 129}}",
    "sampling: {params: {top_k: 0}}",
    "sampling: {params: {top_k: {min: -1, max: 1}}}",
    "sampling: {params: {top_p: 0}}",
    "sampling: {params: {temperature: {min: 0}}}",
    "sampling: {params: {seed: 1}}",
    "sampling: {conflict: maybe}",
    "params: {model: {pin: a}}",
    "params: {a: 5}",
    "params: {a: {values: []}}",
    "params: {a: {normalize: [[1]]}}",
    "params: {a: {type: float}}",
    "output: {max_tokens: {default: 1}}",
    "models: {aliases: kimi}",
    "models: {aliases: [1]}",
    "errors: {bad_request_type: ''}",
    "protocols: {chat: 1}",
    "name: 5",
]


@pytest.mark.parametrize(
    ("text", "good"),
    [(text, True) for text in _BOTH_ACCEPT] + [(text, False) for text in _BOTH_REFUSE],
)
def test_schema_and_loader_agree(
    validator: jsonschema.Draft202012Validator, found: Found, text: str, good: bool
) -> None:
    """What an editor flags the loader refuses, and the other way round, file by file."""
    document = yaml.load(text.replace("1e5", "100000").replace("1e6", "1000000"), yaml.SafeLoader)
    assert validator.is_valid(document) is good
    assert (found(text) == []) is good


@pytest.mark.parametrize(
    "text",
    [
        "extends: a.yaml\nsampling: {params: {temperature: {max: 0.5}}}",
        "extends: a.yaml\noutput: {max_tokens: {on_exceed: clamp}}",
        "extends: a.yaml\nsampling: {params: {n: null}}",
        "extends: a.yaml\noutput: {max_tokens: {default: null}}",
    ],
)
def test_a_child_may_be_partial(validator: jsonschema.Draft202012Validator, text: str) -> None:
    """Where a parent may give the rest, an editor does not ask for it."""
    validator.validate(yaml.safe_load(text))


def test_a_profile_never_holds_what_json_cannot(load: Load) -> None:
    """Infinity and NaN do not reach a tree."""
    for text in (".inf", ".nan", "1e999", "[.nan]"):
        with pytest.raises(ProfileError):
            load(f"params: {{a: {{default: {text}}}}}")
    assert math.isfinite(load("params: {a: {default: 1e308}}").profile.params["a"].default.value)  # type: ignore[union-attr, arg-type]


def test_check_file_says_nothing_about_a_good_file(write: Write) -> None:
    """A file without faults has no findings."""
    assert check_file(write({"p.yaml": "extends: stepfun-step5\n"})) == ()
