"""Rules of an economy: effects of actions and of the end of a step on its state."""

from __future__ import annotations

import math
import re
from itertools import groupby, islice

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.text import counted, one_line
from mesa_llm.tools.validation import is_number, is_whole
from mesa_llm_models.economy.world.state import (
    MINIMUM_WAGE,
    TAX_RATE,
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Value,
    employment_rate,
)
from mesa_llm_models.economy.world.text import reason_text

MAX_DOLLARS = 1e12
"""Maximum price, wage or amount, in dollars."""

MAX_PRICE_FACTOR = 5.0
"""Multiple of what goods cost, or cost to make, up to which a firm is offered prices."""

FALLBACK_PRICE = 10.0
"""Dollars that take the place of what goods cost where they cost nothing yet, and nothing to make."""

MAX_POLICIES = 20
"""Maximum number of policies in force; beyond it, the oldest is dropped."""

MAX_VARIABLES = 20
"""Maximum number of variables."""

MAX_CHARACTERS = 400
"""Maximum number of characters of a policy's name, and of its text."""

MAX_DIGITS = 18
"""Maximum number of digits of a participant's id."""

HOUSEHOLDS = "households"
"""Name of all households together, as a payee."""

MAX_NAMED = 30
"""Maximum number of payees listed when a payment is refused."""

NUMBER = re.compile(rf"\[([0-9]{{1,{MAX_DIGITS}}})\]|([0-9]{{1,{MAX_DIGITS}}})$")
"""A participant's id in the form observations use: `[2]`, with or without a name after it, or `2`."""

_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

_WRITTEN_NUMBER = re.compile(r"\$?\s?([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?(%)?")


class CorrectedRules:
    """Wages, production, demand and taxes in a closed money circuit."""

    has_roles = True
    """Whether only producers employ people and sell goods, and only governments (if any) enact policies."""

    reports_policies = True
    """Whether new policies are reported to other worlds."""

    def __init__(self, state: EconomyState, parameters: EconomyParameters) -> None:
        """Apply the rules to a state.

        Args:
            state: The state to change.
            parameters: The parameters.
        """
        self.state = state
        self.parameters = parameters
        self._payroll: tuple[float, int, float] | None = None

    def opening_balance(self, balance: float | None) -> float:
        """Return a participant's starting balance, given its own or None.

        Raises:
            ConfigError: If its own is negative or not finite.
        """
        balance = self.parameters.starting_balance if balance is None else balance
        if not (math.isfinite(balance) and balance >= 0):
            raise ConfigError(f"a participant cannot start with a balance of {balance!r}; give 0 or more")
        return balance

    @property
    def wage(self) -> float:
        """Wage of a worker in one step, in dollars: the parameter, or the minimum wage if higher."""
        minimum = self.state.variables.get(MINIMUM_WAGE, 0.0)
        return max(self.parameters.wage, minimum if isinstance(minimum, float) else 0.0)

    @property
    def tax_rate(self) -> float:
        """Tax on sales, as a share of the price."""
        rate = self.state.variables.get(TAX_RATE, 0.0)
        return rate if isinstance(rate, float) else 0.0

    @property
    def unemployed(self) -> int:
        """Number of people without work."""
        return max(0, self.parameters.labor_force - self.state.employed)

    def goods_per_worker(self, capital: float) -> float:
        """Compute the goods a worker produces in a step.

        Args:
            capital: Capital of its employer, in dollars.
        """
        growth = (1 + capital / self.parameters.capital_scale) ** self.parameters.capital_share
        return self.parameters.productivity * growth

    def unit_cost(self, participant: Participant) -> float:
        """Compute what a good costs a firm to make, in dollars: the wage over the goods of a worker."""
        goods = self.goods_per_worker(participant.capital)
        return self.wage / goods if goods > 0 else 0.0

    def highest_price(self, participant: Participant) -> float:
        """Compute the highest price that is offered to a firm, in whole dollars.

        It is a multiple of what goods cost now or cost the firm to make with the tax, and leaves room above its own.
        """
        cost = self.unit_cost(participant) / max(1 - self.tax_rate, 0.05)
        usual = max(self.state.metrics["avg_price"], cost) or FALLBACK_PRICE
        highest = max(MAX_PRICE_FACTOR * usual, 1.5 * participant.price)
        return float(math.ceil(min(highest, MAX_DOLLARS)))

    def spending(self) -> float:
        """Compute the dollars that households will spend in this step if all workers keep their work and are paid."""
        return (self.state.purse + self._payroll_of_all()) * self.parameters.spending_share

    def _payroll_of_all(self) -> float:
        """Compute the wages that all firms can pay, once for all who look before anybody hires, fires or pays."""
        wage, participants = self.wage, self.state.participants
        if self._payroll is None or self._payroll[:2] != (wage, len(participants)):
            payroll = math.fsum(min(wage * one.workforce, one.balance) for one in participants.values())
            self._payroll = (wage, len(participants), payroll)
        return self._payroll[2]

    def set_price(self, participant: Participant, price: float) -> None:
        """Set a price of 0 or more; 0 keeps goods off the market."""
        if not (is_number(price) and 0 <= price <= MAX_DOLLARS):
            raise ToolError(reason_text("price", maximum=MAX_DOLLARS, price=price))
        participant.price = float(price)

    def n_hireable(self, participant: Participant) -> int:
        """Compute the number of people without work whom a balance pays for one step, beside the workforce."""
        return max(0, min(self.unemployed, self._affordable(participant) - participant.workforce))

    def hire(self, participant: Participant, count: int) -> None:
        """Employ unemployed people, as many as the balance pays for one step."""
        self._check_count(count)
        if count > self.unemployed:
            raise ToolError(
                reason_text("too_few_people", people=counted(self.unemployed, "person is", "people are"), count=count)
            )
        payroll = self.wage * (participant.workforce + count)
        if payroll > participant.balance:
            affordable = self._affordable(participant)
            raise ToolError(
                reason_text(
                    "unpaid_wages",
                    workers=counted(participant.workforce + count, "worker"),
                    payroll=payroll,
                    balance=participant.balance,
                    affordable=counted(affordable, "worker"),
                )
            )
        self.state.employ(participant, count)
        self._payroll = None

    def fire(self, participant: Participant, count: int) -> None:
        """Lay off workers."""
        self._check_count(count)
        if count > participant.workforce:
            raise ToolError(
                reason_text("too_few_workers", workers=counted(participant.workforce, "worker"), count=count)
            )
        self.state.employ(participant, -count)
        self._payroll = None

    def invest(self, participant: Participant, amount: float) -> None:
        """Buy capital. The price goes to households."""
        self._check_payment(participant, amount)
        participant.balance -= amount
        self._payroll = None
        participant.capital += amount
        self.state.purse += amount
        self.state.investment += amount

    def allocate(self, participant: Participant, target: int | str, amount: float) -> None:
        """Pay another participant, or all households together."""
        self._check_payment(participant, amount)
        name = str(target).strip().lower()
        if name == HOUSEHOLDS:
            self.state.purse += amount
        else:
            self._payee(participant, name).balance += amount
        participant.balance -= amount
        self._payroll = None

    def enact(
        self, participant: Participant, name: str, description: str, variable: str | None, value: Value | None
    ) -> None:
        """Enact a policy, replacing one of the same name, and set its variable."""
        name, description = one_line(name), one_line(description)
        if not name or max(len(name), len(description)) > MAX_CHARACTERS:
            raise ToolError(reason_text("policy", maximum=MAX_CHARACTERS))
        if (variable is None) != (value is None):
            raise ToolError(reason_text("half_a_variable"))
        state = self.state
        previous = None
        if variable is not None and value is not None:
            value = self._checked_value(variable, value)
            previous = state.variables.get(variable)
            state.variables[variable] = value
        policy = Policy(name, description, participant.agent_id, state.step, variable, value, previous)
        remaining = [other for other in state.policies if other.name != name]
        state.policies[:] = [*remaining, policy][-MAX_POLICIES:]

    def set_variable(self, variable: str, value: Value) -> None:
        """Set a variable from outside, and repeal the policies that set it."""
        state = self.state
        state.variables[variable] = self._checked_value(variable, value)
        state.policies[:] = [policy for policy in state.policies if policy.variable != variable]

    def close_step(self) -> dict[str, float]:
        """Pay wages, produce goods, sell them, and measure the economy."""
        state, participants = self.state, list(self.state.participants.values())
        for participant in participants:
            self._pay_wages(participant)
            participant.output = participant.workforce * self.goods_per_worker(participant.capital)
            participant.stock += participant.output
        quantity, turnover = self._sell(participants)
        state.sold = math.fsum(participant.sold for participant in participants)
        self._payroll = None
        posted = [participant.price for participant in participants if participant.price > 0]
        average = sum(posted) / len(posted) if posted else 0.0
        return {
            "employment_rate": employment_rate(state.employed, self.parameters.labor_force),
            "avg_price": turnover / quantity if quantity > 0 else average,
            "total_output": sum(participant.output for participant in participants),
            "total_investment": state.investment,
        }

    def is_news(self, previous: float, current: float) -> bool:
        """Check whether a metric changed by at least the threshold, relative to its previous value."""
        change = abs(current - previous)
        return change > 0 and change >= self.parameters.metric_change_threshold * abs(previous)

    def _pay_wages(self, participant: Participant) -> None:
        """Pay wages to households. Lay off the workers the balance cannot pay."""
        self.state.employ(participant, min(0, self._affordable(participant) - participant.workforce))
        payroll = min(self.wage * participant.workforce, participant.balance)
        participant.balance -= payroll
        self.state.purse += payroll

    def _sell(self, participants: list[Participant]) -> tuple[float, float]:
        """Let households buy, cheapest goods first.

        If their money does not pay for all goods at one price, each seller sells the same share of its stock.

        Returns:
            Goods sold, and dollars paid for them.
        """
        state = self.state
        budget = state.purse * self.parameters.spending_share
        quantity = turnover = taxes = 0.0
        for participant in participants:
            participant.sales = participant.sold = participant.taxes = 0.0
        sellers = sorted(
            (participant for participant in participants if participant.price > 0),
            key=lambda participant: participant.price,
        )
        for price, equals in groupby(sellers, key=lambda participant: participant.price):
            rivals = list(equals)
            supply = sum(participant.stock for participant in rivals)
            demand = budget / price
            for participant in rivals:
                n_sold = participant.stock if supply <= demand else demand * (participant.stock / supply)
                participant.sales, participant.sold = min(n_sold * price, budget), n_sold
                tax = participant.sales * self.tax_rate
                participant.stock -= n_sold
                participant.balance += participant.sales - tax
                state.purse -= participant.sales
                budget -= participant.sales
                quantity, turnover, taxes = quantity + n_sold, turnover + participant.sales, taxes + tax
        governments = [participant for participant in participants if participant.role == "government"]
        for participant in governments:
            participant.taxes = taxes / len(governments)
            participant.balance += participant.taxes
        if not governments:
            state.purse += taxes
        return quantity, turnover

    def _payee(self, participant: Participant, name: str) -> Participant:
        """Return the participant with an id, in brackets or not, unless it is the payer."""
        participants = self.state.participants
        match = NUMBER.match(name)
        payee = participants.get(int(match[1] or match[2])) if match else None
        if payee is participant:
            raise ToolError(reason_text("self_payment"))
        if payee is None:
            names = [
                str(other.agent_id)
                for other in islice(participants.values(), MAX_NAMED + 1)
                if other is not participant
            ]
            n_more = len(participants) - 1 - len(names[:MAX_NAMED])
            payees = [*names[:MAX_NAMED], *([f"{n_more} more"] if n_more > 0 else []), "households"]
            raise ToolError(reason_text("nobody", name=name[:40], payees=", ".join(payees)))
        return payee

    def _affordable(self, participant: Participant) -> int:
        """Compute the number of workers a balance can pay for one step."""
        maximum = float(self.parameters.labor_force)
        return math.floor(min(participant.balance / self.wage, maximum) if self.wage > 0 else maximum)

    def _check_count(self, count: int) -> None:
        if not (is_whole(count) and 1 <= count <= self.parameters.labor_force):
            raise ToolError(reason_text("count", maximum=self.parameters.labor_force, count=count))

    def _check_payment(self, participant: Participant, amount: float) -> None:
        if not (is_number(amount) and 0 < amount <= MAX_DOLLARS):
            raise ToolError(reason_text("amount", maximum=MAX_DOLLARS, amount=amount))
        if amount > participant.balance:
            raise ToolError(reason_text("balance", balance=participant.balance, amount=amount))

    def _checked_value(self, variable: str, value: Value) -> Value:
        """Validate the value of a variable, and reject other names and values."""
        if not _VARIABLE_NAME.fullmatch(variable):
            raise ToolError(reason_text("variable_name", name=variable[:60]))
        if not isinstance(value, str) and not is_number(value):
            raise ToolError(reason_text("value", variable=variable, value=value))
        variables = self.state.variables
        if variable not in variables and len(variables) >= MAX_VARIABLES:
            raise ToolError(reason_text("too_many_variables", maximum=MAX_VARIABLES, variables=", ".join(variables)))
        if variable not in (TAX_RATE, MINIMUM_WAGE):
            return one_line(value, MAX_CHARACTERS) if isinstance(value, str) else float(value)
        value = _number_in(value)
        maximum = 1.0 if variable == TAX_RATE else MAX_DOLLARS
        if isinstance(value, str) or not 0 <= value <= maximum:
            raise ToolError(reason_text("number", variable=variable, maximum=maximum, value=value))
        return float(value)


def _number_in(value: Value) -> Value:
    """Read a number that is written as a text, such as `0.1`, `10%` or `$12`; any other text is returned as it is."""
    match = _WRITTEN_NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return value if match is None else float(match[1]) / (100 if match[2] else 1)
