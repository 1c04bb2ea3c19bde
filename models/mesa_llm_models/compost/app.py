"""The page of CoMPosT: `mesa-llm app models/mesa_llm_models/compost/app.py`."""

from __future__ import annotations

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.text import one_line
from mesa_llm.viz import LLMPage, Markup, MissingAnswers, Row, drawn_by, steady
from mesa_llm_models.compost.charts import interval_figure, plane_figure, topic_figure
from mesa_llm_models.compost.model import CompostModel

MAX_ROWS = 200
"""Maximum number of texts on the page."""

MAX_CHARACTERS = 300
"""Maximum number of characters of a text on the page."""


@component
def Texts(model: CompostModel) -> None:
    """Show what the personas wrote, by persona and topic.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        corpus = model.corpus
    rows = [Row((one.persona, one.topic, one_line(one.text, MAX_CHARACTERS))) for one in corpus[:MAX_ROWS]]
    more = max(len(corpus) - MAX_ROWS, 0)
    Markup("table.html", columns=("Persona", "Topic", "Text"), rows=rows, more=more, nothing="Nobody has written yet.")


page = LLMPage(
    CompostModel,
    components=[
        drawn_by(plane_figure),
        drawn_by(interval_figure),
        (drawn_by(topic_figure), "Topics"),
        (Texts, "Texts"),
        (MissingAnswers, "Items"),
    ],
    name="CoMPosT",
)
