"""What other worlds hear of the exchange."""

from __future__ import annotations

from mesa_llm.records import Event
from mesa_llm.worlds.exchange.history import Close
from mesa_llm.worlds.exchange.insolvency import Liquidation
from mesa_llm.worlds.exchange.lending import Policy

Happening = Close | Liquidation | Policy
"""What the end of a stage can bring."""


def tell(source: str, happening: Happening) -> Event:
    """Tell of a price move, a forced sale, a bankruptcy or a policy; `time` is the day."""
    match happening:
        case Close():
            change = happening.price / happening.before - 1
            facts = {**happening._asdict(), "change": change}
            text = f"Stock {happening.stock} went from {happening.before} to {happening.price} ({change:+.2%})."
            return Event(source, "price_move", facts, text, happening.day)
        case Liquidation():
            kind = "bankruptcy" if happening.has_left else "forced_sale"
            did = "is insolvent and has left" if happening.has_left else "had to sell shares to pay its debts"
            text = f"Trader {happening.trader} {did}."
            return Event(source, kind, happening._asdict(), text, happening.day)
        case Policy():
            facts = {"day": happening.day, "rates": list(happening.rates)}
            return Event(source, "policy_change", facts, happening.text, happening.day)
