"""The Anthropic Messages dialect of a client, spoken over an engine's Chat route.

Requests become Chat requests, and Chat replies and streams become Messages ones.
"""

from gateway.dialects.messages.count import count_tokens_body
from gateway.dialects.messages.reply import from_chat_reply
from gateway.dialects.messages.request import Converted, to_chat
from gateway.dialects.messages.stream import ChatToMessagesRelay

__all__ = ["ChatToMessagesRelay", "Converted", "count_tokens_body", "from_chat_reply", "to_chat"]
