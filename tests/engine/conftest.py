"""Engines for tests: SGLang itself on a tiny model, its scripted twin, or one that runs elsewhere.

`engine` is the real one, or the one that SGLANG_URL and SGLANG_MODEL name (SGLANG_API_KEY where it
asks for a key). What needs a script, or an engine that is stopped and started, asks for `twin` or
`start_engine`, and is skipped where the engine runs elsewhere.
"""

import contextlib
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from rig import install, processes
from rig.asking import DIALECTS
from rig.bodies import BodyJudge
from rig.gateways import start_gateway
from rig.processes import Target

LIVE = (
    Target(os.environ["SGLANG_URL"], os.environ["SGLANG_MODEL"])
    if os.environ.get("SGLANG_URL") and os.environ.get("SGLANG_MODEL")
    else None
)
LIVE_KEY = os.environ.get("SGLANG_API_KEY")
OWN_ENGINE_ONLY = "needs an engine of its own; this run's is SGLANG_URL"


def pytest_collection_finish(session):
    """Builds what is missing before the first test: nobody waits for it within a test's limit."""
    here = Path(__file__).parent
    if session.config.option.collectonly or not any(
        here in item.path.parents for item in session.items
    ):
        return
    try:
        install.bodies_home()
        if LIVE is None:
            install.engine_home()
    except install.InstallError as error:
        pytest.exit(f"the rig of the engine tests: {error}", returncode=1)
    if LIVE is None:
        wanted = {name for item in session.items for name in item.fixturenames}
        FLEET.begin([shared for name, shared in SHARED.items() if name in wanted])


class Fleet:
    """The engines and gateways of a session, each started when it is first asked for."""

    def __init__(self):
        self._engines = {}
        self._gateways = {}

    def begin(self, keys):
        """Starts engines side by side, and waits for none."""
        for key in keys:
            self._engines[key] = processes.start_engine(*key, wait=False)

    def engine(self, *key):
        """An engine of the rig, its kind and flags, shared by all tests that ask for the same."""
        if key not in self._engines:
            self.begin([key])
        self._engines[key].wait_ready()
        return self._engines[key]

    def gateway(self, target, *flags, **more):
        """A gateway before an engine, shared likewise; it has forgotten what was before."""
        key = (target.url, flags, tuple(sorted(more.items())))
        if key not in self._gateways:
            self._gateways[key] = start_gateway(target, *flags, **more)
        return self._gateways[key]

    @property
    def gateways(self):
        """All that run."""
        return list(self._gateways.values())

    def stop(self):
        """Ends everything."""
        for each in (*self._gateways.values(), *self._engines.values()):
            each.stop()


FLEET = Fleet()
SHARED = {
    "engine": ("real",),
    "twin": ("twin",),
    "embedder": ("real", "--is-embedding"),
    "narrow": ("real", "--max-running-requests", "1", "--max-queued-requests", "1"),
    "locked": ("twin", "--api-key", "right"),
}
"""By fixture, an engine that is started once a session: its kind and flags."""


@pytest.fixture(scope="session")
def fleet():
    """What runs in this session."""
    yield FLEET
    FLEET.stop()


@pytest.fixture
def engine(fleet):
    """The engine that answers as SGLang does because it is SGLang."""
    return LIVE or fleet.engine(*SHARED["engine"])


@pytest.fixture
def twin(fleet):
    """The engine that a test scripts in its prompt."""
    if LIVE:
        pytest.skip(OWN_ENGINE_ONLY)
    scripted = fleet.engine(*SHARED["twin"])
    scripted.forget()
    return scripted


@pytest.fixture
def embedder(fleet):
    """An engine that embeds."""
    if LIVE:
        pytest.skip(OWN_ENGINE_ONLY)
    return fleet.engine(*SHARED["embedder"])


@pytest.fixture
def locked(fleet):
    """A twin that asks for the key `right`."""
    if LIVE:
        pytest.skip(OWN_ENGINE_ONLY)
    return fleet.engine(*SHARED["locked"])


@pytest.fixture
def narrow(fleet):
    """A real engine that answers one request, and lets one more wait."""
    if LIVE:
        pytest.skip(OWN_ENGINE_ONLY)
    return fleet.engine(*SHARED["narrow"])


@pytest.fixture
def start_engine():
    """Starts engines with flags of their own: `start_engine(kind, *flags)`; ended with the test."""
    if LIVE:
        pytest.skip(OWN_ENGINE_ONLY)
    with contextlib.ExitStack() as stack:

        def start(kind, *flags):
            own = processes.start_engine(kind, *flags)
            stack.callback(own.stop)
            return own

        yield start


@pytest.fixture(scope="session")
def judge():
    """SGLang's request models."""
    process = BodyJudge()
    yield process
    process.close()


class Bodies:
    """What a test says about the bodies that it has engines get.

    Attributes:
        extra: keys that a client sent and SGLang does not declare, dotted, indices left out.
        refused: whether SGLang is meant to refuse some.
    """

    def __init__(self):
        self.extra = set()
        self.refused = False


@pytest.fixture
def bodies():
    """Lets a test say which of its bodies hold something that SGLang does not know."""
    return Bodies()


@pytest.fixture
def serve(fleet, judge, bodies, tmp_path_factory):
    """Puts a gateway before an engine: `serve(engine, *flags, profile=YAML)` gives a `Gateway`.

    After the test, every body that an engine got must be one that SGLang's own request models
    take, without a key that they do not know but the client's.
    """
    for gateway in fleet.gateways:
        gateway.wire.forget()

    def build(target, *flags, profile=None, **more):
        if profile is not None:
            path = tmp_path_factory.getbasetemp() / f"{abs(hash(profile))}.yaml"
            path.write_text(profile, encoding="utf-8")
            flags = (*flags, "--api-profile-file", str(path))
        if target is LIVE and LIVE_KEY:
            more = {"api_key": LIVE_KEY} | more
        return fleet.gateway(target, *flags, **more)

    yield build
    for gateway in fleet.gateways:
        for exchange in gateway.wire.exchanges:
            verdict = judge.judge(exchange.path, exchange.body)
            unknown = {
                ".".join(part for part in key.split(".") if not part.isdigit())
                for key in verdict.unknown
            }
            assert unknown <= bodies.extra, exchange.body
            assert bodies.refused or verdict.refused is None, (exchange.body, verdict.refused)


@pytest.fixture(params=["chat", "messages"], ids=["to-chat", "to-messages"])
def speaks(request):
    """Each dialect in which the gateway can ask an engine."""
    return request.param


@pytest.fixture(params=DIALECTS.values(), ids=DIALECTS)
def dialect(request):
    """Each dialect of clients."""
    return request.param


@pytest.fixture(params=[False, True], ids=["buffered", "streamed"])
def stream(request):
    """Both ways to be answered."""
    return request.param


@pytest.fixture
def kimi(serve, engine):
    """The gateway with the preset of Kimi before the engine."""
    return serve(engine, "--api-profile", "moonshot-kimi")
