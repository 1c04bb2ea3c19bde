"""The page of EmergentAnalogies: `mesa-llm app models/mesa_llm_models/emergent_analogies/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.text import one_line
from mesa_llm.viz import LLMPage, Markup, MissingAnswers, Row, drawn_by, steady
from mesa_llm_models.emergent_analogies.charts import accuracy_figure, kind_figure
from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel

SHOWN = 100
"""Maximum number of answers that are listed."""


@component
def Verdicts(model: EmergentAnalogiesModel) -> None:
    """List the latest answers, newest first, wrong ones with the right answer.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        verdicts = model.verdicts()
    rows = [
        Row(
            (
                problem.label,
                one_line(problem.text, 120),
                one_line(text, 60) or "(empty)",
                "right" if is_right else "wrong" if problem.is_readable(text) else "unreadable",
                "" if is_right else problem.solution,
            )
        )
        for problem, text, is_right in reversed(verdicts[-SHOWN:])
    ]
    columns = ("Problem", "What was asked", "Answer", "Verdict", "Solution")
    Markup("table.html", columns=columns, rows=rows, more=max(len(verdicts) - SHOWN, 0), nothing="No answer yet.")


page = LLMPage(
    EmergentAnalogiesModel,
    components=[
        drawn_by(accuracy_figure),
        (drawn_by(kind_figure), "Types"),
        (Verdicts, "Answers"),
        (MissingAnswers, "Items"),
    ],
    name="Emergent analogies",
)
