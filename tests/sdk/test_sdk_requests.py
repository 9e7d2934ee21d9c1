"""What the engine gets for what each SDK sends.

One request is said in three dialects, each by its SDK's own means; the engine's Chat route and
its Messages route get it in the form that is theirs.
"""

from dataclasses import dataclass, field

import pydantic
import pytest
from recorded import ANSWERS

ROUTES = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
DIALECTS = ("chat", "responses", "messages")
USER = {"role": "user", "content": "hi"}
SMALL = {
    "chat": {"messages": [USER]},
    "responses": {"input": [USER]},
    "messages": {"messages": [USER], "max_tokens": 64},
}
BUDGET = {"max_tokens": 8192}  # a quarter of the context that the engine names

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "Looks.", "parameters": SCHEMA, "strict": True}
CHAT_TOOL = {"type": "function", "function": WEATHER}
LAX_TOOL = {"type": "function", "function": WEATHER | {"strict": False}}
RESPONSES_TOOL = {"type": "function", **WEATHER}
MESSAGES_TOOL = {"name": "get_weather", "description": "Looks.", "input_schema": SCHEMA}
STRICT_TOOL = MESSAGES_TOOL | {"strict": True}
TOOLS = {"chat": [CHAT_TOOL], "responses": [RESPONSES_TOOL], "messages": [MESSAGES_TOOL]}
ENGINE_TOOLS = {
    ("chat", "chat"): [CHAT_TOOL],
    ("responses", "chat"): [CHAT_TOOL],
    ("messages", "chat"): [LAX_TOOL],
    ("chat", "messages"): [STRICT_TOOL],
    ("responses", "messages"): [STRICT_TOOL],
    ("messages", "messages"): [MESSAGES_TOOL],
}
"""By the client's dialect and the engine's route: in Messages a tool need not be strict."""

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
DATA_URL = f"data:image/gif;base64,{PIXEL}"
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": PIXEL}}
LINK = "https://images.example/cat.png"
LINK_BLOCK = {"type": "image", "source": {"type": "url", "url": LINK}}
WHAT = {"type": "text", "text": "What is it?"}


@dataclass
class Case:
    """A request.

    Attributes:
        chat, responses, messages: its fields, by the dialect of the client.
        over_chat, over_messages: what the engine gets, by its route.
        but: what it gets instead, by dialect and route; None: nothing.
    """

    chat: dict
    responses: dict
    messages: dict
    over_chat: dict
    over_messages: dict
    but: dict = field(default_factory=dict)

    def body(self, dialect, route):
        """The whole body that the engine gets."""
        budget = SMALL["messages"] if dialect == "messages" else {}
        least = {"messages": [USER]} | (BUDGET if route == "messages" else {}) | budget
        other = self.but.get((dialect, route), {})
        body = {"model": "m"} | least | getattr(self, f"over_{route}") | other
        return {name: value for name, value in body.items() if value is not None}


def images(*parts):
    """A turn of the user with a text and images."""
    return [{"role": "user", "content": [WHAT, *parts]}]


CASES = {
    "a named tool, one call at a time": Case(
        chat={
            "tools": [CHAT_TOOL],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "parallel_tool_calls": False,
        },
        responses={
            "tools": [RESPONSES_TOOL],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "parallel_tool_calls": False,
        },
        messages={
            "tools": [MESSAGES_TOOL],
            "tool_choice": {
                "type": "tool",
                "name": "get_weather",
                "disable_parallel_tool_use": True,
            },
        },
        over_chat={
            "tools": [CHAT_TOOL],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "parallel_tool_calls": False,
        },
        over_messages={
            "tools": [STRICT_TOOL],
            "tool_choice": {
                "type": "tool",
                "name": "get_weather",
                "disable_parallel_tool_use": True,
            },
        },
        but={
            ("messages", "chat"): {"tools": [LAX_TOOL]},
            ("messages", "messages"): {"tools": [MESSAGES_TOOL]},
        },
    ),
    "any tool": Case(
        chat={"tools": [CHAT_TOOL], "tool_choice": "required"},
        responses={"tools": [RESPONSES_TOOL], "tool_choice": "required"},
        messages={"tools": [MESSAGES_TOOL], "tool_choice": {"type": "any"}},
        over_chat={"tools": [CHAT_TOOL], "tool_choice": "required"},
        over_messages={"tools": [STRICT_TOOL], "tool_choice": {"type": "any"}},
        but={
            ("messages", "chat"): {"tools": [LAX_TOOL]},
            ("messages", "messages"): {"tools": [MESSAGES_TOOL]},
        },
    ),
    "images": Case(
        chat={
            "messages": images(
                {"type": "image_url", "image_url": {"url": DATA_URL}},
                {"type": "image_url", "image_url": {"url": LINK}},
            )
        },
        responses={
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What is it?"},
                        {"type": "input_image", "image_url": DATA_URL},
                        {"type": "input_image", "image_url": LINK},
                    ],
                }
            ]
        },
        messages={"messages": images(BLOCK, LINK_BLOCK)},
        over_chat={
            "messages": images(
                {"type": "image_url", "image_url": {"url": DATA_URL}},
                {"type": "image_url", "image_url": {"url": LINK}},
            )
        },
        over_messages={"messages": images(BLOCK, LINK_BLOCK)},
    ),
    "instructions and settings": Case(
        chat={
            "messages": [{"role": "system", "content": "Be brief."}, USER],
            "max_completion_tokens": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "reasoning_effort": "low",
            "stop": ["END"],
            "user": "u",
        },
        responses={
            "instructions": "Be brief.",
            "max_output_tokens": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "reasoning": {"effort": "low"},
            "extra_body": {"stop": ["END"]},
            "user": "u",
        },
        messages={
            "system": "Be brief.",
            "max_tokens": 7,
            "extra_body": {"temperature": 0.5, "top_p": 0.9},
            "output_config": {"effort": "low"},
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u"},
        },
        over_chat={
            "messages": [{"role": "system", "content": "Be brief."}, USER],
            "max_completion_tokens": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "reasoning_effort": "low",
            "stop": ["END"],
            "user": "u",
        },
        over_messages={
            "system": "Be brief.",
            "max_tokens": 7,
            "temperature": 0.5,
            "top_p": 0.9,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low"},
            "stop_sequences": ["END"],
            "metadata": {"user_id": "u"},
        },
        but={
            ("messages", "chat"): {"max_tokens": 7, "max_completion_tokens": None},
            ("messages", "messages"): {"thinking": None},
        },
    ),
}


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", CASES)
def test_a_request_arrives_in_the_engines_form(ask, engine, name, dialect, route):
    """Nothing is lost on the way, nothing is made up, and the engine accepts it."""
    case = CASES[name]
    ask(dialect, model=f"over-{route}", **getattr(case, dialect))
    assert engine.inference[-1].path == ROUTES[route]
    assert engine.inference[-1].json == case.body(dialect, route)


WITH_USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}


@pytest.mark.parametrize(
    ("dialect", "route", "added"),
    [
        ("chat", "chat", {"stream_options": {"include_usage": True}}),
        ("responses", "chat", WITH_USAGE),
        ("messages", "chat", WITH_USAGE),
        ("chat", "messages", {}),
        ("responses", "messages", {}),
        ("messages", "messages", {}),
    ],
)
def test_a_stream_is_asked_for(ask, engine, dialect, route, added):
    """A converted stream needs the engine's counts; a Chat client's options are its own."""
    ask(dialect, streamed=True, model=f"over-{route}")
    body = engine.inference[-1].json
    del body["messages"]
    body.pop("max_tokens", None)
    assert body == {"model": "m", "stream": True} | added


def _again_in_chat(clients, model, **fields):
    create = clients.openai.chat.completions.create
    history = [USER]
    said = create(model=model, messages=history, **fields).choices[0].message
    result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "rain"}
    create(model=model, messages=[*history, said, result], **fields)


def _again_in_responses(clients, model, **fields):
    create = clients.openai.responses.create
    history = [USER]
    said = create(model=model, input=history, **fields).output
    result = {"type": "function_call_output", "call_id": said[-1].call_id, "output": "rain"}
    create(model=model, input=[*history, *said, result], **fields)


def _again_in_messages(clients, model, **fields):
    create = clients.anthropic.messages.create
    history = [USER]
    said = create(model=model, messages=history, max_tokens=64, **fields).content
    result = {"type": "tool_result", "tool_use_id": said[-1].id, "content": "rain"}
    turns = [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    create(model=model, messages=[*history, *turns], max_tokens=64, **fields)


AGAIN = {
    "chat": _again_in_chat,
    "responses": _again_in_responses,
    "messages": _again_in_messages,
}
CALL_ID = f"call_{1:024}"
TURNS = {
    "chat": [
        USER,
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "\nA city.\n",
            "tool_calls": [
                {
                    "id": CALL_ID,
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": {"city": "Rome"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": CALL_ID, "content": "rain"},
    ],
    "messages": [
        USER,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "\nA city.\n"},
                {"type": "text", "text": "I look."},
                {
                    "type": "tool_use",
                    "id": CALL_ID,
                    "name": "get_weather",
                    "input": {"city": "Rome"},
                },
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": CALL_ID, "content": "rain"}],
        },
    ],
}


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_goes_back_with_what_was_said(clients, engine, say, parse, dialect, route):
    """The SDK's objects are the history: thinking, text, call and result find the engine again."""
    say(ANSWERS["everything"].buffered[route])
    AGAIN[dialect](clients, f"over-{route}", tools=TOOLS[dialect])
    body = engine.inference[-1].json
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = parse(call["function"]["arguments"])
            call.pop("index", None)  # which SGLang gives, and an SDK gives back
    assert body["messages"] == TURNS[route]
    assert body["tools"] == ENGINE_TOOLS[dialect, route]


class Answer(pydantic.BaseModel):
    """What is asked for as JSON."""

    ok: bool


def _parse_chat(clients, **fields):
    got = clients.openai.chat.completions.parse(response_format=Answer, **fields)
    return got.choices[0].message.parsed


def _parse_responses(clients, **fields):
    return clients.openai.responses.parse(text_format=Answer, **fields).output_parsed


def _parse_messages(clients, **fields):
    return clients.anthropic.messages.parse(output_format=Answer, **fields).parsed_output


PARSE = {"chat": _parse_chat, "responses": _parse_responses, "messages": _parse_messages}
ANSWER_SCHEMA = {
    "type": "object",
    "title": "Answer",
    "description": "What is asked for as JSON.",
    "properties": {"ok": {"type": "boolean", "title": "Ok"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("route", ROUTES, ids=["chat-engine", "messages-engine"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_binds_the_answer(clients, engine, say, dialect, route):
    """Each SDK's `parse` has the engine held to the schema, and reads the answer by it."""
    say(ANSWERS["json_schema"].buffered[route])
    got = PARSE[dialect](clients, model=f"over-{route}", **SMALL[dialect])
    assert got == Answer(ok=True)
    body = engine.inference[-1].json
    if route == "messages":
        asked = {"type": "json_schema", "schema": ANSWER_SCHEMA}
        assert body["output_config"] == {"format": asked}
        return
    described = body["response_format"].pop("json_schema")
    assert body["response_format"] == {"type": "json_schema"}
    assert described.pop("name") in {"Answer", "response"}
    assert described == {"schema": ANSWER_SCHEMA, "strict": True}


@pytest.mark.parametrize(
    ("dialect", "route"),
    [("responses", "chat"), ("responses", "messages"), ("messages", "chat")],
)
def test_a_schema_beside_tools_is_one_more_tool(clients, engine, say, wire, dialect, route):
    """The engine binds calls or the answer: its call of that tool is the answer again."""
    say(wire.answer_by_tool(route, "final_answer", '{"ok": true}'))
    fields = {**SMALL[dialect], "tools": TOOLS[dialect]}
    got = PARSE[dialect](clients, model=f"over-{route}", **fields)
    assert got == Answer(ok=True)
    body = engine.inference[-1].json
    own, offered = body["tools"]
    assert [own] == ENGINE_TOOLS[dialect, route]
    function = offered["function"] if route == "chat" else offered
    assert function["name"] == "final_answer"
    assert function["parameters" if route == "chat" else "input_schema"] == ANSWER_SCHEMA
    assert body["tool_choice"] == ("required" if route == "chat" else {"type": "any"})
    assert not body.keys() & {"response_format", "output_config"}


def test_counting_tokens(clients, engine):
    """Both counters ask the engine's own."""
    counted = clients.anthropic.messages.count_tokens(model="over-chat", messages=[USER])
    assert counted.input_tokens > 0
    assert engine.inference[-1].path == "/v1/messages/count_tokens"
    assert engine.inference[-1].json == {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    counted = clients.openai.responses.input_tokens.count(model="over-chat", input="hi")
    assert (counted.object, counted.input_tokens > 0) == ("response.input_tokens", True)
    assert engine.inference[-1].path == "/v1/messages/count_tokens"


def test_models_are_listed(clients):
    """Both SDKs read the list, by the names that clients may use."""
    names = {"m", "over-chat", "over-messages"}
    assert {model.id for model in clients.openai.models.list()} == names
    assert {model.id for model in clients.anthropic.models.list()} == names
    assert clients.openai.models.retrieve("over-chat").id == "over-chat"
    assert clients.anthropic.models.retrieve("over-chat").type == "model"


def test_completions_and_embeddings(clients, engine):
    """The routes without a dialect of their own, under an alias; base64 is the SDK's default."""
    got = clients.openai.completions.create(model="over-chat", prompt="Say", max_tokens=3)
    assert (got.object, got.model) == ("text_completion", "over-chat")
    assert got.choices[0].finish_reason == "length"
    assert engine.inference[-1].json == {"model": "m", "prompt": "Say", "max_tokens": 3}
    vectors = clients.openai.embeddings.create(model="over-chat", input=["a", "b"])
    assert (vectors.model, len(vectors.data)) == ("over-chat", 2)
    assert engine.inference[-1].json == {
        "model": "m",
        "input": ["a", "b"],
        "encoding_format": "base64",
    }
