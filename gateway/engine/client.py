"""Asks an engine and reads its answer; every way in which that can fail, as one of our faults.

What a failure says is decided by how far the request got (see `Exchange`):

| got as far as | fault | asked elsewhere |
|---|---|---|
| no connection | upstream_unreachable, refused | yes |
| reset or closed, no byte of an answer, used before | none: once more on a fresh one | |
| reset or closed, no byte of an answer, fresh | upstream_unreachable | yes |
| a part of the request not taken in time | upstream_timeout | yes |
| no answer in time, or silence in it | upstream_timeout | never: it may still be at work |
| an answer that is not HTTP, is cut, is too large | upstream_protocol_error | no |
| a redirect, or an encoding that was not asked for | upstream_protocol_error | no |

Messages are for clients and never name a server or its address.
"""

import math
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from gateway.engine.faults import Lost, fault_of
from gateway.engine.framing import Framing, FramingError, UntilClose, framing_of
from gateway.engine.servers import Server
from gateway.engine.transport import (
    POOL_CLASSES,
    READ_BYTES,
    Exchange,
    Limits,
    Silence,
    exchanging,
)
from gateway.engine.watch import Watch
from gateway.errors import (
    UPSTREAM_PROTOCOL,
    ClientGone,
    EngineFault,
    GatewayError,
)

__all__ = ["Answer", "EngineClient", "Limits"]

_MIN_STATUS: Final = 200
_MAX_STATUS: Final = 599


class _Adapter(HTTPAdapter):
    """Uses this package's connections; retries nothing by itself.

    It is called without a session: that would look for proxies and for a .netrc, which replaces
    the key, follow cookies and redirects, and prepare every request from nothing, which takes
    longer than all the rest.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(
            pool_connections=256,  # servers; a pool that falls out would close its connections
            pool_maxsize=limits.pool_size,
            max_retries=Retry(0, read=False, redirect=False),
        )

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def build_response(self, _: PreparedRequest, resp: Any) -> requests.Response:
        """The reply as it is: its cookies and its text encoding are of no interest."""
        response = requests.Response()
        response.raw = resp
        response.status_code = resp.status
        return response

    def close(self) -> None:
        """Closes the pooled connections now: urllib3 leaves that to the garbage collector."""
        pools = self.poolmanager.pools
        for key in pools.keys():  # noqa: SIM118 - iterating it directly is not allowed
            pool = pools.get(key)
            if pool is not None:
                pool.close()
        super().close()


class EngineClient:
    """Talks to engines; one for all threads.

    Args:
        limits: for every request.
        ca_file: the certificates that vouch for engines; None: the well-known ones.
    """

    def __init__(self, limits: Limits | None = None, *, ca_file: str | None = None) -> None:
        self.limits: Final = Limits() if limits is None else limits
        self._verify: Final[bool | str] = True if ca_file is None else ca_file
        self._adapter: Final = _Adapter(self.limits)

    def close(self) -> None:
        """Closes the connections that idle."""
        self._adapter.close()

    def post(
        self,
        server: Server,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        watch: Watch,
        *,
        first_byte_s: float | None = None,
    ) -> "Answer":
        """Sends a request and waits for the head of the answer, whatever its status.

        Args:
            server: that is asked.
            path: below the server's URL, with its leading slash.
            body: sent as it is.
            headers: names in any case.
            watch: ends the waits; of the answer too.
            first_byte_s: what is left of the request's time, where it is less than the limit.

        Returns:
            The answer, which is to be closed.

        Raises:
            EngineFault: see the table above.
            ClientGone: the client left; the engine's connection is closed.
            GatewayError: 503, the gateway is draining.
        """
        return self._ask(
            "POST", server.url + path, body, headers, watch=watch, first_byte_s=first_byte_s
        )

    def get(
        self,
        server: Server,
        path: str,
        headers: Mapping[str, str],
        watch: Watch,
        *,
        first_byte_s: float | None = None,
    ) -> "Answer":
        """Like `post`, without a body."""
        return self._ask(
            "GET", server.url + path, None, headers, watch=watch, first_byte_s=first_byte_s
        )

    def _ask(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        watch: Watch,
        first_byte_s: float | None,
    ) -> "Answer":
        limits, wait_s = self.limits, self.limits.first_byte_s
        if first_byte_s is not None:
            wait_s = min(first_byte_s, wait_s)
        exchange = Exchange(watch, limits, deadline_s=time.monotonic() + wait_s)
        request = _prepare(method, url, headers, body)
        try:
            return self._send(request, exchange)
        except Lost as lost:
            if not exchange.reused:
                raise lost.fault from lost
        # The engine closed a connection that idled, just as the request was on its way. The
        # connection is closed by now.
        again = Exchange(watch, limits, exchange.deadline_s, fresh=True)
        try:
            return self._send(request, again)
        except Lost as lost:
            raise lost.fault from lost

    def _send(self, request: PreparedRequest, exchange: Exchange) -> "Answer":
        exchange.watch.check()
        try:
            with exchanging(exchange):
                response = self._adapter.send(
                    request,
                    stream=True,
                    timeout=(exchange.limits.connect_s, None),
                    verify=self._verify,
                )
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise fault_of(error, exchange) from error
        return Answer(response, exchange)


def _prepare(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None
) -> PreparedRequest:
    request = PreparedRequest()
    request.method = method
    request.url = _quote(url)
    request.headers = CaseInsensitiveDict(_HEADERS)
    request.headers.update(headers)
    request.body = body
    if body is not None:
        request.headers["content-length"] = str(len(body))
    return request


@lru_cache(maxsize=4096)
def _quote(url: str) -> str:
    """The URL as requests puts it on the wire."""
    request = PreparedRequest()
    request.prepare_url(url, None)
    return request.url or url


_HEADERS: Final = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "sgl-gateway"}


class Answer:
    """An engine's answer, its body still to be read. Of one thread; to be closed.

    Attributes:
        status: 200 to 299 or 400 to 599.
        headers: by name in any case; those with line ends or control characters are left out.
    """

    def __init__(self, response: requests.Response, exchange: Exchange) -> None:
        """Not called directly.

        Raises:
            EngineFault: the head is not one that can be used; the connection is closed.
        """
        self._raw = response.raw
        self._connection = self._raw.connection
        self._exchange = exchange
        self._reader = self._connection.reader
        self._buffered = self._connection.buffered
        self._closed = False
        self._fault: Exception | None = None
        self._framing: Framing = UntilClose()
        self.status: Final[int] = response.status_code
        self.headers: Final[Mapping[str, str]] = CaseInsensitiveDict(
            {
                name: value
                for name, value in self._raw.headers.items()
                if value.replace("\t", " ").isprintable()
            }
        )
        try:
            self._framing = self._read_head()
        except FramingError as error:
            raise self._fail(error) from None
        if self._framing.done:
            self.close()

    def _read_head(self) -> Framing:
        if self.status // 100 == 3:
            raise FramingError("answered with a redirect, which is not followed")
        if not _MIN_STATUS <= self.status <= _MAX_STATUS:
            raise FramingError(f"answered with the status {self.status}")
        headers = self._raw.headers
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise FramingError("sent a compressed answer, which was not asked for")
        return framing_of(
            self.status,
            headers.getlist("transfer-encoding"),
            headers.getlist("content-length"),
        )

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; empty where there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def commit(self) -> None:
        """The answer has said something: from now on the idle limit alone counts.

        Until then a silence may last as long as the request's own time allows: an engine that
        sends its head at once and thinks for minutes is not stalled.
        """
        self._exchange.committed = True

    def next(self, timeout_s: float | None) -> bytes | None:
        """The next bytes of the body, as soon as there are any.

        Args:
            timeout_s: of silence, after which None is returned; None waits as long as the
                limits allow. Silence is counted over calls.

        Returns:
            Bytes; `b""` at a proper end, then and ever after; None after `timeout_s`. Nothing
            is lost by a None: call again.

        Raises:
            EngineFault: the body was cut or cannot be read (upstream_protocol_error), or the
                engine was silent too long (upstream_timeout). The connection is closed, and
                further calls raise the same.
            ClientGone: the client left; the connection is closed.
            GatewayError: 503, the gateway is draining; the connection is closed.
        """
        if self._fault is not None:
            raise self._fault
        if self._framing.done:
            return b""
        if self._closed:
            raise ValueError("the answer was closed before its end")
        self._reader.until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        try:
            return self._read_body()
        except Silence:
            return None
        except (GatewayError, ClientGone) as error:
            self._fault = error
            self.close()
            raise
        except FramingError as error:
            raise self._fail(error) from None
        except OSError as error:
            raise self._fail("cut its answer off") from error

    def _read_body(self) -> bytes:
        framing = self._framing
        body = b""
        while not (body or framing.done):
            if framing.error is not None:
                raise framing.error
            data = self._buffered.read1(READ_BYTES)
            if data:
                body = framing.feed(data)
            else:
                framing.end()
        if framing.done:
            self.close()
        return body

    def read(self, limit_bytes: int) -> bytes:
        """The whole body.

        Args:
            limit_bytes: the most that is read.

        Raises:
            EngineFault, ClientGone, GatewayError: as for `next`; also where the body is longer
                than the limit (upstream_protocol_error).
        """
        parts: list[bytes] = []
        size = 0
        while part := self.next(None):
            parts.append(part)
            size += len(part)
            if size > limit_bytes:
                raise self._fail(f"sent an answer of more than {limit_bytes} bytes")
        return b"".join(parts)

    def close(self) -> None:
        """Lets go of the connection; idempotent.

        One that stands at the end of the answer is kept for later; any other is closed at once,
        which makes the engine stop generating.
        """
        if self._closed:
            return
        self._closed = True
        # urllib3 is not told of the body's end, since it did not read the body.
        reply = self._raw._original_response  # noqa: SLF001 - it has no public name
        if self._framing.clean and not self._exchange.unsent and not reply.will_close:
            reply.close()
            self._connection.keep()
            self._raw.release_conn()
            return
        self._raw.close()  # the connection's socket as well
        self._raw.release_conn()  # the pool gets its place back; used again, it connects anew

    def _fail(self, error: FramingError | str) -> EngineFault:
        fault = self._fault = EngineFault(UPSTREAM_PROTOCOL, f"The engine {error}.")
        self.close()
        return fault
