"""The command `validate`, and the formats in which findings are written."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from gateway.cli.main import run
from gateway.cli.reporters import REPORTERS, Format, profile_rules
from gateway.profile import RULES, Finding

Run = Callable[..., tuple[int, str, str]]

URI: Final = r"^(file://)?([A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-F]{2})+$"

SARIF_PART: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "minItems": 1, "maxItems": 1, "items": {"$ref": "#/$defs/run"}},
    },
    "$defs": {
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "additionalProperties": False,
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "additionalProperties": False,
                    "properties": {"driver": {"$ref": "#/$defs/driver"}},
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
            },
        },
        "driver": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": {"$ref": "#/$defs/text"},
                        },
                    },
                },
            },
        },
        "text": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
        "result": {
            "type": "object",
            "required": ["message", "ruleId", "ruleIndex", "locations"],
            "additionalProperties": False,
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/$defs/text"},
                "locations": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1,
                    "items": {"$ref": "#/$defs/location"},
                },
            },
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "additionalProperties": False,
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation", "region"],
                    "additionalProperties": False,
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri"],
                            "additionalProperties": False,
                            "properties": {
                                "uri": {"type": "string", "pattern": URI},
                                "uriBaseId": {"const": "%SRCROOT%"},
                            },
                        },
                        "region": {
                            "type": "object",
                            "required": ["startLine", "startColumn"],
                            "additionalProperties": False,
                            "properties": {
                                "startLine": {"type": "integer", "minimum": 1},
                                "startColumn": {"type": "integer", "minimum": 1},
                            },
                        },
                    },
                },
                "logicalLocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["fullyQualifiedName"],
                        "additionalProperties": False,
                        "properties": {"fullyQualifiedName": {"type": "string", "minLength": 1}},
                    },
                },
            },
        },
    },
}
"""The parts of the format SARIF 2.1.0 that are used, as strict as its schema or stricter."""


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Runs the command line in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def invoke(*args: str) -> tuple[int, str, str]:
        status = run(list(args))
        out, err = capfd.readouterr()
        return status, out, err

    return invoke


def finding(file: str = "a.yaml", message: str = "is wrong", path: str = "limits") -> Finding:
    """A finding at 2:3."""
    return Finding(file, 2, 3, "unknown-key", path, message)


def test_every_finding_of_every_file_is_told(command: Run) -> None:
    """No file and no fault hides another: one line each, in the order of the files, and a 1."""
    Path("b.yaml").write_text("limit: 1\nname: 5\n")
    Path("good.yaml").write_text("name: good\n")
    Path("a.yaml").write_text("sampling:\n  params:\n    temprature: 1\n")

    status, out, err = command("validate", "b.yaml", "good.yaml", "a.yaml")

    assert status == 1
    assert [line.rsplit(": ", 1)[0].split(": ")[:2] for line in out.splitlines()] == [
        ["b.yaml:1:1", "unknown-key"],
        ["b.yaml:2:7", "wrong-type"],
        ["a.yaml:3:5", "unknown-key"],
    ]
    assert err == "3 findings in 2 of 3 files\n"


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("limit: {}", "limits"),
        ("Limits: {}", "limits"),
        ("sampling: {params: {temprature: 1}}", "temperature"),
        ("output: {max_tokens: {cap: 1, on_excess: clamp}}", "on_exceed"),
        ("protocols: {chats: true}", "chat"),
        ("extends: moonshot-kimy", "moonshot-kimi"),
    ],
)
def test_near_miss_gets_a_suggestion(command: Run, text: str, suggestion: str) -> None:
    """A misspelled key or preset is answered with the one that was probably meant."""
    Path("a.yaml").write_text(text)

    _, out, _ = command("validate", "a.yaml")

    assert re.search(rf"did you mean ['\"]?{suggestion}\b", out)


def test_valid_files_print_nothing(command: Run) -> None:
    """Standard output has findings only, so that valid files leave it empty; and a 0."""
    Path("a.yaml").write_text("")
    Path("b.yaml").write_text("extends: a.yaml\n")

    assert command("validate", "a.yaml") == (0, "", "1 file checked, no findings\n")
    assert command("validate", "a.yaml", "b.yaml") == (0, "", "2 files checked, no findings\n")


@pytest.mark.parametrize("args", [(), ("--format", "xml", "a.yaml"), ("--strict", "a.yaml")])
def test_misuse_ends_with_two(command: Run, args: tuple[str, ...]) -> None:
    """No file, an unknown format or an unknown option is a matter of usage."""
    Path("a.yaml").write_text("limit: 1\n")

    status, out, err = command("validate", *args)

    assert (status, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_finding_in_a_shared_parent_is_told_once(command: Run) -> None:
    """Files that extend the same broken one do not repeat what is wrong with it."""
    Path("base.yaml").write_text("limit: 1\n")
    for child in ("a.yaml", "b.yaml"):
        Path(child).write_text("extends: base.yaml\n")

    status, out, err = command("validate", "a.yaml", "b.yaml")

    assert status == 1
    assert [line.split(": ")[0] for line in out.splitlines()] == ["base.yaml:1:1"]
    assert err == "1 finding in 2 of 2 files\n"


def test_what_cannot_be_read_is_a_finding(command: Run) -> None:
    """A missing file, a folder, a dangling link, a pipe: one line each that names it."""
    Path("folder").mkdir()
    Path("dangling.yaml").symlink_to("nowhere.yaml")
    os.mkfifo("pipe.yaml")
    files = ("missing.yaml", "folder", "dangling.yaml", "pipe.yaml")

    status, out, err = command("validate", *files)

    assert status == 1
    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        [f"{file}:1:1", "unreadable"] for file in files
    ]
    assert err == "4 findings in 4 of 4 files\n"


@pytest.mark.parametrize(
    ("parent", "said"),
    [
        ("missing.yaml", "missing.yaml"),
        ("dangling.yaml", "dangling.yaml"),
        ("./folder/", "./folder/"),
        ("link.yaml", "a.yaml -> link.yaml"),
        ("folder/../a.yaml", "a.yaml -> folder/../a.yaml"),
    ],
    ids=["missing", "dangling-link", "folder", "circle-through-a-link", "circle-by-spelling"],
)
def test_bad_parent_is_told_where_it_is_named(command: Run, parent: str, said: str) -> None:
    """A parent that cannot be had, or leads in a circle, is the fault of the `extends` line."""
    Path("folder").mkdir()
    Path("dangling.yaml").symlink_to("nowhere.yaml")
    Path("link.yaml").symlink_to("a.yaml")
    Path("a.yaml").write_text(f"name: a\nextends: {parent}\n")

    status, out, _ = command("validate", "a.yaml")

    [line] = out.splitlines()
    assert status == 1
    assert line.startswith("a.yaml:2:10: ")
    assert said in line


def test_mounted_volume_is_read_under_its_own_names(command: Run) -> None:
    """A relative parent lies beside the path that the operator wrote, whatever that links to."""
    Path("data").mkdir()
    Path("data/profile.yaml").write_text("extends: base.yaml\n")
    Path("elsewhere.yaml").write_text("limit: 1\n")
    Path("etc").mkdir()
    Path("etc/profile.yaml").symlink_to("../data/profile.yaml")
    Path("etc/base.yaml").symlink_to("../elsewhere.yaml")

    _, out, _ = command("validate", "etc/profile.yaml")

    assert [line.split(": ")[:2] for line in out.splitlines()] == [
        ["etc/base.yaml:1:1", "unknown-key"]
    ]


@pytest.mark.parametrize("form", Format)
def test_any_file_name_is_written(command: Run, form: Format) -> None:
    """A name with a line break, or that is no text at all, breaks neither a line nor the run."""
    name = os.fsdecode(b"a\n\xff.yaml")
    Path(name).write_text("limit: 1\n")

    status, out, err = command("validate", "--format", form, name)

    assert status == 1
    assert err == "1 finding in 1 of 1 file\n"
    if form in {Format.TEXT, Format.GITHUB}:
        assert out.count("\n") == 1
    else:
        assert json.loads(out)


def test_json_is_a_list_of_findings(command: Run) -> None:
    """Each finding is an object with six keys, in their order; no finding is an empty list."""
    Path("a.yaml").write_text("\nlimits: {max_image: 1}\n")

    status, out, _ = command("validate", "--format", "json", "a.yaml")

    [row] = json.loads(out)
    message = row.pop("message")
    assert status == 1
    assert list(row.items()) == [
        ("file", "a.yaml"),
        ("line", 2),
        ("column", 10),
        ("rule", "unknown-key"),
        ("path", "limits.max_image"),
    ]
    assert "max_images" in message
    assert REPORTERS["json"]([], profile_rules()) == "[]\n"


@pytest.mark.parametrize(
    ("file", "message", "expected"),
    [
        ("a.yaml", "plain", "::error file=a.yaml,line=2,col=3,title=unknown-key::plain\n"),
        (
            "a,b:c%.yaml",
            "100%, and: more",
            "::error file=a%2Cb%3Ac%25.yaml,line=2,col=3,title=unknown-key::100%25, and: more\n",
        ),
        (
            "a\r\nb.yaml",
            "one\r\ntwo\n::error::",
            "::error file=a%0D%0Ab.yaml,line=2,col=3,title=unknown-key::one%0D%0Atwo%0A::error::\n",
        ),
    ],
    ids=["plain", "delimiters", "line-breaks"],
)
def test_workflow_commands_are_escaped(file: str, message: str, expected: str) -> None:
    """Nothing in a name or a message ends a workflow command, its properties or a property."""
    assert REPORTERS["github"]([finding(file, message)], profile_rules()) == expected


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("profiles/a.yaml", "profiles/a.yaml"),
        ("./a.yaml", "a.yaml"),
        ("../a.yaml", "../a.yaml"),
        ("a b#c?.yaml", "a%20b%23c%3F.yaml"),
        ("100%.yaml", "100%25.yaml"),
        ("c:a.yaml", "c%3Aa.yaml"),
        ("größe.yaml", "gr%C3%B6%C3%9Fe.yaml"),
        (os.fsdecode(b"\xff.yaml"), "%FF.yaml"),
    ],
)
def test_sarif_names_files_by_relative_uris(file: str, uri: str) -> None:
    """A file is a URI relative to the repository, percent-encoded byte by byte."""
    log = json.loads(REPORTERS["sarif"]([finding(file)], profile_rules()))

    [location] = log["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": uri,
        "uriBaseId": "%SRCROOT%",
    }


def test_sarif_names_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path is made relative below the working directory, and a file URI elsewhere."""
    monkeypatch.chdir(tmp_path)
    inside, outside = str(tmp_path / "p" / "a.yaml"), "/etc/sgl router/profile.yaml"

    log = json.loads(REPORTERS["sarif"]([finding(inside), finding(outside)], profile_rules()))

    assert [
        result["locations"][0]["physicalLocation"]["artifactLocation"]
        for result in log["runs"][0]["results"]
    ] == [
        {"uri": "p/a.yaml", "uriBaseId": "%SRCROOT%"},
        {"uri": "file:///etc/sgl%20router/profile.yaml"},
    ]


def test_sarif_is_well_formed(command: Run) -> None:
    """The log has the shape of SARIF 2.1.0; each result points at its rule in the table."""
    Path("a b.yaml").write_text("limit: 1\nlimits: {max_images: 0}\n")

    status, out, _ = command("validate", "--format", "sarif", "a b.yaml", "missing.yaml")

    assert status == 1
    log = json.loads(out)
    jsonschema.Draft202012Validator(SARIF_PART).validate(log)
    [run_] = log["runs"]
    assert [rule["id"] for rule in run_["tool"]["driver"]["rules"]] == list(RULES)
    assert [list(RULES)[result["ruleIndex"]] for result in run_["results"]] == [
        "unknown-key",
        "out-of-domain",
        "unreadable",
    ]
    assert [result["ruleId"] for result in run_["results"]] == [
        "unknown-key",
        "out-of-domain",
        "unreadable",
    ]


def test_sarif_without_findings_has_an_empty_run() -> None:
    """Code scanning closes old alerts only where it is told that there are no results."""
    log = json.loads(REPORTERS["sarif"]([], profile_rules()))

    jsonschema.Draft202012Validator(SARIF_PART).validate(log)
    assert log["runs"][0]["results"] == []


def test_every_format_has_a_reporter() -> None:
    """Whatever `--format` accepts can be written."""
    assert set(REPORTERS) == set(Format)
