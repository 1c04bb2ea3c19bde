"""Scores of the respondents, beside what chance gives and what people score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from mesa_llm.worlds.questionnaire import Comparison, Instrument, Norm, Subscale, Summary, compare, summary

if TYPE_CHECKING:
    from models.psychobench.model import PsychoBenchModel

ALPHA = 0.01
"""Level of the tests against norms."""

MAX_LINES = 12
"""Maximum number of scores that the story tells."""


@dataclass(frozen=True)
class AgainstNorm:
    """How scores compare with those of a group of people."""

    norm: Norm
    """The group."""

    test: Comparison
    """The comparison."""


@dataclass(frozen=True)
class ScoreRow:
    """One subscale, over all respondents and administrations."""

    instrument: str
    """Name of the instrument."""

    subscale: str
    """Name of the subscale."""

    group: str
    """What the instrument is about."""

    n_items: int
    """Number of items."""

    mean: float
    """Mean score; NaN without any."""

    sd: float
    """Sample standard deviation of the scores."""

    n: int
    """Administrations in which every item has an answer."""

    lacking: int
    """Administrations in which one has none; they have no score."""

    lowest: float
    """Lowest possible score."""

    highest: float
    """Highest possible score."""

    random_mean: float
    """Expected score of someone who answers at random."""

    random_sd: float
    """Standard deviation of that score."""

    norms: tuple[AgainstNorm, ...]
    """Comparisons with people; none with statements of our own, or fewer than two scores."""

    def share(self, score: float) -> float:
        """Return where a score lies between the lowest possible, 0, and the highest, 1."""
        return (score - self.lowest) / (self.highest - self.lowest)


def score_rows(model: PsychoBenchModel) -> list[ScoreRow]:
    """Score all administrations that are over.

    Args:
        model: The model.
    """
    rows: list[ScoreRow] = []
    over = range(1, model.world.administration)
    for instrument in model.instruments:
        runs = [model.world.scores(instrument, agent.unique_id, step) for agent in model.agents for step in over]
        for subscale in instrument.subscales:
            given = [score for run in runs if (score := run[subscale.name]) is not None]
            rows.append(_row(instrument, subscale, summary(given), len(runs) - len(given)))
    return rows


def _row(instrument: Instrument, subscale: Subscale, found: Summary, lacking: int) -> ScoreRow:
    norms = subscale.norms if instrument.is_original and found.n > 1 else ()
    return ScoreRow(
        instrument.name,
        subscale.name,
        instrument.group,
        len(subscale.items),
        found.mean,
        found.sd,
        found.n,
        lacking,
        *instrument.score_range(subscale),
        instrument.random_mean(subscale),
        instrument.random_sd(subscale),
        tuple(AgainstNorm(norm, compare(found, Summary(norm.mean, norm.sd, norm.n), ALPHA)) for norm in norms),
    )


def score_table(model: PsychoBenchModel) -> pd.DataFrame:
    """Return the scores as a table, a row for each subscale and norm; without norms, a row for each subscale."""
    rows: list[dict[str, object]] = []
    for row in model.scores():
        fields: dict[str, object] = {name: value for name, value in vars(row).items() if name != "norms"}
        for against in row.norms or (None,):
            norm = {} if against is None else {f"norm_{name}": value for name, value in vars(against.norm).items()}
            test = {} if against is None else {name: getattr(against.test, name) for name in ("relation", "t", "t_p")}
            rows.append({**fields, **norm, **test})
    return pd.DataFrame(rows)


def tell(model: PsychoBenchModel) -> str:
    """Describe which scores lie furthest from chance, and what could not be scored.

    Args:
        model: The model, after a run.
    """
    rows = [row for row in model.scores() if row.n]
    rows.sort(key=lambda row: -abs(row.mean - row.random_mean) / (row.highest - row.lowest))
    lines = [
        f"{row.instrument}: {row.subscale}: {row.mean:.2f} (possible {row.lowest:g} to {row.highest:g}; "
        f"at random {row.random_mean:g})" + "".join(f"; {one.test.relation} {one.norm.group}" for one in row.norms)
        for row in rows[:MAX_LINES]
    ]
    totals = model.totals
    ending = (
        f"Of {totals.asked} items, {totals.answered} were answered; {totals.out_of_range} answers were not on the "
        f"scale, {totals.unparsable} could not be read, {totals.missing} are missing."
    )
    return "\n".join(["The scores furthest from chance:", *lines, ending])
