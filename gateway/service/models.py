"""The model list: what clients may name, with what the engines say of it.

With a `model_id`, the list is it and its aliases, and the engines are asked for nothing but
`max_model_len`. Without one, it is what the servers list. Entries carry OpenAI's keys and
Anthropic's beside each other. An engine's list is asked for in parallel, within a bound, and
kept for a few seconds; engines that do not answer are left out, and only where none answered
and nothing else says what is served is that an error.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from gateway import jsonbody
from gateway.engine.client import EngineClient
from gateway.engine.headers import engine_headers
from gateway.engine.servers import Server, ServerPool
from gateway.engine.watch import Watch
from gateway.errors import UPSTREAM_UNREACHABLE, GatewayError
from gateway.service.names import Names, not_served

_PATH: Final = "/v1/models"
_REQUEST_ID: Final = "models"
_KEPT_S: Final = 5.0
_PARALLEL: Final = 8
_ASK_S: Final = 3.0
_MAX_BYTES: Final = 4 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Kept:
    """What a server said, once it is told; None where it said nothing."""

    cards: list[dict[str, Any]] | None = None
    at_s: float = 0.0
    told: threading.Event = field(default_factory=threading.Event)

    def is_stale(self) -> bool:
        """Whether it is to be asked again."""
        return self.told.is_set() and time.monotonic() - self.at_s >= _KEPT_S


class ModelCards:
    """What the engines say of their models; one for all threads.

    Args:
        pool: of the servers to ask.
        client: to ask them with.
    """

    def __init__(self, pool: ServerPool, client: EngineClient) -> None:
        self._pool = pool
        self._client = client
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def all(self) -> dict[str, Mapping[str, Any]] | None:
        """By model id, the cards of all servers that answer; None where none does."""
        servers = [server for server in self._pool.servers if server.enabled]
        with ThreadPoolExecutor(min(_PARALLEL, max(1, len(servers)))) as threads:
            answers = list(threads.map(self._cards, servers))
        if all(cards is None for cards in answers):
            return None
        merged: dict[str, Mapping[str, Any]] = {}
        for card in (card for cards in answers for card in cards or ()):
            merged.setdefault(card["id"], card)
        return merged

    def context_tokens(self, server: Server, model: str) -> int | None:
        """The context of a model on a server, in tokens; None where it does not say."""
        cards = self._cards(server) or []
        named = [card for card in cards if card["id"] == model]
        size = (named or cards or [{}])[0].get("max_model_len")
        return size if isinstance(size, int) else None

    def _cards(self, server: Server) -> list[dict[str, Any]] | None:
        """A server's cards, None where it does not answer; either is kept for a while.

        One thread asks, and the others wait for what it is told, no longer than it may take.
        """
        with self._lock:
            kept = self._kept.get(server.name)
            asking = kept is None or kept.is_stale()
            if kept is None or asking:
                kept = self._kept[server.name] = _Kept()
        if not asking:
            kept.told.wait(_ASK_S + 1)
            return kept.cards
        try:
            kept.cards = self._ask(server)
        finally:
            kept.at_s = time.monotonic()
            kept.told.set()
        return kept.cards

    def _ask(self, server: Server) -> list[dict[str, Any]] | None:
        headers = engine_headers(
            server, {}, _REQUEST_ID, messages=False, forward_authorization=False
        )
        give_up_s = time.monotonic() + _ASK_S
        try:
            answer = self._client.get(server, _PATH, headers, Watch(None, lambda: give_up_s))
            try:
                listed = jsonbody.parse_value(answer.read(_MAX_BYTES))
            finally:
                answer.close()
        except GatewayError:
            return None
        data = listed.get("data") if isinstance(listed, dict) else None
        if answer.status != 200 or not isinstance(data, list):
            return None
        return [card for card in data if isinstance(card, dict) and isinstance(card.get("id"), str)]


class ModelList:
    """The use cases of `/v1/models`; one instance serves all threads.

    Args:
        names: that are served, where a `model_id` says so.
        cards: what the engines say.
    """

    def __init__(self, names: Names, cards: ModelCards) -> None:
        self._names = names
        self._all = cards.all
        self._started_s = int(time.time())

    def listing(self) -> dict[str, Any]:
        """The whole list.

        Raises:
            GatewayError: no server answered, and nothing else says what is served.
        """
        entries = [self._entry(name, card) for name, card in self._cards().items()]
        return {
            "object": "list",
            "data": entries,
            "has_more": False,
            "first_id": entries[0]["id"] if entries else None,
            "last_id": entries[-1]["id"] if entries else None,
        }

    def get(self, asked: str) -> dict[str, Any]:
        """One entry, under the name that was asked for.

        Raises:
            GatewayError: 404, it is not served.
        """
        name = self._names.resolve(asked)
        cards = self._cards()
        folded = {known.casefold(): known for known in reversed(cards)}
        known = name if name in cards else folded.get(name.casefold())
        if known is None:
            raise not_served(asked)
        return self._entry(asked.removeprefix("sgl/"), cards[known])

    def _cards(self) -> dict[str, Mapping[str, Any]]:
        """By name, what the engines say of the model."""
        found = self._all()
        if self._names.model_id is not None:
            by_id = found or {}
            served = by_id.get(self._names.model_id, {})
            return {name: by_id.get(name, served) for name in self._names.listed()}
        if found is None:
            raise GatewayError(UPSTREAM_UNREACHABLE, "No server answered with its models.")
        return found

    def _entry(self, name: str, card: Mapping[str, Any]) -> dict[str, Any]:
        created_at = datetime.fromtimestamp(self._started_s, UTC)
        entry = {
            "id": name,
            "object": "model",
            "created": self._started_s,
            "owned_by": "sglang",
            "type": "model",
            "display_name": name,
            "created_at": created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if isinstance(card.get("max_model_len"), int):
            entry["max_model_len"] = card["max_model_len"]
        return entry
