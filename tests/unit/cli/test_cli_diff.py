import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli import main as shell

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `diff` in a folder with the profile `ours.yaml`."""
    (tmp_path / "ours.yaml").write_text(
        "extends: moonshot-kimi\n"
        "name: ours\n"
        "sampling:\n"
        "  params:\n"
        "    temperature: {max: 0.6}\n"
        "    top_p: 0.9\n"
        "limits: {max_images: 4}\n"
    )
    monkeypatch.chdir(tmp_path)

    def diff(*args: str) -> tuple[int, str, str]:
        status = shell.run(["diff", *args])
        return (status, *capsys.readouterr())

    return diff


def test_text(run: Run) -> None:
    """Each rule that differs: its effects, its values with their places, an example an effect."""
    status, out, err = run("moonshot-kimi", "ours.yaml")
    assert status == 0
    assert out == (
        "not seen by clients\n"
        "- name: moonshot-kimi  # moonshot-kimi:5\n"
        "+ name: ours  # ours.yaml:2\n"
        "\n"
        "tightens\n"
        "- sampling.params.temperature.max: 1  # moonshot-kimi:12\n"
        "+ sampling.params.temperature.max: 0.6  # ours.yaml:5\n"
        "  temperature 1: was accepted, is refused\n"
        "\n"
        "tightens, loosens, alters\n"
        "- sampling.params.top_p: 0.95  # moonshot-kimi:14\n"
        "+ sampling.params.top_p: 0.9  # ours.yaml:6\n"
        "  top_p 0.95: was accepted, is refused\n"
        "  top_p 0.9: was refused, is accepted\n"
        "  no top_p: was passed on as 0.95, is passed on as 0.9\n"
        "\n"
        "tightens\n"
        "+ limits.max_images: 4  # ours.yaml:7\n"
        "  5 images: was accepted, is refused\n"
    )
    assert err == "4 rules differ: 3 tightens, 1 loosens, 1 alters, 1 not seen by clients\n"


def test_json(run: Run) -> None:
    """The same for programs; numbers are numbers and a path is a list of keys."""
    status, out, _ = run("moonshot-kimi", "ours.yaml", "--format", "json")
    changes = json.loads(out)
    assert status == 0
    assert [change["effects"] for change in changes] == [
        [],
        ["tightens"],
        ["tightens", "loosens", "alters"],
        ["tightens"],
    ]
    assert changes[3] == {
        "effects": ["tightens"],
        "values": [
            {
                "path": ["limits", "max_images"],
                "before": None,
                "after": {"value": 4, "source": "ours.yaml", "line": 7},
            }
        ],
        "examples": [
            {
                "effect": "tightens",
                "request": "5 images",
                "before": "was accepted",
                "after": "is refused",
            }
        ],
    }


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("ours.yaml", "moonshot-kimi"), 0),
        (("ours.yaml", "moonshot-kimi", "--exit-code"), 1),
        (("./ours.yaml", "ours.yaml", "--exit-code"), 0),
        (("no-such-preset", "ours.yaml"), 2),
        (("ours.yaml", "no-such.yaml", "--exit-code"), 2),
        (("ours.yaml",), 2),
    ],
    ids=["differ", "differ and asked", "same and asked", "unknown preset", "no file", "one"],
)
def test_status(run: Run, args: tuple[str, ...], status: int) -> None:
    """0 whatever differs, unless `--exit-code` asks for 1; 2 where a profile cannot be loaded."""
    assert run(*args)[0] == status


def test_no_difference(run: Run) -> None:
    """Profiles that say the same in another spelling do not differ."""
    Path("theirs.yaml").write_text("extends: ./ours.yaml\nsampling: {params: {top_p: 0.90}}\n")
    assert run("ours.yaml", "theirs.yaml") == (0, "", "no difference\n")


def test_a_boolean_is_no_number(run: Run) -> None:
    """`true` for `1` is a change."""
    Path("a.yaml").write_text("params: {logprobs: {values: [1]}}\n")
    Path("b.yaml").write_text("params: {logprobs: {values: [true]}}\n")
    status, out, _ = run("a.yaml", "b.yaml", "--exit-code")
    assert status == 1
    assert out == (
        "tightens\n"
        "- params.logprobs.values: [1]  # a.yaml:1\n"
        "+ params.logprobs.values: [true]  # b.yaml:1\n"
        "  logprobs 1: was accepted, is refused\n"
    )
