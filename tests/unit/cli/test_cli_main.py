import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from gateway import __version__
from gateway.cli import main as shell
from gateway.profile import load_preset
from gateway.settings import SettingsError


def _commands() -> list[str]:
    return [command.name or "" for command in shell.build_app().registered_commands]


@pytest.mark.parametrize("command", ["", *_commands()])
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` shows how a command is called."""
    assert shell.run([*([command] if command else []), "--help"]) == 0
    assert f"Example: sgl-gateway {command}".rstrip() in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the version, alone on standard output."""
    assert shell.run(["--version"]) == 0
    assert capsys.readouterr() == (f"sgl-gateway {__version__}\n", "")


@pytest.mark.parametrize(
    "args",
    [["no-such-command"], ["serve", "--no-such-flag"], ["validate"], []],
    ids=["command", "flag", "argument", "nothing"],
)
def test_usage_ends_with_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Usage goes to standard error, with status 2."""
    assert shell.run(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: sgl-gateway" in err


def _raise(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes the command line consist of a command, `fail`, that raises this."""

    def prepare(error: BaseException) -> None:
        app = typer.Typer()
        app.callback()(lambda: None)
        app.command("fail")(_raise(error))
        monkeypatch.setattr(shell, "build_app", lambda: app)

    return prepare


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        pytest.param(SettingsError("--port: no"), 2, "sgl-gateway: --port: no\n", id="setting"),
        pytest.param(KeyboardInterrupt(), 130, "", id="interrupted"),
        pytest.param(
            KeyError("a\nb"),
            3,
            "sgl-gateway: a bug: KeyError: 'a\\nb' (SGL_GATEWAY_DEBUG=1 shows the traceback)\n",
            id="bug",
        ),
    ],
)
def test_failures(
    fail_with: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    message: str,
) -> None:
    """A failure is one line on standard error and a status of its own; never a traceback."""
    fail_with(error)
    assert shell.run(["fail"]) == status
    assert capsys.readouterr() == ("", message)


def test_debugging_shows_the_traceback(
    fail_with: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who asks for it sees where a bug is."""
    monkeypatch.setenv("SGL_GATEWAY_DEBUG", "1")
    fail_with(KeyError("a"))
    assert shell.run(["fail"]) == 3
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_profile_error_is_one_line(
    fail_with: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile that cannot be used is the operator's to correct: status 2, not a bug."""
    with pytest.raises(Exception, match="nope") as caught:
        load_preset("nope")
    fail_with(caught.value)
    assert shell.run(["fail"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("sgl-gateway: ")
    assert err.count("\n") == 1


def test_a_reader_that_leaves_is_no_failure() -> None:
    """`sgl-gateway schema | head -1` says nothing on standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        result = subprocess.run(
            [sys.executable, "-m", "gateway", "schema"],
            stdout=gone,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["validate", "p.yaml"], id="validate"),
        pytest.param(["print-profile", "--api-profile-file", "p.yaml"], id="print-profile"),
        pytest.param(["presets"], id="presets"),
        pytest.param(["schema"], id="schema"),
        pytest.param(["diff", "moonshot-kimi", "p.yaml"], id="diff"),
    ],
)
def test_commands_that_need_no_server_load_none(tmp_path: Path, args: list[str]) -> None:
    """They start fast, for `validate` runs before every commit: no server, no HTTP, no rich."""
    (tmp_path / "p.yaml").write_text("extends: moonshot-kimi\nname: a\n")
    code = (
        "import sys; from gateway.cli.main import run; status = run(sys.argv[1:]);"
        "heavy = {'falcon', 'gunicorn', 'requests', 'urllib3', 'rich'};"
        "print(status, sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr.endswith("0 []\n")
