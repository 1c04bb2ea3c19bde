"""Texts for households and other worlds: instructions, observations and events."""

from __future__ import annotations

from functools import lru_cache

from mesa_llm.records import Event
from mesa_llm.text import sentences
from mesa_llm.world import Rules
from mesa_llm_models.econ_agent.world.facts import HouseholdFacts
from mesa_llm_models.econ_agent.world.state import MONTHS_PER_YEAR, TaxSchedule, Years

RESULTS = {"plan_month": "You plan to work with a chance of {work:.2f} and to spend {consumption:.0%} of your money."}
"""Action → what came of it."""

result_text = sentences(RESULTS)

REASONS = {
    "no_household": "agent {agent_id} has no household here and cannot plan a month.",
    "not_a_share": "{name} must be a number from 0 to 1, got {share!r}.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)


def instructions(tax: TaxSchedule) -> str:
    """Describe a month and the tax; the same for every household."""
    return (
        "You run a household in an economy with one good that everyone needs. At the start of each month you "
        "plan two things: how willing you are to work this month, and what share of all your money, this "
        "month's pay included, you spend on the good. What you do not spend stays in your savings account, "
        f"which bears interest once a year.\n{tax_text(tax)}"
    )


@lru_cache(maxsize=64)
def tax_text(tax: TaxSchedule) -> str:
    """Describe the tax: one rate, or the cut-offs and rates of its slices."""
    if not any(tax.rates):
        return "There is no income tax."
    refund = "what the tax brings in is handed back to all households in equal parts each month."
    if len(tax.rates) == 1:
        return f"Every monthly income is taxed at {tax.rates[0] * 100:.4g}%; {refund}"
    brackets = [*(f"up to ${floor:.2f}" for floor in tax.floors[1:]), "and all above"]
    slices = ", ".join(f"{end} at {rate:.0%}" for end, rate in zip(brackets, tax.rates, strict=True))
    return f"A monthly income is taxed slice by slice, {slices}; {refund}"


def view_text(facts: HouseholdFacts, rules: Rules = "corrected") -> str:
    """Describe what a household sees.

    Args:
        facts: The same, as values.
        rules: Under the original rules an amount that stays the same is called rising, as in the published prompt.
    """
    lines = [f"It is {facts.date}. You are {facts.age} years old.", _work_line(facts, rules)]
    if facts.month > 1:
        lines.append(_shopping_line(facts))
        lines.append(f"Last month you paid ${facts.tax_paid:.2f} of tax and got ${facts.tax_credit:.2f} back.")
    lines.append(_price_line(facts, rules))
    rate = facts.interest_rate * 100
    lines.append(f"Your savings are ${facts.coin:.2f}. The interest rate is {rate:.2f} percent a year.")
    if rules == "corrected":
        lines += _budget_lines(facts)
    return "\n".join(lines)


def _budget_lines(facts: HouseholdFacts) -> list[str]:
    """Describe what is left of the pay after tax, what all the money buys, and when interest is paid."""
    pay, savings = round(facts.salary, 2), round(facts.coin, 2)
    tax = round(float(facts.tax.due(facts.salary)), 2)
    at_work, at_home = savings + pay - tax, savings
    lines = [
        f"If you work, the tax on this pay is ${tax:.2f}, and you have ${at_work:.2f} in all, which buys "
        f"{_goods_text(at_work, facts.price)} at this price. If you stay at home, you have ${at_home:.2f}, which buys "
        f"{_goods_text(at_home, facts.price)}. Your part of all taxes comes on top."
    ]
    months = MONTHS_PER_YEAR - (facts.month - 1) % MONTHS_PER_YEAR
    interest = round(facts.coin * facts.interest_rate, 2)
    lines.append(
        f"Interest is paid at the end of {'this month' if months == 1 else f'the year, in {months} months'}; on your "
        f"savings of now it would be ${interest:.2f}."
    )
    return lines


def _goods_text(money: float, price: float) -> str:
    """Write how many goods some money buys."""
    goods = money / price if price > 0 else 0.0
    return f"{goods:.1f} goods"


def _work_line(facts: HouseholdFacts, rules: Rules) -> str:
    """Describe the job or the offer, and its pay."""
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
    """Describe last month's shopping."""
    if facts.is_short:
        return f"Goods were short: you could spend only ${facts.consumption:.2f}, less than you planned."
    return f"You last spent ${facts.consumption:.2f} on the good."


def _price_line(facts: HouseholdFacts, rules: Rules) -> str:
    """Describe the price of the good."""
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


def year_events(source: str, month: int, years: Years, households: int, rate_before: float, rate: float) -> list[Event]:
    """Return the changes of unemployment, inflation and the interest rate in a year, if a year came before it."""
    person_months = MONTHS_PER_YEAR * households
    series = {"unemployment_rate": [count / person_months for count in years.months_without_work]}
    series["price_inflation"] = years.price_inflation
    events: list[Event] = []
    for metric, values in series.items():
        if len(values) < 2:
            continue
        previous, current = values[-2], values[-1]
        facts = {"metric": metric, "previous": previous, "current": current, "delta": current - previous}
        text = f"Over the year, {metric.replace('_', ' ')} went from {previous:.1%} to {current:.1%}."
        events.append(Event(source, "metric_change", facts, text, month))
    if rate != rate_before:
        policy = "interest_rate"
        payload = {"policy": policy, "variable": policy, "previous": rate_before, "value": rate}
        text = f"The central bank moved the interest rate from {rate_before:.2%} to {rate:.2%}."
        events.append(Event(source, "policy_change", payload, text, month))
    return events
