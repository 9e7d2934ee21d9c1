"""`sgl-gateway check-config FILE`: every finding of a settings file, and of its servers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.reporters import REPORTERS, Format, Rulebook
from gateway.settings import environment

if TYPE_CHECKING:
    from gateway.config.probing import Standing
    from gateway.profile import Finding

_PROBE_S: Final = 5.0
_SHOWN_MODELS: Final = 5


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("check-config")(check_config)


def check_config(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A settings file.", show_default=False)
    ],
    output: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: file:line:column: rule: message. github: annotations of a workflow."
            " sarif: for code scanning.",
        ),
    ] = Format.TEXT,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also ask each server whether it is ready.")
    ] = False,
) -> None:
    """Check a settings file: its keys and values, and the environment variables it names.

    Exits with 0 where it can be used, with 1 where it cannot, or where a server that was asked
    cannot serve. Keys of servers are never shown.

    Example: sgl-gateway check-config servers.yaml --probe
    """
    from gateway import config as files

    loaded, findings = files.check_config(file, environment())
    if loaded is not None and probe:
        from gateway.config.probing import findings_of, probe_servers

        standings = probe_servers(loaded.servers, _PROBE_S)
        for standing in standings:
            typer.echo(_line(standing), err=True)
        findings = [*findings, *findings_of(loaded, standings)]
    text = REPORTERS[output](findings, Rulebook(files.RULES, files.WARNINGS))
    typer.echo(text.encode(errors="backslashreplace"), nl=False)
    faults = [finding for finding in findings if finding.rule not in files.WARNINGS]
    servers = () if loaded is None else loaded.servers
    typer.echo(_summary(findings, faults, [server.name for server in servers]), err=True)
    raise typer.Exit(1 if faults else 0)


def _line(standing: "Standing") -> str:
    """What a server said, in a line."""
    if standing.problem is not None:
        return f"{standing.server.name}: {standing.problem}"
    shown = ", ".join(standing.models[:_SHOWN_MODELS]) or "no model"
    more = len(standing.models) - _SHOWN_MODELS
    return f"{standing.server.name}: ready, lists {shown}{f' and {more} more' * (more > 0)}"


def _summary(
    findings: Sequence["Finding"], faults: Sequence["Finding"], servers: Sequence[str]
) -> str:
    """The last line for a human."""
    warnings = len(findings) - len(faults)
    counts = [_count(len(faults), "finding")] if faults else []
    counts += [_count(warnings, "warning")] if warnings else []
    said = ", ".join(counts) or "no findings"
    return f"{said}; servers: {', '.join(servers)}" if servers else said


def _count(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
