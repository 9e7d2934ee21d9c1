"""Probes of what is not about a single field: output, limits, models, errors, routes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway.errors import BAD_REQUEST
from gateway.profile import OnExceed, OutputBudget
from gateway.routes import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    Dialect,
    Governs,
    Route,
)
from gateway.verify import bodies
from gateway.verify.bodies import GENERATING, render
from gateway.verify.builder import Builder
from gateway.verify.cases import Case, Check, Rule, RuleKind
from gateway.verify.expect import (
    budget_field,
    error_type,
    forwarded,
    has_status,
    is_there,
    lists_models,
    names_model,
    other_error_type,
)

_HUB_BUDGET: Final = {Dialect.RESPONSES: "max_completion_tokens"}
"""By dialect: what its budget is called by the time that it reaches the engine."""

_CAP: Final = ("output", "max_tokens", "cap")

_MODEST_BYTES: Final = 4 * 1024 * 1024
"""Limits of bodies up to this are probed on every route, larger ones on the first alone."""


def probe_budget(builder: Builder) -> None:
    """The output budget: at the cap, above it, none, zero, and what is no budget.

    Answers may be long where the budget is, so they are streamed and left at their first words.
    """
    budget = builder.loaded.profile.output
    if budget is None:
        return
    for route in builder.generating(Governs.OUTPUT):
        _probe_cap(builder, route, budget)
        _probe_no_budget(builder, route, budget)
    if CHAT in builder.routes:
        _probe_two_budgets(builder, budget)


def _long(builder: Builder, route: Route, fields: Mapping[str, int]) -> bytes:
    """A stream with these budgets."""
    return builder.raw_body(
        route, {name: b"%d" % number for name, number in fields.items()}, stream=True
    )


def _probe_cap(builder: Builder, route: Route, budget: OutputBudget) -> None:
    field, cap = budget_field(route.dialect), budget.cap
    sent = _HUB_BUDGET.get(route.dialect, field)
    rule = builder.rule(_CAP, RuleKind.CAP)
    body = _long(builder, route, {field: cap})
    at = f"{field} {cap}, at the cap"
    builder.accept(route, body, rule, at, forwarded(sent, b"%d" % cap), stream=True, cut=True)
    for value, what in ((b"-1", "negative"), (b"1.5", "a fraction"), (b'"many"', "no number")):
        body = builder.raw_body(route, {field: value})
        words = f"{field} {value.decode()}, {what}"
        builder.refuse(route, body, rule, words, code=BAD_REQUEST.code)
    _probe_excess(builder, route, budget, field)


def _excess(builder: Builder) -> Rule:
    """The rule on budgets above the cap, which may be the default one."""
    path = ("output", "max_tokens", "on_exceed")
    return builder.rule(path if path in builder.loaded.origins else _CAP, RuleKind.EXCESS)


def _probe_excess(builder: Builder, route: Route, budget: OutputBudget, field: str) -> None:
    above = budget.cap + 1
    rule, what = _excess(builder), f"{field} {above}, above the cap"
    if budget.on_exceed is OnExceed.CLAMP:
        sent = forwarded(_HUB_BUDGET.get(route.dialect, field), b"%d" % budget.cap)
        body = _long(builder, route, {field: above})
        builder.accept(route, body, rule, what, sent, stream=True, cut=True)
        return
    for stream in (False, True):
        body = builder.raw_body(route, {field: b"%d" % above}, stream=stream)
        builder.refuse(route, body, rule, what, code=BAD_REQUEST.code, stream=stream)


def _probe_no_budget(builder: Builder, route: Route, budget: OutputBudget) -> None:
    field = budget_field(route.dialect)
    default = ("output", "max_tokens", "default")
    by_cap = budget.default is None
    rule = builder.rule(_CAP if by_cap else default, RuleKind.CAP if by_cap else RuleKind.BUDGET)
    for fields, what in (({}, "left out"), ({field: b"null"}, "as null"), ({field: b"0"}, "0")):
        if route is MESSAGES and what == "0":
            continue  # that dialect's own rule refuses it
        body = builder.raw_body(route, fields, stream=True)
        sent = forwarded("max_tokens", b"%d" % budget.written)
        builder.accept(route, body, rule, f"{field} {what}", sent, stream=True, cut=True)


def _probe_two_budgets(builder: Builder, budget: OutputBudget) -> None:
    """`max_completion_tokens` counts unless it is 0, and 0 must not hide the other field."""
    rule = _excess(builder)
    first, second = "max_completion_tokens", "max_tokens"
    above, few = budget.cap + 1, builder.tokens
    for values, counting in (((0, above), second), ((above, few), first)):
        fields = dict(zip((first, second), values, strict=True))
        what = f"{first} {values[0]} beside {second} {values[1]}"
        if budget.on_exceed is OnExceed.CLAMP:
            body = _long(builder, CHAT, fields)
            sent = forwarded(counting, b"%d" % budget.cap)
            builder.accept(CHAT, body, rule, what, sent, stream=True, cut=True)
        else:
            raw = {name: b"%d" % number for name, number in fields.items()}
            body = builder.raw_body(CHAT, raw)
            builder.refuse(CHAT, body, rule, what, code=BAD_REQUEST.code)
    body = _long(builder, CHAT, {first: few, second: above})
    what = f"{first} {few} beside {second} {above}"
    builder.accept(CHAT, body, rule, what, forwarded(first, b"%d" % few), stream=True, cut=True)


def probe_body_size(builder: Builder) -> None:
    """A body of exactly the limit, and one of a byte more."""
    path = ("limits", "max_body_bytes")
    if path not in builder.loaded.origins:
        return
    limit = builder.loaded.profile.max_body_bytes
    rule = builder.rule(path, RuleKind.BODY)
    first = builder.routes[:1]
    for route in builder.routes if limit <= _MODEST_BYTES else first:
        within = bodies.padded(builder.plain(route), limit)
        if within is None:
            continue
        if route in first:
            builder.accept(route, within, rule, f"{limit} bytes, at the limit")
        what = f"{limit + 1} bytes, above the limit"
        builder.probe(route, within + b" ", rule, what, has_status(413))


_Images = Callable[[Route, Mapping[str, Any], int], dict[str, Any]]

_TOO_MANY: Final[tuple[tuple[_Images, str], ...]] = (
    (bodies.images_in_a_turn, "in a message"),
    (bodies.images_in_two_turns, "over two messages"),
    (bodies.images_in_a_result, "in a tool's result"),
)
"""Where one image more than the limit is refused."""


def probe_images(builder: Builder) -> None:
    """As many images as may be, and one more: in a message, over several, in a tool's result.

    What is accepted can only be told of an endpoint that takes an image at all.
    """
    limit = builder.loaded.profile.max_images
    if limit is None:
        return
    rule = builder.rule(("limits", "max_images"), RuleKind.IMAGES)
    for route in builder.generating(Governs.IMAGES):
        plain, takes = builder.plain(route), f"{route.name} takes images"
        one = render(bodies.images_in_a_turn(route, plain, 1))
        builder.put(Case(route, route.path, one, (), tokens=builder.tokens, gives=takes))
        most = render(bodies.images_in_a_turn(route, plain, limit))
        builder.accept(route, most, rule, f"{limit} images in a message", needs=takes)
        for form, where in _TOO_MANY:
            body = render(form(route, plain, limit + 1))
            what = f"{limit + 1} images {where}"
            builder.refuse(route, body, rule, what, code=BAD_REQUEST.code, needs=takes)
        spoken = render(bodies.words_about_images(route, plain, limit + 1))
        builder.accept(route, spoken, rule, f"{limit + 1} images only spoken of")


def probe_aliases(builder: Builder) -> None:
    """Each name is answered to and read back, and the model list has it; another is a 404."""
    aliases = builder.loaded.profile.aliases
    if not aliases:
        return
    rule = builder.rule(("models", "aliases"), RuleKind.ALIASES)
    for name in (builder.model, *aliases):
        for route in builder.routes:
            named = (names_model(name),) if route in GENERATING else ()
            body = render(builder.plain(route, model=name))
            builder.accept(route, body, rule, f"the name {name}", *named)
            if route in GENERATING:
                body = render(builder.plain(route, model=name, stream=True))
                what = f"the name {name}, streamed"
                builder.accept(route, body, rule, what, *named, stream=True)
    unknown = f"{builder.model}-is-not-served"
    for route in builder.routes:
        body = render(builder.plain(route, model=unknown))
        builder.probe(route, body, rule, f"the name {unknown}", has_status(404))
    for path, expected in (
        ("/v1/models", lists_models((builder.model, *aliases))),
        (f"/v1/models/{aliases[0]}", has_status(200)),
        (f"/v1/models/{unknown}", has_status(404)),
    ):
        check = Check(rule, f"GET {path}", *expected)
        builder.put(Case(CHAT, path, None, (check,)))


_MALFORMED: Final[Mapping[Route, Mapping[str, bytes]]] = MappingProxyType(
    {
        CHAT: {"messages": b"[]"},
        RESPONSES: {"input": b"[]"},
        MESSAGES: {"messages": b"[]"},
        COMPLETIONS: {"prompt": b'""'},
    }
)
"""By route: what makes a plain request one that no endpoint takes."""


def probe_error_type(builder: Builder) -> None:
    """The type of a 400, whoever makes it, on the routes that it governs and on no other."""
    name = builder.loaded.profile.bad_request_type
    if name is None:
        return
    rule = builder.rule(("errors", "bad_request_type"), RuleKind.ERROR_TYPE)
    for route, fields in _MALFORMED.items():
        if route not in builder.routes:
            continue
        governed = Governs.ERROR_TYPE in route.governs
        expected = error_type(name) if governed else other_error_type(name)
        for raw, what in (
            (render(builder.plain(route), fields), f"empty {next(iter(fields))}"),
            (b"{", "half a body"),
        ):
            builder.probe(route, raw, rule, what, has_status(400), expected)


def probe_protocols(builder: Builder) -> None:
    """Every route of a protocol that is off is a 404; of one that is on by name, none is."""
    for route in (*builder.routes, *builder.off):
        path = ("protocols", route.protocol)
        if path in builder.loaded.origins:
            rule = builder.rule(path, RuleKind.PROTOCOL)
            body = render(builder.plain(route))
            expected = has_status(404) if route in builder.off else is_there()
            builder.probe(route, body, rule, f"POST {route.path}", expected)


def probe_plainly(builder: Builder) -> None:
    """A plain request of each route: the ground that its other cases stand on."""
    for route in builder.routes:
        body = render(builder.plain(route))
        tokens = builder.tokens if route in GENERATING else 0
        builder.put(Case(route, route.path, body, (), tokens=tokens, control=True))
