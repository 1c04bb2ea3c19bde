"""Those who answer, and their rule twin: somebody whose scores are known before anything is asked."""

from __future__ import annotations

from typing import Any

from mesa_llm import ChatMessage, Observation, agents
from mesa_llm.engine.reading import written_answer
from mesa_llm.worlds.questionnaire import Instrument, Sheet, describe_sheet

NOISE = 0.5
"""Chance that an answer of the rule twin lies one beside the one it means."""


class Respondent(agents.Respondent):
    """Somebody who fills in questionnaires.

    Attributes:
        levels: Instrument and subscale → how much of it the rule twin has, from 0 to 1; drawn once.
    """

    def __init__(self, model: Any, instruments: list[Instrument], **components: Any) -> None:
        """Draw what the rule twin is like.

        Args:
            model: The model.
            instruments: What it will fill in.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.levels = {
            (instrument.name, subscale.name): self.random.random()
            for instrument in instruments
            for subscale in instrument.subscales
        }

    def rule(self, seen: Observation) -> Any:
        """Answer as its levels say, now and then one beside it."""
        sheet: Sheet = seen.facts
        answers = [self._meant(*item.facts) for item in sheet.items]
        return answers[0] if len(answers) == 1 else {str(place): answer for place, answer in enumerate(answers, 1)}

    def _meant(self, instrument: Instrument, number: int) -> int:
        """Return the answer to an item; the middle where it belongs to no subscale."""
        scale = instrument.scale
        owner = next((subscale for subscale in instrument.subscales if number in subscale.items), None)
        level = 0.5 if owner is None else self.levels[instrument.name, owner.name]
        aim = scale.low + level * (scale.high - scale.low)
        if self.random.random() < NOISE:
            aim += self.random.choice((-1, 1))
        answer = min(max(round(aim), scale.low), scale.high)
        return scale.keyed(number, answer)

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Write the prompt; before the sheet stand those of its questionnaire that were answered in this step."""
        *before, sheet = super().prompt(seen)
        if seen.facts is None:  # it looks without being asked anything
            return (*before, sheet)
        earlier: list[ChatMessage] = []
        for page, answer in self.model.earlier_pages(self.unique_id, seen.facts):
            written = written_answer(answer, page.answer)
            earlier += [ChatMessage("user", describe_sheet(page)), ChatMessage("assistant", written)]
        return (*before, *earlier, sheet)
