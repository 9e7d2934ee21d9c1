"""What an engine says: objects, and errors in their several shapes."""

import pytest

from gateway.dialects.engine_json import parse_engine_object, raise_error, read_text
from gateway.dialects.errors import EngineFailure


@pytest.mark.parametrize(
    "raw", [b"", b"oops", b"[]", b"null", b'"a"', b'{"a":NaN}', b'{"a":"\xff"}']
)
def test_what_is_no_object(raw):
    """A reply that is no JSON object is the engine's failure, a 502, and never an answer."""
    with pytest.raises(EngineFailure) as caught:
        parse_engine_object(raw, "reply")
    failure = caught.value.failure
    assert (failure.status, failure.message) == (502, "The engine sent an unreadable reply.")


ERRORS = {
    "nested": {"error": {"message": "m", "code": 400}},
    "text": {"error": "m", "code": 400},
    "flat": {"object": "error", "message": "m", "code": 400},
    "messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}},
}


@pytest.mark.parametrize("payload", ERRORS.values(), ids=ERRORS)
def test_errors_are_raised(payload):
    """An error is found in whichever shape it comes, and its words are kept."""
    with pytest.raises(EngineFailure) as caught:
        raise_error(payload)
    assert caught.value.failure.message == "m"


@pytest.mark.parametrize("payload", [{}, {"error": None, "type": "message"}, {"object": "list"}])
def test_what_is_no_error(payload):
    """A null error is none."""
    raise_error(payload)


@pytest.mark.parametrize(("value", "text"), [(None, ""), ("", ""), ("a", "a")])
def test_text(value, text):
    """Null and absent are empty; anything else that is no text is the engine's failure."""
    assert read_text({"content": value}, "content") == text
    assert read_text({}, "content") == ""
    with pytest.raises(EngineFailure, match="a content that is no text"):
        read_text({"content": ["a"]}, "content")
