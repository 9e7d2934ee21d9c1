"""What every stream converter looks like to the code that drives it.

A relay turns an engine's events into frames for one client. It holds no socket: it is fed
events and says what to write.

    feed(event)*  ->  finish()            the engine's stream ended
                  ->  fail(failure)       it did not, or not well

Rules that all relays keep:
- nothing is returned before the commit point, the first event that says something (content, a
  tool call, a finish reason): until then a failure is still a real HTTP error;
- there is exactly one ending: the dialect's own, or one error event, never both.
"""

from typing import Protocol

from gateway import sse
from gateway.dialects.errors import Failure


class Relay(Protocol):
    """One stream's state."""

    done: bool
    """The dialect's own end was written; what the engine still sends is not of interest."""

    def feed(self, event: sse.Event) -> list[bytes]:
        """Takes an engine's event; returns what the client gets for it, an element a write.

        Raises:
            EngineFailure: the event told of an error, or could not be read.
        """
        ...

    def finish(self) -> list[bytes]:
        """The engine's stream is over; returns what is missing of a proper ending.

        Raises:
            EngineFailure: what was sent so far is no whole answer.
        """
        ...

    def fail(self, failure: Failure) -> list[bytes]:
        """Ends the stream with the dialect's error event, open blocks closed first."""
        ...
