"""The contract applied to a request: the order of its steps, as one list."""

from typing import Final

from gateway.contract.budget import check_budget
from gateway.contract.images import check_images
from gateway.contract.parameters import check_parameters
from gateway.contract.verdict import Decision, Step, Verdict
from gateway.jsonbody import Body, Edits, Remove
from gateway.profile.rules import Profile
from gateway.routes import Governs, Route

STEPS: Final[tuple[tuple[frozenset[Governs], Step], ...]] = (
    (frozenset({Governs.SAMPLING, Governs.PARAMS}), check_parameters),
    (frozenset({Governs.IMAGES}), check_images),
    (frozenset({Governs.OUTPUT}), check_budget),
)
"""The steps in their order, each with the parts of a profile that it enforces. A step is taken
where its route is governed by one of them; the first step that refuses ends it."""


def decide(profile: Profile, route: Route, body: Body) -> Verdict:
    """What a profile makes of a request: what changes, and why; or why it is refused.

    Args:
        profile: the profile in force.
        route: says which parts of it are enforced; its dialect is that of the body (of the one
            that was converted, where it was).
        body: the request; only read.
    """
    edits: dict[str, bytes | Remove] = {}
    decisions: tuple[Decision, ...] = ()
    for parts, step in STEPS:
        if parts.isdisjoint(route.governs):
            continue
        verdict = step(profile, route, body)
        if verdict.rejections:
            return verdict
        decisions += verdict.decisions
        edits.update(verdict.edits)
    return Verdict(edits, decisions)


def enforce(profile: Profile, route: Route, body: Body) -> Edits:
    """The edits that make a request keep to a profile.

    Args:
        profile: the profile in force.
        route: as for `decide`.
        body: the request; only read.

    Raises:
        GatewayError: the first violation: `sampling_contract_violation` for the `sampling`
            section, else `bad_request`.
    """
    verdict = decide(profile, route, body)
    if verdict.rejection is not None:
        raise verdict.rejection
    return verdict.edits
