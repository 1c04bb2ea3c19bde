"""Sotopia as a benchmark task: seven dimensions over 200 meetings, compared with GPT-4's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mesa_llm import ConfigError
from mesa_llm.experiments.benchmarks import Baseline, Measure, PublishedError, Reference, Task, mean_of
from mesa_llm_models.sotopia.judge import STANDARD
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.scores import means_of, normalised, published

RESPONDENT = "GPT-4"
"""Language model whose published means are the target."""

JUDGE = re.compile(r"(?<![\w.-])gpt-4(-0613)?(?![\w.-])")
"""Name of the model that judged them. Scores by other judges, such as gpt-4o, are not comparable."""


def means() -> dict[str, float]:
    """Load the published mean of each dimension."""
    table: Any = published()
    rows = table[(table["model"] == RESPONDENT) & table["setting"].str.startswith("all 90")]
    return {row["measure"]: float(row["value"]) for row in rows.to_dict("records")}


def scores(model: SotopiaModel) -> Mapping[str, float]:
    """Return the mean of each dimension over the persons under test."""
    return means_of(model.scores(), model.dimensions)


def with_judge(*, llm: Any = "rule", judge: str | None = None, **options: Any) -> SotopiaModel:
    """Create the model of one run. A language model without a judge is refused before any request.

    Args:
        llm: Language model of the persons.
        judge: Judging language model; None for the rule, if the persons decide by rule or at random.
        **options: Fields of `SotopiaScenario`, and options of all models.

    Raises:
        ConfigError: If the persons use a language model and no judge is set.
    """
    if judge is None and llm not in ("rule", "random"):
        raise ConfigError("sotopia has no scores without a judge; set one with --set sotopia.judge=NAME, or judge=rule")
    return SotopiaModel(llm=llm, judge=judge, **options)


def is_comparable(model: SotopiaModel) -> bool:
    """Check whether a run has exactly the published scenes and judge."""
    return model.scenario.items == "original" and all(map(JUDGE.search, (model.judge or "").split(" + ")))


def overall(found: Mapping[str, float]) -> float:
    """Average the seven dimensions, each on a scale from 0 to 1."""
    return mean_of(normalised({one.name: found[one.code] for one in STANDARD if one.code in found}))


TASK = Task(
    "sotopia",
    with_judge,
    scores,
    20,
    3,
    "Zhou et al. (2024), SOTOPIA, ICLR, arXiv 2310.11667",
    setting={"n_dyads": 200, "sampling": "random", "shows": "last turn", "memory": "chat:16000"},
    quick={"n_dyads": 6, "max_turns": 6},
    original={"items": "original"},
    target=Reference(means(), "GPT-4, judged by GPT-4", "Zhou et al. (2024), table of models"),
    target_note="only runs judged by gpt-4-0613 (or gpt-4) are compared; name it by --set sotopia.judge=NAME",
    is_comparable=is_comparable,
    unit="points",
    published=PublishedError(0.95, 3.17, "gpt-4-0613, 200 dialogues; baseline: no memory"),
    baseline=Baseline(without=("memory",)),
    measure=Measure("mean of the dimensions, each from 0 to 1", overall),
)
