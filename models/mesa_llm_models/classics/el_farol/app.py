"""The page of the El Farol problem: `mesa-llm app models/mesa_llm_models/classics/el_farol/app.py`."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, Chart, ChartSeries
from mesa_llm_models.classics.charts import classic_page, measured
from mesa_llm_models.classics.el_farol.model import FarolModel


def evenings_chart(model: FarolModel) -> Chart:
    """Return how many came to the bar in each week, from those before the first step on."""
    past = list(model.attendances)
    weeks = [float(week) for week in range(1 - model.n_drawn, len(past) - model.n_drawn + 1)]
    crowd: dict[str, Any] = {"name": "crowded from here on", "colour": COLOURS[4], "is_dashed": True}
    series = [
        ChartSeries(name="came", values=past, at=weeks, colour=COLOURS[0]),
        ChartSeries(values=[model.crowded] * len(weeks), at=weeks, **crowd),
    ]
    note = "Weeks up to 0 lie before the first step."
    return Chart(title="People at the bar", series=series, x="Week", high=model.scenario.n_agents, note=note)


DRAWINGS = (
    evenings_chart,
    measured("satisfied", high=1),
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(FarolModel, "The El Farol problem", DRAWINGS)
