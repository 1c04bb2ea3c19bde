"""Draws a model's space with Mesa's renderer, anew for each model."""

from __future__ import annotations

from collections.abc import Callable

from mesa.visualization.solara_viz import SpaceRendererComponent
from mesa.visualization.space_renderer import SpaceRenderer
from reacton import use_memo
from solara.core import component

from mesa_llm.model import LLMModel
from mesa_llm.viz.held import held

MakeRenderer = Callable[[LLMModel], SpaceRenderer]
"""Sets a renderer up for a model: `SpaceRenderer(model).setup_agents(portray)`."""


@component
def Space(model: LLMModel, renderer: MakeRenderer) -> None:
    """Show the space of a model.

    Args:
        model: The model; its space is `model.grid` or `model.space`.
        renderer: Sets a renderer up for it.
    """
    held(SpaceRendererComponent(model, use_memo(lambda: rendered(renderer, model), [model])), model)


def rendered(renderer: MakeRenderer, model: LLMModel) -> SpaceRenderer:
    """Set a renderer up and draw with it once: what has never been drawn, Mesa leaves out without a word.

    Args:
        renderer: Sets a renderer up for a model.
        model: The model.
    """
    made = renderer(model)
    made.render()
    return made
