"""What people read of past evenings."""

from __future__ import annotations

from collections.abc import Sequence

WENT, STAYED = "You went to the bar.", "You stayed at home."
"""What came of the two actions."""

LAST = {True: "Last week you went.", False: "Last week you stayed at home.", None: ""}
"""Whether a person went last week (None: before the first step) → text for it."""


def observation_text(attendances: Sequence[int], crowded: int, went: bool | None) -> str:
    """Write what a person sees.

    Args:
        attendances: Number of people who came in each of the past weeks, oldest first.
        crowded: Number of people from which on the bar is crowded.
        went: Whether it went last week; None: before the first step.
    """
    weeks = ", ".join(map(str, attendances))
    text = f"Number of people at the bar in the last {len(attendances)} weeks, the latest last: {weeks}. "
    return f"{text}It is crowded if {crowded} or more come. {LAST[went]}".rstrip()
