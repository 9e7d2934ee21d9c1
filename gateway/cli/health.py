"""`sgl-gateway health`: asks a running gateway whether it is ready."""

from typing import Annotated

import typer

from gateway.settings import SettingsError, load_settings

_NOT_READY = 1


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("health")(health)


def health(
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Of the gateway; /readyz is asked where it has no path"
            " (the host and port of the settings).",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="For the answer.", min=0.001)
    ] = 2.0,
) -> None:
    """Exit with 0 when a gateway is ready, with 1 when it is not: for container probes.

    Example: sgl-gateway health --url http://127.0.0.1:8080
    """
    import http.client

    host, port, path, secure = _parse_url(url or _own_url())
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(host, port, timeout=timeout)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        typer.echo(f"not ready: {error or type(error).__name__}", err=True)
        raise typer.Exit(_NOT_READY) from None
    finally:
        connection.close()
    if status != http.client.OK:
        typer.echo(f"not ready: {path} answered {status}", err=True)
        raise typer.Exit(_NOT_READY)
    typer.echo("ready")


def _own_url() -> str:
    """Of the gateway that the same environment would start; no address is asked on loopback."""
    settings = load_settings(read_file=False)
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "[::]": "[::1]"}  # noqa: S104 - is read
    host = anywhere.get(settings.host, settings.bind.rpartition(":")[0])
    return f"http://{host}:{settings.port}"


def _parse_url(url: str) -> tuple[str, int | None, str, bool]:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SettingsError(f"--url: {url!r} is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(f"--url: {url!r} is not an http or https URL")
    path = parts.path if parts.path not in {"", "/"} else "/readyz"
    query = f"?{parts.query}" if parts.query else ""
    return parts.hostname, port, path + query, parts.scheme == "https"
