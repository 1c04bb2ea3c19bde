"""The page of EmotionBench: `mesa-llm app models/mesa_llm_models/emotionbench/app.py`."""

from __future__ import annotations

from mesa_llm.viz import GivenAnswers, LLMPage, MissingAnswers, drawn_by, table_of
from mesa_llm_models.emotionbench.charts import change_chart, factor_chart
from mesa_llm_models.emotionbench.model import EmotionBenchModel


def change_cells(model: EmotionBenchModel) -> list[tuple[str, ...]]:
    """List each score by emotion, with its test against the default."""
    chance = {one.name: model.instrument.random_mean(one) for one in model.instrument.subscales}
    return [
        (
            one.emotion or "all situations",
            one.subscale,
            f"{one.summary.mean:.1f}",
            f"{one.summary.sd:.1f}",
            f"{one.summary.n}",
            f"{one.change:+.1f}",
            one.relation,
            f"{chance[one.subscale]:g}",
        )
        for one in model.changes()
        if not one.factor
    ]


COLUMNS = ("Emotion", "Score", "Mean", "SD", "Sheets", "Change", "Relation", "At random")

page = LLMPage(
    EmotionBenchModel,
    components=[
        drawn_by(change_chart),
        (drawn_by(factor_chart), "Data", "Situations"),
        (table_of(change_cells, COLUMNS, nothing="No sheet has all its answers yet."), "Data", "Scores"),
        (GivenAnswers, "Data", "Answers"),
        (MissingAnswers, "Data", "Missing answers"),
    ],
    name="EmotionBench",
)
