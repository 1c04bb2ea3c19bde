"""The page of culture: `mesa-llm app models/mesa_llm_models/classics/culture/app.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mesa_llm.charts import COLOURS, GREY, LegendEntry, SpaceScene
from mesa_llm_models.classics.charts import classic_page, grid_scene, in_cell, measured
from mesa_llm_models.classics.culture.model import CultureModel, shared


def village(model: CultureModel) -> SpaceScene:
    """Draw the villagers, like colours for like habits, and borders between different ones."""
    fields = model.scenario

    def colour_of(villager: Any) -> str:
        kinds = [(trait + 0.5) / fields.traits for trait in villager.habits[:3]]
        return "#" + "".join(f"{round(255 * (0.35 + 0.65 * kind)):02x}" for kind in [*kinds, 1.0, 1.0][:3])

    borders: list[tuple[float, float, float, float]] = []
    for one, other in model.pairs:
        if shared(one, other) == fields.features:
            continue
        (row, column), (down, right) = one.cell.coordinate, other.cell.coordinate
        y, x, tall, wide = (row + down + 1) / 2, (column + right + 1) / 2, abs(right - column) / 2, abs(down - row) / 2
        borders.append((x - wide, y - tall, x + wide, y + tall))
    villagers = [in_cell(villager, colour_of(villager), radius=0.4, shape="s") for villager in model.villagers]
    scene = grid_scene(
        model,
        villagers,
        [
            LegendEntry(text="like colours: like habits", colour=COLOURS[6], shape="s"),
            LegendEntry(text="line: other habits on the other side", colour=GREY),
        ],
    )
    return replace(scene, ties=borders)


DRAWINGS = (
    village,
    measured("regions"),
    measured("largest", high=1),
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(CultureModel, "The spread of culture", DRAWINGS)
