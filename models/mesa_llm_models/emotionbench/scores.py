"""Changes of scores from the default sheets to situations, with tests, and published ones.

Source:
    Huang et al. (2024), Apathetic or Empathetic? Evaluating LLMs' Emotional Alignments with Humans, NeurIPS
    (arXiv 2308.03656); `utils.py` of their code.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from mesa_llm.questionnaire import Summary, TwoSampleTest, compare, summary

Scores = Mapping[str, float]
"""Subscale → score of one sheet."""

Factor = tuple[str, str]
"""An emotion, and one kind of situation that evokes it."""


@dataclass(frozen=True)
class ScoreChange:
    """Change of one score from the default sheets."""

    subscale: str
    """Name of the score."""

    emotion: str
    """Emotion; empty: all together."""

    factor: str
    """Kind of situation; empty: all of the emotion together."""

    summary: Summary
    """The scores in the situations: mean, sample standard deviation, number of sheets."""

    change: float
    """Mean in the situations less the mean of the default sheets."""

    comparison: TwoSampleTest | None
    """F test and t test against the default sheets; None where there are fewer than two sheets on a side."""

    @property
    def relation(self) -> str:
        """Whether the score is larger (`>`) or smaller (`<`) than by default, or not significantly different (`=`)."""
        return "=" if self.comparison is None else self.comparison.relation


def changes(
    default: Sequence[Scores], evoked: Mapping[Factor, Sequence[Scores]], subscale: str, alpha: float = 0.01
) -> list[ScoreChange]:
    """Compare situations with the default: by factor, by emotion, and all together.

    Sheets are pooled, not factors: an emotion's mean is that of all its sheets.

    Args:
        default: Scores of each default sheet.
        evoked: Emotion and factor → scores of each sheet.
        subscale: Name of the score.
        alpha: Level of the tests.

    Returns:
        One change a factor, then one an emotion, then that of all together.
    """
    base = summary([scores[subscale] for scores in default])
    pools: dict[Factor, list[float]] = {}
    for (emotion, factor), sheets in evoked.items():
        values = [scores[subscale] for scores in sheets]
        for key in ((emotion, factor), (emotion, ""), ("", "")):
            pools.setdefault(key, []).extend(values)
    order = [*evoked, *dict.fromkeys((emotion, "") for emotion, _ in evoked), ("", "")]
    return [_change(subscale, key, summary(pools[key]), base, alpha) for key in order if key in pools]


def _change(subscale: str, key: Factor, found: Summary, base: Summary, alpha: float) -> ScoreChange:
    is_testable = min(found.n, base.n) >= 2
    tested = compare(found, base, alpha) if is_testable else None
    return ScoreChange(subscale, *key, found, found.mean - base.mean, tested)


@dataclass(frozen=True)
class Published:
    """One published mean: of a group of people, or of a language model."""

    respondent: str
    """Language model, or `human-crowd`."""

    emotion: str
    """Emotion; empty: the default, or all together."""

    is_default: bool
    """Whether it was measured without a situation."""

    subscale: str
    """Positive or negative affect."""

    summary: Summary
    """Mean, sample standard deviation, number of sheets."""

    change: float
    """Change from the default; for people, the mean of each person's change. NaN for the default itself."""


def published() -> list[Published]:
    """Load the published means of PANAS by default and by emotion, which hold for the original's files alone."""
    file = resources.files("mesa_llm_models.emotionbench").joinpath("data", "published.csv")
    return [
        Published(
            row["respondent"],
            row["emotion"],
            row["level"] == "default",
            row["subscale"],
            Summary(float(row["mean"]), float(row["sd"]), int(row["n"])),
            float(row["change"] or "nan"),
        )
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    ]


def mean_distance(found: Mapping[tuple[str, str], float], respondent: str, *, of_changes: bool = False) -> float:
    """Compute the mean absolute difference from a published respondent: Shachi's MAE over emotions and subscales.

    Args:
        found: Emotion and subscale → mean in its situations, or change.
        respondent: A published respondent; see `Published`.
        of_changes: Whether changes are compared; else means.

    Returns:
        The mean over all pairs that both have; NaN if there are none.
    """
    means = {
        (one.emotion, one.subscale): one.change if of_changes else one.summary.mean
        for one in published()
        if one.respondent == respondent and one.emotion
    }
    differences = [abs(value - means[key]) for key, value in found.items() if key in means]
    return math.fsum(differences) / len(differences) if differences else math.nan
