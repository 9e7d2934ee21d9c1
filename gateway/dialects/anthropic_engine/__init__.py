"""Engines that are spoken to in Anthropic Messages (`use_anthropic_endpoints`).

Chat requests become Messages requests, and Messages replies and streams become Chat ones; what
comes from a Messages client passes through, but for what an engine would refuse.

A client of another dialect is served by two converters in a row: its own to and from Chat, and
the ones here. For a stream, `MessagesToChatEvents` yields Chat chunks and `chunk_event` makes of
each the event that a relay of Chat streams is fed with.
"""

from gateway.dialects.anthropic_engine.passthrough import (
    MessagesRelay,
    parse_messages_reply,
    passthrough_edits,
)
from gateway.dialects.anthropic_engine.reply import from_messages_reply
from gateway.dialects.anthropic_engine.request import can_say, to_messages, unsayable
from gateway.dialects.anthropic_engine.stream import (
    MessagesToChatEvents,
    MessagesToChatRelay,
    chunk_event,
)

__all__ = [
    "MessagesRelay",
    "MessagesToChatEvents",
    "MessagesToChatRelay",
    "can_say",
    "chunk_event",
    "from_messages_reply",
    "parse_messages_reply",
    "passthrough_edits",
    "to_messages",
    "unsayable",
]
