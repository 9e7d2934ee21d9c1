"""Requests without an SDK: what is on the wire, to the byte, and clients that leave."""

import http.client
import json
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

WAIT_S = 60


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end.

    Attributes:
        headers: names in lower case.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def events(self):
        """The events of a stream: each its name, or None, and its data, decoded if it can be."""
        return [_event(block) for block in self.body.decode().split("\n\n") if block.strip()]


def _event(block):
    name = data = None
    for line in block.split("\n"):
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data = value if value == "[DONE]" else json.loads(value)
    return name, data


def request(gateway, path, body=None, method=None, headers=None):
    """Sends a request, its body bytes or a value; returns the whole answer."""
    address = urlsplit(gateway.url)
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=WAIT_S)
    try:
        connection.request(
            method or ("GET" if raw is None else "POST"),
            path,
            raw,
            {"content-type": "application/json", **(headers or {})},
        )
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, names, answer.read())
    finally:
        connection.close()


class Leaver:
    """A client that sends a whole request, and may leave before it is answered."""

    def __init__(self, gateway, path, body):
        address = urlsplit(gateway.url)
        raw = json.dumps(body).encode()
        self._sock = socket.create_connection((address.hostname, address.port), WAIT_S)
        head = f"POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
        self._sock.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)

    def read_until(self, mark):
        """Reads until these bytes have come."""
        got = b""
        while mark not in got:
            piece = self._sock.recv(65536)
            assert piece, got
            got += piece

    def leave(self):
        """Closes the connection."""
        self._sock.close()
