"""The page of Schelling's town: `mesa-llm app models/mesa_llm_models/classics/schelling/app.py`."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, LegendEntry, SpaceScene
from mesa_llm.viz.render import measure_chart, steps_of
from mesa_llm_models.classics.charts import classic_page, grid_scene, in_cell
from mesa_llm_models.classics.schelling.model import SchellingModel


def town(model: SchellingModel) -> SpaceScene:
    """Draw the residents: a disc who is content, a cross who is not."""
    look: dict[bool, dict[str, Any]] = {True: {"radius": 0.4, "shape": "o"}, False: {"radius": 0.42, "shape": "X"}}
    homes = [
        in_cell(agent, COLOURS[1] if agent.colour == "orange" else COLOURS[0], **look[agent.is_happy])
        for agent in model.agents
    ]
    return grid_scene(
        model,
        homes,
        [
            LegendEntry(text="orange, content", colour=COLOURS[1], shape="o"),
            LegendEntry(text="blue, content", colour=COLOURS[0], shape="o"),
            LegendEntry(text="cross: too few neighbours of its own colour", colour=GREY, shape="X"),
        ],
    )


def likeness_chart(model: SchellingModel) -> Chart:
    """Return how segregated the town is over steps."""
    return measure_chart(model, "likeness", title="Neighbours of one's own colour, mean share", unit="share", high=1)


def happy_chart(model: SchellingModel) -> Chart:
    """Return the share of happy residents over steps."""
    points = steps_of(model, "happy")
    n_residents = max(1, len(model.agents))
    points["values"] = [None if value is None else value / n_residents for value in points["values"]]
    return Chart(title="Share of happy people", series=[ChartSeries(**points)], unit="share", high=1)


DRAWINGS = (
    town,
    likeness_chart,
    happy_chart,
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(SchellingModel, "Schelling: segregation", DRAWINGS, size=20)
