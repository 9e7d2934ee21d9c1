"""`sgl-gateway presets`: the profiles that are built in, listed or printed."""

from itertools import dropwhile, takewhile
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("presets")(presets)


def presets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The preset to print.", show_default=False),
    ] = None,
) -> None:
    """List the presets, or print one as it stands.

    Example: sgl-gateway presets moonshot-kimi > kimi.yaml
    """
    from gateway.profile import preset_names, preset_text

    if name is not None:
        typer.echo(preset_text(name).encode(), nl=False)
        return
    texts = {known: preset_text(known) for known in preset_names()}
    width = max(map(len, texts), default=0)
    for known, text in texts.items():
        typer.echo(f"{known:{width}}  {describe(known, text)}")


def describe(name: str, text: str) -> str:
    """What a preset says about itself: the first sentence of its first comment, else its name.

    A line for an editor (`# yaml-language-server: …`) is no description.
    """
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    comments = (line.removeprefix("#").strip() for line in lines)
    told = dropwhile(lambda line: not line or line.startswith("yaml-language-server:"), comments)
    return " ".join(takewhile(bool, told)).partition(". ")[0].removesuffix(".") or name
