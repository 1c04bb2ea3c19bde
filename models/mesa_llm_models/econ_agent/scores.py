"""Measures of an economy: the Phillips curve, Okun's law, inequality, and the scores of a run.

Okun's law holds here by construction: real output is produced by employed household-months, so its growth is that of
unemployment with the opposite sign, and any policy gives a correlation near -1. It is reported for comparison with
published runs, and is not evidence about behaviour. Okun's law for nominal output is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from mesa_llm.model.measures import gini
from mesa_llm.world import Rules
from mesa_llm_models.econ_agent.world import FloatArray

SMALL_SAMPLE = 30
"""Number of households at which the original stops correcting the Gini coefficient for small samples."""


class Regression(NamedTuple):
    """A straight line through yearly points; NaN with too few points, or equal ones."""

    r: float
    """Pearson correlation."""

    p: float
    """Two-sided probability of a correlation this far from 0 by chance."""

    slope: float
    """Change of y per unit of x."""

    intercept: float
    """Value of y at x = 0."""

    points: int
    """Number of years with both values."""


def regress(x: npt.ArrayLike, y: npt.ArrayLike) -> Regression:
    """Fit y on x by least squares, ignoring pairs that are not finite."""
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    both = np.isfinite(xs) & np.isfinite(ys)
    xs, ys = xs[both], ys[both]
    nothing = float("nan")
    if len(xs) < 3 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
        return Regression(nothing, nothing, nothing, nothing, len(xs))
    slope, intercept, r, p = np.asarray(stats.linregress(xs, ys), dtype=np.float64)[:4].tolist()
    return Regression(r, p, slope, intercept, len(xs))


def phillips(years: pd.DataFrame) -> Regression:
    """Relate wage inflation to the unemployment rate, from year 2; published: r = -0.619 for GPT-3.5."""
    return regress(years["unemployment"].iloc[1:], years["wage_inflation"].iloc[1:])


def comparable(years: pd.DataFrame) -> pd.DataFrame:
    """Return the years with a meaningful growth of unemployment: those after a year with unemployment.

    Elsewhere it is undefined or, under the original rules, of the order of 1e8.

    Args:
        years: A world's yearly table.
    """
    return years.loc[years["unemployment"].shift() > 0, :]


def okun(years: pd.DataFrame) -> Regression:
    """Relate the growth of real output to that of unemployment; published: r = -0.918 for GPT-3.5."""
    years = comparable(years)
    return regress(years["unemployment_growth"], years["real_growth"])


def nominal_okun(years: pd.DataFrame) -> Regression:
    """Relate the growth of nominal output to that of unemployment, which accounting does not force."""
    years = comparable(years)
    return regress(years["unemployment_growth"], years["nominal_growth"])


def inequality(coin: FloatArray, rules: Rules = "corrected") -> float:
    """Compute the Gini coefficient of savings, corrected for small samples: 1 if one household has everything.

    Args:
        coin: Savings of each household, 0 or more.
        rules: Under the original rules, from 30 households the coefficient is smaller by a factor of (n - 1) / (n + 1),
            so it jumps there.

    Returns:
        0 if all savings are equal; NaN for fewer than two households, or without savings.
    """
    count = len(coin)
    if count < 2 or coin.sum() <= 0:
        return float("nan")
    is_corrected = rules == "corrected" or count < SMALL_SAMPLE
    return gini(coin) * count / (count - 1 if is_corrected else count + 1)


def scores_of(years: pd.DataFrame, coin: FloatArray, rules: Rules = "corrected") -> dict[str, float]:
    """Compute the published measures of a run.

    Args:
        years: A world's yearly table.
        coin: Savings at the end, in dollars.
        rules: Rules for measuring inequality; see `inequality`.
    """
    curve, law, nominal = phillips(years), okun(years), nominal_okun(years)
    scores: dict[str, float] = {}
    for name, column in (("unemployment", "unemployment"), ("inflation", "price_inflation")):
        values = years[column].dropna()
        for measure in ("mean", "min", "max"):
            scores[f"{name}_{measure}"] = float(getattr(values, measure)()) if len(values) else float("nan")
    scores |= {"phillips_r": curve.r, "phillips_p": curve.p, "okun_r": law.r, "okun_p": law.p}
    scores |= {"okun_nominal_r": nominal.r, "final_nominal_gdp": float("nan"), "gini": inequality(coin, rules)}
    if len(years):
        scores["final_nominal_gdp"] = float(years["nominal_gdp"].iloc[-1])
    return scores
