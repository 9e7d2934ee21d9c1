"""What must be known before a process may serve, loaded and checked in one place.

gunicorn's configuration file loads it in the master, before a worker is forked, and workers
inherit it. So what cannot start ends at once, with one line and status 2; a worker that is
replaced later cannot fail over a file that an operator is editing; and a reload (HUP) that finds
something broken says so and leaves what was loaded in force.
"""

import errno
import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final, NoReturn

from gateway.api_keys import ApiKeys, load_api_keys
from gateway.config import NO_URL, ConfigError
from gateway.engine.servers import Server, ServerPool, servers_of_urls
from gateway.profile import Choice, Exact, ProfileError, override_sampling, select
from gateway.settings import (
    METRICS_VARIABLE,
    PREFIX,
    Flag,
    Settings,
    SettingsError,
    is_upgrade,
    load_settings,
    metrics_directory,
    share_metrics_directory,
    unknown_variables,
)
from gateway.telemetry.logging import configure
from gateway.telemetry.metric_files import MasterMetrics

CANNOT_START: Final = 2
"""The exit status of what cannot start."""

WORKER_CLASS: Final = "gateway.web.worker.GatewayWorker"
"""gunicorn's threaded worker, as this gateway needs it."""

_METRICS: Final = f"{PREFIX}METRICS"
_METRICS_PORT: Final = f"{PREFIX}METRICS_PORT"

_LOG: Final = logging.getLogger("gateway.startup")


@dataclass(frozen=True, slots=True)
class Launch:
    """All that a process serves with.

    Attributes:
        settings: of the operator.
        choice: the profile, with the override of its sampling section applied, and why this one.
        api_keys: that clients must present; None: the gateway is open.
        servers: the engines.
        metrics: they are kept, and served at `/metrics`.
    """

    settings: Settings
    choice: Choice
    api_keys: ApiKeys | None
    servers: tuple[Server, ...]
    metrics: bool = False


_held: dict[str, Launch] = {}
_metrics = MasterMetrics()


def load_launch(
    flags: Mapping[str, Flag] = MappingProxyType({}), environ: Mapping[str, str] | None = None
) -> Launch:
    """Loads everything and checks that it fits together.

    Raises:
        SettingsError: a setting cannot be used.
        ProfileError: the profile cannot.
    """
    settings = load_settings(flags, environ)
    servers = _build_servers(settings)
    choice = load_choice(settings)
    if choice.loaded.profile.aliases and not settings.model_id:
        raise SettingsError(
            "--model-id is not set: the profile's models.aliases need a served model to stand for"
        )
    keys = load_api_keys(settings.api_keys_file) if settings.api_keys_file else None
    if settings.max_inflight_per_client is not None and keys is None:
        raise SettingsError(
            f"max_inflight_per_client {settings.max_inflight_per_client}: it needs"
            " --api-keys-file, since clients are told apart by their keys"
        )
    return Launch(settings, choice, keys, servers, wants_metrics(settings))


def wants_metrics(settings: Settings) -> bool:
    """Whether metrics are kept: as set, else where prometheus-client is installed.

    Raises:
        SettingsError: they are asked for and cannot be had.
    """
    port = settings.metrics_port
    if port is not None and settings.metrics is False:
        raise SettingsError(f"{_METRICS_PORT} {port}: {_METRICS} is false; drop one of the two")
    if port is not None and port == settings.port:
        raise SettingsError(f"{_METRICS_PORT} {port}: that is the gateway's own --port")
    if settings.metrics is False:
        return False
    installed = find_spec("prometheus_client") is not None
    if not installed and (settings.metrics or port is not None):
        asked = f"{_METRICS} true" if port is None else f"{_METRICS_PORT} {port}"
        raise SettingsError(
            f"{asked}: prometheus-client is not installed; pip install 'sgl-gateway[metrics]'"
        )
    return installed


def load_choice(settings: Settings) -> Choice:
    """The profile in effect, with the override of its sampling section applied.

    Raises:
        ProfileError: the profile, or the override, cannot be used.
    """
    choice = select(
        file=settings.api_profile_file, name=settings.api_profile, env=settings.api_profile_env
    )
    loaded = override_sampling(
        choice.loaded, settings.override_sampling_params, settings.sampling_param_conflict
    )
    return Choice(loaded, choice.why)


def _build_servers(settings: Settings) -> tuple[Server, ...]:
    if settings.config_file is not None:
        if settings.worker_urls or settings.worker_api_key:
            given = "--worker-urls" if settings.worker_urls else "--worker-api-key"
            raise SettingsError(
                f"{given} is given beside --config {settings.config}: the engines and their keys"
                " are named by one of them; drop the other"
            )
        return settings.config_file.servers
    if not settings.worker_urls:
        raise SettingsError(NO_URL)
    try:
        servers = servers_of_urls(settings.worker_urls, settings.worker_api_key)
        ServerPool(servers)
    except ValueError as error:
        raise SettingsError(f"--worker-urls: {error}") from None
    return servers


def current() -> Launch:
    """What this process serves with; loaded now where nothing has loaded it before.

    Raises:
        SettingsError, ProfileError: as `load_launch`.
    """
    if "launch" not in _held:
        _held["launch"] = load_launch()
    return _held["launch"]


def start_or_exit() -> Launch:
    """For gunicorn's configuration file, at the start and at every reload.

    At the start a failure ends the process. At a reload it is logged, and what was loaded
    before is served on.
    """
    try:
        launch = load_launch()
    except (SettingsError, ProfileError) as error:
        if "launch" not in _held:
            refuse(error)
        _LOG.error("reload refused, still serving with what was loaded before: %s", reason(error))
        _metrics.note_reload(good=False)
        return _held["launch"]
    configure(launch.settings.log_format, launch.settings.log_level)
    _metrics.note_reload(good=True)
    _held["launch"] = launch
    return launch


def start_metrics(*, reloading: bool = False) -> None:
    """In the master, before it forks, and again after a reload: metrics may be new.

    At the start a failure ends the process; after a reload it is logged, and there are none.
    """
    launch = current()
    if not launch.metrics or _metrics.is_open:
        return
    named = metrics_directory()
    try:
        path = _metrics.open(named, keep=is_upgrade())
    except OSError as error:
        where = f"{METRICS_VARIABLE} {named}" if named else "the directory of the metrics"
        problem = SettingsError(f"{where} cannot be written to: {error.strerror}")
        if not reloading:
            refuse(problem)
        _LOG.error("metrics are off: %s", problem)
        _held["launch"] = replace(launch, metrics=False)
        return
    share_metrics_directory(path)
    _metrics.count_reloads()


def worker_ended(pid: int) -> None:
    """In the master, when a worker is gone."""
    _metrics.worker_ended(pid)


def end() -> None:
    """In the master, at its end."""
    _metrics.close()


def announce() -> None:
    """Logs the line that names what is served with; never an address or a key."""
    launch = current()
    config = launch.settings.config_file
    for finding in config.warnings if config else ():
        _LOG.warning("%s", finding)
    for name in unknown_variables():
        _LOG.warning("the environment variable %s is not a setting; it has no effect", name)
    for name in unsayable_pins(launch):
        _LOG.warning(
            "the profile writes in %s, which a server spoken to in Messages cannot be told: "
            "it is left out there",
            name,
        )
    loaded = launch.choice.loaded
    fields = {
        "profile": loaded.profile.name or loaded.source,
        "source": loaded.source,
        "why": launch.choice.why,
        "digest": loaded.digest,
        "config": launch.settings.config,
        "model": launch.settings.model_id,
        "servers": tuple(server.name for server in launch.servers),
        "clients": "with a key" if launch.api_keys else "open",
    }
    _LOG.info("serving", extra={"fields": fields})


def unsayable_pins(launch: Launch) -> tuple[str, ...]:
    """The fields that the profile writes in with a value that Messages has no words for.

    None, where no server is spoken to in Messages.
    """
    from gateway.dialects.anthropic_engine import can_say  # noqa: PLC0415 - for servers alone

    servers = [server for server in launch.servers if server.enabled]
    aliases = [alias for server in servers for alias in server.aliases.values()]
    in_messages = [one.use_anthropic_endpoints for one in servers]
    if not any(in_messages + [one.use_anthropic_endpoints or False for one in aliases]):
        return ()
    profile = launch.choice.loaded.profile
    written = {
        rule.field: rule.value.value
        for rule in (profile.sampling.rules if profile.sampling else ())
        if isinstance(rule, Exact)
    }
    for name, rule in profile.params.items():
        value = rule.pin or rule.default
        if value is not None:
            written[name] = value.value
    return tuple(name for name, value in written.items() if not can_say(name, value))


def check_server(cfg: object, inherited: bool) -> None:
    """Ends the process where gunicorn's final options would break a promise of the gateway.

    Args:
        cfg: gunicorn's options: file, environment and command line put together.
        inherited: the listening sockets come from outside, so no address is bound.
    """
    options = {
        name: getattr(cfg, name)
        for name in ("threads", "worker_class_str", "workers", "address", "reuse_port")
    }
    settings = current().settings
    if options["worker_class_str"] != WORKER_CLASS:
        refuse(
            SettingsError(f"worker class {options['worker_class_str']}: it must be {WORKER_CLASS}")
        )
    if options["threads"] < settings.threads:
        refuse(
            SettingsError(
                f"threads {options['threads']}: {settings.threads} are needed for"
                f" --max-inflight {settings.max_inflight}; lower that instead"
            )
        )
    ports = {address[1] for address in options["address"] if isinstance(address, tuple)}
    if not inherited and settings.metrics_port not in {None, *ports}:
        refuse(
            SettingsError(
                f"{_METRICS_PORT} {settings.metrics_port}: gunicorn's --bind replaces it;"
                " name that port there as well"
            )
        )
    if not inherited:
        try:
            check_addresses(options["address"], reuse_port=options["reuse_port"])
        except SettingsError as error:
            refuse(error)


def check_addresses(addresses: Iterable[object], *, reuse_port: bool = False) -> None:
    """Binds each TCP address for a moment, to find out at once what would fail later.

    gunicorn itself would try for five seconds.

    Raises:
        SettingsError: an address is taken, is not this machine's, or needs more rights.
    """
    for address in addresses:
        if not isinstance(address, tuple):
            continue  # a Unix socket replaces the file that is there
        host, port = address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                probe.bind((host, port))
                probe.listen(1)
            except OSError as error:
                raise SettingsError(_address_error(host, port, error)) from None


def refuse(error: Exception) -> NoReturn:
    """Says in one line why nothing can start, and ends the process."""
    sys.stderr.write(f"sgl-gateway: {reason(error)}\n")
    sys.exit(CANNOT_START)


def reason(error: Exception) -> str:
    """An error of settings or profile as one line; of many findings the first."""
    first, *others = str(error).splitlines() or [type(error).__name__]
    command = "check-config" if isinstance(error, ConfigError) else "validate"
    return f"{first} (and {len(others)} more: see sgl-gateway {command})" if others else first


def _address_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken: end what listens there, or choose another --port"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"port {port} on {host} needs more rights: choose a --port from 1024 on"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host} is not an address of this machine"
    return f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}"
