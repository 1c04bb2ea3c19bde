"""What people read of their opinion, and of the one they meet."""

from __future__ import annotations

TOPIC = "how much of the town centre should be closed to cars"
"""Topic of the opinions, unless another is given."""

KEPT = "You kept your opinion."
"""What came of keeping."""


def observation_text(opinion: float, opposite: float | None, *, is_pair: bool) -> str:
    """Write what a person sees.

    Args:
        opinion: Its opinion, from 0 to 1; people read it as 0 to 100.
        opposite: The opinion it meets; None: it meets nobody.
        is_pair: Whether that is one person's, and not the mean of those close to its own.
    """
    own = f"Your opinion is {100 * opinion:.0f}."
    if opposite is None:
        return f"{own} You meet nobody."
    meeting = "You meet someone whose opinion is" if is_pair else "The average opinion of people near you is"
    return f"{own} {meeting} {100 * opposite:.0f}. The difference is {100 * abs(opposite - opinion):.0f}."


def changed_text(opinion: float) -> str:
    """Report an opinion after a compromise."""
    return f"Your opinion is now {100 * opinion:.0f}."
