"""Tools that answer and actions that happen: typed methods, described to the model by their docstring.

A `@tool` reads and may be called while an agent decides. An `@action` writes, is what a decision consists of, and
runs after everyone has decided. pydantic gives schema and validation; nothing a model writes reaches a function
unchecked.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar, overload

import docstring_parser
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, SchemaError

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall, ToolSpec

F = TypeVar("F", bound=Callable[..., Any])

MAX_ARGUMENT_CHARACTERS = 20_000
"""Longest arguments of one call that are looked at, as JSON."""

MAX_INTEGER = 2**53
"""Largest integer an argument may hold: beyond it JSON, SQLite and floats no longer agree."""

_MARK = "_mesa_llm_tool"


@dataclass(frozen=True, slots=True)
class _Mark:
    is_action: bool
    when: str | None


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, when: str | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, *, when: str | None = None) -> Any:
    """Mark a method or function as a tool: it reads, and may be called while an agent decides.

    Args:
        function: What to mark; its docstring is what the model reads.
        when: Name of a method of the same object, called with the same acting agent (if any), that says whether
            the tool may be used now.
    """
    return _mark(function, _Mark(is_action=False, when=when))


@overload
def action(function: F) -> F: ...
@overload
def action(*, when: str | None = None) -> Callable[[F], F]: ...
def action(function: Any = None, *, when: str | None = None) -> Any:
    """Mark a method or function as an action: it writes, and runs after everyone has decided.

    Args:
        function: What to mark; its docstring is what the model reads.
        when: Name of a method of the same object, called with the same acting agent (if any), that says whether
            the action may be used now.
    """
    return _mark(function, _Mark(is_action=True, when=when))


def _mark(function: Any, mark: _Mark) -> Any:
    def put(target: Any) -> Any:
        setattr(target, _MARK, mark)
        return target

    return put if function is None else put(function)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with what the model is told of it and the check of its arguments."""

    spec: ToolSpec
    """What a model is told."""

    function: Callable[..., Any]
    """The function, unbound."""

    check: TypeAdapter[Any]
    """Turns arguments by name into checked ones, or raises pydantic's ValidationError."""

    when: str | None
    """Name of the method that says whether it may be used now."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments and convert them to their types.

        Raises:
            ToolError: If they are too long, missing, unknown, or of the wrong type or range.
        """
        if not _are_short(given) and len(canonical_json(given)) > MAX_ARGUMENT_CHARACTERS:
            raise ToolError(f"the arguments are longer than {MAX_ARGUMENT_CHARACTERS} characters; write less.")
        try:
            checked = self.check.validate_python(ArgsKwargs((), dict(given)))
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: {describe(error)}") from None
        for name, value in checked.items():
            if isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise ToolError(f"{self.spec.name}: {name}: the number is too large.")
        return checked


def _are_short(given: Mapping[str, Any]) -> bool:
    """Tell without writing them out that arguments are short: few, flat, and no long text among them."""
    return len(given) <= 10 and all(
        len(value) < 300 if isinstance(value, str) else isinstance(value, float | bool) or _is_small(value)
        for value in given.values()
    )


def _is_small(value: object) -> bool:
    return value is None or (isinstance(value, int) and abs(value) <= MAX_INTEGER)


def describe(error: ValidationError) -> str:
    """Say in one line what a value lacks, for a model to read."""
    faults: list[str] = []
    for fault in error.errors(include_url=False, include_context=False)[:5]:
        place = ".".join(str(part) for part in fault["loc"]) or "value"
        found = "" if fault["type"].startswith("missing") else f", got {str(fault['input'])[:80]!r}"
        faults.append(f"{place}: {fault['msg'][:1].lower()}{fault['msg'][1:]}{found}")
    return "; ".join(faults)


@cache
def compile_tool(function: Callable[..., Any], leading: int) -> Tool:
    """Build the tool of a function.

    Args:
        function: Unbound function; every parameter the model fills needs a type.
        leading: How many first parameters the model does not see (`self`, the acting agent).

    Raises:
        ConfigError: If a parameter has no type, cannot be described as JSON, or is variadic.
    """
    mark = getattr(function, _MARK, _Mark(is_action=False, when=None))
    name = function.__name__
    signature = inspect.signature(function)
    shown = list(signature.parameters.values())[leading:]
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in shown:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"tool {name!r} takes *{parameter.name}; name its arguments one by one")
        if parameter.name not in hints:
            raise ConfigError(f"argument {parameter.name!r} of tool {name!r} has no type; annotate it")

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    collect.__dict__["__signature__"] = signature.replace(parameters=named, return_annotation=signature.empty)
    collect.__annotations__ = {parameter.name: hints[parameter.name] for parameter in shown}
    try:
        kind: Any = collect
        check = TypeAdapter[Any](kind, config=ConfigDict(allow_inf_nan=False))
        schema = check.json_schema()
    except (PydanticUserError, SchemaError, TypeError, ValueError) as error:  # all that pydantic has for a bad type
        raise ConfigError(f"tool {name!r} has an argument that JSON cannot describe: {error}") from error
    description = _describe_arguments(function, schema)
    spec = ToolSpec(name, description, plain_schema(schema), mark.is_action)
    return Tool(spec, function, check, mark.when)


def _describe_arguments(function: Callable[..., Any], schema: dict[str, Any]) -> str:
    """Move what the docstring says of each argument into the schema; give what it says of the whole."""
    parsed = docstring_parser.parse(inspect.getdoc(function) or "")
    for parameter in parsed.params:
        target = schema.get("properties", {}).get(parameter.arg_name)
        if target is not None and parameter.description:
            target.setdefault("description", " ".join(parameter.description.split()))
    text = " ".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return " ".join(text.split()) or function.__name__.replace("_", " ")


def plain_schema(schema: Any) -> Any:
    """Take out of a JSON schema what models need not read (titles), at every depth."""
    if isinstance(schema, list):
        items = typing.cast("list[Any]", schema)
        return [plain_schema(item) for item in items]
    if not isinstance(schema, dict):
        return schema
    fields = typing.cast("dict[str, Any]", schema)
    plain: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in {"properties", "$defs"} and isinstance(value, dict):
            named = typing.cast("dict[str, Any]", value)
            plain[key] = {name: plain_schema(inner) for name, inner in named.items()}
        else:
            plain[key] = plain_schema(value)
    if plain.get("type") == "object" and "properties" in plain:
        plain.setdefault("additionalProperties", False)
    return plain


@cache
def marked_methods(owner: type) -> tuple[str, ...]:
    """Name the tools and actions of a class, in the order they are defined, bases first."""
    names: dict[str, None] = {}
    for base in reversed(owner.__mro__):
        names.update(dict.fromkeys(name for name, member in vars(base).items() if hasattr(member, _MARK)))
    return tuple(name for name in names if hasattr(getattr(owner, name, None), _MARK))


class Bound(typing.NamedTuple):
    """A tool with what it is called on."""

    tool: Tool
    leading: tuple[Any, ...]

    @property
    def is_usable(self) -> bool:
        """Ask the tool's own condition, if it has one, whether it may be used now."""
        if self.tool.when is None:
            return True
        owner, *actor = self.leading
        return bool(getattr(owner, self.tool.when)(*actor))


class Named(Protocol):
    """Anything with a name."""

    name: str


class Plan:
    """Which tools agents of one kind have: name → tool and number of its owner. Made once for all of the kind."""

    def __init__(self, tools: Mapping[str, tuple[Tool, int]]) -> None:
        """Keep the tools; what models are told of them is made once."""
        self.tools = dict(tools)
        self.specs = tuple(_renamed(found.spec, name) for name, (found, _) in self.tools.items())
        self.is_conditional = any(found.when for found, _ in self.tools.values())


def _renamed(spec: ToolSpec, name: str) -> ToolSpec:
    """Tell of a tool under the name it has here."""
    return spec if spec.name == name else ToolSpec(name, spec.description, spec.parameters, spec.is_action)


@lru_cache(maxsize=256)
def _plan(agent: type, worlds: tuple[tuple[type, str], ...], functions: tuple[Callable[..., Any], ...]) -> Plan:
    """Find the tools of an agent class (owner 0), of worlds (owners 1, 2, …) and of functions (after them)."""
    found: dict[str, tuple[Tool, int]] = {}
    for name in marked_methods(agent):
        found[name] = (compile_tool(getattr(agent, name), 1), 0)
    offers = [(kind, label, n, name) for n, (kind, label) in enumerate(worlds, 1) for name in marked_methods(kind)]
    meanings: dict[str, set[Callable[..., Any]]] = {}
    for kind, _, _, name in offers:
        meanings.setdefault(name, set()).add(getattr(kind, name))
    for kind, label, n, name in offers:
        shown = name if len(meanings[name]) == 1 else f"{label}_{name}"
        found.setdefault(shown, (compile_tool(getattr(kind, name), 2), n))
    for n, function in enumerate(functions, len(worlds) + 1):
        target = getattr(function, "__func__", function)
        found[function.__name__] = (compile_tool(target, 0 if target is function else 1), n)
    return Plan(found)


@lru_cache(maxsize=4096)
def _narrowed(plan: Plan, names: tuple[str, ...]) -> Plan:
    """Keep only the tools of these names, in the order of the names."""
    return Plan({name: plan.tools[name] for name in names if name in plan.tools})


class ToolBox(Mapping[str, Bound]):
    """The tools and actions one agent has, by name."""

    __slots__ = ("_leading", "_plan")

    def __init__(self, plan: Plan, leading: tuple[tuple[Any, ...], ...]) -> None:
        """Join a plan with what its tools are called on; see `ToolBox.of` for how they are found."""
        self._plan = plan
        self._leading = leading

    @classmethod
    def of(
        cls,
        agent: object,
        actor: int,
        worlds: Sequence[Named] = (),
        functions: Sequence[Callable[..., Any]] = (),
    ) -> ToolBox:
        """Collect the tools of an agent's own class, of its worlds, and the researcher's own functions.

        A name that two worlds share is prefixed with the world's name (`market_comment`), unless both mean the
        very same function (`do_nothing`).
        """
        plan = _plan(type(agent), tuple((type(world), world.name) for world in worlds), tuple(functions))
        owners = [getattr(function, "__self__", None) for function in functions]
        own = [() if owner is None else (owner,) for owner in owners]
        return cls(plan, ((agent,), *((world, actor) for world in worlds), *own))

    def __getitem__(self, name: str) -> Bound:
        """Give a tool by name."""
        found, owner = self._plan.tools[name]
        return Bound(found, self._leading[owner])

    def __iter__(self) -> Iterator[str]:
        """Go through the names, in order."""
        return iter(self._plan.tools)

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._plan.tools)

    def only(self, names: Iterable[str] | None) -> ToolBox:
        """Give the tools of these names, in their order; None: all."""
        return self if names is None else ToolBox(_narrowed(self._plan, tuple(names)), self._leading)

    @property
    def usable(self) -> ToolBox:
        """The tools whose own condition says that they may be used now."""
        if not self._plan.is_conditional:
            return self
        return self.only(name for name, bound in self.items() if bound.is_usable)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told, in order; a prefixed tool goes by its prefixed name."""
        return self._plan.specs

    def check(self, call: ToolCall) -> ToolCall:
        """Check a call without running it.

        Raises:
            ToolError: If there is no such tool, or its arguments are wrong.
        """
        if call.name not in self._plan.tools:
            raise ToolError(f"there is no tool {call.name[:80]!r}; choose one of: {', '.join(self._plan.tools)}.")
        return ToolCall(call.name, self._plan.tools[call.name][0].arguments(call.arguments), call.call_id)

    def call(self, call: ToolCall) -> Any:
        """Run a call; its arguments are checked first.

        Raises:
            ToolError: If there is no such tool, its arguments are wrong, or the world refuses.
        """
        arguments = self.check(call).arguments
        bound = self[call.name]
        return bound.tool.function(*bound.leading, **arguments)
