"""What the town bets on: measures of its own worlds, and whether they will be above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

from mesa_llm.text import quoted
from models.market.questions import expit


@dataclass(frozen=True, slots=True)
class Claim:
    """A question whose answer is measured in the town itself."""

    measure: str
    """What is measured: `employment_rate`, `avg_price` (both in the economy) or `opinion` (what people think)."""

    threshold: float
    """Yes if the measure is above it at the end, in the unit of the measure."""

    scale: float
    """How far from the threshold a measure has to be now for odds of e to 1, in its unit."""

    text: str
    """The question."""

    def chance(self, value: float) -> float:
        """Guess the probability of yes from what the measure is now.

        Args:
            value: The measure, in its unit.
        """
        return expit((value - self.threshold) / self.scale)


def claims(goal: str, last: int, work: float, price: float) -> tuple[Claim, ...]:
    """Write the questions of a town.

    Args:
        goal: The question on everybody's mind.
        last: Step at whose end the measures count.
        work: Employment rate to be above.
        price: Average price of goods to be above, in dollars.
    """
    return (
        Claim("employment_rate", work, 0.1, f"Will more than {work:.0%} of people have work after step {last}?"),
        Claim("avg_price", price, 2.0, f"Will goods cost more than ${price:g} on average after step {last}?"),
        Claim("opinion", 0.0, 0.15, f"Opinion after step {last}: will people lean towards yes on {quoted(goal, 200)}?"),
    )
