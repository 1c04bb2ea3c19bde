"""The prediction market: what traders see and do, and what becomes of dollars and shares."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_llm import ScriptedLLM, ToolCall
from mesa_llm.errors import ConfigError
from mesa_llm.llm.scripted import call
from mesa_llm.testing import FAULTS
from mesa_llm_models.market.model import MarketModel, MarketScenario, invented_questions
from mesa_llm_models.market.world import MakerName, score_forecasts

MAKERS: tuple[MakerName, ...] = ("fixed_product", "lmsr", "constant_product_legacy")

NAN, INF = float("nan"), float("inf")


def run(**parameters: Any) -> MarketModel:
    """Run a market to its last answer."""
    model = MarketModel(**parameters)
    while model.running:
        model.step()
    return model


def order(model: MarketModel, amount: Any, outcome: str = "yes") -> ToolCall:
    """Order shares of the first question."""
    market_id = next(iter(model.world.ledger.markets))
    return ToolCall("buy_shares", {"market_id": market_id, "outcome": outcome, "amount": amount})


# -- dollars and shares


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize("maker", MAKERS)
def test_no_dollar_is_made_or_lost_in_a_run(maker: MakerName, llm: str) -> None:
    model = MarketModel(rng=4, maker=maker, llm=llm, fee=0.02)
    before = model.money
    while model.running:
        model.step()
        assert model.money == pytest.approx(before, rel=1e-12)
    assert model.dollars_traded > 0
    assert model.fees > 0


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_every_pair_of_shares_is_backed_by_a_dollar(llm: str) -> None:
    model = MarketModel(rng=5, llm=llm, fee=0.01)
    while model.running:
        model.step()
        for market_id, market in model.world.ledger.markets.items():
            maker: Any = market.maker
            for side in ("yes", "no") if market.is_open else ():
                holdings = (
                    portfolio.shares_of(market_id, side) for portfolio in model.world.ledger.portfolios.values()
                )
                assert math.fsum(holdings) + getattr(maker, side) == pytest.approx(market.maker_cash)


@pytest.mark.parametrize("maker", ["fixed_product", "lmsr"])
def test_sound_makers_pay_every_answer_and_nobody_owes_anything(maker: MakerName) -> None:
    model = run(rng=1, maker=maker, liquidity=50.0)
    assert all(market.maker_cash >= -1e-6 for market in model.world.ledger.markets.values())
    assert all(trader.cash >= 0 for trader in model.agents)


orders = st.tuples(
    st.integers(1, 3),
    st.sampled_from([("buy_shares", "amount"), ("sell_shares", "shares")]),
    st.sampled_from(["will_it_rain_on_market_day", "no_such_market"]),
    st.sampled_from(["yes", "no", "perhaps"]),
    st.floats() | st.floats(0, 500) | st.integers() | st.text(max_size=4) | st.none(),
)


@settings(max_examples=25)
@given(st.lists(orders, max_size=12), st.sampled_from(MAKERS))
def test_whatever_is_ordered_dollars_and_shares_stay(placed: list[Any], maker: MakerName) -> None:
    model = MarketModel(n_agents=3, n_questions=1, maker=maker, horizon=20, rng=1)
    before = model.money
    for agent_id, (action, size), market_id, outcome, wanted in placed:
        model.apply({agent_id: ToolCall(action, {"market_id": market_id, "outcome": outcome, size: wanted})})
        assert model.money == pytest.approx(before, rel=1e-9)
    for portfolio in model.world.ledger.portfolios.values():
        assert portfolio.cash >= 0
        assert all(n_shares >= 0 for sides in portfolio.shares.values() for n_shares in sides.values())


@pytest.mark.parametrize(
    ("amount", "why"),
    [
        (NAN, "should be a finite number"),
        (INF, "should be a finite number"),
        (-5, "should be greater than 0"),
        (0, "should be greater than 0"),
        (1e308, "more than the .* of cash you have"),
        (10**40, "more than the .* of cash you have|too large"),
        ("many", "should be a valid number"),
        (None, "should be a valid number"),
    ],
)
def test_what_is_no_sum_of_money_is_refused_with_a_reason(amount: Any, why: str) -> None:
    model = MarketModel(n_agents=2, rng=1)
    done = model.apply({1: order(model, amount), 2: order(model, 10.0)})
    outcomes = {agent.unique_id: outcome for agent, (outcome,) in done.items()}
    assert not outcomes[1].ok
    assert re.search(why, outcomes[1].result)
    assert outcomes[2].ok


def test_nonsense_order_fails_with_a_reason_and_the_run_continues() -> None:
    faults = [order(MarketModel(n_agents=1, rng=1), amount) for amount in (NAN, -1, "all of it")] + list(FAULTS[:3])
    model = MarketModel(n_agents=6, rng=1, llm=ScriptedLLM(lambda request: faults[request.salt.agent - 1]))
    before = model.money
    model.step()
    assert model.money == before
    assert len(model.runlog.failures()) == 6
    assert "amount: input should be greater than 0" in " ".join(model.runlog.failures())


# -- makers, answers, scores


def test_the_original_maker_trades_as_simswarm_does() -> None:
    model = MarketModel(n_agents=1, rng=1, rules="original")
    model.apply({1: order(model, 100.0)})
    (trade,) = model.world.ledger.trades
    assert trade.shares == 500.0 - 500.0 * 500.0 / 600.0
    assert trade.price_yes == 600.0 / (600.0 + 500.0 * 500.0 / 600.0)
    assert "cash" not in next(iter(model.agents)).observe().text


def test_who_sees_no_cash_overdraws() -> None:
    original = run(rng=3, rules="original", n_agents=20, horizon=30)
    mended = run(rng=3, n_agents=20, horizon=30)
    refusals = [" ".join(map(str, m.runlog.actions().query("ok == 0")["result"])) for m in (original, mended)]
    assert ["of cash you have" in refusal for refusal in refusals] == [True, False]


def test_every_question_is_answered_and_paid_and_the_run_ends() -> None:
    model = run(rng=2)
    markets = list(model.world.ledger.markets.values())
    assert [market.answer == "yes" for market in markets] == [fate.is_yes for fate in model.fates]
    assert all(not portfolio.shares for portfolio in model.world.ledger.portfolios.values())
    assert (model.time, [fate.due for fate in model.fates]) == (10, [3, 5, 8, 10])


def test_prices_foretell_better_than_single_traders_and_than_chance() -> None:
    forecasts, errors, hints = [], {"rule": [], "random": []}, []
    for seed in range(10):
        for llm in ("rule", "random"):
            model = run(rng=seed, n_questions=10, llm=llm)
            errors[llm].append(model.price_error)
            if llm == "rule":
                forecasts += model.forecasts()
                hints.append(model.hint_scores().brier)
    assert score_forecasts(forecasts).brier < sum(hints) / len(hints)
    assert sum(errors["rule"]) < sum(errors["random"]) / 2


def test_known_answers_and_own_questions_can_be_given() -> None:
    model = run(rng=1, questions=["Did it rain?", "Did it snow?"], chances=[1, 0])
    assert [market.answer for market in model.world.ledger.markets.values()] == ["yes", "no"]
    assert model.brier is not None
    assert model.brier < 0.1


def test_chances_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="one number from 0 to 1 for each of 2 questions"):
        MarketModel(questions=["Rain?", "Snow?"], chances=[0.5])
    with pytest.raises(ConfigError, match="less than or equal to 1"):
        MarketModel(questions=["Rain?", "Snow?"], chances=[0.5, 1.5])
    with pytest.raises(ConfigError, match=r"n_questions: .*greater than or equal to 1"):
        MarketModel(n_questions=0)


def test_there_are_always_enough_questions() -> None:
    assert len(set(invented_questions(45))) == 45


# -- what traders see and may do


def test_a_trader_reads_its_cash_its_research_and_what_was_refused() -> None:
    model = MarketModel(n_agents=1, rng=1, memory="none")
    model.apply({1: order(model, 5000.0)})
    trader = next(iter(model.agents))
    text = trader.observe().text
    assert "You have $1000.00 in cash." in text
    assert "Last time: refused: $5000 is more than the $1000.00" in text
    assert f"{next(iter(trader.hints.values())):.0%} for yes" in text


def test_a_trader_reads_when_each_question_of_the_model_is_answered() -> None:
    model = MarketModel(n_agents=1, n_questions=2, horizon=6, rng=1)
    (trader,) = model.agents
    for step, ends in ((1, ["step 3", "step 6"]), (2, ["step 3", "step 6"]), (3, ["this step", "step 6"])):
        text = trader.observe().text
        assert text.startswith(f"Step {step}.")
        assert re.findall("answered at the end of (.*)\\.", text) == ends
        model.step()


def test_nothing_is_offered_that_cannot_be_done() -> None:
    model = MarketModel(n_agents=1, rng=1)
    trader = next(iter(model.agents))
    assert "sell_shares" not in (trader.observe().tools or ())
    model.apply({1: order(model, 1000.0)})
    assert "buy_shares" not in (trader.observe().tools or ())
    assert "sell_shares" in (trader.observe().tools or ())


def test_a_language_model_can_trade() -> None:
    def buy(request: Any) -> Any:
        return call("buy_shares", market_id="will_it_rain_on_market_day", outcome="YES", amount=20)

    model = MarketModel(n_agents=3, rng=1, llm=ScriptedLLM(buy))
    model.step()
    assert len(model.world.ledger.trades) == 3
    assert "YES went from $0.50" in model.story()


def test_a_scenario_sets_the_parameters() -> None:
    model = MarketModel(scenario=MarketScenario(n_agents=3, n_questions=2, maker="lmsr", rng=5))
    assert (len(model.agents), len(model.fates)) == (3, 2)


@pytest.mark.parametrize("limits", [{}, {"max_trade_dollars": 20.0, "max_trade_move": 0.02}])
def test_chance_is_offered_only_what_can_be_done(limits: dict[str, Any]) -> None:
    sold = 0
    for seed in range(3):
        model = run(rng=seed, llm="random", **limits)
        actions = model.runlog.actions()
        sold += len(actions.query("action == 'sell_shares'"))
        assert list(actions.query("ok == 0")["result"]) == []
    assert sold > 0


def test_looking_twice_offers_the_same() -> None:
    trader = next(iter(MarketModel(n_agents=2, rng=1, llm="random").agents))
    assert trader.observe() == trader.observe()


def test_rules_that_there_are_not_and_a_single_text_are_refused() -> None:
    wrong: Any = "orignal"
    with pytest.raises(ConfigError, match=r"rules: .*'corrected' or 'original'"):
        MarketModel(rules=wrong)
    with pytest.raises(ConfigError, match=r"questions: .*'Rain\?'"):
        MarketModel(questions="Rain?")


def test_a_file_of_questions_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    file.write_text('[{"question": "Rain?", "price": 0.3}]', encoding="utf-8-sig")
    assert [fate.text for fate in MarketModel(questions=str(file), rng=1).fates] == ["Rain?"]


def test_a_trade_that_would_move_the_price_too_far_is_refused() -> None:
    model = MarketModel(n_agents=1, rng=1, max_trade_move=0.05)
    (outcomes,) = model.apply({1: order(model, 500.0)}).values()
    assert "may move it by 0.05 at most" in outcomes[0].result


def test_results_have_scores_of_prices_and_hints_after_resolution() -> None:
    assert "hint_brier" not in MarketModel(rng=1).results()
    model = run(rng=1)
    results = model.results()
    assert (results["answered"], results["brier"]) == (4, model.scores().brier)
    assert results["hint_brier"] == model.hint_scores().brier


def test_the_budget_of_a_run_is_no_limit_of_a_trade() -> None:
    model = MarketModel(rng=1, max_dollars=0.01)
    assert model.world.ledger.limits.dollars is None


class SmallModel(ScriptedLLM):
    needs_options = True


def test_a_model_that_needs_options_may_buy_every_answer_that_it_reads_of() -> None:
    asked = []
    script = SmallModel(lambda request: asked.append(request) or call("do_nothing"))
    model = MarketModel(llm=script, rng=1)
    model.step()
    options = asked[0].options
    assert options["buy_shares.market_id"] == tuple(model.world.ledger.markets)
    assert "outcome" not in options
    assert options["amount"][0] == 1.0
