"""The keys that clients must present, where the operator names a file of them.

One key a line; lines that begin with `#` are comments; `sha256:` and 64 hex digits stand for the
key with that digest. Only digests are kept, so that no key can be read from the process, and a
lookup tells nothing about how much of a guess was right.
"""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from gateway.settings import SettingsError


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """A set of keys.

    Attributes:
        digests: SHA-256 of each.
    """

    digests: frozenset[bytes] = field(repr=False)

    def admits(self, presented: str) -> bool:
        """Whether a client that presents this key may pass."""
        return self.identify(presented) is not None

    def identify(self, presented: str) -> bytes | None:
        """What stands for the client that presents this key; None: it may not pass."""
        digest = _digest(presented)
        return digest if digest in self.digests else None


def load_api_keys(path: str) -> ApiKeys:
    """Reads a file of keys.

    Raises:
        SettingsError: it cannot be read, a line is no key, or it names none at all: an empty
            file would otherwise be an open gate. A message never shows what a line holds.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"--api-keys-file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"--api-keys-file: {path} is not UTF-8 text") from None
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), start=1))
    digests = frozenset(
        _parse_line(f"--api-keys-file: {path}:{number}", line)
        for number, line in lines
        if line and not line.startswith("#")
    )
    if not digests:
        raise SettingsError(
            f"--api-keys-file: {path} names no key; to leave the gateway open, name no file"
        )
    return ApiKeys(digests)


def _parse_line(where: str, line: str) -> bytes:
    kind, _, rest = line.partition(":")
    if kind == "sha256":
        if not re.fullmatch(r"[0-9a-fA-F]{64}", rest):
            raise SettingsError(f"{where}: sha256: needs 64 hex digits after it")
        return bytes.fromhex(rest)
    if not re.fullmatch(r"[!-~]+", line):
        raise SettingsError(
            f"{where}: a key is printable ASCII without spaces; a comment has a line of its own"
        )
    return _digest(line)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
