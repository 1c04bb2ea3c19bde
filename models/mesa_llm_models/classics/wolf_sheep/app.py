"""The page of wolves and sheep: `mesa-llm app models/mesa_llm_models/classics/wolf_sheep/app.py`."""

from __future__ import annotations

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, LegendEntry, SpaceScene
from mesa_llm.viz.render import steps_of
from mesa_llm_models.classics.charts import classic_page, grid_scene, in_cell
from mesa_llm_models.classics.wolf_sheep.model import MeadowModel, Sheep

SHEEP, WOLF = "#f8fafc", "#111827"
"""Colours of sheep and wolves."""

GRASS, EARTH = "#7cb36b", "#cdb892"
"""Colours of cells with grown grass and without."""


def meadow(model: MeadowModel) -> SpaceScene:
    """Draw the animals on grass and bare earth."""
    rows, columns = model.grid.dimensions
    cells = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    animals = [
        in_cell(animal, SHEEP, shape="o", edge=GREY)
        if isinstance(animal, Sheep)
        else in_cell(animal, WOLF, shape="^", radius=0.38, edge=SHEEP)
        for animal in model.agents
    ]
    return grid_scene(
        model,
        animals,
        [
            LegendEntry(text="sheep", colour=SHEEP, shape="o", edge=GREY),
            LegendEntry(text="wolf", colour=WOLF, shape="^", edge=SHEEP),
            LegendEntry(text="grass", colour=GRASS),
            LegendEntry(text="eaten bare", colour=EARTH),
        ],
        [GRASS if cell.regrowth == 0 else EARTH for cell in cells],
    )


def flocks_chart(model: MeadowModel) -> Chart:
    """Return the numbers of sheep, of wolves and of cells with grass over steps."""
    drawn = (
        ("sheep", "sheep", COLOURS[0]),
        ("wolves", "wolves", COLOURS[4]),
        ("grass", "cells with grass", COLOURS[2]),
    )
    series = [ChartSeries(name=label, colour=colour, **steps_of(model, name)) for name, label, colour in drawn]
    return Chart(title="Sheep, wolves and grass", series=series)


DRAWINGS = (
    meadow,
    flocks_chart,
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(MeadowModel, "Wolves and sheep", DRAWINGS)
