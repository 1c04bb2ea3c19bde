"""Neutral text about rivers and stones for placebos, irrelevant to every decision, and interventions that say it."""

from __future__ import annotations

from collections.abc import Sequence

from mesa_llm.model.interventions import Intervention, ManualAction, News, Post

NEUTRAL = (
    "The river bends twice before it reaches the old bridge.",
    "Granite is made of three minerals, and limestone mostly of one.",
    "In the morning the fog lies in the valley and lifts before noon.",
    "Herons stand still for a long time at the edge of the water.",
    "The path along the bank is paved with flat stones.",
    "Ash trees come into leaf later than oaks in most years.",
    "After rain the stream is brown for a day and then clears.",
    "The clock of the chapel has had no hands since it was painted.",
    "Swallows nest under the eaves and leave in September.",
    "A gravel bar divides the current into two arms of equal width.",
)
"""Sentences of the text."""


def neutral_text(characters: int) -> str:
    """Return neutral sentences of about a length: one at least, and no more than would pass it.

    Args:
        characters: The length.
    """
    found = NEUTRAL[0]
    for index in range(1, 1 + characters):
        longer = f"{found} {NEUTRAL[index % len(NEUTRAL)]}"
        if len(longer) > characters:
            break
        found = longer
    return found


def neutral_interventions(interventions: Sequence[Intervention]) -> list[Intervention]:
    """Return what a placebo has in the place of interventions: neutral text at the same point to the same agents.

    News and posts keep their readers, author and length. An action by hand becomes news for its agent, and a change of
    a variable, a language model or a design news for everyone.

    Args:
        interventions: The interventions.
    """
    found: list[Intervention] = []
    for one in interventions:
        match one:
            case News() | Post():
                neutral: Intervention = one.model_copy(update={"text": neutral_text(len(one.text))})
            case ManualAction(agent=agent) if agent != "":
                neutral = News(text=NEUTRAL[0], to=(agent,))
            case _:
                neutral = News(text=NEUTRAL[0])
        if neutral not in found:
            found.append(neutral)
    return found
