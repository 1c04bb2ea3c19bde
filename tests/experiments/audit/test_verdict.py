"""Statistics of audits: what is shown, what is stable, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from mesa_llm.experiments.audits.claim import expectation_of
from mesa_llm.experiments.audits.verdict import shown, stability, variance_shares

GREATER = expectation_of("first is greater", 0.1)
LEVEL = expectation_of("", 0.1)


def noise(n: int, spread: float, seed: int = 1) -> np.ndarray:
    """Draw what two arms differ by at each seed."""
    return np.random.default_rng(seed).normal(0, spread, n)


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ([0.3, 0.4, 0.35, 0.3], "shown"),
        ([-0.3, -0.4, -0.35, -0.3], "reversed"),
        ([0.01, -0.01, 0.0, 0.01], "absent"),
        ([0.5, -0.4, 0.3, -0.2], "not shown"),
        ([0.02, 0.021, 0.019, 0.02], "absent"),  # surely there, and smaller than what matters
        ([0.3], "not shown"),
    ],
)
def test_a_direction_is_shown_reversed_absent_or_not_shown(effects: list[float], verdict: str) -> None:
    assert shown(effects, GREATER, 0.1) == verdict


def test_a_range_is_shown_by_an_interval_within_it() -> None:
    within = expectation_of("value in [0.2, 0.6]", 0.1)
    assert shown([0.4, 0.41, 0.39, 0.4], within, 0.1) == "shown"
    assert shown([0.9, 0.91, 0.89, 0.9], within, 0.1) == "absent"


def test_of_a_level_nothing_is_claimed() -> None:
    assert shown([0.3, 0.4, 0.35, 0.3], LEVEL, 0.1) == "no claim"


@pytest.mark.parametrize("n", [2, 3])
def test_below_four_pairs_nothing_is_decided(n: int) -> None:
    (found,) = stability([0.5] * n, [[0.5] * n], LEVEL, 0.1)
    assert (found.change, found.n, found.adjusted_p) == ("undecided", n, None)


def test_small_is_stable_large_is_sensitive_and_noise_is_undecided() -> None:
    base = 0.5 + noise(20, 0.05)
    arms = [base + noise(20, 0.02, 2), base - 0.3 + noise(20, 0.02, 3), base + noise(20, 0.5, 4)]
    found = stability(base.tolist(), [arm.tolist() for arm in arms], LEVEL, 0.1)
    assert [one.change for one in found] == ["stable", "sensitive", "undecided"]


def test_a_claim_that_turns_round_is_sensitive_even_within_the_smallest_effect() -> None:
    base = 0.04 + noise(30, 0.001)
    (found,) = stability(base.tolist(), [(base - 0.08).tolist()], expectation_of("first is greater", 0.01), 0.01)
    assert found.change == "sensitive"
    assert found.is_reversed


def test_a_missing_run_leaves_out_its_seed() -> None:
    (found,) = stability([0.1, float("nan"), 0.1], [[0.1, 0.2, 0.1]], LEVEL, 0.1)
    assert found.difference.n == 2


def test_the_variance_is_divided_as_it_was_made() -> None:
    rng = np.random.default_rng(3)
    of_seed, of_arm = rng.normal(0, 1, 40), np.array([0.0, 2.0, 0.0, -2.0, 1.0, -1.0])
    values = (of_seed[:, None] + of_arm + rng.normal(0, 1, (40, 6))).ravel()
    seeds = np.repeat(np.arange(40), 6).tolist()
    arms = [f"arm {index}" for index in range(6)] * 40
    shares = {one.source: one.share for one in variance_shares(values.tolist(), seeds, arms, ["one"] * 240)}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["perturbation"] == pytest.approx(0.5, abs=0.2)
    assert shares["seed"] == pytest.approx(0.25, abs=0.12)
    known = variance_shares(values.tolist(), seeds, arms, ["one"] * 240, sampling=0.5)
    assert [one.source for one in known] == ["seed", "perturbation", "sampling", "rest"]
    assert known[2].share + known[3].share == pytest.approx(shares["rest"])


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (30, (0.545706, 0.177956, 0.203746, 0.072591)),
        (32, (0.219194, 0.254454, 0.213350, 0.313001)),
        (46, (0.233949, 0.328485, 0.276394, 0.161171)),
    ],
)
def test_shares_of_variance_are_those_of_statsmodels(seed: int, expected: tuple[float, ...]) -> None:
    rng = np.random.default_rng(seed)
    levels = np.indices((6, 4, 3)).reshape(3, -1)
    has_run = rng.random(72) < 0.85
    effects = [rng.normal(0, sd, n)[of] for sd, n, of in zip((2, 1, 1.5), (6, 4, 3), levels, strict=True)]
    values = sum(effects) + rng.normal(0, 1, 72)
    seeds, arms, llms = (of[has_run].tolist() for of in levels)
    shares = variance_shares(values[has_run].tolist(), seeds, list(map(str, arms)), list(map(str, llms)))
    # statsmodels 0.15.0, MixedLM(...).fit(reml=True, method="bfgs", gtol=1e-10), of the same runs
    assert [one.share for one in shares] == pytest.approx(expected, abs=1e-6)


def test_a_factor_that_does_nothing_has_no_share_of_the_variance() -> None:
    of_arm, rest = np.array([1.0, 2.0, 4.0]), np.array([[1, -1, 0], [-1, 0, 1], [0, 1, -1]]) / 10  # adds up to 0 a seed
    shares = variance_shares(
        (of_arm + rest).ravel().tolist(), [1, 1, 1, 2, 2, 2, 3, 3, 3], ["a", "b", "c"] * 3, ["one"] * 9
    )
    assert [one.share for one in shares] == pytest.approx([0, 2.33 / 2.34, 0.01 / 2.34], abs=1e-6)  # one-way
