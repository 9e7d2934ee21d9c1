"""`sgl-gateway verify`: the profile as an acceptance suite against a live endpoint."""

import sys
from collections.abc import Callable
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
from gateway.routes import ROUTES
from gateway.settings import SettingsError

if TYPE_CHECKING:
    from gateway.verify.plan import Plan
    from gateway.verify.run import Pace, Report

_FOUND = 1
_UNTOLD = 2

Dialect = StrEnum("Dialect", {route.name.upper(): route.name for route in ROUTES})  # type: ignore[misc]  # one member a route
"""The routes by their names."""


class Format(StrEnum):
    """How a run is written."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("verify")(verify)


def verify(
    *,
    base_url: Annotated[
        str, typer.Option("--base-url", metavar="URL", help="Of the endpoint, with or without /v1.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="That is asked for.")],
    api_key: Annotated[
        str,
        typer.Option(
            "--api-key",
            metavar="KEY",
            help="For the endpoint; better in the environment than on a command line.",
            envvar="VERIFY_API_KEY",
            show_default=False,
        ),
    ] = "",
    dialect: Annotated[
        list[Dialect] | None,
        typer.Option("--dialect", help="Probe this route only; repeatable.", show_default=False),
    ] = None,
    engine_echo: Annotated[
        bool,
        typer.Option(
            "--engine-echo",
            help="The engine behind the endpoint is that of demo --engine-echo: what it gets is"
            " seen.",
        ),
    ] = False,
    max_requests: Annotated[
        int, typer.Option("--max-requests", metavar="N", help="In all, repetitions counted.", min=1)
    ] = 1000,
    rate: Annotated[
        float, typer.Option("--rate", metavar="N", help="Requests a second at most.", min=0.01)
    ] = 20.0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="For each answer.", min=0.1)
    ] = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the requests and their cost; send none.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="text, json or junit.")] = Format.TEXT,
    api_profile_file: ProfileFile = None,
    api_profile: ProfileName = None,
    override_sampling_params: OverrideParams = None,
    sampling_param_conflict: OverrideConflict = None,
) -> None:
    """Check that an endpoint keeps to a profile: this gateway, or a vendor's own.

    Probes are derived from every rule, with the values just inside and just outside. Exits with 1
    where a check failed, with 2 where something was not answered at all.

    Example: sgl-gateway verify --base-url http://127.0.0.1:8080 --model kimi-k2
    --api-profile moonshot-kimi
    """
    choice = load_choice(
        api_profile_file, api_profile, override_sampling_params, sampling_param_conflict
    )
    from gateway.verify import report as told
    from gateway.verify.plan import build_plan
    from gateway.verify.run import Pace

    plan = build_plan(choice.loaded, model, dialect or ())
    if dry_run:
        render = told.render_plan_json if output is Format.JSON else told.render_plan
        _write(render(plan))
        return
    report = _run(plan, base_url, api_key, timeout, Pace(max_requests, rate), engine_echo)
    renderers = {
        Format.TEXT: told.render_text,
        Format.JSON: told.render_json,
        Format.JUNIT: told.render_junit,
    }
    _write(renderers[output](report))
    if output is not Format.TEXT:
        typer.echo(told.summary(report), err=True)
    raise typer.Exit(_status(report))


def _run(
    plan: "Plan", base_url: str, api_key: str, timeout_s: float, pace: "Pace", echoes: bool
) -> "Report":
    from gateway.verify.endpoint import HttpEndpoint
    from gateway.verify.run import VerifyError, run_plan

    if not plan.checks:
        raise SettingsError("there is nothing to verify: the profile has no rule on these routes")
    try:
        endpoint = HttpEndpoint(base_url, api_key, timeout_s)
    except ValueError as error:
        raise SettingsError(f"--base-url: {error}") from None
    progress = _progress(len(plan.cases))
    try:
        return run_plan(plan, endpoint, pace, observing=echoes, progress=progress)
    except VerifyError as error:
        raise SettingsError(f"--base-url {base_url}: {error}") from None
    finally:
        progress(None)
        endpoint.close()


def _progress(total: int) -> Callable[[int | None], None]:
    """Says on a terminal how far the run is; None wipes that away."""
    if not sys.stderr.isatty():
        return lambda _: None

    def tell(done: int | None) -> None:
        line = "" if done is None else f"{done} of {total} requests"
        sys.stderr.write(f"\r{line:40}\r{line}")
        sys.stderr.flush()

    return tell


def _status(report: "Report") -> int:
    from gateway.verify.cases import State

    if report.count(State.FAILED):
        return _FOUND
    return _UNTOLD if report.count(State.UNANSWERED) else 0


def _write(text: str) -> None:
    typer.echo(text.encode(errors="backslashreplace"), nl=False)
