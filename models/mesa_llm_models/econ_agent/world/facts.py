"""Facts a household observes before planning a month, as values."""

from __future__ import annotations

from dataclasses import dataclass

from mesa_llm_models.econ_agent.world.state import MONTHS_PER_YEAR, TaxSchedule

_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
"""Month names. Those of `calendar` depend on the locale, and so would the prompts."""


@dataclass(frozen=True, slots=True)
class HouseholdFacts:
    """One household's view of the economy at the start of a month, as values."""

    month: int
    """The month to plan, from 1."""

    date: str
    """Its name and calendar year."""

    age: int
    """Years."""

    job: str
    """Job title last month; empty while unemployed."""

    offer: str
    """Job title on offer; the current one while employed."""

    salary: float
    """Dollars for one month of work."""

    salary_before: float | None
    """The same a month ago; None in the first month."""

    last_salary: float
    """Salary of the last month at work, in dollars; 0 if there was none."""

    income: float
    """Last month's salary in dollars, as known to the household."""

    coin: float
    """Savings, in dollars."""

    consumption: float
    """Dollars spent last month, as known to the household."""

    is_short: bool
    """Whether the household got fewer goods than planned last month."""

    price: float
    """Dollars per good."""

    price_before: float | None
    """The same a month ago; None in the first month."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    tax_paid: float
    """Dollars of income tax paid last month."""

    tax_credit: float
    """Dollars redistributed to it last month."""

    tax: TaxSchedule
    """Current tax."""

    @property
    def is_employed(self) -> bool:
        """Whether the household worked last month."""
        return bool(self.job)


def date_of(month: int, first_year: int) -> str:
    """Return the name and calendar year of a month, counted from 1."""
    years, months = divmod(month - 1, MONTHS_PER_YEAR)
    return f"{_MONTH_NAMES[months]} {first_year + years}"
