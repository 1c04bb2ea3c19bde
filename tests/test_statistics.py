"""Statistics of runs, against enumeration, textbook cases and what must be so."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mesa_llm.statistics import (
    adjusted_p,
    alpha_between,
    cluster_means,
    compare,
    correct,
    deviation_bound,
    jackknife_estimate,
    krippendorff_alpha,
    line_through,
    mean_estimate,
    permutation_p,
    power,
    ratio_estimate,
    runs_needed,
    share_interval,
)

FIRST, SECOND = [5.0, 6.0, 7.0, 9.0, 8.0, 3.0], [4.0, 4.0, 7.5, 5.0, 6.0, 1.0]
values = st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=7)


def test_a_comparison_is_the_paired_t_test_with_its_interval() -> None:
    test: Any = stats.ttest_rel(FIRST, SECOND)
    ends = test.confidence_interval(0.95)
    found = compare(FIRST, SECOND)
    assert found is not None
    assert found.p == pytest.approx(test.pvalue)
    assert (found.difference.low, found.difference.high) == pytest.approx((ends.low, ends.high))
    assert (found.difference.value, found.difference.n, found.difference.unit) == (1.75, 6, "pairs of runs")
    assert found.effect == pytest.approx(1.75 / math.sqrt((np.var(FIRST, ddof=1) + np.var(SECOND, ddof=1)) / 2))


@given(values, st.floats(-2, 2))
def test_an_interval_excludes_zero_just_where_p_is_below_five_percent(pairs, shift) -> None:
    found = compare([one + shift for one, _ in pairs], [other for _, other in pairs])
    assert found is not None
    if found.difference.low is None or found.difference.high is None:
        return
    assert found.p is not None
    if abs(found.p - 0.05) > 1e-9:
        assert (found.p < 0.05) == (not found.difference.low <= 0 <= found.difference.high)


@pytest.mark.parametrize(
    ("first", "margin", "expected"),
    [
        ([0.9, 1.1, 1.0, 0.8, 1.2, 1.0], None, "shown"),
        ([0.01, -0.02, 0.0, 0.02, -0.01, 0.01], 0.05, "absent"),
        ([0.031, 0.03, 0.032, 0.029, 0.03, 0.031], 0.05, "absent"),  # not 0, and too small to matter
        ([0.01, -0.02, 0.0, 0.02, -0.01, 0.01], None, "cannot tell"),
        ([1.0, -3.0, 2.0, 4.0, -2.0, 1.0], 0.05, "cannot tell"),
        ([5.0, 5.1, 4.9], 0.05, "cannot tell"),
    ],
)
def test_a_verdict_is_absent_only_within_a_stated_margin(first, margin, expected) -> None:
    found = compare(first, [0.0] * len(first), margin)
    assert found is not None
    assert found.verdict == expected


@pytest.mark.parametrize(
    ("first", "p", "verdict"),
    [([2.0] * 4, 0.125, "cannot tell"), ([2.0] * 6, 2 / 2**6, "shown"), ([0.0] * 6, 1.0, "cannot tell")],
)
def test_pairs_that_all_differ_alike_are_judged_by_their_number(first, p, verdict) -> None:
    found = compare(first, [0.0] * len(first))
    assert found is not None
    assert (found.p, found.difference.low, found.verdict) == (p, None, verdict)


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan])
def test_a_margin_that_is_not_positive_is_an_error(margin) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        compare(FIRST, SECOND, margin)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_below_four_runs_there_is_neither_an_interval_nor_a_test(n) -> None:
    mean, found = mean_estimate(FIRST[:n]), compare(FIRST[:n], SECOND[:n])
    assert mean is not None
    assert found is not None
    assert (mean.low, found.difference.low, found.p) == (None, None, None)
    assert ratio_estimate(FIRST[:n], SECOND[:n]).low is None


def test_the_interval_of_a_symmetric_sample_is_students_and_that_of_a_skewed_one_reaches_into_its_tail() -> None:
    low, high = stats.t.interval(0.95, 4, 3.0, math.sqrt(2.5 / 5))
    found: Any = mean_estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    shares: Any = mean_estimate([0.5, 0.5, 0.5, 0.0], bounds=(0, 1))
    assert (shares.low, shares.n) == (0, 4)
    skewed: Any = mean_estimate([1.0, 1.1, 1.2, 1.1, 6.0])
    assert skewed.high - skewed.value > 1.5 * (skewed.value - skewed.low)


def test_runs_that_say_yes_or_no_are_counted() -> None:
    found: Any = mean_estimate([1.0, 1.0, 0.0, 1.0, 1.0])
    assert (found.low, found.high) == share_interval(4, 5)
    alike: Any = mean_estimate([1.0] * 8)
    assert alike.low is None  # one region in every run is no share


def test_the_agents_of_a_run_count_as_one() -> None:
    assert cluster_means([1.0, 2.0, None, 5.0, 7.0], ["a", "a", "b", "c", "c"]) == [1.5, 6.0]
    with pytest.raises(ValueError, match="needs its cluster"):
        cluster_means([1.0], [])


@given(values)
def test_who_comes_first_changes_the_sign_and_nothing_else(pairs) -> None:
    one, other = zip(*pairs, strict=True)
    found, turned = compare(one, other), compare(other, one)
    assert found is not None
    assert turned is not None
    assert found.p == turned.p
    assert found.difference.value == -turned.difference.value


def test_runs_that_are_equal_differ_by_nothing() -> None:
    found = compare([3.0, 4.0], [3.0, 4.0])
    assert found is not None
    assert (found.difference.value, found.difference.low, found.effect, found.p) == (0.0, None, 0.0, None)


def test_a_run_without_the_value_leaves_its_pair_out() -> None:
    assert compare([1.0, None, 3.0], [0.0, 5.0, math.nan]) == compare([1.0], [0.0])
    assert compare([1.0], [None]) is None
    assert mean_estimate([None]) is None
    with pytest.raises(ValueError, match="equal lengths"):
        compare([1.0], [1.0, 2.0])


def test_a_ratio_lies_where_the_difference_may_be_nothing() -> None:
    found: Any = ratio_estimate(FIRST, SECOND)
    one, other = np.array(FIRST), np.array(SECOND)
    below, above = (mean_estimate((one - end * other).tolist()) for end in (found.low, found.high))
    assert below is not None
    assert above is not None
    assert (below.low, above.high) == pytest.approx((0, 0), abs=1e-8)
    assert found.low < found.value < found.high
    alike = ratio_estimate([2.0, 4.0, 6.0, 20.0], [1.0, 2.0, 3.0, 10.0])
    assert (alike.value, alike.low, alike.high) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("divisor", [[0.0, 0.0], [-1.0, -2.0], [-2.0, 1.0]])
def test_a_ratio_to_what_is_not_positive_is_an_error(divisor) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        ratio_estimate([1.0, 2.0], divisor)


def test_a_ratio_whose_divisor_may_be_zero_has_no_interval() -> None:
    assert ratio_estimate([1.0, 2.0, 3.0, 4.0], [4.0, -1.0, 2.0, 1.0]).low is None


def test_ps_are_corrected_as_in_a_case_by_hand() -> None:
    # sorted .005 .01 .03 .04, times 4 / rank: .02 .02 .04 .04
    assert adjusted_p([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.02, None, 0.04, 0.04, 0.02])
    assert adjusted_p([None]) == [None]
    assert adjusted_p([0.01, None, 0.04, 0.03], "holm") == pytest.approx([0.03, None, 0.06, 0.06])
    one: Any = compare(FIRST, SECOND)
    found = correct([one, None, compare(FIRST, FIRST)])
    assert [each and each.adjusted_p for each in found] == [pytest.approx(2 * one.p), None, 1.0]


def test_equality_of_groups_is_tested_by_all_labels() -> None:
    assert permutation_p([[1.0, 2.0], [3.0, 4.0]]) == pytest.approx(2 / 6)
    assert permutation_p([[1.0, 1.0], [1.0, 1.0]]) == 1.0
    assert permutation_p([[1.0, 2.0], [3.0]]) is None


def test_a_line_is_found_with_its_standard_errors() -> None:
    # Anscombe (1973), Graphs in Statistical Analysis, first data set
    x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    line = line_through(x, y)
    assert line is not None
    assert (line.slope.value, line.intercept.value) == pytest.approx((0.5, 3.0), abs=1e-3)
    assert (line.slope_error, line.intercept_error) == pytest.approx((0.118, 1.125), abs=1e-3)
    assert line_through([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


_ = math.nan
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
"""Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C: four observers, twelve units."""


def alpha(labels, level: Any = "nominal") -> Any:
    return krippendorff_alpha(labels, level)


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_the_example_of_krippendorff(level, expected) -> None:
    found = alpha(list(zip(*OBSERVERS, strict=True)), level)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.n, found.unit, found.low) == (11, "units", None)


def test_alpha_is_one_for_agreement_none_without_pairs_and_zero_by_chance() -> None:
    assert alpha([["a", "a"], ["b", "b"], ["c", None]]).value == 1.0
    assert alpha([["a", "a"], ["a", "a"]]) is None
    assert alpha([["a"], [None, "b"]]) is None
    chance = alpha(np.random.default_rng(3).integers(0, 3, (2000, 2)).tolist(), "interval")
    assert chance.low < 0 < chance.high
    assert chance.high - chance.low < 0.2
    with pytest.raises(ValueError, match="could not convert"):
        alpha([["a", "b"]], "interval")


def test_one_coder_against_another_is_compared_as_two_coders_are() -> None:
    first, second = OBSERVERS[1], OBSERVERS[3]
    both = alpha(list(zip(first, second, strict=True)), "ordinal")
    assert alpha_between([[one] for one in first], [[one] for one in second], "ordinal") == both
    with pytest.raises(ValueError, match="one row per unit"):
        alpha_between([[1]], [])


def test_disagreement_among_people_lowers_the_score_of_any_judge() -> None:
    people = [["yes", "no"], ["yes", "yes"], ["no", "no"], ["no", "yes"]]
    judge: Any = alpha_between([["yes"], ["yes"], ["no"], ["no"]], people)
    assert 0 < judge.value < 1


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-5)  # Newcombe (1998), method 3
    assert share_interval(0, 0) == (0, 1)
    assert share_interval(0, 5)[0] == 0


@pytest.mark.parametrize(("effect", "expected"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_runs_needed_are_those_of_g_power(effect, expected) -> None:
    # Faul, Erdfelder, Lang and Buchner (2007), G*Power 3: matched pairs, two-sided, power .80
    assert runs_needed(2 * effect, 2.0) == expected
    assert power(2 * effect, 2.0, expected) >= 0.8 > power(2 * effect, 2.0, expected - 1)


def test_power_ends_where_it_must() -> None:
    assert power(1.0, 1.0, 3) == 0.0
    assert runs_needed(100.0, 1.0) == 4
    with pytest.raises(ValueError, match="more than a million"):
        runs_needed(1e-6, 1.0)


def test_a_small_pilot_plans_for_more_than_its_own_spread() -> None:
    rng = np.random.default_rng(2)
    is_enough = [deviation_bound(rng.normal(size=6).std(ddof=1), 6) >= 1 for _ in range(2000)]
    assert 0.77 < np.mean(is_enough) < 0.83


def test_a_figure_of_several_runs_has_the_interval_of_its_jackknife() -> None:
    found: Any = jackknife_estimate(np.array(FIRST)[:, None], lambda runs: runs.mean())  # of a mean: Student's
    ends: Any = stats.ttest_1samp(FIRST, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert jackknife_estimate(np.ones((5, 1)), lambda runs: runs.mean()).low is None
