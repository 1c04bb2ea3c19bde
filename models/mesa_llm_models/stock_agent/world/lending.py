"""The bank: loan costs, payments, and forced sales by traders who cannot pay."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm_models.stock_agent.world.state import STOCKS, Liquidation, Loan, RateChange, Rates, Stock, TradingAccount
from mesa_llm_models.stock_agent.world.text import reason_text

RATE_CHANGES = (
    RateChange(
        78,
        (0.024, 0.027, 0.030),
        "The central bank has cut the share of deposits that banks must hold back. Loans become cheaper.",
    ),
    RateChange(
        144,
        (0.0255, 0.0285, 0.0315),
        "The central bank has raised its interest rates. Loans become dearer.",
    ),
)
"""The two changes of the original."""


@dataclass(frozen=True, slots=True)
class Lending:
    """The terms on which the bank lends."""

    term_days: tuple[int, ...] = (22, 44, 66)
    """Days until a loan is due, by loan type."""

    rates: Rates = (0.027, 0.030, 0.033)
    """Rates in force on the first day, by loan type."""

    interest_every_days: int = 22
    """Days between two payments of interest."""

    rate_changes: tuple[RateChange, ...] = RATE_CHANGES
    """Rate changes, by day."""

    def __post_init__(self) -> None:
        """Check the tables of rates and the days.

        Raises:
            ConfigError: If a table does not cover the three loan types, or a number of days is below 1.
        """
        tables = [self.rates, *(change.rates for change in self.rate_changes)]
        if len(self.term_days) != 3 or any(len(table) != 3 for table in tables):
            raise ConfigError("lending needs three terms, and three rates in each table")
        if self.interest_every_days < 1 or min(self.term_days) < 1:
            raise ConfigError("terms and the days between interest payments must be at least 1")

    def is_interest_day(self, day: int) -> bool:
        """Check whether traders pay interest on this day."""
        return day % self.interest_every_days == 0

    def accrued(self, loans: Iterable[Loan], day: int, rates: Rates) -> float:
        """Compute the unpaid interest accrued on loans by a day.

        The full rate, due with the loan, accrues evenly over its term. The twelfth due on the next interest day accrues
        from the last one, unless the loan is repaid earlier.

        Args:
            loans: Outstanding loans.
            day: The day, after its payments.
            rates: Current rates.
        """
        return math.fsum(
            loan.principal
            * rates[loan.loan_type]
            * (self._part_of_term(loan, day) + self._part_of_instalment(loan, day))
            for loan in loans
        )

    def _part_of_term(self, loan: Loan, day: int) -> float:
        """Compute the elapsed part of a loan's term, 0 to 1."""
        term = self.term_days[loan.loan_type]
        return max(term - (loan.due_day - day), 0) / term

    def _part_of_instalment(self, loan: Loan, day: int) -> float:
        """Compute the accrued part of the next instalment, relative to the full rate."""
        since = day % self.interest_every_days
        if loan.due_day <= day - since + self.interest_every_days:
            return 0.0
        start_day = loan.due_day - self.term_days[loan.loan_type]
        start = max(since - max(day - start_day, 0), 0)
        return (since - start) / (self.interest_every_days - start) / 12


def borrow(account: TradingAccount, principal: float, loan_type: int, due_day: int) -> Loan:
    """Lend money to a trader, paid out at once.

    Raises:
        ToolError: If the sum is not positive, or exceeds the trader's limit.
    """
    limit = account.loan_limit
    if not 0 < principal <= limit:
        maximum = math.floor(max(limit, 0.0) * 100) / 100
        raise ToolError(reason_text("loan", principal=principal, maximum=maximum))
    loan = Loan(principal, loan_type, due_day)
    account.loans.append(loan)
    account.cash += principal
    return loan


def repay_due(account: TradingAccount, day: int, rates: Rates) -> None:
    """Collect principal and the full rate of loans due today. Mark the trader if its cash falls below 0."""
    for loan in account.loans:
        if loan.due_day == day:
            account.cash -= loan.principal * (1 + rates[loan.loan_type])
    account.loans = [loan for loan in account.loans if loan.due_day != day]
    if account.cash < 0:
        account.is_marked = True


def pay_interest(account: TradingAccount, rates: Rates) -> None:
    """Collect a twelfth of the rate of every loan. Mark the trader if its cash falls below 0.

    A loan thus costs its full rate when due, and a twelfth of it on each interest day before that.
    """
    for loan in account.loans:
        account.cash -= loan.principal * rates[loan.loan_type] / 12
    if account.cash < 0:
        account.is_marked = True


def liquidate(account: TradingAccount, prices: Mapping[Stock, float]) -> bool:
    """Sell a marked trader's shares, A first, until its cash is not negative, or make it leave.

    The shares leave the market without a buyer or a price change. A trader whose cash and shares have a negative value
    leaves with all its debts.

    Returns:
        True if the trader is insolvent and has left.
    """
    if account.property_at(prices) < 0:
        account.has_left = True
        return True
    for stock in STOCKS:
        if account.cash < 0:
            _sell_for(account, stock, prices[stock])
    # Only a rounding error is left: the worth was not negative.
    account.cash = max(account.cash, 0.0)
    account.is_marked = False
    return False


def _sell_for(account: TradingAccount, stock: Stock, price: float) -> None:
    """Sell as many whole shares as bring cash back to 0, or all of them.

    Under the original rules shares can be fractional. Where the whole number exceeds them, the original program stops
    with an error; here, all of them are sold.
    """
    owned = account.shares[stock]
    quantity = min(math.ceil(-account.cash / price), owned) if owned * price >= -account.cash else owned
    account.shares[stock] -= quantity
    account.cash += quantity * price


def liquidation_of(day: int, account: TradingAccount, prices: Mapping[Stock, float]) -> Liquidation:
    """Liquidate a marked trader, and return its row of the history; see `liquidate`."""
    before = (account.cash, account.shares["A"], account.shares["B"])
    has_left = liquidate(account, prices)
    after = (account.cash, account.shares["A"], account.shares["B"])
    return Liquidation(day, account.trader, *before, *after, has_left)
