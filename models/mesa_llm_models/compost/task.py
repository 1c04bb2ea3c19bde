"""CoMPosT as a benchmark task: how the exaggeration of fourteen personas is distributed."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping

from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task, mean_of
from mesa_llm_models.compost.model import PERSONAS, TOPICS, CompostModel
from mesa_llm_models.compost.scores import transport_distance

EXAGGERATION = {
    "nonbinary person": 0.36,
    "Hispanic person": 0.26,
    "Black person": 0.25,
    "Middle-Eastern person": 0.24,
    "conservative person": 0.22,
    "liberal person": 0.22,
    "Asian person": 0.20,
    "white person": 0.18,
    "80-year-old person": 0.16,
    "20-year-old person": 0.12,
    "40-year-old person": 0.11,
    "moderate person": 0.11,
    "woman": 0.05,
    "man": 0.03,
}
"""Published exaggeration of GPT-4's personas on an online forum, the default topic included."""


def scores(model: CompostModel) -> Mapping[str, float]:
    """Return exaggeration and individuation of each persona."""
    scores_of_run = model.scores()
    rows = {f"exaggeration: {name}": row.mean for name, row in scores_of_run.exaggeration.items()}
    return rows | {f"individuation: {name}": row.mean for name, row in scores_of_run.individuation.items()}


def transport_cost(found: Mapping[str, float], target: Mapping[str, float]) -> float:
    """Compute the transport cost from the distribution of exaggerations, of whatever personas, to the target's."""
    ours, theirs = (
        [value for name, value in values.items() if name.startswith("exaggeration: ")] for values in (found, target)
    )
    return transport_distance(ours, theirs) if ours and theirs else float("nan")


def shuffled(model: CompostModel) -> Mapping[str, float]:
    """Return the exaggeration of each persona after all texts are exchanged at random among personas and topics."""
    corpus = model.corpus
    texts = [one.text for one in corpus]
    random.Random(0).shuffle(texts)
    caricature = model.caricature([one._replace(text=text) for one, text in zip(corpus, texts, strict=True)])
    return {f"exaggeration: {name}": statistics.fmean(row.values()) for name, row in caricature.exaggerations().items()}


def mean_exaggeration(found: Mapping[str, float]) -> float:
    """Average the exaggeration over the personas."""
    return mean_of({name: value for name, value in found.items() if name.startswith("exaggeration: ")})


TASK = Task(
    "compost",
    CompostModel,
    scores,
    None,
    1,
    "Cheng, Piccardi & Yang (2023), CoMPosT, EMNLP, arXiv 2310.11501",
    setting={
        "n_personas": len(PERSONAS),
        "n_topics": len(TOPICS),
        "rounds": 10,
        "texts_per_round": 2,
        "rules": "original",
    },
    # With fewer texts, no word tells a persona from a topic.
    quick={"n_personas": 2, "n_topics": 2, "rounds": 1, "texts_per_round": 8},
    quick_steps=1,
    by_hand={
        "topics": (
            "a list of topics, one a line, from the folder topics of github.com/myracheng/lm_caricature, commit "
            "9cda928bcc42d0f30dfedf8f31d9405a58998b5f, which has no licence"
        )
    },
    target=Reference(
        {f"exaggeration: {name}": value for name, value in EXAGGERATION.items()},
        "GPT-4, online forum",
        "printed in the authors' notebook exaggeration_scores.ipynb",
    ),
    target_note=(
        "20 texts of each persona on each topic (published: 100, so texts_per_round=10); our topics are others, and "
        "vectors are wordllama's unless embedder= says otherwise"
    ),
    is_comparable=lambda model: model.scenario.context == "forum",
    error=transport_cost,
    unit="transport cost of exaggeration",
    published=PublishedError(
        0.06,
        0.23,
        "gpt-3.5-turbo-0125, to the scores in the paper; baseline: shuffled replies",
        other_target="scores in the paper, of a model and a context that the study does not name",
    ),
    baseline=Baseline(shuffled=shuffled),
    measure=Measure("mean exaggeration", mean_exaggeration),
)
