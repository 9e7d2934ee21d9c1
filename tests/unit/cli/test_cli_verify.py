import json
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gateway.cli import main as shell
from gateway.demo.engine import DemoEngine

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def engine() -> Iterator[DemoEngine]:
    """A bare engine, which echoes, as the endpoint."""
    with DemoEngine(model="m", echoes=True) as running:
        yield running


@pytest.fixture
def run(
    engine: DemoEngine,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Run:
    """Runs `verify` on the engine, by a profile that it keeps to or by one that it does not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERIFY_API_KEY", raising=False)
    Path("kept.yaml").write_text("params: {temperature: {min: 0}}\n")
    Path("broken.yaml").write_text(
        "params: {temperature: {min: 0, max: 1}, mood: {default: fine}}\n"
    )
    Path("nothing.yaml").write_text("name: nothing\n")

    def verify(*args: str, profile: str = "kept.yaml", url: str = "") -> tuple[int, str, str]:
        flags = ["--base-url", url or engine.url, "--model", "m", "--rate", "100000"]
        status = shell.run(["verify", *flags, "--api-profile-file", profile, *args])
        return (status, *capsys.readouterr())

    return verify


def test_a_promise_that_is_kept(run: Run) -> None:
    """0, with a table on standard output."""
    status, out, err = run("--dialect", "chat", "--dialect", "responses")
    assert (status, err) == (0, "")
    assert out.startswith(
        "rule                    set at       chat  responses\n"
        "params.temperature.min  kept.yaml:1  7     skipped\n"
        "\n"
    )
    assert "checks: /v1/responses is not served: 404" in out
    assert "checks: what the engine gets is not seen from outside" in out


def test_a_promise_that_is_broken(run: Run) -> None:
    """1, with the reason of each failure."""
    status, out, _ = run(profile="broken.yaml")
    assert status == 1
    assert (
        "FAILED params.temperature.max (broken.yaml:1): chat\n"
        "  temperature 1.01, beyond the most is refused with a 400; got 200\n"
    ) in out


def test_the_echo(run: Run) -> None:
    """With it, what is not written in is seen to be missing."""
    assert "FAILED params.mood" not in run("--dialect", "chat", profile="broken.yaml")[1]
    status, out, _ = run("--engine-echo", "--dialect", "chat", profile="broken.yaml")
    assert status == 1
    assert (
        "FAILED params.mood.default (broken.yaml:1): chat\n"
        '  mood left out reaches the engine with mood "fine"; reached the engine without mood\n'
    ) in out
    assert " 0 not observable" in out


def test_dialects(run: Run, engine: DemoEngine) -> None:
    """Only the routes that are named are probed."""
    run("--dialect", "chat", "--dialect", "completions")
    assert {one.path for one in engine.inference} == {"/v1/chat/completions", "/v1/completions"}


def test_dry_run(run: Run, engine: DemoEngine) -> None:
    """The requests and their cost; none is sent."""
    status, out, err = run("--dry-run")
    assert (status, err, engine.requests) == (0, "", [])
    assert "1. POST /v1/chat/completions\n   temperature left out: is accepted" in out
    assert " requests, " in out.splitlines()[-1]
    told = json.loads(run("--dry-run", "--format", "json")[1])
    assert out.splitlines()[-1].startswith(f"{told['requests']} requests")


def test_formats(run: Run) -> None:
    """JSON and JUnit hold the same run; the sum is on standard error then."""
    _, out, err = run("--format", "json", profile="broken.yaml")
    counts = json.loads(out)["counts"]
    _, xml, _ = run("--format", "junit", profile="broken.yaml")
    assert ET.fromstring(xml).attrib["failures"] == str(counts["failed"])  # noqa: S314 - our own
    assert err.startswith(f"{counts['passed']} passed, {counts['failed']} failed")


def test_the_key_from_the_environment(
    run: Run, engine: DemoEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key has no place on a command line."""
    engine.api_key = "secret"
    status, out, err = run()
    assert (status, out) == (2, "")
    assert "no route answers a plain request" in err
    monkeypatch.setenv("VERIFY_API_KEY", "secret")
    assert run("--dialect", "chat")[0] == 0


def test_the_bound(run: Run, engine: DemoEngine) -> None:
    """No more requests than that; what is left is skipped, and said to be."""
    status, out, _ = run("--max-requests", "5")
    assert status == 0
    assert len(engine.requests) == 5
    assert "checks: more than 5 requests" in out


@pytest.mark.parametrize(
    ("args", "profile", "url", "message"),
    [
        ((), "kept.yaml", "http://127.0.0.1:1", "cannot be reached"),
        ((), "kept.yaml", "nowhere", "--base-url: the base URL 'nowhere'"),
        ((), "missing.yaml", "", "missing.yaml"),
        ((), "nothing.yaml", "", "there is nothing to verify"),
        (("--dialect", "french"), "kept.yaml", "", "'french' is not one of"),
        (("--max-requests", "0"), "kept.yaml", "", "greater than or equal to 1"),
        (("--rate", "0"), "kept.yaml", "", "greater than or equal to 0.01"),
    ],
    ids=["nobody there", "no URL", "no profile", "no rule", "no dialect", "no requests", "no rate"],
)
def test_what_cannot_be_done(
    run: Run, args: tuple[str, ...], profile: str, url: str, message: str
) -> None:
    """Ends with 2, and one reason."""
    status, out, err = run(*args, profile=profile, url=url)
    assert (status, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())


def test_an_engine_without_an_echo(run: Run, engine: DemoEngine) -> None:
    """Who asks for what cannot be seen is told so."""
    engine.say = lambda _: "hello"
    status, _, err = run("--engine-echo")
    assert status == 2
    assert "does not echo what it gets" in err
