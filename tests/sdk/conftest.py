"""Official clients, over sockets, in front of an engine that says what SGLang was heard to say."""

import contextlib
import json
import threading
import types
from dataclasses import replace
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import anthropic
import openai
import pytest

from gateway.demo.engine import Canned, DemoEngine
from gateway.engine.servers import Alias
from gateway.startup import load_launch
from gateway.web.app import create_app

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        """What a test does not read."""


@pytest.fixture(scope="session")
def running_engine():
    """An engine whose model is called `m`; tests use `engine`."""
    with DemoEngine(model="m") as running:
        yield running


@pytest.fixture(scope="session")
def launch(running_engine):
    """One engine under two names, one for each of its generating routes."""
    launch = load_launch({"model_id": "m", "worker_urls": [running_engine.url]}, {})
    names = {"over-chat": Alias("m"), "over-messages": Alias("m", use_anthropic_endpoints=True)}
    return replace(launch, servers=(replace(launch.servers[0], aliases=names),))


@pytest.fixture(scope="session")
def listener():
    """Where gateways are served."""
    with make_server("127.0.0.1", 0, None, _Server, _Quiet) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,))
        thread.start()
        yield listener
        listener.shutdown()
        thread.join()


@pytest.fixture
def engine(running_engine, listener, launch):
    """The engine, and the gateway in front of it, as if they had just been started."""
    running_engine.requests.clear()
    running_engine.canned.clear()
    listener.set_app(create_app(launch))
    yield running_engine
    assert not running_engine.canned, "the engine was not asked for all that it had to say"


@pytest.fixture(scope="session")
def sdks(listener):
    """One client of each SDK; they never try again by themselves."""
    gateway_url = f"http://127.0.0.1:{listener.server_port}"
    with contextlib.ExitStack() as stack:
        yield types.SimpleNamespace(
            openai=stack.enter_context(
                openai.OpenAI(base_url=f"{gateway_url}/v1", api_key="k", max_retries=0)
            ),
            anthropic=stack.enter_context(
                anthropic.Anthropic(base_url=gateway_url, api_key="k", max_retries=0)
            ),
        )


@pytest.fixture
def clients(sdks, engine):
    """`openai` and `anthropic`, clients of a gateway."""
    return sdks


@pytest.fixture
def say(engine):
    """Has the engine answer the next request so: `say(body, streamed=True, status=200)`."""

    def answer(body, *, streamed=False, status=200, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = EVENT_STREAM if streamed else JSON
        engine.canned.append(Canned(status, body, {"content-type": kind, **headers}))

    return answer


def read_completion(got):
    """What a completion says, as values that can be written down."""
    (choice,) = got.choices
    assert (got.object, choice.index, choice.message.role) == ("chat.completion", 0, "assistant")
    usage = got.usage
    return {
        "model": got.model,
        "content": choice.message.content,
        "reasoning": getattr(choice.message, "reasoning_content", None),
        "calls": [
            (call.id, call.function.name, _arguments(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ],
        "finish": choice.finish_reason,
        "usage": {
            "prompt": usage.prompt_tokens,
            "cached": getattr(usage.prompt_tokens_details, "cached_tokens", None),
            "completion": usage.completion_tokens,
            "total": usage.total_tokens,
        },
    }


def read_response(got):
    """What a Response says."""
    assert (got.object, got.error) == ("response", None)
    usage = got.usage
    return {
        "model": got.model,
        "output": [_read_item(item) for item in got.output],
        "status": got.status,
        "reason": got.incomplete_details and got.incomplete_details.reason,
        "usage": {
            "input": usage.input_tokens,
            "cached": usage.input_tokens_details.cached_tokens,
            "output": usage.output_tokens,
            "reasoning": usage.output_tokens_details.reasoning_tokens,
            "total": usage.total_tokens,
        },
    }


def _read_item(item):
    if item.type == "function_call":
        return (item.type, item.status, item.call_id, item.name, _arguments(item.arguments))
    (part,) = item.content
    return (item.type, item.status, part.text)


def read_message(got):
    """What a Messages reply says."""
    assert (got.type, got.role) == ("message", "assistant")
    usage = got.usage
    return {
        "model": got.model,
        "content": [_read_block(block) for block in got.content],
        "stop": (got.stop_reason, got.stop_sequence),
        "usage": {
            "input": usage.input_tokens,
            "cached": usage.cache_read_input_tokens or 0,
            "output": usage.output_tokens,
        },
    }


def _read_block(block):
    if block.type == "tool_use":
        return (block.type, block.id, block.name, block.input)
    return (block.type, getattr(block, block.type))


def _arguments(said):
    """What a call's arguments say; the text itself where it is cut off."""
    return json.loads(said) if said else said


USER = [{"role": "user", "content": "hi"}]


def _chat(clients, streamed, **fields):
    api = clients.openai.chat.completions
    fields = {"messages": USER, **fields}
    if not streamed:
        return read_completion(api.create(**fields))
    with api.stream(stream_options={"include_usage": True}, **fields) as stream:
        stream.until_done()
        return read_completion(stream.current_completion_snapshot)


def _responses(clients, streamed, **fields):
    api = clients.openai.responses
    fields = {"input": "hi", **fields}
    if not streamed:
        return read_response(api.create(**fields))
    with api.stream(**fields) as stream:
        *_, last = stream
        if last.type == "response.completed":
            return read_response(stream.get_final_response())
        return read_response(last.response)


def _messages(clients, streamed, **fields):
    api = clients.anthropic.messages
    fields = {"messages": USER, "max_tokens": 64, **fields}
    if not streamed:
        return read_message(api.create(**fields))
    with api.stream(**fields) as stream:
        return read_message(stream.get_final_message())


@pytest.fixture
def ask(clients):
    """Asks as a client of a dialect does, and reads what its SDK made of the reply.

    `ask(dialect, streamed=True, **fields)`; fields that are not named are small ones.
    """
    asked = {"chat": _chat, "responses": _responses, "messages": _messages}
    return lambda dialect, *, streamed=False, **fields: asked[dialect](clients, streamed, **fields)


@pytest.fixture(scope="session")
def parse():
    """Reads JSON."""
    return json.loads


def _answer_by_tool(route, name, arguments):
    """A whole reply of a route: one call and nothing else."""
    if route == "messages":
        use = {"type": "tool_use", "id": "call_1", "name": name, "input": json.loads(arguments)}
        reply = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [use],
            "model": "m",
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return json.dumps(reply).encode()
    function = {"name": name, "arguments": arguments}
    call = {"id": "call_1", "index": 0, "type": "function", "function": function}
    message = {
        "role": "assistant",
        "content": "",
        "reasoning_content": None,
        "tool_calls": [call],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()


@pytest.fixture(scope="session")
def wire():
    """Answers that are written for a test."""
    return types.SimpleNamespace(answer_by_tool=_answer_by_tool)
