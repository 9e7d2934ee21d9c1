import json
import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_refusal_in_the_readme(serve):
    """What the front page shows is what the gateway answers, to the byte."""
    shown = re.search(r"-d '(?P<body>.+)'\n(?P<reply>.+)\n```", README.read_text(encoding="utf-8"))
    gateway = serve(preset="moonshot-kimi", model_id="kimi-k2")
    reply = gateway.post(json.loads(shown["body"]))
    assert (reply.status_code, reply.text) == (400, shown["reply"])
    assert gateway.engine.requests == []
