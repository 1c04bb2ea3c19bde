"""Statistics of runs, against enumeration, textbook cases and what must be so."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.statistics import (
    adjusted_p,
    alpha_between,
    compare,
    correct,
    krippendorff_alpha,
    line_through,
    mean_estimate,
    permutation_p,
    ratio_estimate,
    share_interval,
)

FIRST, SECOND = [5.0, 6.0, 7.0, 9.0, 8.0, 3.0], [4.0, 4.0, 7.5, 5.0, 6.0, 1.0]
values = st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=7)


def test_a_paired_p_is_the_share_of_all_signs_with_as_large_a_difference() -> None:
    apart = np.array(FIRST) - np.array(SECOND)
    signs = itertools.product((1, -1), repeat=6)
    expected = np.mean([abs((apart * each).mean()) >= abs(apart.mean()) - 1e-12 for each in signs])
    found = compare(FIRST, SECOND)
    assert found is not None
    assert found.p == pytest.approx(expected)
    assert found.difference.value == pytest.approx(1.75)
    assert found.effect == pytest.approx(1.75 / math.sqrt((np.var(FIRST, ddof=1) + np.var(SECOND, ddof=1)) / 2))


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
    assert (found.difference.value, found.difference.low, found.effect, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_run_without_the_value_leaves_its_pair_out() -> None:
    assert compare([1.0, None, 3.0], [0.0, 5.0, math.nan]) == compare([1.0], [0.0])
    assert compare([1.0], [None]) is None
    assert mean_estimate([None]) is None
    with pytest.raises(ValueError, match="equal lengths"):
        compare([1.0], [1.0, 2.0])


def test_a_ratio_holds_its_mean_and_its_interval_closes_where_pairs_move_together() -> None:
    found = ratio_estimate([2.0, 4.0, 6.0, 20.0], [1.0, 2.0, 3.0, 10.0])
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)
    assert ratio_estimate(FIRST, FIRST).low == 1.0


@pytest.mark.parametrize("divisor", [[0.0, 0.0], [-1.0, -2.0], [-2.0, 1.0]])
def test_a_ratio_to_what_is_not_positive_is_an_error(divisor) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        ratio_estimate([1.0, 2.0], divisor)


def test_a_ratio_whose_divisor_may_be_zero_has_no_interval() -> None:
    assert ratio_estimate([1.0, 2.0, 3.0], [4.0, -1.0, 2.0]).low is None


def test_ps_are_corrected_as_in_a_case_by_hand() -> None:
    # sorted .005 .01 .03 .04, times 4 / rank: .02 .02 .04 .04
    assert adjusted_p([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx([0.02, None, 0.04, 0.04, 0.02])
    assert adjusted_p([None]) == [None]
    found = correct([compare(FIRST, SECOND), None, compare(FIRST, FIRST)])
    assert [one and one.adjusted_p for one in found] == [0.125, None, 1.0]


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
    assert found.n == 11
    assert found.low < expected < found.high <= 1


def test_alpha_is_one_without_disagreement_none_without_anything_to_compare_and_near_zero_by_chance() -> None:
    assert alpha([["a", "a"], ["b", "b"], ["c", None]]).value == 1.0
    assert alpha([["a", "a"], ["a", "a"]]) is None
    assert alpha([["a"], [None, "b"]]) is None
    chance = alpha(np.random.default_rng(3).integers(0, 3, (2000, 2)).tolist(), "interval")
    assert chance.low < 0 < chance.high
    with pytest.raises(ValueError, match="could not convert"):
        alpha([["a", "b"]], "interval")


def test_one_coder_against_another_is_compared_as_two_coders_are() -> None:
    first, second = OBSERVERS[1], OBSERVERS[3]
    both = alpha(list(zip(first, second, strict=True)), "ordinal")
    assert alpha_between([[one] for one in first], [[one] for one in second], "ordinal") == both
    with pytest.raises(ValueError, match="one row per unit"):
        alpha_between([[1]], [])


def test_people_who_disagree_among_themselves_do_not_make_a_judge_of_either_side_perfect() -> None:
    people = [["yes", "no"], ["yes", "yes"], ["no", "no"], ["no", "yes"]]
    judge: Any = alpha_between([["yes"], ["yes"], ["no"], ["no"]], people)
    assert 0 < judge.value < 1


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-5)  # Newcombe (1998), method 3
    assert share_interval(0, 0) == (0, 1)
    assert share_interval(0, 5)[0] == 0
