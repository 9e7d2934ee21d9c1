"""What clients with keys may do at once."""

import hashlib
import json

import pytest

from gateway.service.clients import ClientLimit
from gateway.settings import SettingsError

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def keys(tmp_path):
    """A file of two keys, one of them hashed."""
    path = tmp_path / "keys.txt"
    path.write_text(f"one\nsha256:{hashlib.sha256(b'two').hexdigest()}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("route", ["chat", "messages", "responses", "completions"])
def test_a_client_has_its_own_limit(serve, engine, keys, route, error_of):
    """Beyond it, 429 in the dialect with `retry-after`; other clients are not held up by it."""
    client = serve(api_keys_file=keys, max_inflight_per_client="1")
    engine.hold()
    auth = {"authorization": "Bearer one"}
    stream = client.frames(route, headers=auth, stream=True)
    next(iter(stream))

    refused = client.on(route, headers={"x-api-key": "one"})
    other = client.on(route, headers={"authorization": "Bearer two"})

    assert refused.status_code == 429
    assert error_of(refused, route)["type"] == "rate_limit_error"
    assert refused.headers["x-router-error-code"] == "rate_limit_exceeded"
    assert int(refused.headers["retry-after"]) >= 1
    assert other.status_code == 200
    engine.resume()
    stream.close()
    assert client.on(route, headers=auth).status_code == 200


def test_a_refused_request_takes_nothing():
    """Who is told 429 gives nothing back; each slot is given back once."""
    limit = ClientLimit(2)
    leave = [limit.enter(b"a"), limit.enter(b"a")]
    for _ in range(2):
        with pytest.raises(Exception, match="has 2 requests at work"):
            limit.enter(b"a")
    leave[0]()
    leave[0] = limit.enter(b"a")
    for each in leave:
        each()
    assert not limit._taken


def test_without_keys_there_are_no_clients(serve):
    """A limit of each client needs keys to tell them apart by."""
    with pytest.raises(SettingsError, match="needs --api-keys-file"):
        serve(max_inflight_per_client="1")


def test_the_limit_of_the_settings_file(serve, engine, keys, tmp_path):
    """The file may give it, and names the file of keys from its own folder."""
    path = tmp_path / "servers.yaml"
    text = {
        "providers": {"sgl": {"keys": [{"name": "a", "sgl_key_config": {"url": engine.url}}]}},
        "max_inflight_per_client": 1,
        "api_keys_file": "keys.txt",
    }
    path.write_text(json.dumps(text), encoding="utf-8")
    client = serve(config=str(path), worker_urls=None)
    assert client.post(BODY).status_code == 401
    assert client.post(BODY, headers={"x-api-key": "two"}).status_code == 200
