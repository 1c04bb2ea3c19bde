"""The page of the Boltzmann wealth model: `mesa-llm app models/mesa_llm_models/classics/boltzmann_wealth/app.py`."""

from __future__ import annotations

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, LegendEntry, SpaceScene
from mesa_llm.viz.render import option_label
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.charts import classic_page, grid_scene, in_cell, measured


def walkers(model: WealthModel) -> SpaceScene:
    """Draw the people, the larger the richer."""
    walkers = [
        in_cell(walker, COLOURS[6] if walker.wealth else GREY, radius=min(0.45, 0.16 + 0.07 * walker.wealth**0.5))
        for walker in model.agents
    ]
    return grid_scene(
        model,
        walkers,
        [
            LegendEntry(text="has coins: the larger, the more", colour=COLOURS[6], shape="o"),
            LegendEntry(text="has none", colour=GREY, shape="o"),
        ],
    )


def purses_chart(model: WealthModel) -> Chart:
    """Return the coins of everybody, richest first."""
    ranked = sorted(model.agents, key=lambda walker: -walker.wealth)
    coins = ChartSeries(
        values=[walker.wealth for walker in ranked],
        kind="bar",
        colour=COLOURS[6],
        labels=[option_label(walker) for walker in ranked],
        agents=[walker.unique_id for walker in ranked],
    )
    return Chart(title="Coins of each person, richest first", series=[coins], x="People", y="coins")


DRAWINGS = (
    walkers,
    purses_chart,
    measured("gini", high=1),
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(WealthModel, "Boltzmann wealth", DRAWINGS)
