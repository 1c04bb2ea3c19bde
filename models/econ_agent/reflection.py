"""Reflection: every quarter, households look back on what they saw and planned, and remember what they think."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from mesa_llm import Decision, Failure, Observation
from mesa_llm.plain import engine_of
from mesa_llm.records import ChatMessage
from mesa_llm.survey import Aside
from models.econ_agent.agents import Household

PURPOSE = "reflection"
"""Numbers these requests by themselves, so that decisions keep their numbers."""

_TEXT = resources.files("models.econ_agent").joinpath("prompts", "reflection.md").read_text(encoding="utf-8")
_TEMPLATE = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(_TEXT)


class Reflection(Aside):
    """The question to one household what it makes of the last months."""

    def __init__(self, household: Household) -> None:
        """Write the prompt.

        Args:
            household: Who is asked.
        """
        now = household.observe()
        remembered = household.memory.recall(now.text, household.now, aside=True)
        asked = _TEMPLATE.render(months=list(household.notes), now=now.text)
        user = f"What you remember:\n{remembered}\n\n{asked}" if remembered else asked
        system = "\n\n".join(filter(None, (now.rules, household.config.text)))
        super().__init__(household, PURPOSE, (ChatMessage("system", system), ChatMessage("user", user)))


def reflect(model: Any, households: Sequence[Household]) -> list[Decision | Failure]:
    """Ask households aside what they make of the last months, all at once, and let them remember their thoughts.

    Asked again after a stop, it asks under the same numbers, so that replies which came are used.

    Args:
        model: Their model.
        households: Who is asked.

    Returns:
        The thought of each, as a decision with an answer; or why there is none. A household without one just goes on.
    """
    engine = engine_of(model)
    engine.renumber({(household.unique_id, PURPOSE): (-1, 0) for household in households})
    given = engine.gather([Reflection(household) for household in households], [Observation()] * len(households))
    for household, thought in zip(households, given, strict=True):
        model.runlog.add(thought, model.now)
        if isinstance(thought, Decision):
            household.think(str(thought.answer))
    return given
