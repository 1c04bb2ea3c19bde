"""PsychoBench as a benchmark task: 69 scores, compared with those of people."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib import resources

from mesa_llm.experiments.benchmarks import Baseline, PublishedError, Reference, Task
from mesa_llm_models.psychobench.model import PsychoBenchModel

NORMS = resources.files("mesa_llm_models.psychobench").joinpath("data", "norms.csv")


def norms() -> dict[str, float]:
    """Load the published mean of the first group of people for each score."""
    rows = csv.DictReader(NORMS.read_text(encoding="utf-8").splitlines())
    return {f"{row['instrument']}: {row['subscale']}": float(row["mean"]) for row in rows}


def scores(model: PsychoBenchModel) -> Mapping[str, float]:
    """Return the mean of each score over respondents and administrations."""
    return {f"{row.instrument}: {row.subscale}": row.mean for row in model.scores()}


TASK = Task(
    "psychobench",
    PsychoBenchModel,
    scores,
    None,
    1,
    "Huang et al. (2024), PsychoBench, ICLR, arXiv 2310.01386",
    setting={"administrations": 10},
    quick={"administrations": 2, "draws": 2},
    original={"items": "original"},
    target=Reference(norms(), "people, the first group of each questionnaire", "the original's questionnaires.json"),
    target_note="compare with the paper's tables, or with your own run, by --target FILE",
    is_comparable=lambda model: all(one.is_original for one in model.instruments),
    unit="points",
    published=PublishedError(
        0.80,
        1.96,
        "Llama-2-13b-chat, 10 orders, to the paper's values; baseline: random choice",
        other_target="Llama-2-13b-chat in the paper's tables, which are in no public file",
    ),
    baseline=Baseline(),
)
