"""What fishers read of the lake and in the town meeting, and what rule twins say there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

NAMES = ("Ada", "Bruno", "Clara", "Dario", "Elin", "Farid", "Greta", "Hugo", "Ines", "Jonas")
"""Names of the fishers."""


def observation_text(month: int, stock: int, catches: Sequence[int]) -> str:
    """Write what a fisher sees at the beginning of a month: the stock and its own catches, in tons."""
    last = f" Last month you caught {catches[-1]}, in all {sum(catches)}." if catches else ""
    return f"It is month {month}. There are {stock} tons of fish in the lake.{last}"


def trip_text(tons: int) -> str:
    """Report a decision."""
    return f"You set out to catch {tons} tons."


def meeting_text(month: int, left: int, catches: Mapping[str, int]) -> str:
    """Open the town meeting of a month with everybody's catch (name → tons), and the tons left in the lake."""
    caught = ", ".join(f"{name} {tons}" for name, tons in catches.items())
    return f"Town meeting after month {month}. Tons caught: {caught}. Left in the lake: {left} tons."


def proposal_text(tons: int) -> str:
    """Propose a catch for each in the coming month."""
    return f"If each of us catches no more than {tons} tons, there will be as much fish again afterwards."


def proposed_tons(text: str) -> int | None:
    """Read a proposal in what somebody says: the last number of tons; None if there is none."""
    found = re.findall(r"\b(\d{1,3}) tons?\b", text)
    return int(found[-1]) if found else None
