"""`sgl-gateway validate FILE…`: every finding of every profile file."""

from typing import Annotated

import typer

from gateway.cli.reporters import REPORTERS, Format, profile_rules


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("validate")(validate)


def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Profile files.", show_default=False)
    ],
    output: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: file:line:column: rule: message. github: annotations of a workflow."
            " sarif: for code scanning.",
        ),
    ] = Format.TEXT,
) -> None:
    """Check profile files, and the files that they extend.

    Exits with 0 where all files are valid, with 1 where any has a finding.

    Example: sgl-gateway validate profiles/*.yaml
    """
    from gateway.profile import check_file

    by_file = {file: check_file(file) for file in files}
    # Two files that extend the same broken one have its findings in common.
    findings = list(dict.fromkeys(found for file in by_file.values() for found in file))
    text = REPORTERS[output](findings, profile_rules())
    typer.echo(text.encode(errors="backslashreplace"), nl=False)
    invalid = sum(map(bool, by_file.values()))
    typer.echo(_summary(len(findings), invalid, len(by_file)), err=True)
    raise typer.Exit(1 if findings else 0)


def _summary(findings: int, invalid: int, files: int) -> str:
    """The last line for a human: how many files were looked at, and how many are at fault."""
    if not findings:
        return f"{_count(files, 'file')} checked, no findings"
    return f"{_count(findings, 'finding')} in {invalid} of {_count(files, 'file')}"


def _count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
