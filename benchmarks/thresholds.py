"""Goals for the project's own cost, and whether they are met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "missed", "FAILED", "not run"]


@dataclass(frozen=True)
class Threshold:
    """A threshold for one figure."""

    name: str
    """Name of the figure."""

    measured: float | None
    """Measured value; None: not run."""

    wanted: float
    """The threshold."""

    unit: str = ""
    """Unit of both."""

    is_minimum: bool = False
    """Whether the threshold is a minimum, rather than a maximum."""

    failing_share: float = 0.5
    """Share of the threshold below which the run fails."""

    @property
    def share(self) -> float | None:
        """Share of the threshold that is reached; 1 or more: met."""
        if self.measured is None:
            return None
        better, other = (self.measured, self.wanted) if self.is_minimum else (self.wanted, self.measured)
        return better / other if other else float("inf")

    @property
    def verdict(self) -> Verdict:
        """Return whether the threshold is met, missed, or missed so far that the run fails."""
        if self.share is None:
            return "not run"
        if self.share >= 1:
            return "met"
        return "missed" if self.share >= self.failing_share else "FAILED"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Name, threshold, measured value and verdict as text."""
        sign = "≥" if self.is_minimum else "≤"
        measured = "–" if self.measured is None else f"{figure_text(self.measured)} {self.unit}".strip()
        return self.name, f"{sign} {figure_text(self.wanted)} {self.unit}".strip(), measured, self.verdict


def figure_text(value: float) -> str:
    """Format a figure with three or four significant digits."""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, with columns of even width."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in [head, *rows]]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
