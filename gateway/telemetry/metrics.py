"""Metrics for Prometheus, right across worker processes, their deaths and reloads.

prometheus-client keeps each process's values in files of one directory; a scrape, whichever
process answers it, adds them up. Values of dead processes stay in the sums of counters and
histograms, and leave those of gauges.

Every label's values are bounded: they come from the gateway's own tables, the profile or the
settings. What a client can invent (a model's name, a tool's type) is never one.

This module is imported where metrics are wanted only: prometheus-client is an extra.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from gateway.contract import Change
from gateway.errors import DRAINING, KINDS, OVERLOADED
from gateway.hosted_tools import family_of
from gateway.telemetry.record import OK, Record

ENGINE: Final = "engine"
"""In place of the code of an error that an engine made up."""

OTHER_MODEL: Final = "other"
"""In place of a served name that no setting names."""

_CODES: Final = frozenset(kind.code for kind in KINDS)
_SHED: Final = frozenset({OVERLOADED.code, DRAINING.code})

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Bounds of both histograms: from a buffered refusal to the longest answer."""


class Reloads:
    """What the master counts: it alone loads settings and profile.

    Args:
        registry: where they are shown when there are no files; None: nowhere.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._reloads = Counter(
            "sgl_gateway_reloads_total",
            "Reloads of settings and profile (HUP), by outcome: ok or refused.",
            ["outcome"],
            registry=registry,
        )
        self._last = Gauge(
            "sgl_gateway_last_reload_successful",
            "Whether what was last loaded took over: 1, or 0 where it was refused.",
            registry=registry,
            multiprocess_mode="mostrecent",
        )
        for outcome in (OK, "refused"):
            self._reloads.labels(outcome)
        self._show(good=True)

    def note(self, *, good: bool) -> None:
        """Notes how a reload went."""
        self._reloads.labels(OK if good else "refused").inc()
        self._show(good=good)

    def _show(self, *, good: bool) -> None:
        self._last.set(int(good))


class Metrics:
    """The metrics of one process.

    Args:
        servers: the names of the servers.
        models: the names that an engine may be sent, as far as settings name them.
        profile: the name of the profile in effect.
        digest: of the profile in effect.
        directory: of the files that all processes share; None: this process stands alone.
    """

    def __init__(
        self,
        *,
        servers: Iterable[str],
        models: Iterable[str],
        profile: str,
        digest: str,
        directory: str | None = None,
    ) -> None:
        self._directory = directory
        self._models = frozenset(models)
        self._registry = registry = CollectorRegistry()
        if directory is None:
            self.reloads = Reloads(registry)

        def counter(name: str, explanation: str, *labels: str) -> Counter:
            return Counter(f"sgl_gateway_{name}_total", explanation, labels, registry=registry)

        def gauge(name: str, explanation: str, *labels: str) -> Gauge:
            return Gauge(
                f"sgl_gateway_{name}",
                explanation,
                labels,
                registry=registry,
                multiprocess_mode="livesum",
            )

        def seconds(name: str, explanation: str) -> Histogram:
            return Histogram(
                f"sgl_gateway_{name}_seconds",
                explanation,
                ["route", "stream"],
                registry=registry,
                buckets=_SECONDS,
            )

        self._requests = counter(
            "requests",
            "Requests that ended, by how: ok, rejected, failed, cut (failed after the answer had"
            " begun), client_gone.",
            *("route", "dialect", "status", "outcome"),
        )
        self._errors = counter(
            "errors",
            "Errors that clients were told, by code; engine: the code is an engine's own.",
            *("route", "code"),
        )
        self._shed = counter(
            "shed", "Requests refused for lack of room, or because the process is ending.", "reason"
        )
        self._duration = seconds("request_duration", "From a request's arrival to its last byte.")
        self._first_event = seconds(
            "first_event", "From a request's arrival to the first byte that says something."
        )
        self._in_flight = gauge("in_flight_requests", "Requests at work now.")
        self._attempts = counter(
            "engine_attempts",
            "Servers asked, by how it went: ok, client_gone, the gateway's code for what went"
            " wrong, or status_N for an engine's own error.",
            *("server", "outcome"),
        )
        self._retries = counter(
            "engine_retries", "Requests that were tried again, by the server tried next.", "server"
        )
        self._left_out = gauge(
            "server_left_out",
            "Processes that leave the server out, until a request reaches it again.",
            "server",
        )
        self._rejections = counter(
            "contract_rejections", "Values that the profile refused.", "rule", "field"
        )
        self._adjustments = counter(
            "contract_adjustments",
            "Changes made to requests: written, normalized, clamped, folded (a repeated field),"
            " renamed (an alias), removed (an engine would refuse it), dropped_tool (field: the"
            " tool's family).",
            *("kind", "field"),
        )
        self._tokens = counter(
            "tokens",
            "Tokens that engines say they read (in) and wrote (out), by the served model.",
            *("route", "model", "direction"),
        )
        gauge(
            "profile_processes", "Processes that serve with this profile.", "profile", "digest"
        ).labels(profile, digest).set(1)
        self._in_flight.set(0)
        for server in servers:
            self._left_out.labels(server).set(0)
            self._attempts.labels(server, OK)
            self._retries.labels(server)
        for reason in _SHED:
            self._shed.labels(reason)

    def count(self, change: int) -> None:
        """Notes that requests have begun (1) or ended (-1)."""
        self._in_flight.inc(change)

    def leave_out(self, server: str, out: bool) -> None:
        """Notes that this process leaves a server out, or takes it back."""
        self._left_out.labels(server).set(int(out))

    def observe(self, record: Record) -> None:
        """Counts a request that has ended."""
        route, stream = record.route, "true" if record.stream else "false"
        self._requests.labels(route, record.dialect, record.status, record.outcome).inc()
        self._duration.labels(route, stream).observe(record.duration_ms / 1000)
        if record.first_event_ms is not None:
            self._first_event.labels(route, stream).observe(record.first_event_ms / 1000)
        if record.error_code is not None:
            self._observe_error(record, record.error_code)
        for number, attempt in enumerate(record.attempts):
            self._attempts.labels(attempt.server, attempt.outcome).inc()
            if number:
                self._retries.labels(attempt.server).inc()
        self._observe_contract(record)
        for direction, tokens in (("in", record.tokens_in), ("out", record.tokens_out)):
            if tokens is not None:
                model = record.served if record.served in self._models else OTHER_MODEL
                self._tokens.labels(route, model, direction).inc(tokens)

    def _observe_error(self, record: Record, code: str) -> None:
        known = code in _CODES and not record.engine_error
        self._errors.labels(record.route, code if known else ENGINE).inc()
        if known and code in _SHED and not record.attempts:
            self._shed.labels(code).inc()

    def _observe_contract(self, record: Record) -> None:
        for one in record.decisions:
            if one.change is Change.REJECTED:
                self._rejections.labels(one.rule, one.field).inc()
            else:
                self._adjustments.labels(one.change.value, one.field).inc()
        if record.served is not None and record.served != record.model:
            self._adjustments.labels("renamed", "model").inc()
        for field in record.removed:
            self._adjustments.labels("removed", field).inc()
        for family in {family_of(tool) for tool in record.dropped_tools} - {None}:
            self._adjustments.labels("dropped_tool", family).inc()

    def exposition(self) -> bytes:
        """All processes' metrics, in Prometheus's text format."""
        if self._directory is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
