"""What Kimi asks of those who serve its models: its parameters are its own, thinking is a switch.

Fixed parameters may be left out or sent with Kimi's value; any other value is refused, not
replaced. Thinking is turned on and off in Kimi's own spelling and in that of open engines.
"""

import openai
import pytest

HELLO = [{"role": "user", "content": "Say hello."}]
FIXED = {
    "top_p": (0.95, [0.5, 0.94, 1.0]),
    "n": (1, [2, 5]),
    "presence_penalty": (0.0, [0.1, -0.5]),
    "frequency_penalty": (0.0, [0.1, 1.0]),
}
"""By parameter, the one value that is allowed, and some that are not."""

SPELLINGS = {
    "own-on": {"thinking": {"type": "enabled"}},
    "own-off": {"thinking": {"type": "disabled"}},
    "kwargs-on": {"chat_template_kwargs": {"thinking": True}},
    "kwargs-off": {"chat_template_kwargs": {"thinking": False}},
}


def ask(gateway, stream, **fields):
    """A chat request; of a stream, all its chunks."""
    asked = {"model": gateway.model, "messages": HELLO, "max_tokens": 8, **fields}
    answer = gateway.openai.chat.completions.create(**asked, stream=stream)
    return list(answer) if stream else answer


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_parameter_that_is_left_out(kimi, name, stream):
    """Left out, it is written in with its one value."""
    ask(kimi, stream)
    assert kimi.sent[0][name] == FIXED[name][0]


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_parameter_with_its_value(kimi, name, stream):
    """Its own value is accepted."""
    ask(kimi, stream, **{name: FIXED[name][0]})
    assert kimi.sent[0][name] == FIXED[name][0]


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, wrong) in FIXED.items() for value in wrong]
)
def test_a_fixed_parameter_with_another_value(kimi, name, value, stream):
    """Any other is refused by name, never replaced in silence."""
    with pytest.raises(openai.BadRequestError) as caught:
        ask(kimi, stream, **{name: value})
    assert caught.value.param == name
    assert kimi.sent == []


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_thinking(kimi, bodies, spelling, stream):
    """Both spellings are accepted, and reach the engine as they were sent."""
    bodies.extra = {"thinking"}

    ask(kimi, stream, extra_body=spelling)

    [sent] = kimi.sent
    assert {name: sent[name] for name in spelling} == spelling


@pytest.mark.parametrize("thinks", [True, False])
def test_thinking_is_turned_off(kimi, stream, thinks):
    """The engine's template follows the switch: without thinking nothing of it comes back."""
    kwargs = {"chat_template_kwargs": {"thinking": thinks, "enable_thinking": thinks}}

    answer = ask(kimi, stream, extra_body=kwargs)

    parts = [choice.delta for chunk in answer for choice in chunk.choices] if stream else []
    parts = parts or [answer.choices[0].message]
    told = "".join(getattr(part, "reasoning_content", None) or "" for part in parts)
    assert bool(told) is thinks
