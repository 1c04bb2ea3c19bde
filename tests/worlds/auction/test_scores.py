"""Scores of auctions, and the lists of lots."""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mesa_llm.errors import ConfigError
from mesa_llm_models.auction_arena.world import (
    NICHE_LOTS,
    ORIGINAL_RULES,
    PAPER_LOTS,
    REPOSITORY_LOTS,
    Auction,
    Bidder,
    Lot,
    SkillRating,
    bid_increments,
    increment_shares,
    ordered_lots,
    priority_correlations,
    priority_heat_map,
    rate,
    rating_error,
    read_lots,
    score_bidders,
    score_sales,
)


@pytest.fixture
def finished() -> Auction:
    """Ana wins the vase for 130 after two rounds, Ben overpays for the lamp, and nobody wants the clock."""
    lots = [Lot("Vase", 100, 200), Lot("Lamp", 200, 400), Lot("Clock", 300, 600)]
    auction = Auction(lots, [Bidder(n, name, 1000, keeps_beliefs=False) for n, name in ((1, "Ana"), (2, "Ben"))])
    auction.plan(1, {"Vase": 3, "Lamp": 1, "Clock": 1})
    auction.plan(2, {"Vase": 2, "Lamp": 2, "Clock": 2})
    auction.end_step()
    replans = [{"Clock": 1, "Lamp": 3}, {"Clock": 1}]
    bids = iter([{1: 105, 2: 110}, {1: 130}, {}, {2: 450}, {}])
    while not auction.is_over:
        if auction.stage == "replan":
            auction.plan(2, replans.pop(0))
        else:
            for agent_id, amount in next(bids).items():
                auction.bid(agent_id, amount)
        auction.end_step()
    return auction


def test_bidders_are_scored_by_seat(finished: Auction) -> None:
    ana, ben = score_bidders(finished)
    assert (ana.name, ana.profit, ana.n_wins, ana.money_left, ana.engagement) == ("Ana", 70, 1, 870, 2)
    assert (ben.profit, ben.engagement, ben.failed_bid_rate) == (-50, 2, 0)
    assert math.isnan(ben.self_error_rate)


def test_sales_are_scored_with_the_winners_curse(finished: Auction) -> None:
    score = score_sales(finished)
    assert (score.n_unsold, score.curse_rate) == (1, 0.5)
    assert score.price_ratio == pytest.approx((1.3 + 2.25) / 2)


def test_increments_count_from_the_last_round_and_opening_bids_from_the_start(finished: Auction) -> None:
    assert bid_increments(finished) == pytest.approx([5, 10, 100 * 20 / 110, 125])
    assert bid_increments(finished, bidder=2) == pytest.approx([10, 125])
    assert increment_shares(bid_increments(finished)) == (0.25, 0.5, 0, 0, 0.25)


def test_bids_on_a_lot_whose_price_has_fallen_to_zero_have_no_increment() -> None:
    bidders = [Bidder(number, f"Bidder {number}", planning="none", keeps_beliefs=False) for number in (1, 2)]
    rules = replace(ORIGINAL_RULES, discount=True)
    auction = Auction([Lot("Pin", 1, 5)], bidders, rules=rules, rng=random.Random(1))
    for amounts in [(None, None), (3, None)]:
        for bidder, amount in enumerate(amounts, 1):
            auction.withdraw(bidder) if amount is None else auction.bid(bidder, amount)
        auction.end_step()
    assert (auction.sales[0].price, bid_increments(auction)) == (3, [])


def test_priorities_of_the_plan_in_force_are_averaged_before_each_lot(finished: Auction) -> None:
    table = priority_heat_map([finished])
    assert table[0].tolist() == [2.5, 1.5, 1.5]
    assert table[1, 1:].tolist() == [2, 1]
    assert np.isnan(table[np.tril_indices(3, -1)]).all()


def test_priorities_are_correlated_with_bids_and_wins(finished: Auction) -> None:
    found = priority_correlations([finished])
    assert found.count == 6
    assert found.current_wins > found.initial_wins > 0
    assert math.isnan(priority_correlations([]).initial_bids)


def test_equal_results_are_a_draw_and_ratings_go_on_from_where_they_were() -> None:
    first, second = rate([{"a": 5, "b": 5}, {"a": 9, "b": 5}])
    assert first["a"] == first["b"]
    assert second["a"].mu > second["b"].mu
    assert rate([{"a": 9, "b": 5}], start=first)[0] == second


def test_the_error_of_ratings_is_a_mean_over_who_is_in_both() -> None:
    found = {"a": SkillRating(27, 1), "b": SkillRating(20, 1)}
    assert rating_error(found, {"a": 25, "b": 21, "c": 0}) == 1.5
    with pytest.raises(ValueError, match="in both"):
        rating_error(found, {"c": 0})


def test_the_lists_of_lots_are_those_of_paper_and_repository() -> None:
    assert Counter(lot.start for lot in PAPER_LOTS) == {1000: 2, 2000: 2, 3000: 2, 4000: 2, 5000: 2}
    assert Counter(lot.start for lot in NICHE_LOTS) == {5000: 4, 1000: 16}
    assert all(lot.true_value == 2 * lot.start for lot in REPOSITORY_LOTS)


def test_the_repository_list_is_the_file_of_the_authors() -> None:
    folder = os.environ.get("MESA_LLM_DATA")
    if not folder:
        pytest.skip("MESA_LLM_DATA names no folder of original data")
    lots = read_lots(Path(folder, "auctionarena", "pseudo_items.jsonl"))
    assert [(lot.name, lot.start, lot.true_value) for lot in lots] == [
        (lot.name, lot.start, lot.true_value) for lot in REPOSITORY_LOTS
    ]


def test_a_list_is_read_from_a_file_and_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lots.jsonl"
    path.write_text(json.dumps({"name": "Vase", "price": 100}) + "\n\n", encoding="utf-8")
    assert read_lots(path) == (Lot("Vase", 100, 200),)
    for line, fault in {
        '{"name": "Vase"}': "a name and a price",
        "Vase": "wanted a JSON object",
        "[1]": "each row is an object",
        '{"name": "Vase", "price": 9.5}': "whole dollars, got 9.5",
        '{"name": "Vase", "price": 9, "true_value": "much"}': "true_value must be in whole dollars, got 'much'",
    }.items():
        path.write_text(f'\ufeff{{"name": "A\u2028B", "price": 1e2}}\n{line}', encoding="utf-8")
        with pytest.raises(ConfigError, match=f"line 2.*{fault}"):
            read_lots(path)
    with pytest.raises(ConfigError, match="cannot be opened"):
        read_lots(tmp_path / "none.jsonl")


def test_lots_come_up_in_the_order_asked_for() -> None:
    rng = random.Random(3)
    assert [lot.start for lot in ordered_lots(PAPER_LOTS, "ascending", rng)][:3] == [1000, 1000, 2000]
    assert [lot.name for lot in ordered_lots(PAPER_LOTS, "descending", rng)][:2] == ["Equipment E", "Mechanism J"]
    assert sorted(ordered_lots(PAPER_LOTS, "random", rng), key=PAPER_LOTS.index) == list(PAPER_LOTS)
    with pytest.raises(ConfigError, match="no order 'alphabetical'"):
        ordered_lots(PAPER_LOTS, "alphabetical", rng)  # pyright: ignore[reportArgumentType]


def test_estimates_are_rounded_down() -> None:
    assert Bidder(1, "Ana").estimate(Lot("Vase", 1000, 2000)) == 2200
    assert Bidder(1, "Ana", overestimate_percent=15).estimate(Lot("Vase", 5, 11)) == 12
