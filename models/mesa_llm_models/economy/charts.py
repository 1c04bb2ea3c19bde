"""Charts of an economy: work, prices, goods, and where the money is."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.viz.render import steps_of
from mesa_llm_models.economy.model import EconomyModel


def work_chart(model: EconomyModel) -> Chart:
    """Return the employment rate and the tax on sales."""
    tax: dict[str, Any] = {"name": "tax rate", "colour": COLOURS[4], "is_stepped": True}
    series = [
        ChartSeries(name="employment rate", colour=COLOURS[0], **steps_of(model, "employment_rate")),
        ChartSeries(**tax, **steps_of(model, "tax_rate")),
    ]
    return Chart(title="People with work, and the tax on sales", series=series, unit="share", high=1)


def price_chart(model: EconomyModel) -> Chart:
    """Return the average price of a good, and the wage at the start."""
    points = steps_of(model, "average_price")
    points["values"] = [value or None for value in points["values"]]  # without a sale there is no price
    series = [ChartSeries(name="average price", colour=COLOURS[1], **points)]
    if not model.world.is_original:
        wage: dict[str, Any] = {"name": "wage at the start", "colour": GREY, "is_dashed": True}
        series.append(ChartSeries(values=[model.world.parameters.wage], kind="level", **wage))
    return Chart(title="Price of a good, and wage in a step", series=series, unit="dollars")


def goods_chart(model: EconomyModel) -> Chart:
    """Return the goods made in a step, and the goods unsold."""
    drawn = (("total_output", "made", COLOURS[2]), ("unsold", "unsold", COLOURS[6]))
    series = [ChartSeries(name=label, colour=colour, **steps_of(model, name)) for name, label, colour in drawn]
    return Chart(title="Goods made in a step, and goods unsold", series=series)


def money_chart(model: EconomyModel) -> Chart:
    """Return the money of households, firms and the government."""
    owners = zip(("households", "firms", "government"), (COLOURS[2], COLOURS[0], COLOURS[4]), strict=True)
    series = [
        ChartSeries(name=name, colour=colour, kind="area", **steps_of(model, f"{name}_money"))
        for name, colour in owners
    ]
    title = f"Where the money is: ${model.money:,.0f} in all"
    return Chart(title=title, series=series, is_stacked=True, unit="dollars")
