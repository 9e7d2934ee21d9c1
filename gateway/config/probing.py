"""Asks the servers of a settings file whether they are there, ready, and take their keys."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from gateway import jsonbody
from gateway.config.loading import Config
from gateway.engine.client import EngineClient, Limits
from gateway.engine.probe import MODELS_PATH, READY_PATH, Probed, probe
from gateway.engine.servers import EVERY_MODEL, Server
from gateway.errors import GatewayError
from gateway.profile import Finding
from gateway.profile.findings import build_finding

_PARALLEL: Final = 16
_OK: Final = 200
_NO_SUCH_PATH: Final = 404
_UNAVAILABLE: Final = 503
_KEY_REFUSED: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Standing:
    """What a server said.

    Attributes:
        server: that was asked.
        problem: what keeps it from serving; None where nothing does.
        models: that it lists.
    """

    server: Server
    problem: str | None
    models: tuple[str, ...] = ()


def probe_servers(servers: Sequence[Server], within_s: float) -> list[Standing]:
    """Asks all servers that are enabled, in parallel.

    Args:
        servers: in the order of the answers.
        within_s: for each of the two questions.
    """
    asked = [server for server in servers if server.enabled]
    client = EngineClient(Limits(connect_s=within_s, first_byte_s=within_s, idle_s=within_s))
    try:
        with ThreadPoolExecutor(min(_PARALLEL, len(asked) or 1)) as threads:
            return list(threads.map(lambda server: _ask(client, server, within_s), asked))
    finally:
        client.close()


def findings_of(config: Config, standings: Sequence[Standing]) -> Iterator[Finding]:
    """What the servers said as findings about the keys that name them."""
    for standing in standings:
        server = standing.server
        mark, where = config.places[server.name]
        if standing.problem is not None:
            message = f"{where}: {server.name} {standing.problem}"
            yield build_finding(mark, "unreachable", message, where)
            continue
        named = {alias.model_id: f"the alias {name}" for name, alias in server.aliases.items()}
        listed = {name for name in server.models or () if name != EVERY_MODEL}
        named |= dict.fromkeys(listed - server.aliases.keys(), "models")
        for model, by in named.items():
            if model not in standing.models:
                message = f"{where}: {server.name} does not list {model!r}, which {by} names"
                yield build_finding(mark, "unlisted-model", message, where)


def _ask(client: EngineClient, server: Server, within_s: float) -> Standing:
    problem = _ready_problem(probe(client, server, READY_PATH, within_s))
    if problem is not None:
        return Standing(server, problem)
    listed = probe(client, server, MODELS_PATH, within_s)
    models = _parse_models(listed.body) if listed.status == _OK else None
    if models is None:
        return Standing(server, _list_problem(listed, has_key=bool(server.api_key)))
    return Standing(server, None, models)


def _ready_problem(ready: Probed) -> str | None:
    if ready.status is None:
        return f"cannot be asked. {ready.fault}"
    if ready.status == _UNAVAILABLE:
        return "is not ready: it starts, drains or is unhealthy"
    # An engine without that path is no less of one.
    return (
        None
        if ready.status in {_OK, _NO_SUCH_PATH}
        else f"answered {READY_PATH} with {ready.status}"
    )


def _list_problem(listed: Probed, *, has_key: bool) -> str:
    if listed.status is None:
        return f"cannot be asked for its models. {listed.fault}"
    if listed.status in _KEY_REFUSED:
        return "refuses its key" if has_key else "asks for a key, and the file has none"
    return f"has no list of models ({listed.status}): is it an engine?"


def _parse_models(body: bytes) -> tuple[str, ...] | None:
    try:
        value: Any = jsonbody.parse_value(body)
    except GatewayError:
        return None
    data = value.get("data") if isinstance(value, Mapping) else None
    if not isinstance(data, list):
        return None
    ids = (card.get("id") for card in data if isinstance(card, Mapping))
    return tuple(name for name in ids if isinstance(name, str))
