"""Who solves the problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm import Decision, Failure, LLMAgent, Observation, Outcome

if TYPE_CHECKING:
    from models.emergent_analogies.model import EmergentAnalogiesModel


class Solver(LLMAgent):
    """Solves problems. By rule, sees the rule of as many problems as it is skilled, and gets the others wrong."""

    model: EmergentAnalogiesModel

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Hand the answer in; a decision that failed is counted as unparsable or missing."""
        if isinstance(decision, Failure):
            unparsable = decision.kind in ("Unparsed", "Invalid", "BadReply")
            self.model.world.fail(self.unique_id, decision.label, is_unparsable=unparsable)
        return super().act(decision, seen)

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
