"""Pages for models whose agents think, modelled on Mesa's `SolaraViz`."""

from mesa_llm.viz.cost import CostMeter
from mesa_llm.viz.figures import Measures, drawn_by, finish
from mesa_llm.viz.gate import steady
from mesa_llm.viz.human import HumanPanel
from mesa_llm.viz.inspector import AgentInspector
from mesa_llm.viz.interview import InterviewForm
from mesa_llm.viz.markup import Markup, markup
from mesa_llm.viz.page import LLMPage
from mesa_llm.viz.runner import Runner
from mesa_llm.viz.space import Space, network_plot
from mesa_llm.viz.style import Figure
from mesa_llm.viz.tables import ActionTable, EventLog, LackingAnswers

__all__ = [
    "ActionTable",
    "AgentInspector",
    "CostMeter",
    "EventLog",
    "Figure",
    "HumanPanel",
    "InterviewForm",
    "LLMPage",
    "LackingAnswers",
    "Markup",
    "Measures",
    "Runner",
    "Space",
    "drawn_by",
    "finish",
    "markup",
    "network_plot",
    "steady",
]
