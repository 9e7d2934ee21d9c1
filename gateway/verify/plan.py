"""From a profile to the plan of its verification."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.profile import Loaded
from gateway.routes import ROUTES
from gateway.verify import fields, sections
from gateway.verify.builder import Builder
from gateway.verify.cases import Case, RuleKind

Prober = Callable[[Builder], None]

PROBERS: Final[Mapping[RuleKind, Prober]] = MappingProxyType(
    {
        RuleKind.EXACT: fields.probe_fields,
        RuleKind.BAND: fields.probe_fields,
        RuleKind.CONFLICT: fields.probe_fields,
        RuleKind.PIN: fields.probe_fields,
        RuleKind.DEFAULT: fields.probe_fields,
        RuleKind.MINIMUM: fields.probe_fields,
        RuleKind.MAXIMUM: fields.probe_fields,
        RuleKind.VALUES: fields.probe_fields,
        RuleKind.TYPE: fields.probe_fields,
        RuleKind.NORMALIZE: fields.probe_fields,
        RuleKind.REASONING: fields.probe_fields,
        RuleKind.CAP: sections.probe_budget,
        RuleKind.EXCESS: sections.probe_budget,
        RuleKind.BUDGET: sections.probe_budget,
        RuleKind.BODY: sections.probe_body_size,
        RuleKind.IMAGES: sections.probe_images,
        RuleKind.ALIASES: sections.probe_aliases,
        RuleKind.ERROR_TYPE: sections.probe_error_type,
        RuleKind.PROTOCOL: sections.probe_protocols,
    }
)
"""By kind of rule: what adds its probes. Every kind has a row."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked, in order, and what it costs at most.

    Attributes:
        loaded: the profile that it comes from.
        model: that is asked for.
    """

    loaded: Loaded
    model: str
    cases: tuple[Case, ...]

    @property
    def checks(self) -> int:
        """How many expectations there are."""
        return sum(len(case.checks) for case in self.cases)

    @property
    def sent_bytes(self) -> int:
        """Of all bodies."""
        return sum(len(case.body or b"") for case in self.cases)

    @property
    def answer_tokens(self) -> int:
        """The most that the answers can have, those aside that are left at their first words."""
        return sum(case.tokens for case in self.cases)


def build_plan(loaded: Loaded, model: str, routes: Collection[str] = ()) -> Plan:
    """The plan for a profile.

    Args:
        loaded: the profile.
        model: that is asked for.
        routes: the names of the routes to probe; none: all that the profile has.
    """
    named = [route for route in ROUTES if not routes or route.name in routes]
    off = [route for route in named if route.protocol in loaded.profile.protocols_off]
    on = [route for route in named if route not in off]
    builder = Builder(loaded, model, tuple(on), tuple(off))
    sections.probe_plainly(builder)
    for prober in dict.fromkeys(PROBERS.values()):
        prober(builder)
    return Plan(loaded, model, builder.cases())
