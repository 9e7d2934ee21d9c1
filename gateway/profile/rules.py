"""What a profile says, once it is loaded and checked: frozen values, ready to be enforced.

Built by `schema` from the merged file; read by the contract. Nothing here parses or checks.
Every number that may be written to the wire carries its literal, so that `0.95` in the file is
`0.95` in the request and `1.0` on a whole-number field is `1`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

DEFAULT_MAX_BODY_BYTES: Final = 32 * 1024 * 1024
"""The body limit where a profile names none (and where no profile is enforced)."""

SAMPLING_FIELDS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "n",
)
"""The fields of the `sampling` section, in the order in which violations are reported."""

PROTOCOLS: Final = ("chat", "completions", "embeddings", "responses", "messages")
"""The keys of the `protocols` section."""


class Conflict(StrEnum):
    """What a request that sends another value than an exact one gets."""

    REJECT = "reject"
    ALLOW = "allow"


class OnExceed(StrEnum):
    """What a budget above the cap gets."""

    REJECT = "reject"
    CLAMP = "clamp"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the operator wrote.

    Attributes:
        value: for comparing: float or int, text, boolean, list or mapping.
        wire: its JSON, as it is written into a request and shown in messages.
    """

    value: object
    wire: bytes


@dataclass(frozen=True, slots=True)
class Exact:
    """`sampling.params.<field>: number`."""

    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class Band:
    """`sampling.params.<field>: {min, max}`, both ends included."""

    field: str
    minimum: Value
    maximum: Value


@dataclass(frozen=True, slots=True)
class Sampling:
    """The `sampling` section; rules in the order of `SAMPLING_FIELDS`."""

    conflict: Conflict
    rules: tuple[Exact | Band, ...]


@dataclass(frozen=True, slots=True)
class ParamRule:
    """`params.<field>`: check, normalise, write in, in that order.

    Attributes:
        numeric: it has min, max or type, or its pin, default or values are numbers; then a
            request's text that reads as a number counts as that number.
        whole: `type: int`.
        values: the accepted values; empty means any.
        normalize: pairs (from, to), applied to an accepted value before it is forwarded.
    """

    field: str
    numeric: bool = False
    whole: bool = False
    default: Value | None = None
    pin: Value | None = None
    minimum: Value | None = None
    maximum: Value | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    values: tuple[Value, ...] = ()
    normalize: tuple[tuple[Value, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """`output.max_tokens`, in tokens."""

    cap: int
    on_exceed: OnExceed = OnExceed.REJECT
    default: int | None = None

    @property
    def written(self) -> int:
        """What a request that sets no budget gets."""
        return self.cap if self.default is None else self.default


@dataclass(frozen=True, slots=True)
class Profile:
    """A whole profile. `Profile()` enforces nothing.

    Attributes:
        params: by field, in the file's order.
        protocols_off: the protocols that answer 404.
    """

    name: str | None = None
    sampling: Sampling | None = None
    params: Mapping[str, ParamRule] = field(default_factory=lambda: MappingProxyType({}))
    output: OutputBudget | None = None
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    max_images: int | None = None
    aliases: tuple[str, ...] = ()
    bad_request_type: str | None = None
    protocols_off: frozenset[str] = frozenset()
