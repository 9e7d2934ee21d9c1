"""gunicorn's own lines, in the shape of the gateway's."""

import logging

from gunicorn.glogging import Logger

from gateway.telemetry.logging import formatter_for


class GunicornLogger(Logger):
    """gunicorn's logger; its records go through the gateway's formatter.

    The format is the root handler's, which `gateway.telemetry.logging.configure` has set before
    gunicorn makes its logger. gunicorn's access log stays off: a request has its own line.
    """

    def setup(self, cfg: object) -> None:
        """Called at the start and at every reload."""
        super().setup(cfg)  # type: ignore[no-untyped-call]  # gunicorn has no types
        root = logging.getLogger().handlers
        formatter = root[0].formatter if root else formatter_for(None)
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(formatter)
