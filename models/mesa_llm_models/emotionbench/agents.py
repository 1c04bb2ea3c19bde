"""Respondents, and their rule twin."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation, agents
from mesa_llm.questionnaire import Instrument, Sheet

CALM = {"Positive Affect": 0.6, "Negative Affect": 0.2}
"""Subscale → mean answer of the rule twin without a situation, from 0 (lowest answer) to 1 (highest)."""

SPREAD = 0.2
"""Standard deviation of its answers before rounding, as a fraction of the scale's length."""


class AffectRespondent(agents.Respondent):
    """Fills in sheets. By rule, a situation lowers positive and raises negative affect; its twin does the reverse.

    Attributes:
        sensitivity: Shift of the rule twin's mean answers in a situation, as a fraction of the scale's length.
    """

    def __init__(self, model: Any, sensitivity: float, **components: Any) -> None:
        """Store the sensitivity of its rule twin.

        Args:
            model: The model.
            sensitivity: Shift of the rule twin's mean answers in a situation, as a fraction of the scale's length.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.sensitivity = sensitivity

    def rule(self, seen: Observation) -> int | dict[str, int]:
        """Answer each item by the level of its subscale in the situation, with a normal error."""
        sheet: Sheet = seen.facts
        occasion = self.model.occasion_of(sheet.label)
        direction = 0.0 if not occasion.text else -1.0 if occasion.is_twin else 1.0
        answers: dict[str, int] = {}
        for number, item in enumerate(sheet.items, 1):
            instrument, index = item.facts
            level = self._level(instrument, index, direction * self.sensitivity)
            low, high = instrument.scale.low, instrument.scale.high
            value = low + (high - low) * self.random.gauss(level, SPREAD)
            answers[str(number)] = min(max(round(value), low), high)
        return answers["1"] if len(sheet.items) == 1 else answers

    @staticmethod
    def _level(instrument: Instrument, item: int, shift: float) -> float:
        """Return the mean answer to an item, from 0 (lowest) to 1 (highest); 0.5 for items of other subscales."""
        name = next((one.name for one in instrument.subscales if item in one.items and one.name in CALM), "")
        if not name:
            return 0.5
        return CALM[name] + (-shift if name == "Positive Affect" else shift)
