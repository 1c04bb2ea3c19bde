"""Charts of the scores: every score within its range, beside chance and norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mesa_llm.viz.render import COLOURS, GREY, Chart, ChartSeries

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
    shown = rows[:MAX_ROWS]
    is_single = len({row.instrument for row in shown}) == 1
    own = [_interval(row, row.mean, INTERVAL * row.sd / math.sqrt(row.n) if row.n else math.nan) for row in shown]
    people = [
        _interval(row, row.norms[0].norm.mean, row.norms[0].norm.sd) if row.norms else (None, None, None)
        for row in shown
    ]
    series = [
        ChartSeries(
            name="at random",
            values=[row.share(row.random_mean) for row in shown],
            kind="point",
            shape="|",
            colour=GREY,
            labels=[_label(row, row.random_mean) for row in shown],
        )
    ]
    for name, shape, colour, ends in (
        ("people, mean and SD", "D", COLOURS[1], people),
        ("respondents, mean with 95 % interval", "o", COLOURS[0], own),
    ):
        values, low, high = zip(*ends, strict=True)
        scores = [row.norms[0].norm.mean if ends is people and row.norms else row.mean for row in shown]
        labels = [_label(row, score) for row, score in zip(shown, scores, strict=True)]
        if any(value is not None for value in values):
            series.append(
                ChartSeries(
                    name=name,
                    values=values,
                    low=low,
                    high=high,
                    labels=labels,
                    kind="point",
                    shape=shape,
                    colour=colour,
                )
            )
    return Chart(
        title=title,
        series=series,
        names=[row.subscale if is_single else f"{row.instrument}: {row.subscale}" for row in shown],
        is_horizontal=True,
        x="",
        y="from the lowest possible score, 0 %, to the highest, 100 %",
        low=0,
        high=1,
        unit="share",
        note=f"The first {MAX_ROWS} of {len(rows)} scores." if len(rows) > MAX_ROWS else "",
    )


def _interval(row: ScoreRow, mean: float, half: float) -> tuple[float | None, float | None, float | None]:
    """Return a mean and the ends of its interval as shares of the possible range; None where there is none."""
    if math.isnan(mean):
        return None, None, None
    if math.isnan(half):
        return row.share(mean), None, None
    return row.share(mean), row.share(mean - half), row.share(mean + half)


def _label(row: ScoreRow, score: float) -> str:
    return f"{score:.2f} between {row.lowest:g} and {row.highest:g}"
