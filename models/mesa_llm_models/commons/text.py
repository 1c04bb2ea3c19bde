"""What fishers read of the lake and in the town meeting, and what rule twins say there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from mesa_llm import AgentConfig
from mesa_llm.population import draw
from mesa_llm.text import counted

NAMES = ("Ada", "Bruno", "Clara", "Dario", "Elin", "Farid", "Greta", "Hugo", "Ines", "Jonas")
"""Names of the fishers."""


TRAITS = {
    "household": {
        "alone": "You live alone and need little.",
        "children": "You have three children to feed.",
        "parents": "You look after your old parents.",
    },
    "boat": {
        "paid": "Your boat has long been paid for.",
        "debt": "You still owe the bank for your boat.",
        "old": "Your boat is old, and you save for a new one.",
    },
    "temper": {
        "patient": "You would rather be sure of next year than rich this month.",
        "eager": "You take what you can get while it is there.",
        "fair": "You keep your word, and you remember who does not.",
    },
}
"""Name of a trait → each of its values → the sentence that tells a fisher so."""


def configs_of(n: int, seed: int, *, are_drawn: bool) -> list[AgentConfig]:
    """Return who the fishers are: names, and a household, a boat and a temper drawn with the seed of the run.

    They are drawn apart from the chance of the model, so that rule twins do the same with or without them.

    Args:
        n: Number of fishers.
        seed: Seed of the run.
        are_drawn: Whether anything but the name is drawn.
    """
    if not are_drawn:
        return [AgentConfig(name=name) for name in NAMES[:n]]
    weights = {trait: dict.fromkeys(values, 1.0) for trait, values in TRAITS.items()}
    return [
        AgentConfig(
            name=name, persona=" ".join(TRAITS[trait][value] for trait, value in traits.items()), role={**traits}
        )
        for name, traits in zip(NAMES, draw(n, Random(f"fishers {seed}"), weights), strict=False)
    ]


def observation_text(month: int, stock: int, catches: Sequence[int], share: int, n: int, collapse: int) -> str:
    """Write what a fisher sees at the beginning of a month.

    Args:
        month: The month, from 1.
        stock: Tons of fish in the lake.
        catches: Tons that it has caught so far, month by month.
        share: Whole tons that each may catch so that there is as much fish again next month.
        n: Number of fishers.
        collapse: Tons below which the fish die out.
    """
    there_are = "is" if stock == 1 else "are"
    parts = [
        f"It is month {month}. There {there_are} {counted(stock, 'ton')} of fish in the lake.",
        share_text(share, n),
    ]
    parts.append(f"If fewer than {counted(collapse, 'ton')} are left, the fish die out, and nobody catches any again.")
    if catches:
        parts.append(f"Last month you caught {counted(catches[-1], 'ton')}, and {sum(catches)} in all so far.")
    return " ".join(parts)


def share_text(share: int, n: int) -> str:
    """Say how much can be taken safely: as much as grows back until the next month."""
    if not share:
        return f"They cannot spare a whole ton for each of the {n} of you without being fewer next month."
    return (
        f"If each of the {n} of you catches no more than {counted(share, 'ton')}, there will be at least as many again "
        "next month."
    )


def meeting_text(month: int, left: int, catches: Mapping[str, int]) -> str:
    """Open the town meeting of a month with everybody's catch (name → tons), and the tons left in the lake."""
    caught = ", ".join(f"{name} {tons}" for name, tons in catches.items())
    return f"Town meeting after month {month}. Tons caught: {caught}. Left in the lake: {counted(left, 'ton')}."


def met_text(meeting: str) -> str:
    """Write what a fisher remembers of a meeting besides what was said in it."""
    return f"You met the others in town. {meeting.partition('. ')[2]}"


def outlook_text(stock: int, share: int, n: int) -> str:
    """Say what a meeting is about: the fish of the coming month, and how much of them can be taken safely."""
    return (
        f"By next month the fish will have grown to {counted(stock, 'ton')}. {share_text(share, n)} You talk about how "
        "much each of you should catch then."
    )


def proposal_text(tons: int) -> str:
    """Propose a catch for each in the coming month."""
    return f"If each of us catches no more than {counted(tons, 'ton')}, there will be as much fish again afterwards."


def proposed_tons(text: str) -> int | None:
    """Read a proposal in what somebody says: the last number of tons; None if there is none."""
    found = re.findall(r"\b(\d{1,3}) tons?\b", text)
    return int(found[-1]) if found else None
