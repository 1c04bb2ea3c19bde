"""Scores of forecasts."""

from __future__ import annotations

import math

import pytest

from mesa_llm_models.market.world.scores import Forecast, brier_score, calibration, log_score, score_forecasts


def test_the_brier_score_is_the_mean_squared_distance() -> None:
    assert brier_score([0.9, 0.2], [True, False]) == pytest.approx((0.01 + 0.04) / 2)
    assert brier_score([0.5, 0.5], [True, False]) == pytest.approx(0.25)


def test_the_log_score_counts_what_happened() -> None:
    assert log_score([0.8, 0.3], [True, False]) == pytest.approx((math.log(0.8) + math.log(0.7)) / 2)


def test_a_certain_error_does_not_cost_infinitely_much() -> None:
    assert log_score([1.0], [False]) == pytest.approx(math.log(1e-9))


def test_calibration_counts_every_forecast_once_up_to_the_last_edge() -> None:
    bins = calibration([0.0, 0.1, 0.15, 0.999, 1.0], [0, 0, 1, 1, 1])
    assert [one.count for one in bins] == [1, 2, 0, 0, 0, 0, 0, 0, 0, 2]
    assert bins[1].share_yes == pytest.approx(0.5)
    assert math.isnan(bins[2].mean_price)


def test_a_probability_on_an_edge_belongs_to_the_bin_that_begins_there() -> None:
    tenths = [number / 10 for number in range(10)]
    bins = calibration(tenths, [0] * 10)
    assert [(one.low, one.count) for one in bins] == [(tenth, 1) for tenth in tenths]


def test_prices_that_come_true_as_often_as_they_say_have_no_calibration_error() -> None:
    forecasts = [Forecast(str(n), 0.25, 0.25, is_yes=n == 0) for n in range(4)]
    score = score_forecasts(forecasts)
    assert (score.count, score.calibration_error) == (4, pytest.approx(0))
    assert score.brier == pytest.approx(0.1875)


def test_nothing_to_score_and_prices_outside_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="resolve a market first"):
        score_forecasts([])
    with pytest.raises(ValueError, match=r"must be from 0 to 1"):
        brier_score([1.2], [True])
    with pytest.raises(ValueError, match="must have one shape"):
        log_score([0.2, 0.3], [True])
