"""Which name means which model."""

import pytest

from gateway.errors import GatewayError
from gateway.jsonbody import parse_object
from gateway.service.names import asked_model, build_names

NAMES = build_names("Org/Model-1", ["latest", "LATEST"], ["fast"])

MEANT = {
    "Org/Model-1": "Org/Model-1",
    "org/model-1": "Org/Model-1",
    "sgl/Org/Model-1": "Org/Model-1",
    "latest": "Org/Model-1",
    "LATEST": "Org/Model-1",
    "Latest": "Org/Model-1",
    "sgl/latest": "Org/Model-1",
    "fast": "fast",
    "FAST": "fast",
}


@pytest.mark.parametrize(("asked", "meant"), MEANT.items())
def test_served(asked, meant):
    """A name is found in any spelling of case and with the prefix; a server's alias stays one."""
    assert NAMES.resolve(asked) == meant


@pytest.mark.parametrize(
    "asked", ["", "Model-1", "sgl/", "sgl/sgl/latest", "other", "a\ud800", "x" * 999]
)
def test_not_served(asked):
    """Any other name is 404, told in a message of sane length."""
    with pytest.raises(GatewayError) as caught:
        NAMES.resolve(asked)
    assert (caught.value.kind.status, caught.value.param) == (404, "model")
    assert len(caught.value.message) < 300
    caught.value.message.encode()


def test_without_a_model_id():
    """Then the servers' lists decide, and a name goes on as it is."""
    names = build_names(None, [], ["fast"])
    assert names.resolve("sgl/Whatever") == "Whatever"
    assert names.listed() == ()


def test_listed():
    """The served model comes first, then the aliases, each once."""
    assert NAMES.listed() == ("Org/Model-1", "fast", "latest", "LATEST")


WRONG = {
    b"{}": "model is required",
    b'{"model":null}': "model is required",
    b'{"model":""}': 'got ""',
    b'{"model":"  "}': 'got "  "',
    b'{"model":5}': "got 5",
    b'{"model":["m"]}': 'got ["m"]',
}


@pytest.mark.parametrize(("raw", "message"), WRONG.items())
def test_model_must_be_named(raw, message):
    """A request names its model with a text."""
    with pytest.raises(GatewayError, match="model") as caught:
        asked_model(parse_object(raw))
    assert message in caught.value.message
    assert caught.value.param == "model"


def test_model_is_taken_as_it_is():
    """The name is the client's, spaces included: it reads it back."""
    assert asked_model(parse_object(b'{"model":" m "}')) == " m "
