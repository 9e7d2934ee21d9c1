"""Guards prompts of token ids: the engine does not check them, and one bad id ends its process.

An id is at least 0 and, where the vocabulary's size is known, below it. Lists that mix texts and
ids are refused as well: the engine would read a text like "-5" among numbers as an id.
"""

from typing import Final

from gateway.errors import GatewayError, bad_request
from gateway.routes import Dialect

FIELDS: Final = {
    Dialect.COMPLETIONS: "prompt",
    Dialect.EMBEDDINGS: "input",
    Dialect.CHAT: "input_ids",
}
"""By dialect, the top-level field that may hold token ids."""


def check_token_ids(field: str, value: object, vocab_size: int | None = None) -> None:
    """Refuses token ids that the engine would not survive; anything else is its own to judge.

    Args:
        field: the name of the request's field.
        value: decoded; a list of ids, or a list of such lists, is looked at.
        vocab_size: of the model; None where it is not known.

    Raises:
        GatewayError: 400 that names the place and the id.
    """
    if not isinstance(value, list) or not value:
        return
    if any(isinstance(element, list) for element in value):
        for place, element in enumerate(value):
            if isinstance(element, list):
                _check_ids(f"{field}[{place}]", element, field, vocab_size, texts_allowed=False)
        return
    texts = sum(isinstance(element, str) for element in value)
    if texts and any(_is_number(element) for element in value):
        raise bad_request(
            f"{field} mixes texts and token ids; send a list of the one or of the other", field
        )
    if not texts:
        _check_ids(field, value, field, vocab_size, texts_allowed=True)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)  # a boolean too: the engine reads it as 0 or 1


def _check_ids(
    where: str, ids: list[object], field: str, vocab_size: int | None, *, texts_allowed: bool
) -> None:
    for place, number in enumerate(ids):
        if not isinstance(number, int | float):
            if isinstance(number, str) and not texts_allowed:
                raise bad_request(f"{where}[{place}] is a text; token ids are whole numbers", field)
            continue
        if number < 0 or (vocab_size is not None and number >= vocab_size):
            raise _bad_id(f"{where}[{place}]", number, field, vocab_size)


def _bad_id(where: str, number: float, field: str, vocab_size: int | None) -> GatewayError:
    limit = "" if vocab_size is None else f" and below {vocab_size}, the size of the vocabulary"
    shown = str(number) if abs(number) < 10**20 else "out of range"
    return bad_request(f"{where} is {shown}; a token id is at least 0{limit}", field)
