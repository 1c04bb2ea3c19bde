"""What traders read besides the markets, and what rule twins write."""

from __future__ import annotations

from collections.abc import Mapping

REMARKS = (
    "I would put {side} at {percent} percent.",
    "From what I know, {percent} percent for {side} is nearer the mark.",
    "Who is betting against {side} here? My number is {percent} percent.",
)
"""Remarks of the rule twin on a question."""


def research_text(hints: Mapping[str, float]) -> str:
    """Write a trader's private research.

    Args:
        hints: Id of an open market → probability of yes.
    """
    lines = [f"[{market_id}] {probability:.0%} for yes" for market_id, probability in hints.items()]
    return "\n".join(["Your own research says:", *lines])
