"""The page of CognitiveBiases: `mesa-llm app models/mesa_llm_models/cognitive_biases/app.py`."""

from __future__ import annotations

from mesa_llm.viz import LLMPage, MissingAnswers, drawn_by, table_of
from mesa_llm_models.cognitive_biases.charts import bias_chart
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel


def score_cells(model: CognitiveBiasesModel) -> list[tuple[str, ...]]:
    """List the scores of each bias that was tested."""
    return [
        (one.bias, f"{one.mean:+.2f}", f"{one.mean_absolute:.2f}", f"{one.random:+.2f}", f"{one.n}", f"{one.n_invalid}")
        for one in model.scores()
        if one.n or one.n_invalid
    ]


COLUMNS = ("Bias", "Mean", "Mean size", "Random", "Valid tests", "Invalid")

page = LLMPage(
    CognitiveBiasesModel,
    components=[
        drawn_by(bias_chart),
        (table_of(score_cells, COLUMNS, nothing="No test yet."), "Data", "Scores"),
        (MissingAnswers, "Data", "Missing answers"),
    ],
    name="Cognitive biases",
)
