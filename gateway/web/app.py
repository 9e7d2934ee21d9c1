"""Builds the WSGI application.

`create_app` takes what it serves; `get_app` is what gunicorn calls in each worker, with what
the arbiter loaded and checked before it forked.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from wsgiref.types import WSGIApplication

import falcon

from gateway.errors import GatewayError
from gateway.routes import ROUTES
from gateway.service.build import build_gateway
from gateway.service.clients import ClientLimit
from gateway.service.gateway import Gateway
from gateway.service.models import ModelList
from gateway.service.work import Admission
from gateway.startup import Launch, current
from gateway.telemetry.logging import log_request
from gateway.web import errors
from gateway.web.body import BodyLimits
from gateway.web.metrics import PATH, MetricsResource, build_metrics, by_port
from gateway.web.resources import (
    UNSUPPORTED,
    HealthResource,
    InferenceResource,
    ModelsResource,
    UnsupportedResource,
)
from gateway.web.server import DRAIN, Drain
from gateway.web.streaming import guarded

if TYPE_CHECKING:
    from gateway.telemetry.metrics import Metrics


def get_app() -> WSGIApplication:
    """The application of a worker process."""
    launch = current()
    return create_app(launch, metrics=build_metrics(launch))


def create_app(
    launch: Launch, drain: Drain = DRAIN, metrics: "Metrics | None" = None
) -> WSGIApplication:
    """The application.

    Args:
        launch: what it serves, loaded and checked.
        drain: whether the process is on its way out.
        metrics: of the process; None: none are kept.
    """
    settings = launch.settings
    gateway = build_gateway(launch, metrics.leave_out if metrics else None)
    app = _json_app()
    admission = Admission(settings.max_inflight, drain.draining, metrics.count if metrics else None)
    sinks = (log_request, metrics.observe) if metrics else (log_request,)
    limits = BodyLimits(
        stall_s=settings.body_timeout_in_seconds, total_s=settings.body_timeout_in_seconds * 2
    )
    clients = ClientLimit(settings.max_inflight_per_client)
    for route in ROUTES:
        app.add_route(
            route.path,
            InferenceResource(
                route,
                gateway,
                admission,
                limits,
                settings.send_timeout_in_seconds,
                sinks,
                launch.api_keys,
                clients,
            ),
        )
    models = ModelsResource(ModelList(gateway.names, gateway.cards), launch.api_keys, admission)
    app.add_route("/v1/models", models)
    app.add_route("/v1/models/{name:path}", models, suffix="one")
    for path, operation in UNSUPPORTED.items():
        refused = UnsupportedResource(operation)
        app.add_route(path, refused)
        app.add_route(f"{path}/{{rest:path}}", refused)
    health = {path: HealthResource(problem) for path, problem in _health(gateway, drain).items()}
    for path, resource in health.items():
        app.add_route(path, resource)
    if metrics is None:
        return guarded(app)
    if settings.metrics_port is None:
        app.add_route(PATH, MetricsResource(metrics.exposition, launch.api_keys))
        return guarded(app)
    own = _json_app()
    own.add_route(PATH, MetricsResource(metrics.exposition, None))
    for path, resource in health.items():
        own.add_route(path, resource)
    return by_port({settings.metrics_port: own}, guarded(app))


def _json_app() -> "falcon.App[falcon.Request, falcon.Response]":
    """An application that answers every error as JSON."""
    app = falcon.App()
    app.req_options.strip_url_path_trailing_slash = True
    app.resp_options.xml_error_serialization = False
    app.add_error_handler(Exception, errors.handle_bug)
    app.add_error_handler(falcon.HTTPError, errors.handle_http_error)
    app.add_error_handler(GatewayError, errors.handle_gateway_error)
    return app


def _health(gateway: Gateway, drain: Drain) -> dict[str, Callable[[], str | None]]:
    """By path, what keeps it from being healthy. `/livez` never looks beyond the process."""

    def ready() -> str | None:
        if drain.draining():
            return "draining"
        return None if gateway.available else "no server is in service"

    def alive() -> str | None:
        return None

    return {"/": alive, "/livez": alive, "/healthz": alive, "/readyz": ready}
