"""Solvers, and their rule twin."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation
from mesa_llm.agents import Respondent
from mesa_llm.questionnaire import Sheet
from mesa_llm_models.emergent_analogies.items.problems import Problem


class Solver(Respondent):
    """Solves problems. By rule, it finds the rule of a problem with probability `skill`, and else is wrong.

    Attributes:
        skill: Probability that its rule twin finds the rule of a problem.
    """

    def __init__(self, model: Any, skill: float, **components: Any) -> None:
        """Store the skill of its rule twin.

        Args:
            model: The model.
            skill: Probability that its rule twin finds the rule of a problem.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.skill = skill

    @property
    def is_bound(self) -> bool:
        """Whether it cannot write free text, as the random baseline, and chooses each element of an answer."""
        return self.opened.capabilities.needs_options and not self.opened.is_language_model

    def rule(self, seen: Observation) -> Any:
        """Answer by the rule of the problem, or wrongly if it is not found; in the form of its sheet."""
        sheet: Sheet = seen.facts
        problem: Problem = sheet.items[0].facts
        answer = next((option for option in problem.choices if option != problem.solution), "I see no rule.")
        if self.random.random() < self.skill:
            answer = problem.solution
        if problem.choices or not sheet.items[0].choices:
            return answer
        written = [*answer.strip(" []").split(), *[""] * len(sheet.items)]
        chosen = [
            word if word in item.choices else item.choices[0] for item, word in zip(sheet.items, written, strict=False)
        ]
        return chosen[0] if len(chosen) == 1 else dict(zip(sheet.numbers, chosen, strict=True))
