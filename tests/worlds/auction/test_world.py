"""The auction as bidders and models meet it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import World
from mesa_llm_models.auction_arena.world import Auction, AuctionRules, Belief, Bidder, Lot, Priorities

NAN: Any = math.nan
INF: Any = math.inf

LOTS = [Lot("Vase", 100, 200), Lot("Lamp", 200, 400)]


def auction(*bidders: Bidder, **options: Any) -> Auction:
    return Auction(LOTS, bidders or (Bidder(1, "Ana", 500), Bidder(2, "Ben", 500)), rng=1, **options)


def at_first_lot(**options: Any) -> Auction:
    opened = auction(**options)
    opened.end_step()
    return opened


def sold(price: int = 120) -> Auction:
    """Sell the vase to Ana; both are asked for their beliefs now."""
    opened = at_first_lot()
    opened.bid(1, price)
    opened.withdraw(2)
    opened.end_step()
    return opened


def belief(budget: float, ana: float, **wins: dict[str, float]) -> dict[str, Any]:
    return {
        "remaining_budget": budget,
        "total_profits": {"Ana": ana, "Ben": 0},
        "winning_bids": {"Ana": {}, "Ben": {}} | wins,
    }


def test_it_is_a_world() -> None:
    assert isinstance(auction(), World)


def test_the_stages_follow_each_other_lot_by_lot() -> None:
    opened, stages = auction(), []
    while not opened.is_over:
        stages.append((opened.stage, opened.due))
        opened.end_step()
    everyone = (1, 2)
    first = [("plan", everyone), ("bid", everyone), ("belief", everyone), ("replan", everyone)]
    assert stages == [*first, ("bid", everyone), ("belief", everyone)]


def test_stages_in_which_nobody_is_asked_are_passed_over() -> None:
    rule = [Bidder(n, f"Rule {n}", planning="none", keeps_beliefs=False) for n in (1, 2)]
    opened = auction(*rule)
    assert opened.stage == "bid"
    opened.end_step()
    assert (opened.stage, opened.facts(1).lot.name) == ("bid", "Lamp")


def test_only_adaptive_bidders_replan() -> None:
    opened = auction(Bidder(1, "Ana"), Bidder(2, "Ben", planning="static"), Bidder(3, "Cy", planning="none"))
    assert opened.due == (1, 2)
    for _ in range(3):
        opened.end_step()
    assert (opened.stage, opened.due) == ("replan", (1,))


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (501, r"more than the \$500 you have left"),
        (99, r"below the starting price of \$100"),
        (0, "below the starting price"),
        (-5, "below the starting price"),
        pytest.param(10**5000, "an absurd amount is more than", id="absurd"),
    ],
)
def test_a_bid_that_breaks_a_rule_is_refused_counted_and_asked_for_again(amount: int, reason: str) -> None:
    opened = at_first_lot()
    with pytest.raises(ToolError, match=reason):
        opened.bid(1, amount)
    assert (opened.accounts[1].failed_bids, opened.accounts[1].bid_calls) == (1, 1)
    assert 1 in opened.due
    assert "Your last answer was refused" in opened.observe(1).text


@pytest.mark.parametrize("amount", [math.nan, 150.5, "150", True, None])
def test_a_bid_that_is_no_whole_number_is_refused(amount: Any) -> None:
    opened = at_first_lot()
    with pytest.raises(ToolError, match="whole number of dollars"):
        opened.bid(1, amount)
    assert opened.accounts[1].bid_calls == 0


def test_a_stubborn_bidder_is_out_after_three_retries() -> None:
    opened = at_first_lot()
    for _ in range(3):
        with pytest.raises(ToolError):
            opened.bid(1, 1)
    with pytest.raises(ToolError, match="used up your tries"):
        opened.bid(1, 1)
    assert opened.due == (2,)
    opened.end_step()
    assert opened.sales[0].bidding.rounds[0][0].amount is None


def test_under_the_original_rules_a_stubborn_bidder_is_asked_for_ever() -> None:
    opened = at_first_lot(rules="original")
    for _ in range(50):
        with pytest.raises(ToolError):
            opened.bid(1, 1)
    assert 1 in opened.due


def test_unclear_replies_use_up_tries_but_are_no_failed_bids() -> None:
    opened = at_first_lot()
    for _ in range(4):
        opened.note_unclear(1)
    assert (opened.accounts[1].failed_bids, opened.accounts[1].bid_calls, opened.due) == (0, 4, (2,))


def test_who_is_not_asked_is_told_why() -> None:
    opened = at_first_lot()
    opened.bid(1, 100)
    with pytest.raises(ToolError, match="answered already"):
        opened.bid(1, 110)
    with pytest.raises(ToolError, match="not the time to plan: the auction is at the stage 'bid'"):
        opened.plan(1, {"Vase": 3})
    with pytest.raises(ToolError, match="agent 9 is no bidder"):
        opened.withdraw(9)
    opened.bid(2, 150)
    opened.end_step()
    with pytest.raises(ToolError, match="you lead already"):
        opened.bid(2, 200)


def test_a_model_may_bid_only_when_it_is_asked() -> None:
    opened = at_first_lot()
    box = ToolBox.of(object(), 1, [opened])
    assert list(box.usable) == ["bid", "withdraw"]
    box.call(ToolCall("bid", {"amount": "100"}))
    assert list(box.usable) == []


def test_a_plan_is_checked_and_sent_back_twice() -> None:
    opened = auction()
    with pytest.raises(ToolError, match="not Sofa"):
        opened.plan(1, {"Vase": 3, "Sofa": 1})
    with pytest.raises(ToolError, match="priority of Lamp must be 1, 2 or 3"):
        opened.plan(1, {"Lamp": 7})
    with pytest.raises(ToolError, match="The plan you had stays in force"):
        opened.plan(1, {})
    assert opened.due == (2,)
    assert opened.accounts[1].plans == []


def test_a_new_plan_knows_whether_it_changes_a_priority() -> None:
    opened = auction()
    for bidder in (1, 2):
        opened.plan(bidder, {"Vase": 1, "Lamp": 3})
    for _ in range(3):
        opened.end_step()
    opened.plan(1, {"Lamp": 3})
    opened.plan(2, {"Lamp": 2})
    assert [opened.accounts[bidder].plans[-1].is_change for bidder in (1, 2)] == [False, True]


def test_right_beliefs_are_taken_down() -> None:
    opened = sold()
    opened.report_belief(1, belief(380, 80, Ana={"Vase": 120}))
    counts = opened.accounts[1].beliefs
    assert (counts.self_checks, counts.other_checks) == (3, 2)
    assert counts.self_errors + counts.other_errors == 0
    assert opened.due == (2,)


def test_wrong_beliefs_come_back_with_the_truth_four_times() -> None:
    opened = sold()
    for _ in range(4):
        with pytest.raises(ToolError, match=r"you have \$380 left, not \$500.*Ana has won Vase, not nothing"):
            opened.report_belief(1, belief(500, 80))
    opened.report_belief(1, belief(500, 80))
    counts = opened.accounts[1].beliefs
    assert (counts.self_errors, counts.self_checks, counts.other_errors) == (8, 12, 0)


def test_a_belief_that_cannot_be_read_is_not_counted() -> None:
    opened = sold()
    with pytest.raises(ToolError, match="'winning_bids' is missing"):
        opened.report_belief(1, {"remaining_budget": 1, "total_profits": {}})
    with pytest.raises(ToolError, match="must be one number"):
        opened.report_belief(1, belief(1, 1) | {"remaining_budget": "a lot"})
    assert opened.accounts[1].beliefs.self_checks == 0


def test_a_bidder_without_correction_keeps_its_wrong_belief() -> None:
    opened = auction(Bidder(1, "Ana", 500, corrects_beliefs=False), Bidder(2, "Ben"))
    opened.end_step()
    opened.end_step()
    opened.report_belief(1, belief(1, 2))
    assert opened.accounts[1].belief["remaining_budget"] == 1
    assert opened.accounts[1].beliefs.self_errors == 2
    assert opened.accounts[1].budget == 500


def test_a_malformed_belief_is_kept_under_the_original_rules_and_harms_nothing() -> None:
    opened = at_first_lot(rules="original")
    opened.end_step()
    for _ in range(4):
        with pytest.raises(ToolError, match="no JSON object"):
            opened.report_belief(1, {})
    opened.report_belief(1, {"total_profits": 3})
    opened.end_step()
    assert "lost track" in opened.observe(1).text


def test_bidder_1_does_not_take_bidder_10_for_itself() -> None:
    def errors(rules: AuctionRules) -> tuple[int, int]:
        names = [Bidder(n, f"Bidder {n}", 500, planning="none") for n in (1, 10)]
        opened = Auction(LOTS, names, rules=rules, rng=1)
        opened.end_step()
        beliefs = {"remaining_budget": 500, "total_profits": {"Bidder 10": 5}, "winning_bids": {}}
        with pytest.raises(ToolError):
            opened.report_belief(1, beliefs)
        return opened.accounts[1].beliefs.self_errors, opened.accounts[1].beliefs.other_errors

    assert errors(AuctionRules()) == (0, 1)
    assert errors(AuctionRules(match_part=True)) == (1, 0)


def test_true_values_are_hidden_and_budgets_follow_stated_beliefs() -> None:
    opened = sold()
    text = opened.observe(2).text
    assert "Vase went to Ana for $120; its true value is $200." in text
    assert "profit of $80" not in text
    assert "400" not in opened.observe(1).text
    assert "$380" not in opened.observe(1).text


def test_what_is_asked_for_follows_the_stage() -> None:
    opened = auction()
    assert (opened.observe(1).answer, opened.observe(1).tools) == (Priorities, ())
    opened.end_step()
    assert (opened.observe(1).answer, opened.observe(1).tools) == (None, ("bid", "withdraw"))
    opened.end_step()
    assert opened.observe(1).answer is Belief


def test_facts_tell_a_rule_twin_all_that_is_public() -> None:
    seen = sold().facts(2)
    assert (seen.rivals[0].spent, seen.rivals[0].profit, seen.rivals[0].lots) == (120, 80, ("Vase",))
    assert (seen.sales[0].winner, seen.sales[0].true_value) == ("Ana", 200)
    assert [(lot.name, lot.estimate) for lot in seen.remaining] == [("Lamp", 440)]


def crowded() -> Auction:
    """Sell the vase to the last of fifty bidders."""
    opened = at_first_lot_of(50)
    for agent_id in range(1, 51):
        opened.bid(agent_id, 100 + agent_id)
    opened.end_step()
    opened.end_step()
    return opened


def at_first_lot_of(n: int) -> Auction:
    opened = auction(*(Bidder(agent_id, f"B{agent_id}", 500) for agent_id in range(1, n + 1)))
    opened.end_step()
    return opened


def test_of_many_rivals_one_watches_those_who_won_and_the_first_seats() -> None:
    seen = crowded().facts(1)
    assert [rival.name for rival in seen.rivals] == [*(f"B{agent_id}" for agent_id in range(2, 31)), "B50"]
    assert seen.more_rivals == 19


def test_who_is_not_watched_watches_as_many_others() -> None:
    opened = crowded()
    assert opened.auctioneer.watched_by(40)[-1] is opened.accounts[40]
    assert [rival.name for rival in opened.facts(40).rivals] == [*(f"B{agent_id}" for agent_id in range(1, 30)), "B50"]


def test_a_text_for_one_of_many_says_how_many_more_there_are() -> None:
    seen = crowded().observe(1)
    assert "B31, 19 more. Lots come up" in seen.instructions
    assert "B50 bid $150, and 20 more, none of them higher." in seen.text


@pytest.mark.parametrize(
    ("lots", "bidders", "reason"),
    [
        ([], [Bidder(1, "Ana")], "at least one lot"),
        (LOTS, [], "at least one bidder"),
        (LOTS, [Bidder(1, "Ana"), Bidder(2, "Ana")], "bidder 'Ana' appears twice"),
        (LOTS, [Bidder(1, "Ana"), Bidder(1, "Ben")], "bidder id 1 appears twice"),
        ([Lot("Vase", 0, 1)], [Bidder(1, "Ana")], "starting price of Vase"),
        (LOTS, [Bidder(1, "Ana", -1)], "must not be negative"),
        ([Lot("Vase", NAN, 1)], [Bidder(1, "Ana")], "starting price of Vase"),
        ([Lot("Vase", 1, INF)], [Bidder(1, "Ana")], "true value of Vase"),
        (LOTS, [Bidder(1, "Ana", NAN)], "budget must be in whole dollars"),
    ],
)
def test_what_cannot_be_auctioned_is_refused(lots: list[Lot], bidders: list[Bidder], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Auction(lots, bidders)


def test_who_cannot_pay_the_lowest_bid_can_only_withdraw() -> None:
    opened = auction(Bidder(1, "Ana", 99), Bidder(2, "Ben", 100))
    opened.end_step()
    assert (opened.observe(1).tools, opened.observe(2).tools) == (("withdraw",), ("bid", "withdraw"))
