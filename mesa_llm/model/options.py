"""Options of every LLM model besides its own parameters, and how scenario, keywords and seed are reconciled."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from mesa.experimental.scenarios import Scenario

from mesa_llm.agents.design import AgentDesign
from mesa_llm.config import Reasoning
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.activation import ACTIVATIONS, Activation
from mesa_llm.engine.options import OnError, RunOptions, keyword_parameters
from mesa_llm.errors import ConfigError
from mesa_llm.llm.probabilities import Scoring
from mesa_llm.model.bridge import Bridge
from mesa_llm.runlog.log import RunLog


class RunKeywords(EngineOptions, total=False, extra_items=Any):
    """Options of every run, and the fields of a scenario by keyword, for type checkers; see `RunOptions`."""

    replay: bool
    retry_failures: bool
    ask_again: bool
    light: bool
    labels: str | Path | None
    on_error: OnError
    reasoning: Reasoning | None
    reply_tokens: int | None
    scoring: Scoring | None


class LLMOptions(RunKeywords, total=False, extra_items=Any):
    """Options of every LLM model, and the fields of its scenario by keyword, for type checkers; see `LLMModel`."""

    activation: Activation | str
    design: AgentDesign | None
    bridge: Bridge | None
    log: str | Path | RunLog | None
    memories: Mapping[Any, Mapping[str, Any]] | None
    allowances: Mapping[Any, Any] | None


OWN_OPTIONS = tuple(name for name in RunOptions.model_fields if name not in EngineOptions.__annotations__)
"""Names of the run options that a model keeps to itself; its engine gets the others."""

OPTIONS = frozenset({"scenario", "llm", "worlds", "rng", *LLMOptions.__annotations__})
"""Names of the options of all models, which parameters of scenarios must not take."""


def resolve_parameters(
    kind: type[Any],
    scenario: Scenario[Any] | None,
    by_keyword: Mapping[str, Any],
    rng: int | str | None,
    runlog: RunLog,
) -> tuple[Scenario[Any], int | None]:
    """Return one scenario and one seed from a scenario and keyword arguments.

    Args:
        kind: The model's class.
        scenario: The scenario, if there is one; if it has no seed, a copy with the seed is returned.
        by_keyword: Keyword arguments of the model's constructor.
        rng: The seed by keyword.
        runlog: The run log, whose seed counts if none is given.

    Returns:
        The scenario, and the seed; None for a scenario with a generator in place of a seed.

    Raises:
        ConfigError: If the scenario is none, or lacks fields of the model's; or a parameter is given both ways with
            different values, is unknown, of another type, or out of its range.
    """
    if scenario is None:
        seed = seed_for(rng, runlog)
        fields = {name: value for name, value in by_keyword.items() if name in kind.scenario_class.fields}
        return kind.scenario_class(rng=seed, **fields), seed
    if not isinstance(cast("Any", scenario), Scenario):
        raise ConfigError(
            f"{kind.__name__}: wanted a scenario ({kind.scenario_class.__name__}), got {scenario!r:.60}; give "
            "parameters by name, those in a dictionary as **parameters"
        )
    own = fields_of(scenario)
    if lacking := sorted(set(kind.scenario_class.fields) - set(own)):
        raise ConfigError(
            f"{kind.__name__}: wanted a scenario ({kind.scenario_class.__name__}), got a {type(scenario).__name__}, "
            f"which has no {', '.join(lacking)}"
        )
    seed = None if rng in (None, "") else seed_for(rng, runlog)
    conflicts = {name: value for name, value in by_keyword.items() if name in own and name != "rng"}
    conflicts |= {"rng": seed} if seed is not None and own["rng"] is not None else {}
    for name, value in conflicts.items():
        if value != own[name]:
            raise ConfigError(f"{name} is {value!r} by keyword and {own[name]!r} in the scenario; give it once")
    if isinstance(own["rng"], int | float):
        checked_seed(own["rng"])
    if own["rng"] is not None:
        return scenario, own["rng"] if isinstance(own["rng"], int) else None
    seed = seed_for(rng, runlog)
    return type(scenario)(**(own | {"rng": seed})), seed


def require_passed_on(kind: type[Any], called: inspect.BoundArguments, passed: Mapping[str, Any]) -> None:
    """Check that what a model was created with has reached `LLMModel`, through the `__init__` of each class between.

    An `__init__` that names an option among its own parameters may pass on another value than its default in its place.

    Args:
        kind: The model's class.
        called: Arguments that it was created with.
        passed: What `LLMModel.__init__` has got: options with their defaults, scenario, and fields of the scenario.

    Raises:
        ConfigError: If an option, the scenario or one of its fields was lost or replaced on the way.
    """
    own, scenario = _own_options(kind), passed["scenario"]
    lost: dict[str, str] = {}
    for name, value in given_by_name(called).items():
        if isinstance(value, Scenario) and scenario is None:
            lost[name] = "the scenario became the default one"
        elif name in kind.option_defaults:
            got, default = passed[name], kind.option_defaults[name]
            is_own = name in own and not any(_are_equal(got, one) for one in (default, own[name]))
            if not (is_own or _are_equal(got, value)):
                lost[name] = f"{name}={value!r:.60} became {got!r:.60}"
        elif name in kind.scenario_class.fields and name not in passed and scenario is not None:
            got = getattr(scenario, name, None)
            if name not in called.arguments and not _are_equal(got, value):
                lost[name] = f"{name}={value!r:.60} became {got!r:.60}"
    if lost:
        raise ConfigError(
            f"{kind.__name__} did not pass {', '.join(lost)} on to super().__init__ ({'; '.join(lost.values())}); "
            "write def __init__(self, scenario=None, **options) and super().__init__(scenario, **options); to replace "
            "an option on purpose, name it as a parameter of that __init__: llm=None, **options"
        )


def given_by_name(called: inspect.BoundArguments) -> dict[str, Any]:
    """Return the arguments that a model was created with, those that its `**options` caught among them."""
    given: dict[str, Any] = {}
    for name, value in called.arguments.items():
        kind = called.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            given["scenario"] = next((one for one in value if isinstance(one, Scenario)), None)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            caught: Mapping[str, Any] = value
            given |= caught
        else:
            given[name] = value
    return given


def _own_options(kind: type[Any]) -> dict[str, Any]:
    """Return the options that a model's own classes name as parameters of their `__init__`, with their defaults."""
    own = takewhile(lambda cls: not cls.__module__.startswith("mesa_llm.model."), kind.__mro__)
    signatures = [_without_self(vars(cls)["__init__"]) for cls in own if "__init__" in vars(cls)]
    return {
        name: parameter.default
        for signature in reversed(signatures)
        for name, parameter in signature.parameters.items()
        if name in OPTIONS
    }


def with_run_options(init: Callable[..., None]) -> inspect.Signature:
    """Return the signature of `LLMModel.__init__`, whose `**options` catch those of `RunOptions`, with their names.

    Args:
        init: The method.
    """
    *own, others = inspect.signature(init).parameters.values()
    runs = [parameter for parameter in keyword_parameters(RunOptions) if parameter.name in OWN_OPTIONS]
    return inspect.Signature([*own, *runs, others])


def _are_equal(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays
        return False


def fields_of(scenario: Scenario[Any]) -> dict[str, Any]:
    """Return the parameters of a scenario, with its seed."""
    return {name: field for name, field in scenario.to_dict().items() if name not in ("model", "_scenario_id")}


def constructor(kind: type[Any]) -> inspect.Signature:
    """Return the signature of a model's constructor, without `self`.

    `inspect.signature` of the class itself would be that of `LLMModel.__new__`, which takes anything.
    """
    return _without_self(kind.__init__)


@lru_cache(maxsize=256)
def _without_self(function: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a method without `self`; a model that is set up asks for those of several."""
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def seed_for(rng: int | str | None, runlog: RunLog) -> int:
    """Find the seed: the one given, that of the recording, or a new one.

    Raises:
        ConfigError: If it is no whole number from 0 on.
    """
    if rng is None or rng == "":
        recorded = runlog.manifest.get("rng")
        return recorded if isinstance(recorded, int) else secrets.randbits(31)
    return checked_seed(rng)


def checked_seed(rng: Any) -> int:
    """Return a seed as an integer, converting one that a person typed as text.

    Raises:
        ConfigError: If it is not a whole number from 0 on, as numpy requires.
    """
    try:
        seed = int(rng)
    except (TypeError, ValueError, OverflowError):
        seed = -1
    if seed < 0 or isinstance(rng, bool) or (isinstance(rng, float) and not rng.is_integer()):
        raise ConfigError(f"rng is the seed, a whole number from 0 on, got {rng!r}; leave it out for a new one")
    return seed


def activation_for(activation: Activation | str) -> Activation:
    """Return an activation, looking up names.

    Raises:
        ConfigError: If no activation has that name.
    """
    if not isinstance(activation, str):
        return activation
    if activation not in ACTIVATIONS:
        raise ConfigError(f"no activation is called {activation!r}; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[activation]
