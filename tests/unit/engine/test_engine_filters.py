"""What is taken out on the way to an engine, and what must not be."""

import json

import pytest

from gateway.engine.filters import REFUSED_NULLS, Filtered, filter_body, filter_fields
from gateway.errors import GatewayError
from gateway.jsonbody import parse_object
from gateway.routes import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    INPUT_TOKENS,
    MESSAGES,
    RESPONSES,
    Dialect,
    Route,
)

FUNCTION = '{"type":"function","function":{"name":"f","parameters":{"minimum":1.0}}}'


def filtered(text: str, route: Route = CHAT, **options: object) -> tuple[str, Filtered]:
    """The body that an engine gets, and what the filter said."""
    body = parse_object(text.encode())
    result = filter_body(body, route, **options)  # type: ignore[arg-type]
    return body.edit(result.edits).decode(), result


UNTOUCHED = [
    '{"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 1.0}',
    '{"unknown": {"store": true, "user": null}, "metadata": {"cache_control": 1}}',
    '{"messages":[{"role":"user","content":"store, verbosity and cache_control"}]}',
    '{"messages":[{"role":"user","content":[{"type":"text","text":"\\"cache_control\\""}]}]}',
    '{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",'
    '"properties":{"cache_control":{"type":"string"},"store":{}}}}}]}',
    '{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":'
    '"{\\"cache_control\\": 1}"}}]}]}',
    '{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":'
    '{"cache_control":1}}]}]}',
    '{"tools": [], "tool_choice": "auto"}',
    '{"tools":null,"tool_choice":null,"stop":null,"temperature":null,"max_tokens":null}',
    '{"stream_options":null,"stream":false}',
    '{"stream_options":{"include_usage":true},"stream":true}',
    '{"stream_options":{"include_usage":true},"stream":"true"}',
    '{"user":"' + "é" * 64 + '"}',
    '{"user":5}',
    '{"tools":[' + FUNCTION + ',{"type":"custom","custom":{"name":"c"}}]}',
    '{"tools":[{"function":{"name":"web_search"}}],"tool_choice":{"type":"function",'
    '"function":{"name":"web_search"}}}',
    '{"messages":"text","tools":null}',
    '{"input_ids":[0,5]}',
    '{"a":"\\u005f"}',
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_untouched(text: str) -> None:
    """Where nothing has to go, the engine gets the client's bytes."""
    sent, result = filtered(text)
    assert sent == text
    assert result == Filtered()


CHANGED = {
    "platform fields": (
        '{"prompt_cache_key":"a","x":1.0,"prompt_cache_retention":"24h","verbosity":"low",'
        '"store":true,"service_tier":"auto"}',
        '{"x":1.0}',
        ("prompt_cache_key", "prompt_cache_retention", "verbosity", "store", "service_tier"),
    ),
    "an escaped name": ('{"st\\u006fre":true,"x":1}', '{"x":1}', ("store",)),
    "a long user": ('{"user":"' + "é" * 65 + '","x":1}', '{"x":1}', ("user",)),
    "a long user of emoji": ('{"user":"' + "🙂" * 65 + '"}', "{}", ("user",)),
    "nulls": (
        '{"n":null,"stream":null,"logprobs":null,"parallel_tool_calls":null,"seed":null,'
        '"frequency_penalty":null,"presence_penalty":null,"skip_special_tokens":null}',
        '{"seed":null}',
        (
            "n",
            "stream",
            "logprobs",
            "parallel_tool_calls",
            "frequency_penalty",
            "presence_penalty",
            "skip_special_tokens",
        ),
    ),
    "stream_options without stream": (
        '{"stream_options":{"include_usage":true},"x":1}',
        '{"x":1}',
        ("stream_options",),
    ),
    "stream_options, stream null": (
        '{"stream_options":{},"stream":null}',
        "{}",
        ("stream_options", "stream"),
    ),
    "stream_options, stream false": (
        '{"stream":false,"stream_options":{}}',
        '{"stream":false}',
        ("stream_options",),
    ),
    "mark at the top": ('{"cache_control":{},"x":1}', '{"x":1}', ("cache_control",)),
    "mark on a message": (
        '{"messages":[{"role":"user","content":"a","cache_control":{}},{"role": "user"}]}',
        '{"messages":[{"role":"user","content":"a"},{"role": "user"}]}',
        ("cache_control",),
    ),
    "mark on a part, numbers as they were": (
        '{"messages":[{"content":[{"cache_control":{"type":"ephemeral"},"type":"text","x":1.0},'
        '{"x": 1e2}]}]}',
        '{"messages":[{"content":[{"type":"text","x":1.0},{"x": 1e2}]}]}',
        ("cache_control",),
    ),
    "mark within a tool result": (
        '{"messages":[{"content":[{"type":"tool_result","content":[{"type":"text",'
        '"cache_control":{}}]}]}]}',
        '{"messages":[{"content":[{"type":"tool_result","content":[{"type":"text"}]}]}]}',
        ("cache_control",),
    ),
    "mark on a call": (
        '{"messages":[{"tool_calls":[{"id":"1","cache_control":{},"function":{"arguments":'
        '"{\\"cache_control\\":1}","cache_control":1}}]}]}',
        '{"messages":[{"tool_calls":[{"id":"1","function":{"arguments":'
        '"{\\"cache_control\\":1}"}}]}]}',
        ("cache_control",),
    ),
    "mark on tools, schemas alone": (
        '{"tools":[{"type":"function","cache_control":{},"function":{"cache_control":{},'
        '"name":"f","parameters":{"properties":{"cache_control":{"default":1.0}}}}}]}',
        '{"tools":[{"type":"function","function":{'
        '"name":"f","parameters":{"properties":{"cache_control":{"default":1.0}}}}}]}',
        ("cache_control",),
    ),
    "mark in a namespace": (
        '{"tools":[{"type":"namespace","tools":[{"type":"function","cache_control":{}}]}]}',
        '{"tools":[{"type":"namespace","tools":[{"type":"function"}]}]}',
        ("cache_control",),
    ),
    "mark, escaped": (
        '{"messages":[{"c\\u0061che\\u005Fcontrol":{},"role":"user"}]}',
        '{"messages":[{"role":"user"}]}',
        ("cache_control",),
    ),
    "marks everywhere are one entry": (
        '{"cache_control":1,"messages":[{"cache_control":1}],"tools":[{"cache_control":1}]}',
        '{"messages":[{}],"tools":[{}]}',
        ("cache_control",),
    ),
}


@pytest.mark.parametrize(("text", "sent", "removed"), CHANGED.values(), ids=CHANGED)
def test_removed(text: str, sent: str, removed: tuple[str, ...]) -> None:
    """What goes, and that all else keeps its bytes."""
    got, result = filtered(text)
    assert got == sent
    assert result.removed == removed
    assert result.dropped_tools == ()


@pytest.mark.parametrize(("text", "sent", "removed"), CHANGED.values(), ids=CHANGED)
def test_removed_from_values(text: str, sent: str, removed: tuple[str, ...]) -> None:
    """Decoded fields are filtered by the same rules, and the given ones are left alone."""
    fields = json.loads(text)
    result = filter_fields(fields)
    assert result.fields == json.loads(sent)
    assert result.removed == removed
    assert fields == json.loads(text)


@pytest.mark.parametrize("text", UNTOUCHED)
def test_values_untouched(text: str) -> None:
    """Decoded fields that need no filtering come out equal."""
    fields = json.loads(text)
    assert filter_fields(fields).fields == fields


@pytest.mark.parametrize(
    ("route", "text", "sent"),
    [
        (
            COMPLETIONS,
            '{"prompt":"a","max_tokens":null,"temperature":null,"top_p":null,"top_k":null,'
            '"min_p":null,"repetition_penalty":null,"echo":null,"logprobs":null,"stop":null}',
            '{"prompt":"a","logprobs":null,"stop":null}',
        ),
        (COMPLETIONS, '{"prompt":"a","stream_options":{}}', '{"prompt":"a"}'),
        (COMPLETIONS, '{"prompt":"a","store":true}', '{"prompt":"a"}'),
        (COMPLETIONS, '{"prompt":"a","logprobs":0,"tools":[{"type":"x"}]}', None),
        (EMBEDDINGS, '{"input":"a","encoding_format":null}', '{"input":"a"}'),
        (EMBEDDINGS, '{"input":["a"],"dimensions":null,"encoding_format":"base64"}', None),
        (EMBEDDINGS, '{"input":[{"text":"-5"}],"stream_options":null}', None),
        (MESSAGES, '{"store":true,"n":null,"messages":[{"cache_control":{}}]}', None),
        (RESPONSES, '{"store":true,"n":null,"stream_options":{}}', None),
        (COUNT_TOKENS, '{"cache_control":{},"tools":[{"name":"f","input_schema":{}}]}', None),
    ],
)
def test_by_route(route: Route, text: str, sent: str | None) -> None:
    """Each route's nulls; what is converted first is not filtered twice."""
    got, _ = filtered(text, route)
    assert got == (text if sent is None else sent)


@pytest.mark.parametrize("dialect", REFUSED_NULLS)
def test_required_fields_keep_their_null(dialect: Dialect) -> None:
    """A required field's null is the engine's to refuse: dropped, it would say 'missing'."""
    assert not {"messages", "prompt", "input", "model"} & set(REFUSED_NULLS[dialect])


def test_chat_to_a_messages_engine() -> None:
    """A Messages engine ignores what it does not know: only tools and a long user go."""
    text = (
        '{"store":true,"n":null,"messages":[{"cache_control":{}}],"user":"' + "x" * 65 + '",'
        '"tools":[{"type":"web_search"}],"stream_options":{}}'
    )
    got, result = filtered(text, messages_endpoint=True)
    assert got == ('{"store":true,"n":null,"messages":[{"cache_control":{}}],"stream_options":{}}')
    assert result.dropped_tools == ("web_search",)


SEARCH = '{"type":"web_search_20250305","name":"web_search"}'
OWN = '{"name":"web_fetch","input_schema":{"maximum":1e2}}'

TOOLS = {
    "all go": (
        CHAT,
        '{"x":1,"tools":[{"type":"web_search"}],"tool_choice":"required"}',
        '{"x":1}',
        ("web_search",),
    ),
    "some go": (
        CHAT,
        '{"tools":[{"type":"mcp","server_label":"s"}, ' + FUNCTION + '],"tool_choice":"required"}',
        '{"tools":[' + FUNCTION + '],"tool_choice":"required"}',
        ("mcp",),
    ),
    "each type once": (
        RESPONSES,
        '{"tools":[{"type":"shell"},{"type":"computer_use_preview"},{"type":"shell"}]}',
        "{}",
        ("shell", "computer_use_preview"),
    ),
    "a choice of a hosted type": (
        RESPONSES,
        '{"tools":[{"type":"web_search_preview"},{"type":"function","name":"f"}],'
        '"tool_choice":{"type":"web_search_preview"}}',
        '{"tools":[{"type":"function","name":"f"}]}',
        ("web_search_preview",),
    ),
    "a choice of what stays": (
        RESPONSES,
        '{"tools":[{"type":"file_search"},{"type":"function","name":"f"}],'
        '"tool_choice":{"type":"function","name":"f"}}',
        '{"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"}}',
        ("file_search",),
    ),
    "allowed tools": (
        RESPONSES,
        '{"tools":[{"type":"file_search"},{"type":"function","name":"f"}],"tool_choice":'
        '{"type":"allowed_tools","mode":"required","tools":[{"type":"file_search"},'
        '{"type":"function","name":"f"}]}}',
        '{"tools":[{"type":"function","name":"f"}],"tool_choice":'
        '{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}}',
        ("file_search",),
    ),
    "allowed tools, none left": (
        RESPONSES,
        '{"tools":[{"type":"file_search"},{"type":"function","name":"f"}],"tool_choice":'
        '{"type":"allowed_tools","mode":"auto","tools":[{"type":"file_search"}]}}',
        '{"tools":[{"type":"function","name":"f"}]}',
        ("file_search",),
    ),
    "allowed tools of chat": (
        CHAT,
        '{"tools":[{"type":"mcp"},' + FUNCTION + '],"tool_choice":{"type":"allowed_tools",'
        '"allowed_tools":{"mode":"auto","tools":[{"type":"mcp"},{"type":"function","function":'
        '{"name":"f"}}]}}}',
        '{"tools":[' + FUNCTION + '],"tool_choice":{"type":"allowed_tools",'
        '"allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}}',
        ("mcp",),
    ),
    "messages": (
        MESSAGES,
        '{"tools":[' + SEARCH + "," + OWN + '],"tool_choice":{"type":"any"}}',
        '{"tools":[' + OWN + '],"tool_choice":{"type":"any"}}',
        ("web_search_20250305",),
    ),
    "messages, a choice by name": (
        MESSAGES,
        '{"tools":[' + SEARCH + "," + OWN + '],"tool_choice":{"type":"tool","name":"web_search"}}',
        '{"tools":[' + OWN + "]}",
        ("web_search_20250305",),
    ),
    "messages, a choice of one's own": (
        MESSAGES,
        '{"tools":[' + SEARCH + "," + OWN + '],"tool_choice":{"type":"tool","name":"web_fetch"}}',
        '{"tools":[' + OWN + '],"tool_choice":{"type":"tool","name":"web_fetch"}}',
        ("web_search_20250305",),
    ),
    "a name that both have": (
        MESSAGES,
        '{"tools":[' + SEARCH + ',{"name":"web_search"}],'
        '"tool_choice":{"type":"tool","name":"web_search"}}',
        '{"tools":[{"name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}}',
        ("web_search_20250305",),
    ),
    "tools within a namespace": (
        RESPONSES,
        '{"tools":[{"type":"memory","name":"f"},{"type":"namespace","tools":[{"type":"function",'
        '"name":"f"}]}],"tool_choice":{"type":"function","name":"f"}}',
        '{"tools":[{"type":"namespace","tools":[{"type":"function",'
        '"name":"f"}]}],"tool_choice":{"type":"function","name":"f"}}',
        ("memory",),
    ),
    "counting": (COUNT_TOKENS, '{"tools":[' + SEARCH + "]}", "{}", ("web_search_20250305",)),
    "counting, responses": (INPUT_TOKENS, '{"tools":[{"type":"bash_1"}]}', "{}", ("bash_1",)),
    "with a mark": (
        CHAT,
        '{"tools":[{"type":"mcp"},{"type":"function","cache_control":{},"x":1.0}]}',
        '{"tools":[{"type":"function","x":1.0}]}',
        ("mcp",),
    ),
}


@pytest.mark.parametrize(("route", "text", "sent", "dropped"), TOOLS.values(), ids=TOOLS)
def test_hosted_tools(route: Route, text: str, sent: str, dropped: tuple[str, ...]) -> None:
    """Hosted tools go, and with them the choice of one; what stays keeps its bytes."""
    got, result = filtered(text, route)
    assert got == sent
    assert result.dropped_tools == dropped


@pytest.mark.parametrize(("route", "text", "sent", "dropped"), TOOLS.values(), ids=TOOLS)
def test_hosted_tools_in_values(
    route: Route, text: str, sent: str, dropped: tuple[str, ...]
) -> None:
    """The same on decoded fields."""
    result = filter_fields(json.loads(text), route.dialect)
    assert result.fields == json.loads(sent)
    assert result.dropped_tools == dropped


@pytest.mark.parametrize(
    ("route", "text", "message"),
    [
        (CHAT, '{"tools":[{"type":"teleport"}]}', "'teleport'"),
        (MESSAGES, '{"tools":[{"type":"function","name":"f"}]}', "'function'"),
        (RESPONSES, '{"tools":[{"type":"web_searching"}]}', "'web_searching'"),
        (CHAT, '{"tools":[{"type":7}]}', r"tools\[0\].type"),
        (CHAT, '{"tools":{}}', "tools"),
        (CHAT, '{"tools":["f"]}', r"tools\[0\]"),
    ],
)
def test_tools_that_nobody_knows(route: Route, text: str, message: str) -> None:
    """A type that is neither the client's own nor hosted is refused by name."""
    with pytest.raises(GatewayError, match=message) as error:
        filtered(text, route)
    assert error.value.kind.status == 400


BAD_IDS = {
    "negative": (COMPLETIONS, '{"prompt":[1,-5]}', None, r"prompt\[1\] is -5;.* at least 0"),
    "negative, nested": (COMPLETIONS, '{"prompt":[[1],[2,-1]]}', None, r"prompt\[1\]\[1\] is -1"),
    "negative zero point": (COMPLETIONS, '{"prompt":[-5.0]}', None, r"prompt\[0\] is -5.0"),
    "at the size": (COMPLETIONS, '{"prompt":[99,100]}', 100, r"prompt\[1\] is 100;.*below 100"),
    "embeddings": (EMBEDDINGS, '{"input":[[0],[999999]]}', 1000, r"input\[1\]\[0\] is 999999"),
    "chat": (CHAT, '{"input_ids":[-1]}', None, r"input_ids\[0\] is -1"),
    "mixed": (COMPLETIONS, '{"prompt":[1,"-5"]}', None, "mixes texts and token ids"),
    "texts as ids": (COMPLETIONS, '{"prompt":[[1,"-5"]]}', None, r"prompt\[0\]\[1\] is a text"),
    "huge": (COMPLETIONS, '{"prompt":[' + "9" * 400 + "]}", 100, "out of range"),
}


@pytest.mark.parametrize(("route", "text", "vocab", "message"), BAD_IDS.values(), ids=BAD_IDS)
def test_token_ids_that_end_the_engine(
    route: Route, text: str, vocab: int | None, message: str
) -> None:
    """Negative ids, and those beyond a known vocabulary, are refused and named."""
    with pytest.raises(GatewayError, match=message) as error:
        filtered(text, route, vocab_size=vocab)
    assert error.value.kind.status == 400
    assert error.value.param == next(iter(json.loads(text)))


@pytest.mark.parametrize(
    ("route", "text", "vocab"),
    [
        (COMPLETIONS, '{"prompt":[0,99]}', 100),
        (COMPLETIONS, '{"prompt":[999999]}', None),
        (COMPLETIONS, '{"prompt":["-5","a"]}', 10),
        (COMPLETIONS, '{"prompt":"-5"}', 10),
        (COMPLETIONS, '{"prompt":[]}', 10),
        (COMPLETIONS, '{"prompt":[[]]}', 10),
        (COMPLETIONS, '{"prompt":null}', 10),
        (EMBEDDINGS, '{"input":[{"text":"a"}]}', 10),
        (EMBEDDINGS, '{"prompt":[-5]}', 10),
    ],
)
def test_prompts_that_pass(route: Route, text: str, vocab: int | None) -> None:
    """Texts, ids within the vocabulary and whatever the engine refuses by itself pass."""
    got, _ = filtered(text, route, vocab_size=vocab)
    assert got == text
