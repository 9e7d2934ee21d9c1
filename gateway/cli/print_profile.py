"""`sgl-gateway print-profile`: the profile in effect, merged, and where each value comes from."""

import json
import textwrap
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.profile_options import (
    OverrideConflict,
    OverrideParams,
    ProfileFile,
    ProfileName,
    load_choice,
)

if TYPE_CHECKING:
    from gateway.profile import Choice


class Format(StrEnum):
    """How a profile is written."""

    YAML = "yaml"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("print-profile")(print_profile)


def print_profile(
    *,
    api_profile_file: ProfileFile = None,
    api_profile: ProfileName = None,
    override_sampling_params: OverrideParams = None,
    sampling_param_conflict: OverrideConflict = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Add the file and line of every value.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="yaml or json.")] = Format.YAML,
) -> None:
    """Print the profile in effect, merged with what it extends.

    The output is a profile itself: it loads back to the same rules.

    Example: sgl-gateway print-profile --api-profile moonshot-kimi --origin
    """
    choice = load_choice(
        api_profile_file, api_profile, override_sampling_params, sampling_param_conflict
    )
    text = render(choice, output, origin=origin)
    typer.echo(text.encode(errors="backslashreplace"), nl=False)


def render(choice: "Choice", output: Format, *, origin: bool) -> str:
    """The profile as text that ends with a newline.

    With `origin`, YAML carries the sources as comments; JSON becomes an object with the keys
    why, source, digest, profile and origins (a list of path, source and line).
    """
    from gateway.profile import render_json, render_yaml
    from gateway.profile.findings import one_line

    loaded = choice.loaded
    match output, origin:
        case Format.YAML, False:
            return render_yaml(loaded)
        case Format.YAML, True:
            return f"# {one_line(choice.why)}\n{render_yaml(loaded, origins=True)}"
        case Format.JSON, False:
            return f"{render_json(loaded).rstrip()}\n"
    origins = [
        json.dumps({"path": path, "source": origin.source, "line": origin.line})
        for path, origin in loaded.origins.items()
    ]
    # Put together as text, so that the profile's numbers keep the operator's spelling.
    members = {
        "why": json.dumps(choice.why),
        "source": json.dumps(loaded.source),
        "digest": json.dumps(loaded.digest),
        "profile": render_json(loaded).rstrip(),
        "origins": _block("[", origins, "]"),
    }
    return _block("{", [f'"{name}": {text}' for name, text in members.items()], "}") + "\n"


def _block(opening: str, items: list[str], closing: str) -> str:
    """A JSON list or object of ready items, one a line, indented."""
    if not items:
        return opening + closing
    inner = textwrap.indent(",\n".join(items), "  ")
    return f"{opening}\n{inner}\n{closing}"
