"""What holds for every sound market maker, and what each one's formula says."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError
from mesa_llm_models.market.world.makers import (
    OUTCOMES,
    ConstantProductLegacy,
    FixedProduct,
    LogarithmicScore,
    Maker,
    MakerName,
    Outcome,
    open_maker,
)

SOUND: tuple[MakerName, ...] = ("fixed_product", "lmsr")

openings = st.tuples(st.sampled_from(SOUND), st.floats(0.02, 0.98), st.floats(1, 5000))
sizes = st.floats(0.01, 3000)
walks = st.lists(st.tuples(st.sampled_from(OUTCOMES), st.floats(-1, 1), sizes), max_size=25)


def walk(maker: Maker, steps: list[tuple[Outcome, float, float]]) -> tuple[Maker, dict[Outcome, float], float]:
    """Trade at random: give the maker, the shares outstanding, and the dollars it took in."""
    shares_held: dict[Outcome, float] = {"yes": 0.0, "no": 0.0}
    dollars_taken = 0.0
    for outcome, choice, size in steps:
        if choice > 0 or shares_held[outcome] == 0:
            maker, shares = maker.buy(outcome, size)
            shares_held[outcome], dollars_taken = shares_held[outcome] + shares, dollars_taken + size
        else:
            sold = shares_held[outcome] * -choice
            maker, dollars = maker.sell(outcome, sold)
            shares_held[outcome], dollars_taken = shares_held[outcome] - sold, dollars_taken - dollars
    return maker, shares_held, dollars_taken


@given(openings, walks)
@settings(max_examples=60, deadline=None)
def test_the_two_prices_add_up_to_a_dollar(opening: tuple, steps: list) -> None:
    maker, _, _ = walk(open_maker(*opening), steps)
    assert maker.price("yes") + maker.price("no") == pytest.approx(1, abs=1e-12)


@given(openings, walks)
@settings(max_examples=60, deadline=None)
def test_a_maker_never_loses_more_than_its_subsidy(opening: tuple, steps: list) -> None:
    maker, shares_held, dollars_taken = walk(open_maker(*opening), steps)
    for outcome in OUTCOMES:
        assert shares_held[outcome] - dollars_taken <= maker.subsidy + 1e-6


@given(openings, walks, st.sampled_from(OUTCOMES), sizes)
@settings(max_examples=60, deadline=None)
def test_a_round_trip_brings_no_profit(opening: tuple, steps: list, outcome: Outcome, dollars: float) -> None:
    before, _, _ = walk(open_maker(*opening), steps)
    after, shares = before.buy(outcome, dollars)
    back, got = after.sell(outcome, shares)
    assert got == pytest.approx(dollars, rel=1e-6)
    assert back.price("yes") == pytest.approx(before.price("yes"), abs=1e-6)


@given(openings, walks, st.sampled_from(OUTCOMES), sizes)
@settings(max_examples=60, deadline=None)
def test_a_share_costs_at_least_its_price_and_at_most_a_dollar(
    opening: tuple, steps: list, outcome: Outcome, dollars: float
) -> None:
    maker, _, _ = walk(open_maker(*opening), steps)
    _, shares = maker.buy(outcome, dollars)
    assert maker.price(outcome) * (1 - 1e-6) <= dollars / shares <= 1 + 1e-9


@given(openings, walks, sizes, st.floats(0.05, 0.95))
@settings(max_examples=60, deadline=None)
def test_two_small_buys_bring_what_one_large_buy_brings(
    opening: tuple, steps: list, dollars: float, part: float
) -> None:
    maker, _, _ = walk(open_maker(*opening), steps)
    _, at_once = maker.buy("yes", dollars)
    halfway, first = maker.buy("yes", dollars * part)
    _, second = halfway.buy("yes", dollars * (1 - part))
    assert first + second == pytest.approx(at_once, rel=1e-6)


@given(st.floats(0.02, 0.98), st.floats(1, 5000), sizes)
@settings(max_examples=60, deadline=None)
def test_the_fixed_product_maker_mints_then_swaps(price_yes: float, liquidity: float, dollars: float) -> None:
    maker = FixedProduct.opened(price_yes, liquidity)
    _, shares = maker.buy("yes", dollars)
    expected = dollars + maker.yes - maker.yes * maker.no / (maker.no + dollars)
    assert shares == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.02, 0.98), st.floats(10, 5000), st.floats(0.01, 100))
@settings(max_examples=60, deadline=None)
def test_lmsr_charges_the_difference_of_its_cost_function(price: float, depth: float, dollars: float) -> None:
    maker = LogarithmicScore.opened(price, depth)
    _, shares = maker.buy("yes", dollars)
    cost = depth * math.log(price * math.exp(shares / depth) + 1 - price)
    assert cost == pytest.approx(dollars, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("ratio", [2e8, 1e10, 1e14])
def test_the_fixed_product_maker_stays_sound_however_much_is_traded(ratio: float) -> None:
    rng = random.Random(1)
    for _ in range(100):
        maker, shares_held = FixedProduct.opened(0.5, 500).buy("yes", 500 * ratio)
        for _ in range(6):
            sold = shares_held * rng.random()
            maker, dollars = maker.sell("yes", sold)
            shares_held -= sold
            assert min(maker.yes, maker.no) > 0
            assert 0 < dollars <= sold * (1 + 1e-9)


def test_lmsr_that_opens_at_one_half_loses_at_most_b_ln_2() -> None:
    assert LogarithmicScore.opened(0.5, 100).subsidy == pytest.approx(100 * math.log(2))
    after, shares = LogarithmicScore.opened(0.5, 100).buy("yes", 1e6)
    assert shares - 1e6 == pytest.approx(100 * math.log(2))
    assert after.price("yes") == pytest.approx(1)


def test_the_legacy_maker_shows_one_half_and_charges_a_dollar_and_twenty_cents() -> None:
    _, shares = ConstantProductLegacy.opened(0.5, 500).buy("yes", 100)
    assert 100 / shares == pytest.approx(1.20)
    _, sound_shares = FixedProduct.opened(0.5, 500).buy("yes", 100)
    assert 0.5 < 100 / sound_shares < 0.6


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("opening", [(0, 500), (1, 500), (-0.2, 500), (math.nan, 500), (0.5, 0), (0.5, math.inf)])
def test_degenerate_openings_are_refused(name: MakerName, opening: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="got"):
        open_maker(name, *opening)


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("size", [-1, math.nan, math.inf])
def test_makers_refuse_sizes_that_make_no_sense(name: MakerName, size: float) -> None:
    with pytest.raises(ValueError, match="finite number of 0 or more"):
        open_maker(name, 0.5, 500).buy("yes", size)
    with pytest.raises(ValueError, match="finite number of 0 or more"):
        open_maker(name, 0.5, 500).sell("yes", size)


def test_an_unknown_maker_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'uniswap'; choose one of: fixed_product, lmsr"):
        open_maker("uniswap", 0.5, 500)  # pyright: ignore[reportArgumentType]
