"""What a household sees of the economy before it plans a month: as values, and in words."""

from __future__ import annotations

import calendar
from dataclasses import dataclass

import numpy as np

from mesa_llm.worlds.macro.policies import Standing
from mesa_llm.worlds.macro.rules import MONTHS_PER_YEAR, Rules, TaxSchedule

_MONTH_NAMES = calendar.month_name[1:]


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
    """Title of the job held last month; empty while unemployed."""

    offer: str
    """Title of the job on offer; the present one while at work."""

    salary: float
    """Dollars for a month at work."""

    salary_before: float | None
    """The same a month ago; None in the first month."""

    last_salary: float
    """Salary of the last month at work, in dollars; 0 if there was none."""

    income: float
    """Last month's salary in dollars, as far as the household knows it."""

    coin: float
    """Savings, in dollars."""

    consumption: float
    """Dollars spent last month, as far as the household knows it."""

    is_short: bool
    """True if last month's shopping failed for want of goods."""

    price: float
    """Dollars per good."""

    price_before: float | None
    """The same a month ago; None in the first month."""

    interest_rate: float
    """Yearly rate, as a fraction."""

    tax_paid: float
    """Dollars of income tax paid last month."""

    tax_credit: float
    """Dollars handed back last month."""

    tax: TaxSchedule
    """The tax in force."""

    @property
    def is_employed(self) -> bool:
        """Tell whether the household worked last month."""
        return bool(self.job)

    @property
    def standing(self) -> Standing:
        """The household as rule policies see it: arrays of one."""
        return Standing(
            salary=np.array([self.salary]),
            coin=np.array([self.coin]),
            last_salary=np.array([self.last_salary]),
            price=self.price,
            interest_rate=self.interest_rate,
            tax=self.tax,
            tax_credit=self.tax_credit,
        )


def date_of(month: int, first_year: int) -> str:
    """Name a month, counted from 1, in the calendar."""
    years, months = divmod(month - 1, MONTHS_PER_YEAR)
    return f"{_MONTH_NAMES[months]} {first_year + years}"


def rules_text(tax: TaxSchedule) -> str:
    """Tell every household how its month goes and how it is taxed."""
    return (
        "You run a household in an economy with one good that everyone needs. At the start of each month you "
        "plan two things: how willing you are to work this month, and which share of all your money, this "
        "month's pay included, you spend on the good. What you do not spend stays in your savings account, "
        f"which bears interest once a year.\n{_tax_text(tax)}"
    )


def _tax_text(tax: TaxSchedule) -> str:
    """Describe the tax: one rate, or by its slices."""
    if not any(tax.rates):
        return "There is no income tax."
    refund = "what the tax brings in is handed back to all households in equal parts each month."
    if len(tax.rates) == 1:
        return f"Every monthly income is taxed at {tax.rates[0] * 100:.4g}%; {refund}"
    ends = [*(f"up to ${floor:.2f}" for floor in tax.floors[1:]), "and all above"]
    slices = ", ".join(f"{end} at {rate:.0%}" for end, rate in zip(ends, tax.rates, strict=True))
    return f"A monthly income is taxed slice by slice, {slices}; {refund}"


def view_text(facts: HouseholdFacts, rules: Rules = "corrected") -> str:
    """Write what a household sees.

    Args:
        facts: What it sees.
        rules: Under the original rules an amount that stays the same is called rising, as in the published prompt.
    """
    lines = [f"It is {facts.date}. You are {facts.age} years old.", _work_line(facts, rules)]
    if facts.month > 1:
        lines.append(_shopping_line(facts))
        lines.append(f"Last month you paid ${facts.tax_paid:.2f} of tax and got ${facts.tax_credit:.2f} back.")
    lines.append(_price_line(facts, rules))
    rate = facts.interest_rate * 100
    lines.append(f"Your savings are ${facts.coin:.2f}. The interest rate is {rate:.2f} percent a year.")
    return "\n".join(lines)


def _work_line(facts: HouseholdFacts, rules: Rules) -> str:
    """Say what work there is."""
    if not facts.is_employed:
        return (
            "You had no job and no pay last month. "
            f"You are offered work as: {facts.offer}, for ${facts.salary:.2f} a month."
        )
    line = f"You work as: {facts.job}. This month it would pay ${facts.salary:.2f}"
    if facts.salary_before is None:
        return f"{line}."
    if rules == "corrected" and _is_same(facts.salary, facts.salary_before):
        return f"{line}, the same as before: wages are steady in the labour market."
    if facts.salary >= facts.salary_before:
        return f"{line}, no less than before: wages are going up in the labour market."
    return f"{line}, less than the ${facts.salary_before:.2f} before: wages are falling in the labour market."


def _shopping_line(facts: HouseholdFacts) -> str:
    """Say what last month's shopping came to."""
    if facts.is_short:
        return f"Goods were short: you could spend only ${facts.consumption:.2f}, less than you planned."
    return f"You last spent ${facts.consumption:.2f} on the good."


def _price_line(facts: HouseholdFacts, rules: Rules) -> str:
    """Say what the good costs."""
    line = f"The good costs ${facts.price:.2f}"
    if facts.price_before is None:
        return f"{line}."
    if rules == "corrected" and _is_same(facts.price, facts.price_before):
        return f"{line}, the same as a month ago: prices are steady."
    if facts.price >= facts.price_before:
        return f"{line}, no less than the ${facts.price_before:.2f} of a month ago: prices are going up."
    return f"{line}, less than the ${facts.price_before:.2f} of a month ago: prices are falling."


def _is_same(now: float, before: float) -> bool:
    """Check whether two amounts are written alike, to the cent."""
    return f"{now:.2f}" == f"{before:.2f}"
