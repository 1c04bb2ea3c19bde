"""The page of the economy: `mesa-llm app models/mesa_llm_models/econ_agent/app.py`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, Row, drawn_by, steady, table_of
from mesa_llm_models.econ_agent import charts
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.econ_agent.scores import comparable

OKUN = Path(__file__).parent / "templates" / "okun.html"


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


prices = drawn_by(lambda model: charts.prices_chart(collected(model)))
unemployment = drawn_by(lambda model: charts.unemployment_chart(collected(model), model.years))
output = drawn_by(lambda model: charts.output_chart(collected(model)))
phillips = drawn_by(lambda model: charts.phillips_chart(model.years))
real_okun = drawn_by(lambda model: charts.okun_chart(model.years))
nominal_okun = drawn_by(lambda model: charts.okun_chart(model.years, nominal=True))
savings = drawn_by(lambda model: charts.savings_chart(model.world.household_table()))

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
