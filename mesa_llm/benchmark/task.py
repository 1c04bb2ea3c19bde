"""A task of a benchmark: a model in a published setting, what of its runs is scored, and what that is compared with."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, Literal, get_type_hints

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.registry import find_models

Level = Literal[1, 2, 3]
"""How agents meet: one alone (1), several who read the same news (2), several who talk to each other (3)."""

Values = Mapping[str, float]
"""Name of a score → its value."""

Error = Callable[[Values, Values], float]
"""Computes how far scores, averaged over runs, lie from published ones; NaN where they share none."""

SHACHI: Mapping[str, Level] = {
    "psychobench": 1,
    "compost": 1,
    "cognitive_biases": 1,
    "emotionbench": 1,
    "emergent_analogies": 1,
    "econ_agent": 2,
    "stock_agent": 2,
    "auction_arena": 2,
    "sotopia": 3,
    "oasis": 3,
}
"""The ten tasks of Shachi (2025), Table 4, by the names of the models here, with their levels."""


def mean_absolute_error(found: Values, target: Values) -> float:
    """Compute the mean absolute difference over the scores that both have; NaN if there are none.

    Source:
        Shachi (2025), Table 1.
    """
    apart = [abs(value - target[name]) for name, value in found.items() if name in target]
    return math.fsum(apart) / len(apart) if apart else math.nan


@dataclass(frozen=True)
class Reference:
    """Published values of scores."""

    values: Values
    """The values, by the names of the scores."""

    respondent: str
    """Whose they are: a language model, or people."""

    source: str
    """Where they stand."""


@dataclass(frozen=True)
class PublishedError:
    """The error that a study reports for its own runs."""

    agent: float
    """Error of its agent."""

    baseline: float
    """Error of its baseline."""

    setting: str
    """Language model, baseline, and what they were compared with."""

    source: str = "Shachi (2025), Table 1"
    """Where both stand."""


@dataclass(frozen=True)
class Task:
    """A task of a benchmark.

        TASK = Task("berries", BerryModel, lambda model: {"gini": model.results()["gini"]}, 10, 1, "Our own.")

    In the module `task` of a model's package, `TASK` is found by its name, as the model is; any other is named as
    `module:NAME`.

    Raises:
        ConfigError: If the level or the number of steps cannot be.
    """

    name: str
    """What it is called; one word."""

    make: Callable[..., LLMModel]
    """Makes the model of one run: the model's class, or a function that returns one and says so by its annotation. It
    takes fields of the scenario and options of all models by keyword."""

    score: Callable[[Any], Mapping[str, float | None]]
    """Scores a run that is over: name → value; None or NaN where there is none."""

    max_steps: int
    """Maximum number of steps of a run; it may end earlier by itself."""

    level: Level
    """How agents meet."""

    source: str
    """The study that it comes from."""

    setting: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the published protocol."""

    quick: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of a small run, to try it out; they go before `setting`."""

    quick_steps: int = 0
    """Maximum number of steps of a small run; 0: as many."""

    original: Mapping[str, Any] | None = None
    """Parameters that take the published items in place of ours; None: there are none to choose."""

    target: Reference | None = None
    """What runs are compared with; None: nothing is published that they could be."""

    target_note: str = ""
    """Why there is no target, or how it differs from the study's own."""

    is_comparable: Callable[[Any], bool] = lambda model: True
    """Whether a run may be compared with the target, as with published items alone."""

    people: Reference | None = None
    """What people score; None: not published."""

    error: Error = mean_absolute_error
    """How far runs lie from the target."""

    unit: str = ""
    """Unit of the error."""

    published: PublishedError | None = None
    """The error that a study reports."""

    def __post_init__(self) -> None:
        """Check what would otherwise fail after everything has been paid for."""
        if self.level not in (1, 2, 3) or self.max_steps < 1:
            raise ConfigError(
                f"a task's level is 1, 2 or 3 and its max_steps 1 or more, got {self.level!r}, {self.max_steps!r}"
            )

    @property
    def model_class(self) -> type[LLMModel]:
        """Class of its model.

        Raises:
            ConfigError: If `make` is a function that does not say what it returns.
        """
        kind: Any = self.make if inspect.isclass(self.make) else get_type_hints(self.make).get("return")
        if not (inspect.isclass(kind) and issubclass(kind, LLMModel)):
            raise ConfigError(f"make of the task {self.name!r} is an LLMModel, or a function annotated to return one")
        return kind

    def as_quick(self) -> Task:
        """Return the small version of the task."""
        return replace(self, setting={**self.setting, **self.quick}, max_steps=self.quick_steps or self.max_steps)

    def with_original_items(self) -> Task:
        """Return the task with the published items, where there are any to choose."""
        return replace(self, setting={**self.setting, **(self.original or {})})

    def with_parameters(self, parameters: Mapping[str, Any]) -> Task:
        """Return the task with other parameters in place of some of its setting."""
        return replace(self, setting={**self.setting, **parameters})


def find_tasks(wanted: str = "") -> tuple[dict[str, Task], dict[str, str]]:
    """Find the tasks of all models: `TASK` in the module `task` of a model's package.

    Args:
        wanted: Name of a model, to import its task alone; empty: all.

    Returns:
        Name → task, by level and name; and name of the model → why its task cannot be used.
    """
    found: list[Task] = []
    broken: dict[str, str] = {}
    for entry in find_models():
        module = f"{entry.package}.task"
        try:
            if not entry.package or entry.error or find_spec(module) is None:
                continue
            if not wanted or _same(wanted, entry.name):
                found.append(_task_in(module, "TASK"))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's module; it is listed with its error
            broken[entry.name] = f"{type(error).__name__}: {error}"
    return {task.name: task for task in sorted(found, key=lambda one: (one.level, one.name))}, broken


def find_task(name: str) -> Task:
    """Find a task by its name, or by `module:NAME`.

    Raises:
        ConfigError: If there is none; the text lists those there are.
    """
    module, colon, qualname = name.partition(":")
    if colon:
        return _task_in(module, qualname)
    for wanted in (name, ""):  # nearly always it is called as its model is
        tasks, broken = find_tasks(wanted)
        for known, task in tasks.items():
            if _same(name, known):
                return task
        for known, fault in broken.items():
            if _same(name, known):
                raise ConfigError(f"the task {name!r} cannot be used: {fault}")
    raise ConfigError(f"there is no task {name!r}; there are: {', '.join(tasks) or 'none'}")


def _same(name: str, other: str) -> bool:
    return name.replace("-", "_") == other.replace("-", "_")


def _task_in(module: str, name: str) -> Task:
    try:
        found = attrgetter(name)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{module}:{name} cannot be found: {error}") from error
    if not isinstance(found, Task):
        raise ConfigError(f"{module}:{name} is no Task, but {type(found).__name__}")
    return found
