import json
import shlex

import pytest

from gateway.cli.main import run
from gateway.demo.session import model_name, render_lines
from gateway.profile import load_preset


def _bodies(text: str) -> list[dict[str, object]]:
    lines = [shlex.split(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(line[0] == "curl" for line in lines)
    return [json.loads(line[line.index("-d") + 1]) for line in lines]


def test_three_lines_to_paste() -> None:
    """With moonshot-kimi: a default written in, a refusal (temperature 1.5), a stream."""
    text = render_lines(load_preset("moonshot-kimi"), "kimi-demo", 8080)
    hello = {"model": "kimi-demo", "messages": [{"role": "user", "content": "Hello"}]}
    assert _bodies(text) == [hello, hello | {"temperature": 1.5}, hello | {"stream": True}]
    assert "temperature 1.5 is not in the contract" in text
    assert "frequency_penalty, n, presence_penalty, top_k, top_p" in text
    assert text.count("http://127.0.0.1:8080/v1/chat/completions") == 3


@pytest.mark.parametrize(
    ("preset", "refused", "comment"),
    [
        pytest.param("stepfun-step5", {"temperature": 3}, "temperature 3 is not in", id="step5"),
        pytest.param(
            "openai-compatible", {"temperature": -1}, "This profile refuses nothing", id="open"
        ),
    ],
)
def test_the_refusal_is_one_of_the_profile(
    preset: str, refused: dict[str, object], comment: str
) -> None:
    """What a profile accepts is not shown as a refusal."""
    text = render_lines(load_preset(preset), "m", 1)
    body = _bodies(text)[1]
    assert {name: body[name] for name in body.keys() - {"model", "messages"}} == refused
    assert comment in text


@pytest.mark.parametrize(
    ("preset", "name"),
    [("moonshot-kimi", "kimi-demo"), ("stepfun-step5", "step5-demo")],
    ids=["kimi", "step5"],
)
def test_model_name(preset: str, name: str) -> None:
    """The demo's model is named for the profile."""
    assert model_name(load_preset(preset)) == name


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--api-profile", "nope"], "nope"),
        (["--port", "0"], "--port"),
        (["--api-profile", "a", "--api-profile-file", "b"], "exclude each other"),
    ],
    ids=["profile", "port", "two-profiles"],
)
def test_what_cannot_start_says_why(
    args: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, before an engine or a gateway is started."""
    assert run(["demo", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
