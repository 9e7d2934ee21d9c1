"""The keys of engines, from an operator's file to the header that an engine sees."""

import pytest

from gateway.config import ConfigError, load_config

FILE = """
providers:
  sgl:
    keys:
      - name: one
        value: {value}
        models: ["*"]
        sgl_key_config: {{url: {url}}}
"""


@pytest.fixture
def servers_of(tmp_path, engine):
    """The servers of a file with one key."""

    def load(value, environ=(), url=None):
        path = tmp_path / "gateway.yaml"
        path.write_text(FILE.format(value=value, url=url or engine.url), encoding="utf-8")
        return load_config(str(path), dict(environ)).servers

    return load


VALUES = {
    "plain": ("k1", {}, "k1"),
    "a variable": ("env.SGL_KEY", {"SGL_KEY": "k2"}, "k2"),
    "a variable with a dollar in it": ("env.SGL_KEY", {"SGL_KEY": "k$HOME${X}"}, "k$HOME${X}"),
    "an empty variable": ("env.SGL_KEY", {"SGL_KEY": ""}, None),
    "empty": ('""', {}, None),
}


@pytest.mark.parametrize(("value", "environ", "key"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("route", ["chat", "messages", "embeddings"])
def test_a_key_is_sent_as_it_is(serve, engine, servers_of, value, environ, key, route):
    """What a variable holds is never read again; an empty key is no header at all."""
    client = serve(servers=servers_of(value, environ))
    assert client.on(route, headers={"authorization": "Bearer client"}).status_code == 200
    sent = engine.inference[-1].headers.get("authorization")
    assert sent == (None if key is None else f"Bearer {key}")


UNRESOLVED = {
    "unset": ("env.SGL_KEY", "SGL_KEY"),
    "no name": ("env.", "env."),
    "a shell's": ('"${SGL_KEY}"', "env.NAME"),
    "within a text": ('"Bearer ${SGL_KEY}"', "env.NAME"),
}


@pytest.mark.parametrize(("value", "told"), UNRESOLVED.values(), ids=UNRESOLVED)
def test_a_reference_that_leads_nowhere_stops_the_start(servers_of, value, told):
    """It would be sent as a credential."""
    with pytest.raises(ConfigError) as caught:
        servers_of(value)
    assert told in str(caught.value)
    assert "value" in str(caught.value)


def test_a_url_from_a_variable(serve, engine, servers_of):
    """It is resolved like a key, and folded like any other URL."""
    servers = servers_of("k", {"SGL_URL": f"{engine.url}/v1/"}, url="env.SGL_URL")
    assert serve(servers=servers).chat().status_code == 200
    assert engine.inference[-1].path == "/v1/chat/completions"
    with pytest.raises(ConfigError, match="SGL_URL"):
        servers_of("k", url="env.SGL_URL")
    with pytest.raises(ConfigError, match=r"env\.NAME"):
        servers_of("k", url='"http://${HOST}:30000"')


def test_keys_are_not_shown(servers_of):
    """Neither by what is printed of a server nor by what is said of a file."""
    assert "top-secret" not in repr(servers_of("env.SGL_KEY", {"SGL_KEY": "top-secret"}))
    with pytest.raises(ConfigError) as caught:
        servers_of("env.SGL_KEY", {"SGL_KEY": "top-secret\n"}, url="env.MISSING")
    assert "top-secret" not in str(caught.value)
