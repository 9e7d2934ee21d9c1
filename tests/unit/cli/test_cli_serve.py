import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import run
from gateway.cli.serve import gunicorn_conf

URL = ["--worker-urls", "http://127.0.0.1:9"]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("SGL_GATEWAY_", "SGLANG_ROUTER_")):
            monkeypatch.delenv(name)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """The programs that were executed, with their environments."""
    programs: list[tuple[list[str], dict[str, str]]] = []

    def note(path: str, command: list[str], environment: dict[str, str]) -> None:
        assert path == command[0]
        programs.append((command, environment))

    monkeypatch.setattr(os, "execve", note)
    return programs


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that something listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_becomes_gunicorn(started: list[tuple[list[str], dict[str, str]]], free_port: int) -> None:
    """Flags turn into environment variables; what stands after -- is handed to gunicorn."""
    args = ["serve", *URL, "--worker-urls", "http://b:2", "--port", str(free_port)]
    args += ["--api-profile", "moonshot-kimi", "--max-inflight", "9"]
    assert run([*args, "--", "--graceful-timeout", "60"]) == 0
    ((command, environment),) = started
    assert command[:4] == [sys.executable, "-m", "gunicorn", "-c"]
    assert Path(command[4]).samefile(gunicorn_conf())
    assert command[5:] == ["--graceful-timeout", "60", "gateway.web.app:get_app()"]
    own = {name: value for name, value in environment.items() if name.startswith("SGL")}
    assert own == {
        "SGL_GATEWAY_WORKER_URLS": "http://127.0.0.1:9 http://b:2",
        "SGL_GATEWAY_PORT": str(free_port),
        "SGL_GATEWAY_MAX_INFLIGHT": "9",
        "SGLANG_ROUTER_API_PROFILE": "moonshot-kimi",
        "SGL_GATEWAY_API_PROFILE_FLAG": "api_profile",
    }
    assert environment["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        pytest.param(
            [],
            "no base URL configured: either set sgl_key_config.url on the key"
            " or set network_config.base_url",
            id="no-url",
        ),
        pytest.param(["--worker-urls", "a:1"], "--worker-urls: the base URL 'a:1'", id="bad-url"),
        pytest.param([*URL, "--port", "x"], "--port: 'x' is not a whole number", id="bad-setting"),
        pytest.param([*URL, "--api-profile", "kimi"], "no preset 'kimi'", id="unknown-preset"),
        pytest.param([*URL, "--api-profile-file", "/no.yaml"], "/no.yaml", id="missing-profile"),
        pytest.param([*URL, "--sampling-param-conflict", "allow"], "conflict", id="conflict-alone"),
        pytest.param([*URL, "--api-keys-file", "/no/keys"], "cannot read /no/keys", id="no-keys"),
        pytest.param([*URL, "--host", "192.0.2.1"], "192.0.2.1 is not an address", id="no-address"),
        pytest.param(
            [*URL, "--", "--bogus"], "unrecognized arguments: --bogus", id="gunicorn-flag"
        ),
        pytest.param([*URL, "--", "--workers", "x"], "invalid int value", id="gunicorn-value"),
        pytest.param([*URL, "--", "--umask", "x"], "umask", id="gunicorn-value-late"),
        pytest.param([*URL, "--", "my:app"], "brings its own", id="other-application"),
        pytest.param([*URL, "--", "-c", "x.py"], "brings its own file", id="other-file"),
    ],
)
def test_what_cannot_start_says_why(
    started: list[tuple[list[str], dict[str, str]]],
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    complaint: str,
) -> None:
    """One line, status 2, and no server is started."""
    assert run(["serve", *args]) == 2
    out, err = capsys.readouterr()
    assert (out, started) == ("", [])
    assert complaint in err
    assert err.startswith("sgl-gateway: ")
    assert err.count("\n") == 1


def test_a_taken_port_is_told_before_anything_starts(
    started: list[tuple[list[str], dict[str, str]]],
    capsys: pytest.CaptureFixture[str],
    taken_port: int,
) -> None:
    """gunicorn alone would try for five seconds."""
    assert run(["serve", *URL, "--port", str(taken_port)]) == 2
    assert started == []
    assert capsys.readouterr().err == (
        f"sgl-gateway: port {taken_port} on 127.0.0.1 is taken: end what listens there,"
        " or choose another --port\n"
    )


def test_aliases_need_a_served_model(
    tmp_path: Path,
    started: list[tuple[list[str], dict[str, str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without --model-id there is nothing for the profile's aliases to stand for."""
    profile = tmp_path / "p.yaml"
    profile.write_text("models: {aliases: [kimi-latest]}\n")
    assert run(["serve", *URL, "--api-profile-file", str(profile)]) == 2
    assert "--model-id is not set" in capsys.readouterr().err
    assert started == []


def test_print_profile_needs_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """`--print-profile` prints what would be enforced and exits, whatever else is missing."""
    assert run(["serve", "--api-profile", "moonshot-kimi", "--print-profile"]) == 0
    assert "top_k: 1000" in capsys.readouterr().out
