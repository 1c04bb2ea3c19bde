"""The page of the economy: `mesa-llm app models/mesa_llm_models/econ_agent/app.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, Row, drawn_by, steady, table_of
from mesa_llm_models.econ_agent import charts
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.econ_agent.scores import comparable

OKUN = Path(__file__).parent / "templates" / "okun.html"


def showing(draw: Callable[[Any, EconAgentModel], None]) -> Any:
    """Return a component that draws a plot of the economy on Matplotlib axes."""

    def figure_of(model: EconAgentModel) -> Figure:
        figure = Figure(figsize=(7, 3.9))
        draw(figure.subplots(), model)
        return figure

    return drawn_by(figure_of)


@component
def Caveat(model: EconAgentModel) -> None:
    """Explain why Okun's law cannot fail here, using the year's own figures.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        years = comparable(model.years)
    latest = years.tail(1).reset_index().to_dict("records")
    Markup(OKUN, year=latest[0] if latest else None)


def household_cells(model: EconAgentModel) -> list[Row]:
    """List the households, richest first."""
    homes = model.world.household_table()
    homes["name"] = [household.config.name for household in model.households]
    return [
        Row(
            (
                f"{home['agent']} · {home['name']}",
                f"{home['age']}",
                home["job"],
                f"{home['skill']:.2f}",
                f"{home['coin']:,.0f}",
            ),
            agent=int(home["agent"]),
        )
        for home in homes.sort_values("coin", ascending=False, kind="stable").reset_index().to_dict("records")
    ]


HOUSEHOLDS = ("Household", "Age", "Job last month", "$ an hour", "Savings, $")


def collected(model: EconAgentModel) -> pd.DataFrame:
    """Return the collected measures of the model, one row per month."""
    return model.datacollector.get_model_vars_dataframe()


prices = showing(lambda axes, model: charts.draw_prices(axes, collected(model)))
unemployment = showing(lambda axes, model: charts.draw_unemployment(axes, collected(model), model.years))
output = showing(lambda axes, model: charts.draw_output(axes, collected(model)))
phillips = showing(lambda axes, model: charts.draw_phillips(axes, model.years))
real_okun = showing(lambda axes, model: charts.draw_okun(axes, model.years))
nominal_okun = showing(lambda axes, model: charts.draw_okun(axes, model.years, nominal=True))
savings = showing(lambda axes, model: charts.draw_savings(axes, model.world.household_table()))

page = LLMPage(
    EconAgentModel,
    components=[
        phillips,
        prices,
        unemployment,
        output,
        (Caveat, "Data", "Okun's law"),
        (real_okun, "Data"),
        (nominal_okun, "Data"),
        (
            table_of(household_cells, HOUSEHOLDS, nothing="There are no households.", max_rows=1000),
            "Data",
            "Households",
        ),
        (savings, "Data", "Savings"),
    ],
    name="Macroeconomy (EconAgent)",
)
