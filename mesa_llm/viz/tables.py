"""Tables of what happened: news of the worlds, actions of agents, and answers that a questionnaire lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.gate import steady
from mesa_llm.viz.markup import Markup
from mesa_llm.viz.trace import call_text, records, shortened

if TYPE_CHECKING:
    import pandas as pd

    from mesa_llm.worlds.questionnaire import Lack, Questionnaire

ROWS = 30
"""Latest rows that a table shows."""

MAX_ITEMS = 100
"""Maximum number of items whose lacking answers are shown."""


class Row(NamedTuple):
    """One row of a table."""

    cells: tuple[str, ...]
    """Its text, by column."""

    mood: str = ""
    """`failed` marks it."""


@component
def EventLog(model: LLMModel) -> None:
    """Show the latest news of the model's worlds, newest first.

    Args:
        model: The model.
    """
    _Table(model, model.runlog.events, event_row, ("Step", "Where", "What"), "Nothing worth telling has happened yet.")


@component
def ActionTable(model: LLMModel) -> None:
    """Show the latest actions of all agents and what came of them, newest first.

    Args:
        model: The model.
    """
    names = {agent.unique_id: config.name for agent in model.agents if (config := getattr(agent, "config", None))}

    def row(fields: dict[str, Any]) -> Row:
        return action_row(fields, names)

    _Table(model, model.runlog.actions, row, ("Step", "Agent", "Action", "Outcome"), "Nobody has done anything yet.")


@component
def LackingAnswers(model: Any) -> None:
    """Show by item why answers to the questionnaire that is the model's `world` are lacking, most first.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        world: Questionnaire = model.world
        lacking = sorted(world.lacking().items(), key=lambda item: -sum(item[1].values()))
    whys: tuple[Lack, ...] = ("out_of_range", "unparsable", "missing")
    rows = [Row((label, *(f"{lacks.get(why, 0)}" for why in whys))) for label, lacks in lacking[:MAX_ITEMS]]
    columns = ("Item", "Not among the choices", "Not readable", "Missing")
    nothing = "Every item asked so far has an answer."
    Markup("table.html", columns=columns, rows=rows, more=len(lacking) - len(rows), nothing=nothing)


@component
def _Table(
    model: LLMModel,
    read: Callable[[], pd.DataFrame],
    row: Callable[[dict[str, Any]], Row],
    columns: tuple[str, ...],
    nothing: str,
) -> None:
    update_counter.get()
    table = None
    with suppress(ConfigError), steady(model):  # Reset may just have closed it: the next drawing shows the new model
        table = read()
    if table is None:
        return
    rows = [row(fields) for fields in records(table.tail(ROWS).iloc[::-1])]
    Markup("table.html", columns=columns, rows=rows, more=len(table) - len(rows), nothing=nothing)


def event_row(fields: dict[str, Any]) -> Row:
    """Write an event as a row: step, where, what."""
    text = fields["text"] or f"{fields['kind']} {fields['facts']}"
    return Row((str(fields["time"]), fields["source"], shortened(text)))


def action_row(fields: dict[str, Any], names: dict[int, str]) -> Row:
    """Write an action as a row: step, who, what, what came of it.

    Args:
        fields: The row of the run log.
        names: Names of agents by their number.
    """
    agent_name = names.get(fields["agent"]) or f"agent {fields['agent']}"
    result = json.loads(fields["result"])
    text = result if isinstance(result, str) else fields["result"]
    action_text = call_text(fields["action"], json.loads(fields["arguments"]))
    return Row((str(fields["time"]), agent_name, action_text, shortened(text)), "" if fields["ok"] else "failed")
