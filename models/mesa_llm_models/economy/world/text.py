"""The text that a participant reads of the economy."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mesa_llm.text import MAX_NAME, counted, one_line, quoted, sentences
from mesa_llm_models.economy.world.facts import CAPITAL_STEP, EconomyFacts
from mesa_llm_models.economy.world.state import Value

PLAIN_RANGE = (1e-9, 1e15)
"""Range of numbers that are written without powers of ten."""

INSTRUCTIONS = (
    "You take part in an economy. Producers employ people, pay them a wage every step out of their balance, "
    "and make goods: more with more workers, and with more capital, which they buy by investing. Households "
    "spend most of what they have on the cheapest goods first; a producer with a price of 0 sells nothing. "
    "Whoever cannot pay a step's wages loses the workers it cannot pay. A government receives the tax on "
    "sales, may hand out money, and enacts policies. A policy can set any variable; two have a direct effect: "
    "tax_rate, the share of every sale that is taken as tax (0 to 1), and minimum_wage, in dollars a step."
)
"""Text that all participants read first, under the corrected rules."""

ORIGINAL_INSTRUCTIONS = (
    "You take part in an economy. Set a price, hire or let workers go, invest out of your balance, allocate "
    "money, or enact policies; metrics are measured at the end of every step."
)
"""The same under the original rules."""


RESULTS = {
    "set_price": "Your price is ${price:.2f}.",
    "balance": "Your balance is ${balance:.2f}.",
    "apply_policy": "Policy {name} is in force.",
}
"""Action, or what it changes → what came of it."""

result_text = sentences(RESULTS)

REASONS = {
    "not_a_producer": "you govern; only producers set prices, employ people and invest.",
    "not_a_government": "only a government enacts policies here.",
    "price": "a price must be from 0 to {maximum:.0f} dollars, got {price!r}.",
    "too_few_people": "only {people} without work; you cannot hire {count}.",
    "unpaid_wages": (
        "a step's wages for {workers} are ${payroll:.2f}; your balance of ${balance:.2f} pays {affordable}."
    ),
    "too_few_workers": "you employ {workers} and cannot let {count} go.",
    "policy": "a policy needs a name, and name and text of at most {maximum} characters.",
    "half_a_variable": "give both a variable and its value, or neither.",
    "self_payment": "you cannot pay yourself; name someone else, or households.",
    "nobody": "there is nobody called {name!r} to pay; choose one of: {payees}.",
    "count": "the count must be a whole number from 1 to {maximum}, got {count!r}.",
    "amount": "an amount must be above 0 and at most {maximum:.0f} dollars, got {amount!r}.",
    "balance": "your balance of ${balance:.2f} does not cover ${amount:.2f}.",
    "variable_name": "a variable is named like tax_rate, in small letters and _; got {name!r}.",
    "value": "{variable} must be a finite number or a text, got {value!r}.",
    "too_many_variables": "there are {maximum} variables already; set one of: {variables}.",
    "number": "{variable} must be a number from 0 to {maximum:.0f}, got {value!r}.",
    "original_balance": "your balance of {balance} does not cover {amount}.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)


def workforce_text(workforce: int) -> str:
    """Report the workers of a producer that has hired some, or let some go."""
    return f"You employ {counted(workforce, 'worker')}."


def metric_text(metric: str, previous: float, current: float) -> str:
    """Report to other worlds that a metric has changed."""
    return f"In the economy, {metric} went from {number_text(previous)} to {number_text(current)}."


def write_corrected(facts: EconomyFacts, names: Mapping[int, str]) -> str:
    """Write what a participant sees under the corrected rules.

    Args:
        facts: What it sees, as values.
        names: Participant id → name that others read.
    """
    own = facts.own
    lines = [
        *_economy_lines(facts),
        *(f"Policy {quoted(policy.name)}: {quoted(policy.description)}" for policy in facts.policies),
        *(f"{name} = {value_text(value)}" for name, value in facts.variables.items()),
    ]
    for other in facts.others:
        label = f" {one_line(names[other.agent_id], MAX_NAME)}" if other.agent_id in names else ""
        price = f"asks ${other.price:.2f} a good and " if other.price > 0 else ""
        does = f": {price}employs {other.workforce}" if other.role == "producer" else ""
        lines.append(f"[{other.agent_id}]{label}, {other.role}{does}.")
    if facts.more_others:
        lines.append(f"Only governments and the cheapest producers are listed; there are {facts.more_others} more.")
    lines.append(f"You are [{own.agent_id}], a {own.role}, with a balance of ${own.balance:.2f}.")
    return "\n".join([*lines, *(_firm_lines(facts) if own.role == "producer" else _government_lines(facts))])


def _economy_lines(facts: EconomyFacts) -> list[str]:
    """Describe work, the goods made and sold, and what households can buy."""
    metrics = facts.metrics
    price = metrics["avg_price"]
    lines = [
        f"After {counted(facts.step, 'step')}, {metrics['employment_rate']:.1%} of people have work and "
        f"{facts.unemployed} are free to hire. ${metrics['total_investment']:.2f} have been invested so far."
    ]
    if facts.step:
        traded = (
            f", at ${price:.2f} on average"
            if facts.sold > 0
            else "; firms ask " + (f"${price:.2f} on average" if price > 0 else "no price yet")
        )
        lines.append(
            f"In the last step {number_text(metrics['total_output'])} goods were made and {number_text(facts.sold)} "
            f"sold{traded}."
        )
    else:
        lines.append("No goods have been made or sold yet.")
    demand = f"; at ${price:.2f} a good, that buys {number_text(facts.spending / price)}" if price > 0 else ""
    lines.append(
        f"Households have ${facts.purse:.2f}. With the wages that firms pay them now they will spend about "
        f"${facts.spending:.2f} in this step, on the cheapest goods first{demand}."
    )
    return lines


def _firm_lines(facts: EconomyFacts) -> list[str]:
    """Describe a firm's workers and cash, its costs and capital, its price and its goods."""
    own, tax = facts.own, f"{facts.tax_rate:.0%} tax"
    made = number_text(facts.goods_per_worker)
    even = f", and with the {tax} on its sale you lose money below ${facts.even_price:.2f}" if facts.even_price else ""
    lines = [
        _workers_line(facts),
        f"Your capital is ${own.capital:.2f}: with it a worker makes {made} {'good' if made == '1' else 'goods'} a "
        f"step, and with ${CAPITAL_STEP:,.0f} more would make {number_text(facts.goods_per_worker_after)}. "
        f"So a good costs you ${facts.unit_cost:.2f} to make{even if facts.tax_rate else ''}.",
        f"Your price is ${own.price:.2f}."
        if own.price > 0
        else "You have no price: until you set one, you sell nothing.",
    ]
    if own.output > 0 or own.sold > 0:
        lines.append(
            f"In the last step you made {number_text(own.output)} goods, sold {number_text(own.sold)} and took "
            f"${own.sales:.2f} before {tax}; {number_text(own.stock)} goods are unsold."
        )
    elif facts.step:
        lines.append(f"In the last step you made and sold nothing; {number_text(own.stock)} goods are unsold.")
    if facts.supply > 0:
        lines.append(f"With your present workers you will have {number_text(facts.supply)} goods to sell in this step.")
    return lines


def _workers_line(facts: EconomyFacts) -> str:
    """Describe a firm's workers, and for how long its balance pays them."""
    own, wage = facts.own, f"${facts.wage:.2f} a step"
    if not own.workforce:
        line = f"You employ nobody, so you make nothing; a worker costs {wage}."
        payable = int(own.balance // facts.wage) if facts.wage > 0 else 0
        return f"{line} Your balance would pay {counted(payable, 'worker')} for one step." if facts.wage > 0 else line
    steps = "" if facts.steps_paid is None else f"; your balance pays for {counted(facts.steps_paid, 'such step')}"
    return f"You employ {counted(own.workforce, 'worker')} at {wage} each, ${facts.payroll:.2f} in all{steps}."


def _government_lines(facts: EconomyFacts) -> list[str]:
    """Describe the tax and what it brought in."""
    rate = f"The tax takes {facts.tax_rate:.0%} of every sale" if facts.tax_rate else "There is no tax yet"
    return [f"{rate}; in the last step you took in ${facts.own.taxes:.2f}." if facts.step else f"{rate}."]


def value_text(value: Value) -> str:
    """Write the value of a variable: a number as it is, a text as a quotation."""
    return quoted(value) if isinstance(value, str) else str(value)


def number_text(number: float) -> str:
    """Write a number to the unit from 1,000 on, else to four significant digits: 15,520 or 0.0423."""
    if number == 0:
        return "0"
    if not PLAIN_RANGE[0] <= abs(number) < PLAIN_RANGE[1]:
        return f"{number:.4g}"
    text = f"{number:,.{max(0, 3 - math.floor(math.log10(abs(number))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_original(facts: EconomyFacts) -> str:
    """Write what a participant sees under the original rules: metrics, policies, variables, its account."""
    own = facts.own
    lines = [f"{name} = {value:.4f}" for name, value in facts.metrics.items()]
    lines += [one_line(f"policy {policy.name}: {policy.description}") for policy in facts.policies]
    lines += [one_line(f"variable {name} = {value}") for name, value in facts.variables.items()]
    lines.append(
        f"you: role {own.role}, balance {own.balance}, workforce {own.workforce}, price {own.price}, "
        f"output {own.output}"
    )
    return "\n".join(lines)
