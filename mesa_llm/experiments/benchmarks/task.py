"""Benchmark tasks: a model in a published setting, its scores, and the published values for comparison."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_type_hints

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.registry import find_parts, part_named, same_name
from mesa_llm.tables import read_table, whole_rows

Level = Literal[1, 2, 3]
"""Complexity of a task: one agent (1), several reading the same news (2), several talking to each other (3)."""

Values = Mapping[str, float]
"""Name of a score → its value."""

Error = Callable[[Values, Values], float]
"""Computes the distance of scores, averaged over runs, from published ones; NaN without common scores."""

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
"""The ten tasks of Shachi (2025), Table 4, by model name, with their levels."""


_SCORING: ContextVar[Callable[[int, int], None] | None] = ContextVar("scoring", default=None)


def note_scoring(n_done: int, n: int) -> None:
    """Note how far the scoring of a run is, for the progress bar, and end it if a stop is requested.

    A `score` that takes longer than a second calls it between its parts. Outside a benchmark it does nothing.

    Args:
        n_done: Number of parts that are done.
        n: Number of all parts.

    Raises:
        Stopped: If a stop is requested.
    """
    listener = _SCORING.get()
    if listener is not None:
        listener(n_done, n)


@contextmanager
def scoring(listener: Callable[[int, int], None]) -> Generator[None]:
    """Pass the progress that `note_scoring` notes in this context on to a function, which may raise `Stopped`.

    Args:
        listener: Called with the number of parts that are done, and of all.
    """
    token = _SCORING.set(listener)
    try:
        yield
    finally:
        _SCORING.reset(token)


def mean_of(scores: Values) -> float:
    """Average scores; NaN if there are none."""
    return math.fsum(scores.values()) / len(scores) if scores else math.nan


def mean_absolute_error(found: Values, target: Values) -> float:
    """Compute the mean absolute difference over the scores in both; NaN without any.

    Source:
        Shachi (2025), Table 1.
    """
    differences = [abs(value - target[name]) for name, value in found.items() if name in target]
    return math.fsum(differences) / len(differences) if differences else math.nan


@dataclass(frozen=True)
class Reference:
    """Published values of scores."""

    values: Values
    """Values by score name."""

    respondent: str
    """Language model they were measured on, or people."""

    source: str
    """Publication or file of the values."""


def read_reference(path: str | Path) -> Reference:
    """Read scores to compare with, such as those of one's own runs of a study's program.

    Args:
        path: A JSON object of scores by name, or a table with the columns `score` and `value`; the values of one score
            are averaged, whether they are a list or several rows.

    Raises:
        ConfigError: If the file cannot be read, or holds something else.
    """
    path = Path(path)
    wanted = "expected a JSON object of numbers by score, or a table with the columns score and value"
    values: dict[str, list[Any]] = {}
    try:
        written: Any = json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}; {wanted}") from error
    if isinstance(written, dict):
        for name, value in cast("dict[str, Any]", written).items():
            values[name] = [*cast("list[Any]", value)] if isinstance(value, list) else [value]
    else:
        for row in whole_rows(path, read_table(path, ("score", "value"))):
            if "score" not in row or "value" not in row:
                raise ConfigError(f"{path}: {wanted}; found the columns {', '.join(row)}")
            values.setdefault(str(row["score"]), []).append(row["value"])
    try:
        means = {name: math.fsum(map(float, own)) / len(own) for name, own in values.items()}
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"{path}: {wanted}: {error}") from error
    if not means or not all(map(math.isfinite, means.values())):
        raise ConfigError(f"{path}: {wanted}, all finite")
    return Reference(means, "own target", str(path))


@dataclass(frozen=True)
class Baseline:
    """What a study's table sets its agents beside. Without any field set, it is random choice."""

    without: tuple[str, ...] = ()
    """Components that the agents lack: `config`, `memory`, `tools`."""

    shuffled: Callable[[Any], Mapping[str, float | None]] | None = None
    """Computes the scores of a run whose replies are exchanged at random."""

    @property
    def name(self) -> str:
        """Name for readers."""
        if self.without:
            return f"without {' and '.join(self.without)}"
        return "random choice" if self.shuffled is None else "shuffled replies"


@dataclass(frozen=True)
class PublishedError:
    """The error a study reports for its own runs."""

    agent: float
    """Error of the study's agent."""

    baseline: float
    """Error of the study's baseline."""

    setting: str
    """Language model, target and baseline of the study."""

    source: str = "Shachi (2025), Table 1"
    """Publication of both."""

    other_target: str = ""
    """What the study measured its error against, where that is not the target here; empty where it is."""


@dataclass(frozen=True)
class Measure:
    """A figure of a run, for comparing designs."""

    name: str
    """Name and unit, for reports."""

    of: Callable[[Values], float]
    """Computes it from the scores of a run; NaN if scores are missing."""


@dataclass(frozen=True)
class Task:
    """A task of a benchmark.

        TASK = Task("berries", BerryModel, lambda model: {"gini": model.results()["gini"]}, 10, 1, "Our own.")

    `TASK` in the module `task` of a model's package is found by its name, like the model itself. Name any other as
    `module:NAME`.

    Raises:
        ConfigError: If the level or the number of steps is invalid.
    """

    name: str
    """Name, in one word."""

    make: Callable[..., LLMModel]
    """Creates the model of one run: the model's class, or a function with the class as return annotation. It takes
    scenario fields and options of all models by keyword.
    """

    score: Callable[[Any], Mapping[str, float | None]]
    """Computes the scores of a run after its last step: name → value; None or NaN for missing scores."""

    max_steps: int | None
    """Maximum number of steps of a run, which may end earlier by itself; None if it ends by itself."""

    level: Level
    """Complexity of the task."""

    source: str
    """Study that the task comes from."""

    setting: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the published protocol."""

    quick: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of a small trial run; they override `setting`."""

    quick_steps: int = 0
    """Maximum number of steps of a small run; 0 for `max_steps`."""

    original: Mapping[str, Any] | None = None
    """Parameters that select the published items instead of ours; None if the task has no others."""

    by_hand: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters for published items that have to be downloaded by hand → what to download, and from where."""

    target: Reference | None = None
    """Published values to compare runs with; None if there are none."""

    target_note: str = ""
    """Reason why there is no target, or how it differs from the study's own."""

    is_comparable: Callable[[Any], bool] = lambda model: True
    """Checks whether a run may be compared with the target, for example for published items."""

    people: Reference | None = None
    """Published scores of people; None if there are none."""

    error: Error = mean_absolute_error
    """Distance of runs from the target."""

    unit: str = ""
    """Unit of the error."""

    published: PublishedError | None = None
    """Error a study reports for its own runs."""

    baseline: Baseline | None = None
    """The study's baseline; None if it has none."""

    measure: Measure | None = None
    """Measure for comparing designs; None for the first score."""

    def __post_init__(self) -> None:
        """Check level and steps."""
        if self.level not in (1, 2, 3) or (self.max_steps is not None and self.max_steps < 1):
            raise ConfigError(
                "a task's level must be 1, 2 or 3 and its max_steps 1 or more, or None, "
                f"got {self.level!r}, {self.max_steps!r}"
            )

    @property
    def model_class(self) -> type[LLMModel]:
        """Class of the task's model.

        Raises:
            ConfigError: If `make` is a function without a return annotation.
        """
        kind: Any = self.make if inspect.isclass(self.make) else get_type_hints(self.make).get("return")
        if not (inspect.isclass(kind) and issubclass(kind, LLMModel)):
            raise ConfigError(f"make of the task {self.name!r} must be an LLMModel or a function returning one")
        return kind

    @property
    def measure_name(self) -> str:
        """Name of the measure for comparing designs."""
        return "the first score" if self.measure is None else self.measure.name

    def measured(self, scores: Values) -> float | None:
        """Compute the measure from the scores of a run; None if scores are missing."""
        figure = next(iter(scores.values()), math.nan) if self.measure is None else self.measure.of(scores)
        return figure if math.isfinite(figure) else None

    def measured_by(self, score: str) -> Task:
        """Return the task with another score as its measure."""
        return replace(self, measure=Measure(score, lambda scores: scores.get(score, math.nan)))

    def with_target(self, target: Reference) -> Task:
        """Return the task with other scores to compare with, such as those of one's own runs of the study's program.

        All runs are compared with them, whatever their items. The study's own error stays beside them.

        Args:
            target: The scores.
        """
        published = None if self.published is None else replace(self.published, other_target="")
        return replace(self, target=target, target_note="", is_comparable=lambda model: True, published=published)

    def as_quick(self) -> Task:
        """Return the small version of the task."""
        return replace(self, setting={**self.setting, **self.quick}, max_steps=self.quick_steps or self.max_steps)

    def with_original_items(self) -> Task:
        """Return the task with the published items, if it has a choice."""
        return replace(self, setting={**self.setting, **(self.original or {})})

    def require_by_hand(self) -> None:
        """Check that manually downloaded items are present.

        Raises:
            ConfigError: If they are missing. The message says what to download, and where to put it.
        """
        for name, what in self.by_hand.items():
            if self.setting.get(name) is None:
                raise ConfigError(
                    f"{self.name}: its published items must be downloaded by hand. Download {what} "
                    f"and pass it with --set {self.name}.{name}=FILE (or leave --items original out)"
                )

    def with_parameters(self, parameters: Mapping[str, Any]) -> Task:
        """Return the task with other parameters in its setting."""
        return replace(self, setting={**self.setting, **parameters})


def find_tasks(wanted: str = "") -> tuple[dict[str, Task], dict[str, str]]:
    """Find the tasks of all models: `TASK` in the module `task` of a model's package.

    Args:
        wanted: Name of a model, to import only its task; empty for all.

    Returns:
        Name → task, by level and name; and name of a model → the reason its task cannot be used.
    """
    by_model, broken = find_parts("task", Task, wanted)
    return {task.name: task for task in sorted(by_model.values(), key=lambda one: (one.level, one.name))}, broken


def find_task(name: str) -> Task:
    """Find a task by its name, or by `module:NAME`.

    Raises:
        ConfigError: If there is no such task. The message lists the known ones.
    """
    if ":" in name:
        return part_named(name, Task)
    for wanted in (name, ""):  # nearly always named like its model
        tasks, broken = find_tasks(wanted)
        for key, task in tasks.items():
            if same_name(name, key):
                return task
        for key, fault in broken.items():
            if same_name(name, key):
                raise ConfigError(f"the task {name!r} cannot be used: {fault}")
    raise ConfigError(f"there is no task {name!r}; there are: {', '.join(tasks) or 'none'}")
