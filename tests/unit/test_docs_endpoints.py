"""The page on routes says what the code does: its tables are checked against the code's own."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway import hosted_tools
from gateway.dialects import anthropic_engine, messages, responses
from gateway.dialects.anthropic_engine import reply as messages_reply
from gateway.dialects.anthropic_engine import request as messages_request
from gateway.dialects.messages import fields, turns
from gateway.dialects.messages import reply as chat_reply
from gateway.dialects.messages import request as from_messages
from gateway.dialects.responses import answer, items
from gateway.dialects.responses import request as from_responses
from gateway.engine import filters, headers, token_ids
from gateway.errors import GatewayError
from gateway.jsonbody import parse_object
from gateway.profile import load_preset
from gateway.routes import ROUTES, Dialect
from gateway.service import gateway as service
from gateway.service.engine_body import Side
from gateway.service.exchange import build_exchange
from gateway.service.prepare import prepare
from gateway.service.work import start_work
from gateway.web.resources import UNSUPPORTED

TEXT = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells, and what is in backticks in each."""

    cells: tuple[str, ...]

    def names(self, cell=0):
        """What is in backticks in a cell."""
        return re.findall(r"`([^`]+)`", self.cells[cell])


def section(title):
    """The text below a heading, up to the next one."""
    _, found, rest = TEXT.partition(f"# {title}\n")
    assert found, title
    return re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0]


def rows(title, table=0):
    """The rows of a section's n-th table, without its head."""
    tables = re.findall(r"(?:^\|.*\n)+", section(title), re.MULTILINE)
    lines = tables[table].splitlines()[2:]
    return [Row(tuple(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def keys(title, table=0):
    """What the first cells name, in backticks; each once."""
    named = [name for row in rows(title, table) for name in row.names()]
    assert len(named) == len(set(named)), title
    return set(named)


BODIES = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1},
    "responses": {"input": "hi"},
    "completions": {"prompt": "hi"},
    "embeddings": {"input": "hi"},
    "count_tokens": {"messages": [{"role": "user", "content": "hi"}]},
    "input_tokens": {"input": "hi"},
}


def engine_path(route, *, in_messages):
    """The path that a request of a route goes to."""
    body = parse_object(json.dumps({"model": "m", **BODIES[route.name]}).encode())
    profile = load_preset("openai-compatible").profile
    prepared = prepare(profile, start_work(route, "r", lambda _: None), body, "m")
    return build_exchange(prepared, Side("m", messages=in_messages)).path


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_has_its_row(route):
    """Where it goes on either kind of engine, and what of a profile governs it."""
    (row,) = [row for row in rows("Routes") if row.names() == [f"POST {route.path}"]]
    assert row.names(1) == [engine_path(route, in_messages=False)]
    assert row.names(2) == [engine_path(route, in_messages=True)]
    assert set(row.names(3)) == set(route.governs)


def test_no_route_is_made_up():
    """The table has as many rows as there are routes."""
    assert len(rows("Routes")) == len(ROUTES)


def test_operations_that_are_refused():
    """Each path with its operation."""
    told = {row.names()[0]: row.cells[1] for row in rows("Routes", 1)}
    assert told == UNSUPPORTED


def test_headers_to_the_engine():
    """Those of the client that pass, and those that the gateway sets."""
    passed = {name.lower() for name in headers._PASSED} | {f"{headers._PASSED_PREFIX}*"}
    table = {row.names()[0]: row.cells[1] for row in rows("Headers to the engine")}
    assert {name for name, value in table.items() if value == "the client's"} == passed

    class Server:
        api_key = "k"
        extra_headers: dict[str, str] = {}  # noqa: RUF012

    sent = headers.engine_headers(Server(), {}, "r", messages=True, forward_authorization=False)
    assert sent.keys() == table.keys() - passed
    assert headers.ANTHROPIC_VERSION in table["anthropic-version"]


def test_what_is_taken_out():
    """The platform's fields, the mark, and what depends on its value."""
    others = {filters.MARK, "user", "stream_options"}
    assert keys("Taken out of Chat and completions bodies") == filters.PLATFORM_FIELDS | others
    (user,) = [
        row for row in rows("Taken out of Chat and completions bodies") if "`user`" in row.cells
    ]
    assert f"over {filters.MAX_USER_CHARACTERS} characters" in user.cells[1]


def test_nulls_that_are_dropped():
    """By route, with what two of them share in a row of its own."""
    by_dialect = {dialect: set() for dialect in filters.REFUSED_NULLS}
    for row in rows("Taken out of Chat and completions bodies", 1):
        for dialect in row.cells[0].split(", "):
            by_dialect[Dialect(dialect)] |= set(row.names(1))
    assert by_dialect == {key: set(value) for key, value in filters.REFUSED_NULLS.items()}


def test_fields_of_token_ids():
    """Each is named with its route."""
    text = section("Taken out of Chat and completions bodies")
    for dialect, field in token_ids.FIELDS.items():
        assert f"`{field}` of {dialect}" in text


def test_families_of_hosted_tools():
    """All of them, in their order, and the types of the client's own."""
    text = section("Hosted tools")
    listed = re.search(r"^`advisor`(?:.*\n)+?\n", text, re.MULTILINE)
    assert listed is not None
    assert tuple(re.findall(r"`([^`]+)`", listed[0])) == hosted_tools.HOSTED_FAMILIES
    own = text.partition("The client's own tools")[2].partition("A tool of any other")[0]
    openai, _, anthropic = own.partition("in the OpenAI dialects")
    assert set(re.findall(r"`([^`]+)`", openai)) == hosted_tools.CHAT_TOOL_TYPES - {None}
    assert set(re.findall(r"`([^`]+)`", anthropic)) == hosted_tools.MESSAGES_TOOL_TYPES - {None}


def test_fields_of_messages():
    """Each that is mapped, and each that stays here."""
    assert keys("Messages fields that are mapped") == from_messages._MAPPED
    assert keys("Messages fields that stay here") == from_messages._NOT_PASSED


@pytest.mark.parametrize("field", sorted(from_messages._NOT_PASSED))
def test_what_stays_here_of_messages(field):
    """It is nowhere in the converted body."""
    body = {**BODIES["messages"], field: ["the-mark"]}
    converted = messages.to_chat(body, default_max_tokens=None).body
    assert "the-mark" not in json.dumps(converted)


SAMPLES = {
    "text": {"text": "t"},
    "image": {"source": {"type": "url", "url": "http://i"}},
    "document": {"source": {"type": "text", "data": "d"}},
    "search_result": {"content": [{"type": "text", "text": "t"}]},
    "tool_reference": {"tool_name": "f"},
    "tool_result": {"tool_use_id": "t1", "content": "r"},
    "tool_use": {"id": "t1", "name": "f", "input": {}},
    "thinking": {"thinking": "t"},
    "redacted_thinking": {"data": "d"},
}


def fate_of(block, role):
    """What becomes of a block: `400`, `dropped`, or something."""
    body = {"messages": [{"role": role, "content": [block]}], "max_tokens": 1}
    try:
        converted = messages.to_chat(body, default_max_tokens=None).body["messages"]
    except GatewayError as error:
        return str(error.kind.status)
    return "dropped" if converted == [{"role": role, "content": ""}] else "something"


@pytest.mark.parametrize("row", rows("Blocks of Messages"), ids=lambda row: row.cells[0])
def test_blocks_of_messages(row):
    """Each is used, dropped or refused as the table says, in a turn of either role."""
    name = (row.names() or ["hologram"])[0].replace("*", "web_search")
    block = {"type": name, **SAMPLES.get(name, {})}
    for cell, role in ((1, "user"), (2, "assistant")):
        said = row.cells[1 if row.cells[cell] == "the same" else cell]
        told = (
            "400" if said.startswith("a 400") else "dropped" if said == "dropped" else "something"
        )
        assert fate_of(block, role) == told, role


def test_every_block_has_a_row():
    """Those that are read, and those that hosted tools leave behind."""
    read = {name for readers in turns._READERS.values() for name in readers}
    assert keys("Blocks of Messages") == read | fields._SERVER_BLOCKS | {"*_tool_result"}
    assert fields.BILLING_PREFIX in section("Blocks of Messages")


def test_choices_of_messages():
    """The words for a choice of tools and for thinking, in the order of the table."""
    mapped = {row.names()[0]: row for row in rows("Messages fields that are mapped")}
    choice = mapped["tool_choice"].names(1)
    words = from_messages._TOOL_CHOICES
    assert choice[:4] == [*words, "tool"]
    assert choice[4:7] == list(words.values())
    assert mapped["thinking"].names(1)[:3] == list(from_messages._THINKING)


def test_stop_reasons_of_messages():
    """Each finish reason with its stop reason."""
    told = {row.names()[0]: row.names(1)[0] for row in rows("How Messages answers end")[:4]}
    assert told == chat_reply._STOP_REASONS
    stop = {"matched_stop": "E", "stop_sequences": ["E"], "answered": False}
    calls = chat_reply.stop_of("stop", **{**stop, "matched_stop": None}, called=True)
    met = chat_reply.stop_of("stop", **stop, called=False)
    other = chat_reply.stop_of("odd", **stop, called=False)
    last = [row.names(1)[0] for row in rows("How Messages answers end")[4:]]
    assert last == [reason["stop_reason"] for reason in (calls, met, other)]


def test_fields_of_responses():
    """Each that is mapped, stays here, or is refused."""
    assert keys("Responses fields that are mapped") == from_responses._CONVERTED
    assert keys("Responses fields that stay here") == from_responses._NOT_SENT
    assert keys("Responses fields that are refused") == set(from_responses._STATE)


@pytest.mark.parametrize("field", sorted(from_responses._STATE))
def test_what_is_refused_of_responses(field):
    """It is a 400 that names the field; null is fine."""
    with pytest.raises(GatewayError) as caught:
        responses.to_chat({"input": "hi", field: "x"})
    assert (caught.value.kind.status, caught.value.param) == (400, field)
    assert field not in responses.to_chat({"input": "hi", field: None}).chat


def test_items_of_responses():
    """Each kind of item has a row, and those of hosted tools are dropped."""
    known = {*items._Reader._readers, *items._HOSTED_ITEMS, *items._TOOL_LISTS, "item_reference"}
    assert keys("Items of Responses") == known
    dropped = {row.names()[0] for row in rows("Items of Responses") if row.cells[1] == "dropped"}
    assert dropped == items._HOSTED_ITEMS.keys() - set(items._TOOL_LISTS)


def test_tools_of_responses():
    """Each type of the client's own has a row."""
    assert keys("Tools of Responses") == hosted_tools.CHAT_TOOL_TYPES - {None}


def test_statuses_of_responses():
    """Each finish reason that cuts an answer, with its reason."""
    told = {row.names()[0]: row.names(1) for row in rows("How Responses end")[:-1]}
    assert told == {key: ["incomplete", reason] for key, reason in answer._INCOMPLETE.items()}


def test_fields_of_chat_before_messages():
    """Each that is mapped, and each that cannot be said, with the value that asks for nothing."""
    unsayable = {row.names()[0]: json.loads(row.names(1)[0]) for row in rows(CANNOT_BE_SAID)}
    assert unsayable == dict(messages_request._NEUTRAL)
    mapped = keys("Chat fields that are mapped to Messages")
    assert mapped == messages_request._CONVERTED - messages_request._NEUTRAL.keys()


CANNOT_BE_SAID = "Chat fields that Messages cannot say"


@pytest.mark.parametrize("row", rows(CANNOT_BE_SAID), ids=lambda row: row.cells[0])
def test_what_messages_cannot_say(row):
    """Left out where it asks for nothing, else refused by name."""
    (field,) = row.names()
    chat = {**BODIES["chat"], field: json.loads(row.names(1)[0])}
    assert field not in anthropic_engine.to_messages(chat, default_max_tokens=1)
    with pytest.raises(GatewayError) as caught:
        anthropic_engine.to_messages({**chat, field: "x"}, default_max_tokens=1)
    assert (caught.value.kind.status, caught.value.param) == (400, field)


def test_budgets_before_messages():
    """The bounds of the budget that is made up."""
    text = section("Chat fields that are mapped to Messages")
    assert f"at most {service._MAX_DEFAULT_TOKENS}" in text
    assert f"{service._UNKNOWN_CONTEXT_TOKENS} where" in text


def test_finish_reasons_of_messages():
    """Each stop reason with its finish reason."""
    told = {
        row.names()[0]: row.names(1)[0] for row in rows("How answers of such an engine end")[:-1]
    }
    assert told == dict(messages_reply._FINISH_REASONS)


def test_statuses_that_are_tried_again():
    """They are named."""
    (row,) = [row for row in rows("What is tried again") if re.match(r"\d", row.cells[0])]
    assert {int(found) for found in re.findall(r"\d{3}", row.cells[0])} == service._RETRIED_STATUSES


def test_links_lead_somewhere():
    """Every link on the page, to a heading of it or to another page."""
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    }
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    for link in links:
        page, _, anchor = link.partition("#")
        if page:
            assert (Path(__file__).parents[2] / "docs" / page).exists(), link
        else:
            assert anchor in headings, link
