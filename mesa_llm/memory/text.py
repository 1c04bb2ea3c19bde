"""The words in which agents read their memories."""

from __future__ import annotations

from functools import lru_cache

LEADS = {
    "observation": "you saw",
    "decision": "you decided",
    "utterance": "you said",
    "outcome": "the result was",
    "message": "you were told",
    "thought": "you thought",
    "insight": "you concluded",
}
"""Kind of an entry → beginning of its line, after the moment, unless its text is a whole sentence."""

NO_ANSWER = "(no answer that could be read)"
"""Text in a conversation in place of an answer that could not be used."""


@lru_cache(maxsize=256, typed=True)
def moment_text(unit: str, time: int, past_world: str | None, moment: str = "") -> str:
    """Write when something happened, and in which earlier life; cached, as agents remember the same steps.

    Args:
        unit: Unit of time: `step`, `month`, …
        time: The step.
        past_world: World of the earlier life; empty: its world has no name; None: it is this life.
        moment: The world's own words for it, such as `At 08:30`; empty: made of unit and step.
    """
    when = moment or f"{'On' if unit == 'day' else 'In'} {unit} {time}"
    if past_world is not None:
        when = f"in an earlier life{f' in {past_world}' if past_world else ''}, {when[0].lower()}{when[1:]}"
    return when[0].upper() + when[1:]


def summary_line(summary: str) -> str:
    """Write the running summary as one line."""
    return f"Earlier, in short: {summary}"


def recurring_text(word: str, count: int, n_memories: int) -> str:
    """Write the insight of a memory that reflects by rule: a word that many of its entries share."""
    return f"{word} comes up again and again: in {count} of {n_memories} memories."
