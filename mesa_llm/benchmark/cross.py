"""Designs × tasks: each design of agents in each task, with the same seeds, compared with the task's own design."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.benchmark.designs import ORIGINAL_DESIGNS, PUBLISHED_RATIOS, Installation, installations
from mesa_llm.benchmark.report import run_json, task_json, totals_json, usage_of, with_interval
from mesa_llm.benchmark.runs import Candidate, Plan, Run, Runs
from mesa_llm.benchmark.task import Task, find_task
from mesa_llm.engine.access import Access
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.records import Usage
from mesa_llm.statistics import Column, Comparison, Estimate, compare, correct, mean_estimate, ratio_estimate
from mesa_llm.text import NOT_KNOWN, counted, figure_text, table

SIGNIFICANT = 0.05
"""Corrected p below which a difference gets a star."""

FEW_SEEDS = 6
"""Number of pairs from which on a paired permutation test can find a p below `SIGNIFICANT`."""


@dataclass(frozen=True)
class Cell:
    """A design in a task, over its runs."""

    figure: Estimate | None
    """The task's measure, averaged over runs; None if no run has it."""

    ratio: Estimate | None
    """Its ratio to the diagonal, over pairs of runs with one seed; None where a ratio says nothing."""

    comparison: Comparison | None
    """Its difference from the diagonal; None on the diagonal, and without a pair of runs."""

    installation: Installation
    """What becomes of the design's components in the task."""


@dataclass(frozen=True)
class Cross:
    """Results of designs in tasks."""

    tasks: Sequence[Task]
    """The tasks, in order."""

    candidates: Mapping[str, Candidate]
    """Name of a design → the language model with it; the first is what tasks without a design of their name are
    normalised by."""

    seeds: Sequence[int]
    """Seeds of the runs, the same for all designs."""

    runs: Sequence[Run]
    """All runs, including those that failed."""

    options: Mapping[str, Any]
    """Options of the command, without secrets."""

    seconds: float = 0.0
    """Duration in seconds."""

    @property
    def designs(self) -> list[str]:
        """Names of the designs, in order."""
        return list(self.candidates)

    def diagonal(self, task: Task) -> str:
        """Return the design that a task is normalised by: the one of its name, or else the first."""
        return task.name if task.name in self.candidates else self.designs[0]

    def runs_of(self, task: Task, design: str) -> list[Run]:
        """Return the runs of a design in a task, in the order of their seeds."""
        plan = (task.name, self.candidates[design].name)
        return [run for run in self.runs if (run.plan.task.name, run.plan.candidate.name) == plan]

    def figures(self, task: Task, design: str) -> Column:
        """Return the measure of a design's run in a task for each seed; None where there is none."""
        by_seed = {run.plan.seed: task.measured(run.scores) for run in self.runs_of(task, design)}
        return [by_seed.get(seed) for seed in self.seeds]

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Cell]:
        """Name of a task and of a design → results; p are corrected over all of them together."""
        places = [(task, design) for task in self.tasks for design in self.designs]
        comparisons = correct([self._compared(task, design) for task, design in places])
        designs = {name: one.design for name, one in self.candidates.items()}
        entered = {task.name: installations(task, designs) for task in self.tasks}
        return {
            (task.name, design): Cell(
                mean_estimate(self.figures(task, design)),
                self._ratio(task, design),
                comparison,
                entered[task.name][design],
            )
            for (task, design), comparison in zip(places, comparisons, strict=True)
        }

    def cell(self, task: Task, design: str) -> Cell:
        """Return the results of a design in a task."""
        return self.cells[task.name, design]

    def _compared(self, task: Task, design: str) -> Comparison | None:
        diagonal = self.diagonal(task)
        return None if design == diagonal else compare(self.figures(task, design), self.figures(task, diagonal))

    def _ratio(self, task: Task, design: str) -> Estimate | None:
        try:
            return ratio_estimate(self.figures(task, design), self.figures(task, self.diagonal(task)))
        except ValueError:  # `note_on` says so
            return None

    def note_on(self, task: Task) -> str:
        """Describe what a task's column is normalised by, and why it has no ratios if it has none."""
        diagonal = self.figures(task, self.diagonal(task))
        text = f"{task.measure_name}; normalised by {self.diagonal(task)}"
        names = dict.fromkeys(name for run in self.runs if run.plan.task.name == task.name for name in run.scores)
        if names and all(figure is None for figure in diagonal):
            return f"{text}, of which no run has it; scores of this task are {', '.join(names)}"
        try:
            ratio_estimate(diagonal, diagonal)
        except ValueError as error:
            return f"{text}; {error}"
        return text

    def notes(self) -> list[str]:
        """Return what a reader of the figures should know."""
        lines = [f"{task.name}: {self.note_on(task)}" for task in self.tasks]
        n_seeds = len(self.seeds)
        if n_seeds < FEW_SEEDS:
            limit = f"no p is below {2 / 2**n_seeds:.3g}" if n_seeds > 1 else "there is neither an interval nor a test"
            lines.append(
                f"With {counted(n_seeds, 'seed')} {limit}; one below {SIGNIFICANT} takes {FEW_SEEDS}, and more of them "
                "where many are corrected."
            )
        if all(one.llm in ("rule", "random") for one in self.candidates.values()):
            lines.append("Rule twins and chance read nothing that a design changes, so that all designs decide alike.")
        return lines

    @property
    def usage(self) -> Usage:
        """Usage of all runs together."""
        return usage_of(self.runs)

    # -- as values

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "options": dict(self.options),
            "seeds": list(self.seeds),
            "tasks": [self._task(task) for task in self.tasks],
            "designs": {
                name: None if one.design is None else one.design.to_json() for name, one in self.candidates.items()
            },
            "cells": [self._cell(task, design) for task in self.tasks for design in self.designs],
            **totals_json(self.runs, self.seconds),
        }

    def _task(self, task: Task) -> dict[str, Any]:
        return {
            **task_json(task),
            "measure": task.measure_name,
            "diagonal": self.diagonal(task),
            "note": self.note_on(task),
        }

    def _cell(self, task: Task, design: str) -> dict[str, Any]:
        return {
            "task": task.name,
            "design": design,
            **asdict(self.cell(task, design)),
            "published_ratio": published_ratio(task, design),
            "runs": [run_json(run) for run in self.runs_of(task, design)],
        }

    # -- as tables

    @property
    def ratio_head(self) -> list[str]:
        """Heads of the table of ratios."""
        return ["ratio to the diagonal", *(task.name for task in self.tasks)]

    def ratio_rows(self) -> Iterator[list[str]]:
        """Return a row for each design: its ratios to the diagonal of each task, and the published ones in brackets."""
        for design in self.designs:
            yield [design, *(self._ratio_text(task, design) for task in self.tasks)]

    def _ratio_text(self, task: Task, design: str) -> str:
        is_diagonal = design == self.diagonal(task)
        ratio, published = self.cell(task, design).ratio, published_ratio(task, design)
        text = figure_text(ratio and ratio.value) if is_diagonal else with_interval(ratio)
        return text if published is None or is_diagonal else f"{text} (study: {published:.2f})"

    @property
    def difference_head(self) -> list[str]:
        """Heads of the table of differences."""
        return ["task", "design", "runs", "measure", "less the diagonal's", "in SDs", "p", "corrected"]

    def difference_rows(self) -> Iterator[list[str]]:
        """Return a row for each design in each task: its measure, and its difference from the diagonal."""
        for task in self.tasks:
            for design in self.designs:
                cell = self.cell(task, design)
                n = 0 if cell.figure is None else cell.figure.n
                row = [task.name, design, str(n), with_interval(cell.figure)]
                yield [*row, *_comparison_texts(cell.comparison)]

    @property
    def component_head(self) -> list[str]:
        """Heads of the table of components."""
        return ["task", "design", "config", "memory", "tools"]

    def component_rows(self) -> Iterator[list[str]]:
        """Return a row for each design in each task: which components it uses, and which it leaves unused."""
        for task in self.tasks:
            for design in self.designs:
                yield [task.name, design, *asdict(self.cell(task, design).installation).values()]

    def text(self) -> str:
        """Write the results as tables for a terminal."""
        blocks = [
            table(self.ratio_head, list(self.ratio_rows())),
            table(self.difference_head, list(self.difference_rows())),
            table(self.component_head, list(self.component_rows())),
            self.notes(),
        ]
        return "\n\n".join(["\n".join(block) for block in blocks] + self.failures())

    def failures(self) -> list[str]:
        """Describe the runs of a design in a task that produced nothing in a line, with the reason of the first."""
        lines: list[str] = []
        for task in self.tasks:
            for design in self.designs:
                runs = self.runs_of(task, design)
                failed = [run for run in runs if run.error is not None]
                if failed:
                    lines.append(f"FAILED {task.name}, {design}: {len(failed)} of {len(runs)} runs: {failed[0].error}")
        return lines


def published_ratio(task: Task, design: str) -> float | None:
    """Return the ratio to the diagonal that Shachi reports of a design in a task; None if it reports none."""
    return PUBLISHED_RATIOS.get(design, {}).get(task.name)


def _comparison_texts(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return [NOT_KNOWN] * 4
    figures = (comparison.effect, comparison.p)
    corrected = figure_text(comparison.adjusted_p) + star_of(comparison)
    return [with_interval(comparison.difference), *map(figure_text, figures), corrected]


def star_of(comparison: Comparison) -> str:
    """Return the mark of a difference whose corrected p is below `SIGNIFICANT`; empty for others."""
    return " *" if comparison.adjusted_p is not None and comparison.adjusted_p < SIGNIFICANT else ""


def candidates_of(llm: str | LLM, designs: Mapping[str, AgentDesign | None]) -> dict[str, Candidate]:
    """Return a language model with each of several designs, by the names of the designs.

    Args:
        llm: Language model that the agents think with, unless a design names another.
        designs: Designs by name; None: each model's own components.

    Raises:
        ConfigError: If there is no design.
    """
    if not designs:
        raise ConfigError("a cross needs a design at least")
    name = written_name(llm) if isinstance(llm, str) else Capabilities.of(llm).name
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
    """Run each design in each task, with the same seeds, and compare it with the task's own design.

        found = cross(["stock_agent", "sotopia"], {"mine": AgentDesign(memory="stream"), "own": None}, llm="local")
        print(found.text())

    Args:
        tasks: Tasks, or their names.
        designs: Designs by name; None stands for each model's own components. A task is normalised by the design of
            its name, or else by the first.
        llm: Language model that the agents think with.
        seeds: The seeds, or how many, from 1 on.
        folder: Folder of a run log a run, whose replies are used before anything is asked; None: logs in memory.
        options: Options of all models: `reasoning`, `reply_tokens`, `parser`, …
        **access: Endpoints, limits and budget of all runs together, see `Access`.

    Raises:
        ConfigError: If there is no such task or no design, or a task's parameters cannot be.
    """
    found = [find_task(task) if isinstance(task, str) else task for task in tasks]
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    candidates = candidates_of(llm, designs)
    plans = [Plan(task, one, seed) for one in candidates.values() for task in found for seed in numbers]
    begun = clock.perf_counter()
    with closing(Access(**access)) as shared:
        runs = Runs(plans, access=shared, folder=None if folder is None else Path(folder), **options or {})
        runs.check()
        return Cross(found, candidates, numbers, runs.run(), {}, clock.perf_counter() - begun)
