"""OpenAI Responses for clients, over an engine that speaks Chat Completions."""

from gateway.dialects.responses.count import count_tokens_body, render_count
from gateway.dialects.responses.reply import from_chat_reply
from gateway.dialects.responses.request import Converted, to_chat
from gateway.dialects.responses.stream import KEEPALIVE, ChatToResponsesRelay
from gateway.dialects.responses.tools import ClientTool, ToolNames

__all__ = [
    "KEEPALIVE",
    "ChatToResponsesRelay",
    "ClientTool",
    "Converted",
    "ToolNames",
    "count_tokens_body",
    "from_chat_reply",
    "render_count",
    "to_chat",
]
