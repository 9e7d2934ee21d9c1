"""Wires up the gateway of one process from what was loaded at its start."""

from gateway.engine.client import EngineClient, Limits
from gateway.engine.servers import ServerPool
from gateway.profile import ProfileService
from gateway.service.gateway import Gateway, Policy
from gateway.startup import Launch


def build_gateway(launch: Launch) -> Gateway:
    """The use cases, with their own connections and their own view of the servers' health."""
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
        forward_authorization=settings.forward_authorization,
        anthropic_default_max_tokens=settings.anthropic_default_max_tokens,
    )
    profiles = ProfileService(lambda: launch.choice)
    return Gateway(profiles, ServerPool(launch.servers), EngineClient(limits), policy)
