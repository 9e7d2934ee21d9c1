"""How inspected requests are told: for people, and for programs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from gateway.cli.json_diff import diff_json, layout, shorten
from gateway.contract import Change, Decision
from gateway.profile import Loaded, Origin
from gateway.service.inspect import Inspection, Refused, Sent

_WORDS: Final[Mapping[Change, str]] = MappingProxyType(
    {
        Change.WRITTEN: "written in",
        Change.NORMALIZED: "normalised",
        Change.CLAMPED: "clamped",
        Change.FOLDED: "folded",
        Change.REJECTED: "refused",
    }
)

_SPEAKING: Final[Mapping[Change, frozenset[str]]] = MappingProxyType(
    {
        Change.WRITTEN: frozenset({"default", "pin"}),
        Change.NORMALIZED: frozenset({"normalize"}),
        Change.REJECTED: frozenset(
            {"pin", "min", "max", "exclusive_min", "exclusive_max", "values", "type"}
        ),
    }
)
"""By what was done: the keys of a rule that say so; all of them where there is no row."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """A request and what would become of it.

    Attributes:
        name: of its file, as it was given.
        raw: its body.
    """

    name: str
    raw: bytes
    inspection: Inspection


def origins_of(decision: Decision, loaded: Loaded) -> tuple[Origin, ...]:
    """Where the profile sets the rule behind a decision, each place once."""
    speaking = _SPEAKING.get(decision.change)
    found = [
        origin
        for path, origin in loaded.origins.items()
        if _is_below(".".join(path), decision.rule)
        and (speaking is None or path[0] != "params" or path[-1] in speaking)
    ]
    return tuple(dict.fromkeys(found))


def _is_below(path: str, rule: str) -> bool:
    return path == rule or path.startswith(f"{rule}.")


def render_text(found: Sequence[Inspected], loaded: Loaded) -> str:
    """A verdict, what the contract did and why, and what goes to the engine or the client."""
    return "\n".join("".join(f"{line}\n" for line in _lines(one, loaded)) for one in found)


def _lines(one: Inspected, loaded: Loaded) -> Iterator[str]:
    inspection = one.inspection
    outcome = inspection.outcome
    verdict = "accepted" if isinstance(outcome, Sent) else f"rejected with {outcome.status}"
    yield f"{one.name}: {verdict}"
    for decision in inspection.decisions:
        places = ", ".join(f"{at.source}:{at.line}" for at in origins_of(decision, loaded))
        what = f"{_WORDS[decision.change]}: {decision.field}{_values(decision)}"
        yield shorten(f"  {what}  # {decision.rule} ({places})")
    if inspection.dropped_tools:
        yield f"  hosted tools left out: {', '.join(inspection.dropped_tools)}"
    lines = _sent(one.raw, outcome) if isinstance(outcome, Sent) else _refused(outcome)
    yield from (f"  {line}".rstrip() for line in lines)


def _values(decision: Decision) -> str:
    old = None if decision.old is None else decision.old.decode()
    new = None if decision.new is None else decision.new.decode()
    if decision.change is Change.REJECTED:
        return f" = {old}"
    return f" = {new}" if old is None or old == new else f" = {new} for {old}"


def _sent(raw: bytes, sent: Sent) -> Iterator[str]:
    yield f"the engine gets, at {sent.path}:"
    if sent.body == raw:
        yield "the request as it is"
        return
    difference = diff_json(raw, sent.body, ("the client's body", "the engine's body"))
    yield from difference or ["the request in another layout"]


def _refused(reply: Refused) -> Iterator[str]:
    yield "the client gets:"
    yield f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"
    for name, value in reply.headers.items():
        yield f"{name}: {value}"
    yield ""
    yield from layout(reply.body.decode())


def render_json(found: Sequence[Inspected], loaded: Loaded) -> str:
    """For programs: a list of objects.

    Their keys are file, verdict, route, decisions, dropped_tools, and engine or reply (the other
    is null). Bodies are texts, since every byte counts.
    """
    return json.dumps([_object(one, loaded) for one in found], indent=2) + "\n"


def _object(one: Inspected, loaded: Loaded) -> dict[str, object]:
    inspection = one.inspection
    outcome = inspection.outcome
    sent = outcome if isinstance(outcome, Sent) else None
    reply = outcome if isinstance(outcome, Refused) else None
    return {
        "file": one.name,
        "verdict": "rejected" if sent is None else "accepted",
        "route": inspection.route.name,
        "decisions": [_decision(decision, loaded) for decision in inspection.decisions],
        "dropped_tools": inspection.dropped_tools,
        "engine": None if sent is None else {"path": sent.path, "body": sent.body.decode()},
        "reply": None
        if reply is None
        else {
            "status": reply.status,
            "headers": dict(reply.headers),
            "body": reply.body.decode(),
        },
    }


def _decision(decision: Decision, loaded: Loaded) -> dict[str, object]:
    return {
        "change": decision.change,
        "field": decision.field,
        "rule": decision.rule,
        "old": None if decision.old is None else decision.old.decode(),
        "new": None if decision.new is None else decision.new.decode(),
        "origins": [{"source": at.source, "line": at.line} for at in origins_of(decision, loaded)],
    }
