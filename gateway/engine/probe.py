"""One small question to a server, beside its clients' requests: is it there, what does it serve."""

import time
from dataclasses import dataclass
from typing import Final

from gateway.engine.client import EngineClient
from gateway.engine.headers import engine_headers
from gateway.engine.servers import Server
from gateway.engine.watch import Watch
from gateway.errors import GatewayError

READY_PATH: Final = "/ready"
"""SGLang answers it at once, without a key: 200, or 503 while it starts or drains."""

MODELS_PATH: Final = "/v1/models"

_MAX_BYTES: Final = 4 * 1024 * 1024
_REQUEST_ID: Final = "probe"


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of it.

    Attributes:
        status: of the answer; None where there was none.
        body: of the answer.
        fault: why there was none, in a sentence that names no address.
    """

    status: int | None
    body: bytes = b""
    fault: str = ""


def probe(client: EngineClient, server: Server, path: str, within_s: float) -> Probed:
    """Asks a server; every failure is an answer as well.

    Args:
        client: to ask with.
        server: to be asked, with its own key.
        path: below its URL.
        within_s: for the whole answer.
    """
    headers = engine_headers(server, {}, _REQUEST_ID, messages=False, forward_authorization=False)
    give_up_s = time.monotonic() + within_s
    watch = Watch(None, lambda: give_up_s)
    try:
        answer = client.get(server, path, headers, watch, first_byte_s=within_s)
        try:
            return Probed(answer.status, answer.read(_MAX_BYTES))
        finally:
            answer.close()
    except GatewayError as error:
        late = time.monotonic() >= give_up_s
        return Probed(
            None, fault=f"It did not answer within {within_s:g} s." if late else error.message
        )
