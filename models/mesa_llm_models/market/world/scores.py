"""Scores of prices as forecasts: Brier score, logarithmic score and calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MIN_PROBABILITY = 1e-9
"""Minimum probability in the logarithmic score, which would be infinite at 0."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The prices of a resolved market."""

    market_id: str
    """The market."""

    price_yes: float
    """YES price at resolution."""

    mean_price_yes: float
    """Mean YES price over all previous steps, including the opening."""

    is_yes: bool
    """Whether the answer was yes."""


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The forecasts in a range of probabilities, and how often they came true."""

    low: float
    """Lower edge, inclusive."""

    high: float
    """Upper edge, exclusive except at 1."""

    count: int
    """Number of forecasts in the bin."""

    mean_price: float
    """Mean of the forecasts; NaN without any."""

    share_yes: float
    """Share of the forecasts that came true; NaN without any."""


@dataclass(frozen=True, slots=True)
class ForecastScore:
    """Scores of a set of forecasts."""

    count: int
    """Number of forecasts."""

    brier: float
    """Mean squared distance between probability and answer, 0 (best) to 1; 0.25 for a constant one half."""

    log_score: float
    """Mean natural logarithm of the probability of the actual answer; 0 is best."""

    calibration_error: float
    """Mean distance between price and frequency over the bins, weighted by their counts."""

    bins: tuple[CalibrationBin, ...]
    """The calibration, bin by bin."""


def brier_score(probabilities: ArrayLike, answers: ArrayLike) -> float:
    """Compute the mean squared distance between probability and answer.

    Args:
        probabilities: Of yes, shape `(forecasts,)`.
        answers: Truth values, shape `(forecasts,)`.

    Raises:
        ValueError: If the shapes differ, there is nothing to score, or a probability is outside 0..1.

    Source:
        Brier (1950), Monthly Weather Review 78(1), in the form for two answers that sums over one of them.
    """
    forecast, happened = _pairs(probabilities, answers)
    return float(np.mean((forecast - happened) ** 2))


def log_score(probabilities: ArrayLike, answers: ArrayLike) -> float:
    """Compute the mean natural logarithm of the probability of the actual answer.

    Args:
        probabilities: Of yes, shape `(forecasts,)`.
        answers: Truth values, shape `(forecasts,)`.

    Returns:
        At most 0; probabilities count as at least `MIN_PROBABILITY`.

    Raises:
        ValueError: If the shapes differ, there is nothing to score, or a probability is outside 0..1.

    Source:
        Good (1952), Rational Decisions, Journal of the Royal Statistical Society B 14(1).
    """
    forecast, happened = _pairs(probabilities, answers)
    of_answer = np.where(happened == 1, forecast, 1 - forecast)
    return float(np.mean(np.log(np.maximum(of_answer, MIN_PROBABILITY))))


def calibration(probabilities: ArrayLike, answers: ArrayLike, n_bins: int = 10) -> tuple[CalibrationBin, ...]:
    """Compare probabilities with frequencies, in bins of equal width.

    Args:
        probabilities: Of yes, shape `(forecasts,)`.
        answers: Truth values, shape `(forecasts,)`.
        n_bins: Number of bins.

    Raises:
        ValueError: If the shapes differ, there is nothing to score, or a probability is outside 0..1.
    """
    forecast, happened = _pairs(probabilities, answers)
    edges = np.arange(n_bins + 1) / n_bins  # linspace yields 0.30000000000000004, which would put 0.3 in the bin below
    index = np.clip(np.searchsorted(edges, forecast, side="right") - 1, 0, n_bins - 1)
    bins: list[CalibrationBin] = []
    for bin_index in range(n_bins):
        inside = index == bin_index
        count = int(inside.sum())
        mean = float(forecast[inside].mean()) if count else math.nan
        share = float(happened[inside].mean()) if count else math.nan
        bins.append(CalibrationBin(float(edges[bin_index]), float(edges[bin_index + 1]), count, mean, share))
    return tuple(bins)


def score_forecasts(forecasts: Sequence[Forecast], n_bins: int = 10) -> ForecastScore:
    """Score the last prices before resolution.

    Raises:
        ValueError: If there are no forecasts.
    """
    prices = [forecast.price_yes for forecast in forecasts]
    answers = [forecast.is_yes for forecast in forecasts]
    bins = calibration(prices, answers, n_bins)
    distance = sum(band.count * abs(band.mean_price - band.share_yes) for band in bins if band.count)
    return ForecastScore(
        count=len(forecasts),
        brier=brier_score(prices, answers),
        log_score=log_score(prices, answers),
        calibration_error=distance / len(forecasts),
        bins=bins,
    )


def _pairs(probabilities: ArrayLike, answers: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    forecast = np.asarray(probabilities, dtype=np.float64)
    happened = np.asarray(answers, dtype=np.float64)
    if forecast.ndim != 1 or forecast.shape != happened.shape:
        raise ValueError(
            f"probabilities and answers must have one shape `(forecasts,)`, got {forecast.shape} and {happened.shape}"
        )
    if not forecast.size:
        raise ValueError("there are no forecasts to score; resolve a market first")
    if not bool(np.all((forecast >= 0) & (forecast <= 1))):
        raise ValueError(f"probabilities must be from 0 to 1, got {forecast.tolist()[:10]}")
    return forecast, happened
