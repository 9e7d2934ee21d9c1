"""Two converters in a row for a stream: a Messages engine's events, to Chat chunks, to a client.

The inner relay is one of Chat streams; it is fed with the chunks as if an engine had sent them.
"""

from gateway import sse
from gateway.dialects.anthropic_engine import MessagesToChatEvents, chunk_event
from gateway.dialects.errors import Failure
from gateway.dialects.relay import Relay


class ComposedRelay:
    """See `Relay`.

    Args:
        events: of the engine's stream.
        relay: of Chat streams, to the client.
    """

    def __init__(self, events: MessagesToChatEvents, relay: Relay) -> None:
        self._events = events
        self._relay = relay
        self.done = False

    def feed(self, event: sse.Event) -> list[bytes]:
        """See `Relay`. The engine's own end is the inner stream's."""
        if self.done:
            return []
        frames: list[bytes] = []
        for chunk in self._events.feed(event):
            frames += self._relay.feed(chunk_event(chunk))
        if self._events.done:
            frames += self._relay.finish()
            self.done = True
        return frames

    def finish(self) -> list[bytes]:
        """See `Relay`."""
        if self.done:
            return []
        self._events.finish()
        self.done = True
        return self._relay.finish()

    def fail(self, failure: Failure) -> list[bytes]:
        """See `Relay`."""
        self.done = True
        return self._relay.fail(failure)
