"""`sgl-gateway demo`: a gateway to try out, with an engine that needs no model."""

import sys
from typing import Annotated, Final

import typer

from gateway.cli.profile_options import (
    OverrideConflict,
    OverrideParams,
    ProfileFile,
    ProfileName,
    load_choice,
)
from gateway.settings import profile_from_environment

PRESET: Final = "moonshot-kimi"
"""What the demo shows where no other profile is named."""


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("demo")(demo)


def demo(
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Of the gateway.", min=1, max=65535)
    ] = 8080,
    engine_echo: Annotated[
        bool,
        typer.Option(
            "--engine-echo", help="The engine answers with what it gets, for verify --engine-echo."
        ),
    ] = False,
    api_profile_file: ProfileFile = None,
    api_profile: ProfileName = None,
    override_sampling_params: OverrideParams = None,
    sampling_param_conflict: OverrideConflict = None,
) -> None:
    """Run an embedded engine and a gateway before it, and print three requests to try.

    The profile is moonshot-kimi unless another is named.

    Example: sgl-gateway demo --port 9000 --api-profile stepfun-step5
    """
    if not (api_profile_file or api_profile or profile_from_environment()):
        api_profile = PRESET
    given = {
        "--api-profile-file": api_profile_file,
        "--api-profile": api_profile,
        "--override-sampling-params": override_sampling_params,
        "--sampling-param-conflict": sampling_param_conflict,
    }
    choice = load_choice(
        api_profile_file, api_profile, override_sampling_params, sampling_param_conflict
    )
    flags = [word for flag, value in given.items() if value is not None for word in (flag, value)]
    from gateway.demo.session import run_demo

    def say(text: str) -> None:
        typer.echo(text)
        sys.stdout.flush()

    raise typer.Exit(run_demo(choice.loaded, flags, port, say, echoes=engine_echo))
