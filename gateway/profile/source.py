"""Reads one YAML file strictly, and says where every value stands.

However mangled a file is, reading it ends soon: its bytes are bounded here, its values, their
depth and what aliases make of them in `compose`, and nothing recurses over the file's own depth.
"""

import os
import re
import stat
from typing import Any, Final

import yaml

from gateway.profile.compose import Composer
from gateway.profile.findings import Finding, Mark, ProfileError, build_finding
from gateway.profile.nodes import ListNode, MapNode, ScalarNode

MAX_FILE_BYTES: Final = 256 * 1024

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The forbidden characters, not the allowed ones inverted: that takes 7 ms to compile.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"
)
_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BOM: Final = "\ufeff"


def load_document(
    path: str, source: str | None = None, *, what: str = "profile", secret: bool = False
) -> tuple[MapNode, list[Finding]]:
    """Reads a file.

    Args:
        path: as the operator wrote it.
        source: the name that findings and origins carry; the path where it is absent.
        what: the kind of file, for messages.
        secret: values may be secrets, so that no message shows one.

    Returns:
        The document (an empty file is an empty mapping), and the findings that did not keep it
        from being read.

    Raises:
        ProfileError: it cannot be read at all.
    """
    source = path if source is None else source
    return parse_document(_decode(_read(path, source), source), source, what=what, secret=secret)


def parse_document(
    text: str, source: str, *, what: str = "profile", secret: bool = False
) -> tuple[MapNode, list[Finding]]:
    """Like `load_document`, from text."""
    text = text.removeprefix(_BOM)
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        message = f"the character U+{ord(bad.group()):04X} is not allowed in YAML"
        raise ProfileError(
            [build_finding(_mark_at(text, bad.start(), source), "yaml-syntax", message)]
        )
    composer = Composer(source, secret=secret)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.feed(event)
    except yaml.MarkedYAMLError as error:
        finding = _syntax_finding(error, text, source)
        raise ProfileError([*composer.findings, finding]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The parser written in Python lets chr() speak for an escape beyond Unicode.
        finding = build_finding(Mark(source), "yaml-syntax", str(error))
        raise ProfileError([*composer.findings, finding]) from None
    root = composer.root
    if root is None or (isinstance(root, ScalarNode) and root.value is None):
        return MapNode(Mark(source)), composer.findings
    if not isinstance(root, MapNode):
        kind = "a list" if isinstance(root, ListNode) else "a single value"
        message = f"the top of a {what} is {kind}; it must be a mapping of keys to values"
        raise ProfileError([*composer.findings, build_finding(root.mark, "top-level", message)])
    return root, composer.findings


def _read(path: str, source: str) -> bytes:
    def refuse(reason: str) -> ProfileError:
        shown = path or "(an empty path)"
        return ProfileError([build_finding(Mark(source), "unreadable", f"{shown}: {reason}")])

    try:
        # O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        if os.path.islink(path):  # noqa: PTH114 - the path as written, not as Path folds it
            raise refuse("is a link that points to nothing") from None
        raise refuse("there is no such file") from None
    except (OSError, ValueError) as error:
        raise refuse(f"cannot be read: {_reason(error)}") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        directory = stat.S_ISDIR(mode)
        raise refuse(
            "is a directory; name the file in it" if directory else "is not a regular file"
        )
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        try:
            raw = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise refuse(f"cannot be read: {_reason(error)}") from None
    if len(raw) > MAX_FILE_BYTES:
        message = f"the file is larger than {MAX_FILE_BYTES // 1024} KiB"
        raise ProfileError([build_finding(Mark(source), "yaml-limits", message)])
    return raw


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _decode(raw: bytes, source: str) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = "the file is UTF-16, not UTF-8; save it as UTF-8"
        raise ProfileError([build_finding(Mark(source), "not-utf8", message)])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        message = f"the byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        mark = _mark_at(good.removeprefix(_BOM), len(good.removeprefix(_BOM)), source)
        raise ProfileError([build_finding(mark, "not-utf8", message)]) from None


def _mark_at(text: str, index: int, source: str) -> Mark:
    breaks = list(_LINE_BREAK.finditer(text, 0, index))
    return Mark(source, len(breaks) + 1, index - (breaks[-1].end() if breaks else 0) + 1)


def _syntax_finding(error: yaml.MarkedYAMLError, text: str, source: str) -> Finding:
    lines = _LINE_BREAK.split(text)
    at = error.problem_mark or error.context_mark
    mark = Mark(source) if at is None else Mark(source, at.line + 1, at.column + 1)
    if mark.line > len(lines):  # the parser counts a line after the last one
        mark = Mark(source, len(lines), len(lines[-1]) + 1)
    character = lines[mark.line - 1][mark.column - 1 : mark.column]
    if character == "\t" and "cannot start any token" in str(error.problem):
        return build_finding(mark, "yaml-syntax", "a tab stands where YAML wants spaces")
    context = error.context
    if context and error.context_mark is not None and error.context_mark.line + 1 != mark.line:
        context += f" that begins on line {error.context_mark.line + 1}"
    parts = (context, error.problem)
    return build_finding(mark, "yaml-syntax", ": ".join(part for part in parts if part))
