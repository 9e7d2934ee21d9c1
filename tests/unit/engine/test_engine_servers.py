"""What a server is, which one a request goes to, and when one is left out."""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from gateway.engine.health import FIRST_COOL_DOWN_S, LAST_COOL_DOWN_S, Outcome
from gateway.engine.servers import (
    Alias,
    Server,
    ServerPool,
    Target,
    servers_of_urls,
)


def server(name: str = "a", **values: object) -> Server:
    """A server whose URL does not matter."""
    return Server(name, f"http://{name}:1", **values)  # type: ignore[arg-type]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("models", "denied", "name", "admitted"),
    [
        (None, (), "m", True),
        (None, (), None, True),
        (("*",), (), "m", True),
        (("*",), (), None, True),
        ((), (), "m", False),
        ((), (), None, False),
        (("m",), (), "m", True),
        (("m",), (), "M", True),
        (("Straße",), (), "STRASSE", True),
        (("m",), (), "other", False),
        (("m",), (), None, False),
        (("m",), ("m",), "m", False),
        (None, ("M",), "m", False),
        (("*",), ("m",), "n", True),
        (None, ("*",), "m", False),
    ],
)
def test_the_lists_admit(
    models: tuple[str, ...] | None, denied: tuple[str, ...], name: str | None, admitted: bool
) -> None:
    """Absent: all; empty: none; `*`: any; the deny-list wins; case does not matter."""
    assert server(models=models, blacklisted_models=denied).admits(name) is admitted


ALIASES = {
    "fast": Alias("Qwen/Qwen3-8B"),
    "Fast": Alias("Other"),
    "coder": Alias("Qwen/Coder", use_anthropic_endpoints=True),
    "plain": Alias("Qwen/Plain", use_anthropic_endpoints=False),
}


@pytest.mark.parametrize(
    ("name", "messages", "target"),
    [
        ("fast", False, Target("Qwen/Qwen3-8B", False)),
        ("Fast", False, Target("Other", False)),
        ("FAST", False, Target("Qwen/Qwen3-8B", False)),
        ("fast", True, Target("Qwen/Qwen3-8B", True)),
        ("coder", False, Target("Qwen/Coder", True)),
        ("plain", True, Target("Qwen/Plain", False)),
        ("qwen/qwen3-8b", False, Target("Qwen/Qwen3-8B", False)),
        ("unknown", True, Target("unknown", True)),
    ],
)
def test_target(name: str, messages: bool, target: Target) -> None:
    """An alias's model, else the list's spelling, else the name; the alias's mode is first."""
    one = server(models=("*", "Qwen/Qwen3-8B"), aliases=ALIASES, use_anthropic_endpoints=messages)
    assert one.target(name) == target


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_bad_weights(weight: float) -> None:
    """A weight is finite and at least 0."""
    with pytest.raises(ValueError, match="weight"):
        server(weight=weight)


@pytest.mark.parametrize(
    "key", ["hunter\n2", "hunter\r\nX: y", " hunter", "hunter ", "ключ", "hunter\x00"]
)
def test_keys_that_cannot_be_sent(key: str) -> None:
    """A key that no header can carry is refused when it is configured, and is not shown."""
    with pytest.raises(ValueError, match="the key has a character") as error:
        server(api_key=key)
    assert "hunter" not in str(error.value)
    assert "ключ" not in str(error.value)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Host": "x"}, "'Host' is set by the gateway"),
        ({"content-length": "5"}, "'content-length' is set by the gateway"),
        ({"Transfer-Encoding": "chunked"}, "is set by the gateway"),
        ({"proxy-authorization": "x"}, "is set by the gateway"),
        ({"a b": "x"}, "is not a header name"),
        ({"": "x"}, "is not a header name"),
        ({"x-a": "secret\nx"}, "the value has a character"),
        ({"x-a": "é€"}, "the value has a character"),
    ],
)
def test_extra_headers_that_cannot_be_sent(headers: dict[str, str], message: str) -> None:
    """Extra headers are checked when they are configured; values are not shown."""
    with pytest.raises(ValueError, match=message) as error:
        server(extra_headers=headers)
    assert "secret" not in str(error.value)


def test_secrets_are_not_in_the_repr() -> None:
    """A server may be logged: neither its key nor its headers are in what is written."""
    shown = repr(server(api_key="hunter2", extra_headers={"x-a": "hunter3"}))
    assert "hunter" not in shown


def test_short_form() -> None:
    """One server a URL, in order, every name admitted, one weight, one key."""
    servers = servers_of_urls(["http://a:1/v1", "http://b:2/"], "k")
    assert [(s.name, s.url, s.api_key, s.models, s.weight) for s in servers] == [
        ("sgl-1", "http://a:1", "k", ("*",), 1.0),
        ("sgl-2", "http://b:2", "k", ("*",), 1.0),
    ]


def test_short_form_refuses_a_twin() -> None:
    """A server named twice would get twice its share, in whatever spelling."""
    with pytest.raises(ValueError, match="http://a is named twice"):
        servers_of_urls(["http://a:80", "HTTP://A/v1/"])


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([], "no server"),
        ([server("a"), server("a")], "two servers have the name 'a'"),
        ([server("a", weight=0), server("b", weight=0)], "weight 0"),
        ([server("a", weight=0), server("b", enabled=False)], "weight 0"),
    ],
)
def test_pools_that_cannot_be(servers: list[Server], message: str) -> None:
    """A pool needs a server, names of their own, and a weight above 0."""
    with pytest.raises(ValueError, match=message):
        ServerPool(servers)


def test_fitting() -> None:
    """What is enabled and admits the name, in the order of the settings."""
    pool = ServerPool(
        [
            server("off", enabled=False),
            server("all"),
            server("m", models=("m",)),
            server("not-m", blacklisted_models=("m",)),
        ]
    )
    assert [s.name for s in pool.fitting("M")] == ["all", "m"]
    assert [s.name for s in pool.fitting(None)] == ["all", "not-m"]


def test_alias_names() -> None:
    """The aliases of enabled servers, each once."""
    pool = ServerPool(
        [
            server("a", aliases={"x": Alias("1"), "y": Alias("2")}),
            server("b", aliases={"y": Alias("3"), "z": Alias("4")}),
            server("c", aliases={"w": Alias("5")}, enabled=False),
        ]
    )
    assert pool.aliases() == ("x", "y", "z")


@pytest.mark.parametrize(
    "weights",
    [(0.995, 0.005), (1.0, 1.0), (1.0, 2.0, 3.0), (5.0, 0.0, 5.0)],
    ids=str,
)
def test_shares(weights: tuple[float, ...]) -> None:
    """10,000 draws are within three sigmas of each server's share, small shares included."""
    rng = random.Random(20240607)
    pool = ServerPool(
        [server(f"s{i}", weight=weight) for i, weight in enumerate(weights)], rand=rng.random
    )
    draws = 10_000
    counts = Counter(drawn.name for _ in range(draws) if (drawn := pool.draw("m")))
    assert counts.total() == draws
    for i, weight in enumerate(weights):
        share = weight / sum(weights)
        sigma = math.sqrt(draws * share * (1 - share))
        assert abs(counts[f"s{i}"] - draws * share) <= 3 * sigma


def test_weight_zero_is_the_last_resort() -> None:
    """A weight of 0 is drawn when nothing else is left."""
    pool = ServerPool([server("a"), server("spare", weight=0)])
    assert pool.draw("m", ["a"]) == pool.servers[1]
    for _ in range(3):
        pool.report(pool.servers[0], Outcome.FAILED)
    assert pool.draw("m") == pool.servers[1]


def test_draw_tries_each_once() -> None:
    """What was tried is not drawn again."""
    pool = ServerPool([server("a"), server("b")])
    first = pool.draw("m")
    assert first is not None
    second = pool.draw("m", [first.name])
    assert second is not None
    assert {first.name, second.name} == {"a", "b"}
    assert pool.draw("m", ["a", "b"]) is None


@pytest.mark.parametrize("rand", [0.0, 0.5, 0.999999])
def test_the_least_busy_of_one_weight(rand: float) -> None:
    """Where weights tie, the server with the fewest requests is drawn."""
    pool = ServerPool([server("a"), server("b"), server("c")], rand=lambda: rand)
    for name, busy in (("a", 2), ("b", 1), ("c", 2)):
        one = next(s for s in pool.servers if s.name == name)
        for _ in range(busy):
            pool.begin(one)
    assert pool.draw("m") == pool.servers[1]
    pool.end(pool.servers[1])
    assert pool.in_flight(pool.servers[1]) == 0


def test_busyness_does_not_outweigh_weights() -> None:
    """A heavier server keeps its share however busy it is."""
    pool = ServerPool([server("a", weight=9), server("b", weight=1)], rand=lambda: 0.5)
    pool.begin(pool.servers[0])
    assert pool.draw("m") == pool.servers[0]


def broken_pool(*names: str) -> tuple[ServerPool, Clock, Callable[[], None]]:
    """A pool whose first server has just been left out, and what fails it once more."""
    clock = Clock()
    pool = ServerPool([server(name) for name in names], clock=clock, rand=lambda: 0.0)

    def fail() -> None:
        pool.report(pool.servers[0], Outcome.FAILED)

    for _ in range(3):
        fail()
    return pool, clock, fail


def test_a_server_is_left_out_after_failures_in_a_row() -> None:
    """Three failures in a row, none fewer; an answer between starts the count again."""
    pool = ServerPool([server("a")])
    [one] = pool.servers
    for ok in (False, False, True, False, False):
        pool.report(one, Outcome.ANSWERED if ok else Outcome.FAILED)
    assert not pool.out_of_service(one)
    assert pool.available()
    pool.report(one, Outcome.FAILED)
    assert pool.out_of_service(one)
    assert not pool.available()
    assert pool.draw("m") is None
    assert pool.fitting("m") == (one,)


def test_the_others_take_over() -> None:
    """What is left out is not drawn while others are there."""
    pool, _, _ = broken_pool("a", "b")
    assert {drawn.name for _ in range(20) if (drawn := pool.draw("m"))} == {"b"}
    assert pool.available()


def test_a_trial_after_the_cool_down() -> None:
    """After it one request is let through, alone; its answer brings the server back."""
    pool, clock, _ = broken_pool("a")
    [one] = pool.servers
    clock.now_s += FIRST_COOL_DOWN_S
    assert pool.draw("m") == one
    assert pool.draw("m") is None
    pool.report(one, Outcome.ANSWERED)
    assert [pool.draw("m") for _ in range(3)] == [one] * 3


def test_the_cool_down_grows_to_its_limit() -> None:
    """Each trial that fails doubles the time, up to the limit; an answer resets it."""
    pool, clock, fail = broken_pool("a")
    waits = []
    for _ in range(6):
        start = clock.now_s
        while pool.draw("m") is None:
            clock.now_s += 0.5
        waits.append(clock.now_s - start)
        fail()
    assert waits == [1.0, 2.0, 4.0, LAST_COOL_DOWN_S, LAST_COOL_DOWN_S, LAST_COOL_DOWN_S]


def test_late_failures_do_not_add_up() -> None:
    """Requests that fail together with the first three do not lengthen the cool-down."""
    pool, clock, fail = broken_pool("a")
    for _ in range(20):
        fail()
    clock.now_s += FIRST_COOL_DOWN_S
    assert pool.draw("m") == pool.servers[0]


def test_a_trial_without_an_outcome() -> None:
    """A trial whose client left is followed by another: the server is not lost."""
    pool, clock, _ = broken_pool("a")
    for _ in range(3):
        clock.now_s += FIRST_COOL_DOWN_S
        assert pool.draw("m") == pool.servers[0]
