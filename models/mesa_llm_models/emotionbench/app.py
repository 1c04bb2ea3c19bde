"""The page of EmotionBench: `mesa-llm app models/mesa_llm_models/emotionbench/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, MissingAnswers, Row, drawn_by, steady
from mesa_llm_models.emotionbench.charts import change_figure, factor_figure
from mesa_llm_models.emotionbench.model import EmotionBenchModel


@component
def Changes(model: EmotionBenchModel) -> None:
    """List each score by emotion, with its test against the default.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        changes = [one for one in model.changes() if not one.factor]
        chance = {one.name: model.instrument.random_mean(one) for one in model.instrument.subscales}
    rows = [
        Row(
            (
                one.emotion or "all situations",
                one.subscale,
                f"{one.summary.mean:.1f}",
                f"{one.summary.sd:.1f}",
                str(one.summary.n),
                f"{one.change:+.1f}",
                one.relation,
                f"{chance[one.subscale]:g}",
            )
        )
        for one in changes
    ]
    columns = ("Emotion", "Score", "Mean", "SD", "Sheets", "Change", "Relation", "At random")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="No sheet has all its answers yet.")


page = LLMPage(
    EmotionBenchModel,
    components=[
        drawn_by(change_figure),
        (drawn_by(factor_figure), "Situations"),
        (Changes, "Scores"),
        (MissingAnswers, "Items"),
    ],
    name="EmotionBench",
)
