"""Pages for models whose agents think, in the way of Mesa's `SolaraViz`."""

from mesa_llm.viz.gate import steady
from mesa_llm.viz.human import HumanPanel
from mesa_llm.viz.inspector import AgentInspector
from mesa_llm.viz.markup import Markup, markup
from mesa_llm.viz.meter import CostMeter
from mesa_llm.viz.page import LLMPage
from mesa_llm.viz.plots import drawn_by, finish
from mesa_llm.viz.runner import Runner
from mesa_llm.viz.space import Space
from mesa_llm.viz.tables import ActionTable, EventLog

__all__ = [
    "ActionTable",
    "AgentInspector",
    "CostMeter",
    "EventLog",
    "HumanPanel",
    "LLMPage",
    "Markup",
    "Runner",
    "Space",
    "drawn_by",
    "finish",
    "markup",
    "steady",
]
