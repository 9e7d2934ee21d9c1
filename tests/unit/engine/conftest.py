"""An engine client with short limits, and the ways to ask with it."""

from collections.abc import Callable, Iterator

import pytest

from gateway.engine.client import Answer, EngineClient, Limits
from gateway.engine.servers import Server
from gateway.engine.watch import Watch

# Long enough that only a failure uses it up, short enough that a failure is soon seen.
PATIENT = Limits(connect_s=5, send_s=5, first_byte_s=5, idle_s=5, pool_size=4)


@pytest.fixture
def client() -> Iterator[EngineClient]:
    """A client whose limits no passing test reaches."""
    one = EngineClient(PATIENT)
    yield one
    one.close()


@pytest.fixture
def ask(client: EngineClient) -> Iterator[Callable[..., Answer]]:
    """Posts to a base URL: `ask(url)`, with `body`, `headers`, `watch` where they matter."""
    answers: list[Answer] = []

    def post(
        url: str,
        body: bytes = b"{}",
        headers: dict[str, str] | None = None,
        watch: Watch | None = None,
        *,
        by: EngineClient = client,
        first_byte_s: float | None = None,
    ) -> Answer:
        answer = by.post(
            Server("the-name", url),
            "/v1/chat/completions",
            body,
            headers or {},
            watch or Watch(),
            first_byte_s=first_byte_s,
        )
        answers.append(answer)
        return answer

    yield post
    for answer in answers:
        answer.close()


@pytest.fixture
def impatient() -> Iterator[Callable[..., EngineClient]]:
    """Makes clients with a limit that a test does reach: `impatient(idle_s=0.05)`."""
    clients: list[EngineClient] = []

    def build(**limits: float) -> EngineClient:
        values = {"connect_s": 5, "send_s": 5, "first_byte_s": 5, "idle_s": 5, "pool_size": 4}
        clients.append(EngineClient(Limits(**(values | limits))))  # type: ignore[arg-type]
        return clients[-1]

    yield build
    for one in clients:
        one.close()
