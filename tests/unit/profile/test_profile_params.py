"""`params`: one rule per field, what it comes to, and rules that contradict themselves."""

from collections.abc import Callable

import pytest

from gateway.profile import Loaded, ParamRule, Value

Found = Callable[[str], list[tuple[int, int, str, str]]]
Said = Callable[[str], str]
Load = Callable[..., Loaded]


def _text(text: str) -> Value:
    return Value(text, b'"%s"' % text.encode())


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{pin: 1.0}", ParamRule("a", numeric=True, pin=Value(1.0, b"1.0"))),
        ("{pin: 1.0, type: int}", ParamRule("a", numeric=True, whole=True, pin=Value(1, b"1"))),
        ("{pin: high}", ParamRule("a", pin=_text("high"))),
        ("{pin: '1'}", ParamRule("a", pin=_text("1"))),
        ("{pin: true}", ParamRule("a", pin=Value(True, b"true"))),
        ("{pin: [1, a]}", ParamRule("a", pin=Value([1, "a"], b'[1,"a"]'))),
        ("{pin: {b: 1.50}}", ParamRule("a", pin=Value({"b": 1.5}, b'{"b":1.50}'))),
        ("{pin: {}}", ParamRule("a", pin=Value({}, b"{}"))),
        ("{default: 'é\"'}", ParamRule("a", default=Value('é"', '"é\\""'.encode()))),
        ("{default: ''}", ParamRule("a", default=_text(""))),
        ("{default: 0}", ParamRule("a", numeric=True, default=Value(0, b"0"))),
        ("{default: false}", ParamRule("a", default=Value(False, b"false"))),
        ("{type: number}", ParamRule("a", numeric=True)),
        ("{type: int}", ParamRule("a", numeric=True, whole=True)),
        ("{min: 0}", ParamRule("a", numeric=True, minimum=Value(0, b"0"))),
        (
            "{min: .5, max: 1e3, exclusive_min: true, exclusive_max: true}",
            ParamRule(
                "a",
                numeric=True,
                minimum=Value(0.5, b"0.5"),
                maximum=Value(1000.0, b"1e3"),
                exclusive_minimum=True,
                exclusive_maximum=True,
            ),
        ),
        ("{values: [general, no]}", ParamRule("a", values=(_text("general"), _text("no")))),
        (
            "{values: [a, true, [1]]}",
            ParamRule("a", values=(_text("a"), Value(True, b"true"), Value([1], b"[1]"))),
        ),
        (
            "{values: [1, 2.0]}",
            ParamRule("a", numeric=True, values=(Value(1, b"1"), Value(2.0, b"2.0"))),
        ),
        ("{values: [0]}", ParamRule("a", numeric=True, values=(Value(0, b"0"),))),
        (
            "{min: 0, type: int, normalize: [[0, -1.0]]}",
            ParamRule(
                "a",
                numeric=True,
                whole=True,
                minimum=Value(0, b"0"),
                normalize=((Value(0, b"0"), Value(-1, b"-1")),),
            ),
        ),
        (
            "{normalize: [[a, b], [c, 1]]}",
            ParamRule("a", normalize=((_text("a"), _text("b")), (_text("c"), Value(1, b"1")))),
        ),
        (
            "{default: 9007199254740993}",
            ParamRule("a", numeric=True, default=Value(9007199254740993, b"9007199254740993")),
        ),
        ("{default: 010}", ParamRule("a", numeric=True, default=Value(10, b"10"))),
    ],
)
def test_what_a_rule_comes_to(load: Load, rule: str, expected: ParamRule) -> None:
    """A rule is numeric where it has min, max or type, or numbers for its values."""
    assert load(f"params: {{a: {rule}}}").profile.params == {"a": expected}


@pytest.mark.parametrize("field", ["n", "top_k"])
def test_fields_that_the_engine_types_as_integers(load: Load, field: str) -> None:
    """`1.0` on a whole-number field is `1` on the wire, also without `type: int`."""
    text = f"params: {{{field}: {{default: 1.0, values: [1.0, 2.5], normalize: [[1.0, 3.0]]}}}}"
    rule = load(text).profile.params[field]
    assert rule.default == Value(1, b"1")
    assert rule.values == (Value(1, b"1"), Value(2.5, b"2.5"))
    assert rule.normalize == ((Value(1, b"1"), Value(3, b"3")),)


def test_rules_keep_the_order_of_the_file(load: Load) -> None:
    """Fields stand as in the file."""
    assert list(load("params: {z: {pin: 1}, a: {pin: 2}, m: {pin: 3}}").profile.params) == list(
        "zam"
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{}", ("empty-rule", "params.a")),
        ("{exclusive_min: false}", ("empty-rule", "params.a")),
        ("{min: null}", ("empty-rule", "params.a")),
        ("{normalize: []}", ("empty-rule", "params.a.normalize")),
        ("{pin: 1, default: 1}", ("conflicting-keys", "params.a.pin")),
        ("{pin: 1, min: 0}", ("conflicting-keys", "params.a.pin")),
        ("{pin: 1, max: 1}", ("conflicting-keys", "params.a.pin")),
        ("{pin: 1, values: [1]}", ("conflicting-keys", "params.a.pin")),
        ("{max: 1, exclusive_min: true}", ("conflicting-keys", "params.a.exclusive_min")),
        ("{min: 1, exclusive_max: true}", ("conflicting-keys", "params.a.exclusive_max")),
        ("{min: 2, max: 1}", ("empty-range", "params.a")),
        ("{min: 1, max: 1, exclusive_min: true}", ("empty-range", "params.a")),
        ("{min: 1, max: 1, exclusive_max: true}", ("empty-range", "params.a")),
        (
            "{min: 0, max: 5e-324, exclusive_min: true, exclusive_max: true}",
            ("empty-range", "params.a"),
        ),
        ("{min: 0.2, max: 0.8, type: int}", ("empty-range", "params.a")),
        (
            "{min: 1, max: 2, exclusive_min: true, exclusive_max: true, type: int}",
            ("empty-range", "params.a"),
        ),
        ("{values: []}", ("empty-range", "params.a.values")),
        ("{values: [3, 4], max: 2}", ("empty-range", "params.a.values")),
        ("{values: [1.5], type: int}", ("empty-range", "params.a.values")),
        ("{default: 3, max: 2}", ("refused-value", "params.a.default")),
        ("{default: 0, min: 0, exclusive_min: true}", ("refused-value", "params.a.default")),
        ("{default: 1.5, type: int}", ("refused-value", "params.a.default")),
        ("{default: c, values: [a, b]}", ("refused-value", "params.a.default")),
        ("{default: 1, values: [2]}", ("refused-value", "params.a.default")),
        ("{default: true, values: [a, b]}", ("refused-value", "params.a.default")),
        ("{pin: 1.5, type: int}", ("refused-value", "params.a.pin")),
        ("{min: 1, normalize: [[0, -1]]}", ("refused-value", "params.a.normalize[0]")),
        ("{values: [a], normalize: [[a, b], [b, c]]}", ("refused-value", "params.a.normalize[1]")),
        ("{pin: a, normalize: [[b, c]]}", ("refused-value", "params.a.normalize[0]")),
        ("{min: 0, normalize: [[0, 1], [0.0, 2]]}", ("refused-value", "params.a.normalize[1]")),
        ("{values: [1, a]}", ("mixed-values", "params.a.values[1]")),
        ("{values: [1, '1']}", ("mixed-values", "params.a.values[1]")),
        ("{values: [1, true]}", ("mixed-values", "params.a.values[1]")),
        ("{default: high, min: 0}", ("mixed-values", "params.a.default")),
        ("{default: '1', type: number}", ("mixed-values", "params.a.default")),
        ("{pin: true, type: int}", ("mixed-values", "params.a.pin")),
        ("{min: 0, normalize: [[none, 0]]}", ("mixed-values", "params.a.normalize[0]")),
        ("{pin: [null]}", ("wrong-type", "params.a.pin[0]")),
        ("{default: {b: {c: null}}}", ("wrong-type", "params.a.default.b.c")),
        ("{values: [a, null]}", ("wrong-type", "params.a.values[1]")),
        ("{normalize: [[a, null]]}", ("wrong-type", "params.a.normalize[0][1]")),
        ("{values: a}", ("wrong-type", "params.a.values")),
        ("{normalize: {a: b}}", ("wrong-type", "params.a.normalize")),
        ("{normalize: [[a]]}", ("wrong-type", "params.a.normalize[0]")),
        ("{normalize: [[a, b, c]]}", ("wrong-type", "params.a.normalize[0]")),
        ("{normalize: [a]}", ("wrong-type", "params.a.normalize[0]")),
        ("{min: high}", ("wrong-type", "params.a.min")),
        ("{min: '1'}", ("wrong-type", "params.a.min")),
        ("{min: true}", ("wrong-type", "params.a.min")),
        ("{min: .nan}", ("out-of-domain", "params.a.min")),
        ("{max: .inf}", ("out-of-domain", "params.a.max")),
        ("{pin: .nan}", ("out-of-domain", "params.a.pin")),
        ("{default: [1e999]}", ("out-of-domain", "params.a.default[0]")),
        ("{min: 0, exclusive_min: 1}", ("wrong-type", "params.a.exclusive_min")),
        ("{type: float}", ("out-of-domain", "params.a.type")),
        ("{type: 1}", ("wrong-type", "params.a.type")),
        ("{pin: {1: a}}", ("wrong-type", "params.a.pin.1")),
        ("[1]", ("wrong-type", "params.a")),
        ("0.5", ("wrong-type", "params.a")),
    ],
)
def test_a_rule_that_cannot_be(found: Found, rule: str, expected: tuple[str, str]) -> None:
    """A rule must say something, accept something, and accept its own values."""
    assert [one[2:] for one in found(f"params: {{a: {rule}}}")] == [expected]


@pytest.mark.parametrize(
    "rule",
    [
        "{min: 1, max: 1}",
        "{min: 0, max: 1, exclusive_min: true, exclusive_max: true}",
        "{min: 0, max: 2, exclusive_min: true, exclusive_max: true, type: int}",
        "{min: 0.5, max: 1.5, type: int}",
        "{min: 0, exclusive_min: false, exclusive_max: false}",
        "{min: -1e308, max: 1e308, default: 1e308}",
        "{default: 1, values: [1.0]}",
        "{values: [1, 2, 3, 4], max: 2}",
        "{pin: 0, normalize: [[0.0, -1]]}",
        "{pin: 1, type: int}",
        "{default: {b: [1, 2.0]}, values: [{b: [1.0, 2]}]}",
        "{values: [a, a]}",
        "{min: 0, normalize: [[0, none]]}",
        "{default: 3.0, type: int, min: 3, max: 3}",
    ],
)
def test_a_rule_at_the_edge(found: Found, rule: str) -> None:
    """What accepts something is fine, however little."""
    assert found(f"params: {{a: {rule}}}") == []


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("model", "models.aliases"),
        ("messages", "limits.max_images"),
        ("stream", "client"),
        ("max_tokens", "output.max_tokens"),
        ("max_completion_tokens", "output.max_tokens"),
    ],
)
def test_fields_that_no_rule_governs(found: Found, said: Said, field: str, words: str) -> None:
    """Some fields have sections of their own, or cannot be governed at all."""
    text = f"params: {{{field}: {{pin: 1}}}}"
    assert found(text) == [(1, 10, "forbidden-field", f"params.{field}")]
    assert words in said(text)


def test_a_field_is_governed_once(found: Found, said: Said) -> None:
    """A field in both sections is an error that names both places."""
    text = "sampling:\n  params:\n    n: 1\nparams:\n  top_p: {min: 0}\n  n: {min: 1}\n"
    assert found(text) == [(3, 5, "governed-twice", "sampling.params.n")]
    assert "params.n" in said(text)
    assert ":6)" in said(text)


def test_both_sections_in_one_file(load: Load) -> None:
    """The two dialects mix where no field is in both."""
    profile = load("sampling: {params: {n: 1}}\nparams: {temperature: {min: 0, max: 1}}").profile
    assert profile.sampling is not None
    assert [rule.field for rule in profile.sampling.rules] == ["n"]
    assert list(profile.params) == ["temperature"]


def test_all_faults_of_a_file_are_found(found: Found) -> None:
    """One bad rule does not hide the next."""
    text = (
        "params:\n  a: {min: 2, max: 1}\n  b: {}\n  c: {default: x, values: [y]}\n"
        "limits: {max_images: 0}\n"
    )
    assert [one[2] for one in found(text)] == [
        "empty-range",
        "empty-rule",
        "refused-value",
        "out-of-domain",
    ]


def test_messages_of_a_refused_default(said: Said) -> None:
    """The message names the value and what the rule accepts, as the file spells it."""
    assert said("params: {a: {default: 3, max: 2.50}}") == (
        "params.a.default: is 3, which its own rule does not accept: it must be a number up to 2.50"
    )
    assert said("params: {a: 0.5}") == (
        "params.a: is 0.5; it must be a mapping, such as {pin: 0.5}"
    )
