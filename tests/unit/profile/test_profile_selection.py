"""Which profile is in effect, the flags beside it, the presets, and swapping one profile in."""

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from gateway.profile import (
    Band,
    Choice,
    Conflict,
    Exact,
    Loaded,
    OnExceed,
    OutputBudget,
    ParamRule,
    Profile,
    ProfileError,
    ProfileService,
    Sampling,
    Value,
    load_file,
    load_named,
    load_preset,
    override_sampling,
    preset_names,
    preset_text,
    presets,
    render_yaml,
    select,
    selection,
)

Write = Callable[..., str]
Load = Callable[..., Loaded]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Where an image's profile would be; nothing is there yet."""
    return tmp_path / "etc" / "profile.yaml"


@pytest.fixture
def paths(write: Write, image: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files that say who they are, and the folder with them as working directory."""
    write(
        {f"{name}.yaml": f"name: {name}\n" for name in ("flag", "env")} | {"p.yml": "name: yml\n"}
    )
    monkeypatch.chdir(image.parent.parent)
    return {"image_path": str(image)}


@pytest.mark.parametrize(
    ("given", "image_text", "chosen"),
    [
        (("flag.yaml", None, "env.yaml"), "name: image", "flag"),
        (("flag.yaml", None, None), "bogus: [", "flag"),
        (("./flag.yaml", None, "nope"), None, "flag"),
        ((None, "moonshot-kimi", "nope.yaml"), "bogus: [", "moonshot-kimi"),
        ((None, None, "env.yaml"), "bogus: [", "env"),
        ((None, None, "./env.yaml"), None, "env"),
        ((None, None, "p.yml"), None, "yml"),
        ((None, None, "moonshot-kimi"), "name: image", "moonshot-kimi"),
        ((None, None, "moonshot-kimi\n"), None, "moonshot-kimi"),
        ((None, None, " env.yaml "), None, "env"),
        ((None, None, ""), "name: image", "image"),
        ((None, None, " \n"), "name: image", "image"),
        ((None, None, None), "name: image", "image"),
        ((None, None, None), None, "openai-compatible"),
        ((None, None, ""), None, "openai-compatible"),
    ],
)
def test_the_first_source_that_is_set_wins(
    paths: dict[str, str],
    image: Path,
    given: tuple[str | None, str | None, str | None],
    image_text: str | None,
    chosen: str,
) -> None:
    """File flag, preset flag, environment, image, built-in; lower ones are not read."""
    if image_text is not None:
        image.parent.mkdir()
        image.write_text(image_text)
    file, name, env = given
    assert select(file=file, name=name, env=env, **paths).loaded.profile.name == chosen


@pytest.mark.parametrize(
    ("file", "name", "env", "rule"),
    [
        ("flag.yaml", "moonshot-kimi", None, "selection"),
        ("nope.yaml", None, "env.yaml", "unreadable"),
        ("moonshot-kimi", None, None, "unreadable"),
        ("", None, "env.yaml", "unreadable"),
        (None, "flag.yaml", None, "unknown-preset"),
        (None, "./flag.yaml", None, "unknown-preset"),
        (None, "", "env.yaml", "unknown-preset"),
        (None, "moonshot-kimi ", None, "unknown-preset"),
        (None, None, "Moonshot-Kimi", "unknown-preset"),
        (None, None, "nope", "unknown-preset"),
        (None, None, "nope.yaml", "unreadable"),
        (None, None, "./moonshot-kimi", "unreadable"),
    ],
)
def test_a_source_that_is_set_but_broken_stops(
    paths: dict[str, str], file: str | None, name: str | None, env: str | None, rule: str
) -> None:
    """There is no falling through; a path flag is always a path, a preset flag always a preset."""
    with pytest.raises(ProfileError) as caught:
        select(file=file, name=name, env=env, **paths)
    assert [one.rule for one in caught.value.findings] == [rule]


@pytest.mark.parametrize(
    "make",
    [
        lambda image: image.write_text("bogus: [\n"),
        lambda image: image.write_text("limits: {max_images: 0}\n"),
        lambda image: image.symlink_to("gone"),
        lambda image: image.mkdir(),
    ],
    ids=["syntax", "value", "dangling", "directory"],
)
def test_a_broken_image_profile_stops(
    paths: dict[str, str], image: Path, make: Callable[[Path], object]
) -> None:
    """Where something is at the image's path, it is the profile, or nothing starts."""
    image.parent.mkdir()
    make(image)
    with pytest.raises(ProfileError):
        select(file=None, name=None, env=None, **paths)


def test_an_image_path_that_cannot_be_looked_at_stops() -> None:
    """What may be there must not be taken for absent."""
    with pytest.raises(ProfileError) as caught:
        select(file=None, name=None, env=None, image_path="/" + "x" * 300 + "/p.yaml")
    assert caught.value.findings[0].rule == "unreadable"


def test_an_image_path_below_a_file_is_absent(write: Write) -> None:
    """A path that runs through a file is no profile."""
    image_path = write({"file": ""}) + "/profile.yaml"
    choice = select(file=None, name=None, env=None, image_path=image_path)
    assert choice.loaded.source == "openai-compatible"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"file": "flag.yaml"}, "--api-profile-file flag.yaml"),
        ({"name": "moonshot-kimi"}, "--api-profile moonshot-kimi"),
        ({"env": " env.yaml\n"}, "SGLANG_ROUTER_API_PROFILE=env.yaml"),
        ({}, "nothing is selected: the built-in default"),
    ],
)
def test_why_a_profile_was_chosen(
    paths: dict[str, str], arguments: dict[str, str], why: str
) -> None:
    """The choice says in words which source named the profile."""
    file, name, env = (arguments.get(key) for key in ("file", "name", "env"))
    assert select(file=file, name=name, env=env, **paths).why == why


def test_an_unknown_preset_lists_the_known_ones() -> None:
    """The message names the text, the presets, and a near one."""
    with pytest.raises(ProfileError) as caught:
        load_named("Moonshot-Kimi")
    message = caught.value.findings[0].message
    assert "'Moonshot-Kimi'" in message
    assert "did you mean moonshot-kimi?" in message
    assert "moonshot-kimi, openai-compatible, stepfun-step5" in message


# presets


def _number(text: str) -> Value:
    return Value(json.loads(text), text.encode())


_KIMI = Profile(
    name="moonshot-kimi",
    sampling=Sampling(
        Conflict.REJECT,
        (
            Band("temperature", _number("0"), _number("1")),
            Exact("top_p", _number("0.95")),
            Exact("top_k", _number("1000")),
            Exact("frequency_penalty", _number("0")),
            Exact("presence_penalty", _number("0")),
            Exact("n", _number("1")),
        ),
    ),
)


def _range(field: str, low: str, high: str | None = None, **more: object) -> ParamRule:
    return ParamRule(
        field,
        numeric=True,
        minimum=_number(low),
        maximum=None if high is None else _number(high),
        **more,  # type: ignore[arg-type]
    )


_STEP = Profile(
    name="stepfun-step5",
    params={
        "temperature": _range("temperature", "0", "2", default=_number("1.0")),
        "top_p": _range("top_p", "0", "1", default=_number("0.95"), exclusive_minimum=True),
        "top_k": _range("top_k", "0", whole=True, normalize=((_number("0"), _number("-1")),)),
        "frequency_penalty": _range("frequency_penalty", "-2", "2"),
        "presence_penalty": _range("presence_penalty", "-2", "2"),
        "n": _range("n", "1", "8", whole=True),
        "reasoning_format": ParamRule(
            "reasoning_format",
            values=(Value("general", b'"general"'), Value("deepseek-style", b'"deepseek-style"')),
        ),
    },
    output=OutputBudget(64000, OnExceed.CLAMP),
    max_body_bytes=128 * 1024**2,
    max_images=60,
    bad_request_type="request_params_invalid",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai-compatible", Profile(name="openai-compatible")),
        ("moonshot-kimi", _KIMI),
        ("stepfun-step5", _STEP),
    ],
)
def test_what_a_preset_enforces(name: str, expected: Profile) -> None:
    """The built-in profiles, value by value."""
    assert load_preset(name).profile == expected


def test_every_preset_is_known_by_its_own_name() -> None:
    """A preset's `name` is its file's, and its first line helps editors."""
    assert preset_names() == ("moonshot-kimi", "openai-compatible", "stepfun-step5")
    for name in preset_names():
        assert load_preset(name).profile.name == name
        assert preset_text(name).startswith("# yaml-language-server: $schema=schema.json\n")
        assert load_preset(name).source == name


@pytest.mark.parametrize("name", ["nope", "../profiles/moonshot-kimi", "", "schema", "*"])
def test_a_text_of_no_preset(name: str) -> None:
    """Only a known name is a preset."""
    with pytest.raises(ProfileError, match="unknown-preset"):
        preset_text(name)
    with pytest.raises(ProfileError, match="unknown-preset"):
        load_preset(name)


def test_an_installed_package_carries_its_presets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel has them in `_data`; a checkout has them beside the package."""
    package = tmp_path / "gateway"
    monkeypatch.setattr(presets, "__file__", str(package / "profile" / "presets.py"))
    folder = presets._folder.__wrapped__
    assert folder() == tmp_path / "profiles"
    (package / "_data" / "profiles").mkdir(parents=True)
    assert folder() == package / "_data" / "profiles"


def test_the_presets_stand_where_the_package_looks() -> None:
    """The checkout that the tests run on, or the installed package, has them."""
    assert metadata.version("sgl-gateway")
    assert (presets._folder() / "schema.json").is_file()


# the sampling flags


@pytest.mark.parametrize(
    ("params", "conflict", "expected"),
    [
        (
            '{"temperature": 1.0}',
            None,
            Sampling(Conflict.REJECT, (Exact("temperature", Value(1.0, b"1.0")),)),
        ),
        ('{"n": 1.0}', "reject", Sampling(Conflict.REJECT, (Exact("n", Value(1, b"1")),))),
        ('{"n": 1}', "allow", Sampling(Conflict.ALLOW, (Exact("n", Value(1, b"1")),))),
        (
            ' {"top_p": {"min": 0.5, "max": 1}}\n',
            None,
            Sampling(Conflict.REJECT, (Band("top_p", Value(0.5, b"0.5"), Value(1, b"1")),)),
        ),
        ('{\n\t"n": 2}', None, Sampling(Conflict.REJECT, (Exact("n", Value(2, b"2")),))),
        ('{"\\u006e": 1e0}', None, Sampling(Conflict.REJECT, (Exact("n", Value(1, b"1")),))),
    ],
)
def test_the_flag_replaces_the_whole_section(
    load: Load, params: str, conflict: str | None, expected: Sampling
) -> None:
    """Nothing of the profile's `sampling` is left, its conflict mode included."""
    loaded = load("name: a\nsampling: {conflict: allow, params: {top_k: 5, min_p: 1}}\n")
    over = override_sampling(loaded, params, conflict)
    assert over.profile == Profile(name="a", sampling=expected)
    assert over.digest != loaded.digest
    assert loaded.profile.sampling is not None
    assert len(loaded.profile.sampling.rules) == 2


def test_no_flag_leaves_the_profile_alone() -> None:
    """Without the flag the profile is the very same."""
    loaded = load_preset("moonshot-kimi")
    assert override_sampling(loaded, None, None) is loaded


@pytest.mark.parametrize(
    ("params", "conflict", "rule"),
    [
        (None, "reject", "selection"),
        (None, "allow", "selection"),
        ("", None, "selection"),
        ("  ", None, "selection"),
        ("{}", None, "selection"),
        ("[]", None, "selection"),
        ("null", None, "selection"),
        ("1", None, "selection"),
        ("{n: 1}", None, "selection"),
        ("{'n': 1}", None, "selection"),
        ('{"n": 1,}', None, "selection"),
        ('{"n": NaN}', None, "selection"),
        ('{"n": 01}', None, "selection"),
        ('{"n": 1} x', None, "selection"),
        ('{"n": ' + "[" * 100_000, None, "selection"),
        ('{"n": ' + "1" * 5000 + "}", None, "yaml-limits"),
        ('{"n": 1, "n": 2}', None, "duplicate-key"),
        ('{"n": 1, "\\u006e": 2}', None, "duplicate-key"),
        ('{"n": {"min": 1, "min": 1, "max": 2}}', None, "duplicate-key"),
        ('{"n": null}', None, "wrong-type"),
        ('{"n": "1"}', None, "wrong-type"),
        ('{"n": true}', None, "wrong-type"),
        ('{"n": [1]}', None, "wrong-type"),
        ('{"n": 0}', None, "out-of-domain"),
        ('{"temperature": 1e999}', None, "out-of-domain"),
        ('{"temperature": {"min": 1, "max": 0}}', None, "empty-range"),
        ('{"temperature": {"min": 1}}', None, "missing-key"),
        ('{"temperature": {"min": 0, "max": 1}}', "allow", "useless-band"),
        ('{"temprature": 1}', None, "unknown-key"),
        ('{"max_tokens": 1}', None, "unknown-key"),
        ('{"x-n": 1}', None, "unknown-key"),
        ('{"n": 1}', "clamp", "out-of-domain"),
        ('{"n": 1}', "", "out-of-domain"),
        ('{"seed": 1, "conflict": "allow"}', None, "unknown-key"),
    ],
)
def test_a_flag_that_is_no_contract(params: str | None, conflict: str | None, rule: str) -> None:
    """The flag is a JSON object, judged as `sampling.params` is; the mode alone says nothing."""
    with pytest.raises(ProfileError) as caught:
        override_sampling(load_preset("openai-compatible"), params, conflict)
    assert caught.value.findings[0].rule == rule
    assert caught.value.findings[0].file.startswith("--")
    assert str(caught.value.findings[0]).isprintable()


def test_the_flag_and_params_do_not_govern_one_field() -> None:
    """A field that the profile's `params` governs cannot be in the flag as well."""
    with pytest.raises(ProfileError, match="governed-twice"):
        override_sampling(load_preset("stepfun-step5"), '{"n": 1}', None)


def test_an_overridden_profile_prints_and_loads_back(write: Write) -> None:
    """What is printed is what is enforced, flags included, and the flag is the origin."""
    over = override_sampling(load_preset("moonshot-kimi"), '{"n": 2.0}', "allow")
    text = render_yaml(over, origins=True)
    assert "n: 2.0  # --override-sampling-params:1\n" in text
    assert "conflict: allow  # --sampling-param-conflict:1\n" in text
    assert load_file(write({"p.yaml": text})).profile == over.profile


# the service


def test_a_reload_swaps_the_profile(write: Write) -> None:
    """The service serves what was loaded last."""
    path = write({"p.yaml": "name: one\n"})
    service = ProfileService(lambda: Choice(load_file(path), "test"))
    first = service.choice
    assert (service.profile.name, service.current.source) == ("one", path)
    write({"p.yaml": "name: two\n"})
    assert service.profile.name == "one"
    assert service.reload() is service.choice
    assert service.profile.name == "two"
    assert service.choice is not first


def test_a_broken_reload_leaves_the_old_profile_in_force(write: Write) -> None:
    """A profile that cannot be loaded is reported and changes nothing."""
    path = write({"p.yaml": "name: one\n"})
    service = ProfileService(lambda: Choice(load_file(path), "test"))
    before = service.choice
    write({"p.yaml": "name: [\n"})
    with pytest.raises(ProfileError):
        service.reload()
    assert service.choice is before
    write({"p.yaml": "name: two\n"})
    service.reload()
    assert service.profile.name == "two"


def test_a_service_starts_with_a_profile_or_not_at_all() -> None:
    """The first load must succeed."""
    with pytest.raises(ProfileError):
        ProfileService(lambda: Choice(load_preset("nope"), "test"))


def test_the_fixed_path_of_an_image() -> None:
    """Where images carry a profile, and the variable that names one."""
    assert selection.IMAGE_PROFILE == "/etc/sgl-router/profile.yaml"
    assert selection.ENVIRONMENT_VARIABLE == "SGLANG_ROUTER_API_PROFILE"
