"""What the town is about: its question, what everybody knows, and what can be bet on."""

from __future__ import annotations

from mesa_llm.text import quoted

GOAL = "Will the new market hall do the town good?"
"""The town's question, unless another is given."""

SEED_TEXT = (
    "The council wants to build a covered market hall on the square. Some look forward to it, others fear for the "
    "square and for the town's purse."
)
"""What everybody knows, unless another text is given."""


def work_question(share: float, last_step: int) -> str:
    """Ask whether more than a share of people will have work."""
    return f"Will more than {share:.0%} of people have work after step {last_step}?"


def price_question(price: float, last_step: int) -> str:
    """Ask whether goods will cost more than some dollars."""
    return f"Will goods cost more than ${price:g} on average after step {last_step}?"


def opinion_question(goal: str, last_step: int) -> str:
    """Ask whether people will lean towards yes on the town's question."""
    return f"Opinion after step {last_step}: will people lean towards yes on {quoted(goal, 200)}?"
