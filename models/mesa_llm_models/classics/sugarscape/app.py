"""The page of sugarscape: `mesa-llm app models/mesa_llm_models/classics/sugarscape/app.py`."""

from __future__ import annotations

from mesa_llm.charts import COLOURS, GREY, LegendEntry, SpaceScene
from mesa_llm_models.classics.charts import classic_page, grid_scene, in_cell, measured
from mesa_llm_models.classics.sugarscape.model import SugarModel

PASTURES = ("#f7fcf5", "#d5efcf", "#9ed798", "#55b567", "#1d8641")
"""Colours of a cell with 0, 1, 2, 3, and 4 or more units of sugar and spice."""


def hills(model: SugarModel) -> SpaceScene:
    """Draw the traders on what grows."""
    rows, columns = model.grid.dimensions
    yields = [model.grid[row, column] for row in range(rows) for column in range(columns)]
    fills = [PASTURES[min(4, int(cell.sugar) + int(cell.spice))] for cell in yields]
    return grid_scene(
        model,
        [in_cell(trader, COLOURS[4]) for trader in model.agents],
        [
            LegendEntry(text="trader", colour=COLOURS[4], shape="o"),
            LegendEntry(text="no sugar or spice", colour=PASTURES[0], edge=GREY),
            LegendEntry(text="4 or more units of them", colour=PASTURES[4]),
        ],
        fills,
    )


DRAWINGS = (
    hills,
    measured("traders"),
    measured("price"),
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(SugarModel, "Sugarscape with traders", DRAWINGS)
