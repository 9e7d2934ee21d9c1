"""Two JSON bodies compared line by line, every value as it is spelled in the bytes."""

import difflib
import re
from collections.abc import Iterator
from typing import Final

_PART: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_INDENT: Final = "  "
_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")
_LONGEST: Final = 160
_CONTEXT: Final = 1


def diff_json(before: bytes, after: bytes, names: tuple[str, str]) -> list[str]:
    """The lines of a unified diff of two JSON texts, laid out first; empty where they are alike.

    Numbers, escapes and the order of keys count: the engine gets them as they are.

    Args:
        before: valid JSON, as everything that the gateway accepts.
        after: the same.
        names: for the first two lines of the diff.
    """
    old, new = (list(layout(raw.decode())) for raw in (before, after))
    found = difflib.unified_diff(old, new, *names, n=_CONTEXT, lineterm="")
    return [shorten(line) for line in found]


def layout(text: str) -> Iterator[str]:
    """The lines of a JSON text, one value or bracket a line, values as they are spelled."""
    depth, line, before = 0, "", ""
    parts = _PART.findall(text)
    for part, after in zip(parts, (*parts[1:], ""), strict=True):
        if part in _CLOSING and before not in _OPENING:
            yield line
            depth -= 1
            line = _INDENT * depth + part
        elif part in _OPENING and after not in _CLOSING:
            yield (line or _INDENT * depth) + part
            depth += 1
            line = ""
        elif part == ",":
            yield f"{line},"
            line = ""
        else:
            line = (line or _INDENT * depth) + (": " if part == ":" else part)
        before = part
    yield line


def shorten(line: str) -> str:
    """A line for a screen: the middle of a long one (a picture) is left out."""
    if len(line) <= _LONGEST:
        return line
    half = _LONGEST // 2
    return f"{line[:half]}… {len(line) - 2 * half} more characters …{line[-half:]}"
