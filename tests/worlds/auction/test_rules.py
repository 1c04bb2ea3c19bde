"""The bidding on one lot: ties, minimum raise, hammer, and what can never happen."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ToolError
from mesa_llm_models.auction_arena.world import Auction, AuctionRules, Bidder, Lot
from mesa_llm_models.auction_arena.world.rules import TieRule, round_view, take_down
from mesa_llm_models.auction_arena.world.state import NOTHING_YET, BidRecord

T = TypeVar("T")


class GivenCoins:
    """Answers every choice between two from a list of bits, and counts how many were wanted."""

    def __init__(self, bits: Sequence[int]) -> None:
        self.bits = list(bits)
        self.probability = Fraction(1)

    def choice(self, seq: Sequence[T], /) -> T:
        if not self.bits:
            raise IndexError("one more coin is wanted")
        self.probability /= 2
        return seq[self.bits.pop(0)]


def scan_probabilities(amounts: list[int]) -> dict[int | None, Fraction]:
    """Find each bidder's probability to lead under the original tie rule, by going through all coins."""
    chances: dict[int | None, Fraction] = {}
    open_ends: list[list[int]] = [[]]
    while open_ends:
        bits = open_ends.pop()
        coins: Any = GivenCoins(bits)
        try:
            leader = take_down(list(enumerate(amounts)), NOTHING_YET, "scan", coins)[-1].leader
        except IndexError:
            open_ends += [[*bits, 0], [*bits, 1]]
            continue
        chances[leader] = chances.get(leader, Fraction(0)) + coins.probability
    return chances


@pytest.mark.parametrize(
    ("amounts", "chances"),
    [([5, 5], ["1/2", "1/2"]), ([5, 5, 4], ["3/8", "5/8"]), ([5, 5, 5], ["3/16", "5/16", "1/2"])],
)
def test_the_original_tie_rule_favours_late_seats(amounts: list[int], chances: list[str]) -> None:
    assert scan_probabilities(amounts) == dict(enumerate(map(Fraction, chances)))


def test_uniform_ties_favour_nobody() -> None:
    rng = random.Random(1)
    bids = [(1, 5), (2, None), (3, 5), (4, 4), (5, 5)]
    leaders = [take_down(bids, NOTHING_YET, "uniform", rng)[-1].leader for _ in range(3000)]
    for bidder in (1, 3, 5):
        assert leaders.count(bidder) == pytest.approx(1000, abs=4 * (3000 * 2 / 9) ** 0.5)


def test_of_many_bids_everyone_hears_the_highest_by_seat() -> None:
    bids = [BidRecord(bidder, None if bidder == 50 else 100 + bidder % 40, (), NOTHING_YET) for bidder in range(50)]
    bids.append(BidRecord(50, None, (), NOTHING_YET))
    view = round_view(bids, {bidder: f"B{bidder}" for bidder in range(51)})
    assert [name for name, _ in view.bids] == [f"B{bidder}" for bidder in range(10, 40)]
    assert view.more == 21


Answers = Callable[[random.Random, Auction, int], int | None]


def drive(auction: Auction, rng: random.Random, answer: Answers) -> None:
    """Let bidders answer in an arbitrary order until the auction is over."""
    while not auction.is_over:
        while auction.due and auction.stage == "bid":
            agent_id = rng.choice(auction.due)
            amount = answer(rng, auction, agent_id)
            try:
                auction.withdraw(agent_id) if amount is None else auction.bid(agent_id, amount)
            except ToolError:
                continue
        auction.end_step()


def wild(rng: random.Random, auction: Auction, agent_id: int) -> int | None:
    minimum = auction.facts(agent_id).min_bid
    return rng.choice([None, minimum, minimum + rng.randint(0, 90), rng.randint(-50, 5000), 10**30, 0])


def market(seed: int, tie: TieRule = "uniform", **rules: Any) -> Auction:
    rng = random.Random(seed)
    lots = [Lot(f"Lot {n}", start, 2 * start) for n, start in enumerate(rng.choices(range(1, 900), k=4))]
    bidders = [
        Bidder(n, f"Bidder {n}", rng.randint(0, 3000), planning="none", keeps_beliefs=False) for n in range(1, 5)
    ]
    return Auction(lots, bidders, rules=AuctionRules(tie=tie, **rules), rng=seed)


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["uniform", "scan"]))
@settings(max_examples=60, deadline=None)
def test_whatever_is_bid_the_books_add_up(seed: int, discount: bool, tie: TieRule) -> None:
    auction = market(seed, tie, discount=discount)
    drive(auction, random.Random(seed), wild)
    for account in auction.accounts.values():
        assert account.budget == account.bidder.budget - sum(win.price for win in account.wins) >= 0
        assert account.profit == sum(win.lot.true_value - win.price for win in account.wins)
    assert len(auction.sales) == 4
    assert sum(len(account.wins) for account in auction.accounts.values()) <= 4


@given(st.integers(0, 10**6), st.sampled_from(["uniform", "scan"]))
@settings(max_examples=60, deadline=None)
def test_the_winner_made_the_highest_bid_and_every_bid_raised_enough(seed: int, tie: TieRule) -> None:
    auction = market(seed, tie)
    drive(auction, random.Random(seed), wild)
    for sale in auction.sales:
        bids = [(one.amount, one.bidder) for bids in sale.bidding.rounds for one in bids if one.amount]
        assert sale.price == max((amount for amount, _ in bids), default=None)
        assert not bids or (sale.price, sale.winner) in bids
        top = sale.lot.start - max(1, int(sale.lot.start * 0.1))
        for round_bids in sale.bidding.rounds:
            made = [one.amount for one in round_bids if one.amount is not None]
            assert all(amount >= top + max(1, int(sale.lot.start * 0.1)) for amount in made)
            top = max([top, *made])


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_order_in_which_bids_arrive_does_not_matter(seed: int, shuffle_seed: int) -> None:
    def steady(rng: random.Random, auction: Auction, agent_id: int) -> int | None:
        seen = auction.facts(agent_id)
        return seen.min_bid if seen.min_bid <= seen.budget and seen.bids_made < agent_id + 1 else None

    first, second = market(seed), market(seed)
    drive(first, random.Random(0), steady)
    drive(second, random.Random(shuffle_seed), steady)
    assert [(sale.winner, sale.price) for sale in first.sales] == [(s.winner, s.price) for s in second.sales]


def two_bidders(**rules: Any) -> Auction:
    bidders = [Bidder(n, f"Bidder {n}", 500, planning="none", keeps_beliefs=False) for n in (1, 2)]
    return Auction([Lot("Vase", 100, 200), Lot("Lamp", 100, 200)], bidders, rules=AuctionRules(**rules), rng=1)


def test_a_single_opening_bid_wins_at_once() -> None:
    auction = two_bidders()
    auction.bid(1, 300)
    auction.withdraw(2)
    (event,) = auction.end_step()
    assert (event.kind, event.facts["winner"], event.facts["price"]) == ("lot_sold", 1, 300)
    assert auction.accounts[1].profit == -100


def test_the_leader_is_not_asked_and_a_raise_counts_from_the_round_before() -> None:
    auction = two_bidders()
    auction.bid(1, 100)
    auction.bid(2, 150)
    assert auction.end_step() == []
    assert auction.due == (1,)
    with pytest.raises(ToolError, match=r"does not raise \$150 by at least \$10; bid at least \$160"):
        auction.bid(1, 159)


def test_a_lot_that_nobody_bids_on_passes() -> None:
    auction = two_bidders()
    auction.withdraw(1)
    auction.withdraw(2)
    (event,) = auction.end_step()
    assert event.kind == "lot_unsold"
    assert "true_value" not in event.facts
    assert auction.due == (1, 2)


def test_three_discounts_halve_the_price_and_readmit_everyone() -> None:
    auction = two_bidders(discount=True)
    for price in (100, 50, 25, 12):
        assert auction.facts(1).lot.start == price
        assert auction.due == (1, 2)
        auction.end_step()
    assert auction.sales[0].winner is None
    assert auction.facts(1).lot.start == 100
