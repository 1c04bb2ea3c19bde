"""Says in words how the economy went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mesa_llm.memory import WindowMemory
from mesa_llm.text import one_line
from mesa_llm.worlds.macro.indicators import nominal_okun, okun, phillips
from mesa_llm.worlds.macro.view import date_of

if TYPE_CHECKING:
    from models.econ_agent.model import EconAgentModel

MOST_YEARS = 20
"""Most years that are told one by one."""


def tell(model: EconAgentModel) -> str:
    """Tell of years, prices, work, the two laws, inequality, and a thought if there was one.

    Args:
        model: The model, after a run.
    """
    economy = model.world.economy
    if not economy.months:
        return "No month has passed yet."
    first, last, gap = economy.prices[0], economy.price, model.inequality
    date = date_of(economy.month, economy.parameters.first_year)
    lines = [
        f"What happened until the end of {date}, month {economy.month}, to {len(model.households)} households:",
        f"The good cost ${first:.2f} at first, and now ${last:.2f}. The mean wage is ${model.mean_wage:.2f} an hour.",
        f"Last month {model.unemployment:.0%} had no work; {economy.goods:,.0f} goods are unsold.",
        *_years(model),
        *_laws(model),
        f"Savings of all: ${economy.households.coin.sum():,.0f}"
        + ("." if np.isnan(gap) else f"; their inequality (Gini): {gap:.2f}."),
        f"Interest: {economy.interest_rate:.2%} a year.",
    ]
    absent = sum(month.undecided for month in economy.months)
    if absent:
        lines.append(f"{absent} plans are missing: those households stayed at home that month and bought nothing.")
    return "\n".join([*lines, *_thought(model)])


def _years(model: EconAgentModel) -> list[str]:
    years = model.years
    shown = years.tail(MOST_YEARS)
    told = [f"(The first {len(years) - len(shown)} years are left out.)"] if len(shown) < len(years) else []
    for year, row in shown.iterrows():
        change = row["price_inflation"]
        moved = "" if np.isnan(change) else f", prices {change:+.1%}, wages {row['wage_inflation']:+.1%}"
        told.append(f"Year {year}: unemployment {row['unemployment']:.1%}, real output ${row['real_gdp']:,.0f}{moved}")
    return told


def _laws(model: EconAgentModel) -> list[str]:
    years = model.years
    curve, law, nominal = phillips(years), okun(years), nominal_okun(years)
    if np.isnan(curve.r) or np.isnan(law.r):
        return ["The Phillips curve and Okun's law need four years that differ in unemployment."]
    return [
        f"Phillips curve, wage inflation on unemployment: r = {curve.r:+.2f} (p = {curve.p:.2g}) over {curve.points} "
        "years. Published: -0.62 for GPT-3.5, above 0 for rules.",
        f"Okun's law: r = {law.r:+.2f}; this one is bookkeeping, as output is made by those at work alone. "
        f"In nominal output, which could be otherwise, r = {nominal.r:+.2f}.",
    ]


def _thought(model: EconAgentModel) -> list[str]:
    """Give the latest thought that somebody remembers."""
    for household in model.households:
        if household.reflects and isinstance(household.memory, WindowMemory):
            thoughts = [entry for entry in household.memory.entries if entry.kind == "thought"]
            if thoughts:
                last = thoughts[-1]
                return [f"{household.config.name} thought in month {last.time}: {one_line(last.text, 300)}"]
    return []
