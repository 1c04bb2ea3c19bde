"""Loans cost what the tables say, and those who cannot pay sell or leave."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.errors import ConfigError
from mesa_llm_models.stock_agent.world.lending import Lending, RateChange, liquidate
from mesa_llm_models.stock_agent.world.matching import TradingRules
from mesa_llm_models.stock_agent.world.rules import StockMarket
from mesa_llm_models.stock_agent.world.state import FIRST_PRICES, Endowment, Loan, TradingAccount, draw_endowments
from mesa_llm_models.stock_agent.world.world import Exchange
from tests.worlds.exchange.small_exchange import exchange, go_to


def account_of(cash: float = 0.0, a: float = 0, b: float = 0, *loans: Loan) -> TradingAccount:
    start = Endowment(1, "Balanced", cash, {"A": a, "B": b}, loans)
    return TradingAccount.of(start, FIRST_PRICES)


def market_with(*starts: Endowment) -> StockMarket:
    return StockMarket(starts, TradingRules(), Lending())


def borrower(cash: float, *loans: Loan, a: float = 0) -> Endowment:
    return Endowment(1, "Balanced", cash, {"A": a, "B": 0}, loans)


def test_a_loan_is_paid_back_with_its_full_rate() -> None:
    market = market_with(borrower(5000.0, Loan(1000.0, 1, 5)))
    market.open_day(5)
    assert (market.accounts[1].cash, market.accounts[1].loans) == (5000.0 - 1030.0, [])


def test_interest_is_a_twelfth_of_the_rate_on_every_loan() -> None:
    market = market_with(borrower(5000.0, Loan(1200.0, 0, 264), Loan(2400.0, 2, 66)))
    market.open_day(22)
    assert market.accounts[1].cash == pytest.approx(5000.0 - 1200 * 0.027 / 12 - 2400 * 0.033 / 12)


def test_a_loan_due_on_an_interest_day_pays_no_further_interest() -> None:
    market = market_with(borrower(5000.0, Loan(1000.0, 0, 22)))
    market.open_day(22)
    assert market.accounts[1].cash == pytest.approx(5000.0 - 1027.0)


def test_payments_on_the_day_of_a_policy_follow_the_old_rates() -> None:
    for due, rate in ((78, 0.027), (79, 0.024), (144, 0.024), (145, 0.0255)):
        market = market_with(borrower(5000.0, Loan(1000.0, 0, due)))
        for day in (78, 79, 144, 145):
            market.open_day(day)
        assert market.accounts[1].cash == pytest.approx(4000.0 - 1000 * rate)


def test_debts_of_the_start_bound_what_may_be_borrowed() -> None:
    account = account_of(1000.0, 10, 5, Loan(400.0, 0, 22))
    assert account.property_at_start == 1000 + 10 * 30 + 5 * 40
    assert account.loan_limit == account.property_at_start - 400


def test_a_trader_who_owes_more_than_it_owns_leaves_with_its_debts() -> None:
    market = market_with(borrower(100.0, Loan(1000.0, 0, 5)), Endowment(2, "Balanced", 1.0, {"A": 1, "B": 1}))
    settled, _ = market.open_day(5)
    assert [(one.trader, one.has_left) for one in settled] == [(1, True)]
    assert [account.trader for account in market.active_accounts] == [2]


def test_a_trader_without_cash_sells_a_before_b() -> None:
    market = market_with(Endowment(1, "Balanced", 0.0, {"A": 10, "B": 50}, (Loan(1000.0, 0, 5),)))
    settled, _ = market.open_day(5)
    # 1,027 is due: 300 come from all of A, 760 from 19 shares of B.
    assert settled[0][2:] == (pytest.approx(-1027.0), 10, 50, pytest.approx(33.0), 0, 31, False)


@given(
    st.floats(-1e7, -1e-6),
    st.integers(0, 10**5),
    st.integers(0, 10**5),
    st.floats(0.1, 90),
    st.floats(0.1, 90),
)
def test_forced_sales_end_with_cash_or_the_trader_leaves(
    cash: float, a: int, b: int, price_a: float, price_b: float
) -> None:
    account = account_of(0.0, a, b)
    account.cash, account.is_marked = cash, True
    worth = a * price_a + b * price_b + cash
    assert liquidate(account, {"A": price_a, "B": price_b}) == (worth < 0)
    if worth >= 0:
        assert account.cash >= 0
        assert min(account.shares.values()) >= 0
        assert account.cash <= max(price_a, price_b)


@given(st.integers(0, 2**32))
def test_endowments_lie_within_the_published_bounds(seed: int) -> None:
    (start,) = draw_endowments([1], random.Random(seed))
    account = TradingAccount.of(start, FIRST_PRICES)
    assert 1e5 <= account.property_at_start <= 5e6
    assert account.loan_limit >= 0
    assert start.loans[0].due_day in range(22, 265, 22)
    assert start.loans[0].loan_type in (0, 1, 2)


def test_impossible_starts_and_terms_are_refused() -> None:
    with pytest.raises(ConfigError, match="shares must be 0 or more"):
        account_of(0.0, -1)
    with pytest.raises(ConfigError, match="one to each"):
        market_with(borrower(1.0), borrower(2.0))
    with pytest.raises(ConfigError, match="three rates"):
        Lending(rate_changes=(RateChange(3, (0.01,), "cheap money"),))
    with pytest.raises(ConfigError, match="at least 1"):
        Lending(interest_every_days=0)


def test_a_trader_whose_shares_just_cover_its_debt_stays() -> None:
    account = account_of(0.0, 10, 50)
    account.cash, account.is_marked = -2300.0, True
    assert not liquidate(account, FIRST_PRICES)
    assert (account.cash, account.shares, account.is_marked) == (0.0, {"A": 0, "B": 0}, False)


def test_interest_runs_up_from_day_to_day_and_lowers_the_profit() -> None:
    world = exchange(days=12, sessions=1)
    world.take_loan(1, 0, 1000.0)
    profits = {}
    while not world.is_over:
        profits[world.now.day] = world.market.portfolios()[0].profit
        world.end_step()
    assert profits[1] == 0
    assert profits[12] == pytest.approx(-1000 * 0.027 * (11 / 22 + 11 / 21 / 12))


def test_a_loan_due_before_the_next_interest_day_runs_up_no_instalment() -> None:
    lending, due_late = Lending(), [Loan(1000.0, 1, 60)]
    assert lending.accrued([Loan(1000.0, 0, 44)], 33, lending.rates) == pytest.approx(1000 * 0.027 * 0.5)
    assert lending.accrued(due_late, 33, lending.rates) == pytest.approx(1000 * 0.03 * (17 / 44 + 0.5 / 12))


def test_who_held_a_debt_at_the_start_has_made_no_loss_by_it_yet() -> None:
    debt = (Loan(1000.0, 0, 10),)
    world = Exchange([Endowment(1, "Balanced", 5000.0, {"A": 1, "B": 1}, debt)], random.Random(1))
    assert world.market.portfolios()[0].profit == 0


def test_interest_that_ran_up_is_gone_when_the_loan_is_paid_back() -> None:
    world = exchange(days=24, sessions=1)
    world.take_loan(1, 0, 1000.0)
    while not world.is_over:
        world.end_step()
    (portfolio, *_) = world.market.portfolios()
    assert (portfolio.accrued, portfolio.profit) == pytest.approx((0, -1000 * 0.027 * (1 + 1 / 12)))


def test_the_originals_profit_leaves_interest_out_until_it_is_paid() -> None:
    world = exchange(days=5, rules="original")
    world.take_loan(1, 0, 1000.0)
    go_to(world, "post")
    assert world.market.portfolios()[0].profit == 0
