"""The page of PsychoBench: `mesa-llm app models/mesa_llm_models/psychobench/app.py`."""

from __future__ import annotations

from mesa_llm.viz import GivenAnswers, LLMPage, MissingAnswers, drawn_by, table_of
from mesa_llm_models.psychobench.charts import interest_chart, score_chart
from mesa_llm_models.psychobench.model import PsychoBenchModel


def score_cells(model: PsychoBenchModel) -> list[tuple[str, ...]]:
    """List every score beside chance and norms."""
    return [
        (
            row.instrument,
            row.subscale,
            f"{row.mean:.2f}" if row.n else "–",
            f"{row.sd:.2f}" if row.n > 1 else "–",
            f"{row.n}",
            f"{row.lacking}",
            f"{row.lowest:g} – {row.highest:g}",
            f"{row.random_mean:g} ± {row.random_sd:.2f}",
            "; ".join(f"{one.test.relation} {one.norm.group} {one.norm.mean:g}" for one in row.norms) or "–",
        )
        for row in model.scores()
    ]


COLUMNS = ("Questionnaire", "Score", "Mean", "SD", "Scored", "Not scored", "Possible", "At random", "People")

page = LLMPage(
    PsychoBenchModel,
    components=[
        drawn_by(score_chart),
        drawn_by(interest_chart),
        (table_of(score_cells, COLUMNS, nothing="Nothing is scored yet.", max_rows=1000), "Data", "Scores"),
        (GivenAnswers, "Data", "Answers"),
        (MissingAnswers, "Data", "Missing answers"),
    ],
    name="PsychoBench",
)
