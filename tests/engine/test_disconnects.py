"""A client that leaves stops the engine's work: SGLang's scheduler is told within two seconds."""

import pytest
from rig.asking import user
from rig.raw import Leaver
from rig.scripts import script

SOON_S = 2.0

POSITIONS = {
    "before a buffered answer": (False, {"hang": True}, None),
    "within a buffered answer": (False, {"words": 4000, "token_ms": 20}, None),
    "before a stream": (True, {"words": 4000, "first_ms": 60_000}, None),
    "within a stream": (True, {"words": 4000, "token_ms": 20}, b"word"),
}
"""By where the client leaves: whether it asked for a stream, the script, what it has read."""


@pytest.mark.parametrize(
    ("streamed", "wanted", "read"),
    POSITIONS.values(),
    ids=[name.replace(" ", "-") for name in POSITIONS],
)
def test_a_client_that_leaves(serve, twin, speaks, dialect, streamed, wanted, read):
    """Wherever it leaves, the engine's connection is closed and the generation aborted."""
    gateway = serve(twin, speaks=speaks)
    body = dialect.body([user(script(**wanted))], budget=6000)
    client = Leaver(gateway, dialect.path, {"model": gateway.model, "stream": streamed, **body})
    [begun] = twin.wait_for("begin")
    if read:
        client.read_until(read)

    client.leave()

    [aborted] = twin.wait_for("abort", within_s=SOON_S)
    assert aborted["rid"] == begun["rid"]
    [exchange] = gateway.wire.exchanges
    assert exchange.closed.is_set()
