"""The command `print-profile`: which profile is in effect, merged, and where it comes from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.main import run
from gateway.profile import Band, Profile, load_file, load_preset

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Runs `print-profile` in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("SGLANG_ROUTER_API_PROFILE", "SGL_GATEWAY_OVERRIDE_SAMPLING_PARAMS"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*args: str) -> tuple[int, str, str]:
        status = run(["print-profile", *args])
        out, err = capfd.readouterr()
        return status, out, err

    return invoke


def loaded_back(text: str) -> Profile:
    """The profile that printed text is."""
    Path("printed.yaml").write_text(text)
    return load_file("printed.yaml").profile


@pytest.mark.parametrize("name", ["openai-compatible", "moonshot-kimi", "stepfun-step5"])
@pytest.mark.parametrize("extra", [(), ("--origin",)], ids=["plain", "origin"])
def test_preset_loads_back(command: Run, name: str, extra: tuple[str, ...]) -> None:
    """What is printed of a preset is a profile file that says the same, also with origins."""
    status, out, err = command("--api-profile", name, *extra)

    assert (status, err) == (0, "")
    assert loaded_back(out) == load_preset(name).profile


def test_printed_profile_is_merged(command: Run) -> None:
    """Parents are merged in and deleted keys are gone: no `extends`, no null."""
    Path("child.yaml").write_text(
        "extends: moonshot-kimi\nname: child\n"
        "sampling: {params: {n: null, temperature: {max: 0.5}}}\n"
    )

    status, out, _ = command("--api-profile-file", "child.yaml")

    assert status == 0
    assert "extends" not in out
    assert "null" not in out
    profile = loaded_back(out)
    assert profile.name == "child"
    assert profile.sampling is not None
    assert [rule.field for rule in profile.sampling.rules] == [
        "temperature",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
    ]
    band = profile.sampling.rules[0]
    assert isinstance(band, Band)
    assert (band.minimum.wire, band.maximum.wire) == (b"0", b"0.5")


@pytest.mark.parametrize(
    ("args", "env", "name"),
    [
        ((), None, "openai-compatible"),
        ((), "", "openai-compatible"),
        ((), " moonshot-kimi\n", "moonshot-kimi"),
        ((), "./own.yaml", "own"),
        (("--api-profile", "moonshot-kimi"), "./own.yaml", "moonshot-kimi"),
        (("--api-profile-file", "own.yaml"), "moonshot-kimi", "own"),
        (("--api-profile-file", "own.yaml"), "no-such-preset", "own"),
    ],
)
def test_first_source_that_is_set_wins(
    command: Run,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    env: str | None,
    name: str,
) -> None:
    """A flag wins over the environment, and that over the default; a lower one is not read."""
    Path("own.yaml").write_text("name: own\n")
    if env is not None:
        monkeypatch.setenv("SGLANG_ROUTER_API_PROFILE", env)

    status, out, _ = command("--format", "json", *args)

    assert status == 0
    assert json.loads(out)["name"] == name


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--api-profile", "moonshot-kimy"), "moonshot-kimi"),
        (("--api-profile", "nothing-like-it"), "stepfun-step5"),
        (("--api-profile-file", "missing.yaml"), "missing.yaml"),
        (("--api-profile-file", "bad.yaml"), "bad.yaml:1:1: unknown-key: "),
        (("--api-profile-file", "bad.yaml", "--api-profile", "moonshot-kimi"), "--api-profile"),
        (("--sampling-param-conflict", "allow"), "--sampling-param-conflict"),
        (("--override-sampling-params", "{}"), "--override-sampling-params"),
        (("--override-sampling-params", "{"), "--override-sampling-params"),
        (("--override-sampling-params", '{"n": 0}'), "n"),
        (("--override-sampling-params", '{"n": 1}', "--sampling-param-conflict", "no"), "reject"),
        (("--format", "toml"), "toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_profile_that_cannot_be_used_ends_with_two(
    command: Run, args: tuple[str, ...], said: str
) -> None:
    """A bad choice or a bad profile prints nothing but the reason, and ends with 2."""
    Path("bad.yaml").write_text("limit: 1\n")

    status, out, err = command(*args)

    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_broken_environment_is_not_passed_over(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that is set but broken ends the command: there is no falling through."""
    monkeypatch.setenv("SGLANG_ROUTER_API_PROFILE", "missing.yaml")

    status, out, err = command()

    assert (status, out) == (2, "")
    assert "missing.yaml" in err


def test_override_replaces_the_sampling_section(command: Run) -> None:
    """The flag's object stands in for the whole section; its conflict mode comes along."""
    override = ("--override-sampling-params", '{"top_k": 20.0, "temperature": 0.60}')

    status, out, _ = command(
        "--api-profile", "moonshot-kimi", *override, "--sampling-param-conflict", "allow"
    )

    assert status == 0
    profile = loaded_back(out)
    assert profile.sampling is not None
    assert profile.sampling.conflict == "allow"
    assert [rule.field for rule in profile.sampling.rules] == ["temperature", "top_k"]


def test_override_of_the_environment_counts(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `serve` would read from its environment variables is part of what is in effect."""
    monkeypatch.setenv("SGL_GATEWAY_OVERRIDE_SAMPLING_PARAMS", '{"n": 2}')

    status, out, _ = command("--format", "json")

    assert status == 0
    assert json.loads(out)["sampling"]["params"] == {"n": 2}


def test_origin_names_file_and_line_of_each_leaf(command: Run) -> None:
    """Each value carries the file and line that set it; the first line says why this source."""
    Path("base.yaml").write_text("limits:\n  max_images: 3\nmodels: {aliases: [a]}\n")
    Path("child.yaml").write_text(
        "name: child\nextends: base.yaml\nlimits:\n  max_body_bytes: 1 MiB\n"
    )

    status, out, _ = command("--api-profile-file", "child.yaml", "--origin")

    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("# ")
    assert "--api-profile-file" in lines[0]
    for leaf, origin in {
        "name: child": "child.yaml:1",
        "max_images: 3": "base.yaml:2",
        'max_body_bytes: "1 MiB"': "child.yaml:4",
    }.items():
        [line] = [line for line in lines if line.strip().startswith(leaf)]
        assert line.endswith(origin)


def test_json_is_the_merged_profile(command: Run) -> None:
    """JSON has the same keys and the operator's spelling of numbers."""
    Path("own.yaml").write_text("name: own\nsampling: {params: {temperature: 0.50}}\n")

    status, out, _ = command("--api-profile-file", "own.yaml", "--format", "json")

    assert status == 0
    assert json.loads(out) == {"name": "own", "sampling": {"params": {"temperature": 0.5}}}
    assert "0.50" in out


def test_json_with_origins(command: Run) -> None:
    """With `--origin`, the profile is one member beside the reason and a list of leaves."""
    Path("own.yaml").write_text("name: own\noutput: {max_tokens: {cap: 1}}\n")

    status, out, _ = command("--api-profile-file", "own.yaml", "--format", "json", "--origin")

    assert status == 0
    told = json.loads(out)
    assert list(told) == ["why", "source", "digest", "profile", "origins"]
    assert "--api-profile-file" in told["why"]
    assert told["source"] == "own.yaml"
    assert told["profile"] == {"name": "own", "output": {"max_tokens": {"cap": 1}}}
    assert told["origins"] == [
        {"path": ["name"], "source": "own.yaml", "line": 1},
        {"path": ["output", "max_tokens", "cap"], "source": "own.yaml", "line": 2},
    ]


def test_text_that_yaml_would_misread_is_quoted(command: Run) -> None:
    """Words that look like numbers, booleans or nulls come back as the words they were."""
    words = ["no", "12:30", "1e5", "010", "null", "2024-01-01", "64_000", "", " a", "#", "a\tb"]
    Path("own.yaml").write_text(
        f"models: {{aliases: {json.dumps([word for word in words if word])}}}\n"
    )

    status, out, _ = command("--api-profile-file", "own.yaml")

    assert status == 0
    assert loaded_back(out).aliases == tuple(word for word in words if word)
