"""What a test has the twin do, written into a prompt."""

import json


def script(text="Please.", **wanted):
    """A prompt that has the twin do what is wanted; see `twin` for the words."""
    return f"{text} <<{json.dumps(wanted)}>>"
