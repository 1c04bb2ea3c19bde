"""Figures of an economy: work, prices, goods, and where the money is."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from mesa_llm.charts import COLOURS, GREY, Figure, legend_below, marker, sheet, stacked
from mesa_llm_models.economy.model import EconomyModel

CENTS = StrMethodFormatter("${x:,.2f}")


def work_figure(model: EconomyModel) -> Figure:
    """Draw the employment rate and the tax on sales."""
    table = model.datacollector.get_model_vars_dataframe()
    figure, axes = sheet("People with work, and the tax on sales")
    _line(axes, table["employment_rate"], COLOURS[0], "employment rate")
    _line(axes, table["tax_rate"], COLOURS[4], "tax rate", drawstyle="steps-post")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return _finished(figure, axes, len(table))


def price_figure(model: EconomyModel) -> Figure:
    """Draw the average price of a good, and the wage at the start."""
    table = model.datacollector.get_model_vars_dataframe()
    figure, axes = sheet("Price of a good, and wage in a step")
    _line(axes, table["average_price"].where(table["average_price"] > 0), COLOURS[1], "average price")
    if not model.world.is_original:
        axes.axhline(model.world.parameters.wage, color=GREY, lw=1.4, ls="--", label="wage at the start")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(CENTS)
    return _finished(figure, axes, len(table))


def goods_figure(model: EconomyModel) -> Figure:
    """Draw the goods made in a step, and the goods unsold."""
    table = model.datacollector.get_model_vars_dataframe()
    figure, axes = sheet("Goods made in a step, and goods unsold")
    _line(axes, table["total_output"], COLOURS[2], "made")
    _line(axes, table["unsold"], COLOURS[6], "unsold")
    axes.set_ylim(0, max(1.0, 1.05 * max(table["total_output"].max(), table["unsold"].max())))
    return _finished(figure, axes, len(table))


def money_figure(model: EconomyModel) -> Figure:
    """Draw the money of households, firms and the government."""
    table = model.datacollector.get_model_vars_dataframe()
    parts = {
        "households": table["households_money"],
        "firms": table["firms_money"],
        "government": table["government_money"],
    }
    return stacked(f"Where the money is: ${model.money:,.0f} in all", parts, (COLOURS[2], COLOURS[0], COLOURS[4]))


def _line(axes: Any, values: Any, colour: str, label: str, **style: Any) -> None:
    axes.plot(range(len(values)), values, color=colour, lw=2.4, ms=4, marker=marker(values), label=label, **style)


def _finished(figure: Figure, axes: Any, steps: int) -> Figure:
    axes.set_xlim(0, max(steps - 1, 1))
    legend_below(axes, 3)
    return figure
