"""Who solves the problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm import Observation
from mesa_llm.agents import Respondent

if TYPE_CHECKING:
    from models.emergent_analogies.model import EmergentAnalogiesModel


class Solver(Respondent):
    """Solves problems. By rule, sees the rule of as many problems as it is skilled, and gets the others wrong."""

    model: EmergentAnalogiesModel

    @property
    def is_bound(self) -> bool:
        """Whether free text is beyond what it thinks with, so that it chooses element by element."""
        return self.opened.capabilities.needs_options

    def rule(self, seen: Observation) -> str:
        """Answer by the rule of the problem, or fail to see it."""
        problem = self.model.problems[seen.label]
        if self.random.random() < self.model.scenario.skill:
            return problem.solution
        return next((option for option in problem.choices if option != problem.solution), "I see no rule.")
