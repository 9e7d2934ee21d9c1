"""Keys and values of every section but `params`: domains, types, and how numbers are spelled."""

from collections.abc import Callable

import pytest

from gateway.profile import (
    Band,
    Conflict,
    Exact,
    Loaded,
    OnExceed,
    OutputBudget,
    Profile,
    Sampling,
    Value,
)

Found = Callable[[str], list[tuple[int, int, str, str]]]
Said = Callable[[str], str]
Load = Callable[..., Loaded]

BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("limit: {}", "limit", "limits"),
        ("Limits: {}", "Limits", "limits"),
        ("LIMITS: {}", "LIMITS", "limits"),
        ("limits: {max_image: 1}", "limits.max_image", "max_images"),
        ("output: {max_token: {}}", "output.max_token", "max_tokens"),
        (
            "output: {max_tokens: {cap: 1, on_excess: clamp}}",
            "output.max_tokens.on_excess",
            "on_exceed",
        ),
        ("sampling: {params: {temprature: 1}}", "sampling.params.temprature", "temperature"),
        ("sampling: {params: {max_tokens: 5}}", "sampling.params.max_tokens", "output.max_tokens"),
        ("sampling: {params: {seed: 5}}", "sampling.params.seed", "params takes any other field"),
        ("sampling: {params: {n: {mim: 1, max: 2, min: 1}}}", "sampling.params.n.mim", "min"),
        ("params: {n: {minimum: 1}}", "params.n.minimum", "min"),
        ("model: {aliases: []}", "model", "models"),
        ("models: {alias: []}", "models.alias", "aliases"),
        ("errors: {bad_request: x}", "errors.bad_request", "bad_request_type"),
        ("protocols: {chats: true}", "protocols.chats", "chat"),
        ("version: 1", "version", "known here: name, extends"),
        ("x: 1", "x", "known here"),
        ("X-a: 1", "X-a", "known here"),
        ("limits: {x-a: 1}", "limits.x-a", "known here: max_body_bytes, max_images"),
        ("'': 1", "", "known here"),
    ],
)
def test_an_unknown_key_is_an_error_at_every_depth(
    found: Found, said: Said, text: str, path: str, hint: str
) -> None:
    """The finding names the whole path of the key, and what was probably meant."""
    assert [(one[2], one[3]) for one in found(text)] == [("unknown-key", path)]
    assert hint in said(text)


@pytest.mark.parametrize("key", ["1", "true", "null", "~", "1.5", "''", ".nan"])
def test_a_key_is_text(found: Found, key: str) -> None:
    """A key that YAML reads as a number, boolean or null is no field's name."""
    rule = "unknown-key" if key == "''" else "wrong-type"
    assert [one[2] for one in found(f"params: {{{key}: {{pin: a}}}}")] == [rule]


@pytest.mark.parametrize(
    ("field", "text", "wire"),
    [
        ("temperature", "0", b"0"),
        ("temperature", "2", b"2"),
        ("temperature", "1e0", b"1e0"),
        ("temperature", "1.0", b"1.0"),
        ("temperature", "0.70", b"0.70"),
        ("temperature", ".5", b"0.5"),
        ("temperature", "1.", b"1.0"),
        ("temperature", "+1.5", b"1.5"),
        ("temperature", "-0", b"-0"),
        ("temperature", "0001.5", b"1.5"),
        ("temperature", "010e-1", b"10e-1"),
        ("temperature", "0x1", b"1"),
        ("temperature", "0o2", b"2"),
        ("temperature", "0.1000000000000000055", b"0.1000000000000000055"),
        ("top_p", "0.95", b"0.95"),
        ("top_p", "1", b"1"),
        ("top_p", "5e-324", b"5e-324"),
        ("top_k", "1", b"1"),
        ("top_k", "-1", b"-1"),
        ("top_k", "-1.0", b"-1"),
        ("top_k", "20.0", b"20"),
        ("top_k", "1e3", b"1000"),
        ("top_k", str(BIG), b"9223372036854775807"),
        ("top_k", f"{BIG}.0", b"9223372036854775807"),
        ("min_p", "0", b"0"),
        ("min_p", "1", b"1"),
        ("repetition_penalty", "2", b"2"),
        ("frequency_penalty", "-2", b"-2"),
        ("presence_penalty", "2.0", b"2.0"),
        ("n", "1", b"1"),
        ("n", "1.0", b"1"),
        ("n", "128", b"128"),
        ("n", "0x10", b"16"),
        ("n", "010", b"10"),
    ],
)
def test_an_exact_value_and_its_spelling(load: Load, field: str, text: str, wire: bytes) -> None:
    """Whole-number fields are written as integers, others as the operator spelled them."""
    sampling = load(f"sampling: {{params: {{{field}: {text}}}}}").profile.sampling
    assert sampling is not None
    (rule,) = sampling.rules
    assert isinstance(rule, Exact)
    assert (rule.field, rule.value.wire) == (field, wire)
    assert float(rule.value.value) == float(wire)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("temperature", "-0.1", "out-of-domain"),
        ("temperature", "2.0000001", "out-of-domain"),
        ("temperature", ".nan", "out-of-domain"),
        ("temperature", ".inf", "out-of-domain"),
        ("temperature", "1e999", "out-of-domain"),
        ("temperature", "true", "wrong-type"),
        ("temperature", '"1"', "wrong-type"),
        ("temperature", "hot", "wrong-type"),
        ("temperature", "[1]", "wrong-type"),
        ("temperature", "12:30", "wrong-type"),
        ("top_p", "0", "out-of-domain"),
        ("top_p", "1e-400", "out-of-domain"),
        ("top_p", "1.1", "out-of-domain"),
        ("top_k", "0", "out-of-domain"),
        ("top_k", "-2", "out-of-domain"),
        ("top_k", "1.5", "out-of-domain"),
        ("top_k", str(BIG + 1), "out-of-domain"),
        ("top_k", f"{BIG + 1}.0", "out-of-domain"),
        ("top_k", "1e300", "out-of-domain"),
        ("top_k", "1e-300", "out-of-domain"),
        ("min_p", "1.01", "out-of-domain"),
        ("repetition_penalty", "0", "out-of-domain"),
        ("repetition_penalty", "2.1", "out-of-domain"),
        ("frequency_penalty", "-2.1", "out-of-domain"),
        ("presence_penalty", "2.1", "out-of-domain"),
        ("n", "0", "out-of-domain"),
        ("n", "129", "out-of-domain"),
        ("n", "1.5", "out-of-domain"),
        ("n", "yes", "wrong-type"),
        ("temperature", "{min: 1, max: 0}", "empty-range"),
        ("temperature", "{min: 0}", "missing-key"),
        ("temperature", "{max: 0}", "missing-key"),
        ("top_k", "{min: -1, max: 5}", "out-of-domain"),
        ("top_k", "{min: 1, max: 5.5}", "out-of-domain"),
        ("n", "{min: 1, max: 129}", "out-of-domain"),
        ("top_p", "{min: 0, max: 1}", "out-of-domain"),
        ("temperature", "{min: a, max: 1}", "wrong-type"),
        ("temperature", "{min: .nan, max: 1}", "out-of-domain"),
    ],
)
def test_a_value_outside_its_domain(
    found: Found, said: Said, field: str, text: str, rule: str
) -> None:
    """The finding names the key, the value and the domain."""
    profile = f"sampling: {{params: {{{field}: {text}}}}}"
    (finding,) = found(profile)
    assert finding[2] == rule
    assert finding[3].startswith(f"sampling.params.{field}")
    assert said(profile).startswith(f"sampling.params.{field}")


def test_the_message_of_a_value_outside_its_domain(said: Said) -> None:
    """Key, value, and what would be right, in one line each."""
    assert said(
        "sampling:\n  params:\n    n: 129\n    top_k: 0\n    top_p: 0\n    min_p: [1]\n"
    ) == (
        "sampling.params.n: is 129; it must be a whole number from 1 to 128\n"
        "sampling.params.top_k: is 0; it must be a whole number of at least 1, or exactly -1\n"
        "sampling.params.top_p: is 0; it must be a number over 0, up to 1\n"
        "sampling.params.min_p: is a list; it must be a number from 0 to 1, or a band {min, max}"
    )


def test_a_band(load: Load) -> None:
    """Both ends are included and keep their spelling; whole ones are integers."""
    text = "sampling: {params: {n: {min: 1.0, max: 4}, temperature: {min: 0.0, max: 0.0}}}"
    assert load(text).profile.sampling == Sampling(
        Conflict.REJECT,
        (
            Band("temperature", Value(0.0, b"0.0"), Value(0.0, b"0.0")),
            Band("n", Value(1, b"1"), Value(4, b"4")),
        ),
    )


def test_rules_stand_in_the_order_of_reporting(load: Load) -> None:
    """The first field in the table is reported first, whatever the order in the file."""
    sampling = load("sampling: {params: {n: 1, top_p: 1, temperature: 1}}").profile.sampling
    assert sampling is not None
    assert [rule.field for rule in sampling.rules] == ["temperature", "top_p", "n"]


@pytest.mark.parametrize(
    ("text", "conflict"),
    [
        ("sampling: {params: {n: 1}}", Conflict.REJECT),
        ("sampling: {conflict: reject, params: {n: 1}}", Conflict.REJECT),
        ("sampling: {conflict: allow, params: {n: 1}}", Conflict.ALLOW),
    ],
)
def test_the_conflict_mode(load: Load, text: str, conflict: Conflict) -> None:
    """A contract rejects unless it says allow."""
    sampling = load(text).profile.sampling
    assert sampling is not None
    assert sampling.conflict is conflict


@pytest.mark.parametrize(
    "text", ["sampling: {}", "sampling: {params: {}}", "sampling: {conflict: allow}"]
)
def test_no_rules_are_no_contract(load: Load, text: str) -> None:
    """An empty section is fine and enforces nothing."""
    assert load(text).profile == Profile()


def test_a_band_where_conflicts_are_allowed(found: Found) -> None:
    """A band under `allow` would do nothing, which is an error at the band."""
    text = "sampling:\n  conflict: allow\n  params:\n    n: 1\n    top_p: {min: 0.1, max: 1}\n"
    assert found(text) == [(5, 5, "useless-band", "sampling.params.top_p")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{cap: 5}", OutputBudget(5, OnExceed.REJECT, None)),
        ("{cap: 1e5, on_exceed: clamp, default: 10.0}", OutputBudget(100000, OnExceed.CLAMP, 10)),
        ("{cap: 1, default: 1}", OutputBudget(1, OnExceed.REJECT, 1)),
        ("{cap: 64000.0}", OutputBudget(64000)),
        ("{cap: 0x10}", OutputBudget(16)),
        (f"{{cap: {BIG}}}", OutputBudget(BIG)),
    ],
)
def test_an_output_budget(load: Load, text: str, expected: OutputBudget) -> None:
    """Whole numbers in any spelling; what is written in is the default, or else the cap."""
    output = load(f"output: {{max_tokens: {text}}}").profile.output
    assert output == expected
    assert output is not None
    assert output.written == (expected.default or expected.cap)


@pytest.mark.parametrize(
    ("text", "rule", "key"),
    [
        ("{}", "missing-key", ""),
        ("{default: 5}", "missing-key", ""),
        ("{cap: null}", "missing-key", ""),
        ("{cap: 0}", "out-of-domain", ".cap"),
        ("{cap: -1}", "out-of-domain", ".cap"),
        ("{cap: 1.5}", "out-of-domain", ".cap"),
        ("{cap: 1e300}", "out-of-domain", ".cap"),
        ("{cap: .inf}", "out-of-domain", ".cap"),
        ("{cap: true}", "wrong-type", ".cap"),
        ("{cap: 64_000}", "wrong-type", ".cap"),
        ('{cap: "64000"}', "wrong-type", ".cap"),
        ("{cap: 64KiB}", "wrong-type", ".cap"),
        ("{cap: 5, default: 6}", "refused-value", ".default"),
        ("{cap: 5, default: 0}", "out-of-domain", ".default"),
        ("{cap: 5, on_exceed: clip}", "out-of-domain", ".on_exceed"),
        ("{cap: 5, on_exceed: true}", "wrong-type", ".on_exceed"),
        ("5", "wrong-type", ""),
    ],
)
def test_an_output_budget_that_is_none(found: Found, text: str, rule: str, key: str) -> None:
    """A cap is needed, whole and at least 1; a default lies within it."""
    assert [one[2:] for one in found(f"output: {{max_tokens: {text}}}")] == [
        (rule, f"output.max_tokens{key}")
    ]


def test_how_to_mend_a_number_that_is_text(said: Said) -> None:
    """A number in quotes or with underscores is shown as it should be written."""
    for text in ("64_000", '"64000"', "'64000'"):
        assert said(f"output: {{max_tokens: {{cap: {text}}}}}").endswith("; write 64000")


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1", 1),
        ("1e6", 1000000),
        ("0x10", 16),
        ('"1024"', 1024),
        ("1B", 1),
        ("1KiB", 1024),
        ("2 KiB", 2048),
        ("2   MiB", 2 * 1024**2),
        ('" 2 MiB "', 2 * 1024**2),
        ("128MiB", 128 * 1024**2),
        ("3GiB", 3 * 1024**3),
        ("007KiB", 7 * 1024),
    ],
)
def test_a_size(load: Load, text: str, size_bytes: int) -> None:
    """A whole number, or digits alone or with a binary unit, spaces between allowed."""
    assert load(f"limits: {{max_body_bytes: {text}}}").profile.max_body_bytes == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-1",
        "1.5",
        "0KiB",
        "1.5MiB",
        "1kib",
        "1KB",
        "1MB",
        "1M",
        "1 TiB",
        "KiB",
        "-1KiB",
        '"1_0"',
        '""',
        "true",
        "[1]",
        ".inf",
        "9999999999GiB",
        '"1\\tKiB"',
        '"1KiB\\n"',
        "1e3KiB",
        "\u0661KiB",
    ],
)
def test_a_size_that_is_none(found: Found, text: str) -> None:
    """No fractions, no decimal units, no other spelling."""
    (finding,) = found(f"limits: {{max_body_bytes: {text}}}")
    assert finding[2] in {"out-of-domain", "wrong-type"}
    assert finding[3] == "limits.max_body_bytes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aliases: []", ()),
        ("aliases: [kimi]", ("kimi",)),
        ("aliases: [no, 12:30, '1']", ("no", "12:30", "1")),
        ("aliases:\n  - kimi latest\n  - é", ("kimi latest", "é")),
    ],
)
def test_aliases(load: Load, text: str, expected: tuple[str, ...]) -> None:
    """A list of texts, in the file's order."""
    assert load(f"models:\n  {text}\n").profile.aliases == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kimi", [("wrong-type", "models.aliases")]),
        ("5", [("wrong-type", "models.aliases")]),
        ("{kimi: 1}", [("wrong-type", "models.aliases")]),
        ("[kimi, 1, true, null]", [("wrong-type", f"models.aliases[{n}]") for n in (1, 2, 3)]),
        ("[1.5, [a], {}]", [("wrong-type", f"models.aliases[{n}]") for n in (0, 1, 2)]),
        ("['']", [("out-of-domain", "models.aliases[0]")]),
    ],
)
def test_aliases_that_are_none(found: Found, text: str, expected: list[tuple[str, str]]) -> None:
    """Text is no list of letters, and each entry that is no text is named."""
    assert [one[2:] for one in found(f"models: {{aliases: {text}}}")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: no", Profile(name="no")),
        ("name: ''", Profile(name="")),
        ("limits: {max_images: 1e1}", Profile(max_images=10)),
        ("errors: {bad_request_type: a b}", Profile(bad_request_type="a b")),
        ("protocols: {chat: true}", Profile()),
        (
            "protocols: {chat: false, messages: FALSE}",
            Profile(protocols_off=frozenset({"chat", "messages"})),
        ),
        ("limits: {}\noutput: {}\nparams: {}\nmodels: {}\nerrors: {}\nprotocols: {}", Profile()),
    ],
)
def test_what_the_other_sections_come_to(load: Load, text: str, expected: Profile) -> None:
    """Each key reaches the profile, and what is left out has its default."""
    assert load(text).profile == expected


@pytest.mark.parametrize(
    ("text", "rule", "path"),
    [
        ("name: 5", "wrong-type", "name"),
        ("name: true", "wrong-type", "name"),
        ("name: [a]", "wrong-type", "name"),
        ("limits: {max_images: 0}", "out-of-domain", "limits.max_images"),
        ("limits: {max_images: 1.5}", "out-of-domain", "limits.max_images"),
        ("limits: {max_images: 5KiB}", "wrong-type", "limits.max_images"),
        ("errors: {bad_request_type: ''}", "out-of-domain", "errors.bad_request_type"),
        ("errors: {bad_request_type: 400}", "wrong-type", "errors.bad_request_type"),
        ("protocols: {chat: no}", "wrong-type", "protocols.chat"),
        ("protocols: {chat: 0}", "wrong-type", "protocols.chat"),
        ("protocols: [chat]", "wrong-type", "protocols"),
        ("sampling: {conflict: maybe}", "out-of-domain", "sampling.conflict"),
        ("sampling: {conflict: [reject]}", "wrong-type", "sampling.conflict"),
        ("sampling: {params: [n]}", "wrong-type", "sampling.params"),
        ("sampling: 5", "wrong-type", "sampling"),
        ("params: {n: 5}", "wrong-type", "params.n"),
        ("limits: text", "wrong-type", "limits"),
    ],
)
def test_a_wrong_type_is_an_error(found: Found, text: str, rule: str, path: str) -> None:
    """Each key takes its type, and a section takes a mapping."""
    assert [one[2:] for one in found(text)] == [(rule, path)]


def test_findings_stand_at_the_value_or_the_key(found: Found) -> None:
    """A scalar or a list is reported at itself, a mapping at its key; all count from 1."""
    text = "name:\n  5\nsampling:\n  - 1\noutput:\n  max_tokens:\n    default: 1\n"
    assert found(text) == [
        (2, 3, "wrong-type", "name"),
        (4, 3, "wrong-type", "sampling"),
        (6, 3, "missing-key", "output.max_tokens"),
    ]


def test_columns_count_characters(found: Found) -> None:
    """A column is a character, not a byte."""
    assert found('{"x-🙂é": 1, name: 5}') == [(1, 19, "wrong-type", "name")]


def test_a_long_value_is_shortened_in_a_message(said: Said) -> None:
    """A message stays one line of readable length, whatever the value."""
    assert said(f"protocols: {{chat: {'y' * 5000}}}") == (
        f'protocols.chat: is "{"y" * 60}..."; it must be true or false'
    )
