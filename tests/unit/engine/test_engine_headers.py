"""Which headers an engine gets, and which never reach it."""

import pytest

from gateway.engine.headers import engine_headers
from gateway.engine.servers import Server

BASE = {"content-type": "application/json", "x-request-id": "r-1"}


def sent(
    client: dict[str, str],
    *,
    key: str = "",
    extra: dict[str, str] | None = None,
    messages: bool = False,
    forward: bool = False,
) -> dict[str, str]:
    """What an engine gets from a client that sends these."""
    one = Server("a", "http://a", key, extra_headers=extra or {})
    return engine_headers(one, client, "r-1", messages=messages, forward_authorization=forward)


def test_the_least() -> None:
    """The content type and the request id; no Authorization where there is no key."""
    assert sent({}) == BASE


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "x-api-key",
        "X-Api-Key",
        "api-key",
        "x-goog-api-key",
        "cookie",
        "proxy-authorization",
        "host",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "user-agent",
        "anthropic-version",
        "anthropic-beta",
        "x-forwarded-for",
        "x-sglext-thing",
        "x-override-model",
        "traceparent2",
        "x-request-id",
        "X-Request-Id",
        "content-type",
    ],
)
def test_what_never_passes(name: str) -> None:
    """Credentials, framing and whatever is not on the list stay here, in every spelling."""
    assert sent({name: "v"}) == BASE


@pytest.mark.parametrize(
    "name",
    ["traceparent", "Tracestate", "x-data-parallel-rank", "X-SGL-Anything", "x-sgl-routing"],
)
def test_what_passes(name: str) -> None:
    """Trace context, the rank and headers starting `x-sgl-`, unchanged."""
    assert sent({name: "00-a\u00e9"}) == {**BASE, name.lower(): "00-a\u00e9"}


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\x00", "\u20ac", ""])
def test_values_that_cannot_be_sent(value: str) -> None:
    """A value that would forge a header, or that no header carries, is left out."""
    assert sent({"x-sgl-a": value}) == BASE


@pytest.mark.parametrize(
    ("key", "forward", "authorization"),
    [
        ("", False, None),
        ("k", False, "Bearer k"),
        ("", True, "Basic client"),
        ("k", True, "Bearer k"),
    ],
)
def test_authorization(key: str, forward: bool, authorization: str | None) -> None:
    """The server's key; the caller's own only where that is allowed and there is no key."""
    headers = sent({"Authorization": "Basic client", "x-api-key": "c"}, key=key, forward=forward)
    assert headers.get("authorization") == authorization
    assert "x-api-key" not in headers


def test_messages_paths_have_a_version() -> None:
    """The engine's Messages paths get the version that is spoken."""
    assert sent({"anthropic-version": "1999-01-01"}, messages=True) == {
        **BASE,
        "anthropic-version": "2023-06-01",
    }


def test_extra_headers_stand_below_all() -> None:
    """They are sent where nothing else sets the header, whatever the spelling."""
    extra = {
        "X-Extra": "e",
        "Authorization": "extra",
        "X-Request-ID": "extra",
        "X-SGL-A": "extra",
        "X-SGL-B": "extra",
        "Anthropic-Version": "extra",
    }
    assert sent({"x-sgl-a": "client"}, key="k", extra=extra, messages=True) == {
        **BASE,
        "x-extra": "e",
        "authorization": "Bearer k",
        "x-sgl-a": "client",
        "x-sgl-b": "extra",
        "anthropic-version": "2023-06-01",
    }
    assert sent({}, extra=extra)["authorization"] == "extra"
