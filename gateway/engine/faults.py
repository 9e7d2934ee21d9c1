"""What it means that a request to an engine failed: one of our faults, for the table in `client`.

Messages are for clients and never name a server or its address.
"""

import socket
import ssl
from typing import Final

from gateway.engine.transport import Exchange
from gateway.errors import UPSTREAM_PROTOCOL, UPSTREAM_UNREACHABLE, EngineFault


class Lost(Exception):  # noqa: N818 - carries the fault it becomes
    """The connection went before any byte of an answer."""

    def __init__(self, fault: EngineFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


_UNREACHED: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (socket.gaierror, "its name is not known"),
    (TimeoutError, "no connection within {connect_s:g} s"),
    (ssl.SSLError, "no secure connection"),
    (ConnectionRefusedError, "the connection was refused"),
    (ConnectionResetError, "the connection was reset"),
)

_DEEPEST_CAUSE: Final = 10


def fault_of(error: BaseException, exchange: Exchange) -> Exception:
    """What an error of requests, urllib3 or the socket means, by how far the request got.

    Args:
        error: as it was raised.
        exchange: the request.

    Returns:
        An `EngineFault`, or `Lost` where the connection went before any answer.
    """
    if exchange.begun:
        return EngineFault(
            UPSTREAM_PROTOCOL, "The engine sent an answer whose head cannot be read."
        )
    if exchange.connected:
        text = "The engine closed the connection before it answered."
        return Lost(EngineFault(UPSTREAM_UNREACHABLE, text, retriable=True))
    reason = next(
        (text for kind, text in _UNREACHED if _caused_by(error, kind)),
        "it cannot be connected to",
    ).format(connect_s=exchange.limits.connect_s)
    return EngineFault(
        UPSTREAM_UNREACHABLE,
        f"The engine cannot be reached: {reason}.",
        retriable=True,
        refused=True,
    )


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an exception of this type is at the root of what requests and urllib3 made."""
    for _ in range(_DEEPEST_CAUSE):
        if error is None or isinstance(error, kind):
            break
        inner = (getattr(error, "reason", None), *error.args[:1], error.__cause__)
        error = next((one for one in inner if isinstance(one, BaseException)), None)
    return isinstance(error, kind)
