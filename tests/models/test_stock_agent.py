"""The stock exchange as a model: stages, turns, money, what traders are shown, and its published numbers."""

from __future__ import annotations

import random
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import ConfigError, ScriptedLLM, ToolCall
from mesa_llm.llm.replies import call
from mesa_llm.records import Request
from mesa_llm_models.stock_agent.agents import TWINS, Fundamentalist, take
from mesa_llm_models.stock_agent.model import StockAgentModel, StockAgentScenario
from mesa_llm_models.stock_agent.scores import Paths, changes_error, gemini_paths, session_changes, total_change
from mesa_llm_models.stock_agent.world import STOCKS, Loan, Moment, Quote, TraderFacts


def run(model: StockAgentModel) -> StockAgentModel:
    while model.running:
        model.step()
    return model


def steps(model: StockAgentModel, n: int) -> StockAgentModel:
    for _ in range(n):
        model.step()
    return model


def cash(model: StockAgentModel) -> float:
    """Add up all money, that of those who left and fees paid included."""
    market = model.world.market
    return sum(account.cash for account in market.accounts.values()) + market.fees_paid


def shares(model: StockAgentModel) -> dict[str, float]:
    """Add up all shares, those of traders who left and those sold by force included."""
    history, accounts = model.world.history, model.world.market.accounts.values()
    sold = {
        "A": sum(one.a_before - one.a for one in history.liquidations),
        "B": sum(one.b_before - one.b for one in history.liquidations),
    }
    return {stock: sum(account.shares[stock] for account in accounts) + sold[stock] for stock in STOCKS}


# -- conservation


@settings(max_examples=20)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["rule", "random"]),
    st.sampled_from(sorted(TWINS)),
    st.booleans(),
    st.booleans(),
)
def test_a_run_makes_and_loses_no_money_and_no_share(seed: int, llm: str, twin: Any, cross: bool, fees: bool) -> None:
    model = StockAgentModel(n_agents=5, days=2, twin=twin, cross=cross, fees=fees, llm=llm, rng=seed)
    money, n_shares = cash(model), shares(model)
    run(model)
    borrowed = sum(loan.principal for loan in model.world.history.loans)
    assert cash(model) == pytest.approx(money + borrowed, rel=1e-12)
    assert shares(model) == n_shares
    assert all(account.cash >= 0 for account in model.world.market.accounts.values())


@given(st.integers(0, 10_000))
@settings(max_examples=3)
def test_only_the_bank_moves_money_and_only_forced_sales_take_shares(seed: int) -> None:
    model = StockAgentModel(n_agents=5, days=46, sessions=1, llm="random", rng=seed, memory="none")
    n_shares = shares(model)
    while model.running:
        money = cash(model)
        model.step()
        if model.stage != "post":  # after the posts comes the next morning, with what is due
            assert cash(model) == pytest.approx(money + model.borrowed, rel=1e-12)
        assert shares(model) == n_shares


@pytest.mark.parametrize(("rules", "settlement"), [("original", "strict"), ("corrected", "one_sided")])
def test_only_under_the_original_rules_the_price_says_how_many_shares_move(rules: Any, settlement: Any) -> None:
    model = steps(StockAgentModel(n_agents=2, rules=rules, settlement=settlement, rng=1), 1)
    buyer, seller = (model.world.market.accounts[trader] for trader in (1, 2))
    buyer.shares["A"], buyer.cash, seller.shares["A"] = 0, 1e6, 1000
    model.world.sell(2, "A", 500, 31.5)
    model.world.buy(1, "A", 500, 31.5)
    assert buyer.shares["A"] == (31.5 if rules == "original" else 500)
    assert buyer.cash == 1e6 - 500 * 31.5


# -- the day


def test_one_step_is_one_stage_of_the_day() -> None:
    table = steps(StockAgentModel(rng=1), 7).datacollector.get_model_vars_dataframe()
    day = [("loan", 0), ("trade", 1), ("trade", 2), ("trade", 3), ("estimate", 3), ("post", 3)]
    done = list(zip(table["day"], table["stage"], table["session"], strict=True))
    assert done == [(0, "", 0), *((1, *stage) for stage in day), (2, "loan", 0)]


def test_the_model_stops_after_the_last_day() -> None:
    model = StockAgentModel(days=2, sessions=1, rng=1)
    run(model)
    assert (int(model.time), model.world.is_over) == (8, True)
    digest = model.runlog.digest
    model.step()
    assert model.runlog.digest == digest


def test_in_a_session_traders_act_one_after_another_in_the_drawn_order() -> None:
    model = steps(StockAgentModel(rng=1), 1)
    order = list(model.world.turn_order)
    model.step()
    acted = model.runlog.decisions()
    assert acted[acted["time"] == 2]["agent"].tolist() == order != sorted(order)


def test_each_trader_sees_the_orders_of_those_before() -> None:
    seen: list[str] = []

    def offer(request: Request) -> Any:
        seen.append(request.messages[-1].content)
        return call("sell", stock="A", quantity=1, price=30 + len(seen)) if len(seen) > 3 else call("do_nothing")

    model = StockAgentModel(n_agents=3, llm=ScriptedLLM(offer), rng=2)
    steps(model, 2)
    assert [text.count(": 1 at ") for text in seen[3:]] == [0, 1, 2]


def test_an_insolvent_trader_leaves_the_model_and_is_asked_no_more() -> None:
    model = StockAgentModel(days=3, rng=1)
    model.world.market.accounts[4].loans.append(Loan(1e9, 0, due_day=2))
    run(model)
    assert [(one.trader, one.day, one.has_left) for one in model.world.history.liquidations] == [(4, 2, True)]
    assert 4 not in {agent.unique_id for agent in model.agents}
    assert (model.n_traders, len(model.agents)) == (9, 9)
    decided = model.runlog.decisions()
    assert decided[decided["agent"] == 4]["time"].max() == 6


# -- what traders are shown


def prompts(model: StockAgentModel, n: int) -> list[Request]:
    """Run a model whose traders do nothing; give what they were asked."""
    requests: list[Request] = []

    def note(request: Request) -> Any:
        requests.append(request)
        return call("do_nothing")

    model.llm = ScriptedLLM(note)
    steps(model, n)
    return requests


def test_every_trader_is_told_its_style() -> None:
    model = StockAgentModel(n_agents=12, rng=1)
    for request in prompts(model, 1):
        style = model.world.market.accounts[request.salt.agent].style
        assert model.prompt(f"{style.lower()}.md") in request.messages[-1].content
        assert f"style of investing: {style}" in request.messages[-1].content


def test_company_figures_are_shown_in_the_first_session_only() -> None:
    requests = prompts(StockAgentModel(n_agents=1, rng=1), 3)
    assert ["past quarters" in request.messages[0].content for request in requests] == [False, True, False]


@pytest.mark.parametrize(("shows_forum", "replies"), [(False, 2), (True, 1)])
def test_the_forum_is_a_tool_or_pushed(shows_forum: bool, replies: int) -> None:
    """Whoever is shown the forum decides in one reply; whoever has to look it up needs two."""

    def gossip(request: Request) -> Any:
        if any(tool.name == "post_message" for tool in request.tools):
            return call("post_message", text="Sell A while you can.")
        knows = any("Sell A while you can." in message.content for message in request.messages)
        may_look = any(tool.name == "read_forum" for tool in request.tools)
        return call("do_nothing") if knows or not may_look else call("read_forum")

    model = StockAgentModel(
        n_agents=2, sessions=1, shows_forum=shows_forum, memory="none", llm=ScriptedLLM(gossip), rng=1
    )
    steps(model, 5)
    assert sum(row["time"] == 5 for row in model.runlog.calls_of(1)) == replies


def test_the_memory_of_the_day_is_forgotten_overnight() -> None:
    model = StockAgentModel(n_agents=2, sessions=2, memory="day", rng=1)
    requests = [request for request in prompts(model, 6) if request.salt.agent == 1]
    turns = [sum(message.role == "assistant" for message in request.messages) for request in requests]
    assert turns == [0, 1, 2, 3, 4, 0]


# -- what is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"quantity": 1, "price": nan}, "price"),
        ({"quantity": 1, "price": inf}, "price"),
        ({"quantity": 1, "price": -1}, "greater than 0"),
        ({"quantity": -5, "price": 30}, "greater than 0"),
        ({"quantity": 2.5, "price": 30}, "quantity"),
        ({"quantity": "many", "price": 30}, "quantity"),
        ({"quantity": 10**30, "price": 30}, "quantity"),
        ({"quantity": 10**9, "price": 1e6}, "cash"),
    ],
)
def test_impossible_orders_are_refused_with_the_reason(arguments: dict[str, Any], reason: str) -> None:
    model = steps(StockAgentModel(rng=1), 1)
    (trader, *_) = model.observations()
    done = model.apply({trader: ToolCall("buy", {"stock": "A", **arguments})})
    (outcome,) = done[trader]
    assert not outcome.ok
    assert reason in outcome.result
    assert model.world.history.orders == []


@pytest.mark.parametrize("amount", [nan, inf, -1, 0, 1e300, "all"])
def test_impossible_loans_are_refused_with_the_reason(amount: Any) -> None:
    model = StockAgentModel(rng=1)
    (trader, *_) = model.observations()
    done = model.apply({trader: ToolCall("take_loan", {"loan_type": 0, "amount": amount})})
    (outcome,) = done[trader]
    assert not outcome.ok
    assert "amount" in outcome.result or "borrow" in outcome.result
    assert model.world.history.loans == []


def test_settings_that_contradict_each_other_are_refused() -> None:
    original = {"rules": "original"}
    for wrong in ({**original, "cross": True}, {**original, "settlement": "one_sided"}, {**original, "fees": True}):
        with pytest.raises(ConfigError, match="settlement"):
            StockAgentModel(**wrong)
    for wrong in ({"twin": "astrologer"}, {"n_agents": 0}, {"days": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            StockAgentModel(**wrong)


# -- the baselines


@pytest.mark.parametrize("rules", ["corrected", "original"])
def test_chance_makes_legal_moves_only(rules: Any) -> None:
    model = run(StockAgentModel(days=4, rules=rules, llm="random", rng=5))
    actions = model.runlog.actions()
    assert set(actions["ok"]) == {1}
    assert {"take_loan", "buy", "sell", "estimate", "post_message"} <= set(actions["action"])
    assert model.world.history.trades


@pytest.mark.parametrize("twin", [twin for twin in TWINS if twin != "hold"])
def test_every_twin_but_one_trades_and_none_is_refused(twin: Any) -> None:
    model = run(StockAgentModel(n_agents=20, days=2, twin=twin, rng=1))
    assert model.world.history.trades
    assert set(model.runlog.actions()["ok"]) == {1}
    assert run(StockAgentModel(days=1, twin="hold", rng=1)).world.history.orders == []


def facts(**changes: Any) -> TraderFacts:
    known: dict[str, Any] = {
        "trader": 1, "now": Moment(1, "trade", 1), "style": "Balanced", "cash": 1000.0, "shares": {"A": 50, "B": 0},
        "loans": (), "loan_limit": 0.0, "rates": (), "term_days": (), "prices": {"A": 30.0, "B": 40.0},
        "recent_prices": {"A": (30.0,), "B": (40.0,)}, "bids": {"A": None, "B": None}, "asks": {"A": None, "B": None},
        "posts": (), "volumes": {"A": 0.0, "B": 0.0}, "worth": 2500.0, "profit": 0.0,
    }  # fmt: skip
    return TraderFacts(**{**known, **changes})


def test_a_price_no_worse_than_the_limit_is_taken_exactly() -> None:
    asks = {"A": Quote(29.37, 5), "B": None}
    assert take(facts(asks=asks), "buy", "A", 30.0, 0.3) == ToolCall(
        "buy", {"stock": "A", "quantity": 10, "price": 29.37}
    )
    assert take(facts(asks=asks), "buy", "A", 29.0, 0.3) == ToolCall(
        "buy", {"stock": "A", "quantity": 10, "price": 29.0}
    )


def test_fundamentalist_trades_the_most_mispriced_stock_or_rests() -> None:
    rng = random.Random(1)
    assert Fundamentalist(33.0, 41.0).order(facts(), rng) == ToolCall(
        "buy", {"stock": "A", "quantity": 3, "price": 30.9}
    )
    assert Fundamentalist(30.5, 40.7).order(facts(), rng) is None


# -- numbers


def test_fundamentalists_trade_as_often_as_an_independent_program_measured() -> None:
    """Mean of ten seeds there: 1137 trades, price changes of 1.0 ± 1.9 and 0.6 ± 2.3 percent."""
    model = run(StockAgentModel(n_agents=50, twin="fundamentalist", settlement="one_sided", rng=3, memory="none"))
    assert len(model.world.history.trades) == pytest.approx(1137, rel=0.1)
    for stock in STOCKS:
        assert abs(total_change(model.world.market.paths[stock])) < 10


def test_the_prices_of_the_gemini_run_are_those_published() -> None:
    paths = gemini_paths()
    assert [len(paths[stock]) for stock in STOCKS] == [130, 130]
    assert [total_change(paths[stock]) for stock in STOCKS] == pytest.approx([-39.67, -19.75], abs=0.01)
    assert [total_change(paths[stock][1:31]) for stock in STOCKS] == pytest.approx([-8.62, -7.44], abs=0.01)


def paths_to(price: float) -> Paths:
    return {"A": [10.0, price], "B": [10.0, price]}


def test_the_error_of_changes_averages_runs_before_it_compares() -> None:
    still, up, down = (paths_to(price) for price in (10.0, 11.0, 9.0))
    assert session_changes(up["A"]) == pytest.approx([10.0])
    assert changes_error([up], still) == pytest.approx(10.0)
    assert changes_error([up, down], still) == pytest.approx(0.0)


def test_a_scenario_is_level_two() -> None:
    model = StockAgentModel(scenario=StockAgentScenario(n_agents=50, rng=1))
    assert (len(model.agents), model.world.calendar.days, model.world.calendar.sessions) == (50, 10, 3)
    assert not model.world.screen.shows_posts
    assert {agent.memory.k for agent in model.agents} == {3}
    assert {agent.config.settings.temperature for agent in model.agents} == {1.0}


def test_sessions_are_one_row_each() -> None:
    model = run(StockAgentModel(days=2, rng=1))
    table = model.sessions()
    assert len(table) == 6
    assert table["price_A"].tolist() == model.world.market.paths["A"][1:]
    assert table[["fills_A", "fills_B"]].to_numpy().sum() == len(model.world.history.trades)


def test_many_rule_twins_are_shown_values_without_text() -> None:
    few, many = StockAgentModel(n_agents=10, rng=1), StockAgentModel(n_agents=101, rng=1)
    assert few.agents.to_list()[0].observe().text
    assert many.agents.to_list()[0].observe().text == ""
    assert many.agents.to_list()[0].observe().facts == many.world.facts(1)


def test_the_story_tells_of_sessions_and_of_who_stands_best() -> None:
    story = run(StockAgentModel(days=1, rng=1)).story()
    assert "Day 1, session 3: A " in story
    assert "Best of all stands trader" in story


# -- what became of turns, orders and forecasts


def test_every_turn_is_an_order_a_refusal_a_failure_or_a_no() -> None:
    answers = [call("buy", stock="A", quantity=1, price=1), call("sell", stock="A", quantity=10**9, price=1)]
    answers += [call("do_nothing"), "no idea"]
    model = StockAgentModel(
        n_agents=4, days=1, sessions=1, rng=1, llm=ScriptedLLM(lambda one: answers[one.salt.agent - 1])
    )
    steps(model, 2)
    (row,) = model.replies().to_dict("records")
    assert [row[name] for name in ("traders", "orders", "refusals", "failures", "abstentions")] == [4, 1, 1, 1, 1]
    assert (model.abstention_share, model.n_refused, row["abstention_share"]) == (0.25, 1, 0.25)


def test_orders_are_counted_by_trader_stock_and_side() -> None:
    model = run(StockAgentModel(n_agents=8, days=3, cross=True, rng=1))
    table: Any = model.orders()
    history = model.world.history
    assert table["orders"].sum() == len(history.orders)
    assert table["traded"].sum() == 2 * sum(trade.quantity for trade in history.trades)
    assert table["cancellations"].sum() == len(history.cancellations)
    assert len(table) == 8 * 4


def test_forecasts_are_compared_with_the_next_day() -> None:
    model = run(StockAgentModel(n_agents=8, days=3, rng=1))
    table = model.forecasts().set_index("item")
    assert set(table["forecasts"]) == {16}  # of days 1 and 2; there is no day 4
    assert table.loc["take_loan", ["expected", "done", "right"]].tolist() == [0, 0, 1.0]


def test_results_by_style_cover_everyone() -> None:
    model = run(StockAgentModel(n_agents=12, days=2, rng=1))
    table: Any = model.styles()
    assert table["traders"].sum() == 12
    assert (table["traders"] * table["profit"]).sum() == pytest.approx(sum(trader.profit for trader in model.agents))


def test_spreads_are_in_the_table_of_sessions() -> None:
    table: Any = run(StockAgentModel(n_agents=12, days=2, cross=True, rng=1)).sessions()
    assert (table["spread_A"].dropna() == (table["ask_A"] - table["bid_A"]).dropna()).all()


@pytest.mark.parametrize("days", [nan, 1.5, 0])
def test_days_that_are_no_whole_number_are_refused(days: Any) -> None:
    with pytest.raises(ConfigError, match="days: "):
        StockAgentModel(days=days)


def test_results_are_the_scores_of_the_run() -> None:
    model = run(StockAgentModel(n_agents=12, days=2, rng=1))
    results, paths = model.results(), model.world.market.paths
    assert results["change_A"] == total_change(paths["A"])
    assert results["gemini_error"] == changes_error([paths], gemini_paths())
    assert results["trades"] == len(model.world.history.trades)
    assert StockAgentModel(sessions=2, rng=1).results()["gemini_error"] is None


@pytest.mark.parametrize("cross", [False, True])
def test_orders_from_the_menu_cover_their_fees(cross: bool) -> None:
    model = run(StockAgentModel(n_agents=6, days=3, llm="random", cross=cross, fees=True, rng=2))
    assert list(model.runlog.actions().query("ok == 0")["result"]) == []
