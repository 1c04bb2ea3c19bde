"""From an observation to a decision: the way to language models, and everything that is asked of them."""

from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import ByType, Hourly, Turn, one_at_a_time
from mesa_llm.engine.engine import Engine
from mesa_llm.engine.plain import connect
from mesa_llm.engine.survey import Question

__all__ = ["Access", "ByType", "Engine", "Hourly", "Question", "Turn", "connect", "one_at_a_time"]
