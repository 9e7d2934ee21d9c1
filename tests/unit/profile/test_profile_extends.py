"""`extends`: what a child keeps, replaces and deletes, and which files it finds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.profile import Loaded, Origin, ProfileError, check_file, load_file, load_named, presets
from gateway.profile.extends import is_path

Load = Callable[..., Loaded]
Write = Callable[..., str]


def _sampling(**params: Any) -> dict[str, Any]:
    return {"sampling": {"params": params}}


_BUDGET = "output: {max_tokens: {cap: 100, default: 10, on_exceed: clamp}}"


@pytest.mark.parametrize(
    ("base", "child", "expected"),
    [
        ("name: a", "{}", {"name": "a"}),
        ("name: a", "name: b", {"name": "b"}),
        ("name: a", "name: null", {}),
        ("{}", "name: null", {}),
        ("{}", "limits: {max_images: null}", {}),
        ("limits: {max_images: 1}", "limits: {max_images: null}", {}),
        (
            "limits: {max_images: 1, max_body_bytes: 1KiB}",
            "limits: {max_images: null}",
            {"limits": {"max_body_bytes": "1KiB"}},
        ),
        ("sampling: {params: {n: 1}}", "sampling: null", {}),
        ("{}", "sampling: null", {}),
        ("sampling: {params: {n: 1}}", "sampling:", {}),
        ("{}", "sampling: {params: {n: null}}", {}),
        ("{}", "sampling: {params: null}", {}),
        (
            "sampling: {params: {n: 1, top_k: 2}}",
            "sampling: {params: {n: null}}",
            _sampling(top_k=2),
        ),
        (
            _BUDGET,
            "output: {max_tokens: {default: null}}",
            {"output": {"max_tokens": {"cap": 100, "on_exceed": "clamp"}}},
        ),
        (_BUDGET, "output: {max_tokens: null}", {}),
        (
            "models: {aliases: [kimi-latest, kimi-old]}",
            "models: {aliases: [kimi-next]}",
            {"models": {"aliases": ["kimi-next"]}},
        ),
        (
            "sampling: {params: {temperature: {min: 0, max: 1}}}",
            "sampling: {params: {temperature: {max: 0.5}}}",
            _sampling(temperature={"min": 0, "max": 0.5}),
        ),
        (
            "sampling: {params: {top_p: 0.95}}",
            "sampling: {params: {top_p: {min: 0.5, max: 1}}}",
            _sampling(top_p={"min": 0.5, "max": 1}),
        ),
        (
            "sampling: {params: {temperature: {min: 0, max: 1}}}",
            "sampling: {params: {temperature: 1}}",
            _sampling(temperature=1),
        ),
        (
            "params: {n: {min: 1, max: 8, type: int}}",
            "params: {n: {max: 4}}",
            {"params": {"n": {"min": 1, "max": 4, "type": "int"}}},
        ),
        (
            "params: {n: {min: 1, max: 8, default: 2, type: int}}",
            "params: {n: {pin: 1}}",
            {"params": {"n": {"pin": 1}}},
        ),
        (
            "params: {n: {pin: 1, type: int}}",
            "params: {n: {min: 1, max: 8}}",
            {"params": {"n": {"min": 1, "max": 8}}},
        ),
        (
            "params: {n: {pin: 1, type: int}}",
            "params: {n: {pin: 2}}",
            {"params": {"n": {"pin": 2, "type": "int"}}},
        ),
        (
            "params: {n: {pin: 1, min: null}}",
            "params: {n: {pin: null, min: 0}}",
            {"params": {"n": {"min": 0}}},
        ),
        (
            "params: {a: {default: {x: 1}, values: [{x: 1}, {y: 2}]}}",
            "params: {a: {default: {y: 2}}}",
            {"params": {"a": {"default": {"y": 2}, "values": [{"x": 1}, {"y": 2}]}}},
        ),
        (
            "params: {a: {values: [1, 2], normalize: [[1, 2]]}}",
            "params: {a: {values: [3], normalize: [[3, 4]]}}",
            {"params": {"a": {"values": [3], "normalize": [[3, 4]]}}},
        ),
        (
            "sampling: {params: {n: 1}}\nparams: {seed: {pin: 1}}",
            "sampling: {params: {n: null}}\nparams: {n: {min: 1}}",
            {"params": {"seed": {"pin": 1}, "n": {"min": 1}}},
        ),
        ("limits: 5", "limits: {max_images: 1}", {"limits": {"max_images": 1}}),
        (
            "output: {max_tokens: 5}",
            "output: {max_tokens: {cap: 1}}",
            {"output": {"max_tokens": {"cap": 1}}},
        ),
        ("sampling: {params: {n: 1000}}", "sampling: {params: {n: 1}}", _sampling(n=1)),
        ("x-a: {b: 1}\nname: a", "x-a: {c: 1}", {"name": "a"}),
        (
            "name: a",
            "extends: base.yaml\nprotocols: {chat: false}",
            {"name": "a", "protocols": {"chat": False}},
        ),
    ],
)
def test_a_child_over_its_parent(load: Load, base: str, child: str, expected: object) -> None:
    """Mappings merge, everything else replaces, null deletes at any depth, also what never was."""
    if "extends" not in child:
        child = f"extends: base.yaml\n{child if child != '{}' else ''}"
    assert load({"child.yaml": child, "base.yaml": base}).tree == expected


@pytest.mark.parametrize(
    ("base", "child", "expected"),
    [
        (
            "sampling: {params: {temperature: {min: 0, max: 1}}}",
            "sampling: {params: {temperature: {max: -1}}}",
            ["out-of-domain"],
        ),
        (
            "sampling: {params: {temperature: {min: 1, max: 2}}}",
            "sampling: {params: {temperature: {max: 0.5}}}",
            ["empty-range"],
        ),
        (
            "sampling: {params: {temperature: {min: 0, max: 1}}}",
            "sampling: {params: {temperature: {min: null}}}",
            ["missing-key"],
        ),
        (
            "sampling: {params: {temperature: {min: 0, max: 1}}}",
            "sampling: {conflict: allow}",
            ["useless-band"],
        ),
        (_BUDGET, "output: {max_tokens: {cap: null}}", ["missing-key"]),
        (_BUDGET, "output: {max_tokens: {cap: 5}}", ["refused-value"]),
        ("limits: {max_images: 1}", "limits: 5", ["wrong-type"]),
        ("sampling: {params: {n: 1}}", "params: {n: {min: 1}}", ["governed-twice"]),
        ("params: {n: {min: 1}}", "params: {n: {min: null}}", ["empty-rule"]),
        ("limit: {}", "limit: null", ["unknown-key", "unknown-key"]),
        ("sampling: {params: {temprature: 1}}", "sampling: null", ["unknown-key"]),
        ("params: {model: {pin: x}}", "params: null", ["forbidden-field"]),
        ("limits: 5", "{}", ["wrong-type"]),
    ],
)
def test_values_are_judged_merged_and_keys_in_each_file(
    write: Write, base: str, child: str, expected: list[str]
) -> None:
    """A value counts as it is in the end; an unknown key counts in each file, deleted or not."""
    body = child if child != "{}" else ""
    path = write({"child.yaml": f"extends: base.yaml\n{body}", "base.yaml": base})
    assert [one.rule for one in check_file(path)] == expected


def test_a_finding_names_the_file_that_set_the_value(write: Write, tmp_path: Path) -> None:
    """An inherited value that is wrong is reported in the parent, at its line."""
    path = write(
        {"child.yaml": "extends: base.yaml\n", "base.yaml": "\n\nlimits:\n  max_images: 0\n"}
    )
    (finding,) = check_file(path)
    assert (finding.file, finding.line, finding.column) == (str(tmp_path / "base.yaml"), 4, 15)


def test_each_leaf_remembers_who_set_it(load: Load, tmp_path: Path) -> None:
    """The origin of a leaf is the file and the line of its key, or a preset's name."""
    loaded = load(
        {
            "child.yaml": "extends: base.yaml\n"
            "sampling:\n  params:\n    temperature:\n      max: 0.5\n",
            "base.yaml": "extends: moonshot-kimi\nmodels:\n  aliases:\n  - a\n  - b\n",
        }
    )
    band = ("sampling", "params", "temperature")
    assert loaded.origins[*band, "max"] == Origin(str(tmp_path / "child.yaml"), 5)
    assert loaded.origins[*band, "min"].source == "moonshot-kimi"
    assert loaded.origins["models", "aliases"] == Origin(str(tmp_path / "base.yaml"), 3)
    assert loaded.origins["name",].source == "moonshot-kimi"


def test_delete_and_set_again(load: Load) -> None:
    """A grandchild may set what a child deleted."""
    loaded = load(
        {
            "c.yaml": "extends: b.yaml\nsampling: {params: {n: 2}}\n",
            "b.yaml": "extends: a.yaml\nsampling: {params: {n: null}}\n",
            "a.yaml": "sampling: {params: {n: 1, top_k: 5}}\n",
        }
    )
    assert loaded.tree == _sampling(top_k=5, n=2)


def test_a_preset_without_one_rule(load: Load) -> None:
    """Deleting a preset's rule leaves its other rules."""
    profile = load("extends: moonshot-kimi\nsampling: {params: {n: null}}").profile
    assert profile.sampling is not None
    assert [rule.field for rule in profile.sampling.rules] == [
        "temperature",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("moonshot-kimi", False),
        ("./moonshot-kimi", True),
        ("a/b", True),
        ("base.yaml", True),
        ("base.yml", True),
        ("base.yaml.bak", False),
        ("base.YAML", False),
        ("", False),
    ],
)
def test_what_is_a_path(text: str, expected: bool) -> None:
    """A path contains a slash or ends in .yaml or .yml; anything else is a preset's name."""
    assert is_path(text) is expected


@pytest.mark.parametrize("name", ["moonshot-kimi.yaml", "openai-compatible.yaml"])
def test_a_file_may_extend_the_preset_that_it_is_named_after(load: Load, name: str) -> None:
    """A file's name and a preset's are told apart."""
    preset = name.removesuffix(".yaml")
    assert load({name: f"extends: {preset}\nname: mine\n"}).profile.name == "mine"


def test_a_relative_path_starts_at_the_folder_of_its_file(load: Load) -> None:
    """Each file's `extends` is relative to that file."""
    files = {
        "team/child.yaml": "extends: ../shared/mid.yml\n",
        "shared/mid.yml": "extends: base/base.yaml\n",
        "shared/base/base.yaml": "name: base\n",
    }
    assert load(files).tree == {"name": "base"}


def test_a_relative_path_without_a_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file named without a folder looks in the working directory."""
    write({"child.yaml": "extends: base.yaml\n", "base.yaml": "name: base\n"})
    monkeypatch.chdir(tmp_path)
    loaded = load_file("child.yaml")
    assert loaded.origins["name",] == Origin("base.yaml", 1)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A mounted ConfigMap: keys are links through `..data` into a folder of this revision."""
    mount = tmp_path / "cfg"
    revision = mount / "..ts1"
    revision.mkdir(parents=True)
    (mount / "..data").symlink_to("..ts1")
    for key, text in {"profile.yaml": "extends: base.yaml\n", "base.yaml": "name: base\n"}.items():
        (revision / key).write_text(text)
        (mount / key).symlink_to(f"..data/{key}")
    return mount


def test_a_mounted_volume(volume: Path) -> None:
    """`extends` is resolved beside the path that the operator named, links unresolved."""
    loaded = load_file(str(volume / "profile.yaml"))
    assert loaded.origins["name",] == Origin(str(volume / "base.yaml"), 1)


def test_a_volume_of_one_key_extends_another_volume(volume: Path, tmp_path: Path) -> None:
    """A parent that is mounted elsewhere is named by its absolute path."""
    profile = tmp_path / "profile.yaml"
    profile.write_text(f"extends: {volume}/base.yaml\n")
    assert load_file(str(profile)).tree == {"name": "base"}


def test_links_are_not_followed_to_find_the_parent(tmp_path: Path) -> None:
    """The parent stands beside the link, not beside what it points to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "profile.yaml").write_text("extends: base.yaml\n")
    (tmp_path / "real" / "base.yaml").write_text("name: wrong\n")
    (tmp_path / "base.yaml").write_text("name: right\n")
    (tmp_path / "profile.yaml").symlink_to("real/profile.yaml")
    assert load_file(str(tmp_path / "profile.yaml")).tree == {"name": "right"}


@pytest.mark.parametrize(
    ("break_parent", "words"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: (path.unlink(), path.symlink_to("gone")), "link that points to nothing"),
        (lambda path: (path.unlink(), path.mkdir()), "directory"),
    ],
    ids=["missing", "dangling", "directory"],
)
def test_a_parent_that_cannot_be_read(
    volume: Path, break_parent: Callable[[Path], object], words: str
) -> None:
    """The finding stands at the `extends` that names the parent, and names the parent's path."""
    break_parent(volume / "base.yaml")
    (finding,) = check_file(str(volume / "profile.yaml"))
    assert (finding.file, finding.line, finding.column) == (str(volume / "profile.yaml"), 1, 10)
    assert (finding.rule, finding.path) == ("unreadable", "extends")
    assert words in finding.message
    assert str(volume / "base.yaml") in finding.message


def test_a_parent_that_is_not_yaml(write: Write, tmp_path: Path) -> None:
    """A syntax error in a parent is reported there, the child's own findings beside it."""
    path = write({"child.yaml": "extends: base.yaml\nbogus: 1\n", "base.yaml": "a: [\n"})
    assert [(one.file, one.rule) for one in check_file(path)] == [
        (path, "unknown-key"),
        (str(tmp_path / "base.yaml"), "yaml-syntax"),
    ]


@pytest.mark.parametrize(
    "spelling", ["a.yaml", "./a.yaml", "sub/../a.yaml", "link.yaml", "sub/up.yaml"]
)
@pytest.mark.parametrize("through", [True, False], ids=["through-b", "itself"])
def test_a_circle_is_an_error_that_prints_the_chain(
    write: Write, tmp_path: Path, spelling: str, through: bool
) -> None:
    """The same file under any spelling, links included, ends the chain."""
    first = "./b.yaml" if through else spelling
    path = write({"a.yaml": f"extends: {first}\n", "b.yaml": f"extends: {spelling}\n", "sub/x": ""})
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    (tmp_path / "sub" / "up.yaml").symlink_to("../a.yaml")
    (finding,) = check_file(path)
    assert finding.rule == "extends-cycle"
    chain = [path, f"{tmp_path}/./b.yaml"] if through else [path]
    assert " -> ".join(chain) in finding.message


def test_a_circle_further_up(write: Write) -> None:
    """A circle among the parents is found as well."""
    path = write(
        {
            "c.yaml": "extends: a.yaml\n",
            "a.yaml": "extends: b.yaml\n",
            "b.yaml": "extends: a.yaml\n",
        }
    )
    (finding,) = check_file(path)
    assert finding.rule == "extends-cycle"
    assert Path(finding.file).name == "b.yaml"


def test_the_same_content_twice_is_no_circle(load: Load) -> None:
    """Two files with the same content are two files."""
    files = {
        "a/p.yaml": "extends: ../b/p.yaml\n",
        "b/p.yaml": "extends: ../c/p.yaml\n",
        "c/p.yaml": "",
    }
    assert load(files).tree == {}


def test_a_long_chain(load: Load) -> None:
    """A chain of more files than Python may recurse is fine, and the nearest child wins."""
    depth = 1500
    files = {f"p{n}.yaml": f"extends: p{n + 1}.yaml\nname: n{n}\n" for n in range(depth)}
    files[f"p{depth}.yaml"] = "limits: {max_images: 3}\n"
    loaded = load(files)
    assert loaded.tree == {"name": "n0", "limits": {"max_images": 3}}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("extends: nope", "unknown-preset"),
        ("extends: Moonshot-Kimi", "unknown-preset"),
        ("extends: 'moonshot-kimi '", "unknown-preset"),
        ("extends: ''", "wrong-type"),
        ("extends: 5", "wrong-type"),
        ("extends: [a]", "wrong-type"),
        ('extends: "a\\0/b"', "unreadable"),
        ("extends: ./nope.yaml", "unreadable"),
        ("extends: .yaml", "unreadable"),
    ],
)
def test_a_parent_that_is_none(write: Write, text: str, rule: str) -> None:
    """What `extends` names must be a text, and be there."""
    (finding,) = check_file(write({"p.yaml": text}))
    assert (finding.rule, finding.path, finding.line, finding.column) == (rule, "extends", 1, 10)


def test_extends_null_is_no_parent(load: Load) -> None:
    """`extends: null` is a file without a parent."""
    assert load("extends: null\nname: a\n").tree == {"name": "a"}


def test_a_preset_file_that_extends_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preset that extends itself is a circle, though one spelling is a name."""
    (tmp_path / "loop.yaml").write_text("extends: loop\n")
    monkeypatch.setattr(presets, "_folder", lambda: tmp_path)
    monkeypatch.setattr(presets, "preset_names", lambda: ("loop",))
    with pytest.raises(ProfileError) as caught:
        load_named("loop")
    assert [one.rule for one in caught.value.findings] == ["extends-cycle"]
    assert "loop -> loop" in str(caught.value)


def test_a_profile_is_loaded_from_any_working_directory(
    load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Presets are found beside the package, not beside the caller."""
    monkeypatch.chdir(tmp_path)
    assert load("extends: stepfun-step5").profile.max_images == 60
    assert os.listdir(tmp_path) == ["p.yaml"]  # noqa: PTH208 - and nothing was written
