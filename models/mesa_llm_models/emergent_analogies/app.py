"""The page of EmergentAnalogies: `mesa-llm app models/mesa_llm_models/emergent_analogies/app.py`."""

from __future__ import annotations

from mesa_llm.text import one_line
from mesa_llm.viz import LLMPage, MissingAnswers, drawn_by, table_of
from mesa_llm_models.emergent_analogies.charts import accuracy_chart, kind_chart
from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel


def answer_cells(model: EmergentAnalogiesModel) -> list[tuple[str, ...]]:
    """List the answers, newest first, wrong ones with the right answer."""
    return [
        (
            problem.label,
            one_line(problem.text, 120),
            one_line(text, 60) or "(empty)",
            "right" if is_right else "wrong" if problem.is_readable(text) else "unreadable",
            "" if is_right else problem.solution,
        )
        for problem, text, is_right in reversed(model.verdicts())
    ]


COLUMNS = ("Problem", "Question", "Answer", "Verdict", "Solution")

page = LLMPage(
    EmergentAnalogiesModel,
    components=[
        drawn_by(accuracy_chart),
        (drawn_by(kind_chart), "Data", "Types"),
        (table_of(answer_cells, COLUMNS, nothing="No answer yet.", max_rows=100), "Data", "Answers"),
        (MissingAnswers, "Data", "Missing answers"),
    ],
    name="Emergent analogies",
)
