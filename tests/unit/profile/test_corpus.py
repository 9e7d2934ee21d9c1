"""Every file of the corpus is a rule of the profile file: what loads, and what is said where."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import jsonschema
import pytest

from gateway.profile import (
    RULES,
    Band,
    Exact,
    Finding,
    ParamRule,
    Profile,
    check_file,
    json_schema,
    load_file,
    render_yaml,
)

CASES: Final = Path(__file__).parents[2] / "cases" / "profiles"
VALID: Final = sorted([*CASES.glob("valid/*.yaml"), *CASES.glob("valid/*.yml")])
INVALID: Final = sorted([*CASES.glob("invalid/*.yaml"), *CASES.glob("invalid/*.yml")])

EXPECTED_FINDING: Final = re.compile(r"(?:(?P<file>\S+):)?(?P<place>\d+:\d+) (?P<rule>[a-z0-9-]+)")
EXPECTED_LEAF: Final = re.compile(r"^# expect-(?P<leaf>\S+): (?P<text>.*?)\r?$", re.MULTILINE)


def expected_findings(path: Path) -> list[tuple[str, str, str]]:
    """What a file says about itself, in its first line or in a file beside it."""
    beside = path.with_name(f"{path.name}.expect")
    text = beside.read_text() if beside.exists() else path.read_text().partition("\n")[0]
    matches = EXPECTED_FINDING.finditer(text.removeprefix("# expect: "))
    return sorted((match["file"] or path.name, match["place"], match["rule"]) for match in matches)


def told(findings: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """The findings as the corpus writes them: file below the corpus, line and column, rule."""
    folder = (CASES / "invalid").resolve()
    return sorted(
        (
            Path(finding.file).resolve().relative_to(folder).as_posix(),
            f"{finding.line}:{finding.column}",
            finding.rule,
        )
        for finding in findings
    )


def rule_leaves(rule: ParamRule) -> dict[str, object]:
    """A rule of `params`, with wire spellings."""
    ends = {"default": rule.default, "pin": rule.pin, "min": rule.minimum, "max": rule.maximum}
    return {
        **{key: "none" if end is None else end.wire.decode() for key, end in ends.items()},
        "numeric": rule.numeric,
        "whole": rule.whole,
        "exclusive_min": rule.exclusive_minimum,
        "exclusive_max": rule.exclusive_maximum,
        "values": f"[{', '.join(value.wire.decode() for value in rule.values)}]",
        "normalize": "[{}]".format(
            ", ".join(f"[{old.wire.decode()}, {new.wire.decode()}]" for old, new in rule.normalize)
        ),
    }


def sampling_text(rule: Exact | Band) -> str:
    """A rule of `sampling`, with wire spellings."""
    match rule:
        case Exact():
            return rule.value.wire.decode()
        case Band():
            return f"{rule.minimum.wire.decode()}..{rule.maximum.wire.decode()}"


def leaves(profile: Profile) -> Mapping[str, str]:
    """A profile as flat text, so that a comment of one line can name a leaf and its value."""
    values: dict[str, object] = {
        "name": profile.name,
        "limits.max_body_bytes": profile.max_body_bytes,
        "limits.max_images": profile.max_images,
        "models.aliases": list(profile.aliases),
        "errors.bad_request_type": profile.bad_request_type,
        "protocols.off": [
            protocol
            for protocol in ("chat", "completions", "embeddings", "responses", "messages")
            if protocol in profile.protocols_off
        ],
    }
    if profile.sampling is not None and profile.sampling.rules:
        values["sampling.conflict"] = profile.sampling.conflict.value
        values["sampling.fields"] = [rule.field for rule in profile.sampling.rules]
        values |= {f"sampling.{rule.field}": sampling_text(rule) for rule in profile.sampling.rules}
    if profile.output is not None:
        values |= {
            "output.cap": profile.output.cap,
            "output.on_exceed": profile.output.on_exceed.value,
            "output.default": profile.output.default,
            "output.written": profile.output.written,
        }
    for field, rule in profile.params.items():
        values |= {f"params.{field}.{key}": value for key, value in rule_leaves(rule).items()}
    return {key: leaf_text(value) for key, value in values.items()}


def leaf_text(value: object) -> str:
    """A value as the corpus writes it: text bare, absence as `none`, the rest as JSON."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_file_loads_as_it_says(path: Path) -> None:
    """A valid file has no finding, and each leaf that it names has the value that it names."""
    assert check_file(str(path)) == ()

    found = leaves(load_file(str(path)).profile)

    expected = {
        match["leaf"]: match["text"] for match in EXPECTED_LEAF.finditer(path.read_text("utf-8"))
    }
    assert {leaf: found.get(leaf, "none") for leaf in expected} == expected


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_merged_file_loads_back(path: Path, tmp_path: Path) -> None:
    """What is printed of a profile loads to the same profile, with and without origins."""
    loaded = load_file(str(path))
    for origins in (False, True):
        printed = tmp_path / f"printed-{origins}.yaml"
        printed.write_text(render_yaml(loaded, origins=origins), encoding="utf-8")

        again = load_file(str(printed))

        assert leaves(again.profile) == leaves(loaded.profile)
        assert again.digest == loaded.digest


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_merged_file_fits_the_schema(path: Path) -> None:
    """An editor marks nothing in what the loader takes."""
    jsonschema.Draft202012Validator(json_schema()).validate(load_file(str(path)).tree)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_file_has_exactly_its_findings(path: Path) -> None:
    """Each fault of a file is found, once, under its rule and at its place; nothing else is."""
    expected = expected_findings(path)

    findings = check_file(str(path))

    assert expected
    assert told(findings) == expected


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_findings_fit_one_line(path: Path) -> None:
    """A finding names a known rule and says what is wrong in one short printable line."""
    for finding in check_file(str(path)):
        assert finding.rule in RULES
        assert finding.message.isprintable()
        assert 0 < len(finding.message) < 500


def test_corpus_breaks_every_rule() -> None:
    """There is no rule about files that no file of the corpus breaks (one rule is about flags)."""
    broken = {rule for path in INVALID for _, _, rule in expected_findings(path)}

    assert set(RULES) - broken == {"selection"}
