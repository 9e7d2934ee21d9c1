"""The command `presets`: the list, and one of them byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.cli.main import run
from gateway.cli.presets import describe
from gateway.profile import preset_names

PROFILES: Final = Path(__file__).parents[3] / "profiles"

Run = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs `presets`: exit status, standard output, standard error."""

    def invoke(*args: str) -> tuple[int, bytes, str]:
        status = run(["presets", *args])
        out, err = capfdbinary.readouterr()
        return status, out, err.decode()

    return invoke


def test_list_has_one_line_each(command: Run) -> None:
    """Each preset is listed once, by the name that `--api-profile` takes, and described."""
    status, out, err = command()

    lines = out.decode().splitlines()
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in lines] == list(preset_names())
    assert set(preset_names()) >= {"openai-compatible", "moonshot-kimi", "stepfun-step5"}
    assert all(len(line.split()) > 2 for line in lines)


@pytest.mark.parametrize("name", sorted(path.stem for path in PROFILES.glob("*.yaml")))
def test_preset_is_printed_byte_for_byte(command: Run, name: str) -> None:
    """A preset is printed as its file stands, so that it can be the start of another."""
    assert command(name) == (0, (PROFILES / f"{name}.yaml").read_bytes(), "")


@pytest.mark.parametrize("name", ["moonshot-kimy", "Moonshot-Kimi", "../README", "", "a.yaml"])
def test_unknown_preset_lists_the_known(command: Run, name: str) -> None:
    """An unknown name, or a path in disguise, ends with 2 and names what there is."""
    status, out, err = command(name)

    assert (status, out) == (2, b"")
    assert all(known in err for known in preset_names())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("# What it is.\nname: a\n", "What it is"),
        ("# What it\n# is: that. And more.\n", "What it is: that"),
        (
            "# yaml-language-server: $schema=schema.json\n#\n# What it is\n#\n# More.\n",
            "What it is",
        ),
        ("name: a\n# Not at the top.\n", "fallback"),
        ("\n# After a gap.\n", "fallback"),
        ("#\n", "fallback"),
        ("", "fallback"),
    ],
    ids=["one-line", "one-sentence", "after-the-editors-line", "late", "gap", "bare", "empty"],
)
def test_description_is_the_first_sentence(text: str, description: str) -> None:
    """A preset describes itself in the comment that it begins with, or else by its name."""
    assert describe("fallback", text) == description
