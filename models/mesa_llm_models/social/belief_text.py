"""Texts in which agents read their own beliefs."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.text import quoted

POSITION_BANDS = (
    (0.6, "strongly supportive"),
    (0.2, "leaning supportive"),
    (-0.2, "undecided"),
    (-0.6, "leaning opposed"),
)
"""Lower bounds of positions, and their descriptions."""

CONFIDENCE_BANDS = ((0.75, "firmly held"), (0.45, "moderate"), (0.2, "tentative"))
"""Lower bounds of confidence, and their descriptions."""


def position_band(position: float) -> str:
    """Describe a position."""
    return next((band for floor, band in POSITION_BANDS[:2] if position >= floor), _lower_band(position))


def _lower_band(position: float) -> str:
    """Describe a position below the supportive bands. A band's lower bound belongs to the band below."""
    return next((band for floor, band in POSITION_BANDS[2:] if position > floor), "strongly opposed")


def confidence_band(confidence: float) -> str:
    """Describe a confidence."""
    return next((band for floor, band in CONFIDENCE_BANDS if confidence >= floor), "uncertain")


def convictions_text(positions: Mapping[str, float], confidence: Mapping[str, float], default: float) -> str:
    """Write an agent's beliefs, one line per topic; empty if it has none.

    Args:
        positions: Topic → position, from -1 to 1.
        confidence: Topic → confidence, from 0 to 1.
        default: Confidence on other topics.
    """
    lines = [
        f"On {quoted(topic)} you are {position_band(position)}; your view is "
        f"{confidence_band(confidence.get(topic, default))}."
        for topic, position in positions.items()
    ]
    return "\n".join(lines)
