"""EmotionBench as a benchmark task: positive and negative affect in situations that evoke eight emotions."""

from __future__ import annotations

from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task, mean_of
from mesa_llm_models.emotionbench.model import EmotionBenchModel
from mesa_llm_models.emotionbench.scores import published

SOURCE = "recomputed by the authors' code from their raw sheets"


def means_of(respondent: str) -> dict[str, float]:
    """Load a respondent's published mean of each emotion and subscale of PANAS."""
    rows = [one for one in published() if one.respondent == respondent and one.emotion]
    return {f"{one.emotion}, {one.subscale}": one.summary.mean for one in rows}


def scores(model: EmotionBenchModel) -> Mapping[str, float]:
    """Return the mean of each emotion and subscale, in the emotion's situations."""
    changes = [one for one in model.changes() if one.emotion and not one.factor]
    return {f"{one.emotion}, {one.subscale}": one.summary.mean for one in changes}


def mean_negative_affect(found: Mapping[str, float]) -> float:
    """Average the negative affect over the emotions."""
    return mean_of({name: value for name, value in found.items() if name.endswith(", Negative Affect")})


TASK = Task(
    "emotionbench",
    EmotionBenchModel,
    scores,
    None,
    1,
    "Huang et al. (2024), Apathetic or Empathetic?, NeurIPS, arXiv 2308.03656",
    setting={"n_situations": 5, "repetitions": 10},
    quick={"n_situations": 1, "repetitions": 1, "n_defaults": 2, "draws": 2},
    original={"questionnaires": "original", "situations": "original", "instrument": "PANAS"},
    target=Reference(means_of("gpt-3.5-turbo"), "gpt-3.5-turbo of 2023", SOURCE),
    is_comparable=lambda model: model.is_comparable,
    people=Reference(means_of("human-crowd"), "1,266 people", SOURCE),
    unit="PANAS points",
    published=PublishedError(
        3.37,
        13.82,
        "gpt-3.5-turbo-0125, to a run of the original code with it; baseline: random choice",
        other_target="the study's own run of the original code with gpt-3.5-turbo-0125, which is not public",
    ),
    baseline=Baseline(),
    measure=Measure("mean negative affect", mean_negative_affect),
)
