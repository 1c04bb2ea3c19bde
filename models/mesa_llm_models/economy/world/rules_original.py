"""SimSwarm's rules of an economy, with their defects."""

from __future__ import annotations

from functools import reduce
from operator import add

from mesa_llm.errors import ToolError
from mesa_llm.text import counted
from mesa_llm_models.economy.world.state import (
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Value,
    employment_rate,
)
from mesa_llm_models.economy.world.text import reason_text


class OriginalEconomyRules:
    """SimSwarm's rules, defects included: nothing is paid or bounded, and only firing or investing too much is refused.

    Called directly, they accept whatever Python can convert, as SimSwarm does: NaN, negative amounts, numbers in
    strings.
    """

    has_roles = False
    reports_policies = False

    def __init__(self, state: EconomyState, parameters: EconomyParameters) -> None:
        """Apply the rules to a state.

        Args:
            state: The state that they change.
            parameters: The parameters, of which only labour force and threshold are used.
        """
        self.state = state
        self.parameters = parameters

    def opening_balance(self, balance: float | None) -> float:
        """Return a participant's own starting balance, else 0."""
        return 0.0 if balance is None else balance

    def set_price(self, participant: Participant, price: float) -> None:
        """Set any price. The average is over positive ones."""
        participant.price = float(price)

    def hire(self, participant: Participant, count: int) -> None:
        """Add any number of workers for free. A negative count removes them."""
        self.state.employ(participant, int(count))

    def fire(self, participant: Participant, count: int) -> None:
        """Remove workers. A negative count adds them."""
        count = int(count)
        if count > participant.workforce:
            raise ToolError(
                reason_text("too_few_workers", workers=counted(participant.workforce, "worker"), count=count)
            )
        self.state.employ(participant, -count)

    def invest(self, participant: Participant, amount: float) -> None:
        """Turn money into output. A negative amount turns output into money."""
        amount = float(amount)
        if participant.balance < amount:
            raise ToolError(reason_text("original_balance", balance=participant.balance, amount=amount))
        participant.balance -= amount
        participant.output += amount
        self.state.investment += amount

    def allocate(self, participant: Participant, target: int | str, amount: float) -> None:
        """Do nothing. An amount that is not a number is an error."""
        float(amount)

    def enact(
        self, participant: Participant, name: str, description: str, variable: str | None, value: Value | None
    ) -> None:
        """Append a policy to the list, and set its variable if it has both name and value."""
        state = self.state
        state.policies.append(Policy(name, description, participant.agent_id, state.step, variable, value))
        if variable is not None and value is not None:
            state.variables[variable] = value

    def set_variable(self, variable: str, value: Value) -> None:
        """Set a variable from outside, without effect."""
        self.state.variables[variable] = value

    def close_step(self) -> dict[str, float]:
        """Measure the economy."""
        # Added one by one: since Python 3.12 `sum` rounds differently, and thresholds are compared to the bit.
        state, participants = self.state, list(self.state.participants.values())
        prices = [participant.price for participant in participants if participant.price > 0]
        return {
            "employment_rate": employment_rate(state.employed, self.parameters.labor_force),
            "avg_price": reduce(add, prices) / len(prices) if prices else 0.0,
            "total_output": reduce(add, (participant.output for participant in participants), 0.0),
            "total_investment": state.investment,
        }

    def is_news(self, previous: float, current: float) -> bool:
        """Check whether a metric changed by at least the threshold, in its own unit."""
        return abs(current - previous) >= self.parameters.metric_change_threshold
