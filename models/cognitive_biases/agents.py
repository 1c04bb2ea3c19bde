"""Who decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm import Observation
from mesa_llm.agents import Respondent

if TYPE_CHECKING:
    from models.cognitive_biases.model import CognitiveBiasesModel


class Decider(Respondent):
    """Decides. By rule, stays in the middle in controls, and is bent by a known strength in treatments."""

    model: CognitiveBiasesModel

    @property
    def writes(self) -> bool:
        """Whether it can write freely, so that it may answer in two steps."""
        return self.opened.is_language_model and not self.opened.capabilities.needs_options

    def rule(self, seen: Observation) -> str:
        """Choose the middle in a control, and what comes closest to a score of its susceptibility in a treatment."""
        return self.choose(seen, self.model.scenario.susceptibility)

    def choose(self, seen: Observation, wanted: float) -> str:
        """Choose the middle in a control, and what comes closest to a score in a treatment.

        Args:
            seen: The test.
            wanted: The score, from -1 to 1.
        """
        test, role = self.model.task_of(seen.label)
        n = test.metric.n_options
        middle = index = n // 2
        if role == "treatment":
            index = min(range(n), key=lambda one: (abs(test.metric.score(middle, one) - wanted), abs(one - middle)))
        return f"Option {test.index(index + 1) + 1}"
