"""The inference routes: which dialect each speaks and which sections of a profile govern it.

This table is the only place that says so; the web layer mounts from it, the contract and the
error renderers ask it, and the documentation is checked against it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Dialect(StrEnum):
    """What a client speaks on a route."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"

    @property
    def anthropic(self) -> bool:
        """Whether errors and streams have Anthropic's shapes."""
        return self is Dialect.MESSAGES


class Governs(StrEnum):
    """A part of a profile that can govern a route (the body limit and aliases govern all)."""

    SAMPLING = "sampling"  # the eight sampling fields
    PARAMS = "params"  # rules on any other field
    OUTPUT = "output"
    IMAGES = "max_images"
    ERROR_TYPE = "bad_request_type"


@dataclass(frozen=True, slots=True)
class Route:
    """An inference route.

    Attributes:
        name: of the route, unique; also its label in logs.
        path: as clients call it.
        dialect: of its bodies and errors.
        protocol: the key of the profile's `protocols` section that turns it off.
        governs: the parts of a profile that are enforced on it.
    """

    name: str
    path: str
    dialect: Dialect
    protocol: str
    governs: frozenset[Governs]


_ALL: Final = frozenset(Governs)

CHAT: Final = Route("chat", "/v1/chat/completions", Dialect.CHAT, "chat", _ALL)
RESPONSES: Final = Route("responses", "/v1/responses", Dialect.RESPONSES, "responses", _ALL)
MESSAGES: Final = Route("messages", "/v1/messages", Dialect.MESSAGES, "messages", _ALL)
COMPLETIONS: Final = Route(
    "completions",
    "/v1/completions",
    Dialect.COMPLETIONS,
    "completions",
    frozenset({Governs.SAMPLING}),
)
EMBEDDINGS: Final = Route(
    "embeddings", "/v1/embeddings", Dialect.EMBEDDINGS, "embeddings", frozenset()
)
COUNT_TOKENS: Final = Route(
    "count_tokens", "/v1/messages/count_tokens", Dialect.MESSAGES, "messages", frozenset()
)
INPUT_TOKENS: Final = Route(
    "input_tokens", "/v1/responses/input_tokens", Dialect.RESPONSES, "responses", frozenset()
)

ROUTES: Final = (
    CHAT,
    RESPONSES,
    MESSAGES,
    COMPLETIONS,
    EMBEDDINGS,
    COUNT_TOKENS,
    INPUT_TOKENS,
)
