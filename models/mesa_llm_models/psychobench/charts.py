"""Charts of the scores: every score within its range, beside chance and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries

if TYPE_CHECKING:
    from mesa_llm_models.psychobench.model import PsychoBenchModel
    from mesa_llm_models.psychobench.scores import ScoreRow

MAX_ROWS = 60
"""Maximum number of scores in a chart."""

INTERVAL = 1.96
"""Standard errors on each side of a mean."""


def score_chart(model: PsychoBenchModel) -> Chart:
    """Return the mean of each score with its 95 % interval, beside chance and the mean and SD of people."""
    rows = [row for row in model.scores() if row.instrument not in _wide(model)] or model.scores()
    return _chart(rows, "Scores on each questionnaire")


def interest_chart(model: PsychoBenchModel) -> Chart:
    """Return the scores on the questionnaires with more than twelve of them."""
    wide = _wide(model)
    rows = [row for row in model.scores() if row.instrument in wide]
    if not rows:
        return Chart(title="Interests", series=[], note="No questionnaire here has more than twelve scores.")
    return _chart(rows, f"Scores on {', '.join(wide)}")


def _wide(model: PsychoBenchModel) -> list[str]:
    return [one.name for one in model.instruments if len(one.subscales) > 12]


def _chart(rows: list[ScoreRow], title: str) -> Chart:
    top = rows[:MAX_ROWS]
    is_single = len({row.instrument for row in top}) == 1
    norms = [row.norms[0].norm if row.norms else None for row in top]
    means, deviations = zip(*((norm.mean, norm.sd) if norm else (math.nan, math.nan) for norm in norms), strict=True)
    halves = [INTERVAL * row.sd / math.sqrt(row.n) if row.n else math.nan for row in top]
    none = [math.nan] * len(top)
    series = [
        _means("at random", top, [row.random_mean for row in top], none, shape="|", colour=GREY),
        _means("people, mean and SD", top, means, deviations, shape="D", colour=COLOURS[1]),
        _means("respondents, mean with 95 % interval", top, [row.mean for row in top], halves, colour=COLOURS[0]),
    ]
    return Chart(
        title=title,
        series=[each for each in series if each.ends],
        names=[row.subscale if is_single else f"{row.instrument}: {row.subscale}" for row in top],
        is_horizontal=True,
        y="from the lowest possible score, 0 %, to the highest, 100 %",
        low=0,
        high=1,
        unit="share",
        note=f"The first {MAX_ROWS} of {len(rows)} scores." if len(rows) > MAX_ROWS else "",
    )


def _means(
    name: str, rows: Sequence[ScoreRow], means: Sequence[float], halves: Sequence[float], **look: Any
) -> ChartSeries:
    """Return a mean for each score with an interval of so much on each side, both NaN where there is none."""
    every = list(zip(rows, means, halves, strict=True))
    return ChartSeries(
        name=name,
        values=[_share(row, mean) for row, mean, _ in every],
        low=[_share(row, mean - half) for row, mean, half in every],
        high=[_share(row, mean + half) for row, mean, half in every],
        labels=[f"{mean:.2f} between {row.lowest:g} and {row.highest:g}" for row, mean, _ in every],
        kind="point",
        **look,
    )


def _share(row: ScoreRow, score: float) -> float | None:
    return None if math.isnan(score) else row.share(score)
