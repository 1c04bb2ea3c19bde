"""Figures of the economy: prices, work, output, the Phillips curve, Okun's law, and savings."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from mesa_llm.charts import COLOURS, GREY, LIGHT, frame, marker
from mesa_llm_models.econ_agent.scores import Regression, comparable, nominal_okun, okun, phillips
from mesa_llm_models.econ_agent.world import MONTHS_PER_YEAR, UNEMPLOYED, title_of

BLUE, ORANGE, GREEN, PURPLE, RED = COLOURS[:5]
PUBLISHED = {"GPT-3.5": (PURPLE, "^"), "Llama-2": ("#94a3b8", "s")}
"""Published model → colour and marker."""

DOLLARS = FuncFormatter(lambda amount, _: _amount_text(amount))


@cache
def published_points() -> pd.DataFrame:
    """Load the yearly values read from the authors' figures; see `data/SOURCE.md`."""
    path = resources.files("mesa_llm_models.econ_agent").joinpath("data", "published_years.csv")
    with resources.as_file(path) as file:
        return pd.read_csv(file)


def draw_prices(axes: Any, measures: pd.DataFrame) -> None:
    """Draw the price of the good and the mean wage, starting before the first month.

    Args:
        axes: Matplotlib axes.
        measures: The collected measures of the model, one row per month.
    """
    x, unit = _time(measures)
    style = {"lw": 2.2, "ms": 4, "marker": marker(list(measures.index))}
    axes.plot(x, measures["price"], color=BLUE, label="price, $ a good", **style)
    axes.plot(x, measures["mean_wage"], color=ORANGE, label="mean wage, $ an hour", **style)
    axes.yaxis.set_major_formatter(DOLLARS)
    _time_frame(axes, "Price and wages", unit)


def draw_unemployment(axes: Any, measures: pd.DataFrame, years: pd.DataFrame) -> None:
    """Draw unemployment by month and by year, and the interest rate.

    Args:
        axes: Matplotlib axes.
        measures: The collected measures of the model, one row per month.
        years: The yearly table.
    """
    x, unit = _time(measures)
    style = {"ms": 4, "marker": marker(list(measures.index))}
    axes.plot(x, measures["unemployment"], color=RED, lw=1, alpha=0.35, label="out of work, month", **style)
    if len(years):
        edges = np.arange(len(years) + 1) * MONTHS_PER_YEAR / unit
        axes.stairs(years["unemployment"], edges, baseline=None, color=RED, lw=2.4, label="year")
    rate = measures["interest_rate"]
    axes.plot(x, rate, color=GREEN, lw=2, drawstyle="steps-post", label="interest rate", **style)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylim(bottom=0)
    _time_frame(axes, "Unemployment and interest", unit)


def draw_output(axes: Any, measures: pd.DataFrame) -> None:
    """Draw each month's output, at current and initial prices.

    Args:
        axes: Matplotlib axes.
        measures: The collected measures of the model, one row per month.
    """
    months = measures.iloc[1:]
    if months.empty:
        axes.text(0.5, 0.5, "nothing is made before the first month", color=GREY, ha="center", transform=axes.transAxes)
    x, unit = _time(months)
    style = {"lw": 2.2, "ms": 4, "marker": marker(list(months.index))}
    axes.plot(x, months["nominal_gdp"], color=BLUE, label="nominal, $ a month", **style)
    axes.plot(x, months["real_gdp"], color=GREEN, label="real, at the first price", **style)
    axes.yaxis.set_major_formatter(DOLLARS)
    axes.set_ylim(bottom=0)
    _time_frame(axes, "Output (GDP)", unit)


def draw_phillips(axes: Any, years: pd.DataFrame, *, compare: bool = True) -> None:
    """Draw the Phillips curve: one point per year from the second, with its line, and published points behind.

    Args:
        axes: Matplotlib axes.
        years: The yearly table.
        compare: Whether to show the published points.
    """
    for model, (colour, shape) in PUBLISHED.items() if compare else ():
        points = published_points().query("model == @model")
        axes.scatter(
            points["unemployment"], points["wage_inflation"], s=26, color=colour, marker=shape, alpha=0.55, label=model
        )
    late = years.iloc[1:]
    axes.scatter(late["unemployment"], late["wage_inflation"], s=60, color=BLUE, zorder=3, label="this run")
    _line(axes, late["unemployment"], phillips(years))
    axes.axhline(0, color=GREY, lw=0.8)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylabel("wage inflation", color=GREY)
    _frame(axes, f"Phillips curve{_fit_text(phillips(years))}", "unemployment in a year")


def draw_okun(axes: Any, years: pd.DataFrame, *, nominal: bool = False) -> None:
    """Draw Okun's law: growth of output against growth of unemployment, for years after one with unemployment.

    Args:
        axes: Matplotlib axes.
        years: The yearly table.
        nominal: Whether to use nominal output, which accounting does not force, instead of real output.
    """
    years = comparable(years)
    fit, column = (nominal_okun(years), "nominal_growth") if nominal else (okun(years), "real_growth")
    axes.scatter(years["unemployment_growth"], years[column], s=60, color=ORANGE if nominal else BLUE, zorder=3)
    _line(axes, years["unemployment_growth"], fit)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.axvline(0, color=GREY, lw=0.8)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    kind = "nominal" if nominal else "real"
    axes.set_ylabel(f"growth of {kind} output", color=GREY)
    _frame(axes, f"Okun's law, {kind} output{_fit_text(fit)}", "growth of unemployment")


def draw_savings(axes: Any, homes: pd.DataFrame) -> None:
    """Draw all households' savings, poorest to richest, by whether they worked last month.

    Args:
        axes: Matplotlib axes.
        homes: A world's household table.
    """
    ranked = homes.sort_values("coin", kind="stable")
    works = (ranked["job"] != title_of(UNEMPLOYED)).to_numpy()
    for is_at_work, colour, label in ((True, BLUE, "at work last month"), (False, ORANGE, "out of work")):
        heights = np.where(works == is_at_work, ranked["coin"], 0.0)
        axes.bar(np.arange(len(ranked)), heights, color=colour, width=0.85, label=label)
    axes.yaxis.set_major_formatter(DOLLARS)
    axes.set_xticks([])
    _frame(axes, "Savings, $", "households, poorest to richest")


def _line(axes: Any, x: Any, fit: Regression) -> None:
    """Draw a fitted line over the range of the points."""
    finite = x[np.isfinite(x)]
    if np.isfinite(fit.slope) and len(finite):
        ends = np.array([finite.min(), finite.max()])
        axes.plot(ends, fit.intercept + fit.slope * ends, color=GREY, lw=2)


def _fit_text(fit: Regression) -> str:
    return f": r = {fit.r:+.2f} over {fit.points} years" if np.isfinite(fit.r) else ": r after four years"


def _amount_text(amount: float) -> str:
    for unit, name in ((1e9, "bn"), (1e6, "m"), (1e3, "k")):
        if abs(amount) >= unit:
            return f"{amount / unit:g}{name}"
    return f"{amount:g}"


def _time(measures: pd.DataFrame) -> tuple[Any, int]:
    """Return the time of each row and its unit in months: one month, or one year after two years."""
    unit = MONTHS_PER_YEAR if len(measures) > 2 * MONTHS_PER_YEAR else 1
    return measures.index.to_numpy() / unit, unit


def _time_frame(axes: Any, title: str, unit: int) -> None:
    _frame(axes, title, "month" if unit == 1 else "year")
    if len(axes.get_xticks()):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _frame(axes: Any, title: str, xlabel: str) -> None:
    if np.isneginf(axes.dataLim.width):  # no data yet, so no ticks
        axes.set(xlim=(0, 1), xticks=[], yticks=[])
    is_named = bool(axes.get_legend_handles_labels()[0])
    frame(axes, title, legend=is_named, fontsize=9)
    axes.set_xlabel(xlabel, color=GREY)
    axes.grid(color=LIGHT)
