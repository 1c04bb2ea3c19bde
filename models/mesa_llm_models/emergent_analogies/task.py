"""EmergentAnalogies as a benchmark task: digit matrices by category of rules."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task, mean_of
from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel

SOURCE = "Webb et al. (2023), stored results of their repository, free response"


def scores(model: EmergentAnalogiesModel) -> Mapping[str, float]:
    """Return the share of right answers of each category."""
    return {name: model.accuracy(name) for name in model.categories}


TASK = Task(
    "emergent_analogies",
    EmergentAnalogiesModel,
    scores,
    None,
    1,
    "Webb, Holyoak & Lu (2023), Emergent analogical reasoning in large language models, Nature Human Behaviour 7",
    setting={"n_per_type": 5},
    quick={"n_per_type": 1},
    original={"matrices": "original"},
    target=Reference(
        {"one_rule": 1.0, "two_rule": 0.8542, "three_rule": 0.6925, "logic": 0.80}, "text-davinci-003", SOURCE
    ),
    is_comparable=lambda model: model.scenario.answers == "free",
    people=Reference(
        {"one_rule": 0.8488, "two_rule": 0.5775, "three_rule": 0.5233, "logic": 0.386}, "43 people", SOURCE
    ),
    unit="accuracy",
    published=PublishedError(
        0.05,
        0.64,
        "gpt-4-0613, 3 seeds, to a run of the original code with it; baseline: random matrix",
        other_target="the study's own run of the original code with gpt-4-0613, which is not public",
    ),
    baseline=Baseline(),
    measure=Measure("mean accuracy", mean_of),
)
