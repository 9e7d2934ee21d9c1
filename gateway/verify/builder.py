"""Collects the cases of a plan: requests that are the same are asked once, for all their checks."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gateway.profile import Loaded, Origin
from gateway.routes import Governs, Route
from gateway.verify.bodies import GENERATING, render, small, with_field
from gateway.verify.cases import Case, Check, Rule, RuleKind
from gateway.verify.expect import Expected, accepted, error_type, refused

ANSWER_TOKENS = 16
"""The budget of a probe's answer, where the profile allows as much."""


@dataclass(slots=True)
class Builder:
    """The plan in the making.

    Attributes:
        loaded: the profile.
        model: that is asked for.
        routes: that are probed.
        off: that the profile turns off.
    """

    loaded: Loaded
    model: str
    routes: tuple[Route, ...]
    off: tuple[Route, ...] = ()
    _cases: dict[tuple[str, bytes | None, bool], tuple[int, Case]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """The budget of a plain request."""
        output = self.loaded.profile.output
        return ANSWER_TOKENS if output is None else min(ANSWER_TOKENS, output.cap)

    def rule(self, path: tuple[str, ...], kind: RuleKind) -> Rule:
        """A rule by its path, or by the beginning of the paths of its values."""
        origins: Iterator[Origin] = (
            origin for leaf, origin in self.loaded.origins.items() if leaf[: len(path)] == path
        )
        return Rule(".".join(path), kind, next(origins, None))

    def generating(self, part: Governs | None = None) -> tuple[Route, ...]:
        """The probed routes that answer with text and are governed by a part of the profile."""
        return tuple(
            route
            for route in self.routes
            if route in GENERATING and (part is None or part in route.governs)
        )

    def plain(self, route: Route, *, stream: bool = False, model: str = "") -> dict[str, object]:
        """A plain request of a route."""
        return small(route, model or self.model, self.tokens, stream=stream)

    def put(self, case: Case) -> None:
        """Adds a case; to the same request that is there already, only its checks.

        Cases are asked in turn, one of each rule, so that a plan that is cut off has asked
        something about every rule; plain requests come first.
        """
        key = (case.path, case.body, case.cut)
        if key in self._cases:
            rank, before = self._cases[key]
            merged = replace(
                before,
                checks=(*before.checks, *case.checks),
                control=before.control or case.control,
                needs=before.needs and case.needs,
                gives=before.gives or case.gives,
            )
            self._cases[key] = (-1 if merged.control or merged.gives else rank, merged)
            return
        about = case.checks[0].rule.key if case.checks else ""
        rank = -1 if case.control or case.gives else self._counts.get(about, 0)
        self._counts[about] = self._counts.get(about, 0) + 1
        self._cases[key] = (rank, case)

    def probe(
        self,
        route: Route,
        body: bytes,
        rule: Rule,
        what: str,
        *expected: Expected,
        stream: bool = False,
        **more: object,
    ) -> None:
        """Adds a request with what is expected of it."""
        checks = tuple(Check(rule, what, words, judge) for words, judge in expected)
        generates = route in GENERATING and not more.get("cut")
        tokens = self.tokens * _choices(body) if generates else 0
        case = Case(route, route.path, body, checks, stream=stream, tokens=tokens)
        self.put(replace(case, **more))  # type: ignore[arg-type]  # fields of a case

    def accept(
        self, route: Route, body: bytes, rule: Rule, what: str, *also: Expected, **more: object
    ) -> None:
        """Adds a request that is accepted, and what else is expected of it."""
        self.probe(route, body, rule, what, accepted(), *also, **more)  # type: ignore[arg-type]

    def refuse(
        self, route: Route, body: bytes, rule: Rule, what: str, *, code: str, **more: object
    ) -> None:
        """Adds a request that is refused with a 400, whose type the profile may name."""
        self.probe(route, body, rule, what, refused(code), **more)  # type: ignore[arg-type]
        name = self.loaded.profile.bad_request_type
        if name is not None and Governs.ERROR_TYPE in route.governs:
            typed = self.rule(("errors", "bad_request_type"), RuleKind.ERROR_TYPE)
            self.probe(route, body, typed, what, error_type(name), **more)  # type: ignore[arg-type]

    def field_body(
        self, route: Route, field_name: str, value: bytes | None, *, stream: bool = False
    ) -> bytes | None:
        """A plain request with one field set; None where the dialect cannot say so."""
        return with_field(route, self.plain(route, stream=stream), field_name, value)

    def raw_body(self, route: Route, fields: Mapping[str, bytes], *, stream: bool = False) -> bytes:
        """A plain request without a budget, with fields of its dialect set."""
        return render(small(route, self.model, 0, stream=stream), fields)

    def cases(self) -> tuple[Case, ...]:
        """The cases in the order in which they are asked."""
        ranked = sorted(self._cases.values(), key=lambda ranked: ranked[0])
        checked = {case.route for _, case in ranked if case.checks}
        return tuple(case for _, case in ranked if case.route in checked)


def _choices(body: bytes) -> int:
    """How many answers a request asks for."""
    try:
        count = json.loads(body).get("n")
    except ValueError:
        return 1
    return count if isinstance(count, int) else 1
