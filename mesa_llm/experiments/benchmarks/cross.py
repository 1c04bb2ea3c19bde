"""Designs × tasks: every design in every task, with the same seeds, compared with the task's own design."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.charts.panels import Panels
from mesa_llm.engine.access import Access
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.benchmarks.charts import Cell, heat_map
from mesa_llm.experiments.benchmarks.designs import ORIGINAL_DESIGNS, PUBLISHED_RATIOS, Installation, installations
from mesa_llm.experiments.benchmarks.report import Results, as_rows, gaps, result_of, setting_of, totals
from mesa_llm.experiments.benchmarks.results import RunRow
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRun, TaskRuns
from mesa_llm.experiments.benchmarks.task import Task, find_task
from mesa_llm.experiments.findings import Arms, Section, Table, require_measure
from mesa_llm.llm.address import written_llm
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.statistics import (
    MIN_RUNS,
    Comparison,
    Estimate,
    compare,
    correct,
    mean_estimate,
    ratio_estimate,
    with_interval,
)
from mesa_llm.text import NOT_KNOWN, counted, figure_text

FULL_RATIO = 2.0
"""Ratio to the reference design at which the colour saturates, as does its inverse."""

FULL_EFFECT = 3.0
"""Difference in standard deviations at which the colour saturates."""

READING = (
    "Each design of agents runs in each task with the same seeds, so that runs with one seed are a pair. A task is "
    "normalised by the design of its name, or else by the first one (reference). In brackets stand 95 % "
    "intervals over pairs, from four pairs on. p is that of the paired t-test, then "
    "corrected for the number of tests in this table by Benjamini and Hochberg's procedure. A ratio says that a "
    "measure is larger, not that it is better; where the diagonal is not above 0 there is none, and the difference "
    "counts. Components are used, ignored (the task has one, the design does without), or absent."
)
"""How the figures are read."""

SIGNIFICANT = 0.05
"""Corrected p below which a difference is marked with a star."""


class _Named(Protocol):
    """Anything with a name: a task, or its part of a report."""

    @property
    def name(self) -> str:
        """The name."""
        ...


@dataclass(frozen=True, kw_only=True)
class Column:
    """A task in which designs are compared."""

    task: str
    """Name of the task."""

    source: str
    """Study that the task comes from."""

    setting: Mapping[str, Any]
    """Parameters of the runs."""

    max_steps: int | None
    """Maximum number of steps of a run; None if it ends by itself."""

    measure: str
    """Name of the measure by which designs are compared."""

    diagonal: str
    """Reference design of the column: the one named like the task, or else the first."""

    note: str
    """Description of the reference design, and the reason for missing ratios, if any."""

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.task


@dataclass(frozen=True, kw_only=True)
class DesignResult:
    """A design in a task, over its runs."""

    task: str
    """Name of the task."""

    design: str
    """Name of the design."""

    figure: Estimate | None
    """The task's measure, averaged over runs; None if no run has it."""

    error: Estimate | None = None
    """Its error against the task's target; None without comparable values."""

    ratio: Estimate | None
    """Its ratio to the reference design, over pairs of runs with the same seed; None where a ratio is meaningless."""

    comparison: Comparison | None
    """Its difference from the reference design; None for the reference design, and without a pair of runs."""

    installation: Installation
    """Which components the design uses in the task."""

    published_ratio: float | None
    """The ratio Shachi reports; None if there is none."""

    runs: Sequence[RunRow]
    """The runs, in the order of their seeds."""


@dataclass(frozen=True, kw_only=True)
class Cross(Results):
    """Results of designs in tasks."""

    seeds: Sequence[int]
    """Seeds of the runs, the same for all designs."""

    tasks: Sequence[Column]
    """The tasks, in order."""

    designs: Mapping[str, Mapping[str, Any] | None]
    """Designs by name, as JSON; None for each model's own components."""

    cells: Sequence[DesignResult]
    """Results of each design in each task."""

    notes: Sequence[str]
    """Notes for readers of the figures."""

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], DesignResult]:
        return {(cell.task, cell.design): cell for cell in self.cells}

    def cell(self, task: _Named, design: str) -> DesignResult:
        """Return the results of a design in a task."""
        return self._by_name[task.name, design]

    def runs_of(self, task: _Named, design: str) -> Sequence[RunRow]:
        """Return the runs of a design in a task, in the order of their seeds."""
        return self.cell(task, design).runs

    def diagonal(self, task: _Named) -> str:
        """Return the reference design of a task."""
        return next(column.diagonal for column in self.tasks if column.task == task.name)

    @property
    def runs(self) -> list[RunRow]:
        """All runs, including those that failed."""
        return [run for cell in self.cells for run in cell.runs]

    @property
    def lead(self) -> list[str]:
        """Options, cost and seeds."""
        return [f"{super().lead[0]} Seeds: {', '.join(map(str, self.seeds))}."]

    @property
    def name(self) -> str:
        """Name of the comparison."""
        return "Designs × tasks"

    def parts(self) -> list[Table]:
        """Return ratios, differences and components."""
        return [
            Table("Ratios", as_rows(self.ratio_head, self.ratio_rows())),
            Table("Differences", as_rows(self.difference_head, self.difference_rows())),
            Table("Components", as_rows(self.component_head, self.component_rows())),
        ]

    def sections(self) -> list[Section]:
        """Return heat maps, ratios, differences, components, and the runs."""
        runs = [
            {"task": cell.task, "design": cell.design, "measure": run.measure, **run.cells}
            for cell in self.cells
            for run in cell.runs
        ]
        table = Table(counted(len(runs), "run"), runs, is_folded=True, max_lines=0)
        reading = Section(sentences=[READING], charts=[self.heat_maps()], notes=self.notes)
        return [reading, Section(tables=[*self.parts(), table])]

    def heat_maps(self) -> Panels:
        """Return ratios to the reference design beside differences in standard deviations."""
        ratios = {task.task: [self._ratio_cell(task, design) for design in self.designs] for task in self.tasks}
        effects = {task.task: [self._effect_cell(task, design) for design in self.designs] for task in self.tasks}
        charts = [
            heat_map("Ratio to the diagonal", "in brackets: the study's", list(self.designs), ratios),
            heat_map("Difference, in SDs", f"*: corrected p < {SIGNIFICANT}", list(self.designs), effects),
        ]
        return Panels(title="Designs × tasks", charts=charts, columns=2)

    def _ratio_cell(self, task: Column, design: str) -> Cell:
        cell = self.cell(task, design)
        ratio, published = cell.ratio, cell.published_ratio
        study_ratio = "" if published is None or design == task.diagonal else f"\n({published:.2f})"
        if ratio is None:
            return None, f"{NOT_KNOWN}{study_ratio}"
        shade = math.log(ratio.value) / math.log(FULL_RATIO) if ratio.value > 0 else -1.0
        return shade, f"{ratio.value:.2f}{study_ratio}"

    def _effect_cell(self, task: Column, design: str) -> Cell:
        comparison = self.cell(task, design).comparison
        if design == task.diagonal:
            return 0.0, "reference"
        if comparison is None:
            return None, NOT_KNOWN
        difference, effect = comparison.difference.value, comparison.effect
        if difference == 0:
            return 0.0, "0"
        if effect is None:  # one pair has no spread; with several, all differences are equal
            shade = None if comparison.difference.n < 2 else math.copysign(1, difference)
            return shade, f"{figure_text(difference)}\n(no SD)"
        return effect / FULL_EFFECT, f"{effect:+.2f}{star_of(comparison)}"

    def arms(self, measure: str) -> Arms:
        """Return the values of a task's measure by design and seed.

        Args:
            measure: Name of the task.

        Raises:
            ConfigError: If there is no such task.
        """
        task = require_measure(self.name, measure, [one.task for one in self.tasks])
        cells = [cell for cell in self.cells if cell.task == task]
        return {cell.design: {run.seed: run.measure for run in cell.runs} for cell in cells}

    # -- as tables

    @property
    def ratio_head(self) -> list[str]:
        """Table headings of the ratios."""
        return ["ratio to the diagonal", *(task.task for task in self.tasks)]

    def ratio_rows(self) -> Iterator[list[str]]:
        """Return a row for each design: its ratios to the reference designs, with the published ones in brackets."""
        for design in self.designs:
            yield [design, *(self._ratio_text(task, design) for task in self.tasks)]

    def _ratio_text(self, task: Column, design: str) -> str:
        is_diagonal, cell = design == task.diagonal, self.cell(task, design)
        ratio, published = cell.ratio, cell.published_ratio
        text = figure_text(ratio and ratio.value) if is_diagonal else with_interval(ratio)
        return text if published is None or is_diagonal else f"{text} (study: {published:.2f})"

    @property
    def difference_head(self) -> list[str]:
        """Table headings of the differences."""
        return ["task", "design", "runs", "error", "measure", "less the diagonal's", "in SDs", "p", "corrected"]

    def difference_rows(self) -> Iterator[list[str]]:
        """Return a row for each design in each task: its measure, and the difference from the reference design."""
        for task in self.tasks:
            for design in self.designs:
                cell = self.cell(task, design)
                n = 0 if cell.figure is None else cell.figure.n
                row = [task.name, design, str(n), with_interval(cell.error), with_interval(cell.figure)]
                yield [*row, *_comparison_texts(cell.comparison)]

    @property
    def component_head(self) -> list[str]:
        """Table headings of the components."""
        return ["task", "design", "config", "memory", "tools"]

    def component_rows(self) -> Iterator[list[str]]:
        """Return a row for each design in each task: the components it uses and those it ignores."""
        for task in self.tasks:
            for design in self.designs:
                yield [task.name, design, *asdict(self.cell(task, design).installation).values()]

    @property
    def faults(self) -> list[str]:
        """Runs that produced nothing, and the failed decisions of the others, one per line."""
        lines: list[str] = []
        for task in self.tasks:
            for design in self.designs:
                runs = self.runs_of(task, design)
                failed = [run for run in runs if run.error is not None]
                if failed:
                    lines.append(f"FAILED {task.name}, {design}: {len(failed)} of {len(runs)} runs: {failed[0].error}")
                lines += gaps(f"{task.name}, {design}", runs)
        return lines


def cross_of(
    tasks: Sequence[Task],
    candidates: Mapping[str, Candidate],
    seeds: Sequence[int],
    runs: Sequence[TaskRun],
    options: Mapping[str, Any],
    seconds: float = 0.0,
) -> Cross:
    """Compare designs in tasks.

    Args:
        tasks: The tasks, in order.
        candidates: Name of a design → the language model with it. Tasks without a design of their name use the first as
            reference.
        seeds: Seeds of the runs, the same for all designs.
        runs: All runs, including those that failed.
        options: Options of the command, without secrets.
        seconds: Duration in seconds.
    """
    columns = [_Figures(task, candidates, seeds, runs) for task in tasks]
    cells = [cell for column in columns for cell in column.cells()]
    comparisons = correct([cell.comparison for cell in cells])
    lines = [f"{column.task.name}: {column.note()}" for column in columns]
    return Cross(
        seeds=list(seeds),
        tasks=[column.column() for column in columns],
        designs={name: None if one.design is None else one.design.to_json() for name, one in candidates.items()},
        cells=[replace(cell, comparison=one) for cell, one in zip(cells, comparisons, strict=True)],
        notes=[*lines, *_cautions(len(seeds), candidates.values())],
        **totals(runs, options, seconds),
    )


class _Figures:
    """Figures of all designs in one task."""

    def __init__(
        self, task: Task, candidates: Mapping[str, Candidate], seeds: Sequence[int], runs: Sequence[TaskRun]
    ) -> None:
        self.task = task
        self.candidates = candidates
        self.diagonal = task.name if task.name in candidates else next(iter(candidates))
        by_name = {one.name: name for name, one in candidates.items()}
        self.runs: dict[str, list[TaskRun]] = {name: [] for name in candidates}
        for run in runs:
            if run.plan.task.name == task.name and run.plan.candidate.name in by_name:
                self.runs[by_name[run.plan.candidate.name]].append(run)
        self.figures: dict[str, list[float | None]] = {}
        for name, own in self.runs.items():
            by_seed = {run.plan.seed: task.measured(run.scores) for run in own}
            self.figures[name] = [by_seed.get(seed) for seed in seeds]

    def column(self) -> Column:
        """Return the task's column."""
        fields = setting_of(self.task)
        return Column(**fields, measure=self.task.measure_name, diagonal=self.diagonal, note=self.note())

    def cells(self) -> Iterator[DesignResult]:
        """Return the results of each design; p-values are not corrected yet."""
        components = installations(self.task, {name: one.design for name, one in self.candidates.items()})
        diagonal = self.figures[self.diagonal]
        for name, figures in self.figures.items():
            yield DesignResult(
                task=self.task.name,
                design=name,
                figure=mean_estimate(figures),
                error=result_of(self.task, self.runs[name]).error,
                ratio=self._ratio(name),
                comparison=None if name == self.diagonal else compare(figures, diagonal),
                installation=components[name],
                published_ratio=PUBLISHED_RATIOS.get(name, {}).get(self.task.name),
                runs=[RunRow.of(run, self.task.measured(run.scores)) for run in self.runs[name]],
            )

    def _ratio(self, design: str) -> Estimate | None:
        try:
            return ratio_estimate(self.figures[design], self.figures[self.diagonal])
        except ValueError:  # `note` says so
            return None

    def note(self) -> str:
        """Describe the task's reference design, and why it has no ratios, if so."""
        diagonal = self.figures[self.diagonal]
        text = f"{self.task.measure_name}; normalised by {self.diagonal}"
        names = dict.fromkeys(name for own in self.runs.values() for run in own for name in run.scores)
        if names and all(figure is None for figure in diagonal):
            return f"{text}, of which no run has it; scores of this task are {', '.join(names)}"
        try:
            ratio_estimate(diagonal, diagonal)
        except ValueError as error:
            return f"{text}; {error}"
        return text


def _cautions(n_seeds: int, candidates: Iterable[Candidate]) -> Iterator[str]:
    """Return the warnings for a comparison over so few seeds, or without a language model."""
    if n_seeds < MIN_RUNS:
        yield f"With {counted(n_seeds, 'seed')} there is neither an interval nor a test; they take {MIN_RUNS}."
    if all(one.llm in ("rule", "random") for one in candidates):
        yield "Rule twins and chance read nothing that a design changes, so that all designs decide alike."


def _comparison_texts(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return [NOT_KNOWN] * 4
    figures = (comparison.effect, comparison.p)
    corrected = figure_text(comparison.adjusted_p) + star_of(comparison)
    return [with_interval(comparison.difference), *map(figure_text, figures), corrected]


def star_of(comparison: Comparison) -> str:
    """Return a star for a difference with corrected p below `SIGNIFICANT`, else an empty text."""
    return " *" if comparison.adjusted_p is not None and comparison.adjusted_p < SIGNIFICANT else ""


def candidates_of(
    llm: str | LLM | Mapping[str, str], designs: Mapping[str, AgentDesign | None]
) -> dict[str, Candidate]:
    """Return a language model combined with each of several designs, by design name.

    Args:
        llm: Language model of the agents, or several by agent, unless a design sets another.
        designs: Designs by name; None for each model's own components.

    Raises:
        ConfigError: If there is no design.
    """
    if not designs:
        raise ConfigError("a cross needs at least one design")
    name = written_llm(llm) if isinstance(llm, (str, Mapping)) else Capabilities.of(llm).name
    return {
        key: Candidate(name if key == OWN_DESIGN else f"{name} + {key}", llm, design) for key, design in designs.items()
    }


def cross(
    tasks: Iterable[Task | str],
    designs: Mapping[str, AgentDesign | None] = ORIGINAL_DESIGNS,
    *,
    llm: str | LLM = "rule",
    seeds: int | Iterable[int] = 3,
    folder: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    **access: Any,
) -> Cross:
    """Run each design in each task with the same seeds, and compare it with the task's own design.

        results = cross(["stock_agent", "sotopia"], {"mine": AgentDesign(memory="stream"), "own": None}, llm="local")
        print(results.text())

    Args:
        tasks: Tasks, or their names.
        designs: Designs by name; None for each model's own components. The reference in a task is the design of its
            name, or else the first.
        llm: Language model of the agents.
        seeds: The seeds, or their number, counting from 1.
        folder: Folder of the run logs, one per run, whose replies are reused; None for logs in memory.
        options: Options of all models: `reasoning`, `reply_tokens`, `parser`, …
        **access: Endpoints, limits and budget shared by all runs, see `Access`.

    Returns:
        The comparison, including all runs. A failed run does not stop the others.

    Raises:
        ConfigError: If a task is unknown, there is no design, a task's parameters are invalid, a provider is unknown,
            or the folder cannot be created.
    """
    tasks = [find_task(task) if isinstance(task, str) else task for task in tasks]
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    candidates = candidates_of(llm, designs)
    plans = [PlannedRun(task, one, seed) for one in candidates.values() for task in tasks for seed in numbers]
    start = clock.perf_counter()
    with closing(Access(**access)) as shared:
        runs = TaskRuns(plans, access=shared, folder=None if folder is None else Path(folder), **options or {})
        runs.check()
        return cross_of(tasks, candidates, numbers, runs.run(), {}, clock.perf_counter() - start)
