"""Parameters of a model, each declared once: its type, range, default, meaning and control on the page."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast, dataclass_transform

import numpy as np
from mesa.experimental.scenarios import Scenario
from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import SchemaError

from mesa_llm.canonical import member_value
from mesa_llm.errors import ConfigError
from mesa_llm.model.options import OPTIONS, checked_seed
from mesa_llm.tools.tool import describe

_CONFIG = ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True)

_PLAIN = frozenset({"integer", "number", "string"})
"""JSON types that are edited in a text field on the page."""


@dataclass(frozen=True)
class Slider:
    """A slider on the page; stands in the `Annotated` of a number."""

    minimum: float
    """Smallest value on the slider."""

    maximum: float
    """Largest value on the slider."""

    step: float | None = None
    """Distance between values; None: 1 for whole numbers, else a hundredth of the range. Where the default would lie
    between two values, it is divided, so that no page moves the default."""

    label: str = ""
    """Label on the page; empty: made of the name."""


@dataclass(frozen=True)
class Label:
    """The label of a parameter on the page; stands in its `Annotated`."""

    text: str
    """The label."""


@dataclass(frozen=True)
class Hidden:
    """Keeps a parameter off the page; stands in its `Annotated`."""


@dataclass(frozen=True, init=False)
class Structure:
    """Marks a parameter as a part of a model's structure that audits vary; stands in the `Annotated`.

    Such are the size of a space, the form of a network or who is its hub: what a claim about people should not hang on.
    """

    values: tuple[Any, ...]
    """Values that an audit tries, besides the one that the model runs with."""

    dimension: str
    """Dimension of the audit that it belongs to."""

    def __init__(self, *values: Any, dimension: str = "environment structure") -> None:
        """Store the values."""
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "dimension", dimension)


@dataclass(frozen=True)
class Output:
    """Marks the name of a file that the model writes beside its run log; stands in the `Annotated` of a text.

    The name does not belong to a run's identity: a run may be continued or replayed with another file, or none.
    """


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model."""

    name: str
    """Its name as a keyword argument, a field of the scenario, and in `--set`."""

    kind: Any
    """Its type, with annotations."""

    default: Any
    """Its default; `inspect.Parameter.empty` if there is none."""

    meaning: str = ""
    """Its meaning: the text under the field."""

    @property
    def is_optional(self) -> bool:
        """Whether it may be None."""
        return type(None) in typing.get_args(_bare(self.kind))

    @property
    def is_output(self) -> bool:
        """Whether it names a file that the model writes."""
        return any(isinstance(mark, Output) for mark in self._marks)

    @property
    def structure(self) -> Structure | None:
        """Its mark as a part of the structure; None without one."""
        return next((mark for mark in self._marks if isinstance(mark, Structure)), None)

    @property
    def _marks(self) -> tuple[Any, ...]:
        return typing.get_args(self.kind)[1:] if typing.get_origin(self.kind) is typing.Annotated else ()

    def check(self, value: Any) -> Any:
        """Convert a value to the parameter's type.

        Args:
            value: The value; an empty text stands for None where the type allows None but no text.

        Raises:
            ConfigError: If it has another type, or lies outside the range.
        """
        if isinstance(value, np.generic):  # what numpy's ranges hold
            value = value.item()
        try:
            checked = _adapter(self.kind).validate_python(value)
        except ValidationError as error:
            if value == "" and self.is_optional:
                return None
            raise ConfigError(f"{self.name}: {describe(error, root='')}") from None
        if isinstance(value, bool) and not isinstance(checked, bool):  # pydantic takes True for the number 1
            raise ConfigError(f"{self.name}: input should be a number, got {value}")
        return checked

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its values other than None; empty if JSON cannot hold them."""
        try:
            schema = _adapter(self.kind).json_schema()
        except (PydanticInvalidForJsonSchema, PydanticUserError):
            return {}
        return _without_null(schema)

    @property
    def range(self) -> str:
        """Its range or choices, as text; empty: any value of its type."""
        schema = self.schema
        if values := _choices(schema):
            return " | ".join([*map(str, values), *(["None"] if self.is_optional else [])])
        minimum, above = schema.get("minimum"), schema.get("exclusiveMinimum")
        maximum, below = schema.get("maximum"), schema.get("exclusiveMaximum")
        low = f"≥ {minimum}" if minimum is not None else f"> {above}" if above is not None else ""
        high = f"≤ {maximum}" if maximum is not None else f"< {below}" if below is not None else ""
        return ", ".join(filter(None, (low, high)))

    @property
    def control(self) -> dict[str, Any] | None:
        """Its control on the page, as in Mesa's `model_params`; None: it has none."""
        marks = self._marks
        if any(isinstance(mark, Hidden) for mark in marks) or self.default is inspect.Parameter.empty:
            return None
        slider = next((mark for mark in marks if isinstance(mark, Slider)), None)
        label_text = next((mark.text for mark in marks if isinstance(mark, Label)), "")
        label = label_text or (slider.label if slider else "") or _label_of(self.name)
        schema = self.schema
        if values := _choices(schema):
            choices = [None, *values] if self.is_optional else values
            return {"type": "Select", "label": label, "value": member_value(self.default), "values": choices}
        kind = schema.get("type")
        if kind == "boolean":
            return {"type": "Checkbox", "label": label, "value": self.default}
        if slider is not None and kind in ("integer", "number") and self.default is not None:
            is_whole = kind == "integer"
            minimum, maximum = min(slider.minimum, self.default), max(slider.maximum, self.default)
            step = slider.step or (1 if is_whole else (maximum - minimum) / 100)
            ends = {
                "min": minimum,
                "max": maximum,
                "step": slider_step(step, self.default - minimum, is_whole=is_whole),
            }
            return {"type": "SliderInt" if is_whole else "SliderFloat", "label": label, "value": self.default, **ends}
        if kind in _PLAIN:
            return {"type": "InputText", "label": label, "value": "" if self.default is None else str(self.default)}
        return None


def slider_step(step: float, distance: float, *, is_whole: bool) -> float:
    """Return the step of a slider on which a value lies: a slider moves any other value to its nearest mark.

    Args:
        step: The step that is wanted; smaller ones are tried after it.
        distance: Distance of the value from the slider's minimum.
        is_whole: Whether the slider has whole numbers only.

    Returns:
        The step; 0 if the value lies on no mark of any, as a third does: a slider without marks.
    """
    if is_whole:
        return step if _is_multiple(distance, step) else math.gcd(int(step), int(distance))
    parts = (step / n for n in (1, 2, 3, 5, 6, 10, 50, 100))
    decimals = (10.0**exponent for exponent in range(math.floor(math.log10(step)), -7, -1))
    return next((one for one in (*parts, *decimals) if _is_multiple(distance, one)), 0.0)


def _is_multiple(distance: float, step: float) -> bool:
    return math.isclose(distance / step, round(distance / step), abs_tol=1e-6)


if TYPE_CHECKING:
    _MesaScenario = Scenario[Any]
else:
    _MesaScenario = Scenario  # which takes no type in Mesa 4


@dataclass_transform(kw_only_default=True)
class _Declared(_MesaScenario):
    """Lets editors see the fields of a subclass as arguments."""


class LLMScenario(_Declared):
    """Parameters of a model, as annotated fields with defaults; the docstring under a field is its meaning.

        class PotScenario(LLMScenario):
            n_agents: Annotated[int, Field(ge=1), Slider(1, 50)] = 8
            \"\"\"Number of agents.\"\"\"

    This is Mesa's scenario with fields that pydantic checks. A model names it as its `scenario_class`; each field is
    then a keyword argument of the model, too.
    """

    fields = cast("tuple[str, ...]", ())  # without an annotation, which Mesa would take for a parameter's
    """Names of the parameters, in the order they are declared."""

    if TYPE_CHECKING:
        rng: Any = None

    def __init_subclass__(cls) -> None:
        """Collect the fields.

        Raises:
            TypeError: If one has no default (every model can be made without arguments), the name of an option of all
                models (its value would never reach the scenario), or the name of an attribute of all scenarios.
        """
        super().__init_subclass__()
        names: dict[str, None] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, LLMScenario) and base is not LLMScenario:
                names |= {name: None for name, hint in _annotations(base).items() if not _is_own(name, hint)}
        if without_default := [name for name in names if not hasattr(cls, name)]:
            raise TypeError(
                f"{cls.__name__}.{without_default[0]} needs a default, as models are made without arguments, too"
            )
        if taken := sorted(OPTIONS & set(names)):
            raise TypeError(f"{cls.__name__}.{taken[0]}: every LLMModel has an option {taken[0]}=; rename the field")
        if taken := [name for name in names if hasattr(LLMScenario, name)]:
            raise TypeError(f"{cls.__name__}.{taken[0]}: every scenario has {taken[0]} of its own; rename the field")
        cls.fields = tuple(names)

    def __init__(self, *, rng: Any = None, **values: Any) -> None:
        """Check the parameters.

        Args:
            rng: Seed; None: the model draws one.
            **values: Parameters by name; the others keep their defaults.

        Raises:
            ConfigError: If one is unknown, of another type, or out of its range; or `rng` is no seed.
        """
        if isinstance(rng, int | float | str):
            rng = None if rng == "" else checked_seed(rng)  # a seed typed on a page is a text
        own = {name: values.pop(name) for name in ("_scenario_id",) if name in values}
        by_name = {parameter.name: parameter for parameter in self.parameters()}
        if by_name or type(self) is not LLMScenario:
            if unknown := sorted(set(values) - set(by_name)):
                raise ConfigError(
                    f"{type(self).__name__} has no {unknown[0]!r}; it has: {', '.join(by_name) or 'nothing'}"
                )
            values = {name: by_name[name].check(value) for name, value in values.items()}
        super().__init__(rng=rng, **values, **own)
        self.check()

    def __repr__(self) -> str:
        """Return its class, its parameters, and the seed."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*self.fields, "rng"))
        return f"{type(self).__name__}({fields})"

    def check(self) -> None:
        """Override to check parameters against each other, and raise `ConfigError`."""

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters, in the order they are declared."""
        return _parameters(cls)


@cache
def _parameters(kind: type[LLMScenario]) -> tuple[Parameter, ...]:
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise ConfigError(f"{kind.__name__}: a type of a field cannot be found at run time: {error}") from error
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, LLMScenario) and base is not LLMScenario:
            meanings |= _meanings(base)
    return tuple(Parameter(name, hints[name], getattr(kind, name), meanings.get(name, "")) for name in kind.fields)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(kind, config=_CONFIG)
    except PydanticUserError:  # a model or dataclass brings its own config
        return TypeAdapter(kind)
    except (PydanticSchemaGenerationError, SchemaError, TypeError) as error:
        raise ConfigError(f"a parameter of type {kind!r} cannot be checked: {error}") from error


def _annotations(kind: type[Any]) -> Mapping[str, Any]:
    return inspect.get_annotations(kind)


def _is_own(name: str, hint: Any) -> bool:
    """Check whether an annotated name belongs to the class itself and is no parameter."""
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", repr(hint))
    return name.startswith("_") or "ClassVar" in text


def _meanings(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings under the fields of a class, by field; empty if its source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return {}
    meanings: dict[str, str] = {}
    body = cast("ast.ClassDef", tree.body[0]).body
    for field, text in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            meanings[field.target.id] = " ".join(text.value.value.split())
    return meanings


def _bare(kind: Any) -> Any:
    """Return a type without its annotations."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) != 1:
        return schema
    inner = options[0]
    name = str(inner.get("$ref", "")).rpartition("/")[2]
    return schema.get("$defs", {}).get(name, inner)


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists."""
    return list(schema["enum"]) if "enum" in schema else [schema["const"]] if "const" in schema else []


def _label_of(name: str) -> str:
    """Return the label of a name: `n_agents` as `Number of agents`."""
    name = f"number of {name[2:]}" if name.startswith("n_") else name
    return name[:1].upper() + name[1:].replace("_", " ")


# -- what a model takes


def parameters_of(kind: type[Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a model class: those of its scenario, and those that its constructor adds.

    Args:
        kind: The class, an `LLMModel`.

    Raises:
        ConfigError: If it is a plain Mesa model.
    """
    if not issubclass(getattr(kind, "scenario_class", object), LLMScenario):
        raise ConfigError(
            f"{kind.__name__} is a plain Mesa model, which declares no parameters: vary them by Mesa's batch_run, and "
            "write its controls by hand (model_params), or make it an LLMModel"
        )
    return (*kind.scenario_class.parameters(), *_of_constructor(kind))


def controls(kind: type[Any]) -> dict[str, Any]:
    """Return the controls of a model class's parameters, as Mesa's `model_params`.

    Args:
        kind: The class, an `LLMModel`.
    """
    by_name = {parameter.name: parameter.control for parameter in parameters_of(kind)}
    return {name: control for name, control in by_name.items() if control is not None}


def signature_of(kind: type[Any]) -> inspect.Signature:
    """Return the signature of a model class: a scenario, its fields by keyword, and the options of all models.

    Args:
        kind: The class, an `LLMModel`.
    """
    own = [*inspect.signature(kind.__init__).parameters.values()][1:]
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in own):
        return inspect.Signature(own)
    own_parameters = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    names = {parameter.name for parameter in own_parameters}
    scenario = kind.scenario_class
    hints = {name: hint for base in reversed(scenario.__mro__) for name, hint in _annotations(base).items()}
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(scenario, name), annotation=hints[name])
        for name in scenario.fields
        if name not in names
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in kind.option_defaults.items()
        if name not in names and name not in scenario.fields
    ]
    return inspect.Signature([*own_parameters, *fields, *shared])


def _of_constructor(kind: type[Any]) -> Iterator[Parameter]:
    """Find the parameters that a constructor adds, as in models without a scenario."""
    hints: dict[str, Any] | None = None
    for name, parameter in [*inspect.signature(kind.__init__).parameters.items()][1:]:
        is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if is_variable or name == "scenario" or name in kind.option_defaults or name in kind.scenario_class.fields:
            continue
        hints = typing.get_type_hints(kind.__init__, include_extras=True) if hints is None else hints
        yield Parameter(name, hints.get(name, Any), parameter.default)
