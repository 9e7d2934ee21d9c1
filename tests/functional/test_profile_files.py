"""Profile files as operators write and mount them, seen from a request or from a start."""

import pytest

from gateway.profile import ProfileError
from gateway.settings import SettingsError
from gateway.startup import load_launch

NUMBERS = {
    "1e5": 100_000,
    "1e0": 1,
    "64000": 64_000,
    "010": 10,
    "0x10": 16,
    "1.0": 1,
}


@pytest.mark.parametrize(("literal", "number"), NUMBERS.items())
def test_a_number_in_any_spelling_is_one_on_the_wire(serve, engine, literal, number):
    """YAML readers differ over these; here each is the number that it looks like."""
    serve(f"output: {{max_tokens: {{cap: {literal}}}}}").sent()
    assert b'"max_tokens":%d}' % number in engine.inference[-1].body


def test_scientific_notation_in_a_contract(serve):
    """A pin of 1e0 accepts 1 and is written in as a number."""
    client = serve("sampling: {params: {temperature: 1e0}}")
    assert client.sent()["temperature"] == 1
    assert client.chat(temperature=1).status_code == 200
    assert client.chat(temperature=0.5).status_code == 400


TEXTS = ["64_000", '"64000"', '"64,000"', "12:30", "yes"]


@pytest.mark.parametrize("literal", TEXTS)
def test_what_is_text_where_a_number_belongs(serve, literal):
    """It is refused at the start, by the whole path of its key, not at the first request."""
    with pytest.raises(ProfileError) as caught:
        serve(f"output: {{max_tokens: {{cap: {literal}}}}}")
    assert "output.max_tokens.cap" in str(caught.value)


@pytest.fixture
def chain(tmp_path, serve):
    """Serves the last of some files, of which each may extend the one before by its name."""

    def build(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        return serve(api_profile_file=str(tmp_path / f"{name}.yaml"))

    return build


def test_a_null_deletes_one_pin(chain):
    """The field is free then, and the other pins stay."""
    client = chain(child="extends: moonshot-kimi\nsampling: {params: {n: null}}")
    sent = client.sent(n=4)
    assert (sent["n"], sent["top_p"], sent["top_k"]) == (4, 0.95, 1000)
    assert "n" not in client.sent()
    assert client.chat(top_p=0.5).status_code == 400


@pytest.mark.parametrize(
    "deletion",
    [
        "limits: {max_images: null}",
        "sampling: null",
        "limits: {max_images: null, max_body_bytes: null}",
    ],
)
def test_a_null_deletes_what_was_never_there(chain, engine, deletion):
    """Under a parent without the key, and for a whole section: nothing is enforced."""
    chain(child=f"extends: openai-compatible\n{deletion}").sent(temperature=1.5, n=2)
    assert set(engine.inference[-1].json) == {"model", "messages", "temperature", "n"}


def test_a_null_deletes_a_whole_section(chain):
    """A preset without its sampling section accepts everything."""
    client = chain(child="extends: moonshot-kimi\nsampling: null")
    assert set(client.sent(top_p=0.1)) == {"model", "messages", "top_p"}


def test_a_null_default_leaves_the_cap(chain):
    """The cap is written in then."""
    client = chain(
        base="output: {max_tokens: {cap: 100, default: 10}}",
        child="extends: base.yaml\noutput: {max_tokens: {default: null}}",
    )
    assert client.sent()["max_tokens"] == 100


def test_delete_and_set_again(chain):
    """What one file deletes, the file that extends it may set."""
    client = chain(
        deleter="extends: moonshot-kimi\nsampling: {params: {n: null}}",
        setter="extends: deleter.yaml\nsampling: {params: {n: 3}}",
    )
    assert client.sent()["n"] == 3
    assert client.chat(n=1).status_code == 400


REPLACED = {
    "a scalar over a mapping": ("output: {max_tokens: {cap: 5}}", "output: {max_tokens: 5}"),
    "a mapping over a scalar": ("limits: {max_images: 2}", "limits: {max_images: {a: 1}}"),
}


@pytest.mark.parametrize(("base", "child"), REPLACED.values(), ids=REPLACED)
def test_a_value_of_another_shape_replaces_and_is_judged(chain, base, child):
    """Nothing is mixed, and the result is judged: here it is of a wrong type."""
    with pytest.raises(ProfileError) as caught:
        chain(base=base, child=f"extends: base.yaml\n{child}")
    assert "child.yaml:2" in str(caught.value)


def test_a_list_replaces_a_list(chain):
    """Aliases are not added up."""
    client = chain(
        base="models: {aliases: [kimi-latest, kimi-old]}",
        child="extends: base.yaml\nmodels: {aliases: [kimi-next]}",
    )
    assert client.chat(model="kimi-next").status_code == 200
    assert client.chat(model="kimi-latest").status_code == 404
    listed = [entry["id"] for entry in client.simulate_get("/v1/models").json["data"]]
    assert listed == ["m", "kimi-next"]


def test_values_are_judged_merged(chain):
    """A base that cannot stand alone may be completed by its child."""
    client = chain(
        base="output: {max_tokens: {default: 10}}",
        child="extends: base.yaml\noutput: {max_tokens: {cap: 100}}",
    )
    assert client.sent()["max_tokens"] == 10


BASE = "sampling: {params: {%s}}"
OVERRIDES = {
    "one bound": (
        "temperature: {min: 0, max: 1}",
        "temperature: {max: 0.5}",
        {"temperature": [0, 0.5]},
        {"temperature": [0.6, -0.1]},
    ),
    "a band over an exact value": (
        "top_p: 0.95",
        "top_p: {min: 0.5, max: 1}",
        {"top_p": [0.5, 0.95, 1]},
        {"top_p": [0.4]},
    ),
    "an exact value over a band": (
        "temperature: {min: 0, max: 1}",
        "temperature: 1",
        {"temperature": [1]},
        {"temperature": [0, 0.5]},
    ),
}


@pytest.mark.parametrize(
    ("base", "child", "accepted", "refused"), OVERRIDES.values(), ids=OVERRIDES
)
def test_overriding_a_rule(chain, base, child, accepted, refused):
    """One bound leaves the other; a rule of the other kind leaves nothing of the parent's."""
    client = chain(base=BASE % base, child=f"extends: base.yaml\n{BASE % child}")
    for status, table in ((200, accepted), (400, refused)):
        for field, values in table.items():
            for value in values:
                assert client.chat(**{field: value}).status_code == status, (field, value)


def test_a_band_over_an_exact_value_writes_nothing(chain):
    """No value of the parent's is left to be written in."""
    client = chain(
        base=BASE % "top_p: 0.95", child=f"extends: base.yaml\n{BASE % 'top_p: {min: 0.5, max: 1}'}"
    )
    assert "top_p" not in client.sent()


def test_an_inverted_band(chain):
    """One bound may not be pulled past the other."""
    with pytest.raises(ProfileError) as caught:
        chain(
            base=BASE % "temperature: {min: 0, max: 1}",
            child=f"extends: base.yaml\n{BASE % 'temperature: {max: -1}'}",
        )
    assert "sampling.params.temperature" in str(caught.value)


@pytest.fixture
def volume(tmp_path):
    """A mounted volume, as Kubernetes lays one out: files are links to links."""

    def mount(name, **files):
        root = tmp_path / name
        (root / "..ts1").mkdir(parents=True)
        (root / "..data").symlink_to("..ts1")
        for file, text in files.items():
            (root / "..ts1" / f"{file}.yaml").write_text(text, encoding="utf-8")
            (root / f"{file}.yaml").symlink_to(f"..data/{file}.yaml")
        return root

    return mount


def test_a_mounted_volume(serve, volume):
    """A relative parent lies beside the path that the operator named."""
    root = volume(
        "cfg", base="sampling: {params: {n: 2}}", profile="extends: base.yaml\nname: mounted"
    )
    assert serve(api_profile_file=str(root / "profile.yaml")).sent()["n"] == 2


def test_a_parent_in_another_volume(serve, volume):
    """An absolute path reaches it."""
    other = volume("other", base="sampling: {params: {n: 3}}")
    root = volume("cfg", profile=f"extends: {other}/base.yaml")
    assert serve(api_profile_file=str(root / "profile.yaml")).sent()["n"] == 3


def dangling(root):
    """A link to nothing."""
    (root / "bad.yaml").symlink_to("..data/nothing.yaml")


def directory(root):
    """A folder where the file belongs, as a wrong mount path gives."""
    (root / "bad.yaml").mkdir()


def absent(root):
    """Nothing."""


@pytest.mark.parametrize("broken", [dangling, directory, absent])
@pytest.mark.parametrize("named", ["bad.yaml", "child.yaml"], ids=["itself", "its parent"])
def test_a_file_that_cannot_be_read(serve, tmp_path, broken, named):
    """The start is refused in one line that names the path."""
    broken(tmp_path)
    (tmp_path / "child.yaml").write_text("extends: bad.yaml\n", encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        serve(api_profile_file=str(tmp_path / named))
    (line,) = str(caught.value).splitlines()
    assert "bad.yaml" in line


@pytest.fixture
def chosen(tmp_path, engine, monkeypatch):
    """The name of the profile that these sources choose."""
    (tmp_path / "p.yaml").write_text("name: from-yaml\n", encoding="utf-8")
    (tmp_path / "p.yml").write_text("name: from-yml\n", encoding="utf-8")
    (tmp_path / "broken.yaml").write_text("nmae: x\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def choose(env=None, **flags):
        environ = {} if env is None else {"SGLANG_ROUTER_API_PROFILE": env}
        launch = load_launch({"model_id": "m", "worker_urls": [engine.url], **flags}, environ)
        return launch.choice.loaded.profile.name

    return choose


CHOICES = {
    "a file over all": ({"api_profile_file": "p.yaml", "env": "broken.yaml"}, "from-yaml"),
    "a name over the environment": (
        {"api_profile": "moonshot-kimi", "env": "no-such"},
        "moonshot-kimi",
    ),
    "a preset of the environment": ({"env": "moonshot-kimi"}, "moonshot-kimi"),
    "a path of the environment": ({"env": "./p.yaml"}, "from-yaml"),
    "a bare path of the environment": ({"env": "p.yml"}, "from-yml"),
    "a line end in the environment": ({"env": "moonshot-kimi\n"}, "moonshot-kimi"),
    "an empty environment": ({"env": ""}, "openai-compatible"),
    "blanks in the environment": ({"env": "  "}, "openai-compatible"),
    "nothing": ({}, "openai-compatible"),
}


@pytest.mark.parametrize(("sources", "name"), CHOICES.values(), ids=CHOICES)
def test_the_first_source_that_is_set_wins(chosen, sources, name):
    """Lower sources are not even read; an empty variable is none."""
    assert chosen(**sources) == name


REFUSED_CHOICES = {
    "a broken file of the environment": ({"env": "broken.yaml"}, "nmae"),
    "an unknown preset": ({"env": "Moonshot-Kimi"}, "moonshot-kimi"),
    "an unknown preset of the flag": ({"api_profile": "kimi"}, "moonshot-kimi"),
    "a missing file": ({"api_profile_file": "none.yaml", "env": "moonshot-kimi"}, "none.yaml"),
    "both flags": ({"api_profile_file": "p.yaml", "api_profile": "moonshot-kimi"}, "api-profile"),
}


@pytest.mark.parametrize(("sources", "told"), REFUSED_CHOICES.values(), ids=REFUSED_CHOICES)
def test_a_source_that_cannot_be_used_stops_the_start(chosen, sources, told):
    """There is no falling through to a lower source; an unknown preset lists the known ones."""
    with pytest.raises(ProfileError, match=told):
        chosen(**sources)


UNKNOWN = {
    "at the top": ("limit: {max_images: 1}", "limit"),
    "in a section": ("limits: {max_image: 1}", "limits.max_image"),
    "two levels down": (
        "output: {max_tokens: {cap: 1, on_excess: clamp}}",
        "output.max_tokens.on_excess",
    ),
    "a field": ("sampling: {params: {temprature: 1}}", "sampling.params.temprature"),
    "a field of another section": (
        "sampling: {params: {max_tokens: 5}}",
        "sampling.params.max_tokens",
    ),
    "case": ("Limits: {}", "Limits"),
}


@pytest.mark.parametrize(("text", "path"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_key_at_any_depth(serve, text, path):
    """The start is refused, with the file, the line and the whole path of the key."""
    with pytest.raises(ProfileError) as caught:
        serve(text)
    assert "profile.yaml:1:" in str(caught.value)
    assert path in str(caught.value)


def test_an_unknown_key_of_the_parent_counts_though_the_child_deletes_it(chain):
    """Keys are judged in each file, so that a typing error cannot hide."""
    with pytest.raises(ProfileError) as caught:
        chain(base="limits: {max_image: 1}", child="extends: base.yaml\nlimits: {max_image: null}")
    assert "base.yaml:1" in str(caught.value)


BASES = {
    "as it is": "{url}",
    "a slash": "{url}/",
    "the version": "{url}/v1",
    "the version and a slash": "{url}/v1/",
}


@pytest.mark.parametrize("form", BASES.values(), ids=BASES)
def test_a_base_url_is_joined_once(serve, engine, form):
    """No double slash and no double version reach the engine."""
    serve(urls=[form.format(url=engine.url)]).sent()
    assert engine.inference[-1].path == "/v1/chat/completions"


@pytest.mark.parametrize("form", ["{url}/prefix", "{url}/prefix/", "{url}/prefix/v1"])
def test_a_prefix_of_the_base_url_stays(serve, engine, form):
    """It is a proxy's on the engine's side."""
    assert serve(urls=[form.format(url=engine.url)]).chat().status_code == 404
    assert engine.inference[-1].path == "/prefix/v1/chat/completions"


NO_BASES = {
    "none": ([], "no base URL configured"),
    "no scheme": (["127.0.0.1:1"], "127.0.0.1:1"),
    "another scheme": (["ftp://h:1"], "ftp://h:1"),
    "no host": (["http://:1"], "http://:1"),
    "a user": (["http://u:p@h:1"], "--worker-urls"),
    "an unresolved variable": (["http://${HOST}:1"], "--worker-urls"),
}


@pytest.mark.parametrize(("urls", "told"), NO_BASES.values(), ids=NO_BASES)
def test_a_base_url_that_is_none_stops_the_start(urls, told):
    """Where a URL is missing or cannot be one, nothing serves."""
    with pytest.raises(SettingsError) as caught:
        load_launch({"model_id": "m", "worker_urls": urls or None}, {})
    assert told in str(caught.value)
