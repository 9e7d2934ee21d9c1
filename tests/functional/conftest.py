"""The whole gateway in this process, in front of an engine that a test reads and scripts."""

import json
import types
from dataclasses import replace

import pytest
from falcon import testing

from gateway import sse
from gateway.demo.engine import Canned, DemoEngine
from gateway.engine.servers import Alias, Server
from gateway.routes import ROUTES
from gateway.startup import load_launch
from gateway.web.app import create_app

MESSAGES = [{"role": "user", "content": "hi"}]
EVENT_STREAM = {"content-type": "text/event-stream"}

PATHS = {route.name: route.path for route in ROUTES}
SMALL = {
    "chat": {"model": "m", "messages": MESSAGES},
    "messages": {"model": "m", "messages": MESSAGES, "max_tokens": 64},
    "responses": {"model": "m", "input": "hi"},
    "completions": {"model": "m", "prompt": "hi"},
    "embeddings": {"model": "m", "input": "hi"},
    "count_tokens": {"model": "m", "messages": MESSAGES},
    "input_tokens": {"model": "m", "input": "hi"},
}
"""A request of each route, by the route's name."""


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

    def on(self, route, headers=(), **fields):
        """Posts a small request of a route, by the route's name, with these fields."""
        return self.post({**SMALL[route], **fields}, PATHS[route], headers=dict(headers))

    def chat(self, **fields):
        """Posts a small chat request with these fields."""
        return self.on("chat", **fields)

    def messages(self, **fields):
        """Posts a small Messages request with these fields."""
        return self.on("messages", **fields)

    def responses(self, **fields):
        """Posts a small Responses request with these fields."""
        return self.on("responses", **fields)

    def frames(self, route, headers=(), **fields):
        """Posts a small request and gives the reply's writes, each as soon as there is one."""
        environ = testing.create_environ(
            PATHS[route],
            method="POST",
            body=json.dumps({**SMALL[route], **fields}),
            headers={"content-type": "application/json"} | dict(headers),
        )
        return self.app(environ, lambda *_: None)

    def sent(self, route="chat", **fields):
        """What the engine got for a request with these fields, which must be accepted."""
        reply = self.on(route, **fields)
        assert reply.status_code == 200, reply.text
        return self.engine.inference[-1].json


@pytest.fixture
def serve(engine, tmp_path):
    """Serves a profile: `serve(yaml, **settings)` gives a `Client`.

    `servers` are ready ones, or each the fields of one but its URL; an alias is a text, or a text
    and whether it is served on the engine's Messages route.
    """

    def build(profile=None, *, preset=None, urls=None, servers=None, **settings):
        flags = {"model_id": "m", "worker_urls": urls or [engine.url], **settings}
        if profile is not None:
            path = tmp_path / "profile.yaml"
            path.write_text(profile, encoding="utf-8")
            flags["api_profile_file"] = str(path)
        if preset is not None:
            flags["api_profile"] = preset
        launch = load_launch(flags, {})
        if servers is not None:
            launch = replace(launch, servers=tuple(map(key, range(len(servers)), servers)))
        client = Client(create_app(launch))
        client.engine = engine
        return client

    def key(number, fields):
        if isinstance(fields, Server):
            return fields
        aliases = {
            name: Alias(*((stands_for,) if isinstance(stands_for, str) else stands_for))
            for name, stands_for in fields.get("aliases", {}).items()
        }
        return Server(**{"name": f"key-{number}", "url": engine.url, **fields, "aliases": aliases})

    return build


@pytest.fixture
def serve_messages(serve):
    """Serves an engine that is spoken to in Messages."""

    def build(profile=None, **settings):
        return serve(profile, servers=[{"use_anthropic_endpoints": True}], **settings)

    return build


def chunk(delta=None, finish=None, index=0, **more):
    """A chunk of a chat stream."""
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [choice],
        **more,
    }


def call(index, call_id, name, arguments):
    """The delta of a tool call, or of a piece of one."""
    function = {"name": name, "arguments": arguments}
    return {
        "tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]
    }


def usage(prompt, completion, **more):
    """Usage as an engine counts it."""
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**counts, "total_tokens": prompt + completion, **more}


def reply(message=None, finish="stop", **more):
    """A buffered chat reply."""
    message = {"role": "assistant", "content": "a"} if message is None else message
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], **more}


def frame(payload):
    """An event as an engine writes it: bytes as they are, a Messages event with its name."""
    if isinstance(payload, bytes):
        return payload
    data = json.dumps(payload, ensure_ascii=False).encode()
    name = payload.get("type") if "choices" not in payload and "error" not in payload else None
    return sse.render_event(data, name)


DONE = b"data: [DONE]\n\n"


@pytest.fixture
def say(engine):
    """Has the engine answer the next request with these frames, or with this reply."""

    def stream(*frames, done=True):
        body = b"".join(map(frame, frames)) + (DONE if done else b"")
        engine.canned.append(Canned(200, body, EVENT_STREAM))

    def whole(body, status=200, **headers):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        engine.canned.append(Canned(status, raw, {"content-type": "application/json"} | headers))

    return types.SimpleNamespace(stream=stream, whole=whole)


@pytest.fixture
def error_of():
    """The error in a reply, whose envelope must be the route's."""

    def read(reply, route):
        assert reply.headers["content-type"] == "application/json"
        body = reply.json
        if route in {"messages", "count_tokens"}:
            assert body.keys() == {"type", "error", "request_id"}
            assert body["type"] == "error"
            assert body["error"].keys() == {"type", "message"}
            assert body["request_id"] == reply.headers["request-id"]
        else:
            assert {"message", "type", "param", "code"} <= body["error"].keys()
        assert body["error"]["message"]
        return body["error"]

    return read


@pytest.fixture
def wire():
    """The pieces that engines write, and how a client reads a stream."""

    def events(answer):
        decoder = sse.Decoder()
        found = decoder.feed(answer.content)
        assert decoder.finish() == b""
        return [
            (
                event.event,
                event.data.decode() if event.data == b"[DONE]" else json.loads(event.data),
            )
            for event in found
        ]

    return types.SimpleNamespace(
        chunk=chunk,
        text=lambda text: chunk({"content": text}),
        reasoning=lambda text: chunk({"reasoning_content": text}),
        call=lambda *piece: chunk(call(*piece)),
        finish=lambda reason: chunk({}, reason),
        usage_chunk=lambda *counts, **more: {
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [],
            "usage": usage(*counts, **more),
        },
        usage=usage,
        reply=reply,
        frame=frame,
        paths=PATHS,
        done=DONE,
        events=events,
    )
