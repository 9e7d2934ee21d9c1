"""The values that keys of the settings file take: each reads a node or says what would be right.

Rules: `env.NAME` stands for an environment variable, and a variable that is unset is an error,
while an empty one is an empty value. `${NAME}` is not read, and would be sent as it stands, so it
is an error too. A message never shows a text that could be a secret.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.engine.base_url import parse_base_url
from gateway.engine.headers import check_extra_headers, check_key
from gateway.engine.servers import Alias
from gateway.profile.document import Mapped, key, kind_of, required_key
from gateway.profile.fields import Flag, Problem, Text, TextList
from gateway.profile.nodes import MapNode, Node, ScalarNode, json_number, whole_of

MODEL_PREFIX: Final = "sgl/"
"""Clients may put it before a model's name; it is no part of the name."""

_REFERENCE: Final = re.compile(r"env\.([A-Za-z_][A-Za-z0-9_]*)")
_NAME_CHARACTERS: Final = 128
_YEAR_S: Final = 365 * 24 * 3600


def _number(node: Node, wanted: str) -> float:
    if not isinstance(node, ScalarNode) or not node.is_number:
        raise Problem("wrong-type", f"is {kind_of(node)}; it must be {wanted}")
    if not node.is_finite_number:
        raise Problem("out-of-domain", f"is {node.text}; it must be {wanted}")
    return node.value  # type: ignore[return-value]  # a number, as was seen


class Count:
    """A whole number, however it is spelled."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self._high = high
        self._wanted = f"a whole number from {low} to {high}"

    def __call__(self, node: Node) -> int:
        """Reads a whole number."""
        _number(node, self._wanted)
        assert isinstance(node, ScalarNode)
        number = whole_of(json_number(node))
        if number is None or not self._low <= number <= self._high:
            raise Problem("out-of-domain", f"is {node.text}; it must be {self._wanted}")
        return number


class Seconds:
    """A number of seconds above 0."""

    _wanted: Final = "a number of seconds above 0"

    def __call__(self, node: Node) -> float:
        """Reads a number of seconds."""
        seconds = _number(node, self._wanted)
        if not 0 < seconds <= _YEAR_S:
            raise Problem("out-of-domain", f"is {seconds}; it must be {self._wanted}")
        return float(seconds)


class Weight:
    """A share of the requests, relative to other shares."""

    _wanted: Final = "a finite number of at least 0"

    def __call__(self, node: Node) -> float:
        """Reads a weight."""
        weight = _number(node, self._wanted)
        if weight < 0:
            raise Problem("out-of-domain", f"is {weight}; it must be {self._wanted}")
        return float(weight)


class ServerName:
    """The name of a server: it stands in logs and is a label of metrics."""

    _wanted: Final = "1 to 128 characters that can be printed"

    def __call__(self, node: Node) -> str:
        """Reads a name."""
        name = Text()(node)
        if not name.isprintable() or len(name) > _NAME_CHARACTERS:
            raise Problem("out-of-domain", f"is {name[:40]!r}…; it must be {self._wanted}")
        return name


class ModelList(TextList):
    """A list of model names, or `*` for all; `sgl/` before one is no part of it."""

    def __call__(self, node: Node) -> tuple[str, ...]:
        """Reads a list of names."""
        return tuple(name.removeprefix(MODEL_PREFIX) for name in super().__call__(node))


class ModelName(Text):
    """The name of a model; `sgl/` before it is no part of it."""

    def __call__(self, node: Node) -> str:
        """Reads a name."""
        return super().__call__(node).removeprefix(MODEL_PREFIX)


class EnvText(Mapped):
    """A text, or the environment variable that holds it: `env.NAME`.

    Bifrost exports it as a mapping, which is read as well.

    Args:
        environ: the environment variables.
        check: gives the text in its final form; raises ValueError, whose message does not show it.
    """

    def __init__(
        self, environ: Mapping[str, str], check: Callable[[str], str] = lambda text: text
    ) -> None:
        super().__init__(
            {
                key("value", "The text."): Text(empty=True),
                key("env_var", "The variable, with or without `env.`."): Text(empty=True),
                key("ref", "The same."): Text(empty=True),
                key("from_env", "Whether the variable holds it."): Flag(),
                key("type", "plain_text or env."): Text(),
            }
        )
        self._environ = environ
        self._check = check

    def __call__(self, node: Node) -> str:
        """Reads a text, from the environment where it says so."""
        try:
            return self._check(self._text_of(node))
        except ValueError as error:
            raise Problem("out-of-domain", f"cannot be used: {error}") from None

    def _text_of(self, node: Node) -> str:
        if isinstance(node, MapNode):
            return self._exported(self.read(node))
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            quotes = "; put it in quotes" if isinstance(node, ScalarNode) else ""
            raise Problem("wrong-type", f"is {kind_of(node)}; it must be a text{quotes}")
        return self._resolved(node.value)

    def _exported(self, parts: Mapping[str, Any]) -> str:
        kind = parts.get("type", "env" if parts.get("from_env") else "plain_text")
        named = parts.get("env_var") or parts.get("ref") or ""
        if kind == "env":
            return self._resolved(f"env.{named.removeprefix('env.')}")
        if kind != "plain_text":
            raise Problem("out-of-domain", f"is of the type {kind!r}; only env and plain_text are")
        return self._resolved(parts.get("value", ""))

    def _resolved(self, text: str) -> str:
        if "${" in text:
            raise Problem(
                "unset-variable",
                "has a ${…} in it, which is not read here: write env.NAME, as the whole value",
            )
        if not text.startswith("env."):
            return text
        reference = _REFERENCE.fullmatch(text)
        if reference is None:
            raise Problem("unset-variable", "has no name of a variable after env.: write env.NAME")
        name = reference.group(1)
        if name not in self._environ:
            raise Problem("unset-variable", f"names the variable {name}, which is unset")
        return self._environ[name].strip()


def checked_key(text: str) -> str:
    """A key that a header can carry."""
    _refuse_here(lambda: check_key("the key", text), "the key: the key ", "it ")
    return text


def base_url(text: str) -> str:
    """A base URL in its one spelling; an empty one counts as not given."""
    return parse_base_url(text) if text else ""


def header_value(text: str) -> str:
    """A value that a header can carry."""
    _refuse_here(
        lambda: check_extra_headers("", {"x": text}), ": extra_headers: 'x': the value ", "it "
    )
    return text


class HeaderName:
    """A key of `extra_headers`: a header that the gateway does not set itself."""

    def __call__(self, name: str) -> str:
        """Refuses what is no header, or is not the operator's to set."""
        try:
            check_extra_headers("", {name: ""})
        except ValueError as error:
            message = str(error).partition(f"{name!r} ")[2]
            raise Problem("out-of-domain", message) from None
        return name


def _refuse_here(check: Callable[[], None], before: str, after: str) -> None:
    """Has a check of the engine's word its refusal for a place that is known already."""
    try:
        check()
    except ValueError as error:
        raise ValueError(str(error).replace(before, after)) from None


class AliasName:
    """A key of `aliases`: a name that clients may give."""

    def __call__(self, name: str) -> str:
        """Refuses an empty name."""
        if not name.removeprefix(MODEL_PREFIX):
            raise Problem("out-of-domain", "is empty; it must be a name that clients may give")
        return name


class AliasTarget(Mapped):
    """What an alias stands for: a model's name, or a mapping with more.

    Args:
        without_effect: keys of others that such a mapping may have.
    """

    def __init__(self, without_effect: Mapping[Any, Any]) -> None:
        super().__init__(
            {
                required_key("model_id", "The name that the engine is sent."): Text(),
                key(
                    "use_anthropic_endpoints", "The engine is spoken to in Messages for this name."
                ): Flag(),
                **without_effect,
            }
        )

    def __call__(self, node: Node) -> Alias:
        """Reads an alias."""
        if isinstance(node, MapNode):
            parts = self.read(node)
            return Alias(parts["model_id"], parts.get("use_anthropic_endpoints"))
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return Alias(Text()(node))
        wanted = "a model's name, or a mapping with model_id"
        raise Problem("wrong-type", f"is {kind_of(node)}; it must be {wanted}")
