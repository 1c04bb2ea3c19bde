"""The exchange as a world: stages, turns, loans, orders, refusals."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from math import inf, nan

import pytest

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import Rules, World
from mesa_llm_models.stock_agent.world import Calendar, Endowment, Exchange, Fees, Loan, TradingRules, draw_endowments
from tests.worlds.exchange.small_exchange import endowment, exchange, go_to, offered, refusal


def test_the_exchange_is_a_world() -> None:
    assert isinstance(exchange(), World)


def test_a_day_goes_through_its_stages_in_order() -> None:
    world, seen = exchange(), []
    while not world.is_over:
        seen.append((world.now.day, world.now.stage, world.now.session))
        world.end_step()
    day = [("loan", 0), ("trade", 1), ("trade", 2), ("estimate", 2), ("post", 2)]
    assert seen == [(number, *stage) for number in (1, 2) for stage in day]


def test_nothing_moves_once_the_exchange_has_closed() -> None:
    world = exchange(days=1)
    go_to(world, "closed")
    assert (world.end_step(), world.turn_order, world.observe(1).tools) == ([], (), ())
    assert "stage 'trade'" in refusal(world.buy, 1, "A", 1, 30.0)


def test_only_sessions_take_turns_and_their_order_is_drawn_anew() -> None:
    world = exchange(traders=20, days=1)
    orders = []
    while not world.is_over:
        if world.takes_turns:
            orders.append(world.turn_order)
        else:
            assert world.turn_order == tuple(range(1, 21))
        world.end_step()
    assert orders[0] != orders[1]
    assert [sorted(order) for order in orders] == [list(range(1, 21))] * 2


@pytest.mark.parametrize(
    ("stage", "names"),
    [
        ("loan", ["do_nothing", "take_loan"]),
        ("trade", ["do_nothing", "buy", "sell"]),
        ("estimate", ["do_nothing", "estimate"]),
        ("post", ["do_nothing", "post_message"]),
    ],
)
def test_each_stage_offers_its_own_actions(stage: str, names: list[str]) -> None:
    world = exchange()
    if stage != "loan":
        go_to(world, stage)
    assert offered(world, 1) == names


def test_a_trader_acts_once_a_stage() -> None:
    world = exchange()
    go_to(world, "trade")
    world.buy(1, "A", 1, 30.0)
    assert "already acted" in refusal(world.sell, 1, "A", 1, 30.0)
    assert offered(world, 1) == ["do_nothing"]
    world.end_step()
    assert refusal(world.sell, 1, "A", 1, 30.0) == ""


def test_a_refused_order_does_not_use_up_the_turn() -> None:
    world = exchange()
    go_to(world, "trade")
    assert "you have 3000.00 cash" in refusal(world.buy, 1, "A", 101, 30.0)
    assert "you have 50" in refusal(world.sell, 1, "B", 51, 40.0)
    assert "buy" in offered(world, 1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("buy", {"stock": "A", "quantity": 1, "price": nan}),
        ("buy", {"stock": "A", "quantity": 1, "price": inf}),
        ("buy", {"stock": "A", "quantity": 1, "price": -30}),
        ("buy", {"stock": "A", "quantity": 0, "price": 30}),
        ("buy", {"stock": "A", "quantity": 1.5, "price": 30}),
        ("buy", {"stock": "A", "quantity": 10**30, "price": 1e-9}),
        ("sell", {"stock": "a", "quantity": 1, "price": 30}),
        ("sell", {"stock": "A", "quantity": 1, "price": 1e300}),
        ("sell", {"stock": "A", "quantity": 1}),
    ],
)
def test_orders_that_make_no_sense_are_refused_with_a_reason(name: str, arguments: dict[str, object]) -> None:
    world = exchange()
    go_to(world, "trade")
    with pytest.raises(ToolError, match=r"stock|quantity|price"):
        ToolBox.of(object(), 1, [world]).call(ToolCall(name, arguments))
    assert world.history.orders == []


def test_orders_placed_by_code_are_checked_like_those_of_models() -> None:
    world = exchange()
    go_to(world, "trade")
    for quantity, price in ((nan, 30.0), (1, nan), (1, inf), (-1, 30.0), (10**30, 30.0)):
        assert "above 0" in refusal(world.sell, 1, "A", quantity, price)
    assert "no stock 'C'" in refusal(world.sell, 1, "C", 1, 30.0)
    assert "no trader 9" in refusal(world.sell, 9, "A", 1, 30.0)


@pytest.mark.parametrize("amount", [0, -1, nan, inf, 8000.01, 1e300])
def test_loans_outside_the_limit_are_refused(amount: float) -> None:
    world = exchange()
    with pytest.raises(ToolError):
        ToolBox.of(object(), 1, [world]).call(ToolCall("take_loan", {"loan_type": 0, "amount": amount}))
    assert "loan type 3" in refusal(world.take_loan, 1, 3, 10.0)
    assert refusal(world.take_loan, 1, 0, amount) != ""
    assert world.market.accounts[1].cash == 3000.0


def test_a_loan_is_paid_out_at_once_and_falls_due_after_its_term() -> None:
    world = exchange()
    world.take_loan(1, 2, 8000.0)
    account = world.market.accounts[1]
    assert (account.cash, account.loans, account.loan_limit) == (11000.0, [Loan(8000.0, 2, 67)], 0.0)
    assert world.history.loans == [(1, 1, 2, 8000.0)]


def test_a_trader_without_credit_is_not_asked_for_a_loan() -> None:
    world = exchange()
    world.take_loan(2, 0, 8000.0)
    events = go_to(world, "post")
    events += go_to(world, "loan")
    assert (world.turn_order, events) == ((1, 3), [])
    assert "may not borrow more" in refusal(world.take_loan, 2, 0, 1.0)


def test_the_last_fill_sets_the_session_price_and_is_told() -> None:
    world = exchange()
    go_to(world, "trade")
    world.sell(1, "A", 5, 33.0)
    world.buy(2, "A", 5, 33.0)
    (event,) = world.end_step()
    assert (event.kind, event.facts["change"], event.time) == ("price_move", pytest.approx(0.1), 1)
    assert world.market.paths == {"A": [30, 33.0], "B": [40, 40]}
    assert (world.history.closes[0].volume, world.history.closes[0].buys) == (5, 1)


def test_books_last_the_day_and_no_longer() -> None:
    world = exchange()
    go_to(world, "trade")
    world.sell(1, "A", 5, 33.0)
    world.end_step()
    assert world.market.depth("A")["sell"] == [(33.0, 5)]
    go_to(world, "loan")
    assert world.market.depth("A") == {"buy": [], "sell": []}


def test_an_insolvent_trader_leaves_and_its_last_post_stays_a_day() -> None:
    ruined = Endowment(1, "Balanced", 10.0, {"A": 0, "B": 0}, (Loan(500.0, 0, 2),))
    world = Exchange([ruined, endowment(2)], random.Random(1), calendar=Calendar(3, 1))
    go_to(world, "post")
    world.post_message(1, "I am worried.")
    (event,) = world.end_step()
    assert (event.kind, event.facts["trader"], world.turn_order) == ("bankruptcy", 1, (2,))
    assert "I am worried." in world.read_forum(2)
    assert (world.observe(1).tools, offered(world, 1)) == ((), [])
    assert "have left" in refusal(world.take_loan, 1, 0, 1.0)


def test_forecasts_are_noted_and_change_nothing() -> None:
    world = exchange()
    go_to(world, "estimate")
    before = world.market.portfolios()
    answers = {"buy_a": "yes", "buy_b": "no", "sell_a": False, "sell_b": False, "take_loan": True}
    ToolBox.of(object(), 1, [world]).call(ToolCall("estimate", answers))
    assert world.history.forecasts == [(1, 1, True, False, False, False, True)]
    assert world.market.portfolios() == before


def test_profit_counts_debts_at_both_ends() -> None:
    world = exchange()
    world.take_loan(1, 0, 500.0)
    assert [holding.profit for holding in world.market.portfolios()] == [0.0, 0.0, 0.0]
    assert world.market.portfolios()[0].property == 8500.0


def play(seed: int, rules: str) -> Exchange:
    """Let 12 traders place random orders for three days."""
    rng = random.Random(seed)
    world = Exchange(draw_endowments(range(1, 13), rng), rng, rules, calendar=Calendar(3, 3))  # type: ignore[arg-type]
    while not world.is_over:
        for trader in world.turn_order if world.takes_turns else ():
            facts = world.facts(trader)
            act: Callable[..., object] = rng.choice([world.buy, world.sell])
            maximum = facts.cash / 31 if act == world.buy else facts.shares["A"]
            refusal(act, trader, "A", int(maximum * rng.random() / 4), rng.choice([29.5, 30.0, 30.5]))
        world.end_step()
    return world


@pytest.mark.parametrize("rules", ["original", "corrected"])
def test_equal_seeds_give_equal_runs(rules: str) -> None:
    first, second = play(5, rules), play(5, rules)
    assert first.history == second.history
    assert first.history.trades


def test_rules_and_trading_rules_must_agree() -> None:
    assert exchange().trading.settlement == "strict"
    assert exchange(rules="original").trading.settlement == "original"
    with pytest.raises(ConfigError, match="contradicts"):
        exchange(rules="original", trading=TradingRules("strict"))
    with pytest.raises(ConfigError, match="unknown"):
        exchange(rules="fixed")


def test_observing_a_stranger_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ConfigError, match="no trader 99"):
        exchange().observe(99)


def test_a_calendar_needs_a_day_and_a_session() -> None:
    with pytest.raises(ConfigError, match="whole numbers from 1"):
        Calendar(0, 3)


@pytest.mark.parametrize("amounts", [(True, 30.0), (1, True), (1.5, 30.0)])
def test_true_and_parts_of_a_share_are_no_amounts(amounts: tuple[float, float]) -> None:
    world = exchange()
    go_to(world, "trade")
    assert re.search("no amounts|whole number", refusal(world.buy, 1, "A", *amounts))
    assert world.history.orders == []


def test_an_order_has_to_be_covered_with_its_fee() -> None:
    world = exchange(trading=TradingRules(fees=Fees()))
    go_to(world, "trade")
    assert "cost 3001, with the fee of 1; you have 3000.00 cash" in refusal(world.buy, 1, "A", 100, 30.0)
    assert refusal(world.buy, 1, "A", 99, 30.0) == ""


def test_who_loses_a_waiting_order_reads_of_it_the_same_day() -> None:
    world = exchange()
    go_to(world, "trade")
    world.sell(1, "A", 100, 30.0)
    world.market.accounts[1].shares["A"] = 0
    world.buy(2, "A", 5, 30.0)
    (gone,) = world.history.cancellations
    assert (gone.trader, gone.quantity, gone.rested) == (1, 100, True)
    world.end_step()
    assert re.search("Cancelled today, as you could not .*: sell 100 A at 30", world.observe(1).text)
    assert "Cancelled today" not in world.observe(2).text
    go_to(world, "loan")
    assert world.facts(1).cancellations == ()


def test_refusals_write_numbers_with_few_digits() -> None:
    world = exchange()
    go_to(world, "trade")
    world.market.accounts[1].shares["A"] = 1 / 3
    assert "you have 0.3333." in refusal(world.sell, 1, "A", 5, 30.0)
    assert "101 shares at 29.9 cost" in refusal(world.buy, 1, "A", 101, 29.900000000000002)


@pytest.mark.parametrize("price", [5e-324, 0.001, 30.005])
def test_prices_go_in_whole_cents_unless_rules_are_the_originals(price: float) -> None:
    world, original = exchange(), exchange(rules="original")
    for each in (world, original):
        go_to(each, "trade")
    assert "prices go in steps of 0.01" in refusal(world.sell, 1, "A", 1, price)
    assert "steps of 0.01" in world.observe(1).instructions
    assert not refusal(original.sell, 1, "A", 1, price)
    assert "any price above 0" in original.observe(1).instructions


def test_cents_that_differ_by_rounding_alone_are_one_price() -> None:
    world = exchange()
    go_to(world, "trade")
    world.sell(1, "A", 1, 0.1 + 0.2)
    assert world.facts(2).asks["A"] == (0.3, 1)


@pytest.mark.parametrize(("rules", "trades"), [("corrected", 1), ("original", 0)])
def test_a_bid_above_an_offer_trades_unless_rules_are_the_originals(rules: Rules, trades: int) -> None:
    world = exchange(rules=rules)
    go_to(world, "trade")
    world.sell(1, "A", 5, 30.0)
    world.buy(2, "A", 5, 30.5)
    assert len(world.history.trades) == trades


def test_stock_that_a_trader_does_not_own_is_not_offered_for_sale() -> None:
    world = Exchange([endowment(1, a=5, b=0), endowment(2)], random.Random(1))
    go_to(world, "trade")
    assert [world.observe(trader).options["sell.stock"] for trader in (1, 2)] == [("A",), ("A", "B")]
