"""`sgl-gateway diff A B`: what changes between two profiles, and what clients see of it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gateway.contract.compare import Example
    from gateway.profile import Loaded
    from gateway.profile.leaves import Leaf

_DIFFERENT = 1
_UNSEEN = "not seen by clients"


class Format(StrEnum):
    """How differences are written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Change:
    """What differs in one rule.

    Attributes:
        leaves: its values that differ, each before and after; None where there is none.
        examples: its effects on clients, one request each; empty where they cannot tell.
    """

    leaves: tuple[tuple["Leaf | None", "Leaf | None"], ...]
    examples: tuple["Example", ...]


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("diff")(diff)


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A preset or a profile file.", show_default=False)
    ],
    after: Annotated[
        str, typer.Argument(metavar="B", help="What it is to become.", show_default=False)
    ],
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 where they differ.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.TEXT,
) -> None:
    """Show what changes from one profile to another, both merged with what they extend.

    A change tightens where a request that was accepted is refused, loosens where one that was
    refused is accepted, and alters where a request has another outcome in any other way.

    Example: sgl-gateway diff moonshot-kimi ours.yaml --exit-code
    """
    from gateway.profile import load_named

    changes = find_changes(load_named(before), load_named(after))
    render = {Format.TEXT: render_text, Format.JSON: render_json}[output]
    typer.echo(render(changes).encode(errors="backslashreplace"), nl=False)
    typer.echo(summary(changes), err=True)
    raise typer.Exit(_DIFFERENT if changes and exit_code else 0)


def find_changes(before: "Loaded", after: "Loaded") -> tuple[Change, ...]:
    """Every rule that differs, in the order of the first profile, then of the second."""
    from gateway.contract.compare import judge, subject_of
    from gateway.profile.leaves import leaves_of

    old, new = leaves_of(before), leaves_of(after)
    groups: dict[tuple[str, ...], list[tuple[Leaf | None, Leaf | None]]] = {}
    for path in dict.fromkeys((*old, *new)):
        one, other = old.get(path), new.get(path)
        if one is None or other is None or not _same(one.value, other.value):
            groups.setdefault(subject_of(path), []).append((one, other))
    return tuple(
        Change(tuple(leaves), judge(before.profile, after.profile, subject))
        for subject, leaves in groups.items()
    )


def _same(one: object, other: object) -> bool:
    """Whether two values are the same to a profile: a boolean is never a number."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def render_text(changes: Sequence[Change]) -> str:
    """For people: the effects, the values before and after with their places, an example each."""
    return "\n".join("".join(f"{line}\n" for line in _lines(change)) for change in changes)


def _lines(change: Change) -> Iterator[str]:
    yield ", ".join(example.effect for example in change.examples) or _UNSEEN
    for pair in change.leaves:
        for sign, leaf in zip("-+", pair, strict=True):
            if leaf is not None:
                where = f"{leaf.origin.source}:{leaf.origin.line}"
                yield f"{sign} {'.'.join(leaf.path)}: {leaf.text}  # {where}"
    for example in change.examples:
        yield f"  {example.request}: {example.before}, {example.after}"


def render_json(changes: Sequence[Change]) -> str:
    """For programs: a list of objects with the keys effects, values and examples.

    A value has the keys path (a list), before and after; each of these is null, or has the keys
    value, source and line.
    """
    return json.dumps([_object(change) for change in changes], indent=2) + "\n"


def _object(change: Change) -> dict[str, object]:
    return {
        "effects": [example.effect for example in change.examples],
        "values": [
            {
                "path": (one or other).path,  # type: ignore[union-attr]  # one of them is there
                "before": _side(one),
                "after": _side(other),
            }
            for one, other in change.leaves
        ],
        "examples": [
            {
                "effect": example.effect,
                "request": example.request,
                "before": example.before,
                "after": example.after,
            }
            for example in change.examples
        ],
    }


def _side(leaf: "Leaf | None") -> dict[str, object] | None:
    if leaf is None:
        return None
    return {"value": leaf.value, "source": leaf.origin.source, "line": leaf.origin.line}


def summary(changes: Sequence[Change]) -> str:
    """The last line for a human."""
    if not changes:
        return "no difference"
    from gateway.contract.compare import Effect

    found = [example.effect for change in changes for example in change.examples]
    counts = [f"{found.count(effect)} {effect}" for effect in Effect if effect in found]
    unseen = sum(not change.examples for change in changes)
    counts += [f"{unseen} {_UNSEEN}"] if unseen else []
    rules = "1 rule differs" if len(changes) == 1 else f"{len(changes)} rules differ"
    return f"{rules}: {', '.join(counts)}"
