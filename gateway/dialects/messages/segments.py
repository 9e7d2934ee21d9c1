"""The pieces of a Chat stream, gathered into what becomes one Messages block each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.dialects.messages.reply import parse_arguments


@dataclass(slots=True, eq=False)
class Segment:
    """A run of text or of thinking.

    Attributes:
        kind: the type of the block: `thinking`, `text` or `tool_use`.
        waiting: pieces that were not sent yet.
        begun: the block was begun.
        said: some of it was sent.
    """

    kind: str
    waiting: list[str] = field(default_factory=list)
    begun: bool = False
    said: bool = False

    @property
    def whole(self) -> bool:
        """Whether another segment may take its place."""
        return True

    @property
    def speaks(self) -> bool:
        """Whether what is waiting, if anything is, can be sent: nothing begins with a blank."""
        return self.said or any(piece.strip() for piece in self.waiting)

    @property
    def due(self) -> bool:
        """Whether its block can begin."""
        return self.speaks

    def take(self) -> str:
        """What is waiting, which then is no longer."""
        said = "".join(self.waiting)
        self.waiting.clear()
        return said


@dataclass(slots=True, eq=False)
class CallSegment(Segment):
    """A call, or the answer that came as a call of the format tool (its kind is `text` then).

    Attributes:
        index: the engine's, where it gave one.
        id: the engine's, where it gave one.
        name: empty until the engine said it.
        arguments: all pieces so far.
        ignored: it repeats an answer that was given already.
    """

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    ignored: bool = False

    @property
    def whole(self) -> bool:
        """Whether its arguments are a JSON object, to which nothing can be added."""
        # Few pieces end an object: this spares the parsing of nearly all half ones.
        if not self.name or not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        return parse_arguments("".join(self.arguments)) is not None

    @property
    def due(self) -> bool:
        """Whether its block can begin: a call needs no more than its name."""
        if self.ignored or not self.name:
            return False
        return self.kind == "tool_use" or self.speaks

    def add(self, arguments: str) -> None:
        """Adds a piece of the arguments."""
        if arguments:
            self.arguments.append(arguments)
            self.waiting.append(arguments)


def find_call(
    calls: Sequence[CallSegment], *, index: int | None, call_id: str, name: str
) -> CallSegment | None:
    """The call that a piece belongs to; None where the piece begins a new one.

    Engines differ: some give every call the index 0, some send the id or the name with every
    piece, some give no index at all.

    Args:
        calls: those of the stream so far, in order.
        index: of the piece; None where it has none.
        call_id: of the piece, perhaps empty.
        name: of the piece, perhaps empty.
    """
    fitting = [
        call
        for call in reversed(calls)
        if index is None or call.index is None or call.index == index
    ]
    for call in fitting:
        if call_id and call.id == call_id:
            return call
    if not fitting:
        return None
    latest = fitting[0]
    if not name or not latest.name:
        return latest
    another = index is None or (call_id and latest.id) or latest.whole
    return None if another else latest
