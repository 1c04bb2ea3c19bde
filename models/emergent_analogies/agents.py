"""Who solves the problems."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation
from mesa_llm.agents import Respondent
from models.emergent_analogies.problems import Problem


class Solver(Respondent):
    """Solves problems. By rule, sees the rule of as many problems as it is skilled, and gets the others wrong.

    Attributes:
        skill: Probability that it sees the rule of a problem by rule.
    """

    def __init__(self, model: Any, skill: float, **components: Any) -> None:
        """Store how skilled its rule twin is.

        Args:
            model: The model.
            skill: Probability that it sees the rule of a problem.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.skill = skill

    @property
    def is_bound(self) -> bool:
        """Whether free text is beyond what it thinks with, so that it chooses element by element."""
        return self.opened.capabilities.needs_options

    def rule(self, seen: Observation) -> str:
        """Answer by the rule of the problem, or fail to see it."""
        problem: Problem = seen.facts.items[0].facts
        if self.random.random() < self.skill:
            return problem.solution
        return next((option for option in problem.choices if option != problem.solution), "I see no rule.")
