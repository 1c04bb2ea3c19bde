"""Deciders, and their rule twin."""

from __future__ import annotations

from typing import Any

from mesa_llm import Observation
from mesa_llm.agents import Respondent
from mesa_llm_models.cognitive_biases.items import BiasTest, Role


class Decider(Respondent):
    """Makes decisions. By rule, it takes the middle option in controls, and leans by a known strength in treatments.

    Attributes:
        susceptibility: Score that its rule twin aims at, from -1 to 1.
    """

    def __init__(self, model: Any, susceptibility: float, **components: Any) -> None:
        """Store the susceptibility of its rule twin.

        Args:
            model: The model.
            susceptibility: Score that its rule twin aims at, from -1 to 1.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.susceptibility = susceptibility

    @property
    def writes(self) -> bool:
        """Whether it can write freely, so that it may answer in two steps."""
        return self.opened.is_language_model and not self.opened.capabilities.needs_options

    def rule(self, seen: Observation) -> str:
        """Choose the middle option in a control, and the one closest to its susceptibility in a treatment."""
        return self.choose(seen, self.susceptibility)

    def choose(self, seen: Observation, wanted: float) -> str:
        """Choose the middle option in a control, and the one that comes closest to a score in a treatment.

        Args:
            seen: Observation of a task.
            wanted: The score, from -1 to 1.

        Returns:
            The option as it is numbered on the sheet: `Option 4`.
        """
        task: tuple[BiasTest, Role] = seen.facts.items[0].facts
        test, role = task
        n = test.metric.n_options
        middle = index = n // 2
        if role == "treatment":
            index = min(range(n), key=lambda one: (abs(test.metric.score(middle, one) - wanted), abs(one - middle)))
        return f"Option {test.index(index + 1) + 1}"
