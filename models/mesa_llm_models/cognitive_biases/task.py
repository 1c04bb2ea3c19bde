"""CognitiveBiases as a benchmark task: thirty biases, compared with those of GPT-4o-mini."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task, mean_of
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel
from mesa_llm_models.cognitive_biases.scores import published


def scores(model: CognitiveBiasesModel) -> Mapping[str, float]:
    """Return the mean score of each bias."""
    return {one.bias: one.mean for one in model.scores()}


TASK = Task(
    "cognitive_biases",
    CognitiveBiasesModel,
    scores,
    None,
    1,
    "Malberg et al. (2025), A Comprehensive Evaluation of Cognitive Biases in LLMs, NLP4DH, arXiv 2410.15413",
    setting={"n_tests": 20, "answers": "two_step", "conservatism_rule": "2024", "seed_stride": 5},
    quick={"n_tests": 2, "answers": "choice"},
    by_hand={
        "tests": (
            "the tests (split train; as JSON, JSON lines or CSV) from huggingface.co/datasets/"
            "tum-nlp/cognitive-biases-in-llms, revision 98fd1fd7728b320bb0690c51e72ca190191f2358, CC BY-SA 4.0"
        )
    },
    target=Reference(published("GPT-4o-mini"), "GPT-4o-mini, 30,000 tests", "the authors' heat-map of 2024-10-14"),
    target_note="a run can be compared only on the original's data set: --set cognitive_biases.tests=FILE",
    is_comparable=lambda model: bool(model.scenario.tests) and model.scenario.conservatism_rule == "2024",
    unit="score, -1 to 1",
    published=PublishedError(0.04, 0.24, "gpt-4o-mini-2024-07-18, 3 seeds, to the paper; baseline: random choice"),
    baseline=Baseline(),
    measure=Measure("mean size of the biases", lambda found: mean_of({name: abs(one) for name, one in found.items()})),
)
