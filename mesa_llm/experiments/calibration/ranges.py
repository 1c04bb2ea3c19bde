"""Ranges of parameters, from which designs of experiments draw: calibrations and sensitivity analyses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mesa_llm.agents.design import AgentDesign
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import parameters_of
from mesa_llm.statistics import FloatArray
from mesa_llm.text import suggestion

type Ends = tuple[float, float]
"""Lowest and highest value of a parameter."""


@dataclass(frozen=True)
class ParameterRange:
    """Range of a numeric parameter, over which its values are uniform."""

    name: str
    """Name of the parameter."""

    low: float
    """Lowest value."""

    high: float
    """Highest value."""

    is_whole: bool
    """Whether its values are whole numbers."""

    default: float | None
    """Its default, if it is a number."""

    def values(self, units: FloatArray) -> FloatArray:
        """Convert numbers between 0 and 1 to values, of any shape; whole numbers are equally frequent."""
        if self.is_whole:
            return np.minimum(self.low + np.floor(units * (self.high - self.low + 1)), self.high)
        return self.low + units * (self.high - self.low)

    def units(self, values: FloatArray) -> FloatArray:
        """Convert values to numbers between 0 and 1, of any shape."""
        if self.is_whole:
            return (values - self.low + 0.5) / (self.high - self.low + 1)
        return (values - self.low) / (self.high - self.low)


def ranges_of(model: type[LLMModel], ends: Mapping[str, Ends]) -> tuple[ParameterRange, ...]:
    """Check ranges of parameters.

    Args:
        model: The model's class.
        ends: Parameter → lowest and highest value.

    Raises:
        ConfigError: If there is none, a parameter is unknown or not a number, or a range is upside down or leaves what
            the parameter allows.
    """
    by_name = {parameter.name: parameter for parameter in parameters_of(model)}
    if not ends:
        raise ConfigError(f"no parameter has a range; give at least one, such as 0:1, for one of {', '.join(by_name)}")
    ranges: list[ParameterRange] = []
    for name, (low, high) in ends.items():
        if name not in by_name:
            hint = suggestion(name, by_name)
            raise ConfigError(f"{model.__name__} has no parameter {name!r}; it has {', '.join(by_name)}{hint}")
        parameter = by_name[name]
        kind = parameter.schema.get("type")
        if kind not in ("integer", "number"):
            raise ConfigError(f"{name} is not a number, so it has no range; vary it by `mesa-llm sweep` instead")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigError(f"{name}={low:g}:{high:g}: a range goes from a lower to a higher value, such as 0:1")
        for end in (low, high):
            parameter.check(int(end) if kind == "integer" and float(end).is_integer() else end)
        default = parameter.default if isinstance(parameter.default, int | float) else None
        ranges.append(ParameterRange(name, float(low), float(high), kind == "integer", default))
    return tuple(ranges)


def settings_of(ranges: Sequence[ParameterRange], units: FloatArray) -> list[dict[str, Any]]:
    """Convert points between 0 and 1 to parameters.

    Args:
        ranges: Ranges of the parameters.
        units: The points, shape `(points, parameters)`.
    """
    columns = [each.values(units[:, index]).tolist() for index, each in enumerate(ranges)]
    converted = [map(int, column) if each.is_whole else column for each, column in zip(ranges, columns, strict=True)]
    names = [each.name for each in ranges]
    return [dict(zip(names, row, strict=True)) for row in zip(*converted, strict=True)]


def how_of_points(
    llm: str, design: AgentDesign | None, fixed: Mapping[str, Any] | None, on_run: Callable[[Mapping[str, Any]], object]
) -> dict[str, Any]:
    """Return the keyword arguments of the sweeps of points, whose runs by rule keep no log.

    Args:
        llm: Language model of the agents.
        design: Design of the agents; None: the model's own.
        fixed: Parameters that are the same in all runs.
        on_run: Called with the row of each new run as it ends.
    """
    designs = None if design is None else {"design": design}
    return {"llm": llm, "designs": designs, "fixed": fixed, "on_run": on_run, "logs": False}
