"""The corrected rules: wages, production, demand and taxes in a closed circle of money."""

from __future__ import annotations

import math
import re
from itertools import groupby, islice

from mesa_llm.errors import ToolError
from mesa_llm.text import one_line
from mesa_llm.worlds.amounts import is_number, is_whole
from mesa_llm.worlds.economy.state import (
    MINIMUM_WAGE,
    TAX_RATE,
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Value,
    employment_rate,
)

MOST_DOLLARS = 1e12
"""Largest price, wage or amount that is taken, in dollars."""

MOST_POLICIES = 20
"""Policies in force at a time; the oldest gives way."""

MOST_VARIABLES = 20

MOST_CHARACTERS = 400
"""Longest text of a policy."""

MOST_DIGITS = 18
"""Longest number that is looked up as a participant's."""

HOUSEHOLDS = "households"
"""What a payment names all households together by."""

MOST_NAMED = 30
"""Participants that a refused payment names as possible payees."""

NUMBER = re.compile(rf"\[([0-9]{{1,{MOST_DIGITS}}})\]|([0-9]{{1,{MOST_DIGITS}}})$")
"""A participant, as observations name it: `[2]`, with or without a name behind it, or `2`."""

_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class CorrectedRules:
    """What actions and steps do under the corrected rules."""

    def __init__(self, state: EconomyState, parameters: EconomyParameters) -> None:
        """Work on a state.

        Args:
            state: What the rules change.
            parameters: All parameters.
        """
        self.state = state
        self.parameters = parameters

    @property
    def wage(self) -> float:
        """Dollars a worker earns in a step: the parameter, or a higher minimum wage."""
        minimum = self.state.variables.get(MINIMUM_WAGE, 0.0)
        return max(self.parameters.wage, minimum if isinstance(minimum, float) else 0.0)

    @property
    def tax_rate(self) -> float:
        """Share of every sale that is taken as tax."""
        rate = self.state.variables.get(TAX_RATE, 0.0)
        return rate if isinstance(rate, float) else 0.0

    @property
    def unemployed(self) -> int:
        """People without work."""
        return max(0, self.parameters.labor_force - self.state.employed)

    def goods_per_worker(self, capital: float) -> float:
        """Compute the goods that a worker makes in a step at a firm with this much capital, in dollars."""
        growth = (1 + capital / self.parameters.capital_scale) ** self.parameters.capital_share
        return self.parameters.productivity * growth

    def set_price(self, one: Participant, price: float) -> None:
        """Set a price of 0 or more; 0 keeps goods off the market."""
        if not (is_number(price) and 0 <= price <= MOST_DOLLARS):
            raise ToolError(f"a price must be from 0 to {MOST_DOLLARS:.0f} dollars, got {price!r}.")
        one.price = float(price)

    def hire(self, one: Participant, count: int) -> None:
        """Employ people who are free and whom the balance can pay for a step."""
        self._check_count(count)
        if count > self.unemployed:
            raise ToolError(f"only {self.unemployed} people are without work; you cannot hire {count}.")
        payroll = self.wage * (one.workforce + count)
        if payroll > one.balance:
            affordable = self._affordable(one)
            raise ToolError(
                f"a step's wages for {one.workforce + count} workers are ${payroll:.2f}; your balance of "
                f"${one.balance:.2f} pays {affordable} workers."
            )
        self.state.employ(one, count)

    def fire(self, one: Participant, count: int) -> None:
        """Let workers go."""
        self._check_count(count)
        if count > one.workforce:
            raise ToolError(f"you employ {one.workforce} workers and cannot let {count} go.")
        self.state.employ(one, -count)

    def invest(self, one: Participant, amount: float) -> None:
        """Buy capital; households earn what it costs."""
        self._check_payment(one, amount)
        one.balance -= amount
        one.capital += amount
        self.state.purse += amount
        self.state.investment += amount

    def allocate(self, one: Participant, target: int | str, amount: float) -> None:
        """Pay another participant, or all households together."""
        self._check_payment(one, amount)
        name = str(target).strip().lower()
        if name == HOUSEHOLDS:
            self.state.purse += amount
        else:
            self._payee(one, name).balance += amount
        one.balance -= amount

    def enact(self, one: Participant, name: str, description: str, variable: str | None, value: Value | None) -> None:
        """Put a policy in force, in place of one of the same name, and set its variable."""
        name, description = one_line(name), one_line(description)
        if not name or max(len(name), len(description)) > MOST_CHARACTERS:
            raise ToolError(f"a policy needs a name, and name and text of at most {MOST_CHARACTERS} characters.")
        if (variable is None) != (value is None):
            raise ToolError("give both a variable and its value, or neither.")
        state = self.state
        previous = None
        if variable is not None and value is not None:
            value = self._checked_value(variable, value)
            previous = state.variables.get(variable)
            state.variables[variable] = value
        policy = Policy(name, description, one.actor, state.step, variable, value, previous)
        kept = [other for other in state.policies if other.name != name]
        state.policies[:] = [*kept, policy][-MOST_POLICIES:]

    def close_step(self) -> dict[str, float]:
        """Pay wages, make goods, sell them, and measure the economy."""
        state, participants = self.state, list(self.state.participants.values())
        for one in participants:
            self._pay_wages(one)
            one.output = one.workforce * self.goods_per_worker(one.capital)
            one.stock += one.output
        quantity, turnover = self._sell(participants)
        posted = [one.price for one in participants if one.price > 0]
        average = sum(posted) / len(posted) if posted else 0.0
        return {
            "employment_rate": employment_rate(state.employed, self.parameters.labor_force),
            "avg_price": turnover / quantity if quantity > 0 else average,
            "total_output": sum(one.output for one in participants),
            "total_investment": state.investment,
        }

    def is_news(self, previous: float, current: float) -> bool:
        """Tell whether a metric moved, and by the threshold relative to its value before."""
        change = abs(current - previous)
        return change > 0 and change >= self.parameters.metric_change_threshold * abs(previous)

    def _pay_wages(self, one: Participant) -> None:
        """Pay the workers to households; let those go whom the balance cannot pay."""
        self.state.employ(one, min(0, self._affordable(one) - one.workforce))
        payroll = min(self.wage * one.workforce, one.balance)
        one.balance -= payroll
        self.state.purse += payroll

    def _sell(self, participants: list[Participant]) -> tuple[float, float]:
        """Let households buy, cheapest first, and return the goods and dollars that changed hands.

        Where money does not reach for all goods at one price, each seller sells the same share of its own.
        """
        state = self.state
        budget = state.purse * self.parameters.spending_share
        quantity = turnover = taxes = 0.0
        for one in participants:
            one.sales = 0.0
        sellers = sorted((one for one in participants if one.price > 0), key=lambda one: one.price)
        for price, equals in groupby(sellers, key=lambda one: one.price):
            rivals = list(equals)
            offered = sum(one.stock for one in rivals)
            demand = budget / price
            for one in rivals:
                sold = one.stock if offered <= demand else demand * (one.stock / offered)
                one.sales = min(sold * price, budget)
                tax = one.sales * self.tax_rate
                one.stock -= sold
                one.balance += one.sales - tax
                state.purse -= one.sales
                budget -= one.sales
                quantity, turnover, taxes = quantity + sold, turnover + one.sales, taxes + tax
        governments = [one for one in participants if one.role == "government"]
        for one in governments:
            one.balance += taxes / len(governments)
        if not governments:
            state.purse += taxes
        return quantity, turnover

    def _payee(self, one: Participant, name: str) -> Participant:
        """Find whom a number names, in brackets or not, other than who pays."""
        participants = self.state.participants
        number = NUMBER.match(name)
        found = participants.get(int(number[1] or number[2])) if number else None
        if found is one:
            raise ToolError("you cannot pay yourself; name someone else, or households.")
        if found is None:
            first = [str(other.actor) for other in islice(participants.values(), MOST_NAMED + 1) if other is not one]
            rest = len(participants) - 1 - len(first[:MOST_NAMED])
            known = [*first[:MOST_NAMED], *([f"{rest} more"] if rest > 0 else []), "households"]
            raise ToolError(f"there is nobody called {name[:40]!r} to pay; choose one of: {', '.join(known)}.")
        return found

    def _affordable(self, one: Participant) -> int:
        """Count the workers whom a balance pays for a step."""
        most = float(self.parameters.labor_force)
        return math.floor(min(one.balance / self.wage, most) if self.wage > 0 else most)

    def _check_count(self, count: int) -> None:
        if not (is_whole(count) and 1 <= count <= self.parameters.labor_force):
            raise ToolError(f"the count must be a whole number from 1 to {self.parameters.labor_force}, got {count!r}.")

    def _check_payment(self, one: Participant, amount: float) -> None:
        if not (is_number(amount) and 0 < amount <= MOST_DOLLARS):
            raise ToolError(f"an amount must be above 0 and at most {MOST_DOLLARS:.0f} dollars, got {amount!r}.")
        if amount > one.balance:
            raise ToolError(f"your balance of ${one.balance:.2f} does not cover ${amount:.2f}.")

    def _checked_value(self, variable: str, value: Value) -> Value:
        """Refuse what is no variable, or a value it cannot have."""
        if not _VARIABLE_NAME.fullmatch(variable):
            raise ToolError(f"a variable is named like tax_rate, in small letters and _; got {variable[:60]!r}.")
        if not isinstance(value, str) and not is_number(value):
            raise ToolError(f"{variable} must be a finite number or a text, got {value!r}.")
        variables = self.state.variables
        if variable not in variables and len(variables) >= MOST_VARIABLES:
            raise ToolError(f"there are {MOST_VARIABLES} variables already; set one of: {', '.join(variables)}.")
        if variable not in (TAX_RATE, MINIMUM_WAGE):
            return one_line(value, MOST_CHARACTERS) if isinstance(value, str) else float(value)
        top = 1.0 if variable == TAX_RATE else MOST_DOLLARS
        if isinstance(value, str) or not 0 <= value <= top:
            raise ToolError(f"{variable} must be a number from 0 to {top:.0f}, got {value!r}.")
        return float(value)
