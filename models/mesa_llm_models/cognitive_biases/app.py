"""The page of CognitiveBiases: `mesa-llm app models/mesa_llm_models/cognitive_biases/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.viz import LLMPage, Markup, MissingAnswers, Row, drawn_by, steady
from mesa_llm_models.cognitive_biases.charts import bias_figure
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel


@component
def Scores(model: CognitiveBiasesModel) -> None:
    """List the scores of each bias.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        scores = model.scores()
    rows = [
        Row(
            (
                one.bias,
                f"{one.mean:+.2f}",
                f"{one.mean_absolute:.2f}",
                f"{one.random:+.2f}",
                str(one.n),
                str(one.n_invalid),
            )
        )
        for one in scores
        if one.n or one.n_invalid
    ]
    columns = ("Bias", "Mean", "Mean size", "Random", "Valid tests", "Invalid")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="No test yet.")


page = LLMPage(
    CognitiveBiasesModel,
    components=[drawn_by(bias_figure), (Scores, "Scores"), (MissingAnswers, "Items")],
    name="Cognitive biases",
)
