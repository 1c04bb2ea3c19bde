"""SimSwarm's rules, faults included: nothing is paid, bounded or refused but firing and investing too much.

Called directly they take whatever Python can convert, as SimSwarm does: NaN, negative amounts, numbers in
strings.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from mesa_llm.errors import ToolError
from mesa_llm.worlds.economy.state import (
    EconomyParameters,
    EconomyState,
    Participant,
    Policy,
    Value,
    employment_rate,
)


class OriginalRules:
    """What actions and steps do under the original rules."""

    def __init__(self, state: EconomyState, parameters: EconomyParameters) -> None:
        """Work on a state.

        Args:
            state: What the rules change.
            parameters: Labour force and threshold.
        """
        self.state = state
        self.parameters = parameters

    def set_price(self, one: Participant, price: float) -> None:
        """Set any price; one that is not positive leaves the average."""
        one.price = float(price)

    def hire(self, one: Participant, count: int) -> None:
        """Add workers, however many, for nothing; a negative count takes them away."""
        self.state.employ(one, int(count))

    def fire(self, one: Participant, count: int) -> None:
        """Take workers away; a negative count adds them."""
        count = int(count)
        if count > one.workforce:
            raise ToolError(f"you employ {one.workforce} workers and cannot let {count} go.")
        self.state.employ(one, -count)

    def invest(self, one: Participant, amount: float) -> None:
        """Turn money into output; a negative amount turns output into money."""
        amount = float(amount)
        if one.balance < amount:
            raise ToolError(f"your balance of {one.balance} does not cover {amount}.")
        one.balance -= amount
        one.output += amount
        self.state.investment += amount

    def allocate(self, one: Participant, target: int | str, amount: float) -> None:
        """Do nothing with a target and an amount."""
        float(amount)

    def enact(self, one: Participant, name: str, description: str, variable: str | None, value: Value | None) -> None:
        """Add a policy to the list, and set a variable if both its name and its value are given."""
        state = self.state
        state.policies.append(Policy(name, description, one.actor, state.step, variable, value))
        if variable is not None and value is not None:
            state.variables[variable] = value

    def close_step(self) -> dict[str, float]:
        """Measure the economy."""
        # Added up one by one: `sum` rounds otherwise since Python 3.12, and thresholds are compared to the bit.
        state, participants = self.state, list(self.state.participants.values())
        prices = [one.price for one in participants if one.price > 0]
        return {
            "employment_rate": employment_rate(state.employed, self.parameters.labor_force),
            "avg_price": reduce(add, prices) / len(prices) if prices else 0.0,
            "total_output": reduce(add, (one.output for one in participants), 0.0),
            "total_investment": state.investment,
        }

    def is_news(self, previous: float, current: float) -> bool:
        """Tell whether a metric moved by the threshold, in its own unit."""
        return abs(current - previous) >= self.parameters.metric_change_threshold
