"""A profile's contract on the chat route, before an engine that is SGLang itself."""

import openai
import pytest

HELLO = [{"role": "user", "content": "Say hello."}]
FEW = {"max_completion_tokens": 12}
WRITTEN = {"top_p": 0.95, "top_k": 1000, "frequency_penalty": 0, "presence_penalty": 0, "n": 1}

ALLOWED = [
    {},
    {"temperature": 0},
    {"temperature": 0.6},
    {"temperature": 1},
    {"top_p": 0.95},
    {"frequency_penalty": 0},
    {"presence_penalty": 0},
    {"n": 1},
]
REFUSED = [
    ("temperature", 1.1, "from 0 up to 1"),
    ("temperature", 2, "from 0 up to 1"),
    ("temperature", -0.1, "from 0 up to 1"),
    ("top_p", 0.8, "0.95"),
    ("frequency_penalty", 0.5, "0"),
    ("presence_penalty", 0.5, "0"),
    ("n", 2, "1"),
]


def name_of(value):
    """A case's name in the report."""
    return (
        "-".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, dict) else None
    )


def ask(gateway, stream, **fields):
    """A chat request; of a stream, all its chunks."""
    asked = {"model": gateway.model, "messages": HELLO, **FEW, **fields}
    answer = gateway.openai.chat.completions.create(**asked, stream=stream)
    return list(answer) if stream else answer


@pytest.mark.parametrize("fields", ALLOWED, ids=lambda fields: name_of(fields) or "nothing")
def test_what_the_contract_allows_is_answered(kimi, fields, stream):
    """An allowed value passes; what the client left out is written in, a band's field is not."""
    answer = ask(kimi, stream, **fields)

    [sent] = kimi.sent
    of_the_contract = {name: sent[name] for name in (*WRITTEN, "temperature") if name in sent}
    assert of_the_contract == WRITTEN | fields
    if stream:
        assert [choice.finish_reason for choice in answer[-1].choices] in ([["length"], ["stop"]])
    else:
        assert answer.choices[0].finish_reason in {"length", "stop"}


@pytest.mark.parametrize(("field", "value", "right"), REFUSED)
def test_what_the_contract_forbids_never_reaches_the_engine(kimi, field, value, right, stream):
    """A 400 names the field, its value and what is right; the engine sees no request."""
    with pytest.raises(openai.BadRequestError) as caught:
        ask(kimi, stream, **{field: value})

    error = caught.value
    assert (error.param, error.code) == (field, "sampling_contract_violation")
    assert error.type == "invalid_request_error"
    for part in (field, str(value), right):
        assert part in error.message
    assert kimi.sent == []
