"""How findings are written: one function a format, in one table.

Each takes the findings of a whole run and returns the whole output. None of them reads a file,
a clock or the environment, so the same findings are always the same text (`render_sarif` asks
for the working directory, to name files as the repository does).
"""

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from gateway.profile import Finding


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules that findings are about.

    Attributes:
        rules: by id, each in one sentence.
        warnings: ids of those whose findings are warnings only.
    """

    rules: Mapping[str, str]
    warnings: Collection[str] = ()

    def level(self, finding: "Finding") -> str:
        """`error` or `warning`."""
        return "warning" if finding.rule in self.warnings else "error"


def profile_rules() -> Rulebook:
    """The rules of profiles."""
    from gateway.profile import RULES

    return Rulebook(RULES)


Reporter = Callable[[Sequence["Finding"], Rulebook], str]
"""Findings in, the text for standard output out: it ends with a newline, or is empty."""

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Format(StrEnum):
    """The names of the formats, as `--format` takes them."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def render_text(findings: Sequence["Finding"], book: Rulebook) -> str:
    """One line a finding, `file:line:column: rule: message`, which editors can jump to."""
    return "".join(
        f"{finding}{' (a warning)' if finding.rule in book.warnings else ''}\n"
        for finding in findings
    )


def render_json(findings: Sequence["Finding"], book: Rulebook) -> str:
    """A list of objects with the keys file, line, column, rule, path and message."""
    del book
    return json.dumps([asdict(finding) for finding in findings], indent=2) + "\n"


_COMMAND_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_COMMAND_PROPERTY: Final = _COMMAND_DATA | str.maketrans({":": "%3A", ",": "%2C"})


def render_github(findings: Sequence["Finding"], book: Rulebook) -> str:
    """One workflow command a finding: an annotation at the place in the pull request."""
    return "".join(
        f"::{book.level(f)} "
        f"file={f.file.translate(_COMMAND_PROPERTY)},line={f.line},col={f.column},"
        f"title={f.rule.translate(_COMMAND_PROPERTY)}::{f.message.translate(_COMMAND_DATA)}\n"
        for f in findings
    )


def _artifact(file: str) -> dict[str, str]:
    """The location of a file: relative to the working directory where it lies below it."""
    path = PurePath(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    uri = quote(os.fsencode(path), safe="/")
    if path.is_absolute():
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _result(finding: "Finding", rule_index: int, level: str) -> dict[str, object]:
    """One result of a SARIF run."""
    location: dict[str, object] = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.file),
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": level,
        "message": {"text": finding.message},
        "locations": [location],
    }


def render_sarif(findings: Sequence["Finding"], book: Rulebook) -> str:
    """A SARIF 2.1.0 log with one run: every rule there is, and one result a finding."""
    from gateway import __version__

    indices = {rule: index for index, rule in enumerate(book.rules)}
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in book.rules.items()]
    run = {
        "tool": {"driver": {"name": "sgl-gateway", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, indices[finding.rule], book.level(finding)) for finding in findings
        ],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


REPORTERS: Final[Mapping[str, Reporter]] = MappingProxyType(
    {
        Format.TEXT: render_text,
        Format.JSON: render_json,
        Format.GITHUB: render_github,
        Format.SARIF: render_sarif,
    }
)
"""Every format by the name that `--format` knows it under."""
