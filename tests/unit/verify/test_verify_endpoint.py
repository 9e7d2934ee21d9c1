import json
from collections.abc import Iterator

import pytest

from gateway.demo.engine import Canned, DemoEngine
from gateway.routes import CHAT, MESSAGES, Route
from gateway.verify.cases import Case
from gateway.verify.endpoint import HttpEndpoint, NoAnswer

TURNS = [{"role": "user", "content": "hi"}]


@pytest.fixture
def engine() -> Iterator[DemoEngine]:
    """An engine as the endpoint."""
    with DemoEngine(model="m") as running:
        yield running


def case(route: Route = CHAT, *, cut: bool = False, **fields: object) -> Case:
    """A request."""
    body = {"model": "m", "messages": TURNS, "max_tokens": 9, **fields}
    return Case(route, route.path, json.dumps(body).encode(), (), cut=cut)


def test_an_answer(engine: DemoEngine) -> None:
    """Status, headers in lower case, the whole body; the request's bytes as they are."""
    asked = case()
    answered = HttpEndpoint(f"{engine.url}/v1/").ask(asked)
    assert answered.status == 200
    assert answered.headers["content-type"] == "application/json"
    assert json.loads(answered.body)["object"] == "chat.completion"
    assert engine.inference[0].body == asked.body
    assert engine.inference[0].headers["content-type"] == "application/json"


def test_a_refusal(engine: DemoEngine) -> None:
    """A 400 is an answer."""
    answered = HttpEndpoint(engine.url).ask(case(temperature=-1))
    assert (answered.status, answered.left) == (400, False)
    assert b"temperature must be non-negative" in answered.body


def test_get(engine: DemoEngine) -> None:
    """A case without a body is a GET."""
    answered = HttpEndpoint(engine.url).ask(Case(CHAT, "/v1/models", None, ()))
    assert json.loads(answered.body)["data"][0]["id"] == "m"
    assert engine.requests[0].method == "GET"


@pytest.mark.parametrize("route", [CHAT, MESSAGES], ids=["chat", "messages"])
def test_the_key(engine: DemoEngine, route: Route) -> None:
    """It is a Bearer token; to Messages it is x-api-key as well, with the version."""
    HttpEndpoint(engine.url, "k").ask(case(route))
    headers = engine.inference[0].headers
    assert headers["authorization"] == "Bearer k"
    assert headers.get("x-api-key") == ("k" if route is MESSAGES else None)
    assert headers.get("anthropic-version") == ("2023-06-01" if route is MESSAGES else None)


def test_no_key(engine: DemoEngine) -> None:
    """Without one nothing is sent."""
    HttpEndpoint(engine.url).ask(case(MESSAGES))
    assert not {"authorization", "x-api-key"} & engine.inference[0].headers.keys()


@pytest.mark.parametrize("route", [CHAT, MESSAGES], ids=["chat", "messages"])
def test_a_stream_is_left_at_its_first_words(engine: DemoEngine, route: Route) -> None:
    """Then the endpoint notices that nobody reads on."""
    engine.word_delay_s = 0.05
    answered = HttpEndpoint(engine.url).ask(case(route, cut=True, stream=True))
    assert (answered.status, answered.left) == (200, True)
    assert engine.wait_until(lambda engine: engine.gone == 1)


def test_a_stream_is_read_to_its_end(engine: DemoEngine) -> None:
    """Where the case does not say otherwise."""
    answered = HttpEndpoint(engine.url).ask(case(stream=True))
    assert answered.body.endswith(b"data: [DONE]\n\n")
    assert not answered.left


def test_a_stream_that_ends_at_once(engine: DemoEngine) -> None:
    """It was not left: it came to its end."""
    engine.canned.append(Canned(200, b": nothing\n\n", {"content-type": "text/event-stream"}))
    answered = HttpEndpoint(engine.url).ask(case(cut=True, stream=True))
    assert (answered.body, answered.left) == (b": nothing\n\n", False)


def test_nobody_there() -> None:
    """A refused connection is told as such."""
    with pytest.raises(NoAnswer, match="The endpoint cannot be reached") as caught:
        HttpEndpoint("http://127.0.0.1:1").ask(case())
    assert caught.value.unreached


def test_a_redirect(engine: DemoEngine) -> None:
    """It is not followed, and no answer."""
    engine.canned.append(Canned(302, b"", {"location": "http://127.0.0.1:1/"}))
    with pytest.raises(NoAnswer, match="The endpoint answered with a redirect") as caught:
        HttpEndpoint(engine.url).ask(case())
    assert not caught.value.unreached


@pytest.mark.parametrize("url", ["", "api.example.com", "ftp://a", "http://a?b"])
def test_no_url(url: str) -> None:
    """What is no base URL is refused before anything is sent."""
    with pytest.raises(ValueError, match="base URL"):
        HttpEndpoint(url)
