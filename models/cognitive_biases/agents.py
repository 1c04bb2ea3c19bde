"""Who decides."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation
from mesa_llm.agents import Respondent
from models.cognitive_biases.cases import BiasTest, Role


class Decider(Respondent):
    """Decides. By rule, stays in the middle in controls, and is bent by a known strength in treatments.

    Attributes:
        susceptibility: Score that it aims at by rule, from -1 to 1.
    """

    def __init__(self, model: Any, susceptibility: float, **components: Any) -> None:
        """Store how its rule twin is bent.

        Args:
            model: The model.
            susceptibility: Score that its rule twin aims at.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.susceptibility = susceptibility

    @property
    def writes(self) -> bool:
        """Whether it can write freely, so that it may answer in two steps."""
        return self.opened.is_language_model and not self.opened.capabilities.needs_options

    def rule(self, seen: Observation) -> str:
        """Choose the middle in a control, and what comes closest to a score of its susceptibility in a treatment."""
        return self.choose(seen, self.susceptibility)

    def choose(self, seen: Observation, wanted: float) -> str:
        """Choose the middle in a control, and what comes closest to a score in a treatment.

        Args:
            seen: The test.
            wanted: The score, from -1 to 1.
        """
        task: tuple[BiasTest, Role] = seen.facts.items[0].facts
        test, role = task
        n = test.metric.n_options
        middle = index = n // 2
        if role == "treatment":
            index = min(range(n), key=lambda one: (abs(test.metric.score(middle, one) - wanted), abs(one - middle)))
        return f"Option {test.index(index + 1) + 1}"
