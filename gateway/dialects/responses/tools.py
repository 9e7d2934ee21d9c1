"""A Responses client's tools as Chat functions, and back.

Chat knows one kind of tool, the function, in one flat list. A Responses client has three:

    client's tool                     Chat function                  a call comes back as
    function NAME                     NAME                           function_call NAME
    custom NAME (free text)           NAME, one text property        custom_tool_call NAME
    namespace SPACE { TOOL, … }       SPACE__TOOL, one for each      either, with its namespace

The flat name of a namespaced tool must not be seen by the client: it knows the tool by its own
name and its namespace, and refuses any other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from gateway.dialects.responses.parts import refused
from gateway.errors import GatewayError, bad_request
from gateway.hosted_tools import CHAT_TOOL_TYPES, is_hosted, split_tools

CUSTOM_INPUT: Final = "input"
"""The property that holds a custom tool's free text."""

_SEPARATOR: Final = "__"
_CHOICES: Final = ("auto", "none", "required")
_NOT_SENT: Final = frozenset({"type", "format", "defer_loading"})
"""A tool's keys that say nothing to Chat. `defer_loading` would hide the tool until the hosted
tool search found it, and there is none here: a hidden tool could never be called."""

_KEY_TYPES: Final[Mapping[str, tuple[type, str]]] = MappingProxyType(
    {
        "description": (str, "a string"),
        "parameters": (dict, "a JSON schema, an object"),
        "strict": (bool, "true or false"),
    }
)


@dataclass(frozen=True, slots=True)
class ClientTool:
    """What a client calls a tool of its own.

    Attributes:
        custom: it takes free text, not JSON arguments.
    """

    name: str
    namespace: str | None = None
    custom: bool = False


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of a request's tools on both sides.

    Attributes:
        tools: the client's tool behind each Chat function's name.
    """

    tools: Mapping[str, ClientTool] = field(default_factory=lambda: MappingProxyType({}))

    def client_tool(self, function_name: str) -> ClientTool:
        """The tool that a call means; a name that the model made up stands for itself."""
        return self.tools.get(function_name) or ClientTool(function_name)

    def function_name(self, name: str, namespace: str | None) -> str:
        """The Chat name of a tool in the history, which may be offered no longer."""
        return self.find(name, namespace) or flat_name(name, namespace)

    def find(self, name: str, namespace: str | None) -> str | None:
        """The Chat name of an offered tool; None where there is none of that name."""
        for function_name, tool in self.tools.items():
            if tool.name == name and tool.namespace == namespace:
                return function_name
        return None


@dataclass(frozen=True, slots=True)
class Tools:
    """A request's tools.

    Attributes:
        functions: in Chat's form, in the client's order.
        dropped_types: the types of hosted tools, each once.
    """

    functions: list[dict[str, Any]]
    names: ToolNames
    dropped_types: tuple[str, ...] = ()


def flat_name(name: str, namespace: str | None) -> str:
    """One name for a tool of a namespace: `crm` and `find` are `crm__find`."""
    if not namespace:
        return name
    return namespace + ("" if namespace.endswith("_") else _SEPARATOR) + name


def parse_tools(lists: Iterable[tuple[str, object]]) -> Tools:
    """Reads the request's tools.

    Args:
        lists: each list of tools with the field that it came in: `tools`, and the items of the
            input that bring more.

    Raises:
        GatewayError: 400, a tool of no known type, or one that cannot be read.
    """
    functions: list[dict[str, Any]] = []
    tools: dict[str, ClientTool] = {}
    dropped: dict[str, None] = {}

    def add(tool: Mapping[str, Any], where: str, namespace: Mapping[str, Any] | None) -> None:
        space = namespace["name"] if namespace else None
        client = ClientTool(_name(tool, where), space, tool.get("type") == "custom")
        function_name = flat_name(client.name, space)
        if tools.get(function_name) == client:
            return  # the same tool once more, as an input's later items repeat them
        function_name = _free_name(function_name, tools)
        tools[function_name] = client
        about = _text(namespace, "description") if namespace else ""
        functions.append(_function(tool, where, function_name, about))

    for field_name, value in lists:
        split = _split(field_name, value)
        dropped.update(dict.fromkeys(split.dropped_types))
        for tool in split.kept:
            where = f"{field_name}[{_position(value, tool)}]"
            if tool.get("type") != "namespace":
                add(tool, where, None)
                continue
            _name(tool, where)
            inner = _split(f"{where}.tools", tool.get("tools"))
            dropped.update(dict.fromkeys(inner.dropped_types))
            for index, member in enumerate(inner.kept):
                if member.get("type") == "namespace":
                    raise refused(f"{where}.tools[{index}]", "a namespace cannot hold another")
                add(member, f"{where}.tools[{index}]", tool)
    return Tools(functions, ToolNames(MappingProxyType(tools)), tuple(dropped))


def apply_choice(chat: dict[str, Any], choice: object, tools: Tools) -> None:
    """Writes `tools` and `tool_choice` into a Chat body.

    No empty list is left, and no choice that names a dropped tool or has nothing to choose from
    once the hosted tools are gone. `allowed_tools` leaves the tools that it allows.

    Raises:
        GatewayError: 400, a choice of no known form, or of a tool that is not there.
    """
    functions, chosen = tools.functions, choice
    if isinstance(choice, Mapping):
        if choice.get("type") == "allowed_tools":
            functions, chosen = _allowed(choice, tools)
        else:
            chosen = _named(choice, tools)
    elif choice is not None and choice not in _CHOICES:
        raise refused("tool_choice", f"expected one of {', '.join(_CHOICES)}, or an object")
    gone = tools.functions != functions or tools.dropped_types
    if functions:
        chat["tools"] = functions
    elif gone:
        chosen = None
    if chosen is not None:
        chat["tool_choice"] = chosen


def _allowed(choice: Mapping[str, Any], tools: Tools) -> tuple[list[dict[str, Any]], str]:
    mode, entries = choice.get("mode"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise refused("tool_choice.mode", "expected auto or required")
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise refused("tool_choice.tools", "expected an array of objects with type and name")
    allowed: set[str] = set()
    for index, entry in enumerate(entries):
        if _is_hosted(entry):
            continue
        if entry.get("type") == "namespace":
            members = {
                name
                for name, tool in tools.names.tools.items()
                if tool.namespace == entry.get("name")
            }
        else:
            found = _find(entry, tools)
            members = {found} if found else set()
        if not members:
            raise refused(f"tool_choice.tools[{index}]", "names a tool that is not in tools")
        allowed |= members
    return [tool for tool in tools.functions if tool["function"]["name"] in allowed], mode


def _named(choice: Mapping[str, Any], tools: Tools) -> dict[str, Any] | None:
    if _is_hosted(choice):
        return None
    if choice.get("type") not in ("function", "custom"):
        raise refused("tool_choice.type", "expected function, custom or allowed_tools")
    found = _find(choice, tools)
    if found is None:
        raise refused("tool_choice.name", "names a tool that is not in tools")
    return {"type": "function", "function": {"name": found}}


def _find(entry: Mapping[str, Any], tools: Tools) -> str | None:
    """A choice may leave the namespace out; then the only tool of that name is meant."""
    name, namespace = entry.get("name"), entry.get("namespace")
    if not isinstance(name, str):
        return None
    found = tools.names.find(name, namespace if isinstance(namespace, str) else None)
    if found is None and namespace is None:
        known = [key for key, tool in tools.names.tools.items() if name in {key, tool.name}]
        return known[0] if len(known) == 1 else None
    return found


def _is_hosted(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("type")
    return isinstance(kind, str) and is_hosted(kind)


def _function(
    tool: Mapping[str, Any], where: str, function_name: str, about_namespace: str
) -> dict[str, Any]:
    """A tool in Chat's form.

    Its keys come in the order, and the absent ones with the values, that the engine's own
    Messages route gives them: the template renders them as they are, so that only then does a
    request cost the same tokens on both of its routes.
    """
    for key, (type_, expected) in _KEY_TYPES.items():
        if tool.get(key) is not None and not isinstance(tool[key], type_):
            raise refused(f"{where}.{key}", f"expected {expected}")
    custom = tool.get("type") == "custom"
    texts = (about_namespace, tool.get("description"), _grammar(tool, where) if custom else "")
    function: dict[str, Any] = {
        "name": function_name,
        "description": "\n\n".join(text for text in texts if text),
        "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
        "strict": tool.get("strict") or False,
    }
    if custom:
        function["parameters"] = {
            "type": "object",
            "properties": {CUSTOM_INPUT: {"type": "string"}},
            "required": [CUSTOM_INPUT],
        }
    others = tool.keys() - _NOT_SENT - set(function)
    function |= {key: tool[key] for key in tool if key in others and tool[key] is not None}
    return {"type": "function", "function": function}


def _grammar(tool: Mapping[str, Any], where: str) -> str:
    """What the description says of a custom tool's format: nothing else would tell the model."""
    form = tool.get("format")
    if form is None:
        return ""
    form = form if isinstance(form, Mapping) else {}
    if form.get("type") == "text":
        return ""
    if form.get("type") != "grammar" or not isinstance(form.get("definition"), str):
        raise refused(f"{where}.format", "expected type text, or type grammar with a definition")
    syntax = form.get("syntax")
    name = f"{syntax} grammar" if isinstance(syntax, str) else "grammar"
    return f"The value of `{CUSTOM_INPUT}` must match this {name}:\n{form['definition']}"


def _name(tool: Mapping[str, Any], where: str) -> str:
    name = tool.get("name")
    if isinstance(name, str) and name:
        return name
    hint = "; it goes beside type, not inside function" if "function" in tool else ""
    raise refused(f"{where}.name", f"expected a non-empty string{hint}")


def _free_name(name: str, taken: Mapping[str, ClientTool]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _split(field_name: str, value: object) -> Any:
    try:
        return split_tools(value, CHAT_TOOL_TYPES)
    except GatewayError as error:  # it speaks of `tools`, which may be another field here
        at = (error.param or "tools").removeprefix("tools")
        message = error.message.removeprefix(error.param or "")
        raise bad_request(f"{field_name}{at}{message}", f"{field_name}{at}") from None


def _position(tools: object, tool: Mapping[str, Any]) -> int:
    entries = tools if isinstance(tools, list) else []
    return next(index for index, entry in enumerate(entries) if entry is tool)
