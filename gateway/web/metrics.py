"""`/metrics`: what is counted, and where it is served."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon

from gateway.api_keys import ApiKeys
from gateway.settings import metrics_directory
from gateway.startup import Launch
from gateway.web.auth import authenticate

if TYPE_CHECKING:
    from gateway.telemetry.metrics import Metrics

PATH: Final = "/metrics"

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


def build_metrics(launch: Launch) -> "Metrics | None":
    """The metrics of this process; None where none are kept.

    Models are told apart where settings name them. Any other name is a client's, and there is
    no end of those.
    """
    if not launch.metrics:
        return None
    from gateway.telemetry.metrics import Metrics  # noqa: PLC0415 - an extra

    loaded = launch.choice.loaded
    models = [launch.settings.model_id] if launch.settings.model_id else []
    for server in launch.servers:
        models += [*(server.models or ()), *(alias.model_id for alias in server.aliases.values())]
    return Metrics(
        servers=[server.name for server in launch.servers],
        models=models,
        profile=loaded.profile.name or loaded.source,
        digest=loaded.digest,
        directory=metrics_directory(),
    )


class MetricsResource:
    """`GET /metrics`.

    Args:
        exposition: the metrics in Prometheus's text format.
        keys: that a scraper must present; None: open.
    """

    def __init__(self, exposition: Callable[[], bytes], keys: ApiKeys | None) -> None:
        self._exposition = exposition
        self._keys = keys

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """The metrics of all processes."""
        authenticate(req.env, self._keys)
        resp.content_type = _PROMETHEUS
        resp.data = self._exposition()
        resp.set_header("cache-control", "no-store")


def by_port(own: Mapping[int, WSGIApplication], other: WSGIApplication) -> WSGIApplication:
    """Serves an application of its own on some ports, and another on all others."""
    by_text = {str(port): application for port, application in own.items()}

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return by_text.get(environ["SERVER_PORT"], other)(environ, start_response)

    return serve
