"""The one definition of the settings file's keys.

It is the provider block that Bifrost's users know, with a few keys of the gateway's own beside
it. What a Bifrost file has besides means nothing here and is accepted with a warning.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.config.readers import (
    AliasName,
    AliasTarget,
    Count,
    EnvText,
    HeaderName,
    ModelList,
    ModelName,
    Seconds,
    ServerName,
    Weight,
    base_url,
    checked_key,
    header_value,
)
from gateway.profile.document import Items, key, required_key
from gateway.profile.fields import Flag, NoEffect, Text

LARGEST_COUNT: Final = 2**31 - 1

TOP: Final = (
    "auth_config",
    "client",
    "cluster_config",
    "config_store",
    "encryption_key",
    "env_label",
    "framework",
    "governance",
    "guardrails_config",
    "large_payload_optimization",
    "load_balancer_config",
    "logs_store",
    "mcp",
    "plugins",
    "saml_config",
    "scim_config",
    "server",
    "source_of_truth",
    "vector_store",
    "version",
    "websocket",
)
PROVIDERS: Final = (
    "anthropic",
    "azure",
    "bedrock",
    "bedrock_mantle",
    "cerebras",
    "cohere",
    "deepseek",
    "elevenlabs",
    "fireworks",
    "gemini",
    "groq",
    "huggingface",
    "mistral",
    "nebius",
    "ollama",
    "openai",
    "openrouter",
    "parasail",
    "perplexity",
    "replicate",
    "vertex",
    "vllm",
    "xai",
)
PROVIDER: Final = (
    "allow_fallbacks",
    "concurrency_and_buffer_size",
    "custom_provider_config",
    "description",
    "fallbacks",
    "openai_config",
    "pricing_overrides",
    "proxy_config",
    "send_back_raw_request",
    "send_back_raw_response",
    "status",
    "store_raw_request_response",
)
KEY: Final = (
    "azure_key_config",
    "bedrock_key_config",
    "bedrock_mantle_key_config",
    "config_hash",
    "description",
    "id",
    "ollama_key_config",
    "replicate_key_config",
    "status",
    "use_for_batch_api",
    "vertex_key_config",
    "vllm_key_config",
)
NETWORK: Final = (
    "allow_private_network",
    "beta_header_overrides",
    "ca_cert_pem",
    "enforce_http2",
    "http2_ping_interval_in_seconds",
    "insecure_skip_verify",
    "keep_alive_timeout_in_seconds",
    "max_conns_per_host",
)
ALIAS: Final = ("description", "model_family")

WITHOUT_EFFECT: Final[Mapping[str, tuple[str, ...]]] = {
    "": TOP,
    "providers": PROVIDERS,
    "providers.sgl": PROVIDER,
    "providers.sgl.keys[]": KEY,
    "providers.sgl.keys[].aliases.NAME": ALIAS,
    "providers.sgl.network_config": NETWORK,
}
"""Keys of a Bifrost file that mean nothing here, by the mapping that they stand in."""

NETWORK_SETTINGS: Final = (
    "default_request_timeout_in_seconds",
    "stream_idle_timeout_in_seconds",
    "connect_timeout_in_seconds",
    "stream_keepalive_in_seconds",
    "anthropic_default_max_tokens",
    "max_retries",
    "retry_backoff_initial",
    "retry_backoff_max",
)
"""Keys of `network_config` that are settings of the same name."""

TOP_SETTINGS: Final = (
    "model_id",
    "forward_authorization",
    "max_inflight",
    "max_inflight_per_client",
    "api_keys_file",
)
"""Keys of the top that are settings of the same name."""


def build_definition(environ: Mapping[str, str]) -> Mapping[Any, Any]:
    """The keys of the settings file.

    Args:
        environ: where `env.NAME` is looked up.
    """
    return {
        key("$schema", "Of Bifrost's file; for editors."): Text(),
        required_key("providers", "Who answers; `sgl` alone is served."): {
            required_key("sgl", "The SGLang engines."): {
                required_key("keys", "One entry for each engine."): Items(_key(environ), "key"),
                key("network_config", "How engines are reached."): _network(environ),
                **_no_effect(PROVIDER),
            },
            **_no_effect(PROVIDERS),
        },
        key("model_id", "The one model that is served; absent: what the keys admit."): ModelName(),
        key(
            "forward_authorization",
            "The client's `Authorization` goes on to engines that have no key.",
        ): Flag(),
        key("max_inflight", "Requests at work in one process; others get a 503."): Count(1, 16384),
        key(
            "max_inflight_per_client",
            "Requests at work for one client key in one process; others get a 429.",
        ): Count(1, 16384),
        key(
            "api_keys_file",
            "The file of the keys that clients must present; relative to this file's folder.",
        ): Text(),
        **_no_effect(TOP),
    }


def _key(environ: Mapping[str, str]) -> Mapping[Any, Any]:
    return {
        required_key("name", "Unique; for logs and metrics, never shown to clients."): ServerName(),
        key("value", "Sent as a Bearer token; absent or empty: no header."): EnvText(
            environ, checked_key
        ),
        key("models", "The allow-list; absent or with `*`: every name; empty: none."): ModelList(),
        key("blacklisted_models", "The deny-list; it wins over the allow-list."): ModelList(),
        key(
            "weight",
            "The share of the requests, relative to the other weights; 0: the last resort.",
        ): Weight(),
        key("enabled", "Whether it is used."): Flag(),
        key(
            "use_anthropic_endpoints",
            "Chat, responses and messages go to the engine's Messages route.",
        ): Flag(),
        key(
            "aliases",
            "By a name that clients may give: the engine's own name, or a mapping with `model_id`"
            " and `use_anthropic_endpoints`. The lists must admit the alias itself.",
        ): {AliasName(): AliasTarget(_no_effect(ALIAS))},
        key("sgl_key_config", "Where the engine is."): {
            key("url", "Its base URL; absent: `network_config.base_url`."): EnvText(
                environ, base_url
            )
        },
        **_no_effect(KEY),
    }


def _network(environ: Mapping[str, str]) -> Mapping[Any, Any]:
    return {
        key("base_url", "Of the keys that have no URL of their own."): EnvText(environ, base_url),
        key(
            "default_request_timeout_in_seconds",
            "For an engine to begin to say something.",
        ): Seconds(),
        key(
            "stream_idle_timeout_in_seconds", "For the silence of an engine within its answer."
        ): Seconds(),
        key("connect_timeout_in_seconds", "For a connection to an engine."): Seconds(),
        key(
            "stream_keepalive_in_seconds",
            "Of silence until a client that reads a stream is sent a sign of life.",
        ): Seconds(),
        key(
            "anthropic_default_max_tokens",
            "The budget that a Messages engine gets where neither request nor profile names one;"
            " absent: a quarter of its context.",
        ): Count(1, LARGEST_COUNT),
        key("max_retries", "On other servers, before a byte has reached the client."): Count(
            0, 100
        ),
        key("retry_backoff_initial", "The longest wait before the first retry, in ms."): Count(
            0, 60_000
        ),
        key("retry_backoff_max", "The longest wait before any retry, in ms."): Count(0, 60_000),
        key("extra_headers", "Sent to engines where nothing else sets that header."): {
            HeaderName(): EnvText(environ, header_value)
        },
        **_no_effect(NETWORK),
    }


def _no_effect(names: Iterable[str]) -> dict[Any, Any]:
    return {key(name, "Of Bifrost; no effect here."): NoEffect() for name in names}
