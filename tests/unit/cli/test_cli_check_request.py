import io
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli import main as shell
from gateway.cli.json_diff import diff_json, layout, shorten

Run = Callable[..., tuple[int, str, str]]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PROFILE = """\
sampling:
  params:
    temperature:
      min: 0
      max: 1
    top_p: 0.95
params:
  top_k: {min: 0, normalize: [[0, -1]]}
  seed:
    default: 7
    min: 0
  "a.b": {pin: 1}
output: {max_tokens: {cap: 100, on_exceed: clamp}}
models: {aliases: [second]}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `check-request` with a profile, in a folder with some request bodies."""
    for name, fields in {
        "plain": {},
        "full": {"top_p": 0.95, "seed": 1, "a.b": 1, "max_tokens": 9, "top_k": 3},
        "changed": {"top_p": None, "top_k": 0, "max_tokens": 500, "store": True},
        "refused": {"temperature": 2, "seed": -1, "a.b": 2},
        "hosted": {"tools": [{"type": "web_search"}]},
        "alias": {"model": "second"},
        "unknown": {"model": "third"},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**CHAT, **fields}))
    (tmp_path / "p.yaml").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)

    def check(*args: str, profile: str = "p.yaml") -> tuple[int, str, str]:
        flags = ("--api-profile-file", profile, "--model-id", "m")
        status = shell.run(["check-request", *args, *flags])
        return (status, *capsys.readouterr())

    return check


def test_an_accepted_request(run: Run) -> None:
    """Every change, its rule and the line that sets it; then what the engine gets, as a diff."""
    status, out, err = run("changed.json")
    assert (status, err) == (0, "1 accepted, 0 rejected\n")
    assert out == (
        "changed.json: accepted\n"
        "  written in: top_p = 0.95 for null  # sampling.params.top_p (p.yaml:6)\n"
        "  normalised: top_k = -1 for 0  # params.top_k (p.yaml:8)\n"
        "  written in: seed = 7  # params.seed (p.yaml:10)\n"
        "  written in: a.b = 1  # params.a.b (p.yaml:12)\n"
        "  clamped: max_tokens = 100 for 500  # output.max_tokens.cap (p.yaml:13)\n"
        "  the engine gets, at /v1/chat/completions:\n"
        "  --- the client's body\n"
        "  +++ the engine's body\n"
        "  @@ -8,6 +8,7 @@\n"
        "     ],\n"
        '  -  "top_p": null,\n'
        '  -  "top_k": 0,\n'
        '  -  "max_tokens": 500,\n'
        '  -  "store": true\n'
        '  +  "top_p": 0.95,\n'
        '  +  "top_k": -1,\n'
        '  +  "max_tokens": 100,\n'
        '  +  "seed": 7,\n'
        '  +  "a.b": 1\n'
        "   }\n"
    )


def test_a_refused_request(run: Run) -> None:
    """Every violation, and the very reply: status, headers, body."""
    status, out, err = run("refused.json")
    assert (status, err) == (1, "0 accepted, 1 rejected\n")
    head, _, body = out.partition("\n\n")
    assert head == (
        "refused.json: rejected with 400\n"
        "  refused: temperature = 2  # sampling.params.temperature (p.yaml:4, p.yaml:5)\n"
        "  refused: seed = -1  # params.seed (p.yaml:11)\n"
        "  refused: a.b = 2  # params.a.b (p.yaml:12)\n"
        "  the client gets:\n"
        "  HTTP/1.1 400 Bad Request\n"
        "  x-router-error-code: sampling_contract_violation\n"
        "  content-type: application/json\n"
        "  content-length: 212\n"
        "  x-request-id: check-request"
    )
    assert json.loads(body)["error"]["param"] == "temperature"


def test_nothing_to_do(run: Run) -> None:
    """A request that keeps to the profile goes as it is."""
    assert run("full.json")[1] == (
        "full.json: accepted\n  the engine gets, at /v1/chat/completions:\n  the request as it is\n"
    )


def test_a_settings_file(run: Run) -> None:
    """Its keys count: their aliases, and the dialect that each is spoken to in."""
    Path("keys.yaml").write_text(
        "providers: {sgl: {keys: [{name: a, models: ['*'], value: '', aliases:"
        " {third: {model_id: real, use_anthropic_endpoints: true}},"
        " sgl_key_config: {url: http://127.0.0.1:1}}]}}\n"
    )
    status, out, _ = run("unknown.json", "--config", "keys.yaml")
    assert status == 0
    assert "the engine gets, at /v1/messages:" in out
    assert '+  "model": "real",' in out


def test_dropped_tools(run: Run) -> None:
    """Hosted tools that are left out are named."""
    assert "  hosted tools left out: web_search\n" in run("hosted.json")[1]


def test_a_conversion(run: Run) -> None:
    """A request of another dialect is shown as the Chat request that it becomes."""
    _, out, _ = run("full.json", "--dialect", "messages")
    assert "the engine gets, at /v1/chat/completions:" in out
    _, out, _ = run("plain.json", "--use-anthropic-endpoints")
    assert "the engine gets, at /v1/messages:" in out


@pytest.mark.parametrize(
    ("args", "status", "told"),
    [
        (["plain.json", "alias.json"], 0, ["plain.json", "alias.json"]),
        (["plain.json", "unknown.json"], 1, ["plain.json", "unknown.json"]),
        (["plain.json", "alias.json", "--expect", "accepted"], 0, []),
        (["plain.json", "refused.json", "--expect", "accepted"], 1, ["refused.json"]),
        (["unknown.json", "refused.json", "--expect", "rejected"], 0, []),
        (["plain.json", "refused.json", "--expect", "rejected"], 1, ["plain.json"]),
    ],
    ids=["accepted", "one is not", "expected", "one is unexpected", "rejected", "one is not so"],
)
def test_corpus(run: Run, args: list[str], status: int, told: list[str]) -> None:
    """1 where one is refused, or is not as expected; then only of those is told."""
    got, out, err = run(*args)
    assert got == status
    assert [line.partition(":")[0] for line in out.splitlines() if ".json: " in line] == told
    assert err.endswith(" rejected\n")


def test_json(run: Run) -> None:
    """For programs: the same, with bodies as texts in which every byte counts."""
    status, out, _ = run("alias.json", "refused.json", "--format", "json")
    first, second = json.loads(out)
    assert status == 1
    assert (first["file"], first["verdict"], first["route"]) == ("alias.json", "accepted", "chat")
    assert first["decisions"][0] == {
        "change": "written",
        "field": "top_p",
        "rule": "sampling.params.top_p",
        "old": None,
        "new": "0.95",
        "origins": [{"source": "p.yaml", "line": 6}],
    }
    assert first["engine"]["path"] == "/v1/chat/completions"
    assert first["engine"]["body"].startswith('{"model": "m","messages": ')
    assert first["reply"] is None
    assert second["verdict"] == "rejected"
    assert second["engine"] is None
    assert second["reply"]["status"] == 400
    assert second["reply"]["headers"]["x-router-error-code"] == "sampling_contract_violation"
    assert json.loads(second["reply"]["body"])["error"]["param"] == "temperature"
    assert [one["field"] for one in second["decisions"]] == ["temperature", "seed", "a.b"]


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is a body from a pipe."""
    stdin = types.SimpleNamespace(buffer=io.BytesIO(b"[1]"))
    monkeypatch.setattr(sys, "stdin", stdin)
    status, out, _ = run("-")
    assert status == 1
    assert out.startswith("-: rejected with 400\n")
    assert "must be a JSON object" in out


@pytest.mark.parametrize(
    ("args", "profile", "message"),
    [
        (["none.json"], "p.yaml", "none.json: cannot be read: No such file or directory"),
        (["."], "p.yaml", ".: cannot be read: Is a directory"),
        (["plain.json"], "q.yaml", "q.yaml"),
        (["plain.json", "--dialect", "french"], "p.yaml", "'french' is not one of 'chat'"),
        ([], "p.yaml", "Missing argument"),
    ],
    ids=["no file", "a folder", "no profile", "no dialect", "nothing"],
)
def test_usage(run: Run, args: list[str], profile: str, message: str) -> None:
    """What cannot be done ends with 2 and says why."""
    status, out, err = run(*args, profile=profile)
    assert (status, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())


def test_aliases_need_a_model(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """As for `serve`, a profile's aliases need a name to stand for."""
    assert shell.run(["check-request", "plain.json", "--api-profile-file", "p.yaml"]) == 2
    assert "--model-id is not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1.0", ["1.0"]),
        ("{}", ["{}"]),
        ("[ ]", ["[]"]),
        ('{"a":1e2,"b":[]}', ["{", '  "a": 1e2,', '  "b": []', "}"]),
        ('[[1],{"a":{}}]', ["[", "  [", "    1", "  ],", "  {", '    "a": {}', "  }", "]"]),
        (r'{"a":"},\" [\u00e9"}', ["{", r'  "a": "},\" [\u00e9"', "}"]),
    ],
    ids=["a value", "an object", "a list", "literals", "nested", "texts"],
)
def test_layout(text: str, lines: list[str]) -> None:
    """JSON over several lines, values with their spelling."""
    assert list(layout(text)) == lines


def test_diff_of_spellings() -> None:
    """A number in another spelling is a difference; another layout is none."""
    assert diff_json(b'{"a": 1.0}', b'{"a":1.0}', ("x", "y")) == []
    assert diff_json(b'{"a":1.0}', b'{"a":1}', ("x", "y"))[3:] == [
        " {",
        '-  "a": 1.0',
        '+  "a": 1',
        " }",
    ]


def test_long_lines() -> None:
    """Of a picture its ends are enough."""
    assert shorten("a" * 160) == "a" * 160
    assert shorten("a" * 300 + "b") == "a" * 80 + "… 141 more characters …" + "a" * 79 + "b"
