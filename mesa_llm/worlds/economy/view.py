"""What a participant sees of the economy: as values, and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from mesa_llm.text import MAX_NAME, one_line, quoted
from mesa_llm.worlds.economy.state import Participant, Policy, Role, Value

OTHERS_SHOWN = 30
"""Other participants that are shown at most: all governments, then those whose goods are cheapest."""

CAPITAL_STEP = 1_000.0
"""Dollars of investment whose return firms are shown."""

PLAIN = (1e-9, 1e15)
"""Numbers from here to there are written without powers of ten."""

RULES_TEXT = (
    "You take part in an economy. Producers employ people, pay them a wage every step out of their balance, "
    "and make goods: more with more workers, and with more capital, which they buy by investing. Households "
    "spend most of what they have on the cheapest goods first; a producer with a price of 0 sells nothing. "
    "Whoever cannot pay a step's wages loses the workers it cannot pay. A government is paid the tax on "
    "sales, may hand money out, and enacts policies. A policy can set any variable; two have a direct effect: "
    "tax_rate, the share of every sale that is taken as tax (0 to 1), and minimum_wage, in dollars a step."
)
"""What every participant is told, under the corrected rules."""

ORIGINAL_RULES_TEXT = (
    "You take part in an economy. Set a price, hire or let workers go, invest out of your balance, allocate "
    "money, or enact policies; metrics are measured at the end of every step."
)
"""What every participant is told, under the original rules."""


@dataclass(frozen=True, slots=True)
class ParticipantView:
    """One participant, as others see it."""

    actor: int
    """Mesa `unique_id`; what a payment names it by."""

    role: Role
    """What it does."""

    price: float
    """Dollars it asks for a good; 0: it sells nothing."""

    workforce: int
    """People it employs."""


@dataclass(frozen=True, slots=True)
class EconomyFacts:
    """All that one participant sees, as values."""

    step: int
    """Steps that have ended."""

    metrics: Mapping[str, float]
    """As measured at the end of the last step, by name."""

    policies: tuple[Policy, ...]
    """In force, oldest first."""

    variables: Mapping[str, Value]
    """What policies have set, by name."""

    own: Participant
    """A copy of the participant's own account."""

    others: tuple[ParticipantView, ...] = ()
    """The other participants, `OTHERS_SHOWN` at most; none are shown under the original rules."""

    more_others: int = 0
    """Other participants who are not among those shown."""

    wage: float = 0.0
    """Dollars a worker costs in a step."""

    goods_per_worker: float = 0.0
    """Goods that one of the participant's workers makes in a step; not shown under the original rules."""

    goods_per_worker_after: float = 0.0
    """The same after investing another `CAPITAL_STEP` dollars."""

    tax_rate: float = 0.0
    """Share of every sale that is taken as tax."""

    unemployed: int = 0
    """People who can be hired."""

    purse: float = 0.0
    """Dollars of all households together."""


class Notables:
    """Those whom everybody is shown: governments, then those who sell, cheapest first, then the rest."""

    def __init__(self, participants: Iterable[Participant] = ()) -> None:
        """Choose one more than are shown, since nobody is shown to itself.

        Args:
            participants: All, in the order in which they entered.
        """
        ranked = nsmallest(OTHERS_SHOWN + 1, enumerate(participants), key=_rank)
        self.least = ranked[-1][1].actor if ranked else 0
        self.chosen = {one.actor: one for _, one in sorted(ranked, key=lambda placed: placed[0])}

    @property
    def has_room(self) -> bool:
        """Tell whether one more can be shown."""
        return len(self.chosen) <= OTHERS_SHOWN

    def add(self, one: Participant) -> None:
        """Show one more, who has just entered."""
        self.chosen[one.actor] = one
        self.least = one.actor

    def seen_by(self, actor: int) -> list[Participant]:
        """Give the others whom a participant is shown, in the order in which they entered."""
        left_out = actor if actor in self.chosen else self.least
        return [one for number, one in self.chosen.items() if number != left_out]


def _rank(placed: tuple[int, Participant]) -> tuple[bool, bool, float]:
    one = placed[1]
    return one.role != "government", one.price <= 0, one.price


def write_corrected(facts: EconomyFacts, names: Mapping[int, str]) -> str:
    """Write what a participant sees under the corrected rules.

    Args:
        facts: What it sees.
        names: What to call the others, by id.
    """
    measured, own = facts.metrics, facts.own
    lines = [
        f"After {facts.step} steps, {measured['employment_rate']:.1%} of people have work and "
        f"{facts.unemployed} are free to hire. Goods cost ${measured['avg_price']:.2f} on average; "
        f"{measured['total_output']:.1f} were made in the last step. ${measured['total_investment']:.2f} "
        f"have been invested so far. Households have ${facts.purse:.2f}.",
        *(f"Policy {quoted(policy.name)}: {quoted(policy.description)}" for policy in facts.policies),
        *(f"{name} = {value_text(value)}" for name, value in facts.variables.items()),
    ]
    for other in facts.others:
        called = f" {one_line(names[other.actor], MAX_NAME)}" if other.actor in names else ""
        asks = f"asks ${other.price:.2f} a good and " if other.price > 0 else ""
        does = f": {asks}employs {other.workforce}" if other.role == "producer" else ""
        lines.append(f"[{other.actor}]{called}, {other.role}{does}.")
    if facts.more_others:
        lines.append(f"Listed are governments and the cheapest; there are {facts.more_others} more.")
    lines.append(f"You are [{own.actor}], a {own.role}, with a balance of ${own.balance:.2f}.")
    if own.role == "producer":
        lines.append(
            f"You employ {own.workforce} people; a worker costs ${facts.wage:.2f} a step. Your capital is "
            f"${own.capital:.2f}: with it a worker makes {plain(facts.goods_per_worker)} goods a step, and with "
            f"${CAPITAL_STEP:,.0f} more would make {plain(facts.goods_per_worker_after)}. Your price is "
            f"${own.price:.2f}. In the last step you made {own.output:.1f} goods and took ${own.sales:.2f} "
            f"before {facts.tax_rate:.0%} tax; {own.stock:.1f} goods are unsold."
        )
    return "\n".join(lines)


def value_text(value: Value) -> str:
    """Write what a policy set a variable to: a number as it is, a text as a quotation."""
    return quoted(value) if isinstance(value, str) else str(value)


def plain(number: float) -> str:
    """Write a number as people do: whole from 1,000 up, else with four digits that count; 15,520 or 0.0423."""
    if number == 0:
        return "0"
    if not PLAIN[0] <= abs(number) < PLAIN[1]:
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
