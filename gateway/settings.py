"""What the operator set, as one frozen value: flag over environment over file over default.

The only reader of the process's environment. A setting is one row of `_SETTINGS`: its name gives
the flag (`--max-inflight`) and the environment variable (`SGL_GATEWAY_MAX_INFLIGHT`). Each
value is text until its row has read it, wherever it came from, so that a bad one gives the same
message from every source: the setting as the operator spelled it, the value, what would be right.
The settings file (`gateway.config`) has a reading of its own, which knows lines.

An environment variable that is empty counts as unset; a flag that is empty is an error, except
for the engines' key, where it means that no key is sent.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.config import Config

PREFIX: Final = "SGL_GATEWAY_"
"""Every environment variable of the gateway begins so."""

PROFILE_VARIABLE: Final = "SGLANG_ROUTER_API_PROFILE"
"""The environment variable that names a profile: a path, or a preset's name."""

METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the directory of the processes' metrics."""

_PROFILE_FLAG_VARIABLE: Final = "SGL_GATEWAY_API_PROFILE_FLAG"
"""Written by `export_flags` only: which flag `PROFILE_VARIABLE` stands for in the server."""

RESERVE_THREADS: Final = 8
"""Threads of a process beyond its requests at work: health checks, model lists and refusals
are answered by these while all the others stream."""

GRACEFUL_TIMEOUT_S: Final = 120
"""How long a stopping process lets its requests finish, unless gunicorn is told otherwise."""

Flag = str | int | bool | Iterable[str] | None
"""A flag's value as a command got it; None where it was not given."""


class SettingsError(Exception):
    """A setting that cannot be used: one line that names it, its value and what is right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the operator can set, read and checked.

    Attributes:
        host: the address to listen on.
        port: the TCP port; 0 lets the system choose one.
        config: names the settings file; None: there is none.
        config_file: what that file says.
        model_id: the model that is served; None: every name that the servers admit.
        worker_urls: the engines of the short form, as written.
        worker_api_key: sent to these as a Bearer token; empty: no header.
        api_profile_file: `--api-profile-file`, always a path.
        api_profile: `--api-profile`, always a preset's name.
        api_profile_env: `SGLANG_ROUTER_API_PROFILE`, a path or a preset's name.
        override_sampling_params: JSON that replaces the profile's `sampling.params`.
        sampling_param_conflict: `reject` or `allow`, for these.
        workers: processes.
        max_inflight: requests at work in one process.
        max_inflight_per_client: those of one client key; None: no such limit.
        api_keys_file: names the file with the keys that clients must present; None: open.
        forward_authorization: the client's `Authorization` goes on to engines without a key.
        log_format: `json` or `text`; None: text on a terminal, else json.
        log_level: `debug`, `info`, `warning` or `error`.
        metrics: `/metrics` is served; None: where prometheus-client is installed.
        metrics_port: a port of its own for `/metrics` and health; None: it is on the gateway's.
        connect_timeout_in_seconds: for a connection to an engine.
        default_request_timeout_in_seconds: for an engine's answer to begin to say something.
        stream_idle_timeout_in_seconds: for the silence of an engine within its answer.
        stream_keepalive_in_seconds: of silence until the client is sent a sign of life.
        anthropic_default_max_tokens: the budget that a Messages engine gets where neither the
            request nor the profile names one; None: derived from the engine's context.
        max_retries: on other servers, before a byte has reached the client.
        retry_backoff_initial: the longest wait before the first retry, in milliseconds.
        retry_backoff_max: the longest wait before any retry, in milliseconds.
        body_timeout_in_seconds: for the silence of a client that is sending its body.
        send_timeout_in_seconds: for a client that does not read what it is sent.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    config: str | None = None
    config_file: "Config | None" = field(default=None, repr=False)
    model_id: str | None = None
    worker_urls: tuple[str, ...] = ()
    worker_api_key: str = field(default="", repr=False)
    api_profile_file: str | None = None
    api_profile: str | None = None
    api_profile_env: str | None = None
    override_sampling_params: str | None = None
    sampling_param_conflict: str | None = None
    workers: int = 1
    max_inflight: int = 256
    max_inflight_per_client: int | None = None
    api_keys_file: str | None = None
    forward_authorization: bool = False
    log_format: str | None = None
    log_level: str = "info"
    metrics: bool | None = None
    metrics_port: int | None = None
    connect_timeout_in_seconds: float = 5.0
    default_request_timeout_in_seconds: float = 600.0
    stream_idle_timeout_in_seconds: float = 120.0
    stream_keepalive_in_seconds: float = 15.0
    anthropic_default_max_tokens: int | None = None
    max_retries: int = 1
    retry_backoff_initial: int = 100
    retry_backoff_max: int = 2000
    body_timeout_in_seconds: float = 60.0
    send_timeout_in_seconds: float = 60.0

    @property
    def bind(self) -> str:
        """The gateway's address as gunicorn's `bind` takes it (an IPv6 host in brackets)."""
        return self.binds[0]

    @property
    def binds(self) -> list[str]:
        """All `addresses`, in the same form."""
        host = f"[{self.host}]" if ":" in self.host and "[" not in self.host else self.host
        return [f"{host}:{port}" for _, port in self.addresses]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses to listen on, the gateway's first."""
        ports = [self.port] if self.metrics_port is None else [self.port, self.metrics_port]
        return [(self.host, port) for port in ports]

    @property
    def threads(self) -> int:
        """Threads of one process."""
        return self.max_inflight + RESERVE_THREADS


def load_settings(
    flags: Mapping[str, Flag] = MappingProxyType({}),
    environ: Mapping[str, str] | None = None,
    *,
    read_file: bool = True,
) -> Settings:
    """Reads every setting; the first source that has it wins.

    Args:
        flags: by the setting's name with underscores; None is not given.
        environ: environment variables; None for the process's own.
        read_file: the settings file is read, where one is named; not by commands that need
            nothing of what it can say.

    Raises:
        SettingsError: a value cannot be used, or a flag is none of the settings.
        ProfileError: the settings file cannot be used.
    """
    environ = os.environ if environ is None else environ
    given = {name: _text_of(value) for name, value in flags.items() if value is not None}
    for name in given.keys() - _SETTINGS.keys():
        raise SettingsError(f"{_flag(name)} is not a setting")
    values: dict[str, object] = {"workers": _cores()}
    for name, setting in _SETTINGS.items():
        if name in given:
            if given[name] or name == "worker_api_key":
                values[name] = setting.read(_flag(name), given[name])
                continue
            raise SettingsError(f"{_flag(name)} is empty: give {setting.expects}")
        variable = _variable(name)
        text = environ.get(variable, "").strip() if variable else ""
        if variable and text and not _is_service_link(name, text):
            values[name] = setting.read(variable, text)
    values |= _profile_sources(given, environ)
    path = values.get("config")
    if read_file and isinstance(path, str):
        from gateway.config import load_config  # noqa: PLC0415 - only who has a file pays for YAML

        config = load_config(path, environ)
        values = {**config.settings, "config_file": config, **values}
    return Settings(**values)  # type: ignore[arg-type]  # each row reads what its field holds


def export_flags(flags: Mapping[str, Flag]) -> dict[str, str]:
    """The environment variables that say what the flags said, for the server's process.

    Only what was given as a flag: environment and defaults are read again by the server.
    """
    given = {name: _text_of(value) for name, value in flags.items() if value is not None}
    exported: dict[str, str] = {}
    for name, text in given.items():
        variable = _variable(name)
        if variable:
            exported[variable] = text
        else:
            exported |= {PROFILE_VARIABLE: text, _PROFILE_FLAG_VARIABLE: name}
    return exported


def server_environment(flags: Mapping[str, Flag]) -> dict[str, str]:
    """The whole environment of a server that is started with these flags."""
    return {**os.environ, **export_flags(flags)}


def environment() -> Mapping[str, str]:
    """The process's own environment, for what a settings file names of it."""
    return os.environ


def demo_environment() -> dict[str, str]:
    """The process's environment without the gateway's settings; only a named profile stays."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def metrics_directory(environ: Mapping[str, str] | None = None) -> str | None:
    """Where the processes' metrics are, in prometheus-client's own variable."""
    environ = os.environ if environ is None else environ
    return environ.get(METRICS_VARIABLE, "").strip() or None


def share_metrics_directory(path: str) -> None:
    """Names the directory to prometheus-client, in this process and those that it forks."""
    os.environ[METRICS_VARIABLE] = path


def is_upgrade(environ: Mapping[str, str] | None = None) -> bool:
    """Whether gunicorn started this master beside an older one (USR2)."""
    environ = os.environ if environ is None else environ
    return "GUNICORN_PID" in environ


def profile_from_environment(environ: Mapping[str, str] | None = None) -> str | None:
    """The profile that the environment names, for commands that need no other setting."""
    environ = os.environ if environ is None else environ
    return environ.get(PROFILE_VARIABLE, "").strip() or None


def debugging(environ: Mapping[str, str] | None = None) -> bool:
    """Whether `SGL_GATEWAY_DEBUG` asks for the traceback of a bug."""
    environ = os.environ if environ is None else environ
    return environ.get(f"{PREFIX}DEBUG", "").strip() not in {"", "0"}


def unknown_variables(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Environment variables that begin like the gateway's and are none of its settings.

    Kubernetes writes such variables for a service that is called sgl-gateway
    (`SGL_GATEWAY_SERVICE_HOST`, `SGL_GATEWAY_PORT_8080_TCP`…); those are left out.
    """
    environ = os.environ if environ is None else environ
    known = {_variable(name) for name in _SETTINGS} | {f"{PREFIX}DEBUG", _PROFILE_FLAG_VARIABLE}
    return tuple(
        sorted(
            name
            for name in environ
            if name.startswith(PREFIX)
            and name not in known
            and not name.startswith((f"{PREFIX}SERVICE_", f"{PREFIX}PORT_"))
        )
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    """One row: how the text of a setting is read.

    Attributes:
        parse: text → value; raises ValueError.
        expects: what would be right, for the message.
        secret: the value is not shown.
    """

    parse: Callable[[str], object]
    expects: str
    secret: bool = False

    def read(self, origin: str, text: str) -> object:
        """The value, or a SettingsError that names its origin."""
        try:
            return self.parse(text)
        except ValueError:
            shown = "the value" if self.secret else repr(text)
            raise SettingsError(f"{origin}: {shown} is not {self.expects}") from None


def _whole(low: int, high: int) -> _Setting:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    return _Setting(parse, f"a whole number from {low} to {high}")


def _parse_seconds(text: str) -> float:
    seconds = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else math.nan
    if not 0 < seconds <= _YEAR_S:
        raise ValueError
    return seconds


def _parse_switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError
    return _SWITCH[text.lower()]


def _parse_urls(text: str) -> tuple[str, ...]:
    urls = tuple(url for url in re.split(r"[\s,]+", text) if url)
    if not urls:
        raise ValueError
    return urls


def _parse_host(text: str) -> str:
    if not re.fullmatch(r"[^\s/]+", text):
        raise ValueError
    return text


def _choice(*words: str) -> _Setting:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError
        return text.lower()

    return _Setting(parse, f"one of {', '.join(words)}")


_SWITCH: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)
_PROFILE_FLAGS: Final = frozenset({"api_profile_file", "api_profile"})
_YEAR_S: Final = 365 * 24 * 3600.0
_SECONDS: Final = _Setting(_parse_seconds, "a number of seconds above 0")
_PATH: Final = _Setting(str, "a path")
_TEXT: Final = _Setting(str.strip, "a text")

_SETTINGS: Final[Mapping[str, _Setting]] = MappingProxyType(
    {
        "host": _Setting(_parse_host, "a host name or an address"),
        "port": _whole(0, 65535),
        "config": _PATH,
        "model_id": _TEXT,
        "worker_urls": _Setting(_parse_urls, "one or more URLs"),
        "worker_api_key": _Setting(str.strip, "a key", secret=True),
        "api_profile_file": _PATH,
        "api_profile": _TEXT,
        "override_sampling_params": _TEXT,
        "sampling_param_conflict": _choice("reject", "allow"),
        "workers": _whole(1, 1024),
        "max_inflight": _whole(1, 16384),
        "max_inflight_per_client": _whole(1, 16384),
        "api_keys_file": _PATH,
        "forward_authorization": _Setting(_parse_switch, "true or false"),
        "log_format": _choice("json", "text"),
        "log_level": _choice("debug", "info", "warning", "error"),
        "metrics": _Setting(_parse_switch, "true or false"),
        "metrics_port": _whole(1, 65535),
        "connect_timeout_in_seconds": _SECONDS,
        "default_request_timeout_in_seconds": _SECONDS,
        "stream_idle_timeout_in_seconds": _SECONDS,
        "stream_keepalive_in_seconds": _SECONDS,
        "anthropic_default_max_tokens": _whole(1, 2**31 - 1),
        "max_retries": _whole(0, 100),
        "retry_backoff_initial": _whole(0, 60_000),
        "retry_backoff_max": _whole(0, 60_000),
        "body_timeout_in_seconds": _SECONDS,
        "send_timeout_in_seconds": _SECONDS,
    }
)

SETTING_NAMES: Final = tuple(_SETTINGS)
"""Every setting, for the documentation to be checked against."""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _variable(name: str) -> str | None:
    """The environment variable of a setting; None for the profile flags, which share one."""
    return None if name in _PROFILE_FLAGS else f"{PREFIX}{name.upper()}"


def _text_of(value: Flag) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    return " ".join(value or ())


def _is_service_link(name: str, text: str) -> bool:
    """Kubernetes sets `SGL_GATEWAY_PORT=tcp://10.0.0.1:80` for a service of that name."""
    return name == "port" and text.startswith(("tcp://", "udp://"))


def _profile_sources(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str | None]:
    """The three sources that name a profile; both flags at once is an error of the selection.

    In a server's process the flags arrive through the environment, marked as what they were.
    """
    named = profile_from_environment(environ)
    flag = environ.get(_PROFILE_FLAG_VARIABLE)
    if named and flag in _PROFILE_FLAGS and not given.keys() & _PROFILE_FLAGS:
        return {flag: named}
    return {"api_profile_env": named}


def _cores() -> int:
    """Cores that this process may use: its affinity, within the quota of its control group."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no quota, or none that can be read
        return cores
