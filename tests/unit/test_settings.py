from dataclasses import fields
from pathlib import Path

import pytest

from gateway.api_keys import load_api_keys
from gateway.settings import (
    SETTING_NAMES,
    Settings,
    SettingsError,
    debugging,
    export_flags,
    load_settings,
    unknown_variables,
)


def test_every_field_has_a_row() -> None:
    """A setting that no row reads could never be set."""
    derived = {"api_profile_env", "config_file"}
    assert {field.name for field in fields(Settings)} - derived == set(SETTING_NAMES)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("host", "0.0.0.0", "0.0.0.0", id="host"),  # noqa: S104
        pytest.param("port", "0", 0, id="port-0"),
        pytest.param("port", "65535", 65535, id="port-last"),
        pytest.param("model_id", " kimi ", "kimi", id="trimmed"),
        pytest.param("worker_urls", "http://a:1, http://b:2", ("http://a:1", "http://b:2"), id="2"),
        pytest.param("worker_urls", "HTTPS://a http://b", ("HTTPS://a", "http://b"), id="spaces"),
        pytest.param("workers", "3", 3, id="workers"),
        pytest.param("max_inflight", "1", 1, id="inflight"),
        pytest.param("forward_authorization", "Yes", True, id="yes"),
        pytest.param("forward_authorization", "0", False, id="no"),
        pytest.param("log_format", "JSON", "json", id="json"),
        pytest.param("log_level", "warning", "warning", id="level"),
        pytest.param("sampling_param_conflict", "allow", "allow", id="allow"),
        pytest.param("connect_timeout_in_seconds", "0.25", 0.25, id="seconds"),
        pytest.param("anthropic_default_max_tokens", "4096", 4096, id="tokens"),
    ],
)
@pytest.mark.parametrize("source", ["flag", "environment"])
def test_a_value_is_read_alike_from_every_source(
    name: str, text: str, value: object, source: str
) -> None:
    """A setting means the same as a flag and as an environment variable."""
    if source == "flag":
        settings = load_settings({name: text}, {})
    else:
        settings = load_settings({}, {f"SGL_GATEWAY_{name.upper()}": text})
    assert getattr(settings, name) == value


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        pytest.param("port", "abc", "a whole number from 0 to 65535", id="word"),
        pytest.param("port", "65536", "a whole number from 0 to 65535", id="beyond"),
        pytest.param("port", "-1", "a whole number from 0 to 65535", id="negative"),
        pytest.param("port", "8_0", "a whole number from 0 to 65535", id="underscore"),
        pytest.param("port", "٨", "a whole number from 0 to 65535", id="other-digits"),
        pytest.param("workers", "0", "a whole number from 1 to 1024", id="no-workers"),
        pytest.param("max_inflight", "1.5", "a whole number from 1 to 16384", id="fraction"),
        pytest.param("host", "a b", "a host name or an address", id="space"),
        pytest.param("worker_urls", " , ", "one or more URLs", id="none"),
        pytest.param("log_format", "xml", "one of json, text", id="choice"),
        pytest.param("log_level", "loud", "one of debug, info, warning, error", id="level"),
        pytest.param("sampling_param_conflict", "x", "one of reject, allow", id="conflict"),
        pytest.param("forward_authorization", "maybe", "true or false", id="switch"),
        pytest.param("connect_timeout_in_seconds", "0", "a number of seconds above 0", id="0s"),
        pytest.param("connect_timeout_in_seconds", "nan", "a number of seconds above 0", id="nan"),
        pytest.param("connect_timeout_in_seconds", "1e400", "a number of seconds above 0", id="e"),
    ],
)
def test_a_bad_value_is_named_with_its_source(name: str, text: str, right: str) -> None:
    """The message names the setting as it was spelled, the value, and what would be right."""
    flag, variable = f"--{name.replace('_', '-')}", f"SGL_GATEWAY_{name.upper()}"
    with pytest.raises(SettingsError) as of_flag:
        load_settings({name: text}, {})
    with pytest.raises(SettingsError) as of_variable:
        load_settings({}, {variable: text})
    assert str(of_flag.value) == f"{flag}: {text!r} is not {right}"
    if text.strip(" ") == text:
        assert str(of_variable.value) == f"{variable}: {text!r} is not {right}"


def test_a_flag_wins_over_the_environment() -> None:
    """Flag over environment over default, setting by setting."""
    settings = load_settings({"port": "1", "host": None}, {"SGL_GATEWAY_PORT": "2"})
    assert (settings.port, settings.host) == (1, "127.0.0.1")


def test_a_bad_variable_below_a_flag_is_not_read() -> None:
    """Lower sources are not looked at."""
    assert load_settings({"port": "1"}, {"SGL_GATEWAY_PORT": "x"}).port == 1


def test_an_empty_variable_is_unset() -> None:
    """Container tools pass empty variables for what is not set."""
    assert load_settings({}, {"SGL_GATEWAY_PORT": " ", "SGL_GATEWAY_MODEL_ID": ""}) == (
        load_settings({}, {})
    )


def test_an_empty_flag_is_an_error() -> None:
    """A flag was meant to say something; an unset shell variable must not pass for that."""
    with pytest.raises(SettingsError, match=r"^--model-id is empty: give a text$"):
        load_settings({"model_id": ""}, {})


def test_an_empty_engine_key_is_no_key() -> None:
    """An empty key means that no header is sent; it also hides the environment's."""
    environ = {"SGL_GATEWAY_WORKER_API_KEY": "other"}
    assert load_settings({"worker_api_key": ""}, environ).worker_api_key == ""


def test_a_service_link_of_kubernetes_is_no_port() -> None:
    """A service named sgl-gateway makes Kubernetes set SGL_GATEWAY_PORT to a URL."""
    assert load_settings({}, {"SGL_GATEWAY_PORT": "tcp://10.0.0.1:8080"}).port == 8080


def test_unknown_variables_are_told() -> None:
    """A misspelt variable is named; what Kubernetes writes for a service is not."""
    environ = {
        "SGL_GATEWAY_WORKER_URL": "x",
        "SGL_GATEWAY_SERVICE_HOST": "10.0.0.1",
        "SGL_GATEWAY_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "SGL_GATEWAY_PORT": "1",
        "SGL_GATEWAY_DEBUG": "1",
        "HOME": "/",
    }
    assert unknown_variables(environ) == ("SGL_GATEWAY_WORKER_URL",)


def test_secrets_are_not_shown() -> None:
    """The engines' key appears in no printed form of the settings."""
    settings = load_settings({"worker_api_key": "s3cret"}, {})
    assert settings.worker_api_key == "s3cret"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("flags", "environ", "expected"),
    [
        pytest.param({}, {}, (None, None, None), id="none"),
        pytest.param({"api_profile": "a"}, {}, (None, "a", None), id="name"),
        pytest.param({"api_profile_file": "a"}, {}, ("a", None, None), id="file"),
        pytest.param(
            {}, {"SGLANG_ROUTER_API_PROFILE": " a\n"}, (None, None, "a"), id="environment-trimmed"
        ),
        pytest.param({}, {"SGLANG_ROUTER_API_PROFILE": " "}, (None, None, None), id="empty"),
        pytest.param({}, {"SGL_GATEWAY_API_PROFILE": "a"}, (None, None, None), id="one-name-only"),
    ],
)
def test_profile_sources(
    flags: dict[str, str], environ: dict[str, str], expected: tuple[str | None, ...]
) -> None:
    """The profile's only environment variable is SGLANG_ROUTER_API_PROFILE; empty is unset."""
    settings = load_settings(flags, environ)
    found = (settings.api_profile_file, settings.api_profile, settings.api_profile_env)
    assert found == expected


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"api_profile": "moonshot-kimi"},
        {"api_profile_file": "kimi"},
        {"port": "1", "worker_urls": ["http://a", "http://b"], "forward_authorization": True},
        {"worker_api_key": "", "host": None},
    ],
    ids=["none", "preset", "file-like-a-preset", "several", "nothing-said"],
)
def test_flags_survive_the_way_to_the_server(flags: dict[str, str | list[str] | bool]) -> None:
    """The server, which gets the flags as variables, reads what the command read."""
    environ = {"SGL_GATEWAY_MAX_INFLIGHT": "7", "SGLANG_ROUTER_API_PROFILE": "other"}
    direct = load_settings(flags, environ)
    through = load_settings({}, environ | export_flags(flags))
    named = "api_profile" in flags or "api_profile_file" in flags
    assert through.api_profile_env == (None if named else "other")
    for field in fields(Settings):
        if field.name != "api_profile_env":
            assert getattr(through, field.name) == getattr(direct, field.name)


def test_an_ipv6_host_is_bound_in_brackets() -> None:
    """Without them, gunicorn would take the last group for the port."""
    assert load_settings({"host": "::1"}, {}).bind == "[::1]:8080"


@pytest.mark.parametrize(
    ("value", "asked"), [("", False), ("0", False), ("1", True)], ids=["empty", "zero", "one"]
)
def test_debugging(value: str, asked: bool) -> None:
    """SGL_GATEWAY_DEBUG=1 asks for tracebacks; 0 and empty do not."""
    assert debugging({"SGL_GATEWAY_DEBUG": value}) is asked


HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.mark.parametrize(
    ("text", "admitted", "refused"),
    [
        pytest.param(
            "# a comment\n\nalpha\r\n  beta  \n", ["alpha", "beta"], ["", "#"], id="lines"
        ),
        pytest.param(f"sha256:{HELLO}\n", ["hello"], [HELLO, "sha256:" + HELLO], id="digest"),
        pytest.param(f"sha256:{HELLO.upper()}", ["hello"], ["Hello"], id="upper-case-digest"),
        pytest.param("\ufeffalpha", ["alpha"], ["\ufeffalpha"], id="byte-order-mark"),
        pytest.param("a#b", ["a#b"], ["a"], id="hash-inside"),
    ],
)
def test_keys_file(tmp_path: Path, text: str, admitted: list[str], refused: list[str]) -> None:
    """One key a line; comments and blank lines are skipped; a digest stands for its key."""
    file = tmp_path / "keys"
    file.write_bytes(text.encode())
    keys = load_api_keys(str(file))
    assert [key for key in admitted + refused if keys.admits(key)] == admitted


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(b"", "names no key; to leave the gateway open, name no file", id="empty"),
        pytest.param(b"# only\n\n", "names no key", id="comments-only"),
        pytest.param(b"a\nsha256:12\n", ":2: sha256: needs 64 hex digits after it", id="digest"),
        pytest.param(b"s3cret # mine\n", ":1: a key is printable ASCII", id="comment-behind-a-key"),
        pytest.param(b"\xff\xfe", "is not UTF-8 text", id="not-text"),
        pytest.param(None, "cannot read", id="missing"),
    ],
)
def test_a_keys_file_that_is_none_stops_the_start(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    """It is never taken for an open gate, and the message shows no key."""
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_api_keys(str(file))
    assert complaint in str(caught.value)
    assert "s3cret" not in str(caught.value)
