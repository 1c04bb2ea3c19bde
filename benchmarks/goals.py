"""What is wanted of the project's own cost, and whether it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "missed", "FAILED", "not run"]


@dataclass(frozen=True)
class Goal:
    """A figure that is wanted."""

    name: str
    """What is measured."""

    measured: float | None
    """What was found; None: it was not run."""

    wanted: float
    """The goal."""

    unit: str = ""
    """Unit of both."""

    is_least: bool = False
    """True if more is better: the goal is the least that is wanted. Else it is the most."""

    failing_share: float = 0.5
    """A smaller share of the goal than this fails the run."""

    @property
    def share(self) -> float | None:
        """How much of the goal is reached; 1 or more: all of it."""
        if self.measured is None:
            return None
        better, other = (self.measured, self.wanted) if self.is_least else (self.wanted, self.measured)
        return better / other if other else float("inf")

    @property
    def verdict(self) -> Verdict:
        """Check whether it is met, missed, or reached to so small a share that the run fails."""
        if self.share is None:
            return "not run"
        if self.share >= 1:
            return "met"
        return "missed" if self.share >= self.failing_share else "FAILED"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Name, goal, measured, verdict, as they are printed."""
        sign = "≥" if self.is_least else "≤"
        measured = "–" if self.measured is None else f"{figure_text(self.measured)} {self.unit}".strip()
        return self.name, f"{sign} {figure_text(self.wanted)} {self.unit}".strip(), measured, self.verdict


def figure_text(value: float) -> str:
    """Write a figure with three or four digits that mean something."""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, with columns of even width."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in [head, *rows]]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
