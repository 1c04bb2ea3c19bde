"""Runs, tables and page of a study of Shachi's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from mesa_llm import ConfigError, LLMModel, MesaLLMError
from mesa_llm.agents.design import AgentDesign
from mesa_llm.benchmark.page import picture, rendered
from mesa_llm.errors import AllDecisionsFailed
from mesa_llm.llm.budget import SharedBudget
from mesa_llm.statistics import Comparison, Estimate
from mesa_llm.sweep import sweep
from mesa_llm.text import counted, figure_text, none_succeeded, table

COUNTS = ("decisions", "failures", "calls", "prompt_tokens", "reply_tokens", "dollars", "seconds")
"""Columns of a sweep that add up over runs."""

Value = str | float | None
"""A cell of a table."""


@dataclass(frozen=True)
class Setup:
    """Settings of the runs of a study."""

    seeds: Sequence[int]
    """Seeds of each arm."""

    folder: Path | None = None
    """Folder of the run logs, which are continued if they exist; None: a temporary one."""

    llm: str = "rule"
    """Language model of the agents, or `rule`."""

    workers: int = 1
    """Number of runs at once."""

    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameters of the study's model, which override the study's own."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of all models."""

    access: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Endpoints and limits, as `sweep` takes them."""

    purse: SharedBudget | None = None
    """Budget of all runs of the study together; None: no limit."""


@dataclass
class Runs:
    """The runs of a study, made as sweeps; runs that the folder already holds are not repeated."""

    setup: Setup
    """Settings of the runs."""

    made: list[pd.DataFrame] = field(default_factory=list[pd.DataFrame])
    """Tables of the sweeps, with the column `sweep`."""

    n_done: int = 0
    """Number of runs made by this call."""

    _temporary: TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """Folder of the logs."""
        if self.setup.folder is not None:
            return self.setup.folder
        if self._temporary is None:
            self._temporary = TemporaryDirectory(prefix="shachi-")
        return Path(self._temporary.name)

    def sweep(
        self,
        name: str,
        model: type[LLMModel],
        vary: Mapping[str, Iterable[Any]] | None = None,
        *,
        steps: int | None = None,
        fixed: Mapping[str, Any] | None = None,
        llm: str | Sequence[str] | None = None,
        designs: Mapping[str, AgentDesign | None] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> pd.DataFrame:
        """Run a sweep, and return one row a run.

        Args:
            name: Name of the sweep, and of its folder.
            model: The model.
            vary: Parameter → its values.
            steps: Number of steps; None: until the model ends on its own.
            fixed: Parameters of all runs.
            llm: Language models; None: that of the set-up.
            designs: Designs of the agents by name.
            seeds: The seeds; None: those of the set-up.

        Raises:
            BudgetExceeded: If the budget ended it.
            MesaLLMError: If a run failed.
        """
        setup = self.setup
        done = sweep(
            model,
            vary,
            folder=self.folder / name,
            steps=steps,
            seeds=setup.seeds if seeds is None else seeds,
            llm=setup.llm if llm is None else llm,
            designs=designs,
            fixed=fixed,
            workers=setup.workers,
            options=setup.options,
            purse=setup.purse,
            **setup.access,
        )
        if done.error is not None:
            raise done.error
        if done.n_failed:
            first = done.table.loc[done.table["error"] != "", "error"].iloc[0]
            raise MesaLLMError(f"{counted(done.n_failed, 'run')} of {name} failed. The first one: {str(first)[:300]}")
        self.n_done += done.n_done
        self.made.append(done.table.assign(sweep=name))
        rows = done.table
        n_decisions = int(total(rows, "decisions"))
        if n_decisions and total(rows, "failures") >= n_decisions:
            raise AllDecisionsFailed(none_succeeded(n_decisions, name))
        return rows

    def cost(self) -> dict[str, Any]:
        """Return runs, decisions, calls, tokens and dollars, added up over all runs."""
        rows = pd.concat(self.made, ignore_index=True)
        totals = {name: total(rows, name) for name in COUNTS}
        tokens = totals.pop("prompt_tokens") + totals.pop("reply_tokens")
        whole = {name: int(totals.pop(name)) for name in ("decisions", "failures", "calls")}
        return {"runs": len(rows), "done": self.n_done, "tokens": int(tokens)} | whole | totals

    def close(self) -> None:
        """Delete the temporary folder, if there is one."""
        if self._temporary is not None:
            self._temporary.cleanup()


@dataclass(frozen=True)
class Table:
    """A table of findings."""

    title: str
    """Its title."""

    rows: Sequence[Mapping[str, Value]]
    """Its rows, all with the same columns."""

    note: str = ""
    """What its columns mean."""

    @property
    def head(self) -> list[str]:
        """Names of the columns."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def cells(self) -> list[list[str]]:
        """Return the rows as texts."""
        return [[cell_text(row.get(name)) for name in self.head] for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return the table for a notebook."""
        return pd.DataFrame(list(self.rows), columns=self.head)


@dataclass(frozen=True)
class Findings:
    """Results of a study."""

    study: str
    """Name of the study."""

    question: str
    """Its question."""

    setting: Mapping[str, Any]
    """Seeds, language models and parameters."""

    cost: Mapping[str, Any]
    """Runs, decisions, calls, tokens, dollars and seconds."""

    tables: Sequence[Table]
    """Its tables, the main one first."""

    draw: Callable[[], Figure]
    """Draws its figure."""

    caveat: str = ""
    """Limits of the figures."""

    def summary(self) -> dict[str, Any]:
        """Return everything in types that JSON can represent."""
        tables = {
            one.title: [{name: _finite(value) for name, value in row.items()} for row in one.rows]
            for one in self.tables
        }
        return {"study": self.study, "setting": dict(self.setting), **self.cost, "tables": tables}

    def text(self) -> str:
        """Return the tables as text for a terminal."""
        head = [f"{self.study}: {self.question}", self.setting_text]
        blocks = ["\n".join([one.title, *table(one.head, one.cells())]) for one in self.tables]
        return "\n\n".join(["\n".join(head), *blocks, *filter(None, [self.caveat])])

    @property
    def setting_text(self) -> str:
        """The setting and the cost, on one line."""
        chosen = "; ".join(f"{name}: {_setting_text(value)}" for name, value in self.setting.items())
        cost = self.cost
        return (
            f"{chosen}. {counted(cost['runs'], 'run')}, {cost['decisions']} decisions, {cost['failures']} failed; "
            f"{cost['calls']} calls, {cost['tokens']} tokens, ${cost['dollars']:.4f}."
        )

    def page(self) -> str:
        """Return a self-contained HTML page."""
        return rendered("page.html", "mesa_llm_models.shachi", findings=self, plot=picture(self.draw()))


def cell_text(value: Value) -> str:
    """Format a cell, with three significant digits for numbers."""
    return value if isinstance(value, str) else figure_text(value)


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _setting_text(value: Any) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    are_whole = len(value) > 2 and all(type(one) is int for one in value)
    if are_whole and list(value) == list(range(value[0], value[-1] + 1)):
        return f"{value[0]} to {value[-1]}"
    return ", ".join(map(str, value))


# -- rows


def estimate_cells(estimate: Estimate | None, name: str = "mean") -> dict[str, Value]:
    """Return a figure and the bounds of its interval as cells.

    Args:
        estimate: The figure, if there is one.
        name: Name of its column.
    """
    if estimate is None:
        return {name: None, "low": None, "high": None}
    return {name: estimate.value, "low": estimate.low, "high": estimate.high}


def comparison_cells(one: Comparison | None) -> dict[str, Value]:
    """Return a comparison as cells: difference, interval, effect size, p and p after correction.

    Args:
        one: The comparison; None without a pair.
    """
    cells = estimate_cells(None if one is None else one.difference, "difference")
    if one is None:
        return cells | {"effect": None, "p": None, "adjusted p": None, "pairs": 0.0}
    return cells | {"effect": one.effect, "p": one.p, "adjusted p": one.adjusted_p, "pairs": float(one.difference.n)}


def runs_with(rows: pd.DataFrame, **chosen: Any) -> pd.DataFrame:
    """Return the runs with some values, in the order of their seeds.

    Args:
        rows: One row a run.
        **chosen: Column → required value.
    """
    mask = pd.Series(True, index=rows.index)
    for key, value in chosen.items():
        mask &= rows[key] == value
    return rows.loc[mask, :].sort_values("seed")


def total(rows: pd.DataFrame, name: str) -> float:
    """Return the sum of a column."""
    return float(rows[name].to_numpy(dtype=np.float64).sum())


def column(rows: pd.DataFrame, name: str, **chosen: Any) -> list[float | None]:
    """Return a figure of the runs with some values, in the order of their seeds; None for a run without it.

    Args:
        rows: One row a run.
        name: Name of the figure.
        **chosen: Column → required value.

    Raises:
        ConfigError: If there are no such runs.
    """
    runs = runs_with(rows, **chosen)
    if runs.empty:
        raise ConfigError(f"there are no runs with {chosen}")
    values = [None if value is None else float(value) for value in runs[name]]
    return [None if value is None or not math.isfinite(value) else value for value in values]
