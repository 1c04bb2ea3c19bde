"""Statistics over the agents of a run: an inequality, a spread, the mean of a subgroup, the difference between two.

    AgentStatistic("wealth", "gini")
    AgentStatistic("opinion", "mean", {"side": "left"}, against={"side": "right"})
    AgentStatistic("wealth", "median", {"age": {">=": 40, "<": 65}})

Each is one value per run, so that runs are compared by it as by any result. What an agent is when the run begins
decides which subgroup it belongs to: a subgroup chosen by what happened to its members would bring effects about by
itself.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mesa import Model

from mesa_llm.canonical import member_value
from mesa_llm.errors import ConfigError
from mesa_llm.model.measures import gini
from mesa_llm.text import suggestion

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "sum": math.fsum,
    "min": min,
    "max": max,
    "sd": lambda values: float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
    "iqr": lambda values: float(np.subtract(*np.quantile(values, [0.75, 0.25]))),
    "gini": gini,
}
"""Name of a statistic → the statistic; beside them `quantile 0.9`. A standard deviation is that of a sample."""

CLASS = "class"
"""Trait of every agent: the name of its class."""

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, choices: value in choices,
}

_QUANTILE = re.compile(r"quantile (0?\.\d+|0|1)")

_MISSING = object()


@dataclass(frozen=True)
class AgentStatistic:
    """A statistic over the agents of a run, all of them or a subgroup."""

    measure: str
    """What is measured of each agent: an agent reporter of the data collector, or an attribute."""

    statistic: str = "mean"
    """The statistic: one of `STATISTICS`, or `quantile Q`."""

    subgroup: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Trait → value, or comparisons such as `{">=": 40}`, for the agents that count; empty: all with the measure."""

    against: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same for a second subgroup, whose statistic is subtracted; empty: none."""

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            ConfigError: If there is no such statistic, or a comparison is unknown.
        """
        if self.statistic not in STATISTICS and not _QUANTILE.fullmatch(self.statistic):
            hint = suggestion(self.statistic, STATISTICS)
            raise ConfigError(
                f"no statistic over agents is called {self.statistic!r}; there are: {', '.join(STATISTICS)}, and "
                f"quantile Q with Q from 0 to 1{hint}"
            )
        for trait, wanted in [*self.subgroup.items(), *self.against.items()]:
            for name in wanted if isinstance(wanted, Mapping) else ():
                if name not in _COMPARISONS:
                    raise ConfigError(f"{trait}: there is no comparison {name!r}; there are: {', '.join(_COMPARISONS)}")
            if isinstance(wanted, Mapping) and not isinstance(wanted.get("in", []), list | tuple):
                raise ConfigError(f"{trait}: 'in' takes a list of values, not {wanted['in']!r}")

    @property
    def name(self) -> str:
        """Name of its column among the results of a run: `mean of opinion (side=left minus side=right)`."""
        groups = [subgroup_text(group) for group in (self.subgroup, self.against) if group]
        if self.against and not self.subgroup:
            groups = ["all", *groups]
        return f"{self.statistic} of {self.measure}{f' ({" minus ".join(groups)})' if groups else ''}"

    def begin(self, model: Model[Any, Any]) -> Subgroups:
        """Note which agents belong to its subgroups, before the first step.

        Args:
            model: A model that has not run.
        """
        agents = list(model.agents)
        groups = (self.subgroup, self.against) if self.against else (self.subgroup,)
        members = tuple(frozenset(one.unique_id for one in agents if _belongs(model, one, group)) for group in groups)
        return Subgroups(self, groups, members, frozenset(one.unique_id for one in agents))

    def check(self, model: Model[Any, Any]) -> None:
        """Check that a model has what it names.

        Args:
            model: A model that has not run; without agents, nothing can be checked.

        Raises:
            ConfigError: If no agent has the measure, or a trait.
        """
        agents = list(model.agents)
        for name in (self.measure, *self.subgroup, *self.against) if agents else ():
            if all(_value_of(model, one, name) is _MISSING for one in agents):
                known = list(dict.fromkeys(known for one in agents for known in _names_of(model, one)))
                raise ConfigError(
                    f"no agent of {type(model).__name__} has {name!r}; they have: {', '.join(known)}"
                    f"{suggestion(name, known)}"
                )

    def of(self, values: Sequence[float]) -> float | None:
        """Return the statistic of values; None without any.

        Args:
            values: One value per agent.
        """
        if not values:
            return None
        if found := _QUANTILE.fullmatch(self.statistic):
            return float(np.quantile(values, float(found[1])))
        result = float(STATISTICS[self.statistic](values))
        return result if math.isfinite(result) else None


@dataclass(frozen=True)
class Subgroups:
    """Agents over which a statistic is taken in one run, as they were when it began."""

    statistic: AgentStatistic
    """The statistic."""

    groups: tuple[Mapping[str, Any], ...]
    """Conditions of each subgroup."""

    members: tuple[frozenset[int], ...]
    """`unique_id` of the members of each at the start."""

    present: frozenset[int]
    """`unique_id` of all agents at the start; those that enter later belong where they belong at the end."""

    def value(self, model: Model[Any, Any]) -> float | None:
        """Return the statistic at the end of the run; None if a subgroup has nobody with the measure.

        Args:
            model: The same model, after its last step.

        Raises:
            ConfigError: If the measure of an agent is not a number.
        """
        parts = [self.statistic.of(list(self._values(model, index))) for index in range(len(self.groups))]
        first, *others = parts
        if first is None or None in others:
            return None
        return first - sum(part for part in others if part is not None)

    def _values(self, model: Model[Any, Any], index: int) -> Iterator[float]:
        """Yield the measure of each member of a subgroup that has it."""
        for agent in model.agents:
            is_new = agent.unique_id not in self.present
            if agent.unique_id not in self.members[index] and not (
                is_new and _belongs(model, agent, self.groups[index])
            ):
                continue
            value = _value_of(model, agent, self.statistic.measure)
            if value is None or value is _MISSING:
                continue
            if not isinstance(value, int | float | np.integer | np.floating | np.bool_):
                agent_text = f"{type(agent).__name__} {agent.unique_id}"
                raise ConfigError(f"{self.statistic.measure} of {agent_text} is {value!r:.40}; wanted a number")
            if math.isfinite(value):
                yield float(value)


def subgroup_text(conditions: Mapping[str, Any]) -> str:
    """Return the conditions of a subgroup in words: `side=left, age>=40`.

    Args:
        conditions: Trait → value, or comparisons.
    """
    parts: list[str] = []
    for trait, wanted in conditions.items():
        pairs = wanted.items() if isinstance(wanted, Mapping) else [("=", wanted)]
        parts += [f"{trait}{f' {name} ' if name == 'in' else name}{value}" for name, value in pairs]
    return ", ".join(parts)


def _belongs(model: Model[Any, Any], agent: Any, conditions: Mapping[str, Any]) -> bool:
    """Check whether an agent meets all conditions; one that lacks a trait does not."""
    for trait, wanted in conditions.items():
        value = member_value(_value_of(model, agent, trait))
        pairs = wanted.items() if isinstance(wanted, Mapping) else [("=", wanted)]
        for name, other in pairs:
            try:
                if value is _MISSING or value is None or not _COMPARISONS[name](value, other):
                    return False
            except TypeError:  # a text against a number
                return False
    return True


def _value_of(model: Model[Any, Any], agent: Any, name: str) -> Any:
    """Return a measure or trait of an agent: a reporter, an attribute such as `config.style`, a persona's trait."""
    if name == CLASS:
        return type(agent).__name__
    if (reporter := _reporters_of(model, agent).get(name)) is not None:
        try:
            return reporter(agent)
        except AttributeError:  # Mesa's reporters of attributes that agents of this class lack
            return _MISSING
    value: Any = agent
    for part in name.split("."):
        value = value.get(part, _MISSING) if isinstance(value, Mapping) else getattr(value, part, _MISSING)
        if value is _MISSING:
            break
    if value is not _MISSING:
        return value
    config = getattr(agent, "config", None)
    traits: Any = getattr(config, "traits", None)
    if isinstance(traits, Mapping) and name in traits:
        return traits[name]
    return getattr(config, "name", _MISSING) if name == "name" else _MISSING


def _reporters_of(model: Model[Any, Any], agent: Any) -> Mapping[str, Callable[[Any], Any]]:
    """Return the agent reporters of a model's data collector that apply to an agent."""
    collector: Any = getattr(model, "datacollector", None)
    found = dict(getattr(collector, "agent_reporters", {}))
    for kind, reporters in getattr(collector, "agenttype_reporters", {}).items():
        found |= reporters if isinstance(agent, kind) else {}
    return found


def _names_of(model: Model[Any, Any], agent: Any) -> Iterator[str]:
    """Yield what can be named of an agent: reporters, public attributes that hold a number, a text or a truth value."""
    yield from _reporters_of(model, agent)
    yield from (name for name, value in vars(agent).items() if name[0] != "_" and isinstance(value, int | float | str))
    yield from getattr(getattr(agent, "config", None), "traits", None) or ()
    yield CLASS
