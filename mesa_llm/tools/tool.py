"""Tools that read and actions that write: typed methods, which a language model knows by their docstrings.

A `@tool` reads and may be called while an agent decides. An `@action` writes, is what a decision consists of, and
runs after everyone has decided. pydantic gives schema and validation; nothing a model writes reaches a function
unchecked.
"""

from __future__ import annotations

import inspect
import math
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, cast, overload

import docstring_parser
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, SchemaError

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.prompts import require_no_template
from mesa_llm.records import ToolSpec
from mesa_llm.tools.text import reason_text
from mesa_llm.tools.wording import Sentence, Wording, check_sentence, wording_of

if sys.flags.optimize >= 2:
    raise ConfigError(
        "python -OO (PYTHONOPTIMIZE=2) strips docstrings, and those of tools, actions and answer types are part of the "
        "prompts; run python without -OO, or with -O"
    )

F = TypeVar("F", bound=Callable[..., Any])

MAX_ARGUMENT_CHARACTERS = 20_000
"""Maximum number of characters of the arguments of one call, as JSON."""

MAX_INTEGER = 2**53
"""Largest integer an argument may hold: beyond it JSON, SQLite and floats no longer agree."""

_MARK = "_mesa_llm_tool"


@dataclass(frozen=True, slots=True)
class _Mark:
    is_action: bool
    when: str | None
    shows_more: bool = False
    options: Mapping[str, str] = MappingProxyType({})
    allowed: Mapping[str, str] = MappingProxyType({})
    did: Sentence = ""


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, when: str | None = None, shows_more: bool = False) -> Callable[[F], F]: ...
def tool(function: Any = None, *, when: str | None = None, shows_more: bool = False) -> Any:
    """Mark a method or function as a tool: it reads, and may be called while an agent decides.

    Args:
        function: What to mark; its docstring is what the model reads.
        when: Name of a method of the same object, called with the same acting agent (if any), that says whether
            the tool may be used now.
        shows_more: Whether its results show ids that observations do not, as a search does: once it was called, the
            options of the observation no longer restrict the agent.
    """
    return _mark(function, _Mark(is_action=False, when=when, shows_more=shows_more))


@overload
def action(function: F) -> F: ...
@overload
def action(
    *, when: str | None = None, options: Mapping[str, str] = ..., allowed: Mapping[str, str] = ..., did: Sentence = ""
) -> Callable[[F], F]: ...
def action(
    function: Any = None,
    *,
    when: str | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
    allowed: Mapping[str, str] = MappingProxyType({}),
    did: Sentence = "",
) -> Any:
    """Mark a method or function as an action: it writes, and runs after everyone has decided.

    Args:
        function: What to mark; its docstring is what the model reads.
        when: Name of a method of the same object, called with the same acting agent (if any), that says whether
            the action may be used now.
        options: Argument → name of a list of its world, for worlds that make the options of their observations from
            what their actions declare.
        allowed: Argument → name of a method of its world, called with the acting agent and one of the argument's
            options, that says whether the action would be accepted with it. What would be refused is not offered to
            language models, people and chance; rule twins may try it.
        did: The sentence in which the agent remembers it, with arguments in braces: `"You ordered {cases:case}."` is
            remembered as "You ordered 14 cases.", or 1 case, or no cases (`{people:person|people}` for another plural).
            `{text!r}` is in quotation marks, `{facts[price]}` a fact of the `ActionResult`, and `{result}` what the
            action returned, if that says more than "Done."; or a function of the `Outcome` that returns the sentence.
            If refused, "You wanted to order 14 cases, but …". Empty: what it returned, if that begins with "You ", or
            else a sentence made of the docstring and the arguments.
    """
    return _mark(function, _Mark(is_action=True, when=when, options=options, allowed=allowed, did=did))


def _mark(function: Any, mark: _Mark) -> Any:
    if not (function is None or callable(function)) or not isinstance(cast("Any", mark.when), str | None):
        raise ConfigError('write @action, or @action(when="can_pay") with the name of a method; so for @tool')

    def put(target: Any) -> Any:
        setattr(target, _MARK, mark)
        return target

    return put if function is None else put(function)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with its description for a language model and the check of its arguments."""

    spec: ToolSpec
    """Its description for a language model."""

    function: Callable[..., Any]
    """The function, unbound."""

    check: TypeAdapter[Any] | None
    """Checks arguments by name, or raises pydantic's ValidationError; None: whoever answers checks them."""

    when: str | None
    """Name of the method that says whether it may be used now."""

    shows_more: bool = False
    """Whether its results show ids that observations do not."""

    options: Mapping[str, str] = field(default=MappingProxyType({}), hash=False)
    """Argument → name of the list that holds the values it may take, as `@action(options=…)` declares it."""

    allowed: Mapping[str, str] = field(default=MappingProxyType({}), hash=False)
    """Argument → name of the method that says whether a value would be accepted, as `@action(allowed=…)` declares."""

    is_async: bool = False
    """Whether its result is awaited, as a tool that consults somebody needs."""

    is_outside: bool = False
    """Whether somebody outside the run answers: its function is called with the arguments by name and the number of the
    call in the run, is awaited, and records its answers."""

    takes_arguments: bool = True
    """Whether it has any parameter that the model fills in."""

    did: Sentence = field(default="", hash=False)
    """The sentence in which an agent remembers it, as `@action(did=…)` declares it; empty: a general one."""

    wording: Wording = field(init=False, compare=False)
    """How an agent remembers it."""

    def __post_init__(self) -> None:
        """Find out how it is remembered."""
        object.__setattr__(self, "wording", wording_of(self.spec.name, self.spec.description, self.did))

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments and convert them to their types.

        Raises:
            ToolError: If they are too long, missing, unknown, or of the wrong type or range.
        """
        try:
            is_long = not _are_short(values) and len(canonical_json(values)) > MAX_ARGUMENT_CHARACTERS
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError(reason_text("not_json", tool=self.spec.name, error=error)) from None
        if is_long:
            raise ToolError(reason_text("too_long", maximum=MAX_ARGUMENT_CHARACTERS))
        if self.check is None:
            return dict(values)
        try:
            checked = self.check.validator.validate_python(ArgsKwargs((), dict(values)))
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: {describe(error)}") from None
        for name, value in checked.items():
            if isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise ToolError(reason_text("too_large", tool=self.spec.name, name=name))
        return checked


Bounds = tuple[float | None, float | None]
"""Smallest and largest number; None: no bound."""


def within(specs: tuple[ToolSpec, ...], limits: Mapping[str, Bounds]) -> tuple[ToolSpec, ...]:
    """Return tools whose numbers are bounded further, as their world would refuse others now.

    Args:
        specs: The tools.
        limits: As in `Observation.limits`.
    """
    if not limits:
        return specs
    by_tool: dict[str, dict[str, Bounds]] = {}
    for key, bounds in limits.items():
        name, _, argument = key.partition(".")
        by_tool.setdefault(name, {})[argument] = bounds
    return tuple(_bounded(spec, tuple(by_tool[spec.name].items())) if spec.name in by_tool else spec for spec in specs)


def impossible(specs: Iterable[ToolSpec], limits: Mapping[str, Bounds]) -> set[str]:
    """Return the actions that their world would refuse now whatever their arguments are, as no number is left.

    Args:
        specs: The tools.
        limits: As in `Observation.limits`.
    """
    by_name = {spec.name: spec for spec in specs}
    names: set[str] = set()
    for key, (low, high) in limits.items():
        name, _, argument = key.partition(".")
        spec = by_name.get(name)
        if spec is None or argument not in spec.parameters.get("required", ()):
            continue
        schema = spec.parameters.get("properties", {}).get(argument, {})
        lows = [schema.get("minimum"), schema.get("exclusiveMinimum"), low]
        highs = [schema.get("maximum"), schema.get("exclusiveMaximum"), high]
        least = max((bound for bound in lows if bound is not None), default=-math.inf)
        most = min((bound for bound in highs if bound is not None), default=math.inf)
        if schema.get("type") == "integer" and math.isfinite(least) and math.isfinite(most):
            least, most = math.ceil(least), math.floor(most)
        is_excluded = least in (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum"))
        if least > most or (least == most and is_excluded):
            names.add(name)
    return names


@lru_cache(maxsize=1024)
def _bounded(spec: ToolSpec, limits: tuple[tuple[str, Bounds], ...]) -> ToolSpec:
    """Write bounds into the schema of a tool; looser ones than its own, and those of other types, change nothing."""
    properties: dict[str, Any] = dict(spec.parameters.get("properties", {}))
    for argument, (low, high) in limits:
        schema = properties.get(argument, {})
        if schema.get("type") not in ("integer", "number"):
            continue
        is_whole = schema["type"] == "integer"
        bounds: dict[str, float] = {}
        if low is not None and low > schema.get("minimum", schema.get("exclusiveMinimum", -math.inf)):
            bounds["minimum"] = math.ceil(low) if is_whole else low
        if high is not None and high < schema.get("maximum", schema.get("exclusiveMaximum", math.inf)):
            bounds["maximum"] = math.floor(high) if is_whole else high
        properties[argument] = {**schema, **bounds}
    return ToolSpec(spec.name, spec.description, {**spec.parameters, "properties": properties}, spec.is_action)


def _are_short(values: Mapping[str, Any]) -> bool:
    """Check, without writing them as JSON, that arguments are few, flat and free of long texts."""
    if len(values) > 10:
        return False
    for value in values.values():
        kind = type(value)
        if kind is str:
            if len(value) >= 300:
                return False
        elif kind is int:
            if not -MAX_INTEGER <= value <= MAX_INTEGER:
                return False
        elif kind is not float and kind is not bool and value is not None:
            return False
    return True


def describe(error: ValidationError, root: str = "value") -> str:
    """Describe in one line what is wrong with a value.

    Args:
        error: What pydantic found.
        root: Name of the whole value, for faults of no single part; empty: none is written.
    """
    faults: list[str] = []
    for fault in error.errors(include_url=False, include_context=False)[:5]:
        path = ".".join(str(part) for part in fault["loc"]) or root
        input_text = "" if fault["type"].startswith("missing") else f", got {str(fault['input'])[:80]!r}"
        prefix = f"{path}: " if path else ""
        faults.append(f"{prefix}{fault['msg'][:1].lower()}{fault['msg'][1:]}{input_text}")
    return "; ".join(faults)


@lru_cache(maxsize=4096)  # bounded, as functions of one's own may hold a whole model
def compile_tool(function: Callable[..., Any], leading: int) -> Tool:
    """Build a tool from a function.

    Args:
        function: Unbound function; every parameter the model fills needs a type.
        leading: Number of first parameters that the model does not see (`self`, the acting agent).

    Raises:
        ConfigError: If it is an async action or a generator, or a parameter has no type or one that cannot be found,
            cannot be described as JSON, or is variadic.
    """
    mark = getattr(function, _MARK, _Mark(is_action=False, when=None))
    name = function.__name__
    is_async = inspect.iscoroutinefunction(function)
    if inspect.isasyncgenfunction(function):
        raise ConfigError(f"tool {name!r} is an async generator; return its whole result")
    if is_async and mark.is_action:
        raise ConfigError(
            f"action {name!r} is async; actions run one after another, write def without async (only a @tool, which "
            "runs while an agent decides, may await something; an action may call model.ask)"
        )
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[leading:]
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"a type in tool {name!r} cannot be found at run time: {error}; import it outside of TYPE_CHECKING"
        ) from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"tool {name!r} takes *{parameter.name}; name its arguments one by one")
        if parameter.name not in hints:
            raise ConfigError(f"argument {parameter.name!r} of tool {name!r} has no type; annotate it")

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    collect.__dict__["__signature__"] = signature.replace(parameters=keyword_only, return_annotation=signature.empty)
    collect.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters}
    try:
        kind: Any = collect
        check = TypeAdapter[Any](kind, config=ConfigDict(allow_inf_nan=False))
        schema = check.json_schema()
    except (PydanticUserError, SchemaError, TypeError, ValueError) as error:  # all that pydantic has for a bad type
        reason = str(error).partition(". Set `arbitrary")[0].splitlines()[0]
        raise ConfigError(
            f"tool {name!r} has an argument that JSON cannot describe: {reason}; take a number or a name, and look up "
            "what it stands for"
        ) from error
    check_sentence(mark.did, [parameter.name for parameter in parameters], f"action {name!r}")
    description = _describe_arguments(function, schema)
    spec = ToolSpec(name, description, plain_schema(schema), mark.is_action)
    return Tool(
        spec,
        function,
        check,
        mark.when,
        mark.shows_more,
        mark.options,
        mark.allowed,
        is_async,
        takes_arguments=bool(parameters),
        did=mark.did,
    )


def _describe_arguments(function: Callable[..., Any], schema: dict[str, Any]) -> str:
    """Copy the docstring's text on each argument into the schema; return its text on the tool."""
    text = inspect.getdoc(function) or ""
    require_no_template(text, f"the docstring of {function.__name__}()", "write the finished text")
    parsed = docstring_parser.parse(text)
    for parameter in parsed.params:
        target = schema.get("properties", {}).get(parameter.arg_name)
        if target is not None and parameter.description:
            target.setdefault("description", " ".join(parameter.description.split()))
    text = " ".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return " ".join(text.split()) or function.__name__.replace("_", " ")


def plain_schema(schema: Any) -> Any:
    """Remove the titles from a JSON schema, at every depth: models need not read them."""
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
            properties = typing.cast("dict[str, Any]", value)
            plain[key] = {name: plain_schema(inner) for name, inner in properties.items()}
        else:
            plain[key] = plain_schema(value)
    if plain.get("type") == "object" and "properties" in plain:
        plain.setdefault("additionalProperties", False)
    return plain


@cache
def marked_methods(owner: type) -> tuple[str, ...]:
    """Return the names of a class's tools and actions, in the order they are defined, bases first."""
    names: dict[str, None] = {}
    for base in reversed(owner.__mro__):
        names.update(dict.fromkeys(name for name, member in vars(base).items() if hasattr(member, _MARK)))
    return tuple(name for name in names if hasattr(getattr(owner, name, None), _MARK))


def hidden_methods(owner: type) -> dict[str, tuple[type, type]]:
    """Find tools and actions of base classes that another base class hides.

    What a class itself, or one that inherits the tool, puts in its place is left out: somebody meant it so.

    Returns:
        Name → class of the tool, class that hides it.
    """
    hidden: dict[str, tuple[type, type]] = {}
    for origin in owner.__mro__:
        for name, member in vars(origin).items():
            if not hasattr(member, _MARK):
                continue
            hider = next(kind for kind in owner.__mro__ if name in vars(kind))
            if not hasattr(vars(hider)[name], _MARK) and not issubclass(hider, origin):
                hidden[name] = (origin, hider)
    return hidden
