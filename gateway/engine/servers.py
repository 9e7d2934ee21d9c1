"""The servers: what an operator says of each, and which one a request goes to.

Rules:

- A server fits a request where it is enabled and its lists admit the name that the client sent;
  the deny-list wins, and an alias must itself be admitted. Names are compared without case, the
  exact spelling first.
- Among those that fit, one is drawn by weight; a weight of 0 means only when nothing else is
  left. Among servers of the drawn one's weight the least busy is taken.
- A server that is out of service is not drawn, and one that is busy or shuts down only where
  nothing else is left (`health` says when).
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from gateway.engine.base_url import parse_base_url
from gateway.engine.headers import check_extra_headers, check_key
from gateway.engine.health import BUSY_S, Health, Outcome

EVERY_MODEL: Final = "*"
"""In an allow-list or a deny-list: any name."""

_LOG: Final = logging.getLogger("gateway.engine")


@dataclass(frozen=True, slots=True)
class Alias:
    """What a name stands for on one server.

    Attributes:
        model_id: the name that the engine is sent.
        use_anthropic_endpoints: None leaves it to the server.
    """

    model_id: str
    use_anthropic_endpoints: bool | None = None


class Target(NamedTuple):
    """What a name means on the server that was drawn.

    Attributes:
        model_id: the name that the engine is sent.
        use_anthropic_endpoints: chat, responses and messages go to its Messages route.
    """

    model_id: str
    use_anthropic_endpoints: bool


@dataclass(frozen=True, slots=True)
class Server:
    """One SGLang process, and the key for it.

    Attributes:
        name: unique; for logs and metrics, never shown to clients.
        url: the base URL, as `parse_base_url` gives it.
        api_key: sent as a Bearer token; empty: no header.
        models: the allow-list; None admits every name, an empty one none.
        blacklisted_models: wins over the allow-list.
        weight: the share of the requests, relative to the other servers' weights.
        extra_headers: of the operator; sent where nothing else sets that header.

    Raises:
        ValueError: a weight is negative or no number, or a key or header cannot be sent.
    """

    name: str
    url: str
    api_key: str = field(default="", repr=False)
    models: tuple[str, ...] | None = None
    blacklisted_models: tuple[str, ...] = ()
    weight: float = 1.0
    enabled: bool = True
    use_anthropic_endpoints: bool = False
    aliases: Mapping[str, Alias] = field(default_factory=lambda: MappingProxyType({}))
    extra_headers: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise ValueError(
                f"{self.name}: weight is {self.weight}; it must be a finite number of at least 0"
            )
        check_key(self.name, self.api_key)
        check_extra_headers(self.name, self.extra_headers)

    def admits(self, name: str | None) -> bool:
        """Whether the lists let this name through; None, no name at all, passes open lists."""
        if _listed(name, self.blacklisted_models):
            return False
        return self.models is None or _listed(name, self.models)

    def target(self, name: str) -> Target:
        """What `name` means here: an alias's model, the list's own spelling, or itself."""
        alias = _spelled(name, self.aliases)
        if alias is not None:
            entry = self.aliases[alias]
            messages = entry.use_anthropic_endpoints
            return Target(
                entry.model_id, self.use_anthropic_endpoints if messages is None else messages
            )
        spelled = _spelled(name, self.models or ())
        return Target(name if spelled is None else spelled, self.use_anthropic_endpoints)


def _spelled(name: str, names: Collection[str]) -> str | None:
    """The entry that `name` means: its own spelling, else the first but for case."""
    if name in names:
        return name
    folded = name.casefold()
    return next((entry for entry in names if entry.casefold() == folded), None)


def _listed(name: str | None, names: Collection[str]) -> bool:
    return EVERY_MODEL in names or (name is not None and _spelled(name, names) is not None)


def servers_of_urls(urls: Iterable[str], api_key: str = "") -> tuple[Server, ...]:
    """The short form: one server a URL, every name admitted, all of one weight.

    Args:
        urls: of the engines; they are named `sgl-1`, `sgl-2`… in this order.
        api_key: sent to each; empty: no header.

    Raises:
        ValueError: a URL is none, or is named twice.
    """
    servers: list[Server] = []
    for number, text in enumerate(urls, 1):
        url = parse_base_url(text)
        twin = next((server.name for server in servers if server.url == url), None)
        if twin is not None:
            raise ValueError(f"the URL {url} is named twice; name each server once")
        servers.append(Server(f"sgl-{number}", url, api_key, models=(EVERY_MODEL,)))
    return tuple(servers)


@dataclass(slots=True)
class _State:
    """What is known of a server at run time."""

    in_flight: int = 0
    health: Health = field(default_factory=Health)


def _ignore(_name: str, _out: bool) -> None:
    """Nobody wants to know."""


class ServerPool:
    """Draws servers; safe to use from all threads.

    Args:
        servers: with names of their own.
        rand: uniform in [0, 1).
        clock: monotonic seconds.
        notice: told a server's name, and whether it is left out, when that changes.

    Raises:
        ValueError: there is none, two have one name, or all enabled ones have weight 0.
    """

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        rand: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
        notice: Callable[[str, bool], None] | None = None,
    ) -> None:
        self.servers: Final = tuple(servers)
        if not self.servers:
            raise ValueError("no server is configured")
        self._states = {server.name: _State() for server in self.servers}
        if len(self._states) != len(self.servers):
            names = [server.name for server in self.servers]
            twin = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two servers have the name {twin!r}; each needs its own")
        self._enabled = [server for server in self.servers if server.enabled]
        if self._enabled and all(server.weight == 0 for server in self._enabled):
            raise ValueError("every enabled server has the weight 0; one needs a weight above it")
        self._rand = rand
        self._clock = clock
        self._notice = notice or _ignore
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None

    def aliases(self) -> tuple[str, ...]:
        """The alias names of all enabled servers, each once, in the order of the servers."""
        return tuple(dict.fromkeys(name for server in self._enabled for name in server.aliases))

    def fitting(self, model: str | None) -> tuple[Server, ...]:
        """The servers that fit a request for this name, in or out of service."""
        return tuple(server for server in self._enabled if server.admits(model))

    def available(self) -> bool:
        """Whether some enabled server is not known to be out of service."""
        return any(not self.out_of_service(server) for server in self._enabled)

    def out_of_service(self, server: Server) -> bool:
        """Whether the server is left out at present."""
        with self._lock:
            return not self._can_be_drawn(server, self._clock())

    def draw(self, model: str | None, tried: Collection[str] = ()) -> Server | None:
        """The server for a request.

        Args:
            model: the name that the client sent.
            tried: names of servers that this request has been to.

        Returns:
            None where every server that fits was tried or is out of service.
        """
        fitting = [server for server in self.fitting(model) if server.name not in tried]
        with self._lock:
            now = self._clock()
            candidates = self._preferred(fitting, now)
            if not candidates:
                return None
            drawn = self._least_busy(self._by_weight(candidates), candidates)
            self._states[drawn.name].health.draw(now)
        if self._wake is not None and len(self._enabled) > 1:
            self._wake()
        return drawn

    def _can_be_drawn(self, server: Server, now: float) -> bool:
        health = self._states[server.name].health
        return health.can_be_drawn(now, asked=self._wake is not None)

    def _preferred(self, fitting: list[Server], now: float) -> list[Server]:
        """Those in service; of them the best: passed over is worse than the weight 0."""
        in_service = [server for server in fitting if self._can_be_drawn(server, now)]
        free = [
            server
            for server in in_service
            if not self._states[server.name].health.is_passed_over(now)
        ]
        for some in (free, in_service):
            weighted = [server for server in some if server.weight > 0]
            if weighted or some:
                return weighted or some
        return []

    def _by_weight(self, candidates: list[Server]) -> Server:
        point = self._rand() * math.fsum(server.weight for server in candidates)
        for server in candidates:
            point -= server.weight
            if point < 0:
                return server
        # All weights are 0, or rounding used the shares up.
        return candidates[min(int(self._rand() * len(candidates)), len(candidates) - 1)]

    def _least_busy(self, drawn: Server, candidates: list[Server]) -> Server:
        equals = [server for server in candidates if server.weight == drawn.weight]
        least = min(self._states[server.name].in_flight for server in equals)
        if self._states[drawn.name].in_flight == least:
            return drawn
        idle = [server for server in equals if self._states[server.name].in_flight == least]
        return idle[min(int(self._rand() * len(idle)), len(idle) - 1)]

    def begin(self, server: Server) -> None:
        """Counts a request in."""
        with self._lock:
            self._states[server.name].in_flight += 1

    def end(self, server: Server) -> None:
        """Counts a request out again; once for each `begin`."""
        with self._lock:
            self._states[server.name].in_flight -= 1

    def in_flight(self, server: Server) -> int:
        """The requests that this process has at the server."""
        with self._lock:
            return self._states[server.name].in_flight

    def report(self, server: Server, outcome: Outcome, busy_s: float = BUSY_S) -> None:
        """Notes what reaching a server came to.

        Args:
            server: that was tried.
            outcome: what came of it.
            busy_s: how long a busy server asks to be left alone, in seconds.
        """
        self._change(server, lambda health, now: health.note(outcome, now, busy_s))

    def ask_with(self, wake: Callable[[], None]) -> None:
        """Has servers asked whether they are ready, from now on.

        Args:
            wake: called, often and from all threads, when there may be something to ask.
        """
        self._wake = wake

    def due(self) -> tuple[list[Server], float | None]:
        """The servers to ask now, and the seconds until there is more; None: no more.

        A server in service is not asked where it is the only one: nothing would come of it.
        """
        several = len(self._enabled) > 1
        with self._lock:
            now = self._clock()
            at = {
                server.name: when
                for server in self._enabled
                if (health := self._states[server.name].health).is_out or several
                if (when := health.ask_at()) is not None
            }
        servers = [server for server in self._enabled if at.get(server.name, math.inf) <= now]
        later = [when - now for when in at.values() if when > now]
        return servers, min(later, default=None)

    def note_ready(self, server: Server, *, ready: bool | None) -> None:
        """Notes what a server said when it was asked whether it is ready; None: nothing."""
        self._change(server, lambda health, now: health.note_ready(ready, now))

    def _change(self, server: Server, change: Callable[[Health, float], None]) -> None:
        with self._lock:
            health = self._states[server.name].health
            was_out = health.is_out
            change(health, self._clock())
            is_out = health.is_out
            if is_out is not was_out:
                self._notice(server.name, is_out)
        if is_out is not was_out:
            _LOG.warning("server %s is %s", server.name, "left out" if is_out else "back")
        if is_out and self._wake is not None:
            self._wake()
