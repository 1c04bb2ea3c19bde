"""Cost of a run so far."""

from __future__ import annotations

from typing import Any, NamedTuple

from solara.core import component

from mesa_llm.engine.engine import Engine
from mesa_llm.records import Usage
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page


class Tile(NamedTuple):
    """One number on display."""

    number: str
    """The number."""

    what: str
    """What it counts."""

    mood: str = ""
    """`failed` highlights it as a failure."""


@component
def CostMeter(model: Any) -> None:
    """Show the decisions, failures, replies, tokens and dollars of a run, even during a step.

    Args:
        model: The model, which may be a plain Mesa model.
    """
    use_page(model).moment()
    engine = Engine.of(model)
    tiles = (
        tiles_of(Usage(), 0)  # no agent has decided yet
        if engine is None
        else tiles_of(engine.usage, engine.decisions, engine.human_timeouts, engine.reprompted, engine.parsed_leniently)
    )
    Markup("cost.html", tiles=tiles)


def tiles_of(usage: Usage, decisions: int, n_absent: int = 0, asked_again: int = 0, repaired: int = 0) -> list[Tile]:
    """Return the numbers of a run.

    Args:
        usage: Usage of the run.
        decisions: Number of decisions.
        n_absent: Number of decisions that people left to the rule twin.
        asked_again: Number of decisions whose first reply was unusable.
        repaired: Number of decisions whose reply had to be repaired.
    """
    n_failed = usage.failures - n_absent
    tiles = [
        Tile(f"{decisions:,}", "decisions"),
        Tile(f"{n_failed:,}", "failed", "failed" if n_failed else ""),
        Tile(f"{usage.calls:,}", "replies"),
        Tile(f"{usage.tokens:,}", "tokens"),
        Tile(f"${usage.dollars:,.4f}" if usage.dollars else "$0", "spent"),
    ]
    more = {
        "retried": asked_again,
        "repaired replies": repaired,
        "left to rule twins": n_absent,
        "replayed": usage.replayed,
    }
    return [*tiles, *(Tile(f"{count:,}", what) for what, count in more.items() if count)]
