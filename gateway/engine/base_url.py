"""The base URL of a server, read strictly: a wrong one must stop the start, not fail requests."""

import re
from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SHOULD: Final = "write it like http://10.0.0.5:30000"
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9.])?")
_IPV6: Final = re.compile(r"[0-9a-f:.]+(%[a-z0-9._~-]+)?")
_PATH: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")


def parse_base_url(text: str) -> str:
    """The base URL in its one spelling.

    It needs http or https and a host. A trailing `/` or `/v1` is folded away, a path prefix
    stays, a port that is the scheme's own is left out; scheme and host are in lower case.

    Args:
        text: as the operator wrote it.

    Raises:
        ValueError: it is no such URL; the message says what is wrong with it.
    """
    if not text:
        raise ValueError(f"the base URL is empty; {_SHOULD}")
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(f"the base URL {text!r} has white space in it")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS:
        shown = "" if "@" in text else f" {text!r}"
        raise ValueError(f"the base URL{shown} does not begin with http:// or https://; {_SHOULD}")
    if "@" in rest.partition("/")[0]:  # not shown: it may be a password
        raise ValueError("the base URL names a user; give the key in the server's `value` instead")
    for mark, part in (("?", "a query"), ("#", "a fragment")):
        if mark in rest:
            raise ValueError(f"the base URL {text!r} has {part}; leave it out")
    return f"{scheme}://{_authority(text, scheme)}{_prefix(text, rest)}"


def _authority(text: str, scheme: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"the base URL {text!r} cannot be read: {error}") from None
    host = parts.hostname or ""
    if not host:
        raise ValueError(f"the base URL {text!r} names no host; {_SHOULD}")
    if parts.netloc.endswith(":"):
        raise ValueError(f"the base URL {text!r} has a colon and no port; {_SHOULD}")
    bracketed = parts.netloc.startswith("[")
    if not (_IPV6 if bracketed else _HOST).fullmatch(host):
        raise ValueError(
            f"the base URL {text!r} names no usable host (letters, digits, `.` and `-`); {_SHOULD}"
        )
    if port == 0:
        raise ValueError(f"the base URL {text!r} has port 0; a port is 1 to 65535")
    name = f"[{host}]" if bracketed else host
    return name if port in (None, _DEFAULT_PORTS[scheme]) else f"{name}:{port}"


def _prefix(text: str, rest: str) -> str:
    path = rest[len(rest.partition("/")[0]) :]
    if not _PATH.fullmatch(path) or ".." in path.split("/") or "." in path.split("/"):
        raise ValueError(f"the base URL {text!r} has a path that cannot be used as it is")
    return path.rstrip("/").removesuffix("/v1").rstrip("/")
