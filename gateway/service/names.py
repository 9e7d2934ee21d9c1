"""Which model a request means, and whether it is served.

Rules: `sgl/NAME` is read as NAME. Names are compared without case, exact spelling first. With a
`model_id`, only it, the profile's aliases and the servers' aliases are served; without one,
whatever the servers admit. The engine is sent the configured spelling, the client reads back
its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.errors import MODEL_NOT_FOUND, GatewayError, bad_request
from gateway.jsonbody import Body

_PREFIX: Final = "sgl/"
_SHOWN_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True)
class Names:
    """The names that are served, where a `model_id` says so.

    Attributes:
        model_id: the served model; None means that the servers' lists decide.
        exact: by spelling, the name that each stands for: the profile's aliases for `model_id`,
            a server's alias for itself until a server is drawn.
        folded: the same without case.
    """

    model_id: str | None
    exact: Mapping[str, str]
    folded: Mapping[str, str]

    def resolve(self, asked: str) -> str:
        """The configured name that `asked` means.

        Raises:
            GatewayError: 404, it is not served.
        """
        name = asked.removeprefix(_PREFIX)
        if self.model_id is None:
            return name
        found = self.exact.get(name) or self.folded.get(name.casefold())
        if found is None:
            raise not_served(asked)
        return found

    def listed(self) -> tuple[str, ...]:
        """The names of the model list, the served model first."""
        return tuple(self.exact)


def build_names(
    model_id: str | None, aliases: Iterable[str], server_aliases: Iterable[str]
) -> Names:
    """The table of served names."""
    exact: dict[str, str] = {}
    if model_id is not None:
        exact[model_id] = model_id
        for alias in server_aliases:
            exact.setdefault(alias, alias)
        for alias in aliases:
            exact.setdefault(alias, model_id)
    folded: dict[str, str] = {}
    for name, target in exact.items():
        folded.setdefault(name.casefold(), target)
    return Names(model_id, exact, folded)


def asked_model(body: Body) -> str:
    """The request's `model`.

    Raises:
        GatewayError: 400, it is absent, null, empty or no text.
    """
    asked = body.get("model")
    if asked is None:
        raise bad_request("model is required: name the model that is to answer.", "model")
    if not isinstance(asked, str) or not asked.strip():
        shown = (body.get_raw("model") or b"")[:_SHOWN_CHARACTERS].decode("utf-8", "replace")
        raise bad_request(f"model must be a non-empty text, got {shown}.", "model")
    return asked


def not_served(asked: str) -> GatewayError:
    """404 for a name that nothing here answers to."""
    shown = asked if len(asked) <= _SHOWN_CHARACTERS else asked[:_SHOWN_CHARACTERS] + "…"
    shown = shown.encode("utf-8", "backslashreplace").decode()
    return GatewayError(MODEL_NOT_FOUND, f"The model {shown!r} is not served here.", param="model")
