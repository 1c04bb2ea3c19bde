"""The page of PsychoBench: `mesa-llm app models/mesa_llm_models/psychobench/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, MissingAnswers, Row, drawn_by, steady
from mesa_llm_models.psychobench.charts import interest_figure, interval_figure, radar_figure
from mesa_llm_models.psychobench.model import PsychoBenchModel


@component
def Scores(model: PsychoBenchModel) -> None:
    """Show every score beside chance and norms.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        rows = [
            Row(
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
            )
            for row in model.scores()
        ]
    columns = ("Questionnaire", "Score", "Mean", "SD", "Scored", "Not scored", "Possible", "At random", "People")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="Nothing is scored yet.")


page = LLMPage(
    PsychoBenchModel,
    components=[
        drawn_by(radar_figure),
        drawn_by(interval_figure),
        drawn_by(interest_figure),
        (Scores, "Scores"),
        (MissingAnswers, "Items"),
    ],
    name="PsychoBench",
)
