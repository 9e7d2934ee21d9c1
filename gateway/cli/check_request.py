"""`sgl-gateway check-request BODY…`: what the gateway would do, found without an engine."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.profile_options import (
    OverrideConflict,
    OverrideParams,
    ProfileFile,
    ProfileName,
)
from gateway.routes import CHAT, ROUTES
from gateway.settings import SettingsError

if TYPE_CHECKING:
    from gateway.startup import Launch

_STDIN = "-"
_NO_ENGINE = "http://engine.invalid"
_FOUND = 1

Dialect = StrEnum("Dialect", {route.name.upper(): route.name for route in ROUTES})  # type: ignore[misc]  # one member a route
"""The routes by their names; a dialect's own route is called like it."""

_CHAT = Dialect(CHAT.name)


class Format(StrEnum):
    """How inspections are written."""

    TEXT = "text"
    JSON = "json"


class Expect(StrEnum):
    """What every request of a corpus is expected to be."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("check-request")(check_request)


def check_request(
    bodies: Annotated[
        list[str],
        typer.Argument(
            metavar="BODY",
            help="Files with request bodies; - is standard input.",
            show_default=False,
        ),
    ],
    *,
    dialect: Annotated[
        Dialect, typer.Option("--dialect", help="The route that the requests are sent to.")
    ] = _CHAT,
    model_id: Annotated[
        str | None,
        typer.Option(
            "--model-id", metavar="NAME", help="The one model that is served.", show_default=False
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="The settings file of serve: its keys, with their names and dialects.",
            show_default=False,
        ),
    ] = None,
    use_anthropic_endpoints: Annotated[
        bool,
        typer.Option("--use-anthropic-endpoints", help="The engine is spoken to in Messages."),
    ] = False,
    expect: Annotated[
        Expect | None,
        typer.Option(
            "--expect",
            help="Tell only of requests that are not so, and exit with 1 where there are any.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="text or json.")] = Format.TEXT,
    api_profile_file: ProfileFile = None,
    api_profile: ProfileName = None,
    override_sampling_params: OverrideParams = None,
    sampling_param_conflict: OverrideConflict = None,
) -> None:
    """Show what becomes of requests: every decision, and the body that the engine would get.

    A refused request is shown with the reply that its client would get. Exits with 1 where one is
    refused; with --expect, where one is not as expected.

    Example: sgl-gateway check-request body.json --api-profile moonshot-kimi
    """
    launch = _load_launch(
        {
            "model_id": model_id,
            "config": config,
            "api_profile_file": api_profile_file,
            "api_profile": api_profile,
            "override_sampling_params": override_sampling_params,
            "sampling_param_conflict": sampling_param_conflict,
        },
        use_anthropic_endpoints=use_anthropic_endpoints,
    )
    from gateway.cli import request_report
    from gateway.service.inspect import Inspector

    inspector = Inspector(launch)
    route = next(route for route in ROUTES if route.name == dialect)
    found = [
        request_report.Inspected(name, raw, inspector.inspect(route, raw))
        for name, raw in ((name, _read(name)) for name in bodies)
    ]
    wanted = expect is not Expect.REJECTED
    amiss = [one for one in found if one.inspection.accepted is not wanted]
    shown = found if expect is None else amiss
    render = {Format.TEXT: request_report.render_text, Format.JSON: request_report.render_json}
    text = render[output](shown, launch.choice.loaded)
    typer.echo(text.encode(errors="backslashreplace"), nl=False)
    accepted = sum(one.inspection.accepted for one in found)
    typer.echo(f"{accepted} accepted, {len(found) - accepted} rejected", err=True)
    raise typer.Exit(_FOUND if amiss else 0)


def _load_launch(flags: dict[str, str | None], *, use_anthropic_endpoints: bool) -> "Launch":
    """As `serve` would with these flags; its engines are never asked, and need not be named."""
    from gateway.settings import load_settings
    from gateway.startup import load_launch

    settings = load_settings(flags)
    named = settings.config_file is not None or settings.worker_urls
    launch = load_launch(flags if named else {**flags, "worker_urls": _NO_ENGINE})
    if not use_anthropic_endpoints:
        return launch
    servers = (replace(server, use_anthropic_endpoints=True) for server in launch.servers)
    return replace(launch, servers=tuple(servers))


def _read(name: str) -> bytes:
    if name == _STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise SettingsError(f"{name}: cannot be read: {error.strerror}") from None
