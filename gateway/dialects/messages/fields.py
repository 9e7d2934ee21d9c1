"""Reading the fields of a Messages body: a wrong type is a 400 that names the field.

A field is written as a path, `messages[2].content[0].source`, which is also the error's `param`.
"""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import GatewayError, bad_request

BILLING_PREFIX: Final = "x-anthropic-billing-header:"
"""Claude Code opens `system` with such a line. It differs from request to request, so that an
engine which is sent it never finds its prompt in the prefix cache."""

_SERVER_BLOCKS: Final = frozenset({"server_tool_use", "mcp_tool_use", "mcp_tool_listing"})
_SHOWN_CHARACTERS: Final = 40


def is_server_block(block_type: str) -> bool:
    """Whether a block records a call of a vendor's own tool, or what came back from one.

    The latter are `web_search_tool_result` and its kin. No engine knows any of them.
    """
    return block_type in _SERVER_BLOCKS or block_type.endswith("_tool_result")


def without_billing_line(text: str) -> str:
    """The first text of a system prompt without Claude Code's billing line, and only that line."""
    if not text.startswith(BILLING_PREFIX):
        return text
    return text.partition("\n")[2]


def read_object(value: object, field: str) -> Mapping[str, Any]:
    """The value of `field`, which has to be an object."""
    if not isinstance(value, Mapping):
        raise wrong_type(field, "an object", value)
    return value


def read_list(value: object, field: str) -> list[Any]:
    """The value of `field`, which has to be an array."""
    if not isinstance(value, list):
        raise wrong_type(field, "an array", value)
    return value


def read_text(value: object, field: str) -> str:
    """The value of `field`, which has to be a string, perhaps an empty one."""
    if not isinstance(value, str):
        raise wrong_type(field, "a string", value)
    return value


def read_name(value: object, field: str) -> str:
    """The value of `field`, which has to be a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong_type(field, "a non-empty string", value)
    return value


def read_flag(value: object, field: str) -> bool:
    """The value of `field`, which has to be true or false; null is false."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong_type(field, "true or false", value)
    return value


def wrong_type(field: str, expected: str, value: object) -> GatewayError:
    """A 400 that says what `field` has to be, and what it was."""
    return bad_request(f"{field}: expected {expected}, got {shown(value)}", field)


def shown(value: object) -> str:
    """A client's value as an error message shows it: short, and in JSON's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        cut = value[:_SHOWN_CHARACTERS]
        return f"{cut!r}" if cut == value else f"{cut + '…'!r}"
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if isinstance(value, list) else str(value)[:_SHOWN_CHARACTERS]
