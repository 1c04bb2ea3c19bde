"""The page of the economy: `solara run models/econ_agent/app.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, drawn_by, steady
from mesa_llm.worlds.macro.indicators import comparable
from models.econ_agent import plots
from models.econ_agent.agents import POLICIES
from models.econ_agent.model import EconAgentModel

OKUN, HOMES = (Path(__file__).parent / "templates" / name for name in ("okun.html", "homes.html"))


def showing(draw: Callable[[Any, EconAgentModel], None]) -> Any:
    """Make a component of what draws something of the economy on Matplotlib axes."""

    def figure_of(model: EconAgentModel) -> Figure:
        figure = Figure(figsize=(7, 3.9))
        draw(figure.subplots(), model)
        return figure

    return drawn_by(figure_of)


@component
def Caveat(model: EconAgentModel) -> None:
    """Say why Okun's law cannot fail here, with the year's own figures.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        years = comparable(model.years)
    latest = years.tail(1).reset_index().to_dict("records")
    Markup(OKUN, year=latest[0] if latest else None)


@component
def Homes(model: EconAgentModel) -> None:
    """Show who the households are, richest first.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        homes = model.world.household_table()
    homes["name"] = [household.config.name for household in model.households]
    Markup(HOMES, homes=homes.sort_values("coin", ascending=False, kind="stable").reset_index().to_dict("records"))


def draw_unemployment(axes: Any, model: EconAgentModel) -> None:
    """Draw unemployment and interest."""
    plots.draw_unemployment(axes, model.months, model.years, len(model.households))


model_params = {
    "n_agents": {"type": "SliderInt", "label": "Households", "value": 50, "min": 1, "max": 200, "step": 1},
    "policy": {"type": "Select", "label": "Rule of the households", "value": "composite", "values": list(POLICIES)},
    "tax": {"type": "Select", "label": "Income tax", "value": "us", "values": ["us", "flat", "none"]},
    "flat_rate": {"type": "SliderFloat", "label": "Flat tax rate", "value": 0.2, "min": 0.0, "max": 0.9, "step": 0.05},
    "max_price_change": {
        "type": "SliderFloat",
        "label": "Most the price moves in a month",
        "value": 0.1,
        "min": 0.0,
        "max": 0.5,
        "step": 0.01,
    },
    "max_wage_change": {
        "type": "SliderFloat",
        "label": "Most a wage moves in a month",
        "value": 0.05,
        "min": 0.0,
        "max": 0.5,
        "step": 0.01,
    },
    "inflation_target": {
        "type": "SliderFloat",
        "label": "Inflation the bank aims at",
        "value": 0.02,
        "min": 0.0,
        "max": 0.1,
        "step": 0.005,
    },
    "reflect_every": {
        "type": "SliderInt",
        "label": "Months between reflections (0: none)",
        "value": 3,
        "min": 0,
        "max": 12,
        "step": 1,
    },
    "rules": {"type": "Select", "label": "Economy", "value": "corrected", "values": ["corrected", "original"]},
}

prices = showing(lambda axes, model: plots.draw_prices(axes, model.months))
unemployment = showing(draw_unemployment)
output = showing(lambda axes, model: plots.draw_output(axes, model.months, model.world.economy.prices[0]))
phillips = showing(lambda axes, model: plots.draw_phillips(axes, model.years))
real_okun = showing(lambda axes, model: plots.draw_okun(axes, model.years))
nominal_okun = showing(lambda axes, model: plots.draw_okun(axes, model.years, nominal=True))
savings = showing(lambda axes, model: plots.draw_savings(axes, model.world.household_table()))

page = LLMPage(
    EconAgentModel,
    model_params=model_params,
    components=[
        phillips,
        prices,
        unemployment,
        output,
        (Caveat, "Okun's law"),
        (real_okun, "Okun's law"),
        (nominal_okun, "Okun's law"),
        (Homes, "Households"),
        (savings, "Savings"),
    ],
    name="Macroeconomy (EconAgent)",
)
