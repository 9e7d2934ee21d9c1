"""The model list: what clients may name, with what the engines say of it.

With a `model_id`, the list is it and its aliases, and the engines are asked for nothing but
`max_model_len`. Without one, it is what the servers list. Entries carry OpenAI's keys and
Anthropic's beside each other. An engine's list is asked for in parallel, within a bound, and
kept for a few seconds; engines that do not answer are left out, and only where none answered
and nothing else says what is served is that an error.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
_ASK_S: Final = 5.0
_MAX_BYTES: Final = 4 * 1024 * 1024


class ModelList:
    """The use cases of `/v1/models`; one instance serves all threads.

    Args:
        names: that are served, where a `model_id` says so.
        pool: of the servers to ask.
        client: to ask them with.
    """

    def __init__(self, names: Names, pool: ServerPool, client: EngineClient) -> None:
        self._names = names
        self._pool = pool
        self._client = client
        self._started_s = int(time.time())
        self._lock = threading.Lock()
        self._kept: tuple[float, list[dict[str, Any]]] | None = None

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
        found = self._ask_all()
        by_id: dict[str, Mapping[str, Any]] = {}
        for card in found or ():
            by_id.setdefault(card["id"], card)
        if self._names.model_id is not None:
            served = by_id.get(self._names.model_id, {})
            return {name: by_id.get(name, served) for name in self._names.listed()}
        if found is None:
            raise GatewayError(UPSTREAM_UNREACHABLE, "No server answered with its models.")
        return by_id

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

    def _ask_all(self) -> Sequence[Mapping[str, Any]] | None:
        """The cards of all servers that answer; None where none does."""
        with self._lock:
            if self._kept is not None and time.monotonic() - self._kept[0] < _KEPT_S:
                return self._kept[1]
            servers = self._pool.servers
            with ThreadPoolExecutor(min(_PARALLEL, max(1, len(servers)))) as threads:
                answers = [cards for cards in threads.map(self._ask, servers) if cards is not None]
            if not answers:
                return None
            merged = [card for cards in answers for card in cards]
            self._kept = (time.monotonic(), merged)
            return merged

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
        if answer.status != 200 or not isinstance(data, list):  # noqa: PLR2004
            return None
        return [card for card in data if isinstance(card, dict) and isinstance(card.get("id"), str)]
