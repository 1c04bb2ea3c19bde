"""Tables of a run: events, actions, and missing answers to a questionnaire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.markup import Clickable
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.figures import first_step, numbers_of
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.mesa_adapter import runlog_of
from mesa_llm.viz.render.trace import Row, action_row, event_row
from mesa_llm.viz.session.rw_lock import steady

if TYPE_CHECKING:
    from mesa_llm.questionnaire import Lack, Questionnaire

ROWS = 30
"""Rows on one page of a table."""

MISSING = "–"
"""Text in place of a missing value."""

MAX_ITEMS = 100
"""Maximum number of items listed with missing answers."""


@component
def Table(model: Any, rows: Sequence[Row], columns: Sequence[str], nothing: str, more: int = 0) -> None:
    """Show rows as a table; a click on the row of an agent opens the agent.

    Args:
        model: The model.
        rows: The rows.
        columns: Titles of the columns.
        nothing: Text in place of a table without rows.
        more: Number of rows that are not shown.
    """
    Clickable("table.html", model, columns=columns, rows=rows, more=more, nothing=nothing)


@component
@llm_models_only
def EventLog(model: LLMModel) -> None:
    """Show the events in the model's worlds, newest first; a click on that of an agent opens the agent.

    Args:
        model: The model.
    """
    _Table(model, "events", event_row, ("Step", "World", "Event"), "No events yet.")


@component
def ActionTable(model: Any) -> None:
    """Show the actions of all agents with their outcomes, newest first.

    Args:
        model: The model.
    """
    names = {agent.unique_id: agent.config.name for agent in llm_agents(model)}

    def row(fields: dict[str, Any]) -> Row:
        return action_row(fields, names)

    _Table(model, "actions", row, ("Step", "Agent", "Action", "Outcome"), "No actions yet.")


@component
def MeasureTable(model: Any) -> None:
    """Show the measures that a model has collected, latest step first; what is missing is a dash.

    Args:
        model: The model.
    """
    update_counter.get()
    page, turn = use_state(0)
    with steady(model):
        numbers = numbers_of(model)[0]
        n_rows = max(map(len, numbers.values()), default=0)
        first = first_step(model, range(n_rows))
        indices = range(n_rows)[::-1][page * ROWS : (page + 1) * ROWS]
        rows = [
            Row((str(first + index), *(_measured(values, index) for values in numbers.values()))) for index in indices
        ]
    columns = ("Step", *map(label_of, numbers))
    Table(model, rows, columns, "No numbers collected yet. Press Step.")
    if n_rows > ROWS:
        Pager(page, n_rows, ROWS, turn)


def _measured(values: Sequence[Any], index: int) -> str:
    """Return a collected value as text; a dash if it is missing."""
    value = values[index] if index < len(values) else None
    return MISSING if value is None or value != value else f"{value:,.4g}"


@component
@llm_models_only
def MissingAnswers(model: Any) -> None:
    """Show the missing answers to the model's questionnaire (its `world`) by item and reason, most frequent first.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        world: Questionnaire = model.world
        lacking = sorted(world.lacking().items(), key=lambda item: -sum(item[1].values()))
    whys: tuple[Lack, ...] = ("out_of_range", "unparsable", "missing")
    rows = [Row((label, *(f"{lacks.get(why, 0)}" for why in whys))) for label, lacks in lacking[:MAX_ITEMS]]
    columns = ("Item", "Not an option", "Unreadable", "Missing")
    nothing = "No missing answers."
    Table(model, rows, columns, nothing, len(lacking) - len(rows))


@component
@llm_models_only
def GivenAnswers(model: Any) -> None:
    """Show the latest answers to the model's questionnaire (its `world`), each with the share of every possible one.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        world: Questionnaire = model.world
        given = world.tables()["answers"]
    names = ("administration", "agent", "item", "answer", "distribution")
    rows = [Row(tuple(str(one[name]) for name in names)) for one in reversed(given[-MAX_ITEMS:])]
    columns = ("Administration", "Agent", "Item", "Answer", "Share of each answer")
    Table(model, rows, columns, "No answers yet.", len(given) - len(rows))


def table_of(
    rows: Callable[[Any], Iterable[tuple[Any, ...]]], columns: Sequence[str], *, nothing: str, max_rows: int = 200
) -> Callable[[Any], Any]:
    """Return a component that shows a model as a table, up to date after each step.

    Args:
        rows: Lists the rows of a model, which is held still meanwhile: each a `Row`, or the texts of its cells.
        columns: Titles of the columns.
        nothing: Text in place of a table without rows.
        max_rows: Maximum number of rows that are shown, the first ones.

    A click on a `Row` that names an agent opens it in the inspector.
    """
    return lambda model: ModelTable(model, rows, columns, nothing, max_rows)


@component
def ModelTable(
    model: Any, rows: Callable[[Any], Iterable[tuple[Any, ...]]], columns: Sequence[str], nothing: str, max_rows: int
) -> None:
    """Show a model as a table; see `table_of`."""
    update_counter.get()
    with steady(model):
        listed = [row if isinstance(row, Row) else Row(row) for row in rows(model)]
    more = max(len(listed) - max_rows, 0)
    Table(model, listed[:max_rows], columns, nothing, more)


@component
def _Table(
    model: Any,
    name: str,
    row: Callable[[dict[str, Any]], Row],
    columns: tuple[str, ...],
    nothing: str,
) -> None:
    update_counter.get()
    page, turn = use_state(0)
    rows: list[dict[str, Any]] = []
    count = 0
    with suppress(ConfigError), steady(model):  # Reset may just have closed it; the next drawing shows the new model
        runlog = runlog_of(model)
        if runlog is not None:
            rows, count = runlog.latest(name, ROWS, page * ROWS)
    Table(model, [row(fields) for fields in rows], columns, nothing)
    if count > ROWS:
        Pager(page, count, ROWS, turn)


@component
def Pager(page: int, count: int, size: int, turn: Callable[[int], None]) -> None:
    """Let a visitor page through a table, latest rows first.

    Args:
        page: Index of the page.
        count: Total number of rows.
        size: Number of rows on a page.
        turn: Called with the page to show.
    """
    first = page * size + 1
    with solara.Row(gap="4px", style={"align-items": "center"}):
        solara.Button(
            "Newer", icon_name="mdi-chevron-left", on_click=lambda: turn(page - 1), disabled=page == 0, text=True
        )
        solara.Text(f"{first:,}–{min(first + size - 1, count):,} of {count:,}, latest first")
        is_last = first + size > count
        solara.Button(
            "Older", icon_name="mdi-chevron-right", on_click=lambda: turn(page + 1), disabled=is_last, text=True
        )
