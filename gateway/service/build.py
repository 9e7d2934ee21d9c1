"""Wires up the gateway of one process from what was loaded at its start."""

from collections.abc import Callable

from gateway.engine.client import EngineClient, Limits
from gateway.engine.prober import Prober, ready_of
from gateway.engine.servers import ServerPool
from gateway.profile import ProfileService
from gateway.service.gateway import Gateway, Policy
from gateway.startup import Launch


def build_gateway(launch: Launch, notice: Callable[[str, bool], None] | None = None) -> Gateway:
    """The use cases, with their own connections and their own view of the servers' health.

    Args:
        launch: what is served.
        notice: told a server's name, and whether it is left out, when that changes.
    """
    settings = launch.settings
    limits = Limits(
        connect_s=settings.connect_timeout_in_seconds,
        first_byte_s=settings.default_request_timeout_in_seconds,
        idle_s=settings.stream_idle_timeout_in_seconds,
        pool_size=settings.threads,
    )
    policy = Policy(
        model_id=settings.model_id,
        request_s=settings.default_request_timeout_in_seconds,
        keepalive_s=settings.stream_keepalive_in_seconds,
        max_retries=settings.max_retries,
        backoff_s=settings.retry_backoff_initial / 1000,
        longest_backoff_s=settings.retry_backoff_max / 1000,
        forward_authorization=settings.forward_authorization,
        anthropic_default_max_tokens=settings.anthropic_default_max_tokens,
    )
    profiles = ProfileService(lambda: launch.choice)
    pool, client = ServerPool(launch.servers, notice=notice), EngineClient(limits)
    pool.ask_with(Prober(pool, ready_of(client)).wake)
    return Gateway(profiles, pool, client, policy)
