"""What every LLM model takes besides its own parameters, and what is written down of it."""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Mapping, Sequence
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
    on_error: OnError


AROUND = frozenset({"log", "replay", "rng", "retry_failures", *EngineOptions.__annotations__})
"""Options that may differ when a run is gone on with."""


def identity(model: Any, arguments: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """Say what has to be equal for a recording to be gone on with.

    Args:
        model: The model.
        arguments: What its constructor was given, defaults included.
        seed: Its seed; None if a scenario brought it.
    """
    kind = type(model)
    parameters = dict(arguments)
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            parameters |= parameters.pop(name, {})
    kept = {name: _as_parameter(value) for name, value in sorted(parameters.items()) if name not in AROUND}
    named = f"{kind.__module__}:{kind.__qualname__}"
    return {"model": named, "parameters": kept, "rng": seed, "run_seed": model.run_seed}


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


def _as_parameter(value: Any) -> Any:
    """Give a parameter as it is written down: a scenario by its fields, a transport by its name."""
    if isinstance(value, Scenario):
        return {name: field for name, field in value.to_dict().items() if name not in ("model", "rng", "_scenario_id")}
    if isinstance(value, LLM):
        return str(getattr(value, "name", type(value).__name__))
    if isinstance(value, Mapping):
        fields: Mapping[Any, Any] = value
        return {str(name): _as_parameter(field) for name, field in fields.items()}
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
