"""The whole gateway in this process, in front of an engine that a test reads and scripts."""

import json

import pytest
from falcon import testing
from gateway.demo.engine import DemoEngine
from gateway.startup import load_launch
from gateway.web.app import create_app

MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
def engine():
    """An engine whose model is called `m`."""
    with DemoEngine(model="m") as running:
        yield running


class Client(testing.TestClient):
    """A client of one gateway, with the engine behind it at hand."""

    engine: DemoEngine

    def post(self, body, path="/v1/chat/completions", **options):
        """Posts a JSON body (bytes as they are)."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json"} | options.pop("headers", {})
        return self.simulate_post(path, body=raw, headers=headers, **options)

    def chat(self, path="/v1/chat/completions", **fields):
        """Posts a small chat request with these fields."""
        return self.post({"model": "m", "messages": MESSAGES, **fields}, path)

    def sent(self, **fields):
        """What the engine got for a chat request with these fields, which must be accepted."""
        reply = self.chat(**fields)
        assert reply.status_code == 200, reply.text
        return self.engine.inference[-1].json


@pytest.fixture
def serve(engine, tmp_path):
    """Serves a profile: `serve(yaml, **settings)` gives a `Client`."""

    def build(profile=None, *, preset=None, urls=None, **settings):
        flags = {"model_id": "m", "worker_urls": urls or [engine.url], **settings}
        if profile is not None:
            path = tmp_path / "profile.yaml"
            path.write_text(profile, encoding="utf-8")
            flags["api_profile_file"] = str(path)
        if preset is not None:
            flags["api_profile"] = preset
        client = Client(create_app(load_launch(flags, {})))
        client.engine = engine
        return client

    return build
