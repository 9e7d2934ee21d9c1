"""Answers that SGLang gave, byte for byte: see `cases/sglang`.

from recorded import ANSWERS

ANSWERS["three_calls"].streamed["messages"]  # the bytes of an event stream
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_FOLDER = Path(__file__).parent / "cases" / "sglang"
_SECTION = re.compile(r"^--- (chat|messages), (buffered|streamed)\n", re.MULTILINE)


@dataclass(frozen=True)
class Recorded:
    """One answer.

    Attributes:
        buffered: the body of a whole reply, by the route that gave it, `chat` or `messages`.
        streamed: the same of a stream.
    """

    buffered: dict[str, bytes]
    streamed: dict[str, bytes]

    @cached_property
    def replies(self):
        """The whole replies, decoded."""
        return {route: json.loads(body) for route, body in self.buffered.items()}


def _read(path):
    answer = Recorded({}, {})
    _, *parts = _SECTION.split(path.read_text(encoding="utf-8"))
    for route, way, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        end = "" if way == "buffered" else "\n\n"
        getattr(answer, way)[route] = (body.strip() + end).encode()
    return answer


ANSWERS = {path.stem: _read(path) for path in sorted(_FOLDER.glob("*.txt"))}
