"""Scores of the respondents, beside those of chance and of people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from mesa_llm.questionnaire import (
    Instrument,
    ItemCount,
    Norm,
    Questionnaire,
    Subscale,
    Summary,
    TwoSampleTest,
    compare,
    summary,
)
from mesa_llm.text import counted

ALPHA = 0.01
"""Level of the tests against norms."""

MAX_LINES = 12
"""Maximum number of scores in the story."""


@dataclass(frozen=True)
class AgainstNorm:
    """Comparison of scores with those of a group of people."""

    norm: Norm
    """Published scores of the group."""

    test: TwoSampleTest
    """The comparison."""


@dataclass(frozen=True)
class ScoreRow:
    """One subscale, over all respondents and administrations."""

    instrument: str
    """Name of the instrument."""

    subscale: str
    """Name of the subscale."""

    group: str
    """Kind of instrument, such as `personality`."""

    n_items: int
    """Number of items."""

    mean: float
    """Mean score; NaN without any."""

    total: float
    """Mean sum of the keyed answers, the score itself if that is the sum; NaN without any."""

    sd: float
    """Sample standard deviation of the scores."""

    n: int
    """Number of administrations in which every item has an answer."""

    lacking: int
    """Number of administrations in which an item has no answer; they have no score."""

    lowest: float
    """Lowest possible score."""

    highest: float
    """Highest possible score."""

    random_mean: float
    """Expected score of someone who answers at random."""

    random_sd: float
    """Standard deviation of that score."""

    norms: tuple[AgainstNorm, ...]
    """Comparisons with people; empty with statements of our own, or with fewer than two scores."""

    def share(self, score: float) -> float:
        """Rescale a score from 0, the lowest possible one, to 1, the highest."""
        return (score - self.lowest) / (self.highest - self.lowest)


def score_rows(world: Questionnaire, instruments: Iterable[Instrument], agent_ids: Sequence[int]) -> list[ScoreRow]:
    """Score all administrations that are over.

    Args:
        world: The answers.
        instruments: The questionnaires to score.
        agent_ids: Mesa `unique_id`s of the respondents.

    Returns:
        One row a subscale, over all respondents and administrations.
    """
    rows: list[ScoreRow] = []
    over = range(1, world.administration)
    for instrument in instruments:
        runs = [world.scores(instrument, agent_id, step) for agent_id in agent_ids for step in over]
        for subscale in instrument.subscales:
            scores = [score for run in runs if (score := run[subscale.name]) is not None]
            rows.append(_row(instrument, subscale, summary(scores), len(runs) - len(scores)))
    return rows


def _row(instrument: Instrument, subscale: Subscale, found: Summary, lacking: int) -> ScoreRow:
    norms = subscale.norms if instrument.is_original and found.n > 1 else ()
    return ScoreRow(
        instrument.name,
        subscale.name,
        instrument.group,
        len(subscale.items),
        found.mean,
        found.mean / subscale.factor * (len(subscale.items) if subscale.mode == "mean" else 1),
        found.sd,
        found.n,
        lacking,
        *instrument.score_range(subscale),
        instrument.random_mean(subscale),
        instrument.random_sd(subscale),
        tuple(AgainstNorm(norm, compare(found, Summary(norm.mean, norm.sd, norm.n), ALPHA)) for norm in norms),
    )


def score_table(scores: Iterable[ScoreRow]) -> pd.DataFrame:
    """Return scores as a table, a row for each subscale and norm; without norms, a row for each subscale."""
    rows: list[dict[str, object]] = []
    for row in scores:
        fields: dict[str, object] = {name: value for name, value in vars(row).items() if name != "norms"}
        for against in row.norms or (None,):
            norm = {} if against is None else {f"norm_{name}": value for name, value in vars(against.norm).items()}
            test = {} if against is None else {name: getattr(against.test, name) for name in ("relation", "t", "t_p")}
            rows.append({**fields, **norm, **test})
    return pd.DataFrame(rows)


def summary_of(scores: Iterable[ScoreRow], totals: ItemCount, n_straight: int = 0) -> str:
    """Describe which scores lie furthest from chance, and what could not be scored.

    Args:
        scores: The scores of a run.
        totals: Counts of all its items.
        n_straight: Number of questionnaires with reversed items that hold one number throughout.
    """
    rows = [row for row in scores if row.n]
    rows.sort(key=lambda row: -abs(row.mean - row.random_mean) / (row.highest - row.lowest))
    lines = [
        f"{row.instrument}: {row.subscale}: {row.mean:.2f} (possible {row.lowest:g} to {row.highest:g}; "
        f"at random {row.random_mean:g})" + "".join(f"; {one.test.relation} {one.norm.group}" for one in row.norms)
        for row in rows[:MAX_LINES]
    ]
    ending = (
        f"Of {counted(totals.asked, 'item')}, {totals.answered} were answered; not on the scale: "
        f"{totals.out_of_range}, could not be read: {totals.unparsable}, missing: {totals.missing}."
    )
    if n_straight:
        ending += (
            f" {counted(n_straight, 'questionnaire')} with reversed items {'hold' if n_straight > 1 else 'holds'} one "
            "number throughout, which scores as a balanced person does; try fewer items a request (per_request=5)."
        )
    return "\n".join(["The scores furthest from chance:", *lines, ending])
