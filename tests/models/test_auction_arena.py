"""Bidders at an auction: whole runs keep the books right, whatever bidders answer."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import BudgetExceeded, ConfigError, ScriptedLLM, ToolCall
from mesa_llm.records import Failure, Request
from mesa_llm.testing import honest, honest_reply
from mesa_llm.viz import markup
from mesa_llm_models.auction_arena.app import TEMPLATES, belief_views, bidder_views, lot_view, plan_views
from mesa_llm_models.auction_arena.model import AuctionArena, AuctionScenario
from mesa_llm_models.auction_arena.policies import TWINS, RuleBidder, play
from mesa_llm_models.auction_arena.scores import rating_history, standings, tournament
from mesa_llm_models.auction_arena.world import ORIGINAL_RULES

PAPER_VALUE = 60_000
"""What the ten lots of the paper are worth together, in dollars."""


def run(model: AuctionArena, steps: int = 100) -> AuctionArena:
    while model.running and model.time < steps:
        model.step()
    return model


def check_books(model: AuctionArena) -> None:
    for auction in model.finished_auctions:
        paid = sum(sale.price or 0 for sale in auction.sales)
        spent = sum(account.bidder.budget - account.budget for account in auction.accounts.values())
        worth = sum(sale.lot.true_value for sale in auction.sales if sale.winner is not None)
        won = [win.lot.name for account in auction.accounts.values() for win in account.wins]
        assert paid == spent
        assert sum(account.profit for account in auction.accounts.values()) == worth - paid
        assert sorted(won) == sorted(sale.lot.name for sale in auction.sales if sale.winner is not None)
        assert min(account.budget for account in auction.accounts.values()) >= 0


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_agents=st.integers(2, 5),
    budget=st.integers(0, 30_000),
    llm=st.sampled_from(["rule", "random"]),
    twins=st.sampled_from([*TWINS, "rule,zero,naive"]),
    discount=st.booleans(),
    tie=st.sampled_from(["uniform", "scan"]),
)
def test_money_and_lots_are_conserved_whatever_is_bid(seed, n_agents, budget, llm, twins, discount, tie) -> None:
    model = AuctionArena(
        n_agents=n_agents,
        llm=llm,
        twins=twins,
        budget=budget,
        discount=discount,
        tie=tie,
        n_lots=4,
        n_auctions=2,
        rng=seed,
    )
    run(model)
    assert len(model.finished_auctions) == 2
    check_books(model)


def test_a_step_is_a_lot_and_the_model_stops_after_the_last_one() -> None:
    model = AuctionArena(rng=1)
    for count in range(1, 11):
        model.step()
        assert len(model.auction.sales) == count
    assert not model.running
    assert model.auction.is_over


@pytest.mark.parametrize("name", TWINS)
def test_every_rule_twin_makes_legal_bids_only(name) -> None:
    model = run(AuctionArena(twins=name, rng=2, n_lots=5))
    assert all(account.failed_bids == 0 for account in model.auction.accounts.values())
    assert set(model.runlog.actions()["ok"]) == {1}


def test_random_bidders_make_legal_bids_and_plans() -> None:
    model = run(AuctionArena(llm="random", rng=3))
    done = model.runlog.actions()
    assert set(done[done["label"] != "belief"]["ok"]) == {1}


def test_rule_bidders_bid_as_they_do_without_agents_around_them() -> None:
    model = run(AuctionArena(twins="rule", tie="scan", rng=5))
    alone = AuctionArena(twins="rule", tie="scan", rng=5)
    play(alone.auction, dict.fromkeys(alone.bidders, RuleBidder()), alone.random)
    assert [sale.bidding for sale in model.auction.sales] == [sale.bidding for sale in alone.auction.sales]


def scripted(**answers: Any) -> ScriptedLLM:
    """Answer plans, bids and beliefs as given, a bid also by a function of the request; the rest sensibly."""

    def answer(request: Request) -> Any:
        fields = (request.schema or {}).get("properties", {})
        if not fields:
            bid = answers.get("bid", ToolCall("withdraw"))
            return bid(request) if callable(bid) else bid
        if "remaining_budget" in fields:
            names = request.schema["$defs"]["Profits"]["properties"] if request.schema else {}
            zero = {"total_profits": dict.fromkeys(names, 0), "winning_bids": {name: {} for name in names}}
            return answers.get("belief", {"remaining_budget": 20_000, **zero})
        return answers.get("plan", dict.fromkeys(fields, 2))

    return ScriptedLLM(answer)


BAD_AMOUNTS = [math.nan, math.inf, -5, 10**400, 1.5, "ten", None, 0, 500, 10**9, [1], True]


@pytest.mark.parametrize("amount", BAD_AMOUNTS, ids=repr)
def test_invalid_bid_is_refused_with_a_reason_until_the_bidder_is_out(amount) -> None:
    stubborn = scripted(bid=ToolCall("bid", {"amount": amount}))
    model = AuctionArena(n_agents=2, llm={"Bidder 1": stubborn, "*": "rule"}, n_lots=2, rng=1, max_retries=2)
    run(model)
    refused = model.runlog.actions().query("agent == 1 and action == 'bid' and ok == 0")["result"]
    reasons = [*refused, *model.runlog.failures()]
    assert len(reasons) == 6  # three tries on each of two lots
    assert all(len(reason) > 10 for reason in reasons)
    assert model.bidders[1].budget == 20_000
    check_books(model)


def test_a_bidder_reads_why_its_bid_was_refused() -> None:
    read: list[str] = []

    def bid(request: Request) -> ToolCall:
        read.append(request.messages[-1].content)
        return ToolCall("bid", {"amount": 100_000}) if len(read) == 1 else ToolCall("withdraw")

    run(AuctionArena(n_agents=2, llm={1: scripted(bid=bid), "*": "rule"}, n_lots=1, rng=1))
    assert "refused" not in read[0]
    assert "A bid of $100000 is more than the $20000 you have left" in read[1]


def test_what_an_outside_controller_bids_is_refused_with_a_reason() -> None:
    model = AuctionArena(n_agents=2, planning="none", n_lots=1, rng=1, max_retries=1)
    (first, _) = model.apply({1: ToolCall("bid", {"amount": math.nan}), 2: ToolCall("bid", {"amount": 5000})}).values()
    (second,) = model.apply({1: ToolCall("bid", {"amount": "much"})}).values()
    assert not first[0].ok
    assert not second[0].ok
    assert model.auction.stage == "belief"
    assert model.last_sale is not None
    assert model.last_sale.winner == 2


@pytest.mark.parametrize("plan", [7, {"Moon": 3}, {"Widget A": 9}, {}, {"Widget A": "3"}], ids=repr)
def test_an_unfit_plan_from_outside_changes_nothing_and_says_so(plan) -> None:
    model = AuctionArena(n_agents=2, n_lots=2, rng=1)
    outcomes, _ = model.apply({1: plan, 2: {"Widget A": 1}}).values()
    assert not outcomes[0].ok
    assert len(outcomes[0].result) > 10
    assert model.bidders[1].account.priorities == {}


def test_wrong_beliefs_are_sent_back_and_never_change_the_books() -> None:
    beliefs = {
        "remaining_budget": 1,
        "total_profits": {"Bidder 1": 9, "Bidder 2": 9},
        "winning_bids": {"Bidder 1": {}, "Bidder 2": {}},
    }
    model = AuctionArena(n_agents=2, llm={1: scripted(belief=beliefs), "*": "rule"}, n_lots=1, rng=1)
    run(model)
    counts = model.bidders[1].account.beliefs
    assert counts.self_checks == 4 * 3
    assert counts.self_errors == 4 * 2  # the budget and the profit, in each of four checks
    assert model.bidders[1].budget == 20_000


def test_a_plan_and_a_belief_are_asked_for_with_the_very_lots_and_bidders() -> None:
    model = AuctionArena(n_agents=2, names="Ana,Ben", n_lots=2, llm="random", rng=1)
    agent = model.bidders[1]
    names = [lot.name for lot in model.auction.auctioneer.lots]
    assert list(agent.observe().answer.__annotations__) == names
    model.apply({1: dict.fromkeys(names, 3), 2: dict.fromkeys(names, 1)})
    assert agent.observe().answer is None
    model.apply({1: ToolCall("withdraw"), 2: ToolCall("withdraw")})
    profits = agent.observe().answer.__annotations__["total_profits"]
    assert list(profits.__annotations__) == ["Ana", "Ben"]


def test_nobody_is_asked_again_where_no_reply_came() -> None:
    model = AuctionArena(n_agents=2, rng=1)
    agent = model.bidders[1]
    agent.act(Failure(1, "the server is down", "ServerError"))
    assert not agent.may_try_again
    agent.act(Failure(1, "no JSON", "Unparsed"))
    assert agent.may_try_again


def test_bids_to_choose_from_are_legal_and_none_are_offered_without_the_money() -> None:
    model = AuctionArena(
        n_agents=2, budget="20000,10", planning="none", lots="paper", order="ascending", rng=1, llm="random"
    )
    rich, poor = (model.bidders[n].observe().options["amount"] for n in (1, 2))
    assert rich == tuple(range(1000, 3001, 100))
    assert poor == ()
    model.llm = "rule"
    assert model.bidders[1].observe().options == {}


def test_nobody_is_told_in_which_direction_estimates_are_off() -> None:
    (bidder, *_) = AuctionArena(rng=1).bidders.values()
    text = "".join(message.content for message in bidder.prompt(bidder.observe()))
    assert "an estimate, which may be off." in text
    assert not re.search(r"too high|overestimat|inflated", text)


def test_the_reasons_for_a_plan_come_first_and_are_read_in_later_bids() -> None:
    requests: list[Request] = []

    def reply(request: Request) -> Any:
        requests.append(request)
        answer = honest_reply(request)
        if request.schema is None:
            return answer
        reasons = f"Reasons of bidder {request.salt.agent}."
        return replace(answer, text=json.dumps({**json.loads(answer.text), "reasoning": reasons}))

    AuctionArena(n_agents=2, llm=ScriptedLLM(reply), n_lots=2, rng=1).step()
    plans = [request.schema for request in requests if request.schema and "total_profits" not in str(request.schema)]
    assert all(next(iter(schema["properties"])) == "reasoning" for schema in plans)
    for request in requests:
        if request.tools:
            assert f"you wrote: “Reasons of bidder {request.salt.agent}.”" in request.messages[-1].content


def test_the_true_value_of_a_lot_is_hidden_until_the_hammer() -> None:
    model = AuctionArena(n_agents=2, overestimate_percent=37, n_lots=2, order="ascending", rng=1)
    observation = model.bidders[1].observe()
    assert "$2740" in observation.text  # the estimate
    assert "2000" not in observation.text.replace("$20000", "")
    model.step()
    assert "true value is $2000" in model.story() or "worth $2,000" in model.story()


def test_a_run_whose_budget_ends_amid_a_lot_goes_on_where_it_stopped(tmp_path) -> None:
    whole = run(AuctionArena(n_lots=2, llm=honest(), rng=1))
    stopped = AuctionArena(n_lots=2, llm=honest(), rng=1, log=tmp_path / "run.sqlite", max_calls=8)
    with pytest.raises(BudgetExceeded):
        run(stopped)
    assert stopped.time == 0  # the first lot is not done
    stopped.close()
    resumed = run(AuctionArena(n_lots=2, llm=honest(), rng=1, log=tmp_path / "run.sqlite"))
    assert resumed.runlog.digest == whole.runlog.digest
    assert resumed.usage.replayed == 8


def test_lessons_of_one_auction_are_read_in_the_next() -> None:
    model = run(AuctionArena(n_agents=2, n_lots=1, n_auctions=2, learning=True, rng=1), 1)
    model.step()
    learnt = [bidder.lessons for bidder in model.bidders.values()]
    assert all(len(lessons) == 1 for lessons in learnt)
    assert learnt[0][0] in model.bidders[1].observe().text
    assert [auction.is_over for auction in model.auctions] == [True, True]


def test_seats_rotate_from_auction_to_auction() -> None:
    model = run(AuctionArena(n_lots=1, n_auctions=3, rng=1))
    assert [list(auction.accounts) for auction in model.auctions] == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def test_ratings_follow_the_auctions_that_are_over() -> None:
    model = run(AuctionArena(n_lots=3, n_auctions=4, rng=1))
    last = rating_history(model).query("auction == 4").set_index("bidder")["mu"]
    assert last.to_dict() == pytest.approx({name: rating.mu for name, rating in model.ratings.items()})


def test_bidders_who_trust_estimates_meet_the_winners_curse() -> None:
    model = tournament({"Ana": "naive", "Ben": "naive", "Eve": "value"}, 4, budget=60_000, n_lots=6, rng=1)
    table = standings(model)
    assert table.loc[0, "bidder"] == "Eve"
    assert table["mu"].is_monotonic_decreasing
    assert max(table["profit"][1:]) < 0


def test_a_contestant_can_be_any_model() -> None:
    model = tournament({"Chance": "random", "Script": scripted(), "Rule": "rule"}, 1, n_lots=2, rng=1)
    assert [str(getattr(b.llm, "name", b.llm)) for b in model.bidders.values()][::2] == ["random", "rule"]
    assert sum(standings(model)["won"]) >= 1


def test_three_rule_bidders_earn_what_they_do_in_the_reference() -> None:
    """With uniform ties and 20,000 dollars each: 4,985, 4,966 and 4,992 by seat, in 2,000 auctions."""
    model = run(AuctionArena(twins="rule", planning="none", n_auctions=25, rotate=False, rng=11), 250)
    profits = [sum(a.accounts[n].profit for a in model.finished_auctions) / 25 for n in (1, 2, 3)]
    assert sum(profits) / 3 == pytest.approx(4980, rel=0.05)


def test_the_lots_can_come_from_a_file() -> None:
    folder = os.environ.get("MESA_LLM_DATA")
    if not folder:
        pytest.skip("MESA_LLM_DATA names no folder")
    model = AuctionArena(lots=str(Path(folder, "auctionarena", "items_demo.jsonl")), rng=1)
    assert len(model.auction.auctioneer.lots) == 5


def test_a_scenario_says_the_same_as_single_parameters() -> None:
    one = run(AuctionArena(n_agents=2, twins="value", n_lots=3, rng=4))
    other = run(AuctionArena(scenario=AuctionScenario(n_agents=2, twins="value", n_lots=3, rng=4)))
    assert one.story() == other.story()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"n_agents": 1}, "n_agents: .*greater than or equal to 2"),
        ({"twins": "genius"}, "no rule twin 'genius'"),
        ({"budget": "20000,much"}, "budget: .*a valid integer"),
        ({"budget": -1}, "budget: .*greater than or equal to 0"),
        ({"budget": math.inf}, "budget: .*a finite number"),
        ({"desire": "glory"}, "desire: .*'maximize_profit' or 'maximize_items'"),
        ({"planning": "often"}, "planning: .*'adaptive', 'static' or 'none'"),
        ({"overestimate_percent": math.nan}, "overestimate_percent: .*finite number"),
        ({"raise_share": math.nan}, "raise_share: .*finite number"),
        ({"tie": "coin"}, "tie: .*'uniform' or 'scan'"),
        ({"max_retries": -1}, "max_retries: .*greater than or equal to 0"),
        ({"n_auctions": 0}, "n_auctions: .*greater than or equal to 1"),
        ({"lots": "nowhere"}, "lots must be one of paper"),
        ({"n_lots": 11}, "from 1 to 10"),
        ({"order": "sideways"}, "order: .*'listed'"),
        ({"names": "Ana,Ana,Ben"}, "appears twice"),
    ],
)
def test_parameters_that_cannot_be_are_refused(wrong, reason) -> None:
    with pytest.raises(ConfigError, match=reason):
        AuctionArena(**wrong)


def test_results_are_means_over_the_auctions_that_are_over() -> None:
    model = run(AuctionArena(twins="rule", n_lots=3, n_auctions=2, rng=1))
    scores = model.results()
    profits = [auction.accounts[1].profit for auction in model.finished_auctions]
    assert (scores["auctions"], scores["profit.Bidder 1"]) == (2, sum(profits) / 2)
    assert scores["skill.Bidder 1"] == model.ratings["Bidder 1"].mu
    assert scores["lots_sold"] == scores["lots.Bidder 1"] + scores["lots.Bidder 2"] + scores["lots.Bidder 3"]


def test_the_story_tells_every_lot_and_how_everybody_did() -> None:
    model = run(AuctionArena(n_lots=2, rng=1))
    lines = model.story().splitlines()
    assert len(lines) == 2 + 3
    assert "wins it for $" in lines[0]


def test_the_page_shows_bids_winner_value_and_purses() -> None:
    model = run(AuctionArena(n_lots=2, rng=1), 1)
    lot = markup(TEMPLATES / "lot.html", lot=lot_view(model.auction, 1), step=1)
    bidders = markup(TEMPLATES / "bidders.html", title="Bidders", is_rated=True, bidders=bidder_views(model))
    minds = markup(TEMPLATES / "plans.html", shades={}, **plan_views(model.auction), **belief_views(model.auction))
    assert f"${model.true_value:,}" in lot
    assert "paid by" in lot
    assert all(name in bidders for name in ("rule: rule", "rule: value", "rule: shade"))
    assert model.auction.auctioneer.lots[1].name in minds
    assert lot_view(model.auction, 0) is None


def test_the_original_rules_can_be_chosen() -> None:
    scenario = AuctionScenario(rules="original", raise_share=0.2, n_lots=3, rng=1)
    model = run(AuctionArena(llm="random", scenario=scenario))
    assert model.rules == replace(ORIGINAL_RULES, raise_share=0.2)
    assert model.auction.auctioneer.rules is model.rules
    check_books(model)


def test_equal_bids_without_end_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"stayed at \$\d+ for 200 rounds .* choose a larger raise_share"):
        run(AuctionArena(n_agents=3, twins="naive", rules="original", raise_share=0.0, rng=1))


def test_without_a_minimum_raise_corrected_bids_rise_by_a_dollar() -> None:
    few: dict[str, Any] = {"overestimate_percent": -45, "n_lots": 1}  # a lot worth $2,000, which begins at $1,000
    model = run(AuctionArena(n_agents=3, twins="naive", raise_share=0.0, planning="none", rng=1, **few))
    assert model.auction.is_over
    assert [sale.price for sale in model.auction.sales] == [1100]


@pytest.mark.parametrize("rules", ["corrected", "original"])
def test_a_large_raise_does_not_bind_the_first_bid_on_a_lot(rules) -> None:
    model = run(AuctionArena(twins="naive", rules=rules, raise_share=10.0, n_lots=2, planning="none", rng=1))
    assert [sale.price for sale in model.auction.sales] == [lot.start for lot in model.auction.auctioneer.lots]


def test_bidder_without_any_valid_bid_raises_a_helpful_error() -> None:
    stubborn = scripted(bid=ToolCall("bid", {"amount": 1}))
    model = AuctionArena(n_agents=2, llm={1: stubborn, "*": "rule"}, rules="original", planning="none", n_lots=1, rng=1)
    with pytest.raises(ConfigError, match=r"asked 1000 times for a bid on .* \(last attempt: 1, below_start\); set"):
        model.step()


def test_a_bidder_can_be_asked_for_ever() -> None:
    amounts = iter([0] * 20)
    late = scripted(bid=lambda _: ToolCall("bid", {"amount": next(amounts, 10_000)}))
    model = AuctionArena(n_agents=2, llm={1: late, "*": "rule"}, n_lots=1, rng=1, max_retries=None)
    model.step()
    assert (model.bidders[1].account.failed_bids, model.price) == (20, 10_000)


def test_rules_that_there_are_not_are_refused() -> None:
    wrong: Any = "orignal"
    with pytest.raises(ConfigError, match=r"rules: .*'corrected'"):
        AuctionArena(rules=wrong)
