"""gunicorn's options for the gateway.

`sgl-gateway serve` uses this file; under a process manager the same thing is

    gunicorn -c conf/gunicorn.conf.py "gateway.web.app:get_app()"

with the settings as environment variables. Every public name here is an option of gunicorn,
which would ignore a misspelt one without a word; a test holds the names against its list.
"""

import faulthandler
import os

from gateway import startup as _startup
from gateway.settings import GRACEFUL_TIMEOUT_S as _GRACEFUL_TIMEOUT_S

# Everything is loaded and checked here, in the master: what cannot start ends now, with one
# line and status 2, before there is a worker that could fail over and over.
_settings = _startup.start_or_exit().settings
_single = _settings.workers == 1

wsgi_app = "gateway.web.app:get_app()"
proc_name = "sgl-gateway"
bind = _settings.binds
workers = _settings.workers
worker_class = _startup.WORKER_CLASS

# A worker that takes more connections than it has threads lets requests wait while another is
# idle: measured with 2 workers of 4 threads, 8 requests of 2 s took 3.7 s, and 2.0 s with this.
# Kept-alive connections count as taken, so they are off, unless there is but one worker.
threads = _settings.threads
worker_connections = threads + 1000 if _single else threads
keepalive = 75 if _single else 0

# `timeout` watches the worker's main loop, not requests: those may take as long as they take.
timeout = 30
graceful_timeout = _GRACEFUL_TIMEOUT_S

# Code and sessions belong to a worker, so that HUP brings in both anew; only what `startup`
# loaded is inherited.
preload_app = False
max_requests = 0  # recycling a worker would cut its streams
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - memory

# Two instances of one user would share the default path, and the second would take it over.
control_socket_disable = True

accesslog = None  # a request has a line of its own, written at its true end
errorlog = "-"
loglevel = _settings.log_level
logger_class = "gateway.telemetry.gunicorn_logger.GunicornLogger"

forwarded_allow_ips = "127.0.0.1,::1"
limit_request_line = 8190
limit_request_field_size = 16380
reuse_port = False


def on_starting(server):  # noqa: ANN001, ANN201, D103
    inherited = bool(server.LISTENERS or server.master_pid or os.environ.get("LISTEN_FDS"))
    _startup.check_server(server.cfg, inherited)
    _startup.start_metrics()
    _startup.announce()


def on_reload(server):  # noqa: ANN001, ANN201, ARG001, D103
    _startup.start_metrics(reloading=True)
    _startup.announce()


def post_worker_init(worker):  # noqa: ANN001, ANN201, D103
    from gateway.web.server import worker_started  # noqa: PLC0415 - the worker's code, not the master's

    worker_started(worker)


def child_exit(server, worker):  # noqa: ANN001, ANN201, ARG001, D103
    _startup.worker_ended(worker.pid)


def on_exit(server):  # noqa: ANN001, ANN201, ARG001, D103
    _startup.end()


def worker_abort(worker):  # noqa: ANN001, ANN201, ARG001, D103
    faulthandler.dump_traceback(all_threads=True)
