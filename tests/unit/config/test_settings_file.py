"""The settings file: what it gives, and each way in which it can be wrong, with its place."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config import (
    NO_URL,
    RULES,
    WARNINGS,
    Config,
    ConfigError,
    check_config,
    load_config,
)
from gateway.engine.servers import Alias, Target
from gateway.settings import SettingsError, load_settings
from gateway.startup import load_launch, reason

ENVIRON = {"SGL_A_KEY": "k-a", "EMPTY": "", "URL": "http://from.env:30000/v1/", "SPACED": " k \n"}

ONE = "providers: {sgl: {keys: [{name: a, sgl_key_config: {url: http://a:1}, %s}]}}"
"""A file with one key, to which a test adds."""

NETWORK = "providers: {sgl: {keys: [{name: a}], network_config: {base_url: http://a:1, %s}}}"

BLOCK = """\
providers:
  sgl:
    keys:
      - name: sgl-a
        value: env.SGL_A_KEY
        models: ["*"]
        blacklisted_models: []
        weight: 1.0
        enabled: true
        use_anthropic_endpoints: false
        aliases:
          fast: Qwen/Qwen3-8B
          coder: {model_id: Qwen/Qwen3-Coder-30B, use_anthropic_endpoints: true}
        sgl_key_config: {url: http://10.0.0.5:30000}
    network_config: {base_url: null, default_request_timeout_in_seconds: 600,
      stream_idle_timeout_in_seconds: 120, connect_timeout_in_seconds: 5,
      stream_keepalive_in_seconds: 15, anthropic_default_max_tokens: null, max_retries: 1,
      retry_backoff_initial: 100, retry_backoff_max: 2000, extra_headers: {}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Writes a settings file and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "servers.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def load(file) -> Callable[[str], Config]:
    """Loads a settings file from its text."""
    return lambda text: load_config(file(text), ENVIRON)


@pytest.fixture
def told(file) -> Callable[[str], list[tuple[str, str, str]]]:
    """Checks a settings file and gives, of each finding, the word at its place, rule and path."""

    def check(text: str) -> list[tuple[str, str, str]]:
        lines = text.split("\n")
        return [
            (
                re.split(r"(?<=.)[ :,}]", lines[one.line - 1][one.column - 1 :], maxsplit=1)[0],
                one.rule,
                one.path,
            )
            for one in check_config(file(text), ENVIRON)[1]
        ]

    return check


def test_the_whole_block(load) -> None:
    """Every key of the block is read, and null is the same as leaving a key out."""
    config = load(BLOCK)

    (server,) = config.servers
    assert (server.name, server.url, server.api_key) == ("sgl-a", "http://10.0.0.5:30000", "k-a")
    assert (server.models, server.blacklisted_models) == (("*",), ())
    assert (server.weight, server.enabled, server.use_anthropic_endpoints) == (1.0, True, False)
    assert dict(server.aliases) == {
        "fast": Alias("Qwen/Qwen3-8B"),
        "coder": Alias("Qwen/Qwen3-Coder-30B", use_anthropic_endpoints=True),
    }
    assert dict(config.settings) == {
        "default_request_timeout_in_seconds": 600.0,
        "stream_idle_timeout_in_seconds": 120.0,
        "connect_timeout_in_seconds": 5.0,
        "stream_keepalive_in_seconds": 15.0,
        "max_retries": 1,
        "retry_backoff_initial": 100,
        "retry_backoff_max": 2000,
    }
    assert config.warnings == ()


def test_a_file_of_bifrost(load) -> None:
    """It is accepted as it stands, in JSON; what means nothing here is a warning each."""
    text = json.dumps(
        {
            "$schema": "https://www.getbifrost.ai/schema",
            "client": {"drop_excess_requests": False, "initial_pool_size": 300},
            "providers": {
                "openai": {"keys": [{"name": "o", "value": "env.NOT_HERE", "weight": 1}]},
                "sgl": {
                    "keys": [
                        {
                            "id": "7",
                            "name": "SGL key 1",
                            "value": {"value": "", "env_var": "env.SGL_A_KEY", "from_env": True},
                            "models": ["*"],
                            "weight": 1,
                            "sgl_key_config": {"url": {"value": "http://a:1", "from_env": False}},
                        }
                    ],
                    "network_config": {"max_retries": 0, "insecure_skip_verify": True},
                    "concurrency_and_buffer_size": {"concurrency": 1000, "buffer_size": 5000},
                    "proxy_config": {"type": "none"},
                    "send_back_raw_request": False,
                    "send_back_raw_response": False,
                },
            },
        }
    )
    config = load(text)

    assert (config.servers[0].api_key, config.servers[0].url) == ("k-a", "http://a:1")
    assert [(one.rule, one.path) for one in config.warnings] == [
        ("no-effect", "client"),
        ("no-effect", "providers.openai"),
        ("no-effect", "providers.sgl.keys[0].id"),
        ("no-effect", "providers.sgl.network_config.insecure_skip_verify"),
        ("no-effect", "providers.sgl.concurrency_and_buffer_size"),
        ("no-effect", "providers.sgl.proxy_config"),
        ("no-effect", "providers.sgl.send_back_raw_request"),
        ("no-effect", "providers.sgl.send_back_raw_response"),
    ]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        pytest.param("value: plain", "plain", id="text"),
        pytest.param("value: env.SGL_A_KEY", "k-a", id="variable"),
        pytest.param("value: env.EMPTY", "", id="empty-variable"),
        pytest.param("value: env.SPACED", "k", id="white-space-of-a-variable"),
        pytest.param('value: ""', "", id="empty"),
        pytest.param("value: null", "", id="null"),
        pytest.param("weight: 1", "", id="absent"),
        pytest.param("value: pa$$word", "pa$$word", id="dollars"),
        pytest.param("value: {value: env.SGL_A_KEY}", "k-a", id="mapping"),
        pytest.param("value: {type: env, ref: SGL_A_KEY}", "k-a", id="mapping-with-ref"),
    ],
)
def test_the_key_of_a_server(load, value: str, key: str) -> None:
    """A text, or `env.NAME`; an empty variable is an empty value, which sends no header."""
    assert load(ONE % value).servers[0].api_key == key


@pytest.mark.parametrize(
    ("own", "shared", "url"),
    [
        pytest.param("http://own:1", "http://shared:1", "http://own:1", id="own-first"),
        pytest.param("", "http://shared:1/", "http://shared:1", id="empty-is-absent"),
        pytest.param(None, "http://shared:1/v1", "http://shared:1", id="v1-folded"),
        pytest.param("https://h/prefix/v1/", None, "https://h/prefix", id="prefix-stays"),
        pytest.param("env.URL", None, "http://from.env:30000", id="variable"),
        pytest.param("env.EMPTY", "http://shared:1", "http://shared:1", id="empty-variable"),
    ],
)
def test_the_url_of_a_server(load, own: str | None, shared: str | None, url: str) -> None:
    """The key's own, else that of `network_config`; `/` and `/v1` at the end are folded away."""
    entry = {"name": "a"} | ({} if own is None else {"sgl_key_config": {"url": own}})
    network = {"base_url": shared}
    text = json.dumps({"providers": {"sgl": {"keys": [entry], "network_config": network}}})

    assert load(text).servers[0].url == url


def test_without_a_url(file, told) -> None:
    """The message says where one can be set, word for word."""
    text = "providers:\n  sgl:\n    keys:\n      - name: a\n      - {name: b, sgl_key_config: {}}\n"

    assert told(text) == [
        ("name", "no-base-url", "providers.sgl.keys[0]"),
        ("{name", "no-base-url", "providers.sgl.keys[1]"),
    ]
    assert [one.message for one in check_config(file(text), {})[1]] == [NO_URL] * 2
    assert NO_URL == (
        "no base URL configured: either set sgl_key_config.url on the key"
        " or set network_config.base_url"
    )


def test_names_are_without_the_prefix(load) -> None:
    """`sgl/NAME` is NAME in the lists, as an alias and as `model_id`; a target is the engine's."""
    config = load(
        (ONE % "models: [sgl/m, sgl/fast], aliases: {sgl/fast: sgl/x}") + "\nmodel_id: sgl/m\n"
    )

    assert config.servers[0].models == ("m", "fast")
    assert config.servers[0].target("fast") == Target("sgl/x", use_anthropic_endpoints=False)
    assert config.settings["model_id"] == "m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [("", "missing-key", "")], id="empty-file"),
        pytest.param("- a\n", [("-", "top-level", "")], id="list"),
        pytest.param("providers: {}\n", [("providers", "missing-key", "providers")], id="no-sgl"),
        pytest.param(
            "providers:\n  sgl: {}\n", [("sgl", "missing-key", "providers.sgl")], id="no-keys"
        ),
        pytest.param(
            "providers: {sgl: {keys: []}}\n",
            [("[]", "out-of-domain", "providers.sgl.keys")],
            id="names-no-key",
        ),
        pytest.param(
            "providers: {sgl: {keys: {a: 1}}}\n",
            [("keys", "wrong-type", "providers.sgl.keys")],
            id="keys-no-list",
        ),
        pytest.param(
            (ONE % "weight: 1") + "\nmodel: m\n",
            [("model", "unknown-key", "model")],
            id="top-unknown",
        ),
        pytest.param(
            ONE % "modells: []",
            [("modells", "unknown-key", "providers.sgl.keys[0].modells")],
            id="key-unknown",
        ),
        pytest.param(
            ONE % "aliases: {x: {model_id: m, weight: 1}}",
            [("weight", "unknown-key", "providers.sgl.keys[0].aliases.x.weight")],
            id="alias-unknown",
        ),
        pytest.param(
            ONE % "aliases: {x: {}}",
            [("x", "missing-key", "providers.sgl.keys[0].aliases.x")],
            id="alias-without-model",
        ),
        pytest.param(
            ONE % "weight: 1, weight: 2",
            [("weight", "duplicate-key", "")],
            id="repeated",
        ),
        pytest.param(
            ONE % "weight: -0.5",
            [("-0.5", "out-of-domain", "providers.sgl.keys[0].weight")],
            id="negative-weight",
        ),
        pytest.param(
            ONE % "weight: .nan",
            [(".nan", "out-of-domain", "providers.sgl.keys[0].weight")],
            id="nan-weight",
        ),
        pytest.param(
            ONE % "weight: true",
            [("true", "wrong-type", "providers.sgl.keys[0].weight")],
            id="boolean-weight",
        ),
        pytest.param(
            ONE % "weight: 0",
            [("keys", "no-weight", "providers.sgl.keys")],
            id="all-weights-0",
        ),
        pytest.param(
            ONE % "models: m",
            [("m", "wrong-type", "providers.sgl.keys[0].models")],
            id="text-for-a-list",
        ),
        pytest.param(
            ONE % "enabled: 'true'",
            [("'true'", "wrong-type", "providers.sgl.keys[0].enabled")],
            id="text-for-a-boolean",
        ),
        pytest.param(
            ONE % "value: env.NOT_SET",
            [("env.NOT_SET", "unset-variable", "providers.sgl.keys[0].value")],
            id="unset",
        ),
        pytest.param(
            ONE % "value: env.NOT-A-NAME",
            [("env.NOT-A-NAME", "unset-variable", "providers.sgl.keys[0].value")],
            id="no-name",
        ),
        pytest.param(
            ONE % "value: '${SGL_A_KEY}'",
            [("'${SGL_A_KEY", "unset-variable", "providers.sgl.keys[0].value")],
            id="shell-syntax",
        ),
        pytest.param(
            ONE % 'value: "two\\nlines"',
            [('"two\\nlines"', "out-of-domain", "providers.sgl.keys[0].value")],
            id="unsendable-key",
        ),
        pytest.param(
            NETWORK % "max_retries: -1",
            [("-1", "out-of-domain", "providers.sgl.network_config.max_retries")],
            id="retries",
        ),
        pytest.param(
            NETWORK % "connect_timeout_in_seconds: 0",
            [("0", "out-of-domain", "providers.sgl.network_config.connect_timeout_in_seconds")],
            id="no-time",
        ),
        pytest.param(
            NETWORK % "retry_backoff_initial: 9, retry_backoff_max: 8",
            [
                (
                    "retry_backoff_max",
                    "empty-range",
                    "providers.sgl.network_config.retry_backoff_max",
                )
            ],
            id="backoff",
        ),
        pytest.param(
            NETWORK % "extra_headers: {X-A: env.NOT_SET}",
            [("env.NOT_SET", "unset-variable", "providers.sgl.network_config.extra_headers.X-A")],
            id="header-unset",
        ),
        pytest.param(
            NETWORK % "extra_headers: {'no header': x}",
            [("'no", "out-of-domain", "providers.sgl.network_config.extra_headers.no header")],
            id="header-name",
        ),
        pytest.param(
            NETWORK % "extra_headers: {Content-Length: '1'}",
            [
                (
                    "Content-Length",
                    "out-of-domain",
                    "providers.sgl.network_config.extra_headers.Content-Length",
                )
            ],
            id="header-of-ours",
        ),
        pytest.param(
            (ONE % "weight: 1") + "\nmax_inflight: 0\n",
            [("0", "out-of-domain", "max_inflight")],
            id="inflight",
        ),
    ],
)
def test_what_is_wrong(told, text: str, expected: list[tuple[str, str, str]]) -> None:
    """Each fault is found once, under its rule and at its place."""
    assert told(text) == expected


def test_two_keys_of_one_name(told) -> None:
    """A name stands for one server in logs and metrics."""
    text = "providers:\n  sgl:\n    network_config: {base_url: http://a:1}\n    keys:\n" + (
        "      - name: a\n" * 2
    )
    assert told(text) == [("name", "same-name", "providers.sgl.keys[1].name")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            ONE % "models: []",
            [("models", "never-used", "providers.sgl.keys[0].models")],
            id="empty-allow-list",
        ),
        pytest.param(
            ONE % "models: [m], aliases: {x: m}",
            [("x", "never-used", "providers.sgl.keys[0].aliases.x")],
            id="alias-not-admitted",
        ),
        pytest.param(
            ONE % "enabled: false, weight: 0",
            [("keys", "never-used", "providers.sgl.keys")],
            id="none-enabled",
        ),
        pytest.param(
            (ONE % "models: [m]") + "\nmodel_id: other\n",
            [("model_id", "never-used", "model_id")],
            id="model-id-not-admitted",
        ),
    ],
)
def test_warnings(load, told, text: str, expected: list[tuple[str, str, str]]) -> None:
    """What no request can reach is told, and does not keep the file from being used."""
    assert told(text) == expected
    assert len(load(text).warnings) == len(expected)


def test_warnings_are_rules() -> None:
    """Each rule that only warns is one of the rules."""
    assert set(RULES) > WARNINGS


SECRET = "s3cr3t-zzz"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ONE % f"value: !{SECRET} x", id="tag"),
        pytest.param(ONE % f"value: !!int {SECRET}", id="wrong-tag"),
        pytest.param(ONE % f"value: *{SECRET}", id="alias"),
        pytest.param(ONE % f"value: [{SECRET}]", id="list"),
        pytest.param(ONE % f"value: '{SECRET} '", id="white-space"),
        pytest.param(ONE % f'value: "{SECRET}\\x00"', id="control-character"),
        pytest.param(ONE % f"value: 'env.{SECRET} '", id="no-name"),
        pytest.param(ONE % f"value: '{SECRET}${{X}}'", id="shell-syntax"),
        pytest.param(ONE % f"value: {{value: {SECRET}, type: vault}}", id="vault"),
        pytest.param(ONE % f"sgl_key_config: {SECRET}", id="no-mapping"),
        pytest.param(f"providers: {{sgl: {{keys: [{SECRET}]}}}}", id="entry"),
        pytest.param(f"providers: {{sgl: {SECRET}}}", id="provider"),
        pytest.param(NETWORK % f"extra_headers: {{Authorization: ['{SECRET}']}}", id="header"),
        pytest.param(NETWORK % f"extra_headers: {{Authorization: '{SECRET}\u20ac'}}", id="euro"),
        pytest.param(NETWORK % f"extra_headers: {SECRET}", id="headers"),
        pytest.param(
            ONE.replace("http://a", f"http://u:{SECRET}@a") % "weight: 1",
            id="password-in-a-url",
        ),
    ],
)
def test_secrets_are_not_shown(file, text: str) -> None:
    """Whatever is wrong with a key, a header or a URL, no message repeats it."""
    findings = check_config(file(text), {})[1]

    assert findings
    assert SECRET not in "\n".join(map(str, findings))


def test_secrets_are_not_printed(load) -> None:
    """Nor does what was loaded show a key or a header when it is printed."""
    text = NETWORK.replace("name: a", f"name: a, value: {SECRET}") % (
        f"extra_headers: {{X-Token: {SECRET}}}"
    )
    config = load(text)

    assert config.servers[0].api_key == SECRET
    assert config.servers[0].extra_headers == {"X-Token": SECRET}
    assert SECRET not in repr(config)


def test_every_finding_is_in_the_error(file) -> None:
    """A file that cannot be used names the first fault, and the command that shows the rest."""
    path = file(ONE % "weight: -1, enabled: 1, id: x")

    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    assert [one.rule for one in caught.value.findings] == ["out-of-domain", "wrong-type"]
    assert reason(caught.value) == (
        f"{path}:1:79: out-of-domain: providers.sgl.keys[0].weight: is -1;"
        " it must be a finite number of at least 0 (and 1 more: see sgl-gateway check-config)"
    )


def test_flag_over_environment_over_file_over_default(file) -> None:
    """Each source stands above the next, setting by setting."""
    path = file((NETWORK % "max_retries: 5") + "\nmodel_id: of-file\nmax_inflight: 7\n")
    environ = {"SGL_GATEWAY_CONFIG": path, "SGL_GATEWAY_MODEL_ID": "of-environment"}

    settings = load_settings({"max_inflight": "9"}, environ)

    assert (settings.max_inflight, settings.model_id, settings.max_retries, settings.port) == (
        9,
        "of-environment",
        5,
        8080,
    )


def test_the_servers_that_are_served(file) -> None:
    """They come from the file, which may name the file of the clients' keys beside itself."""
    path = file((ONE % "value: k") + "\napi_keys_file: keys.txt\n")
    Path(path).with_name("keys.txt").write_text("client-key\n", encoding="utf-8")

    launch = load_launch({"config": path}, {})

    assert [(server.name, server.url) for server in launch.servers] == [("a", "http://a:1")]
    assert launch.api_keys is not None
    assert launch.api_keys.admits("client-key")


@pytest.mark.parametrize("flag", ["worker_urls", "worker_api_key"])
def test_a_file_and_the_short_form(file, flag: str) -> None:
    """Both at once are an error: the engines are named by one of them."""
    with pytest.raises(SettingsError, match=f"--{flag.replace('_', '-')} is given beside --config"):
        load_launch({"config": file(ONE % "weight: 1"), flag: "http://b:1"}, {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It stops the start, and is named."""
    with pytest.raises(ConfigError, match="there is no such file"):
        load_launch({"config": str(tmp_path / "none.yaml")}, {})
