"""AuctionArena's auctions, as the authors' program held them with scripted bidders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.worlds.auction import ORIGINAL_RULES, Account, Auction, Bidder, BidRecord, Lot
from mesa_llm.worlds.auction.policies import RuleBidder
from mesa_llm.worlds.auction.scores import BETA, DRAW_PROBABILITY, MU, SIGMA, TAU, rate
from tests.golden.reading import golden

T = TypeVar("T")

CASES = golden("auctionarena")
CODES = {None: 0, "over_budget": 1, "below_start": 2, "small_raise": 3}


class RecordedCoins:
    """Gives the tie draws of a recording, in order, and checks that they are asked for."""

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
        self.coins: Any = RecordedCoins(self.numbers, scenario)
        share, discount = scenario["min_markup_pct"], scenario["enable_discount"]
        lots = {one["name"]: Lot(one["name"], one["price"], one["true_value"]) for one in scenario["items"]}
        self.auction = Auction(
            [lots[name] for name in scenario["item_order"]],
            [self.bidder(one) for one in scenario["bidders"]],
            rules=replace(ORIGINAL_RULES, raise_share=share, discount=discount),
            rng=self.coins,
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

    def account(self, name: str) -> Account:
        return self.auction.accounts[self.numbers[name]]

    def run(self) -> None:
        for reply in self.scenario["initial_plans"]:
            self.answer(*reply)
        self.go_on_to("bid")
        for item in self.scenario["trace"]:
            self.sell(item)
        assert self.auction.is_over
        assert not self.coins.draws

    def sell(self, item: dict[str, Any]) -> None:
        assert self.auction.auctioneer.bidding.lot.name == item["item"]
        unclear = self.unclear_replies(item)
        for bids in item["rounds"]:
            assert [self.names[actor] for actor in self.auction.asked] == [one["bidder"] for one in bids]
            for one in bids:
                for _ in range(unclear.pop(one["bidder"], 0)):
                    self.auction.note_unclear(self.numbers[one["bidder"]])
                self.bid(one)
            self.auction.end_step()
        sale = self.auction.sales[-1]
        for found, wanted in zip(sale.bidding.rounds, item["rounds"], strict=True):
            self.compare_round(found, wanted)
        assert (self.name_of(sale.winner), sale.price or -1) == (item["winner"], item["price"])
        assert (sale.lot.start, sale.lot.true_value) == (item["start"], item["true_value"])
        assert sale.bidding.start == item["final_start"]
        for reply in item["replies"]:
            self.answer(*reply)
        self.go_on_to("bid")
        for name, wanted in item["after"].items():
            self.compare_account(name, wanted)

    def unclear_replies(self, item: dict[str, Any]) -> dict[str, int]:
        """Count, by bidder, the calls that left no bid: those of a scenario with replies that are none."""
        if "invalid" not in self.scenario["id"] and "unpars" not in self.scenario["description"]:
            return {}
        made = [(one["bidder"], len(one["attempts"])) for bids in item["rounds"] for one in bids]
        return {
            name: after["bids"] - self.calls(name) - sum(tries for who, tries in made if who == name)
            for name, after in item["after"].items()
            if name not in self.rule_bidders
        }

    def bid(self, one: dict[str, Any]) -> None:
        actor = self.numbers[one["bidder"]]
        for amount, code in one["attempts"]:
            if one["bidder"] in self.rule_bidders:
                assert (RuleBidder().bid(self.auction.facts(actor), self.coins) or -1) == amount
            if amount is None:
                self.auction.note_unclear(actor)
            elif amount < 0:
                self.auction.withdraw(actor)
            elif code == 0:
                self.auction.bid(actor, amount)
            else:
                with pytest.raises(ToolError):
                    self.auction.bid(actor, amount)

    def answer(self, name: str, tag: str, reply: Any) -> None:
        """Give a plan or a belief."""
        stage = stage_of(tag)
        self.go_on_to(stage)
        said = reply if isinstance(reply, dict) else last_object(reply or "")
        take = self.auction.report_belief if stage == "belief" else self.auction.plan
        try:
            take(self.numbers[name], said)
        except ToolError:
            return

    def go_on_to(self, *stages: str) -> None:
        while self.auction.stage not in (*stages, "over"):
            assert not self.auction.asked
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

    def name_of(self, actor: int | None) -> str | None:
        return None if actor is None else self.names[actor]


def stage_of(tag: str) -> str:
    """Tell from the kind of a recorded reply (summarize, resummarize, plan, replan) in which stage it was given."""
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


@pytest.mark.parametrize("scenario", CASES["scenarios"], ids=lambda scenario: scenario["id"])
def test_a_recorded_auction_replays(scenario: dict[str, Any]) -> None:
    replay = Replay(scenario)
    replay.run()
    assert {name: replay.final(name) for name in scenario["final"]} == scenario["final"]


def test_a_belief_that_was_sent_back_replays() -> None:
    scenario = deepcopy(next(one for one in CASES["scenarios"] if one["id"] == "standard_3x10"))
    first = scenario["trace"][0]["replies"]
    name, kind, right = first[0]
    first[:1] = [[name, kind, {**right, "remaining_budget": -1}], [name, f"re{kind}", right]]
    more = {"self_err": 1, "self_tot": 3, "oth_tot": 4}
    for item in scenario["trace"]:
        after = item["after"][name]
        item["after"][name] = after | {key: after[key] + count for key, count in more.items()}
    replay = Replay(scenario)
    replay.run()
    assert [bidder["correct_belief"] for bidder in scenario["bidders"]] == [True] * 3
    assert replay.account(name).beliefs.self_errors == scenario["final"][name]["self_belief"][0] + 1


def results(game: dict[str, Any]) -> dict[str, float]:
    return dict(zip(game["after"], game["profits"], strict=True))


def test_ratings_after_each_of_ten_games_of_three() -> None:
    games = CASES["trueskill"]["three_player_ten_games"]
    history = rate([results(game) for game in games])
    for found, game in zip(history, games, strict=True):
        assert found == {name: tuple(rating) for name, rating in game["after"].items()}


@pytest.mark.parametrize(("case", "profits"), [("two_player_win", (1, 0)), ("two_player_draw", (1, 1))])
def test_ratings_after_one_game_of_two(case: str, profits: tuple[int, int]) -> None:
    (found,) = rate([{"a": profits[0], "b": profits[1]}])
    assert [list(rating) for rating in found.values()] == CASES["trueskill"][case]


def test_the_parameters_of_the_ratings() -> None:
    found = {"mu": MU, "sigma": SIGMA, "beta": BETA, "tau": TAU, "draw_probability": DRAW_PROBABILITY}
    assert found == CASES["trueskill"]["params"]
