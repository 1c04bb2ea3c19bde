"""Facts that a participant observes of the economy, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from mesa_llm_models.economy.world.state import Participant, Policy, Role, Value

MAX_OTHERS = 30
"""Maximum number of other participants shown: all governments, then those with the cheapest goods."""

CAPITAL_STEP = 1_000.0
"""Investment, in dollars, for which firms see the resulting gain in output per worker."""


@dataclass(frozen=True, slots=True)
class ParticipantView:
    """One participant, as others see it."""

    agent_id: int
    """Mesa `unique_id`, used as the payee's name."""

    role: Role
    """Whether it produces or governs."""

    price: float
    """Price of a good, in dollars; 0 if it sells nothing."""

    workforce: int
    """Number of people it employs."""


@dataclass(frozen=True, slots=True)
class EconomyFacts:
    """Everything one participant sees."""

    step: int
    """Number of completed steps."""

    metrics: Mapping[str, float]
    """Metrics by name, as of the end of the last step."""

    policies: tuple[Policy, ...]
    """Policies in force, oldest first."""

    variables: Mapping[str, Value]
    """Variables that policies have set, by name."""

    own: Participant
    """A copy of the participant's own account."""

    others: tuple[ParticipantView, ...] = ()
    """Other participants, at most `MAX_OTHERS`; none under the original rules."""

    more_others: int = 0
    """Number of other participants not in `others`."""

    wage: float = 0.0
    """Wage of a worker in one step, in dollars; 0 under the original rules."""

    goods_per_worker: float = 0.0
    """Goods one of its workers produces in a step; 0 under the original rules."""

    goods_per_worker_after: float = 0.0
    """The same after investing another `CAPITAL_STEP` dollars."""

    tax_rate: float = 0.0
    """Tax on sales, as a share of the price."""

    unemployed: int = 0
    """Number of people who can be hired."""

    purse: float = 0.0
    """Dollars of all households together."""

    spending: float = 0.0
    """Dollars that households will spend in this step if all workers keep their work and are paid."""

    sold: float = 0.0
    """Goods that all firms together sold in the last step."""

    unit_cost: float = 0.0
    """Dollars that a good costs it to make, tax on its sale apart."""

    @property
    def payroll(self) -> float:
        """Dollars that its workers cost in a step."""
        return self.wage * self.own.workforce

    @property
    def steps_paid(self) -> int | None:
        """Number of steps for which its balance pays its workers; None if they cost nothing."""
        return int(self.own.balance // self.payroll) if self.payroll > 0 else None

    @property
    def even_price(self) -> float | None:
        """Lowest price at which a good costs it no more than it brings in, in dollars; None under a tax of 100 %."""
        return self.unit_cost / (1 - self.tax_rate) if self.tax_rate < 1 else None

    @property
    def supply(self) -> float:
        """Goods that it can sell at the end of this step with its present workers."""
        return self.own.stock + self.own.workforce * self.goods_per_worker


class Notables:
    """The participants visible to all others: governments, then sellers, cheapest first, then the rest."""

    def __init__(self, participants: Iterable[Participant] = ()) -> None:
        """Choose one more than the maximum, since participants are not shown themselves.

        Args:
            participants: All participants, in order of entry.
        """
        ranked = nsmallest(MAX_OTHERS + 1, enumerate(participants), key=_rank)
        self.lowest = ranked[-1][1].agent_id if ranked else 0
        self.chosen = {
            participant.agent_id: participant for _, participant in sorted(ranked, key=lambda entry: entry[0])
        }

    @property
    def has_room(self) -> bool:
        """Whether one more can be shown."""
        return len(self.chosen) <= MAX_OTHERS

    def add(self, participant: Participant) -> None:
        """Add a participant that has just entered."""
        self.chosen[participant.agent_id] = participant
        self.lowest = participant.agent_id

    def others_of(self, agent_id: int) -> list[Participant]:
        """Return the others that a participant sees, in order of entry."""
        left_out = agent_id if agent_id in self.chosen else self.lowest
        return [participant for key, participant in self.chosen.items() if key != left_out]


def _rank(entry: tuple[int, Participant]) -> tuple[bool, bool, float]:
    participant = entry[1]
    return participant.role != "government", participant.price <= 0, participant.price
