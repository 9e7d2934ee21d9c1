"""How a plan and a run are told: a table for people, JSON, and JUnit's XML for CI."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from gateway.verify.cases import Case, Row, Rule, State
from gateway.verify.plan import Plan
from gateway.verify.run import Report

_COUNTED = (State.PASSED, State.FAILED, State.UNSEEN, State.SKIPPED, State.UNANSWERED)


def render_plan(plan: Plan) -> str:
    """Every request of a plan with what is expected of it, and the cost of it all."""
    lines = [line for number, case in enumerate(plan.cases, 1) for line in _case(number, case)]
    return "".join(f"{line}\n" for line in (*lines, cost(plan)))


def cost(plan: Plan) -> str:
    """What a run costs at most, in one line."""
    left = sum(case.cut for case in plan.cases)
    streams = f", and {left} streams left at their first words" if left else ""
    return (
        f"{len(plan.cases)} requests, {plan.checks} checks; {plan.sent_bytes} bytes sent;"
        f" at most {plan.answer_tokens} tokens answered{streams}"
    )


def _case(number: int, case: Case) -> Iterator[str]:
    how = ", streamed" if case.stream else ""
    yield f"{number}. {_method(case)} {case.path}{how}"
    if not case.checks:
        yield "   a plain request: is it served at all?"
    for check in case.checks:
        yield f"   {check.what}: {check.expected}  # {check.rule.key}{_at(check.rule)}"


def _method(case: Case) -> str:
    return "GET" if case.body is None else "POST"


def _at(rule: Rule) -> str:
    return "" if rule.origin is None else f" ({rule.origin.source}:{rule.origin.line})"


def render_plan_json(plan: Plan) -> str:
    """A plan for programs: requests, sent_bytes, answer_tokens, cases."""
    cases = [
        {
            "method": _method(case),
            "path": case.path,
            "stream": case.stream,
            "bytes": len(case.body or b""),
            "checks": [
                {"rule": check.rule.key, "what": check.what, "expected": check.expected}
                for check in case.checks
            ],
        }
        for case in plan.cases
    ]
    summary = {
        "requests": len(plan.cases),
        "sent_bytes": plan.sent_bytes,
        "answer_tokens": plan.answer_tokens,
    }
    return json.dumps({**summary, "cases": cases}, indent=2) + "\n"


def render_text(report: Report) -> str:
    """A row a rule and a column a route; then each failure with its reason, and the rest."""
    lines = [*_table(report), *_failures(report), *_others(report), summary(report)]
    return "".join(f"{line}\n" for line in lines)


def summary(report: Report) -> str:
    """The run in one line."""
    counts = ", ".join(f"{report.count(state)} {state}" for state in _COUNTED)
    return f"{counts}; {report.requests} requests, {report.repeated} of them repeated"


def _table(report: Report) -> Iterator[str]:
    """Cells: how many checks passed, or how many of those that could be decided."""
    rules = list(dict.fromkeys((row.check.rule.key, _at(row.check.rule)) for row in report.rows))
    routes = list(dict.fromkeys(case.route.name for case in report.plan.cases))
    states: dict[tuple[str, str], Counter[State]] = {}
    for row in report.rows:
        key = (row.check.rule.key, row.case.route.name)
        states.setdefault(key, Counter())[row.finding.state] += 1
    table = [["rule", "set at", *routes]]
    for rule, at in sorted(rules):
        cells = (_cell(states.get((rule, route), Counter())) for route in routes)
        table.append([rule, at.strip(" ()"), *cells])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        yield "  ".join(
            f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)
        ).rstrip()
    yield ""


def _cell(states: Counter[State]) -> str:
    passed, failed = states[State.PASSED], states[State.FAILED]
    if failed:
        return f"{failed} of {passed + failed} FAILED"
    if passed:
        return str(passed)
    return next((state.value for state in _COUNTED if states[state]), "")


def _failures(report: Report) -> Iterator[str]:
    failed = [row for row in report.rows if row.finding.state is State.FAILED]
    for row in sorted(failed, key=lambda row: row.check.rule.key):
        how = ", streamed" if row.case.stream else ""
        yield f"FAILED {row.check.rule.key}{_at(row.check.rule)}: {row.case.route.name}{how}"
        yield f"  {row.check.what} {row.check.expected}; {row.finding.reason}"
    if failed:
        yield ""


def _others(report: Report) -> Iterator[str]:
    """What was neither passed nor failed, by its reason; then what else is to be known."""
    reasons = Counter(
        (row.finding.state, row.finding.reason)
        for row in report.rows
        if row.finding.state not in {State.PASSED, State.FAILED}
    )
    for (state, reason), count in reasons.items():
        yield f"{state}: {count} checks: {reason}"
    if reasons:
        yield ""


def render_json(report: Report) -> str:
    """For programs: profile, digest, model, requests, repeated, counts, notes, checks."""
    loaded = report.plan.loaded
    value = {
        "profile": loaded.profile.name or loaded.source,
        "source": loaded.source,
        "digest": loaded.digest,
        "model": report.plan.model,
        "requests": report.requests,
        "repeated": report.repeated,
        "counts": {state.value: report.count(state) for state in _COUNTED},
        "notes": report.notes,
        "checks": [_row(row) for row in report.rows],
    }
    return json.dumps(value, indent=2) + "\n"


def _row(row: Row) -> dict[str, object]:
    rule = row.check.rule
    return {
        "rule": rule.key,
        "kind": rule.kind,
        "set_at": None
        if rule.origin is None
        else {"source": rule.origin.source, "line": rule.origin.line},
        "route": row.case.route.name,
        "stream": row.case.stream,
        "what": row.check.what,
        "expected": row.check.expected,
        "state": row.finding.state,
        "reason": row.finding.reason,
    }


_TAGS = {
    State.FAILED: "failure",
    State.UNANSWERED: "error",
    State.UNSEEN: "skipped",
    State.SKIPPED: "skipped",
}


def render_junit(report: Report) -> str:
    """As JUnit's XML: a suite a rule, a case a check; what could not be told is skipped."""
    root = ET.Element("testsuites", {"name": "sgl-gateway verify", **_numbers(report.rows)})
    for key in sorted({row.check.rule.key for row in report.rows}):
        rows = [row for row in report.rows if row.check.rule.key == key]
        suite = ET.SubElement(root, "testsuite", {"name": key, **_numbers(rows)})
        for row in rows:
            how = ", streamed" if row.case.stream else ""
            name = f"{row.case.route.name}{how}: {row.check.what} {row.check.expected}"
            case = ET.SubElement(suite, "testcase", classname=key, name=_printable(name))
            tag = _TAGS.get(row.finding.state)
            if tag is not None:
                ET.SubElement(case, tag, message=_printable(row.finding.reason))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _numbers(rows: Iterable[Row]) -> dict[str, str]:
    tags = Counter(_TAGS.get(row.finding.state, "passed") for row in rows)
    return {
        "tests": str(tags.total()),
        "failures": str(tags["failure"]),
        "errors": str(tags["error"]),
        "skipped": str(tags["skipped"]),
    }


def _printable(text: str) -> str:
    """XML knows no control characters, whatever an endpoint answers."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
