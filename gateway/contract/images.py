"""The limit `max_images`: how many images a request may carry.

Counted is what reaches the engine as an image, by the `type` of a part, well-formed or not, in
messages of any role and in the results of tools. A text that mentions the words is none.
"""

import re
from typing import Final

from gateway.contract.verdict import NOTHING, Change, Decision, Verdict
from gateway.errors import bad_request
from gateway.jsonbody import Body
from gateway.profile.rules import Profile
from gateway.routes import Route

IMAGE_TYPES: Final = frozenset({"image_url", "image", "input_image"})
"""The `type` of an image: in Chat, Messages and Responses."""

_RULE: Final = "limits.max_images"
_HOLDERS: Final = ("messages", "input", "system")
"""The top-level keys under which the dialects have their messages."""
_NESTED: Final = ("content", "output")
"""The keys under which a message or a tool's result has its parts."""
# Each type has "image" in it, spelled so or with an escape for one of its letters.
_ESCAPED_LETTER: Final = re.compile(rb"\\u00(?:6[1579dD])")


def check_images(profile: Profile, _route: Route, body: Body) -> Verdict:
    """Apply `limits.max_images` to a request of any dialect."""
    most = profile.max_images
    if most is None or not _may_exceed(body.raw, most):
        return NOTHING
    count = count_images(body)
    if count <= most:
        return NOTHING
    message = f"The request has {count} images, expected at most {most}."
    field = next((name for name in _HOLDERS if name in body), _HOLDERS[0])
    decision = Decision(Change.REJECTED, field, _RULE, b"%d" % count, None)
    return Verdict({}, (decision,), (bad_request(message, field),))


def count_images(body: Body) -> int:
    """The number of images in the messages of a request. Never fails, whatever is in them."""
    found = 0
    left: list[object] = [body.get_shape(name) for name in _HOLDERS if name in body]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str) and kind in IMAGE_TYPES:
                found += 1
            else:
                left += (value[key] for key in _NESTED if key in value)
    return found


def _may_exceed(raw: bytes, most: int) -> bool:
    """Whether there are enough mentions of images: a look at the bytes, nothing is parsed."""
    mentions = raw.count(b"image")
    if mentions <= most and b"\\u00" in raw:
        mentions += len(_ESCAPED_LETTER.findall(raw))
    return mentions > most
