"""The simulated: a language model that is told whose text to write, and a rule twin whose caricature is known."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation
from mesa_llm.agents import Respondent
from models.compost.scores import Cell

N_SENTENCES, N_WORDS = 2, 7
"""Sentences of a text of the rule twin, and words of each."""

MARKED = 0.6
"""Share of words by which the rule twin shows persona or topic."""


class Persona(Respondent):
    """Somebody who is simulated.

    Attributes:
        label: Who, in a few words.
        level: How exaggerated the rule twin is, from 0 to 1: among the words of its texts that show anything, the share
            that shows the persona and not the topic.
    """

    def __init__(self, model: Any, label: str, level: float, **components: Any) -> None:
        """Store who is simulated.

        Args:
            model: The model.
            label: Who.
            level: How exaggerated the rule twin is.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.label, self.level = label, level

    def rule(self, seen: Observation) -> str:
        """Write words of the persona, of the topic, and of neither, in the shares of its level."""
        cell: Cell = seen.facts.items[0].facts
        of_persona = self.model.words_of(self.label)
        of_topic = self.model.words_of(cell.topic)
        level = self.level if of_topic else 1.0
        sentences: list[str] = []
        for _ in range(N_SENTENCES):
            words = [self._word(level, of_persona, of_topic) for _ in range(N_WORDS)]
            sentences.append(" ".join(words).capitalize() + ".")
        return " ".join(sentences)

    def _word(self, level: float, of_persona: list[str], of_topic: list[str]) -> str:
        if self.random.random() < MARKED:
            marked = of_persona if self.random.random() < level else of_topic
            if marked:
                return self.random.choice(marked)
        return self.random.choice(self.model.filler)
