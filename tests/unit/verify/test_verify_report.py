import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from gateway.profile import Origin, load_preset
from gateway.routes import CHAT, MESSAGES
from gateway.verify.cases import Case, Check, Finding, Row, Rule, RuleKind, State
from gateway.verify.expect import accepted, refused
from gateway.verify.plan import Plan
from gateway.verify.report import (
    render_json,
    render_junit,
    render_plan,
    render_plan_json,
    render_text,
)
from gateway.verify.run import Report

TOP_P = Rule("sampling.params.top_p", RuleKind.EXACT, Origin("p.yaml", 3))
BODY = Rule("limits.max_body_bytes", RuleKind.BODY, None)
FINE = Check(TOP_P, "top_p left out", *accepted())
BAD = Check(TOP_P, "top_p 0.94, just below", *refused("c"))
LARGE = Check(BODY, "9 bytes, above the limit", *refused("c"))
PLAIN = Case(CHAT, CHAT.path, b"{}", (FINE,), tokens=16, control=True)
STREAM = Case(CHAT, CHAT.path, b"{ }", (BAD,), stream=True, cut=True)
OTHER = Case(MESSAGES, MESSAGES.path, b"{}", (FINE, LARGE), tokens=16)
BARE = Case(MESSAGES, MESSAGES.path, b"[]", (), control=True)
LIST = Case(CHAT, "/v1/models", None, (FINE,))


@pytest.fixture
def report() -> Report:
    """A run in which everything happened once."""
    plan = Plan(load_preset("moonshot-kimi"), "m", (PLAIN, STREAM, OTHER))
    rows = [
        Row(PLAIN, FINE, Finding(State.PASSED)),
        Row(STREAM, BAD, Finding(State.FAILED, "got 200")),
        Row(OTHER, FINE, Finding(State.UNSEEN, "it is not seen")),
        Row(OTHER, LARGE, Finding(State.UNANSWERED, "429 after 4 tries")),
        Row(OTHER, BAD, Finding(State.SKIPPED, "no\x1bt served")),
    ]
    return Report(plan, rows, requests=7, repeated=3, notes=["a note"])


def test_plan() -> None:
    """Each request with what is expected of it, and what it all costs."""
    plan = Plan(load_preset("moonshot-kimi"), "m", (BARE, PLAIN, STREAM, LIST))
    assert render_plan(plan) == (
        "1. POST /v1/messages\n"
        "   a plain request: is it served at all?\n"
        "2. POST /v1/chat/completions\n"
        "   top_p left out: is accepted  # sampling.params.top_p (p.yaml:3)\n"
        "3. POST /v1/chat/completions, streamed\n"
        "   top_p 0.94, just below: is refused with a 400  # sampling.params.top_p (p.yaml:3)\n"
        "4. GET /v1/models\n"
        "   top_p left out: is accepted  # sampling.params.top_p (p.yaml:3)\n"
        "4 requests, 3 checks; 7 bytes sent; at most 16 tokens answered, and 1 streams left at"
        " their first words\n"
    )


def test_plan_as_json() -> None:
    """The same for programs."""
    plan = Plan(load_preset("moonshot-kimi"), "m", (STREAM, LIST))
    assert json.loads(render_plan_json(plan)) == {
        "requests": 2,
        "sent_bytes": 3,
        "answer_tokens": 0,
        "cases": [
            {
                "method": "POST",
                "path": "/v1/chat/completions",
                "stream": True,
                "bytes": 3,
                "checks": [
                    {
                        "rule": "sampling.params.top_p",
                        "what": "top_p 0.94, just below",
                        "expected": "is refused with a 400",
                    }
                ],
            },
            {
                "method": "GET",
                "path": "/v1/models",
                "stream": False,
                "bytes": 0,
                "checks": [
                    {
                        "rule": "sampling.params.top_p",
                        "what": "top_p left out",
                        "expected": "is accepted",
                    }
                ],
            },
        ],
    }


def test_text(report: Report) -> None:
    """A table, each failure with its reason, and all that was neither passed nor failed."""
    assert render_text(report) == (
        "rule                   set at    chat           messages\n"
        "limits.max_body_bytes                           unanswered\n"
        "sampling.params.top_p  p.yaml:3  1 of 2 FAILED  not observable\n"
        "\n"
        "FAILED sampling.params.top_p (p.yaml:3): chat, streamed\n"
        "  top_p 0.94, just below is refused with a 400; got 200\n"
        "\n"
        "not observable: 1 checks: it is not seen\n"
        "unanswered: 1 checks: 429 after 4 tries\n"
        "skipped: 1 checks: no\x1bt served\n"
        "\n"
        "1 passed, 1 failed, 1 not observable, 1 skipped, 1 unanswered; 7 requests, 3 of them"
        " repeated\n"
    )


def test_a_clean_run(report: Report) -> None:
    """Nothing but the table and the sum."""
    clean = replace(report, rows=report.rows[:1], requests=1, repeated=0)
    assert render_text(clean) == (
        "rule                   set at    chat  messages\n"
        "sampling.params.top_p  p.yaml:3  1\n"
        "\n"
        "1 passed, 0 failed, 0 not observable, 0 skipped, 0 unanswered; 1 requests, 0 of them"
        " repeated\n"
    )


def test_json(report: Report) -> None:
    """Every check with its rule, where that is set, and what became of it."""
    told = json.loads(render_json(report))
    assert told["profile"] == "moonshot-kimi"
    assert told["counts"] == {
        "passed": 1,
        "failed": 1,
        "not observable": 1,
        "skipped": 1,
        "unanswered": 1,
    }
    assert (told["requests"], told["repeated"], told["notes"]) == (7, 3, ["a note"])
    assert told["checks"][1] == {
        "rule": "sampling.params.top_p",
        "kind": "exact value",
        "set_at": {"source": "p.yaml", "line": 3},
        "route": "chat",
        "stream": True,
        "what": "top_p 0.94, just below",
        "expected": "is refused with a 400",
        "state": "failed",
        "reason": "got 200",
    }
    assert told["checks"][3]["set_at"] is None


def test_junit(report: Report) -> None:
    """A suite a rule; failures, errors and skips as CI knows them, whatever an endpoint said."""
    root = ET.fromstring(render_junit(report))  # noqa: S314 - our own
    numbers = {"tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    assert root.attrib == {"name": "sgl-gateway verify", **numbers}
    assert [suite.attrib["name"] for suite in root] == [
        "limits.max_body_bytes",
        "sampling.params.top_p",
    ]
    found = [(one[0].tag, one[0].attrib["message"]) for one in root.iter("testcase") if len(one)]
    assert found == [
        ("error", "429 after 4 tries"),
        ("failure", "got 200"),
        ("skipped", "it is not seen"),
        ("skipped", "no\ufffdt served"),
    ]
    first = root[1][0]
    assert first.attrib == {
        "classname": "sampling.params.top_p",
        "name": "chat: top_p left out is accepted",
    }
