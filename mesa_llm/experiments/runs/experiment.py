"""An experiment of several parts: sweeps and single runs in one folder, with one total of their cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mesa import Model

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.run import Row, Run, missing_rows, require_whole, unwritten_text
from mesa_llm.experiments.runs.sweep import Sweep, SweepPoint, sweep
from mesa_llm.model.quality import total_quality

TOTALS = ("decisions", "failures", "calls", "prompt_tokens", "reply_tokens", "dollars", "seconds")
"""Fields of a row that are summed over runs."""


@dataclass
class Experiment:
    """Makes the parts of an experiment. What is in its folder is not made again."""

    folder: Path | None = None
    """Folder of the parts; None: a temporary one, until `close`."""

    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Endpoints, limits and budget of all runs, `on` and `workers`."""

    how: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further keyword arguments of `sweep` for all parts: `llm`, `seeds`, `options`, …"""

    bar: RunBar = field(default_factory=lambda: RunBar(is_shown=False))
    """Bar that shows all runs."""

    rows: list[Row] = field(default_factory=list[Row])
    """Rows of all runs."""

    n_done: int = 0
    """Number of runs by this call."""

    tokens: int = 0
    """Number of tokens of live replies in the runs of this call."""

    dollars: float = 0.0
    """US dollars for live replies in the runs of this call."""

    _temporary: TemporaryDirectory[str] | None = None

    @property
    def place(self) -> Path:
        """Folder of the parts, which may be temporary."""
        if self.folder is not None:
            return self.folder
        if self._temporary is None:
            self._temporary = TemporaryDirectory(prefix="mesa-llm-experiment-")
        return Path(self._temporary.name)

    def sweep(
        self,
        name: str,
        model: type[Model[Any, Any]],
        vary: Mapping[str, Iterable[Any]] | Sequence[SweepPoint] | None = None,
        **how: Any,
    ) -> Sweep:
        """Make a sweep in a folder of its own.

        Args:
            name: Name of the part, and of its folder; empty: the folder of the experiment.
            model: The model.
            vary: Parameter → its values; or points, each with its seeds.
            **how: Keyword arguments of `sweep` that differ from those of all parts.

        Raises:
            BudgetExceeded: If the budget ended it.
            MesaLLMError: If a run failed, or all decisions did.
        """
        own = {**self.how, **self.limits, **how}
        done = sweep(model, vary, folder=self.place / name, progress=self.bar, **own)
        done.require_whole(name)
        self._count(done.by_log.values(), done.n_done, done.tokens, done.dollars)
        return done

    def make(self, name: str, runs: Sequence[Run]) -> list[Row]:
        """Make single runs, and return their rows in this order.

        Args:
            name: Name of the part, for errors.
            runs: The runs, in the folder of the experiment.

        Raises:
            BudgetExceeded: If the budget ended them.
            MesaLLMError: If a run failed, or all decisions did.
        """
        rows = {run.log: row for run in runs if (row := run.row()) is not None}
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(unwritten_text(self.place, error)) from error
        with closing(missing_rows(runs, rows, bar=self.bar, **self.limits)) as made:
            new = [row for _, row in made]
        require_whole(rows.values(), name)
        found = [rows[run.log] for run in runs]
        self._count(found, len(new), sum(row["tokens_now"] for row in new), sum(row["dollars_now"] for row in new))
        return found

    def _count(self, rows: Iterable[Row], n_done: int, tokens: int, dollars: float) -> None:
        self.rows += rows
        self.n_done, self.tokens, self.dollars = self.n_done + n_done, self.tokens + tokens, self.dollars + dollars

    def cost(self) -> dict[str, Any]:
        """Return the totals of all runs, also of earlier calls: runs, decisions, calls, tokens, dollars and quality."""
        return {"done": self.n_done, **cost_of(self.rows)}

    def close(self) -> None:
        """Delete the temporary folder, if there is one."""
        if self._temporary is not None:
            self._temporary.cleanup()


def cost_of(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the totals of runs by their rows: runs, decisions, failures, calls, tokens, dollars, seconds and quality.

    Args:
        rows: Their rows.
    """
    rows = list(rows)
    totals = {name: math.fsum(row[name] for row in rows) for name in TOTALS}
    tokens = totals.pop("prompt_tokens") + totals.pop("reply_tokens")
    counts = {name: int(totals.pop(name)) for name in ("decisions", "failures", "calls")}
    texts = (row.get("quality") for row in rows)
    quality = total_quality(json.loads(text) for text in texts if isinstance(text, str))
    return {"runs": len(rows), **counts, "tokens": int(tokens), **totals, "quality": quality}
