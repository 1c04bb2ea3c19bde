"""Charts of the economy: prices, work, output, the Phillips curve, Okun's law, and savings."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from mesa_llm.charts import COLOURS, GREY, PALE, Chart, ChartSeries
from mesa_llm_models.econ_agent.scores import Regression, comparable, nominal_okun, okun, phillips
from mesa_llm_models.econ_agent.world import MONTHS_PER_YEAR, UNEMPLOYED, title_of

BLUE, ORANGE, GREEN, PURPLE, RED = COLOURS[:5]
PUBLISHED = {"GPT-3.5": PURPLE, "Llama-2": PALE}
"""Published model → colour."""


@cache
def published_points() -> pd.DataFrame:
    """Load the yearly values read from the authors' figures; see `data/SOURCE.md`."""
    path = resources.files("mesa_llm_models.econ_agent").joinpath("data", "published_years.csv")
    with resources.as_file(path) as file:
        return pd.read_csv(file)


def prices_chart(measures: pd.DataFrame) -> Chart:
    """Return the price of the good and the mean wage, starting before the first month.

    Args:
        measures: The collected measures of the model, one row per month.
    """
    at, unit = _time(measures)
    series = [
        ChartSeries(name="price, $ a good", values=_column(measures, "price"), at=at, colour=BLUE),
        ChartSeries(name="mean wage, $ an hour", values=_column(measures, "mean_wage"), at=at, colour=ORANGE),
    ]
    return Chart(title="Price and wages", series=series, x=unit, unit="dollars")


def unemployment_chart(measures: pd.DataFrame, years: pd.DataFrame) -> Chart:
    """Return unemployment by month and by year, and the interest rate.

    Args:
        measures: The collected measures of the model, one row per month.
        years: The yearly table.
    """
    at, unit = _time(measures)
    months: dict[str, Any] = {"name": "out of work, month", "colour": RED, "is_faint": True}
    rate: dict[str, Any] = {"name": "interest rate", "colour": GREEN, "is_stepped": True}
    series = [
        ChartSeries(values=_column(measures, "unemployment"), at=at, **months),
        ChartSeries(values=_column(measures, "interest_rate"), at=at, **rate),
    ]
    if len(years):
        yearly = years["unemployment"].tolist()
        edges = [edge * (1.0 if unit == "year" else MONTHS_PER_YEAR) for edge in range(len(years) + 1)]
        look: dict[str, Any] = {"name": "year", "colour": RED, "is_stepped": True}
        series.insert(1, ChartSeries(values=[*yearly, yearly[-1]], at=edges, **look))
    return Chart(title="Unemployment and interest", series=series, x=unit, unit="share")


def output_chart(measures: pd.DataFrame) -> Chart:
    """Return each month's output, at current and initial prices.

    Args:
        measures: The collected measures of the model, one row per month.
    """
    months = measures.iloc[1:]
    at, unit = _time(months)
    series = [
        ChartSeries(name="nominal, a month", values=_column(months, "nominal_gdp"), at=at, colour=BLUE),
        ChartSeries(name="real, at the first price", values=_column(months, "real_gdp"), at=at, colour=GREEN),
    ]
    note = "Nothing is made before the first month." if months.empty else ""
    return Chart(title="Output (GDP)", series=series, x=unit, unit="dollars", note=note)


def phillips_chart(years: pd.DataFrame, *, compare: bool = True) -> Chart:
    """Return the Phillips curve: one point per year from the second, with its line, and published points behind.

    Args:
        years: The yearly table.
        compare: Whether to show the published points.
    """
    series: list[ChartSeries] = []
    for model, colour in PUBLISHED.items() if compare else ():
        points = published_points().query("model == @model")
        series.append(_points(points, "unemployment", "wage_inflation", model, colour, is_faint=True))
    late = years.iloc[1:]
    series.append(_points(late, "unemployment", "wage_inflation", "this run", BLUE))
    fit = phillips(years)
    look = {"x": "unemployment in a year, %", "y": "wage inflation"}
    return _law(f"Phillips curve{_fit_text(fit)}", [*series, *_line(late, "unemployment", fit)], **look)


def okun_chart(years: pd.DataFrame, *, nominal: bool = False) -> Chart:
    """Return Okun's law: growth of output against growth of unemployment, for years after one with unemployment.

    Args:
        years: The yearly table.
        nominal: Whether to use nominal output, which accounting does not force, instead of real output.
    """
    years = comparable(years)
    kind, fit = ("nominal", nominal_okun(years)) if nominal else ("real", okun(years))
    across, up = "unemployment_growth", f"{kind}_growth"
    series = [_points(years, across, up, "", ORANGE if nominal else BLUE), *_line(years, across, fit)]
    look = {"x": "growth of unemployment, %", "y": f"growth of {kind} output"}
    return _law(f"Okun's law, {kind} output{_fit_text(fit)}", series, **look)


def savings_chart(homes: pd.DataFrame) -> Chart:
    """Return all households' savings, poorest to richest, by whether they worked last month.

    Args:
        homes: A world's household table.
    """
    ranked = homes.sort_values("coin", kind="stable")
    works = (ranked["job"] != title_of(UNEMPLOYED)).to_numpy()
    coins: Any = ranked["coin"].to_numpy()
    groups = ((works, BLUE, "at work last month"), (~works, ORANGE, "out of work"))
    series = [
        ChartSeries(name=name, kind="bar", colour=colour, values=coins[own].tolist(), at=np.flatnonzero(own).tolist())
        for own, colour, name in groups
    ]
    return Chart(title="Savings", series=series, x="households, poorest to richest", unit="dollars")


def _law(title: str, series: list[ChartSeries], **look: str) -> Chart:
    """Return a chart of growth against growth, in percent, with lines at zero."""
    places = [place for each in series for place in each.places if np.isfinite(place)]
    room = 0.05 * (max(places, default=1) - min(places, default=0))
    zeros = [ChartSeries(values=[0], kind="level", colour=GREY), ChartSeries(values=[None], kind="moment", colour=GREY)]
    reach: dict[str, Any] = {"start": min(0, *places, 0) - room, "end": max([1, *places]) + room}
    return Chart(title=title, series=[*series, *zeros], unit="share", **look, **reach)


def _column(table: pd.DataFrame, name: str) -> list[float]:
    return table[name].to_numpy(dtype=np.float64).tolist()


def _points(years: pd.DataFrame, across: str, up: str, name: str, colour: str, **look: Any) -> ChartSeries:
    at = [100 * share for share in _column(years, across)]
    return ChartSeries(name=name, at=at, values=_column(years, up), kind="point", colour=colour, **look)


def _line(years: pd.DataFrame, across: str, fit: Regression) -> list[ChartSeries]:
    """Return a fitted line over the range of the points, if there is one."""
    finite = [share for share in _column(years, across) if np.isfinite(share)]
    if not np.isfinite(fit.slope) or not finite:
        return []
    at = np.linspace(min(finite), max(finite))
    return [ChartSeries(at=(100 * at).tolist(), values=(fit.intercept + fit.slope * at).tolist(), colour=GREY)]


def _fit_text(fit: Regression) -> str:
    return f": r = {fit.r:+.2f} over {fit.points} years" if np.isfinite(fit.r) else ": r after four years"


def _time(measures: pd.DataFrame) -> tuple[list[float], str]:
    """Return the time of each row, and its unit: months, or years after two of them."""
    is_long = len(measures) > 2 * MONTHS_PER_YEAR
    at: Any = measures.index.to_numpy() / (MONTHS_PER_YEAR if is_long else 1)
    return at.tolist(), "year" if is_long else "month"
