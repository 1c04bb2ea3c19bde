"""The prediction markets as agents and models meet them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import World
from mesa_llm_models.market.world import (
    MakerName,
    MarketQuestion,
    Outcome,
    PredictionMarkets,
    TradeLimits,
    score_forecasts,
)

orders = st.tuples(
    st.sampled_from(["buy_shares", "sell_shares"]),
    st.integers(1, 4),
    st.sampled_from(["rain", "snow", "fog"]),
    st.sampled_from(["yes", "no", "perhaps"]),
    st.floats(-10, 2000) | st.just(math.nan) | st.just(math.inf),
)


def place(world: PredictionMarkets, order: tuple) -> None:
    name, agent_id, market_id, outcome, size = order
    try:
        getattr(world, name)(agent_id, market_id, outcome, size)
    except ToolError:
        return


def money(world: PredictionMarkets) -> float:
    ledger = world.ledger
    makers = [market.maker_cash + market.fees for market in ledger.markets.values()]
    return math.fsum([*(ledger.portfolio(agent_id).cash for agent_id in range(1, 5)), *makers])


@given(
    st.lists(orders, max_size=40),
    st.sampled_from(["fixed_product", "lmsr", "constant_product_legacy"]),
    st.sampled_from([0.0, 0.02]),
)
@settings(max_examples=60, deadline=None)
def test_no_money_is_made_or_lost(placed: list, maker: MakerName, fee: float) -> None:
    world = PredictionMarkets(["Rain?", MarketQuestion("Snow?", 0.2)], maker=maker, fee=fee)
    before = money(world)
    for order in placed:
        place(world, order)
    assert money(world) == pytest.approx(before, rel=1e-9)
    world.resolve("rain", "yes")
    assert money(world) == pytest.approx(before, rel=1e-9)


@given(st.lists(orders, max_size=40), st.sampled_from(["fixed_product", "lmsr"]), st.sampled_from(["yes", "no"]))
@settings(max_examples=60, deadline=None)
def test_sound_makers_can_always_pay(placed: list, maker: MakerName, answer: Outcome) -> None:
    world = PredictionMarkets(["Rain?", "Snow?"], maker=maker, liquidity=50)
    for order in placed:
        place(world, order)
    for market_id in ("rain", "snow"):
        world.resolve(market_id, answer)
        assert world.ledger.markets[market_id].maker_cash >= -1e-6


@given(st.lists(orders, max_size=40))
@settings(max_examples=60, deadline=None)
def test_nobody_owes_cash_or_shares(placed: list) -> None:
    world = PredictionMarkets(["Rain?", "Snow?"], fee=0.01)
    for order in placed:
        place(world, order)
    for portfolio in world.ledger.portfolios.values():
        assert portfolio.cash >= 0
        assert all(shares >= 0 for sides in portfolio.shares.values() for shares in sides.values())


def test_it_is_a_world() -> None:
    assert isinstance(PredictionMarkets([]), World)


def test_a_fee_makes_a_round_trip_cost_money() -> None:
    world = PredictionMarkets(["Rain?"], fee=0.02)
    world.buy_shares(1, "rain", "yes", 100)
    world.sell_shares(1, "rain", "yes", world.ledger.portfolio(1).shares_of("rain", "yes"))
    assert world.ledger.portfolio(1).cash == pytest.approx(1000 - 2 - 98 * 0.02)
    assert world.ledger.markets["rain"].fees == pytest.approx(2 + 98 * 0.02)


def test_the_right_answer_pays_a_dollar_a_share_and_closes_the_market() -> None:
    world = PredictionMarkets(["Rain?"])
    world.buy_shares(1, "rain", "yes", 100)
    world.buy_shares(2, "rain", "no", 50)
    shares = world.ledger.portfolio(1).shares_of("rain", "yes")
    assert world.resolve("rain", "yes") == pytest.approx(shares)
    assert world.ledger.portfolio(1).cash == pytest.approx(900 + shares)
    assert world.ledger.portfolio(2).cash == pytest.approx(950)
    with pytest.raises(ToolError, match="closed"):
        world.buy_shares(1, "rain", "yes", 1)


def test_an_answer_is_told_and_given_once() -> None:
    world = PredictionMarkets(["Rain?"])
    world.resolve("rain", "no")
    (event,) = world.end_step()
    assert (event.kind, event.source, event.facts["outcome"]) == ("market_resolved", "market", "no")
    with pytest.raises(ConfigError, match="is already resolved: no"):
        world.resolve("rain", "yes")
    with pytest.raises(ConfigError, match="no market 'snow'"):
        world.resolve("snow", "yes")


def test_a_price_that_moves_far_is_told_with_all_that_a_reader_needs() -> None:
    world = PredictionMarkets(["Rain?", "Snow?"])
    world.buy_shares(1, "rain", "yes", 200)
    (event,) = world.end_step()
    assert (event.kind, event.time, event.facts["question"]) == ("price_move", 1, "Rain?")
    assert event.facts["delta"] == pytest.approx(event.facts["price_yes"] - 0.5)
    assert world.end_step() == []


def test_a_threshold_of_zero_tells_of_moves_only() -> None:
    world = PredictionMarkets(["Rain?"], price_move_threshold=0)
    assert world.end_step() == []
    world.buy_shares(1, "rain", "no", 0.01)
    assert [event.kind for event in world.end_step()] == ["price_move"]


def test_a_trader_sees_cash_quotes_holdings_and_what_came_of_its_actions() -> None:
    world = PredictionMarkets(["Rain?"])
    world.buy_shares(1, "rain", "yes", 100)
    with pytest.raises(ToolError):
        world.buy_shares(1, "rain", "yes", 5000)
    world.end_step()
    text = world.observe(1).text
    assert "$900.00 in cash" in text
    assert "You hold 183.33 YES and 0.00 NO" in text
    assert "$10 would buy" in text
    assert "Last time: You bought 183.33 YES" in text
    assert "refused: $5000 is more than the $900.00" in text


def test_a_trader_learns_fee_limits_step_and_when_questions_are_answered() -> None:
    questions = [MarketQuestion("Rain?", due=2), MarketQuestion("Snow?", due=5), "Fog?"]
    world = PredictionMarkets(questions, fee=0.015, limits=TradeLimits(250, 0.1))
    world.end_step()
    seen = world.observe(1)
    assert "keeps 1.5% of the dollars" in seen.instructions
    assert "worth at most $250.00" in seen.instructions
    assert "move a price by at most $0.1" in seen.instructions
    assert seen.text.startswith("Step 2. You have $1000.00")
    assert "[rain] Rain?\nIt is answered at the end of this step." in seen.text
    assert "[snow] Snow?\nIt is answered at the end of step 5." in seen.text
    assert "[fog] Fog?\nPrices" in seen.text


def test_traders_of_the_original_learn_neither_fee_nor_dates() -> None:
    seen = PredictionMarkets([MarketQuestion("Rain?", due=2)], fee=0.01, rules="original").observe(1)
    assert "answered at" not in seen.text
    assert "house" not in seen.instructions


def test_a_shown_quote_is_what_the_small_buy_brings() -> None:
    world = PredictionMarkets(["Rain?"], fee=0.05, quote_dollars=20)
    quoted = world.facts(1).markets[0].no_quote
    world.buy_shares(1, "rain", "no", 20)
    assert world.ledger.trades[-1].shares == quoted


def test_observing_changes_nothing() -> None:
    world = PredictionMarkets(["Rain?"])
    assert world.observe(7) == world.observe(7)
    assert world.ledger.portfolios == {}


def test_remarks_are_read_by_everyone_and_kept_to_one_line() -> None:
    world = PredictionMarkets(["Rain?"], names={1: "Ana"})
    world.comment_on_market(1, "rain", "Clouds\nfrom the west.")
    assert "Ana says: “Clouds from the west.”" in world.observe(2).text
    with pytest.raises(ToolError, match="empty"):
        world.comment_on_market(1, "rain", "  ")
    with pytest.raises(ToolError, match="no market 'snow'; choose one of: rain"):
        world.comment_on_market(1, "snow", "hm")


def test_limits_refuse_large_trades_and_leave_everything_as_it_was() -> None:
    world = PredictionMarkets(["Rain?"], limits=TradeLimits(dollars=100, price_move=0.05))
    with pytest.raises(ToolError, match=r"one trade may be worth \$100"):
        world.buy_shares(1, "rain", "yes", 101)
    with pytest.raises(ToolError, match=r"one may move it by 0\.05"):
        world.buy_shares(1, "rain", "yes", 99)
    assert world.ledger.portfolio(1).cash == 1000
    assert world.ledger.markets["rain"].maker.price("yes") == 0.5


def test_a_closed_market_waits_for_its_answer() -> None:
    world = PredictionMarkets(["Rain?"])
    world.close("rain")
    with pytest.raises(ToolError, match="takes no trades"):
        world.sell_shares(1, "rain", "yes", 1)
    assert "Closed" in world.observe(1).text
    ids_by_action = {name.partition(".")[0]: ids for name, ids in world.observe(1).options.items()}
    assert ids_by_action == {"buy_shares": (), "sell_shares": (), "comment_on_market": ("rain",)}


def test_a_model_calls_the_actions_through_checked_arguments() -> None:
    world = PredictionMarkets(["Rain?"])
    box = ToolBox.of(object(), 1, [world])
    box.call(ToolCall("buy_shares", {"market_id": " [rain] ", "outcome": " YES ", "amount": "25"}))
    assert world.ledger.trades[-1].dollars == 25
    with pytest.raises(ToolError, match="greater than 0"):
        box.call(ToolCall("buy_shares", {"market_id": "rain", "outcome": "yes", "amount": -1}))
    assert "[rain] Rain?" in box.call(ToolCall("browse_markets", {}))


def test_questions_in_any_alphabet_get_an_id_that_can_be_typed() -> None:
    world = PredictionMarkets(["Über tax é?", "雨?", "雪?"])
    assert list(world.ledger.markets) == ["uber_tax_e", "market", "market_2"]


def test_answered_questions_are_scored_at_their_last_price() -> None:
    world = PredictionMarkets(["Rain?", "Snow?"])
    world.buy_shares(1, "rain", "yes", 300)
    world.end_step()
    price = world.facts(1).markets[0].price_yes
    world.resolve("rain", "yes")
    (forecast,) = world.forecasts()
    assert (forecast.price_yes, forecast.mean_price_yes) == (price, pytest.approx((0.5 + price) / 2))
    assert score_forecasts(world.forecasts()).brier == pytest.approx((1 - price) ** 2)


@pytest.mark.parametrize(
    "setting",
    [{"cash": -1}, {"fee": 1}, {"cash": math.nan}, {"limits": TradeLimits(dollars=0)}, {"quote_dollars": 0}],
)
def test_settings_out_of_range_are_refused(setting: dict) -> None:
    with pytest.raises(ConfigError, match="must be"):
        PredictionMarkets(["Rain?"], **setting)


@pytest.mark.parametrize("price_yes", [0.0, 1.0, 1.5, float("nan")])
def test_corrected_rules_open_every_maker_at_a_probability(price_yes: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        PredictionMarkets([MarketQuestion("Rain?", price_yes)], maker="constant_product_legacy")


def test_only_owned_answers_are_offered_for_sale() -> None:
    world = PredictionMarkets(["Rain?", "Snow?"])
    rain, snow = world.ledger.markets
    assert world.observe(1).options["sell_shares.market_id"] == ()
    world.buy_shares(1, snow, "no", 10)
    options = world.observe(1).options
    assert (options["sell_shares.market_id"], options["sell_shares.outcome"]) == ((snow,), ("no",))
    world.buy_shares(1, rain, "yes", 10)
    assert "sell_shares.outcome" not in world.observe(1).options
