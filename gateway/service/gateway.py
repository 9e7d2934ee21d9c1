"""Generation under the contract: the path of a request from its body to the reply.

    JSON → model → alias → served → contract → server → filters → engine → first event → reply

A failure before the commit point is raised and becomes an HTTP error in the caller's dialect;
after it, the stream tells of it. Retries happen only before it, each on a server that was not
tried yet, and never after a read time-out: then the engine may still be at work. The connection
to one server is closed before the next is asked, so that no request is generated twice at once.
"""

import contextlib
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from gateway import jsonbody
from gateway.dialects.errors import (
    EngineFailure,
    Failure,
    failure_of,
    parse_engine_error,
    protocol_failure,
    render_error,
)
from gateway.engine.client import Answer, EngineClient
from gateway.engine.headers import engine_headers
from gateway.engine.health import BUSY_S, Outcome
from gateway.engine.servers import Server, ServerPool
from gateway.engine.watch import Watch
from gateway.errors import (
    BAD_REQUEST,
    INTERNAL,
    NO_HEALTHY_SERVERS,
    UPSTREAM_ABORTED,
    UPSTREAM_AUTH,
    UPSTREAM_PROTOCOL,
    ClientGone,
    EngineFault,
    GatewayError,
)
from gateway.profile import Profile, ProfileService
from gateway.routes import Governs
from gateway.service.engine_body import Side
from gateway.service.exchange import Exchange, build_exchange
from gateway.service.models import ModelCards
from gateway.service.names import Names, asked_model, build_names, not_served
from gateway.service.prepare import Prepared, prepare
from gateway.service.stream import Stream
from gateway.service.usage import note_usage
from gateway.service.work import Work
from gateway.telemetry.record import CLIENT_GONE

EVENT_STREAM: Final = "text/event-stream"
JSON: Final = "application/json"
_MAX_REPLY_BYTES: Final = 256 * 1024 * 1024
_MAX_ERROR_BYTES: Final = 1024 * 1024
_MAX_DEFAULT_TOKENS: Final = 32_768
_UNKNOWN_CONTEXT_TOKENS: Final = 4_096
_SHOWN_TYPES: Final = 32
_SHOWN_CHARACTERS: Final = 64
_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]")
_RETRIED_STATUSES: Final = frozenset({502, 503})
_BUSY_STATUSES: Final = frozenset({429, 503})

_REFUSED_CODES: Final = frozenset({UPSTREAM_AUTH.code, UPSTREAM_ABORTED.code})
"""Told as a 502, though the engine is as well as one that answers 400."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the settings say about serving.

    Attributes:
        request_s: for the whole answer's beginning: from the request to its first event (and,
            buffered, to its end).
        keepalive_s: silence in a stream after which a keep-alive is written.
        max_retries: on other servers, before the commit point.
        backoff_s: the longest wait before the first retry; it doubles with each.
        longest_backoff_s: the longest wait before any retry.
        anthropic_default_max_tokens: the budget for an engine spoken to in Messages, where
            neither the request nor the profile sets one.
    """

    model_id: str | None = None
    request_s: float = 600.0
    keepalive_s: float = 15.0
    max_retries: int = 1
    backoff_s: float = 0.1
    longest_backoff_s: float = 2.0
    forward_authorization: bool = False
    anthropic_default_max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client gets.

    Attributes:
        frames: of a stream, one a write; None for a buffered reply, whose `body` it is.
    """

    status: int
    content_type: str
    body: bytes = b""
    frames: Iterator[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A request on its way to a server."""

    work: Work
    prepared: Prepared
    name: str
    headers: Mapping[str, str]
    watch: Watch
    deadline_s: float


class Gateway:
    """The use cases of the inference routes; one instance serves all threads."""

    def __init__(
        self,
        profiles: ProfileService,
        pool: ServerPool,
        client: EngineClient,
        policy: Policy,
    ) -> None:
        self._profiles = profiles
        self.pool = pool
        self.client = client
        self._policy = policy
        self.cards = ModelCards(pool, client)
        self._names = build_names(policy.model_id, profiles.profile.aliases, pool.aliases())

    @property
    def profile(self) -> Profile:
        """The profile in force."""
        return self._profiles.profile

    @property
    def names(self) -> Names:
        """The names that are served."""
        return self._names

    @property
    def available(self) -> bool:
        """Whether some server is not known to be out of service."""
        return self.pool.available()

    def respond(
        self, work: Work, read_body: Callable[[], bytes], headers: Mapping[str, str], watch: Watch
    ) -> Reply:
        """Answers a request; every failure is a reply as well.

        Args:
            work: of the request; its record is filled in.
            read_body: gives the body within the limits, or raises a GatewayError.
            headers: of the client, names in lower case.
            watch: ends waits when the client leaves.

        Raises:
            ClientGone: there is nobody to answer.
        """
        try:
            raw = read_body()
            work.record.bytes_in = len(raw)
            return self._generate(work, raw, headers, watch)
        except GatewayError as error:
            failure = failure_of(error)
        except EngineFailure as error:
            failure = error.failure
        return self.error_reply(work, failure)

    def error_reply(self, work: Work, failure: Failure) -> Reply:
        """A failure as a reply in the route's dialect."""
        record = work.record
        record.status = failure.status
        record.outcome = "rejected" if failure.status < INTERNAL.status else "failed"
        record.error_code = failure.router_code or str(failure.code)
        record.engine_error = failure.router_code is None
        governed = Governs.ERROR_TYPE in work.route.governs
        headers = dict(failure.headers)
        if failure.router_code is not None:
            headers["x-router-error-code"] = failure.router_code
        return Reply(
            failure.status,
            JSON,
            render_error(
                work.route.dialect,
                failure,
                request_id=record.request_id,
                bad_request_type=self.profile.bad_request_type if governed else None,
            ),
            headers=headers,
        )

    def _generate(self, work: Work, raw: bytes, headers: Mapping[str, str], watch: Watch) -> Reply:
        body = jsonbody.parse_object(raw)
        asked = asked_model(body)
        work.record.model = asked
        name = self._names.resolve(asked)
        if not self.pool.fitting(name):
            raise not_served(asked)
        prepared = prepare(self.profile, work, body, asked)
        deadline_s = time.monotonic() + self._policy.request_s
        return self._try_servers(_Trial(work, prepared, name, headers, watch, deadline_s))

    def _try_servers(self, trial: _Trial) -> Reply:
        """Tries servers until one answers, a failure is final, or the retries are used up."""
        tried: list[str] = []
        last: EngineFailure | GatewayError = GatewayError(
            NO_HEALTHY_SERVERS, "No server is in service for this model."
        )
        while len(tried) <= self._policy.max_retries and time.monotonic() < trial.deadline_s:
            server = self.pool.draw(trial.name, tried)
            if server is None or not self._back_off(trial, len(tried)):
                break
            tried.append(server.name)
            attempt = trial.work.record.ask(server.name)
            try:
                return self._try(trial, server)
            except ClientGone:
                attempt.outcome = CLIENT_GONE
                raise
            except EngineFault as fault:
                attempt.outcome = fault.kind.code
                self.pool.report(server, Outcome.FAILED)
                # A stream that broke before the commit point has given up; half a reply is final.
                broke = trial.work.record.stream and fault.kind is UPSTREAM_PROTOCOL
                if not (fault.retriable or broke):
                    raise
                last = fault
            except EngineFailure as error:
                failure = error.failure
                attempt.outcome = _outcome_of(failure)
                health = _health_of(failure)
                if health is Outcome.FAILED and len(self.pool.fitting(trial.name)) == 1:
                    # It answers, and no other could: one client's requests, which it may only
                    # not know how to refuse, must not take it from all the others.
                    health = Outcome.NEUTRAL
                self.pool.report(server, health, _busy_s(failure))
                if failure.status not in _RETRIED_STATUSES:
                    raise
                last = error
        raise last

    def _back_off(self, trial: _Trial, retry: int) -> bool:
        """Waits before a retry, for a random part of what is allowed, while the client is there.

        Returns:
            Whether there is time for it; nothing is waited where there is not.

        Raises:
            ClientGone: it left.
            GatewayError: 503, the gateway is draining.
        """
        if not retry:
            return True
        longest_s = min(self._policy.backoff_s * 2 ** (retry - 1), self._policy.longest_backoff_s)
        wait_s = random.uniform(0, longest_s)  # noqa: S311 - it spreads load, it keeps no secret
        until_s = time.monotonic() + wait_s
        if until_s >= trial.deadline_s:
            return False
        trial.watch.wait(-1, 0, until_s)
        return True

    def _try(self, trial: _Trial, server: Server) -> Reply:
        """Asks one server; whatever it held is given back, unless a stream goes on with it."""
        target = server.target(trial.name)
        trial.work.record.served = target.model_id
        side = Side(
            target.model_id,
            messages=target.use_anthropic_endpoints,
            default_max_tokens=lambda: self._default_max_tokens(server, target.model_id),
        )
        exchange = build_exchange(trial.prepared, side)
        headers = engine_headers(
            server,
            trial.headers,
            trial.work.record.request_id,
            messages=exchange.messages,
            forward_authorization=self._policy.forward_authorization,
        )
        with contextlib.ExitStack() as held:
            self.pool.begin(server)
            held.callback(self.pool.end, server)
            answer = self._post(trial, server, exchange.path, exchange.body, headers)
            held.callback(answer.close)
            if answer.status == BAD_REQUEST.status and exchange.second_body is not None:
                answer.close()
                answer = self._post(trial, server, exchange.path, exchange.second_body, headers)
                held.callback(answer.close)
            own_key = bool(server.api_key) or not self._policy.forward_authorization
            reply = self._read(trial, exchange, answer, own_key=own_key)
            self.pool.report(server, Outcome.ANSWERED)
            if reply.frames is not None:
                trial.work.hold(held.pop_all().close)
        return reply

    def _post(
        self, trial: _Trial, server: Server, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        left_s = trial.deadline_s - time.monotonic()
        return self.client.post(server, path, body, headers, trial.watch, first_byte_s=left_s)

    def _default_max_tokens(self, server: Server, model: str) -> int:
        """The budget that an engine spoken to in Messages is given where the request has none."""
        profile, setting = self.profile, self._policy.anthropic_default_max_tokens
        if profile.output is not None:
            return profile.output.written
        if setting is not None:
            return setting
        context = self.cards.context_tokens(server, model)
        if context is None:
            return _UNKNOWN_CONTEXT_TOKENS
        return max(1, min(context // 4, _MAX_DEFAULT_TOKENS))

    def _read(self, trial: _Trial, exchange: Exchange, answer: Answer, *, own_key: bool) -> Reply:
        """The engine's answer as a reply; a stream's has passed the commit point."""
        record = trial.work.record
        streamed = answer.content_type.startswith(EVENT_STREAM)
        if answer.status >= 400:
            raise EngineFailure(_engine_error(answer, own_key=own_key))
        if answer.status != 200:
            raise protocol_failure(f"The engine answered with status {answer.status}.")
        if streamed is not record.stream:
            asked, got = ("a stream", "none") if record.stream else ("no stream", "one")
            raise protocol_failure(f"The engine was asked for {asked} and sent {got}.")
        headers = {}
        if record.dropped_tools:
            headers["x-sgl-gateway-dropped-tools"] = _header_of(record.dropped_tools)
        record.status = answer.status
        if not streamed or exchange.build_relay is None:
            raw = answer.read(_MAX_REPLY_BYTES)
            body = exchange.parse_reply(raw)
            trial.work.first_event()
            note_usage(record, raw)
            return Reply(answer.status, JSON, body, headers=headers)
        stream = Stream(
            answer,
            exchange.build_relay(),
            trial.work,
            keepalive=exchange.keepalive,
            keepalive_s=self._policy.keepalive_s,
        )
        stream.open(trial.deadline_s)
        headers |= {"cache-control": "no-cache", "x-accel-buffering": "no"}
        return Reply(answer.status, EVENT_STREAM, frames=stream, headers=headers)


def _outcome_of(failure: Failure) -> str:
    """What is noted of an attempt that failed so."""
    return failure.router_code or f"status_{failure.status}"


def _health_of(failure: Failure) -> Outcome:
    """What an engine's refusal says of its health."""
    if failure.status in _BUSY_STATUSES:
        return Outcome.BUSY
    refused = failure.status < INTERNAL.status or failure.router_code in _REFUSED_CODES
    return Outcome.NEUTRAL if refused else Outcome.FAILED


def _busy_s(failure: Failure) -> float:
    """How long a busy engine asks to be left alone."""
    text = failure.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"[0-9]{1,6}", text) else BUSY_S


def _header_of(types: tuple[str, ...]) -> str:
    """Dropped tool types as a header's value: clients choose them, so they are cut and cleaned."""
    shown = [_NO_TOKEN.sub("?", one[:_SHOWN_CHARACTERS]) for one in types[:_SHOWN_TYPES]]
    return ", ".join(dict.fromkeys(shown))


def _engine_error(answer: Answer, *, own_key: bool) -> Failure:
    failure = parse_engine_error(answer.status, answer.read(_MAX_ERROR_BYTES), own_key=own_key)
    retry_after = answer.headers.get("retry-after")
    if retry_after is None:
        return failure
    return replace(failure, headers={"retry-after": retry_after})
