"""What is wrong with a profile: one `Finding` a fault, and the table of all rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unreadable": "A profile is a regular file that exists and can be read.",
        "not-utf8": "A profile is text in UTF-8, with or without a byte order mark.",
        "yaml-syntax": "A profile is one well-formed YAML document.",
        "yaml-limits": "A profile is bounded in bytes, values, depth and length of keys.",
        "yaml-tag": "Values carry no tag but those of YAML's core schema.",
        "several-documents": "A file holds one YAML document.",
        "duplicate-key": "A mapping gives each key once.",
        "merge-key": "A merge key (<<) takes a mapping, or a list of mappings.",
        "top-level": "The top of a profile is a mapping.",
        "unknown-key": "Only known keys are allowed, at every depth (x- keys at the top are free).",
        "forbidden-field": "Some request fields cannot be governed by a rule of their own.",
        "wrong-type": "Each key takes a value of its type.",
        "missing-key": "A section that is given has the keys that it needs.",
        "out-of-domain": "A value lies in the domain of its key.",
        "empty-range": "A range or a list of accepted values accepts something.",
        "empty-rule": "A rule says something.",
        "conflicting-keys": "Keys that contradict each other are not given together.",
        "refused-value": "A default, a pin and a normalize source are accepted by their own rule.",
        "mixed-values": "A numeric rule has numbers only.",
        "useless-band": "A band is not used where conflicts are allowed: it would do nothing.",
        "governed-twice": "A field is governed by `sampling` or by `params`, not by both.",
        "extends-cycle": "A profile does not extend itself, directly or through others.",
        "unknown-preset": "A preset is one of the known ones.",
        "selection": "At most one flag names the profile, and the flags fit together.",
    }
)
"""Every rule of the checker: its id, and the rule in one sentence."""

MAX_FINDINGS: Final = 100
"""No more are reported about one profile: a file with as many is not a profile."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a source. Line and column count from 1, columns in characters."""

    source: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault in a profile.

    Attributes:
        file: the file as the operator named it, a preset's name, or a flag.
        line: from 1.
        column: from 1, in characters.
        rule: a key of `RULES`.
        path: the key at fault, as `sampling.params.top_p` or `models.aliases[0]`; may be empty.
        message: one line, which names the key, the value and what would be right.
    """

    file: str
    line: int
    column: int
    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{one_line(self.file)}:{self.line}:{self.column}: {self.rule}: {self.message}"


class ProfileError(Exception):
    """A profile that cannot be used. Its text is one line a finding.

    Args:
        findings: at least one.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


def build_finding(mark: Mark, rule: str, message: str, path: str = "") -> Finding:
    """A finding at `mark`; its message is made to fit on one line."""
    return Finding(mark.source, mark.line, mark.column, rule, path, one_line(message))


def one_line(text: str) -> str:
    """`text` with everything that could break or hide a line of a terminal escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
