"""Firms and the government, and their rule twins: rules of thumb."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

from mesa_llm import LLMAgent, Mind, Observation, ToolCall
from mesa_llm_models.economy.world import EconomyFacts, Participant, Role

MARKUP = (1.1, 1.5)
"""Range of a new firm's price, as a multiple of its cost."""

PRICE_CHANGE = 0.05
"""Relative change of a price."""

RESERVE_STEPS = 4
"""Number of steps whose wages a firm keeps before it invests."""

COUNTS = (1, 2, 5, 10, 20, 50, 100)
"""Numbers of people to hire or let go, for the random baseline and for models that cannot count."""

SHARES = (0.02, 0.05, 0.1, 0.2)
"""Shares of their balance that they can pay or invest."""

PRICES = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25)
"""Prices that they can ask, as multiples of their price, of the average price, or of the wage."""

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Tax rates that they can set."""


MAX_ACTIONS = 3
"""Maximum number of actions of one decision."""


class EconomyPlayer(LLMAgent):
    """A player, who runs a firm or governs.

    Attributes:
        role: Whether it produces or governs.
        payout: Share of a step's profit that the rule twin pays out to households.
        activity: Probability that the rule twin does anything when it is its turn.
    """

    def __init__(
        self, model: Any, role: Role = "producer", payout: float = 0.9, activity: float = 0.9, **components: Any
    ) -> None:
        """Create a participant.

        Args:
            model: The model.
            role: Whether it produces or governs.
            payout: Share of a step's profit that the rule twin pays out to households, where the owners live.
            activity: Probability that the rule twin does anything when it is its turn.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.role: Role = role
        self.payout = payout
        self.activity = activity
        model.world.enter(self.unique_id, role)

    def observe(self) -> Observation:
        """Look at the economy and at its own account."""
        return with_offers(self, replace(super().observe(), max_actions=MAX_ACTIONS))

    @property
    def account(self) -> Participant:
        """Its account."""
        return self.model.world.enter(self.unique_id)

    @property
    def balance(self) -> float:
        """Its balance, in dollars."""
        return self.account.balance

    @property
    def workforce(self) -> int:
        """Number of people it employs."""
        return self.account.workforce

    @property
    def price(self) -> float:
        """Its price of a good, in dollars."""
        return self.account.price

    def rule(self, seen: Observation) -> list[ToolCall]:
        """Produce or govern by rules of thumb."""
        if self.random.random() >= self.activity:
            return [ToolCall("do_nothing")]
        return govern(seen.facts) if self.role == "government" else produce(seen.facts, self.random, self.payout)


def produce(facts: EconomyFacts, rng: Random, payout: float) -> list[ToolCall]:
    """Choose a firm's actions: price and hire by unsold goods; invest while goods sell out, else pay out profits.

    Args:
        facts: Its observation.
        rng: Source of random draws.
        payout: Share of a step's profit that is paid out, 0 to 1.

    Returns:
        One to three actions.
    """
    actions = _investing(facts) or _paying_out(facts, payout)
    return [*_pricing(facts, rng), *_staffing(facts, rng), *actions] or [ToolCall("do_nothing")]


def unit_cost(facts: EconomyFacts) -> float:
    """Compute the cost of a good, in dollars: the wage over the goods of a worker, plus the tax on its sale."""
    return facts.wage / (facts.goods_per_worker or 1.0) / max(1 - facts.tax_rate, 0.05)


def _pricing(facts: EconomyFacts, rng: Random) -> list[ToolCall]:
    """Price with a markup at first; then higher when sold out, lower when goods pile up, but never below cost."""
    own, cost = facts.own, unit_cost(facts)
    if own.price <= 0:
        price = (cost or 10.0) * rng.uniform(*MARKUP)
    elif is_sold_out(own):
        price = own.price * (1 + PRICE_CHANGE)
    elif own.stock > own.output > 0:
        price = max(own.price * (1 - PRICE_CHANGE), cost)
    else:
        price = max(own.price, cost)
    price = round(price, 2)
    return [] if price == round(own.price, 2) else [ToolCall("set_price", {"price": price})]


def is_sold_out(own: Participant) -> bool:
    """Check whether a firm sold nearly all of its goods."""
    return own.output > 0 and own.stock < 0.05 * own.output


def _staffing(facts: EconomyFacts, rng: Random) -> list[ToolCall]:
    """Hire a few to begin with, a tenth more when sold out, and lay off a tenth when goods pile up."""
    own, wage = facts.own, facts.wage
    if not wage:  # the original rules: hiring is free, and firms see the employment rate only
        is_needed = facts.metrics["employment_rate"] < 0.95
        return [ToolCall("hire", {"count": rng.randint(5, 20)})] if is_needed else []
    if own.workforce and own.stock > 2 * own.output:
        return [ToolCall("fire", {"count": max(1, own.workforce // 10)})]
    if own.workforce and not is_sold_out(own):
        return []
    target = max(2, own.workforce // 10) if own.workforce else rng.randint(20, 60)
    payable = int(own.balance / (RESERVE_STEPS * wage)) - own.workforce
    count = min(target, facts.unemployed, payable)
    return [ToolCall("hire", {"count": count})] if count >= 1 else []


def _investing(facts: EconomyFacts) -> list[ToolCall]:
    """Invest a tenth of the money beyond the reserve for wages, while goods sell out."""
    own = facts.own
    spare = own.balance - RESERVE_STEPS * facts.wage * own.workforce
    if not facts.wage or spare < 100 or not is_sold_out(own):
        return []
    return [ToolCall("invest", {"amount": round(spare / 10, 2)})]


def _paying_out(facts: EconomyFacts, payout: float) -> list[ToolCall]:
    """Pay a share of the last step's profit to households."""
    own = facts.own
    profit = own.sales * (1 - facts.tax_rate) - facts.wage * own.workforce
    dollars = round(payout * min(profit, own.balance), 2)
    return [ToolCall("allocate", {"target": "households", "amount": dollars})] if dollars >= 1 else []


def govern(facts: EconomyFacts) -> list[ToolCall]:
    """Choose a government's actions: a tax of a tenth at first, less while unemployment is high, and transfers."""
    own, employment = facts.own, facts.metrics["employment_rate"]
    actions: list[ToolCall] = []
    rate = facts.tax_rate
    if not facts.policies:
        actions.append(tax(0.1))
    elif facts.step % 5 == 0 and employment < 0.5 and rate >= 0.05:
        actions.append(tax(rate - 0.05))
    elif facts.step % 5 == 0 and employment > 0.9 and rate <= 0.25:
        actions.append(tax(rate + 0.05))
    if own.balance >= 100:
        actions.append(ToolCall("allocate", {"target": "households", "amount": round(own.balance / 2, 2)}))
    return actions or [ToolCall("do_nothing")]


def tax(rate: float) -> ToolCall:
    """Return the action that enacts a tax on sales.

    Args:
        rate: Share of every sale, 0 to 1.
    """
    text = f"{rate:.0%} of every sale goes to the government."
    return ToolCall(
        "apply_policy",
        {"policy_name": "sales tax", "description": text, "variable": "tax_rate", "value": round(rate, 2)},
    )


def with_offers(player: Mind, seen: Observation) -> Observation:
    """Restrict models that cannot count to round figures.

    Args:
        player: The participant.
        seen: Its observation of the economy.
    """
    if not player.opened.capabilities.needs_options:
        return seen
    return replace(seen, options={**offers(seen.facts), **seen.options})


def offers(facts: EconomyFacts) -> dict[str, tuple[Any, ...]]:
    """Return round figures to choose from, and a payee if no others are shown, by name of the argument."""
    own = facts.own
    base = own.price or facts.metrics["avg_price"] or facts.wage or 10.0
    payable = tuple(round(own.balance * share, 2) for share in SHARES if own.balance * share >= 0.01)
    n_payable = math.floor(own.balance / facts.wage) if facts.wage else COUNTS[-1]
    n_hired = min(facts.unemployed, n_payable - own.workforce) if facts.wage else COUNTS[-1]
    return {
        "price": tuple(round(base * part, 2) for part in PRICES),
        "hire.count": tuple(count for count in COUNTS if count <= n_hired),
        "fire.count": tuple(count for count in COUNTS if count <= own.workforce or not facts.wage),
        "target": ("households",),
        "variable": ("tax_rate",),
        "value": RATES,
        **({"amount": payable} if payable else {}),
    }
