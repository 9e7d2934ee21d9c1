"""`sgl-gateway serve`: checks what it was given, then becomes gunicorn."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from gateway.cli.profile_options import (
    OverrideConflict,
    OverrideParams,
    ProfileFile,
    ProfileName,
    load_choice,
)
from gateway.settings import SettingsError, server_environment

APP: Final = "gateway.web.app:get_app()"


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("serve")(serve)


def _option(flag: str, metavar: str, explanation: str) -> typer.models.OptionInfo:
    """A text option: `gateway.settings` reads the value, as it does from every other source."""
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar=metavar, help=explanation, show_default=False
    )
    return option


def serve(
    host: Annotated[
        str | None, _option("--host", "HOST", "The address to listen on (127.0.0.1).")
    ] = None,
    port: Annotated[
        str | None, _option("--port", "N", "The port; 0: any that is free (8080).")
    ] = None,
    config: Annotated[
        str | None,
        _option("--config", "FILE", "A settings file that names the engines and their keys."),
    ] = None,
    model_id: Annotated[
        str | None, _option("--model-id", "NAME", "The one model that is served.")
    ] = None,
    worker_urls: Annotated[
        list[str] | None,
        _option(
            "--worker-urls", "URL", "An engine; repeat it, or separate several by commas or spaces."
        ),
    ] = None,
    worker_api_key: Annotated[
        str | None, _option("--worker-api-key", "KEY", "Sent to these engines as a Bearer token.")
    ] = None,
    api_profile_file: ProfileFile = None,
    api_profile: ProfileName = None,
    override_sampling_params: OverrideParams = None,
    sampling_param_conflict: OverrideConflict = None,
    print_profile: Annotated[
        bool, typer.Option("--print-profile", help="Print the profile in effect and exit.")
    ] = False,
    workers: Annotated[
        str | None, _option("--workers", "N", "Processes (the number of cores).")
    ] = None,
    max_inflight: Annotated[
        str | None,
        _option("--max-inflight", "N", "Requests at work in one process; others get a 503 (256)."),
    ] = None,
    api_keys_file: Annotated[
        str | None,
        _option(
            "--api-keys-file",
            "PATH",
            "Keys that clients must present, one a line, plain or sha256:HEX (none: open).",
        ),
    ] = None,
    forward_authorization: Annotated[
        bool | None,
        typer.Option(
            "--forward-authorization/--no-forward-authorization",
            help="The client's Authorization goes on to engines that have no key (off).",
            show_default=False,
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        _option("--log-format", "json|text", "Of log lines (text on a terminal, else json)."),
    ] = None,
    log_level: Annotated[
        str | None,
        _option("--log-level", "LEVEL", "debug, info, warning or error (info)."),
    ] = None,
    gunicorn_options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- GUNICORN OPTIONS]",
            help="After --, anything that gunicorn takes.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the gateway.

    Each option is also an environment variable: SGL_GATEWAY_ and its name in capitals
    (SGL_GATEWAY_MAX_INFLIGHT); the two that name a profile share SGLANG_ROUTER_API_PROFILE.

    Example: sgl-gateway serve --worker-urls http://10.0.0.5:30000 --model-id kimi-k2
    --api-profile moonshot-kimi -- --graceful-timeout 60
    """
    if print_profile:
        from gateway.profile import render_yaml

        choice = load_choice(
            api_profile_file, api_profile, override_sampling_params, sampling_param_conflict
        )
        typer.echo(render_yaml(choice.loaded).encode(), nl=False)
        return
    flags = {
        "host": host,
        "port": port,
        "config": config,
        "model_id": model_id,
        "worker_urls": worker_urls or None,
        "worker_api_key": worker_api_key,
        "api_profile_file": api_profile_file,
        "api_profile": api_profile,
        "override_sampling_params": override_sampling_params,
        "sampling_param_conflict": sampling_param_conflict,
        "workers": workers,
        "max_inflight": max_inflight,
        "api_keys_file": api_keys_file,
        "forward_authorization": forward_authorization,
        "log_format": log_format,
        "log_level": log_level,
    }
    from gateway.startup import check_addresses, load_launch

    launch = load_launch(flags)
    if not _check_gunicorn(gunicorn_options or []):
        check_addresses(launch.settings.addresses)
    command = serve_command(gunicorn_options or [])
    os.execve(command[0], command, server_environment(flags))  # noqa: S606 - our own program


def serve_command(gunicorn_options: list[str]) -> list[str]:
    """The command line of gunicorn with the gateway's configuration file."""
    conf = str(gunicorn_conf())
    return [sys.executable, "-m", "gunicorn", "-c", conf, *gunicorn_options, APP]


def gunicorn_conf() -> Path:
    """The configuration file: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "_data" / "gunicorn.conf.py"
    return installed if installed.exists() else package.parent / "conf" / "gunicorn.conf.py"


def _check_gunicorn(options: list[str]) -> bool:
    """Has gunicorn read the options that are meant for it, before it is started.

    Returns:
        Whether they name addresses to listen on.

    Raises:
        SettingsError: gunicorn would not take one.
    """
    if not options:
        return False
    from gunicorn.config import Config

    def refuse(message: str) -> NoReturn:
        raise SettingsError(f"after --, gunicorn's options: {message}")

    config = Config()  # type: ignore[no-untyped-call]  # gunicorn has no types
    parser = config.parser()  # type: ignore[no-untyped-call]
    parser.error = refuse
    given = vars(parser.parse_args(options))
    if given.pop("args"):
        refuse(f"{' '.join(options)} names an application; the gateway brings its own")
    if given.pop("config"):
        refuse("-c cannot be given; the gateway brings its own file")
    for name, value in given.items():
        if value is None:
            continue
        try:
            config.set(name, value)  # type: ignore[no-untyped-call]
        except (TypeError, ValueError, RuntimeError) as error:
            refuse(f"{name} {value}: {error}")
    return given.get("bind") is not None
