"""The page of EmergentAnalogies: `mesa-llm app models/mesa_llm_models/emergent_analogies/app.py`."""

from __future__ import annotations

from mesa_llm.text import one_line
from mesa_llm.viz import LLMPage, MissingAnswers, Row, drawn_by, table_of
from mesa_llm_models.emergent_analogies.charts import accuracy_chart, kind_chart
from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel


def answer_cells(model: EmergentAnalogiesModel) -> list[Row]:
    """List the answers, newest first, wrong ones with the right answer."""
    return [
        Row(
            (
                problem.label,
                one_line(problem.text, 120),
                one_line(text, 60) or "(empty)",
                "right" if is_right else "wrong" if problem.is_readable(text) else "unreadable",
                "" if is_right else problem.solution,
            ),
            agent=place.agent_id,
            step=place.administration,
        )
        for place, (problem, text, is_right) in reversed(model.verdict_by_answer().items())
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
