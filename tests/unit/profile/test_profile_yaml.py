"""Reading YAML safely: scalars, keys, anchors, and files that are no profile at all."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gateway.profile import Loaded, ProfileError, check_file, source
from gateway.profile.compose import MAX_DEPTH, MAX_VALUES
from gateway.profile.findings import RULES
from gateway.profile.nodes import ScalarNode
from gateway.profile.source import MAX_FILE_BYTES, parse_document

Found = Callable[[str | bytes], list[tuple[int, int, str, str]]]
Said = Callable[[str | bytes], str]
Load = Callable[..., Loaded]


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers, the one over libyaml and the one in Python."""
    monkeypatch.setattr(source, "_LOADER", getattr(yaml, request.param))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("Off", "Off"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("false", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        ("nULL", "nULL"),
        ("010", 10),
        ("-0", 0),
        ("+1", 1),
        ("0o17", 15),
        ("0O17", "0O17"),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("0b11", "0b11"),
        ("1e5", 100000.0),
        ("1E+2", 100.0),
        ("1e0", 1.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1.e1", 10.0),
        ("-.5e-1", -0.05),
        (".", "."),
        ("e5", "e5"),
        ("1e", "1e"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("64_000", "64_000"),
        ("1,000", "1,000"),
        ("\u0661", "\u0661"),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("+.INF", float("inf")),
        (".iNF", ".iNF"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("=", "="),
        ('"010"', "010"),
        ("'true'", "true"),
        ("! 1", "1"),
        ("!!str 010", "010"),
        ('!!int "7"', 7),
        ("!!float 1", 1),
        ("!!bool true", True),
        ("!!null ''", None),
        ("|\n  1\n", "1\n"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    """A plain scalar is what YAML 1.2's core schema says, and nothing that 1.1 would add."""
    document, findings = parse_document(f"x: {text}\n", "t")
    node = document["x"]
    assert isinstance(node, ScalarNode)
    assert not findings
    assert (node.value, type(node.value)) == (value, type(value))


def test_nan_is_a_number_that_equals_nothing() -> None:
    """`.nan` is a float."""
    node = parse_document("x: .nan", "t")[0]["x"]
    assert isinstance(node, ScalarNode)
    assert node.is_number
    assert node.value != node.value
    assert not node.is_finite_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\nname: b\n", (2, 1, "duplicate-key", "")),
        ("limits:\n  max_images: 1\n  max_images: 1\n", (3, 3, "duplicate-key", "")),
        ("limits: {max_images: 1, 'max_images': 2}", (1, 25, "duplicate-key", "")),
        ("x-a: {1: a, 1: b}", (1, 13, "duplicate-key", "")),
        ("x-a: &a {}\nx-b: {<<: *a, <<: *a}\n", (2, 15, "duplicate-key", "")),
        ("a:\n\tb: 1\n", (2, 1, "yaml-syntax", "")),
        ("\tname: a\n", (1, 1, "yaml-syntax", "")),
        ("name: *u\n", (1, 7, "yaml-syntax", "")),
        ("name: [a\n", (2, 1, "yaml-syntax", "")),
        ("name: [a", (1, 9, "yaml-syntax", "")),
        ("name: @a\n", (1, 7, "yaml-syntax", "")),
        ("name: a: b\n", (1, 8, "yaml-syntax", "")),
        ("name: a\n x: b\n", (2, 3, "yaml-syntax", "")),
        ("name: 'a\x07'\n", (1, 9, "yaml-syntax", "")),
        ("x-a: 1\r\nname: a\x00", (2, 8, "yaml-syntax", "")),
        (b"name: a\nname2: \xff", (2, 8, "not-utf8", "")),
        (b"\xff\xfen\x00", (1, 1, "not-utf8", "")),
        (b"\xfe\xff\x00n", (1, 1, "not-utf8", "")),
        ("name: a\n---\nname: b\n", (2, 1, "several-documents", "")),
        ("- a\n- b\n", (1, 1, "top-level", "")),
        ("kimi\n", (1, 1, "top-level", "")),
        ("name: !!python/object/apply:os.system [x]\n", (1, 7, "yaml-tag", "")),
        ("name: !secret x\n", (1, 7, "yaml-tag", "")),
        ("name: !!timestamp 2024-01-01\n", (1, 7, "yaml-tag", "")),
        ("models: {aliases: !!set {a: null}}\n", (1, 19, "yaml-tag", "")),
        ("x-a: !!int kimi\n", (1, 6, "yaml-tag", "")),
        ("? [a]\n: 1\n", (1, 3, "wrong-type", "")),
        ("x-a: &a [*a]\n", (1, 10, "yaml-limits", "")),
        ("x-a: &a {<<: *a}\n", (1, 14, "yaml-limits", "")),
        ("x-a: &a {b: &b {<<: [*a]}}\n", (1, 22, "yaml-limits", "")),
        ("x-a: {<<: 5}\n", (1, 7, "merge-key", "")),
        ("x-b: &b 5\nx-a: {<<: [{a: 1}, *b]}\n", (2, 7, "merge-key", "")),
        ("x-a: " + "1" * 401, (1, 6, "yaml-limits", "")),
        ("x" * 129 + ": 1\n", (1, 1, "yaml-limits", "")),
        ("# " + "x" * MAX_FILE_BYTES, (1, 1, "yaml-limits", "")),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_fault_of_the_file_is_one_finding_with_its_place(
    found: Found, text: str | bytes, expected: tuple[int, int, str, str]
) -> None:
    """What is wrong with the YAML itself is one line, with line and column from 1."""
    first = found(text)[0]
    assert first == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: a\nx-a: 1\nname: b\n", ["'name'", "line 1", "line 3"]),
        ("a:\n\tb: 1\n", ["tab", "spaces"]),
        ("x-b: {<<: 5}", ["<<", "mapping"]),
        ("name: *nope", ["*nope", "anchor"]),
        ("[1]", ["list", "mapping"]),
        (b"\xef\xbb\xbfname: \xe9", ["0xe9", "UTF-8"]),
        ("name: !x y", ["!x", "not allowed"]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_fault_of_the_file_is_named(said: Said, text: str | bytes, words: list[str]) -> None:
    """The message names what was found."""
    message = said(text)
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# only a comment\n",
        "---\n",
        "--- \n...\n",
        "null\n",
        "{}\n",
        "\ufeff",
        "\ufeff# x\n",
    ],
    ids=repr,
)
def test_an_empty_file_is_an_empty_profile(load: Load, text: str) -> None:
    """A file that says nothing enforces nothing."""
    assert load(text).tree == {}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffname: a\n",
        "name: a\r\nmodels: {}\r\n",
        "name: a",
        "%YAML 1.2\n---\nname: a\n",
        "---\nname: a\n...\n",
        "---\nname: a\n... # the end\n",
        "'name': \"a\"\n",
        "? name\n: a\n",
    ],
    ids=repr,
)
def test_spellings_of_the_same_file(load: Load, text: str) -> None:
    """A byte order mark, line ends, directives and quotes make no difference."""
    assert load(text).tree == {"name": "a"}


@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        ("{<<: *base, max: 2}", {"min": 0, "max": 2}),
        ("{max: 2, <<: *base}", {"min": 0, "max": 2}),
        ("{<<: [*other, *base]}", {"min": 0.5, "max": 1}),
        ("{<<: {min: 1, max: 1}}", {"min": 1, "max": 1}),
        ("{<<: [], min: 1, max: 1}", {"min": 1, "max": 1}),
        ("*base", {"min": 0, "max": 1}),
    ],
)
def test_merge_keys_work_and_explicit_keys_win(
    load: Load, merge: str, expected: dict[str, float]
) -> None:
    """`<<` brings in keys: an explicit one wins wherever it stands, of several the first."""
    text = f"""
x-base: &base {{min: 0, max: 1}}
x-other: &other {{min: 0.5}}
sampling: {{params: {{temperature: {merge}}}}}
"""
    assert load(text).tree["sampling"] == {"params": {"temperature": expected}}


def test_a_quoted_merge_key_is_an_ordinary_key(found: Found) -> None:
    """Only a plain `<<` merges."""
    assert found('"<<": {name: a}') == [(1, 1, "unknown-key", "<<")]


def test_a_merged_key_is_judged_where_it_stands(found: Found) -> None:
    """A key that an anchor brings in is reported at the anchor, where it is to be mended."""
    text = "x-base: &base\n  mox: 1\nsampling:\n  params:\n    n: {<<: *base}\n"
    assert found(text)[0] == (2, 3, "unknown-key", "sampling.params.n.mox")


def test_an_anchor_may_be_given_anew(load: Load) -> None:
    """An alias means the last anchor of its name before it."""
    assert load("x-a: &n one\nx-b: &n two\nname: *n\n").tree == {"name": "two"}


def test_a_value_through_an_alias_stands_where_it_is_used(found: Found) -> None:
    """A scalar behind an alias is reported where the alias stands."""
    assert found("x-a: &v 9\nsampling:\n  params: {top_p: *v}\n") == [
        (3, 19, "out-of-domain", "sampling.params.top_p")
    ]


def test_free_keys_hold_anything(load: Load) -> None:
    """A top-level key that begins with `x-` is free, and says nothing."""
    text = "x-notes: {1: a, 2024-01-01: [.nan, .inf, null], {}: }\n".replace(", {}: ", "")
    assert load(text + "x-: 5\nname: a\n").tree == {"name": "a"}


def test_every_fault_that_can_be_read_past_is_reported(found: Found) -> None:
    """Repeated keys do not hide each other, nor unknown keys, nor bad values."""
    text = "name: 1\nname: 2\nlimits: {max_images: 0}\nlimits: {}\nbogus: 1\n"
    assert [one[:3] for one in found(text)] == [
        (1, 7, "wrong-type"),
        (2, 1, "duplicate-key"),
        (3, 22, "out-of-domain"),
        (4, 1, "duplicate-key"),
        (5, 1, "unknown-key"),
    ]


_BOMB = "x-0: &a0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"x-{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [
        _BOMB,
        "x-a: &a " + "y" * 100_000 + "\nx-b: [" + "*a," * 3000 + "]\n",
        "x-a: &a {"
        + ",".join(f"k{n}: 1" for n in range(200))
        + "}\n"
        + "".join(f"x-{n}: {{<<: *a}}\n" for n in range(100)),
        "x-a: [" + "1," * MAX_VALUES + "]",
        "x-a: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "x-a: &a " + "[" * 30 + "]" * 30 + "\nx-b: " + "[" * 30 + "*a" + "]" * 30,
        "- " * 1000,
        "? " * 1000,
    ],
    ids=["aliases", "long-text", "merges", "values", "depth", "depth-by-alias", "lists", "keys"],
)
def test_a_file_cannot_blow_up(found: Found, text: str) -> None:
    """Values, characters and depth are bounded, with what aliases stand for counted in full."""
    assert [one[2] for one in found(text)] == ["yaml-limits"]


@pytest.mark.parametrize("opening", ["[", "{", "[{a: "])
def test_deep_nesting_is_a_finding(found: Found, opening: str) -> None:
    """A hundred thousand brackets are one finding and no recursion."""
    (finding,) = found(opening * 50_000)
    assert finding[2] in {"yaml-limits", "yaml-syntax"}


def test_the_bounds_leave_room(load: Load) -> None:
    """A list of thousands of names, and values nested dozens deep, are fine."""
    names = [f"m{n}" for n in range(9000)]
    assert load(f"models: {{aliases: [{','.join(names)}]}}").profile.aliases == tuple(names)
    depth = MAX_DEPTH - 4
    load("params: {a: {default: " + "[" * depth + "]" * depth + "}}")


def test_many_faults_are_cut_short(found: Found) -> None:
    """A file with thousands of faults is told about a hundred of them."""
    assert len(found("params: {" + ",".join(f"p{n}: 1" for n in range(3000)) + "}")) == 100
    assert len(found("a: 1\n" * 3000)) <= 101


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "directory"),
        (lambda path: path.symlink_to(path.parent / "gone"), "link that points to nothing"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (os.mkfifo, "not a regular file"),
        (str, "no such file"),
        (lambda path: (path.write_text("name: a"), path.chmod(0)), "Permission denied"),
    ],
    ids=["directory", "dangling", "loop", "pipe", "missing", "locked"],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    """A directory, a dangling link, a pipe, a locked file: one finding that names the path."""
    path = tmp_path / "p.yaml"
    make(path)
    if words == "Permission denied" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    (finding,) = check_file(str(path))
    assert (finding.file, finding.line, finding.column) == (str(path), 1, 1)
    assert finding.rule == "unreadable"
    assert words in finding.message
    assert str(path) in finding.message


@pytest.mark.parametrize("path", ["", "a\x00b", "x" * 5000, "/dev/null", "."])
def test_a_path_that_is_none_is_a_finding(path: str) -> None:
    """No path at all, a null character, an endless name, a device, a folder."""
    (finding,) = check_file(path)
    assert finding.rule == "unreadable"
    assert "\n" not in str(finding)
    assert "\x00" not in str(finding)


def test_an_error_is_one_line_a_finding(load: Load, tmp_path: Path) -> None:
    """The error's text is `file:line:column: rule: message`, one line a finding."""
    with pytest.raises(ProfileError) as caught:
        load("limit: {}\nlimits: {max_images: 0}\n")
    path = tmp_path / "p.yaml"
    assert str(caught.value) == (
        f"{path}:1:1: unknown-key: limit: there is no such key; did you mean limits?\n"
        f"{path}:2:22: out-of-domain: limits.max_images: is 0; "
        "it must be a whole number of at least 1"
    )
    assert all(one.rule in RULES for one in caught.value.findings)


def test_a_name_cannot_forge_a_line(tmp_path: Path) -> None:
    """Control characters of a file's name, a key or a value never reach the terminal."""
    path = tmp_path / "a\nb\x1b[31m.yaml"
    path.write_text('"k\\ny\\e[0m": 1\nname: ["\\u2028"]\n')
    for finding in check_file(str(path)):
        assert str(finding).isprintable()


@pytest.mark.parametrize("text", ['name: "\\ud800"', 'name: "\\U00110000"', 'x-a: {"\\udfff": 1}'])
def test_an_escape_beyond_unicode_is_a_finding(found: Found, text: str) -> None:
    """Half a surrogate pair, or a character that does not exist, is no text."""
    assert [one[2] for one in found(text)] == ["yaml-syntax"]
