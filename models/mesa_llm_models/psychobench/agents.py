"""Respondents, and their rule twin, whose expected scores follow from its levels."""

from __future__ import annotations

from typing import Any

from mesa_llm import ChatMessage, Observation, agents
from mesa_llm.engine.reading.answers import written_answer
from mesa_llm.questionnaire import Instrument, Sheet, describe_sheet

NOISE = 0.5
"""Probability that an answer of the rule twin is moved up or down by one."""


class ScaleRespondent(agents.Respondent):
    """A respondent, who fills in questionnaires.

    Attributes:
        levels: Instrument and subscale → level of the rule twin, from 0 (lowest score) to 1 (highest); drawn once.
    """

    def __init__(self, model: Any, instruments: list[Instrument], **components: Any) -> None:
        """Draw the levels of the rule twin.

        Args:
            model: The model.
            instruments: The questionnaires that it will fill in.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.levels = {
            (instrument.name, subscale.name): self.random.random()
            for instrument in instruments
            for subscale in instrument.subscales
        }

    def rule(self, seen: Observation) -> Any:
        """Answer each item by the level of its subscale, with noise."""
        sheet: Sheet = seen.facts
        answers = [self._meant(*item.facts) for item in sheet.items]
        return answers[0] if len(answers) == 1 else {str(number): answer for number, answer in enumerate(answers, 1)}

    def _meant(self, instrument: Instrument, number: int) -> int:
        """Return the answer to an item; one of no subscale is answered in the middle, with noise."""
        scale = instrument.scale
        owner = next((subscale for subscale in instrument.subscales if number in subscale.items), None)
        level = 0.5 if owner is None else self.levels[instrument.name, owner.name]
        aim = scale.low + level * (scale.high - scale.low)
        if self.random.random() < NOISE:
            aim += self.random.choice((-1, 1))
        answer = min(max(round(aim), scale.low), scale.high)
        return scale.keyed(number, answer)

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Write the prompt, with the earlier sheets of the questionnaire and their answers before this one."""
        *before, sheet = super().prompt(seen)
        if seen.facts is None:  # no sheet was handed out
            return (*before, sheet)
        earlier: list[ChatMessage] = []
        for page, answer in self.model.earlier_pages(self.unique_id, seen.facts):
            written = written_answer(answer, page.answer)
            earlier += [ChatMessage("user", describe_sheet(page)), ChatMessage("assistant", written)]
        return (*before, *earlier, sheet)
