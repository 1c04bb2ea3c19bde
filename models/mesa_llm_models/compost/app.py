"""The page of CoMPosT: `mesa-llm app models/mesa_llm_models/compost/app.py`."""

from __future__ import annotations

from mesa_llm.text import one_line
from mesa_llm.viz import LLMPage, MissingAnswers, Row, drawn_by, table_of
from mesa_llm_models.compost.charts import exaggeration_chart, individuation_chart, plane_chart, topic_chart
from mesa_llm_models.compost.model import CompostModel

MAX_CHARACTERS = 300
"""Maximum number of characters of a text on the page."""


def text_cells(model: CompostModel) -> list[Row]:
    """List what the personas wrote, by persona and topic."""
    labels = {agent.unique_id: agent.label for agent in model.agents}
    rows = [
        Row(
            (labels[place.agent_id], place.sheet.rpartition(" #")[0], one_line(str(text), MAX_CHARACTERS)),
            agent=place.agent_id,
            step=place.administration,
        )
        for place, answers in model.world.answers.items()
        for text in answers.values()
    ]
    return sorted(rows, key=lambda row: row.cells[:2])


page = LLMPage(
    CompostModel,
    components=[
        drawn_by(plane_chart),
        drawn_by(individuation_chart),
        drawn_by(exaggeration_chart),
        (drawn_by(topic_chart), "Data", "Topics"),
        (table_of(text_cells, ("Persona", "Topic", "Text"), nothing="Nobody has written yet."), "Data", "Texts"),
        (MissingAnswers, "Data", "Missing answers"),
    ],
    name="CoMPosT",
)
