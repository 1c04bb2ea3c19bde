"""The cost of a run so far."""

from __future__ import annotations

from typing import NamedTuple

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.records import Usage
from mesa_llm.viz.markup import Markup
from mesa_llm.viz.ticker import words


class Tile(NamedTuple):
    """One figure."""

    number: str
    """The figure."""

    what: str
    """Unit of the figure."""

    mood: str = ""
    """`failed` marks it."""


@component
def CostMeter(model: LLMModel) -> None:
    """Show decisions, failures, replies, tokens and dollars of the run, also while a step runs.

    Args:
        model: The model.
    """
    update_counter.get()
    words.get()
    Markup("cost.html", tiles=tiles_of(model.usage, model.engine.decisions))


def tiles_of(usage: Usage, decisions: int) -> list[Tile]:
    """Return the figures of a run.

    Args:
        usage: What was used.
        decisions: How many decisions were asked for.
    """
    tiles = [
        Tile(f"{decisions:,}", "decisions"),
        Tile(f"{usage.failures:,}", "failed", "failed" if usage.failures else ""),
        Tile(f"{usage.calls:,}", "replies"),
        Tile(f"{usage.tokens:,}", "tokens"),
        Tile(f"${usage.dollars:,.4f}" if usage.dollars else "$0", "spent"),
    ]
    return [*tiles, Tile(f"{usage.replayed:,}", "from the log")] if usage.replayed else tiles
