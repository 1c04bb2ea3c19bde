"""The description of a model: its question, its measures, and what its agents see and can do."""

from __future__ import annotations

import markdown
import solara
from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.render.readme import Readme, first_observation
from mesa_llm.viz.session.rw_lock import steady


@component
def Question(readme: Readme) -> None:
    """Show the model's question and measures.

    Args:
        readme: Text about the model.
    """
    if readme.question:
        Markup("model_question.html", readme=readme)


@component
def About(model: LLMModel) -> None:
    """Show the description of a model, and what its first agent reads, sees and can do now.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        agent = next(iter(llm_agents(model)), None)
        instructions, seen, actions = ("", "", []) if agent is None else first_observation(agent)
    readme = Readme.of(type(model))
    if readme.text:
        html = markdown.markdown(readme.text, extensions=["tables", "fenced_code"])  # Solara's own loads KaTeX
        solara.HTML(tag="div", unsafe_innerHTML=html, classes=["mesa-llm", "mesa-llm-readme"])
    Markup("about.html", instructions=instructions, seen=seen, actions=actions, name=type(model).__name__)
