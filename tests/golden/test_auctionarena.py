"""AuctionArena's auctions, as the authors' program held them with scripted bidders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mesa_llm.errors import ToolError
from mesa_llm_models.auction_arena.policies import RuleBidder
from mesa_llm_models.auction_arena.world import ORIGINAL_RULES, Auction, Bidder, BidderAccount, BidRecord, Lot, rate
from mesa_llm_models.auction_arena.world.scores import BETA, DRAW_PROBABILITY, MU, SIGMA, TAU
from tests.golden.reading import Recorded, golden, name_of, section

T = TypeVar("T")

CASES = golden("auctionarena")
CODES = {None: 0, "over_budget": 1, "below_start": 2, "small_raise": 3}


NOT_COMPARED = {
    "description": "prose about the scenario",
    "bidders.plan_strategy": "rule bidders carry one and make no plans",
    "seed": "draws are taken from the recording, not from the original's generator",
}
"""Parts of a case that no test reads → why."""


class RecordedRng:
    """Returns the tie draws of a recording, in order, and checks that they are asked for."""

    def __init__(self, numbers: dict[str, int], scenario: dict[str, Any]) -> None:
        records = [one for item in scenario["trace"] for bids in item["rounds"] for one in bids]
        self.draws = [
            (numbers[leader], numbers[rival], taken) for one in records for leader, rival, taken in one["tie_draws"]
        ]

    def choice(self, seq: Sequence[T], /) -> T:
        leader, rival, taken = self.draws.pop(0)
        assert tuple(seq) == (leader, rival)
        return seq[taken]


class Replay:
    """Drives our auction through one recorded one."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.numbers = {bidder["name"]: seat for seat, bidder in enumerate(scenario["bidders"], start=1)}
        self.names = {seat: name for name, seat in self.numbers.items()}
        self.rule_bidders = {one["name"] for one in scenario["bidders"] if one["model_name"] == "rule"}
        self.rng: Any = RecordedRng(self.numbers, scenario)
        share, discount = scenario["min_markup_pct"], scenario["enable_discount"]
        lots = {one["name"]: Lot(one["name"], one["price"], one["true_value"]) for one in scenario["items"]}
        self.auction = Auction(
            [lots[name] for name in scenario["item_order"]],
            [self.bidder(one) for one in scenario["bidders"]],
            rules=replace(ORIGINAL_RULES, raise_share=share, discount=discount),
            rng=self.rng,
        )

    def bidder(self, one: dict[str, Any]) -> Bidder:
        is_rule = one["name"] in self.rule_bidders
        return Bidder(
            self.numbers[one["name"]],
            one["name"],
            one["budget"],
            one["desire"],
            "none" if is_rule else one["plan_strategy"],
            one["overestimate_percent"],
            not is_rule,
            one["correct_belief"],
        )

    def account(self, name: str) -> BidderAccount:
        return self.auction.accounts[self.numbers[name]]

    def run(self) -> None:
        for reply in self.scenario["initial_plans"]:
            self.answer(*reply)
        self.go_on_to("bid")
        for item in self.scenario["trace"]:
            self.sell(item)
        assert self.auction.is_over
        assert not self.rng.draws

    def sell(self, item: dict[str, Any]) -> None:
        assert self.auction.auctioneer.bidding.lot.name == item["item"]
        unclear = self.unclear_replies(item)
        for bids in item["rounds"]:
            assert [self.names[agent_id] for agent_id in self.auction.due] == [one["bidder"] for one in bids]
            for one in bids:
                for _ in range(unclear.pop(one["bidder"], 0)):
                    self.auction.note_unclear(self.numbers[one["bidder"]])
                self.bid(one)
            self.auction.end_step()
        sale = self.auction.sales[-1]
        for found, wanted in zip(sale.bidding.rounds, item["rounds"], strict=True):
            self.compare_round(found, wanted)
        assert (self.name_of(sale.winner), -1 if sale.price is None else sale.price) == (item["winner"], item["price"])
        assert (sale.lot.start, sale.lot.true_value) == (item["start"], item["true_value"])
        assert sale.bidding.start == item["final_start"]
        for reply in item["replies"]:
            self.answer(*reply)
        self.go_on_to("bid")
        for name, wanted in item["after"].items():
            self.compare_account(name, wanted)

    def unclear_replies(self, item: dict[str, Any]) -> dict[str, int]:
        """Count, by bidder, the calls that left no bid; the recording counts them and does not hold them."""
        made = [(one["bidder"], len(one["attempts"])) for bids in item["rounds"] for one in bids]
        return {
            name: after["bids"] - self.calls(name) - sum(tries for who, tries in made if who == name)
            for name, after in item["after"].items()
            if name not in self.rule_bidders
        }

    def bid(self, one: dict[str, Any]) -> None:
        agent_id = self.numbers[one["bidder"]]
        for amount, code in one["attempts"]:
            if one["bidder"] in self.rule_bidders:
                assert (RuleBidder().bid(self.auction.facts(agent_id), self.rng) or -1) == amount
            if amount is None:
                self.auction.note_unclear(agent_id)
            elif amount < 0:
                self.auction.withdraw(agent_id)
            elif code == 0:
                self.auction.bid(agent_id, amount)
            else:
                with pytest.raises(ToolError):
                    self.auction.bid(agent_id, amount)

    def answer(self, name: str, tag: str, reply: Any) -> None:
        """Hand over a plan or a belief."""
        stage = stage_of(tag)
        self.go_on_to(stage)
        said = reply if isinstance(reply, dict) else last_object(reply or "")
        if isinstance(said, Recorded):
            said.read_all()
        take = self.auction.report_belief if stage == "belief" else self.auction.plan
        try:
            take(self.numbers[name], said)
        except ToolError:
            return

    def go_on_to(self, *stages: str) -> None:
        while self.auction.stage not in (*stages, "over"):
            assert not self.auction.due
            self.auction.end_step()

    def compare_round(self, found: Sequence[BidRecord], wanted: list[dict[str, Any]]) -> None:
        for ours, theirs in zip(found, wanted, strict=True):
            clear = [one for one in ours.attempts if one.fault != "unclear"]
            bids = [[-1 if one.amount is None else one.amount, CODES[one.fault]] for one in clear]
            assert bids == [attempt for attempt in theirs["attempts"] if attempt[0] is not None]
            assert (-1 if ours.amount is None else ours.amount) == theirs["bid"]
            assert ours.standing.top == theirs["highest_bid"]
            assert self.name_of(ours.standing.leader) == theirs["highest_bidder"]

    def compare_account(self, name: str, wanted: dict[str, Any]) -> None:
        account = self.account(name)
        counts = account.beliefs
        found = {
            "budget": account.budget,
            "profit": account.profit,
            "items": [win.lot.name for win in account.wins],
            "engagement": sum(account.engagement.values()),
            "failed": account.failed_bids,
            "self_err": counts.self_errors,
            "self_tot": counts.self_checks,
            "oth_err": counts.other_errors,
            "oth_tot": counts.other_checks,
            "withdraw": account.is_withdrawn,
        }
        assert found | {"bids": self.calls(name)} == wanted

    def calls(self, name: str) -> int:
        """Count calls as the original does: rule bidders are never called."""
        return 0 if name in self.rule_bidders else self.account(name).bid_calls

    def final(self, name: str) -> dict[str, Any]:
        account = self.account(name)
        counts = account.beliefs
        return {
            "budget": account.budget,
            "profit": account.profit,
            "items_won": [[win.lot.name, win.price] for win in account.wins],
            "engagement_count": sum(account.engagement.values()),
            "engagement": account.engagement,
            "total_bid_cnt": self.calls(name),
            "failed_bid_cnt": account.failed_bids,
            "self_belief": [counts.self_errors, counts.self_checks],
            "other_belief": [counts.other_errors, counts.other_checks],
            "changes_of_plan": [
                [f"{plan.lots_before} ({plan.last_lot or 'Initial'})", plan.is_change] for plan in account.plans
            ],
            "budget_history": account.budgets,
            "profit_history": account.profits,
        }

    def name_of(self, agent_id: int | None) -> str | None:
        return None if agent_id is None else self.names[agent_id]


def stage_of(tag: str) -> str:
    """Find from the kind of a recorded reply (summarize, resummarize, plan, replan) in which stage it was given."""
    if "summar" in tag:
        return "belief"
    return "replan" if tag.startswith("re") else "plan"


def last_object(text: str) -> dict[str, Any]:
    """Read the last JSON object in a text; an empty one if there is none."""
    decoder, found, place = json.JSONDecoder(), {}, text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            end = place + 1
        place = text.find("{", end)
    return found


@pytest.mark.parametrize("scenario", section(CASES, "scenarios"), ids=name_of)
def test_a_recorded_auction_replays(scenario: dict[str, Any]) -> None:
    replay = Replay(scenario)
    replay.run()
    assert {name: replay.final(name) for name in scenario["final"]} == scenario["final"]


def believer(scenario: dict[str, Any]) -> str:
    """Return the first whose belief is right at once and would be sent back otherwise; empty if there is none."""
    tellers = [reply[0] for reply in scenario["trace"][0]["replies"] if "summar" in reply[1]]
    corrected = [one["name"] for one in scenario["bidders"] if one["correct_belief"]]
    return next((name for name in corrected if tellers.count(name) == 1), "")


VARIED = [deepcopy(one) for one in section(CASES, "scenarios") if believer(one)]

varied = pytest.mark.parametrize("number", range(len(VARIED)), ids=[name_of(one) for one in VARIED])


def more_counted(scenario: dict[str, Any], name: str, more: dict[str, int]) -> None:
    """Raise the counters of a bidder after every item."""
    for item in scenario["trace"]:
        after = item["after"][name]
        item["after"][name] = after | {key: after[key] + count for key, count in more.items()}


@varied
@pytest.mark.parametrize("is_read", [True, False], ids=["wrong", "unreadable"])
def test_a_belief_that_was_sent_back_replays(number: int, is_read: bool) -> None:
    scenario = dict(deepcopy(VARIED[number]))
    name = believer(scenario)
    replies = scenario["trace"][0]["replies"]
    place = next(n for n, reply in enumerate(replies) if reply[0] == name)
    _, kind, right = replies[place]
    bad = {**right, "remaining_budget": -1} if is_read else None
    replies.insert(place, [name, kind, bad])
    replies[place + 1][1] = f"re{kind}"
    names = {one["name"] for one in scenario["bidders"]}
    lists = [listed for key in ("total_profits", "winning_bids") for listed in right[key] if listed in names]
    others = sum(name not in listed for listed in lists)  # names that hold the own one count as the own
    more = {"self_err": 1, "self_tot": 1 + len(lists) - others, "oth_tot": others} if is_read else {}
    more_counted(scenario, name, more)
    replay = Replay(scenario)
    replay.run()
    assert replay.account(name).beliefs.self_errors == scenario["final"][name]["self_belief"][0] + is_read


@varied
def test_replies_that_were_no_bids_replay_whatever_else_the_scenario_holds(number: int) -> None:
    scenario = dict(deepcopy(VARIED[number]))
    name = believer(scenario)
    scenario |= {"id": "another", "description": ""}
    more_counted(scenario, name, {"bids": 2})
    replay = Replay(scenario)
    replay.run()
    assert replay.calls(name) == scenario["final"][name]["total_bid_cnt"] + 2


def results(game: dict[str, Any]) -> dict[str, float]:
    return dict(zip(game["after"], game["profits"], strict=True))


TWO_PLAYERS = {"two_player_win": (1, 0), "two_player_draw": (1, 1)}
"""Single games of two that the file holds → profits of the two."""


@pytest.mark.parametrize("ratings", section(CASES, "trueskill"))
def test_ratings_are_the_recorded_ones(ratings: dict[str, Any]) -> None:
    assert ratings.get("package", "trueskill ").startswith("trueskill ")
    found = {"mu": MU, "sigma": SIGMA, "beta": BETA, "tau": TAU, "draw_probability": DRAW_PROBABILITY}
    assert found == ratings.get("params", found)
    for games in (ratings[key] for key in ratings if key.endswith("_games")):
        history = rate([results(game) for game in games])
        for after, game in zip(history, games, strict=True):
            assert after == {name: tuple(rating) for name, rating in game["after"].items()}
            better = sorted(set(game["profits"]), reverse=True)
            assert game["ranks"] == [better.index(profit) for profit in game["profits"]]
    for case in TWO_PLAYERS.keys() & ratings.keys():
        (after,) = rate([dict(zip("ab", TWO_PLAYERS[case], strict=True))])
        assert [list(rating) for rating in after.values()] == ratings[case]
