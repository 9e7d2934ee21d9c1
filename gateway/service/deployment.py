"""From what the operator set to a gateway that can serve.

Loading is apart from building: a deployment is loaded and checked once, before any worker is
started, and each worker builds its own gateway from it.
"""

from dataclasses import dataclass, replace
from typing import Final

from gateway.engine.client import EngineClient, Limits
from gateway.engine.servers import Server, ServerPool, servers_of_urls
from gateway.profile import Choice, ProfileService, override_sampling, select
from gateway.service.gateway import Gateway, Policy
from gateway.settings import Settings, SettingsError

NO_BASE_URL: Final = (
    "no base URL configured: either set sgl_key_config.url on the key"
    " or set network_config.base_url"
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a process serves: settings, the profile in effect, and the servers."""

    settings: Settings
    choice: Choice
    servers: tuple[Server, ...]


def load_profile(settings: Settings) -> Choice:
    """The profile in effect, the overriding flags applied.

    Raises:
        ProfileError: the source that was set is missing or invalid, or a flag is.
    """
    choice = select(
        file=settings.api_profile_file, name=settings.api_profile, env=settings.api_profile_env
    )
    params, conflict = settings.override_sampling_params, settings.sampling_param_conflict
    if params is None and conflict is None:
        return choice
    return replace(choice, loaded=override_sampling(choice.loaded, params, conflict))


def load_deployment(settings: Settings) -> Deployment:
    """Reads and checks everything that serving needs.

    Raises:
        SettingsError, ProfileError: it cannot be served; the message is for the operator.
    """
    choice = load_profile(settings)
    profile = choice.loaded.profile
    if profile.aliases and settings.model_id is None:
        raise SettingsError(
            "the profile's models.aliases need a served model to stand for: set --model-id"
        )
    if not settings.worker_urls:
        raise SettingsError(NO_BASE_URL)
    try:
        servers = servers_of_urls(settings.worker_urls, settings.worker_api_key)
    except ValueError as error:
        raise SettingsError(f"--worker-urls: {error}") from None
    return Deployment(settings, choice, servers)


def build_gateway(deployment: Deployment) -> Gateway:
    """The gateway of one process."""
    settings = deployment.settings
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
    )
    return Gateway(
        _profile_service(deployment), ServerPool(deployment.servers), EngineClient(limits), policy
    )


def _profile_service(deployment: Deployment) -> ProfileService:
    choices = [deployment.choice]

    def load() -> Choice:
        return choices.pop() if choices else load_profile(deployment.settings)

    return ProfileService(load)
