"""The command `check-config`: findings of a settings file, and what its servers say."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.main import run
from gateway.demo.engine import DemoEngine

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Check:
    """Writes a settings file and checks it: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SGL_KEY", "the-key")

    def invoke(text: str, *options: str) -> tuple[int, str, str]:
        Path("servers.yaml").write_text(text, encoding="utf-8")
        status = run(["check-config", "servers.yaml", *options])
        return status, *capfd.readouterr()

    return invoke


def keys(*entries: str) -> str:
    """A settings file with these keys, one a line from line 3 on."""
    return "providers:\n  sgl: {keys: [\n" + "".join(f"{{{entry}}},\n" for entry in entries) + "]}"


def at(engine: DemoEngine, name: str, more: str = "") -> str:
    """The entry of an engine."""
    return f"name: {name}, sgl_key_config: {{url: {engine.url}}}{more}"


@pytest.fixture
def closed_url() -> str:
    """A URL at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_a_file_that_is_fine(check) -> None:
    """Nothing on standard output, the names of the servers beside it, status 0."""
    text = keys("name: a, value: env.SGL_KEY, sgl_key_config: {url: http://a:1}")

    assert check(text) == (0, "", "no findings; servers: a\n")


def test_findings(check) -> None:
    """One line each, and status 1."""
    text = keys("name: a, weight: -1, value: env.NONE, sgl_key_config: {url: http://a:1}")

    status, out, err = check(text)

    assert status == 1
    assert out.splitlines() == [
        "servers.yaml:3:19: out-of-domain: providers.sgl.keys[0].weight: is -1; it must be a"
        " finite number of at least 0",
        "servers.yaml:3:30: unset-variable: providers.sgl.keys[0].value: names the variable NONE,"
        " which is unset",
    ]
    assert err == "2 findings\n"


@pytest.mark.parametrize(
    ("form", "level"),
    [("text", "(a warning)"), ("github", "::warning "), ("sarif", '"level": "warning"')],
)
def test_a_warning(check, form: str, level: str) -> None:
    """It is told as one, and the file can be used: status 0."""
    text = keys("name: a, id: x, sgl_key_config: {url: http://a:1}")

    status, out, err = check(text, "--format", form)

    assert status == 0
    assert level in out
    assert err == "1 warning; servers: a\n"


def test_a_file_that_cannot_be_read(check, tmp_path: Path) -> None:
    """It is a finding, as a bad profile is one of `validate`."""
    assert check("a: [")[0] == 1
    assert run(["check-config", str(tmp_path / "none.yaml")]) == 1


def test_probe(check, closed_url: str) -> None:
    """Each server that is enabled is asked; one that cannot serve is a finding at its key."""
    with (
        DemoEngine(model="m") as good,
        DemoEngine(model="m", api_key="the-key") as locked,
        DemoEngine(model="m", api_key="other") as wrong,
    ):
        text = keys(
            at(good, "good", ", models: [m, n]"),
            at(locked, "locked", ", value: env.SGL_KEY"),
            at(wrong, "wrong", ", value: env.SGL_KEY"),
            at(wrong, "keyless"),
            f"name: gone, sgl_key_config: {{url: '{closed_url}'}}",
            f"name: off, enabled: false, sgl_key_config: {{url: '{closed_url}'}}",
        )
        status, out, err = check(text, "--probe", "--format", "json")

    assert status == 1
    assert [(one["line"], one["rule"], one["message"]) for one in json.loads(out)] == [
        (
            3,
            "unlisted-model",
            "providers.sgl.keys[0]: good does not list 'n', which models names",
        ),
        (5, "unreachable", "providers.sgl.keys[2]: wrong refuses its key"),
        (
            6,
            "unreachable",
            "providers.sgl.keys[3]: keyless asks for a key, and the file has none",
        ),
        (
            7,
            "unreachable",
            "providers.sgl.keys[4]: gone cannot be asked."
            " The engine cannot be reached: the connection was refused.",
        ),
    ]
    assert err.splitlines() == [
        "good: ready, lists m",
        "locked: ready, lists m",
        "wrong: refuses its key",
        "keyless: asks for a key, and the file has none",
        "gone: cannot be asked. The engine cannot be reached: the connection was refused.",
        "3 findings, 1 warning; servers: good, locked, wrong, keyless, gone, off",
    ]
    assert "the-key" not in out + err
