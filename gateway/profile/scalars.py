"""YAML 1.2's core schema: what a scalar of a file means.

Unlike in YAML 1.1, `no` and `12:30` are text, `010` is ten and `1e5` is a number.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

ScalarValue: TypeAlias = str | int | float | bool | None

CORE_TAG: Final = "tag:yaml.org,2002:"
"""What `!!` stands for."""

_NULL: Final = re.compile(r"null|Null|NULL|~|")
_BOOL: Final = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT: Final = re.compile(r"[-+]?[0-9]+")
_RADIX: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class NotOfTypeError(ValueError):
    """A scalar is not what its tag says."""


def is_numeral(text: str) -> bool:
    """Whether a plain scalar is a number, `.inf` and `.nan` left aside."""
    return bool(_FLOAT.fullmatch(text) or _RADIX.fullmatch(text))


def resolve(text: str) -> ScalarValue:
    """The value of a plain scalar, without quotes or tag."""
    if _NULL.fullmatch(text):
        return None
    if text[0] not in "0123456789+-.":
        flag = _BOOL.fullmatch(text)
        return text if flag is None else flag.group(1) is not None
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return int(text, 0) if _RADIX.fullmatch(text) else _not_finite(text)


def _not_finite(text: str) -> ScalarValue:
    special = _NOT_FINITE.fullmatch(text)
    if special is None:
        return text
    sign = special.group(1)
    return float("nan") if sign is None else float(f"{sign}inf")


def _of_type(*types: type) -> Callable[[str], ScalarValue]:
    def read(text: str) -> ScalarValue:
        value = resolve(text)
        if type(value) not in types:
            raise NotOfTypeError
        return value

    return read


TAGGED: Final[Mapping[str, Callable[[str], ScalarValue]]] = MappingProxyType(
    {
        "!": str,
        f"{CORE_TAG}str": str,
        f"{CORE_TAG}int": _of_type(int),
        f"{CORE_TAG}float": _of_type(float, int),
        f"{CORE_TAG}bool": _of_type(bool),
        f"{CORE_TAG}null": _of_type(type(None)),
    }
)
"""The tags that a scalar may carry, and how it is then read."""
