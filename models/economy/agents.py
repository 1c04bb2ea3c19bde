"""Firms and the government, and the rules of thumb of their rule twins."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from mesa_llm import LLMAgent, Mind, Observation, ToolCall
from mesa_llm.worlds.economy import EconomyFacts, Participant
from mesa_llm.worlds.economy.state import Role

MARKUP = (1.1, 1.5)
"""Range of a new firm's price over its cost."""

PRICE_CHANGE = 0.05
"""Part by which a firm changes its price."""

RESERVE_STEPS = 4
"""Steps of wages that a firm keeps before it invests."""

COUNTS = (1, 2, 5, 10, 20, 50, 100)
"""People that can be hired or let go, for those who draw or pick from what is offered."""

SHARES = (0.02, 0.05, 0.1, 0.2)
"""Shares of one's balance that they can pay or invest."""

PRICES = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25)
"""Prices that they can ask, over the present one (or the average, or the wage)."""

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Tax rates that they can set."""


class Player(LLMAgent):
    """Somebody who runs a firm, or governs.

    Attributes:
        role: `producer` or `government`.
        payout: Share of a step's profit that the rule twin pays out to households.
        activity: Probability that the rule twin does anything when it is its turn.
    """

    def __init__(
        self, model: Any, role: Role = "producer", payout: float = 0.9, activity: float = 0.9, **components: Any
    ) -> None:
        """Let somebody enter the economy.

        Args:
            model: The model.
            role: What it does.
            payout: Share of a step's profit that the rule twin pays out to households: the owners live there too.
            activity: Probability that the rule twin does anything when it is its turn.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.role: Role = role
        self.payout = payout
        self.activity = activity
        model.world.enter(self.unique_id, role)

    def observe(self) -> Observation:
        """Look at the economy and at one's own books."""
        seen = super().observe()
        seen = replace(seen, rules=f"{self.model.rules}\n\n{seen.rules}", max_actions=MOST_ACTIONS)
        return with_offers(self, seen)

    @property
    def account(self) -> Participant:
        """Its books."""
        return self.model.world.enter(self.unique_id)

    @property
    def balance(self) -> float:
        """Dollars it has."""
        return self.account.balance

    @property
    def workforce(self) -> int:
        """People it employs."""
        return self.account.workforce

    @property
    def price(self) -> float:
        """Dollars it asks for a good."""
        return self.account.price

    def rule(self, seen: Observation) -> list[ToolCall]:
        """Run the firm, or govern, by rules of thumb."""
        if self.random.random() >= self.activity:
            return [ToolCall("do_nothing")]
        return govern(seen.facts) if self.role == "government" else produce(seen.facts, self.random, self.payout)


MOST_ACTIONS = 3
"""Actions that one decision may hold."""


def produce(facts: EconomyFacts, rng: Random, payout: float) -> list[ToolCall]:
    """Run a firm: price and hire by what is left unsold; invest while goods sell out, else pay profits out.

    Args:
        facts: What its owner sees.
        rng: Source of draws.
        payout: Share of a step's profit that is paid out, 0 to 1.

    Returns:
        From one to three actions.
    """
    spent = _investing(facts) or _paying_out(facts, payout)
    return [*_pricing(facts, rng), *_staffing(facts, rng), *spent] or [ToolCall("do_nothing")]


def unit_cost(facts: EconomyFacts) -> float:
    """Compute what a good costs a firm: the wage, over what a worker makes, and the tax on its sale."""
    return facts.wage / (facts.goods_per_worker or 1.0) / max(1 - facts.tax_rate, 0.05)


def _pricing(facts: EconomyFacts, rng: Random) -> list[ToolCall]:
    """Ask a markup at first; then more when sold out, less when goods pile up, never less than they cost."""
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
    """Tell whether a firm sold nearly all it had."""
    return own.output > 0 and own.stock < 0.05 * own.output


def _staffing(facts: EconomyFacts, rng: Random) -> list[ToolCall]:
    """Hire a few to begin with, a tenth more when sold out, and let a tenth go when goods pile up."""
    own, wage = facts.own, facts.wage
    if not wage:  # the original rules: hiring is free, and all that is shown is how many have work
        is_needed = facts.metrics["employment_rate"] < 0.95
        return [ToolCall("hire", {"count": rng.randint(5, 20)})] if is_needed else []
    if own.workforce and own.stock > 2 * own.output:
        return [ToolCall("fire", {"count": max(1, own.workforce // 10)})]
    if own.workforce and not is_sold_out(own):
        return []
    wanted = max(2, own.workforce // 10) if own.workforce else rng.randint(20, 60)
    payable = int(own.balance / (RESERVE_STEPS * wage)) - own.workforce
    count = min(wanted, facts.unemployed, payable)
    return [ToolCall("hire", {"count": count})] if count >= 1 else []


def _investing(facts: EconomyFacts) -> list[ToolCall]:
    """Invest a tenth of what several steps of wages leave over, while goods sell out."""
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
    """Govern: a tax of a tenth at first, less of it while many are without work, and transfers to households."""
    own, employment = facts.own, facts.metrics["employment_rate"]
    done: list[ToolCall] = []
    rate = facts.tax_rate
    if not facts.policies:
        done.append(tax(0.1))
    elif facts.step % 5 == 0 and employment < 0.5 and rate >= 0.05:
        done.append(tax(rate - 0.05))
    elif facts.step % 5 == 0 and employment > 0.9 and rate <= 0.25:
        done.append(tax(rate + 0.05))
    if own.balance >= 100:
        done.append(ToolCall("allocate", {"target": "households", "amount": round(own.balance / 2, 2)}))
    return done or [ToolCall("do_nothing")]


def tax(rate: float) -> ToolCall:
    """Enact a tax on sales.

    Args:
        rate: Share of every sale, 0 to 1.
    """
    text = f"{rate:.0%} of every sale go to the government."
    return ToolCall(
        "apply_policy",
        {"policy_name": "sales tax", "description": text, "variable": "tax_rate", "value": round(rate, 2)},
    )


def with_offers(player: Mind, seen: Observation) -> Observation:
    """Hold those who cannot count to round figures.

    Args:
        player: Who looks.
        seen: What it sees of the economy.
    """
    if not player.opened.capabilities.needs_options:
        return seen
    return replace(seen, options={**offers(seen.facts), **seen.options})


def offers(facts: EconomyFacts) -> dict[str, tuple[Any, ...]]:
    """Give round figures to choose from; and a payee, where nobody is shown."""
    own = facts.own
    base = own.price or facts.metrics["avg_price"] or facts.wage or 10.0
    payable = tuple(round(own.balance * share, 2) for share in SHARES if own.balance * share >= 0.01)
    return {
        "price": tuple(round(base * part, 2) for part in PRICES),
        "count": COUNTS,
        "target": ("households",),
        "variable": ("tax_rate",),
        "value": RATES,
        **({"amount": payable} if payable else {}),
    }
