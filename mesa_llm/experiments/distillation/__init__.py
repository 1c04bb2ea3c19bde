"""Distillation: a small choice model, fitted to the decisions of recorded runs, that can decide in their place.

    surrogate = distill(["monday.sqlite", "tuesday.sqlite"])
    surrogate.write("mind.json")
    SocialModel(llm="surrogate:mind.json")

Each run is replayed offline, so that what its agents saw is there as values (`Observation.facts`), and what their rule
twins would have done is known. Which action is chosen, and which value of an argument with a list, is a multinomial or
conditional logit in the facts (McFadden 1974), with the leaves of a small decision tree as further columns where
cross-validation prefers them. A number is a line in the facts with the recorded deviations around it (quantile
regression trees, Meinshausen 2006). Texts are left to a language model.
"""

from typing import TYPE_CHECKING

import lazy_loader

from mesa_llm.errors import require_extra

if TYPE_CHECKING:
    from mesa_llm.experiments.distillation.recorded import RecordedChoice as RecordedChoice
    from mesa_llm.experiments.distillation.recorded import RecordedChoices as RecordedChoices
    from mesa_llm.experiments.distillation.runs import distill as distill

require_extra("analysis", "distillation")
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"recorded": ["RecordedChoice", "RecordedChoices"], "runs": ["distill"]}
)
