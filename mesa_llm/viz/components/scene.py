"""A scene in the browser: a click on an agent or a cell opens the inspector, or says what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple, cast

import solara
from mesa.discrete_space import Cell
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.charts.palette import DARK_OF
from mesa_llm.charts.scenes import MAX_NAMES, SpaceScene, outline_text, short_name
from mesa_llm.text import counted
from mesa_llm.viz.components.markup import Clickable, styled
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.downloads import Download
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.session.rw_lock import steady

MAX_FOUND = 30
"""Maximum number of agents of a cell that are named."""


MAX_FACT = 40
"""Maximum number of characters of a text that is shown of an agent without a mind."""


@solara.component_vue("scene.vue")
def _Scene(
    name: str,
    ground: dict[str, Any],
    colours: list[str],
    fills: list[int],
    ties: list[Any],
    new_ties: list[Any],
    marks: list[Any],
    dark_colours: dict[str, str],
    event_pick: Callable[[int], None] | None = None,
    event_pick_cell: Callable[[int], None] | None = None,
) -> None:
    """Draw a scene; see `scene.vue`."""


class Found(NamedTuple):
    """What a visitor has found at a place of a scene."""

    title: str
    """The place."""

    facts: str
    """What is known of it; empty: nothing."""

    agents: list[tuple[int, str]]
    """Id and name of each agent there that the inspector can show."""

    nobody: str
    """What is said if there are none."""


@component
def SceneView(scene: SpaceScene, model: Any, downloads: Sequence[Download] = (), *, can_inspect: bool = True) -> None:
    """Draw a scene in the browser, with files to download.

    A click on an agent with a mind, or on a cell that holds just one, opens the inspector; a click on any other agent
    or cell says below the scene what is there.

    Args:
        scene: The scene.
        model: The model that it shows.
        downloads: Files to offer.
        can_inspect: Whether the page has an inspector of this model's agents.
    """
    page = use_page(model)
    place, look_at = use_state(cast("tuple[Any, str, int]", (model, "", 0)))

    def pick(kind: str, number: Any) -> None:
        if type(number) is not int:
            return
        with steady(model):
            found = _found(scene, model, kind, number)
        if can_inspect and found is not None and len(found.agents) == 1:
            page.inspect_agent(found.agents[0][0])
        look_at((model, kind, number))

    drawn = use_memo(lambda: _drawn(scene), [scene])
    with styled():
        _Scene(
            name=scene.title or "Space",
            dark_colours=dict(DARK_OF),
            event_pick=lambda number: pick("agent", number),
            event_pick_cell=lambda number: pick("cell", number),
            **drawn,
        )
        if place[0] is model and place[1]:
            with steady(model):
                found = _found(scene, model, place[1], place[2])
            if found is not None:
                found = found if can_inspect else found._replace(agents=[])
                Clickable("cell.html", model, **found._asdict())
        if downloads:
            Picture(scene.title or "Space", downloads, is_plot=True)


def _drawn(scene: SpaceScene) -> dict[str, Any]:
    """Return a scene as values that a browser can read; what stays the same from step to step is in `ground`."""
    colours: dict[str, int] = {}
    shapes: dict[str, int] = {}

    def number(table: dict[str, int], value: str) -> int:
        return table.setdefault(value, len(table)) if value else -1

    fills = [number(colours, colour) for colour in scene.fills]
    n_names = sum(bool(each.name) for each in scene.agents)
    has_names = scene.has_names and n_names <= MAX_NAMES
    marks = [
        (
            each.agent.unique_id,
            each.name or f"{type(each.agent).__name__} {each.agent.unique_id}",
            round(each.x, 4),
            round(each.y, 4),
            round(each.radius, 4),
            number(colours, each.colour),
            shapes.setdefault(outline_text(each.shape), len(shapes)),
            number(colours, each.edge),
            each.alpha,
            short_name(each.agent) if has_names and each.name else "",
        )
        for each in scene.agents
    ]
    ground = {
        "title": scene.title,
        "note": scene.note,
        "width": scene.width,
        "height": scene.height,
        "columns": scene.columns,
        "rows": len(scene.cells) // scene.columns if scene.columns else 0,
        "polygons": [[list(corner) for corner in corners] for corners in scene.polygons],
        "hasCells": bool(scene.cells),
        "hasNames": has_names,
        "shapes": list(shapes),
        "texts": [list(text) for text in scene.texts],
        "legend": [
            {"text": each.text, "colour": each.colour, "shape": outline_text(each.shape), "edge": each.edge}
            for each in scene.legend
        ],
    }
    ties, new_ties = ([tuple(round(end, 4) for end in tie) for tie in each] for each in (scene.ties, scene.new_ties))
    drawn = {"fills": fills, "ties": ties, "new_ties": new_ties, "marks": marks}
    return {"ground": ground, "colours": list(colours), **drawn}


def _found(scene: SpaceScene, model: Any, kind: str, number: int) -> Found | None:
    """Return what is at a place of a scene; None: there is no such place now."""
    if kind == "agent":
        agent = next((each.agent for each in scene.agents if each.agent.unique_id == number), None)
        if agent is None or agent.model is None:
            return None
        is_minded = bool(getattr(agent, "is_minded", False))  # what it knows is the inspector's to show
        agents, facts = ([(number, option_label(agent))], "") if is_minded else ([], _facts(vars(agent)))
        return Found(f"{type(agent).__name__} {number}", facts, agents, "")
    if not 0 <= number < len(scene.cells):
        return None
    cell = scene.cells[number]
    if isinstance(cell, Cell):
        coordinate: Any = cell.coordinate
        residents: list[Any] = list(cell.agents)
        layers: Any = getattr(getattr(model, "grid", None), "_mesa_property_layers", {})
        facts = _facts({name: getattr(cell, name) for name in layers if name != "empty"})
    else:
        coordinate, facts = cell, ""
        residents = list(model.grid.get_cell_list_contents([cell]))
    minded = [agent for agent in residents if getattr(agent, "is_minded", False)]
    others = len(residents) - len(minded)
    facts = ", ".join(filter(None, (facts, counted(others, f"{'other ' * bool(minded)}agent") if others else "")))
    place = ", ".join(map(str, coordinate)) if isinstance(coordinate, tuple) else str(coordinate)
    named = [(agent.unique_id, option_label(agent)) for agent in minded[:MAX_FOUND]]
    return Found(f"Cell {place}", facts, named, "" if others else "Nobody is here.")


def _facts(values: dict[str, Any]) -> str:
    """Write the numbers and short texts among values."""
    shown = {
        name: value
        for name, value in values.items()
        if not name.startswith("_") and name != "unique_id" and isinstance(value, str | Real)
    }
    return ", ".join(f"{label_of(name).lower()} {_fact_text(value)}" for name, value in shown.items())


def _fact_text(value: str | Real) -> str:
    if isinstance(value, str):
        return value if len(value) <= MAX_FACT else f"{value[: MAX_FACT - 1]}…"
    return ("no", "yes")[value] if value is True or value is False else f"{float(value):.4g}"
