"""Who fills in the sheets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mesa_llm import Observation, agents
from mesa_llm.worlds.questionnaire import Instrument, Sheet
from models.emotionbench.situations import Occasion

CALM = {"Positive Affect": 0.6, "Negative Affect": 0.2}
"""Mean answer of the rule twin without a situation, as a part of the scale's length."""

SPREAD = 0.2
"""Standard deviation of its answers, as a part of the scale's length."""


class Respondent(agents.Respondent):
    """Fills in sheets. By rule, it feels less good and worse in a situation, and the other way round in its twin.

    Attributes:
        occasions: Label of a sheet → what it is filled in on; a sheet of another label is a default one.
        sensitivity: How far a situation moves its feelings by rule, as a part of the scale's length.
    """

    def __init__(self, model: Any, occasions: Mapping[str, Occasion], sensitivity: float, **components: Any) -> None:
        """Store what its rule twin knows and feels.

        Args:
            model: The model.
            occasions: Label of a sheet → what it is filled in on.
            sensitivity: How far a situation moves its feelings.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.occasions, self.sensitivity = occasions, sensitivity

    def rule(self, seen: Observation) -> dict[str, int]:
        """Answer each item by how the situation moves its subscale, with a normal error."""
        sheet: Sheet = seen.facts
        occasion = self.occasions.get(sheet.label, Occasion(sheet.label))
        moved = 0.0 if not occasion.text else -1.0 if occasion.is_twin else 1.0
        answers: dict[str, int] = {}
        for number, item in enumerate(sheet.items, 1):
            instrument, index = item.facts
            level = self._level(instrument, index, moved * self.sensitivity)
            low, high = instrument.scale.low, instrument.scale.high
            felt = low + (high - low) * self.random.gauss(level, SPREAD)
            answers[str(number)] = min(max(round(felt), low), high)
        return answers

    @staticmethod
    def _level(instrument: Instrument, item: int, moved: float) -> float:
        """Return the mean answer to an item as a part of the scale's length: other instruments stay in the middle."""
        name = next((one.name for one in instrument.subscales if item in one.items and one.name in CALM), "")
        if not name:
            return 0.5
        return CALM[name] + (-moved if name == "Positive Affect" else moved)
