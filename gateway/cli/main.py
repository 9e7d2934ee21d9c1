"""`sgl-gateway`: the commands put together, and what a failure looks like.

Exit statuses: 0 fine, 1 findings, 2 usage or a command that cannot do its work, 3 a bug, 130
interrupted; 141 where the reader of the output went away. Results go to standard output,
everything else to standard error, and an operator never sees a traceback without asking.
"""

import os
import sys
from typing import Annotated, Final, NoReturn

import typer

from gateway import __version__
from gateway.cli import (
    check_config,
    check_request,
    demo,
    diff,
    health,
    presets,
    print_profile,
    schema,
    serve,
    validate,
    verify,
)
from gateway.settings import SettingsError, debugging

A_BUG: Final = 3
CANNOT: Final = 2
INTERRUPTED: Final = 130
READER_GONE: Final = 141

_COMMANDS: Final = (
    serve,
    demo,
    print_profile,
    validate,
    presets,
    schema,
    diff,
    check_request,
    verify,
    check_config,
    health,
)


def build_app() -> typer.Typer:
    """The application with all its commands.

    A command's module imports nothing heavy until the command runs, so that those that need no
    server start fast. Rich is left out of it: it would take as long to import as all the rest.
    """
    app = typer.Typer(
        name="sgl-gateway",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for command in _COMMANDS:
        command.register(app)
    return app


def main(args: list[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Runs the command line.

    Args:
        args: without the command's own name; None for the process's.

    Returns:
        The exit status.
    """
    try:
        status = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would be flushed, and fail, once more at the very end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return READER_GONE
    return status


def _run(args: list[str] | None) -> int:
    try:
        status = build_app()(args=args, prog_name="sgl-gateway", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:  # how typer ends over a pipe that is gone, and gunicorn's --help
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last stop before the operator
        return _failed(error)
    return status if isinstance(status, int) else 0


def _failed(error: Exception) -> int:
    """Says what happened in as few lines as it takes."""
    from gateway.profile import ProfileError
    from gateway.startup import reason

    if isinstance(error, SettingsError | ProfileError):
        sys.stderr.write(f"sgl-gateway: {reason(error)}\n")
        return CANNOT
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # usage, as typer words it
        error.show()
        return int(error.exit_code)
    if debugging():
        import traceback

        traceback.print_exception(error)
    else:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"sgl-gateway: a bug: {what} (SGL_GATEWAY_DEBUG=1 shows the traceback)\n")
    return A_BUG


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sgl-gateway {__version__}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    """Serve a self-hosted SGLang model exactly the way a vendor serves it.

    Example: sgl-gateway demo
    """
