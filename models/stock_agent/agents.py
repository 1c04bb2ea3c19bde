"""The traders, their rule twin, and the menu that chance chooses from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

from mesa_llm import AgentConfig, LLMAgent, Observation, Settings, ToolCall
from mesa_llm.records import Decision, Failure, Outcome
from mesa_llm.worlds.exchange import STOCKS, STYLES, Endowment, Side, Stock, TraderFacts
from models.stock_agent.strategies import Strategy

PROMPTS = resources.files("models.stock_agent").joinpath("prompts")

RULES = PROMPTS.joinpath("rules.md").read_text(encoding="utf-8").strip()
"""What every trader is told before the rules of the exchange."""

PERSONAS = {style: PROMPTS.joinpath(f"{style.lower()}.md").read_text(encoding="utf-8").strip() for style in STYLES}
"""Style of investing → who a trader is."""

SETTINGS = Settings(temperature=1.0, max_tokens=2000)
"""How traders' models are sampled; the temperature is that of both studies."""

MENU_PRICES = (0.95, 0.975, 1.0, 1.025, 1.05)
"""Prices on the menu, as multiples of the latest: few, as only equal prices trade."""

MENU_PARTS = 10
"""Into how many equal parts the menu divides what a trader can afford."""

MOST_READERS = 100
"""With more traders than these, those that think by rule are shown values only, no text."""


def config_of(endowment: Endowment) -> AgentConfig:
    """Say who a trader is: its number, and how it invests."""
    return AgentConfig(
        name=f"Trader {endowment.trader}",
        persona=PERSONAS[endowment.style],
        traits={"style of investing": endowment.style},
        settings=SETTINGS,
    )


class Trader(LLMAgent):
    """Somebody who trades on the exchange.

    Attributes:
        strategy: How its rule twin trades.
        last_order: Side and stock of the last order it placed; None before the first.
    """

    def __init__(self, model: Any, strategy: Strategy, **components: Any) -> None:
        """Place a trader.

        Args:
            model: The model.
            strategy: How its rule twin trades.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.strategy = strategy
        self.last_order: tuple[Side, Stock] | None = None

    def observe(self) -> Observation:
        """Look at prices, books and the own account; what all traders are told comes first."""
        if self.opened.llm is None and len(self.model.world.market.accounts) > MOST_READERS:
            return Observation(facts=self.model.world.facts(self.unique_id))
        seen = super().observe()
        seen = replace(seen, rules=f"{RULES}\n\n{seen.rules}")
        fees = self.model.world.trading.fees
        return (
            with_menu(seen, self._facts(seen), fees.most if fees else 0.0)
            if self.opened.capabilities.needs_options
            else seen
        )

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Do what was decided, and note which order was placed."""
        outcomes = super().act(decision, seen)
        for outcome in outcomes:
            if outcome.ok and outcome.action in ("buy", "sell"):
                self.last_order = (outcome.action, outcome.arguments["stock"])
        return outcomes

    # -- the rule twin

    def rule(self, seen: Observation) -> ToolCall | None:
        """Borrow nothing, trade by the strategy, expect to go on as before, and say what was done."""
        facts = self._facts(seen)
        match facts.now.stage:
            case "trade":
                return self.strategy.order(facts, self.random)
            case "estimate":
                plans = {f"{side}_{stock.lower()}": (side, stock) == self.last_order for side, stock in ORDERS}
                return ToolCall("estimate", {**plans, "take_loan": False})
            case "post":
                return ToolCall("post_message", {"text": self._remark()})
            case _:
                return None

    def _remark(self) -> str:
        if self.last_order is None:
            return "I have not traded yet."
        side, stock = self.last_order
        return f"I was on the side of those who {side} {stock}, and I expect to stay there."

    def _facts(self, seen: Observation) -> TraderFacts:
        return seen.facts[self.model.world.name] if isinstance(seen.facts, dict) else seen.facts

    # -- measures

    @property
    def account(self) -> Any:
        """What it owns and owes."""
        return self.model.world.market.accounts[self.unique_id]

    @property
    def cash(self) -> float:
        """Money."""
        return self.account.cash

    @property
    def shares_a(self) -> float:
        """Shares of A."""
        return self.account.shares["A"]

    @property
    def shares_b(self) -> float:
        """Shares of B."""
        return self.account.shares["B"]

    @property
    def profit(self) -> float:
        """Money that its property less its debts has grown by, at the latest prices."""
        return self.model.world.market.holding(self.account).profit


ORDERS: tuple[tuple[Side, Stock], ...] = (("buy", "A"), ("buy", "B"), ("sell", "A"), ("sell", "B"))
"""What a forecast is about."""


def with_menu(seen: Observation, facts: TraderFacts, fee: float = 0.0) -> Observation:
    """Hold a choice to orders and loans that can be honoured, for those who cannot count.

    In a session one of the two stocks is on the menu, the other one in the next session; traders with odd and even
    numbers alternate.

    Args:
        seen: What a trader sees.
        facts: The same, as values.
        fee: Most that a trade costs, in money.
    """
    if facts.now.stage == "loan":
        amounts = _parts(math.floor(facts.loan_limit))
        return replace(seen, options={**seen.options, "amount": tuple(map(float, amounts))})
    if facts.now.stage != "trade":
        return seen
    stock = STOCKS[(facts.trader + facts.now.day + facts.now.session) % len(STOCKS)]
    prices = sorted({max(0.01, round(part * facts.prices[stock], 2)) for part in MENU_PRICES})
    most = {"buy": int(max(facts.cash - fee, 0.0) / prices[-1]), "sell": int(facts.shares[stock])}
    sides = [side for side, quantity in most.items() if quantity > 0]
    quantities = _parts(min((most[side] for side in sides), default=0))
    menu: Mapping[str, tuple[Any, ...]] = {"stock": (stock,), "price": tuple(prices), "quantity": quantities}
    return replace(seen, tools=("do_nothing", "read_forum", *sides), options={**seen.options, **menu})


def _parts(whole: int) -> tuple[int, ...]:
    """Divide a number into equal parts, and give the sums of the first one, two, … of them."""
    return tuple(sorted({max(1, whole * part // MENU_PARTS) for part in range(1, MENU_PARTS + 1)} if whole > 0 else ()))
