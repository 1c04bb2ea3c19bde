"""State of an economy: participants, policies, parameters and metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from mesa_llm.errors import ConfigError
from mesa_llm.tools.validation import is_number, is_whole

Role = Literal["producer", "government"]
"""Role of a participant."""

Value = float | str
"""Value of a policy variable."""

METRICS = ("employment_rate", "avg_price", "total_output", "total_investment")
"""Names of the metrics measured at the end of a step, in display order."""

TAX_RATE = "tax_rate"
"""Name of the variable for the tax on sales, as a share of the price."""

MINIMUM_WAGE = "minimum_wage"
"""Name of the variable for the minimum wage, in dollars per step."""


@dataclass(frozen=True, slots=True)
class EconomyParameters:
    """Parameters of an economy. The original rules read only the first two."""

    labor_force: int = 1000
    """Number of people who can work."""

    metric_change_threshold: float = 0.05
    """Minimum change of a metric for an event: relative to its previous value, or in its own unit under the original
    rules.
    """

    starting_balance: float = 10_000.0
    """Dollars a participant starts with; 0 under the original rules."""

    starting_purse: float = 10_000.0
    """Dollars all households together start with."""

    wage: float = 10.0
    """Wage of a worker in one step, in dollars."""

    productivity: float = 1.0
    """Goods a worker without capital produces in a step."""

    capital_scale: float = 10_000.0
    """Reference capital for a firm's productivity, in dollars."""

    capital_share: float = 0.3
    """Elasticity of productivity, which grows with (1 + capital / scale) to this power."""

    spending_share: float = 0.9
    """Share of their purse that households spend in a step, if there are enough goods."""

    def __post_init__(self) -> None:
        """Check the parameters of the corrected rules."""
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
        """Check labour force and threshold, which SimSwarm does not.

        Raises:
            ConfigError: If the labour force is not an integer, or the threshold not a finite number, of at least 0.
        """
        if not (is_whole(self.labor_force) and self.labor_force >= 0):
            raise ConfigError(f"labor_force must be a whole number of 0 or more, got {self.labor_force!r}")
        if not (is_number(self.metric_change_threshold) and self.metric_change_threshold >= 0):
            raise ConfigError(
                f"metric_change_threshold must be a number of 0 or more, got {self.metric_change_threshold!r}"
            )


@dataclass(slots=True)
class Participant:
    """One agent in the economy."""

    agent_id: int
    """Mesa `unique_id`."""

    role: Role
    """Whether it produces or governs."""

    balance: float
    """Dollars it has."""

    workforce: int = 0
    """Number of people it employs."""

    price: float = 0.0
    """Price of a good, in dollars; 0 if it sells nothing."""

    output: float = 0.0
    """Goods produced in the last step; under the original rules, total dollars invested."""

    capital: float = 0.0
    """Dollars invested so far."""

    stock: float = 0.0
    """Goods unsold."""

    sales: float = 0.0
    """Revenue of the last step before tax, in dollars."""

    sold: float = 0.0
    """Goods sold in the last step; 0 under the original rules."""

    taxes: float = 0.0
    """Dollars of tax received in the last step; 0 under the original rules."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy in force."""

    name: str
    """Its name."""

    description: str
    """Its text."""

    enacted_by: int
    """Mesa `unique_id` of the participant that enacted it."""

    step: int
    """Step in which it was enacted, from 0."""

    variable: str | None = None
    """Variable it set, if any."""

    value: Value | None = None
    """Value of the variable."""

    previous: Value | None = None
    """Previous value of the variable, if it had one."""


@dataclass(slots=True)
class EconomyState:
    """Mutable state of an economy."""

    purse: float
    """Dollars of all households together."""

    participants: dict[int, Participant] = field(default_factory=dict[int, Participant])
    """Participants by id, in order of entry."""

    policies: list[Policy] = field(default_factory=list[Policy])
    """Policies in force, oldest first."""

    variables: dict[str, Value] = field(default_factory=dict[str, Value])
    """Policy variables by name."""

    metrics: dict[str, float] = field(default_factory=lambda: dict.fromkeys(METRICS, 0.0))
    """Metrics by name, as of the end of the last step."""

    investment: float = 0.0
    """Total dollars invested by all participants."""

    sold: float = 0.0
    """Goods sold by all participants in the last step."""

    step: int = 0
    """Number of completed steps."""

    employed: int = 0
    """Number of people employed, updated by `employ`."""

    n_governments: int = 0
    """Number of governments."""

    def employ(self, participant: Participant, count: int) -> None:
        """Change the workforce of a participant.

        Args:
            participant: The employer.
            count: Number of people hired; negative for layoffs.
        """
        participant.workforce += count
        self.employed += count

    @property
    def money(self) -> float:
        """All money, in dollars."""
        return self.purse + sum(participant.balance for participant in self.participants.values())


def employment_rate(employed: float, labor_force: float) -> float:
    """Compute the employed share of the labour force, at most 1; 0 without a labour force."""
    return min(employed / labor_force, 1.0) if labor_force > 0 else 0.0
