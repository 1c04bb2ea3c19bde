"""What every LLM model takes besides its own parameters, and what is written down of it."""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

from mesa.experimental.scenarios import Scenario

from mesa_llm.activation import ACTIVATIONS, Activation
from mesa_llm.agent import AgentDesign
from mesa_llm.bridge import Bridge
from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.llm.base import LLM
from mesa_llm.runlog import RunLog
from mesa_llm.transports import EngineOptions
from mesa_llm.world import World

N = TypeVar("N", bound=float)
T = TypeVar("T")

OnError = Literal["skip", "rule", "raise"]
"""What becomes of an agent whose decision failed: it does nothing, its rule twin decides, or the step ends in error."""


class ModelOptions(EngineOptions, total=False):
    """What every LLM model takes besides its own parameters; see `LLMModel`."""

    worlds: Sequence[World]
    activation: Activation | str
    design: AgentDesign | None
    bridge: Bridge | None
    log: str | Path | None
    replay: bool
    retry_failures: bool
    ask_again: bool
    on_error: OnError


AROUND = frozenset({"log", "replay", "rng", "retry_failures", "ask_again", *EngineOptions.__annotations__})
"""Options that may differ when a run is gone on with."""


def identity(model: Any, given: inspect.BoundArguments, seed: int | None) -> dict[str, Any]:
    """Say what has to be equal for a recording to be gone on with.

    Args:
        model: The model.
        given: What its constructor was given.
        seed: Its seed; None if a scenario brought it.
    """
    kind = type(model)
    given.apply_defaults()
    parameters = dict(given.arguments)
    for name, parameter in given.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            parameters |= parameters.pop(name, {})
        elif parameter.kind is parameter.VAR_POSITIONAL and not parameters[name]:
            del parameters[name]
    kept = {name: _as_parameter(value) for name, value in sorted(parameters.items()) if name not in AROUND}
    return {"model": name_of(kind), "parameters": kept, "rng": seed, "run_seed": model.run_seed}


def constructor(kind: type[Any]) -> inspect.Signature:
    """Give what the constructor of a model takes, without `self`.

    The signature of a class that adds none of its own is that of `LLMModel.__new__`, which takes anything.
    """
    signature = inspect.signature(kind.__init__)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def seed_for(rng: int | str | None, runlog: RunLog) -> int:
    """Find the seed: the one given, that of the recording, or a new one.

    Raises:
        ConfigError: If it is no whole number.
    """
    if rng is None or rng == "":
        recorded = runlog.manifest.get("rng")
        return recorded if isinstance(recorded, int) else secrets.randbits(31)
    try:
        return int(rng)
    except (TypeError, ValueError):
        raise ConfigError(f"rng is a whole number (the seed), got {rng!r}") from None


def activation_for(activation: Activation | str) -> Activation:
    if not isinstance(activation, str):
        return activation
    if activation not in ACTIVATIONS:
        raise ConfigError(f"no activation is called {activation!r}; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[activation]


def name_of(kind: type[Any]) -> str:
    """Name a class so that it can be found again: `module:qualname`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_named(name: str, parent: type[T]) -> type[T]:
    """Find a class by its `module:qualname`, and check what it is before anybody calls it.

    Args:
        name: The name.
        parent: What it has to be a subclass of.

    Raises:
        ConfigError: If there is none, or it is something else.
    """
    module, _, qualname = name.partition(":")
    try:
        found = attrgetter(qualname)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name} cannot be found: {error}") from error
    if not (isinstance(found, type) and issubclass(found, parent)):
        raise ConfigError(f"{name} is no {parent.__name__}")
    return found


def as_given(value: Any) -> Any:
    """Give a parameter back from how it was written down: a scenario is built again.

    Raises:
        ConfigError: If it had no seed, or its class cannot be found or is no scenario.
    """
    if not (isinstance(value, dict) and set(value) == {"scenario", "fields"}):
        return value
    fields: dict[str, Any] = value["fields"]
    if not isinstance(fields.get("rng"), (int, list)):
        raise ConfigError("the scenario of this run had no seed, so that it is not run again; give scenarios a rng=")
    return class_named(str(value["scenario"]), Scenario)(**fields)


def _as_parameter(value: Any) -> Any:
    """Give a parameter as it is written down: a scenario as its class and fields, a transport by its name."""
    if isinstance(value, Scenario):
        fields = {name: field for name, field in value.to_dict().items() if name not in ("model", "_scenario_id")}
        return {"scenario": name_of(type(value)), "fields": fields}
    for name, activation in ACTIVATIONS.items():
        if value is activation:
            return name
    if isinstance(value, LLM):
        return str(getattr(value, "name", type(value).__name__))
    if isinstance(value, Mapping):
        items: Mapping[Any, Any] = value
        return {str(name): _as_parameter(item) for name, item in items.items()}
    return str(value) if isinstance(value, Path) else value


def shown(options: Mapping[str, Any]) -> dict[str, str]:
    """Give the options as they may be written down: without the key."""
    return {name: canonical_json(value) for name, value in options.items() if name != "api_key"}


def within(name: str, value: N, low: float, high: float = math.inf) -> N:
    """Give back a parameter that lies in its range; what is infinite or no number lies in none.

    Args:
        name: What the parameter is called.
        value: What was given.
        low: Smallest value possible.
        high: Largest value possible.

    Raises:
        ConfigError: If it lies outside; says what is possible.
    """
    if not (low <= value <= high and math.isfinite(value)):
        possible = f"must be {low} or more" if high == math.inf else f"must lie in {low}..{high}"
        raise ConfigError(f"{name} {possible}, got {value!r}")
    return value
