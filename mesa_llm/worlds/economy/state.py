"""What an economy of producers and governments consists of: participants, policies, parameters, metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.amounts import is_number, is_whole

Rules = Literal["original", "corrected"]
"""Which rules hold: SimSwarm's, or those with its defects mended that `mesa_llm.worlds.economy` lists."""

Role = Literal["producer", "government"]

Value = float | str
"""What a policy sets a variable to."""

METRICS = ("employment_rate", "avg_price", "total_output", "total_investment")
"""What is measured at the end of a step, in the order shown."""

TAX_RATE = "tax_rate"
"""Name of the variable that taxes sales, as a share of the price."""

MINIMUM_WAGE = "minimum_wage"
"""Name of the variable below which no wage may lie, in dollars a step."""


@dataclass(frozen=True, slots=True)
class EconomyParameters:
    """Parameters of an economy; the original rules read only the first two."""

    labor_force: int = 1000
    """People who can work."""

    metric_change_threshold: float = 0.05
    """Change of a metric that is told as an event: relative to its value before, or in its own unit under the
    original rules."""

    starting_balance: float = 10_000.0
    """Dollars a participant starts with; 0 under the original rules."""

    starting_purse: float = 10_000.0
    """Dollars all households together start with."""

    wage: float = 10.0
    """Dollars a worker earns in a step."""

    productivity: float = 1.0
    """Goods a worker makes in a step without capital."""

    capital_scale: float = 10_000.0
    """Dollars of capital that a firm's productivity is measured against."""

    capital_share: float = 0.3
    """Elasticity of productivity: it grows with (1 + capital / scale) to this power."""

    spending_share: float = 0.9
    """Share of their purse that households spend in a step, as far as there are goods."""

    def __post_init__(self) -> None:
        """Check what the corrected rules divide by and count with."""
        amounts = (
            self.starting_balance,
            self.starting_purse,
            self.wage,
            self.productivity,
            self.capital_share,
        )
        if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
            raise ConfigError(f"balances, wage, productivity and capital share must be 0 or more, got {amounts}")
        if not (self.capital_scale > 0 and 0 <= self.spending_share <= 1):
            raise ConfigError(
                f"capital_scale must be positive and spending_share in 0..1, got {self.capital_scale!r} and "
                f"{self.spending_share!r}"
            )

    def check_counts(self) -> None:
        """Check what SimSwarm takes however it is.

        Raises:
            ConfigError: If the labour force is no whole number, or the threshold no number, from 0 on.
        """
        if not (is_whole(self.labor_force) and self.labor_force >= 0):
            raise ConfigError(f"labor_force must be a whole number from 0 on, got {self.labor_force!r}")
        if not (is_number(self.metric_change_threshold) and self.metric_change_threshold >= 0):
            raise ConfigError(
                f"metric_change_threshold must be a number from 0 on, got {self.metric_change_threshold!r}"
            )


@dataclass(slots=True)
class Participant:
    """One agent in the economy."""

    actor: int
    """Mesa `unique_id`."""

    role: Role
    """What it does: produce, or govern."""

    balance: float
    """Dollars it has."""

    workforce: int = 0
    """People it employs."""

    price: float = 0.0
    """Dollars it asks for a good; 0: it sells nothing."""

    output: float = 0.0
    """Goods made in the last step; under the original rules the dollars ever invested."""

    capital: float = 0.0
    """Dollars invested so far."""

    stock: float = 0.0
    """Goods unsold."""

    sales: float = 0.0
    """Dollars taken in the last step, before tax."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy in force."""

    name: str
    """What it is called."""

    description: str
    """What it says."""

    enacted_by: int
    """Mesa `unique_id` of who enacted it."""

    step: int
    """Step in which it was enacted, from 0."""

    variable: str | None = None
    """Variable that it set, if any."""

    value: Value | None = None
    """What it set the variable to."""

    previous: Value | None = None
    """What the variable was before, if it was set."""


@dataclass(slots=True)
class EconomyState:
    """Everything that changes."""

    purse: float
    """Dollars of all households together."""

    participants: dict[int, Participant] = field(default_factory=dict[int, Participant])
    """By id, in the order of their first contact."""

    policies: list[Policy] = field(default_factory=list[Policy])
    """Policies in force, oldest first."""

    variables: dict[str, Value] = field(default_factory=dict[str, Value])
    """What policies have set, by name."""

    metrics: dict[str, float] = field(default_factory=lambda: dict.fromkeys(METRICS, 0.0))
    """As measured at the end of the last step."""

    investment: float = 0.0
    """Dollars ever invested by anyone."""

    step: int = 0
    """Steps that have ended."""

    employed: int = 0
    """People employed by anyone; `employ` keeps count."""

    n_governments: int = 0
    """Participants who govern."""

    def employ(self, one: Participant, count: int) -> None:
        """Let somebody employ more people, or fewer.

        Args:
            one: The employer.
            count: How many more; negative: how many fewer.
        """
        one.workforce += count
        self.employed += count

    @property
    def money(self) -> float:
        """All money, in dollars."""
        return self.purse + sum(one.balance for one in self.participants.values())


def employment_rate(employed: float, labor_force: float) -> float:
    """Give the share of the labour force at work, at most 1; 0 without a labour force."""
    return min(employed / labor_force, 1.0) if labor_force > 0 else 0.0
