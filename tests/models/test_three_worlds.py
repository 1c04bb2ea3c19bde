"""One town in three worlds: what crosses the bridge, and what would not without it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mesa_llm import Event, ScriptedLLM, ToolCall
from mesa_llm.errors import ConfigError
from mesa_llm.llm.scripted import call
from mesa_llm.reports import ActionTables
from mesa_llm_models.three_worlds.model import ThreeWorldsModel, ThreeWorldsScenario
from mesa_llm_models.three_worlds.scores import compare

WORLDS = {"social", "market", "economy"}

PRAISE = "What a great, wonderful and good idea this is!"


def run(steps: int, **parameters: Any) -> ThreeWorldsModel:
    model = ThreeWorldsModel(**parameters)
    for _ in range(steps):
        model.step()
    return model


def viral(model: ThreeWorldsModel) -> None:
    """Let a post have gone viral in the last step."""
    facts = {"post_id": 1, "author_id": 1, "author": "Mia", "text": PRAISE, "score": 9}
    model.bridge.publish([Event("social", "viral_post", facts, f"A post by Mia went viral: {PRAISE}")])


# -- with and without the bridge


def test_the_bridge_makes_a_difference_that_can_be_measured() -> None:
    runs: Any = compare(range(4))
    means = runs.groupby("bridged").mean().to_dict("index")
    crossing, apart = means[True], means[False]
    assert crossing["heard"] > 5 * apart["heard"]
    assert crossing["talk"] > 3 * apart["talk"]
    assert crossing["viral_pull"] > apart["viral_pull"] + 0.03
    assert crossing["policies_heard"] > 5
    assert apart["reports"] == apart["bets"] == apart["policies_heard"] == 0


def test_a_viral_post_moves_the_price_of_opinion() -> None:
    prices = []
    for bridged in (True, False):
        model = ThreeWorldsModel(n_agents=6, bridged=bridged, llm=ScriptedLLM(lambda _: call("do_nothing")), rng=1)
        viral(model)
        model.step()
        prices.append(model.opinion_price)
    assert prices[0] > 0.55
    assert prices[1] == 0.5


def test_a_viral_post_that_is_heard_of_changes_what_a_trader_bets() -> None:
    model = run(3, rng=1)
    viral(model)
    model.begin_step()
    trader = next(citizen for citizen in model.agents if citizen.worlds == (model.market,))
    seen = trader.observe()
    opinion = next(key for key, claim in model.claims.items() if claim.measure == "opinion")
    unaware = trader.guesses({**seen.facts, "news": ()})
    assert trader.guesses(seen.facts)[opinion] > unaware.get(opinion, 0.5)
    assert "went viral" in seen.text


def test_price_moves_are_talked_about() -> None:
    model = run(12, rng=2)
    posts = [
        row
        for row in model.social.measures.posts_table()
        if "YES rose" in row["content"] or "YES fell" in row["content"]
    ]
    by_paper = {row["user_id"] == model.crossings.paper for row in posts}
    assert by_paper == {True, False}


def test_a_policy_reaches_the_network_and_the_market() -> None:
    model = run(2, rng=1)  # the government taxes in the first step in which it looks at the economy
    policy = next(event for _, event in model.bridge.log if event.kind == "policy_change")
    assert policy.source == "economy"
    assert policy.text in [row["content"] for row in model.social.measures.posts_table()]
    remarks = [comment.text for comments in model.market.ledger.comments.values() for comment in comments]
    assert policy.text in remarks
    heard = {one.agent for one in model.bridge.deliveries if one.event == policy}
    assert len(heard) == 10  # two thirds of 15 do not look at the economy in any step


# -- where citizens look, and what they hear


def test_citizens_look_at_one_world_after_the_other() -> None:
    model = ThreeWorldsModel(n_agents=4, rng=1)
    looked: list[set[str]] = [set() for _ in model.agents]
    for _ in range(3):
        for citizen, worlds in zip(model.agents, looked, strict=True):
            assert len(citizen.worlds) == 1
            worlds |= {world.name for world in citizen.worlds}
        model.step()
    assert looked == [WORLDS] * 4


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_nobody_is_told_of_a_world_it_looks_at(llm: str) -> None:
    model = ThreeWorldsModel(rng=3, llm=llm)
    heard = 0
    while model.running:
        for citizen, seen in model.observations().items():
            looked = {world.name for world in citizen.worlds}
            assert not looked & {event.source for event in citizen.news}
            assert set(seen.facts) == looked | {"news"}
            heard += len(citizen.news)
        model.step()
    assert heard == model.heard > 0


def test_who_looks_everywhere_is_told_of_shocks_alone() -> None:
    model = run(8, rng=1, visits="together")
    assert {event.event.source for event in model.bridge.deliveries} == {"schedule"}
    assert model.crossings.n_reports > 0
    assert {world.name for world in next(iter(model.agents)).worlds} == WORLDS


def test_without_the_bridge_only_shocks_are_told() -> None:
    model = run(8, rng=1, bridged=False)
    assert {(one.time, one.event.source) for one in model.bridge.deliveries} == {(7, "schedule")}


# -- goal, background, circumstances, shocks


def test_the_goal_the_background_and_the_circumstances_reach_every_prompt() -> None:
    prompts: list[str] = []

    def note(request: Any) -> Any:
        prompts.append(request.messages[0].content)
        return call("do_nothing")

    arguments = {"goal": "Shall we build a harbour?", "seed_text": "The sea is near.", "variables": {"harvest": "poor"}}
    model = run(3, n_agents=4, rng=1, llm=ScriptedLLM(note), **arguments)
    assert len(prompts) == 12
    for words in ("build a harbour?", "The sea is near.", "harvest = “poor”"):
        assert all(words in prompt for prompt in prompts)
    assert next(iter(model.agents)).beliefs.positions.keys() == {"Shall we build a harbour?"}


@pytest.mark.parametrize("bridged", [True, False])
def test_a_shock_strikes_and_everybody_hears_of_it(bridged: bool) -> None:
    shock = {"step": 2, "text": "Wages are raised.", "variable": "minimum_wage", "value": 14}
    model = run(2, n_agents=6, rng=1, bridged=bridged, shocks=[shock, {"step": 2, "text": "A storm."}])
    assert model.economy.state.variables["minimum_wage"] == 14.0
    heard = [one.event.text for one in model.bridge.deliveries if one.event.source == "schedule"]
    assert heard.count("Wages are raised.") == heard.count("A storm.") == 6


@pytest.mark.parametrize(
    ("shock", "why"),
    [
        ({"step": 0, "text": "x"}, "greater than or equal to 1"),
        ({"step": 1}, "text: field required"),
        ({"step": 1, "text": "x", "variable": "tax_rate"}, "both variable and value"),
        ({"step": 1, "text": "x", "variable": "tax_rate", "value": 7}, "tax_rate must be a number from 0 to 1"),
        ({"step": 1, "text": "x", "variable": "tax_rate", "value": math.nan}, "finite"),
    ],
)
def test_a_shock_that_cannot_be_is_refused(shock: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ThreeWorldsModel(shocks=[shock])


def test_a_way_of_looking_that_is_none_is_refused() -> None:
    visits: Any = "sideways"
    with pytest.raises(ConfigError, match="'in_turn' or 'together'"):
        ThreeWorldsModel(visits=visits)


# -- dollars, goods, shares


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize("visits", ["in_turn", "together"])
def test_nothing_is_made_or_lost_in_any_world(visits: Any, llm: str) -> None:
    model = ThreeWorldsModel(n_agents=9, visits=visits, llm=llm, horizon=10, fee=0.01, rng=5)
    before = model.money
    while model.running:
        stock = sum_of(model, "stock")
        model.step()
        assert model.money == pytest.approx(before, rel=1e-12)
        made = sum_of(model, "output") - math.fsum(one.sales / one.price for one in accounts(model) if one.price > 0)
        assert sum_of(model, "stock") == pytest.approx(stock + made, abs=1e-6)
    assert all(market.maker_cash >= -1e-9 for market in model.market.ledger.markets.values())


def accounts(model: ThreeWorldsModel) -> list[Any]:
    return list(model.economy.state.participants.values())


def sum_of(model: ThreeWorldsModel, field: str) -> float:
    return math.fsum(getattr(one, field) for one in accounts(model))


@pytest.mark.parametrize("amount", [math.nan, -1, 1e300, "much", None])
def test_what_is_no_amount_is_refused_in_every_world(amount: Any) -> None:
    model = ThreeWorldsModel(n_agents=4, visits="together", rng=1)
    market_id = next(iter(model.claims))
    bet = ToolCall("buy_shares", {"market_id": market_id, "outcome": "yes", "amount": amount})
    nonsense = [bet, ToolCall("invest", {"amount": amount}), ToolCall("vote", {"post_id": amount})]
    done = model.apply({2: nonsense})
    outcomes = next(outcomes for citizen, outcomes in done.items() if citizen.unique_id == 2)
    assert [(outcome.ok, bool(outcome.result)) for outcome in outcomes] == [(False, True)] * 3


# -- beliefs and answers


def test_only_what_is_read_or_heard_moves_beliefs() -> None:
    model = run(6, rng=1, bridged=False, shocks=[])
    before = {citizen: citizen.position for citizen in model.agents}
    looked = {citizen: citizen.worlds == (model.social,) for citizen in model.agents}
    model.step()
    moved = {citizen for citizen in model.agents if citizen.position != before[citizen]}
    assert moved
    assert all(looked[citizen] for citizen in moved)


def test_the_questions_are_answered_by_what_is_measured() -> None:
    model = run(19, rng=1)
    wanted = {key: model.measured(claim) > claim.threshold for key, claim in model.claims.items()}
    assert not any(market.is_open for market in model.market.ledger.markets.values())
    model.step()
    assert {key: market.answer == "yes" for key, market in model.market.ledger.markets.items()} == wanted
    assert not model.running
    assert "heard by" in model.story()


def test_a_scenario_sets_the_parameters() -> None:
    model = ThreeWorldsModel(scenario=ThreeWorldsScenario(n_agents=5, visits="together", bridged=False, rng=1))
    assert (len(model.agents), model.scenario.visits, model.scenario.bridged) == (5, "together", False)


@pytest.mark.parametrize("visits", ["in_turn", "together"])
def test_chance_orders_only_trades_that_can_be_done(visits: Any) -> None:
    model = run(12, rng=1, visits=visits, llm="random")
    trades = model.runlog.actions().query("action in ('buy_shares', 'sell_shares')")
    assert len(trades) > 10
    assert list(trades.query("ok == 0")["result"]) == []


def test_circumstances_are_shown_as_they_are_by_then() -> None:
    shock = {"step": 2, "text": "The tax falls.", "variable": "tax_rate", "value": 0.1}
    model = ThreeWorldsModel(n_agents=4, rng=1, llm="random", variables={"tax_rate": 0.4}, shocks=[shock])
    texts = []
    for _ in range(2):
        prompts = {who.prompt(seen)[0].content for who, seen in model.observations().items()}
        texts.append(list({("tax_rate = 0.4" in one, "tax_rate = 0.1" in one) for one in prompts}))
        model.apply({})
    assert texts == [[(True, False)], [(False, True)]]


def test_two_shocks_stand_side_by_side_in_the_list_of_policies() -> None:
    wages = {"step": 1, "text": "Wages rise.", "variable": "minimum_wage", "value": 14}
    tax = {**wages, "step": 2, "variable": "tax_rate", "value": 0.2}
    model = run(2, n_agents=4, rng=1, llm="random", shocks=[wages, tax])
    variables = {policy.variable for policy in model.economy.state.policies if policy.description == "Wages rise."}
    assert variables == {"minimum_wage", "tax_rate"}


def test_results_hold_the_scores_of_a_run() -> None:
    model = run(20, rng=1)
    results, lags = model.results(), model.datacollector.model_vars["lag"]
    assert results["lag"] == pytest.approx(sum(lags) / len(lags))
    assert (results["brier"], results["bets"]) == (model.brier, model.crossings.n_bets)
    assert all(isinstance(score, int | float) for score in results.values())


def test_the_report_of_a_run_agrees_with_the_worlds() -> None:
    model = ThreeWorldsModel(rng=1)
    model.run_for(12)
    report, engagement = ActionTables.of(model), model.social.measures.engagement()
    posts = report.top_posts(1000)
    assert len(posts) > 10
    assert posts[["likes", "dislikes"]].to_numpy().tolist() == [list(engagement[post]) for post in posts["post"]]
    assert posts["engagement"].is_monotonic_decreasing
    trades = report.trades()
    assert len(trades) == model.results()["trades"]
    assert None not in trades["shares"].to_list()
    assert sum(report.profiles()["actions"].to_list()) == len(model.runlog.actions().query("ok"))


def test_the_citizens_can_be_those_whom_the_background_names(tmp_path) -> None:
    def reply(request):
        if request.salt.purpose != "cast":
            return ToolCall("do_nothing", {})
        people = [{"name": name, "type": "org", "summary": "Wants it."} for name in ("The Grocers", "the grocers", "X")]
        return {"characters": people}

    given = {"cast": "named", "seed_text": "Mayor Lund wants a hall.", "n_agents": 3, "rng": 1}
    log = tmp_path / "run.sqlite"
    model = ThreeWorldsModel(llm=ScriptedLLM(reply), log=log, **given)
    model.step()
    model.close()
    first, *others = [agent.config for agent in model.agents]
    assert (first.name, "(org)" in first.persona, len(others)) == ("The Grocers", True, 2)
    again = ThreeWorldsModel(llm=ScriptedLLM(reply), log=log, replay=True, **given)
    again.step()
    assert (again.runlog.digest, again.usage.calls) == (model.runlog.digest, 0)
    assert [agent.config.name for agent in ThreeWorldsModel(**given).agents][:2] == ["Mayor", "Lund"]
