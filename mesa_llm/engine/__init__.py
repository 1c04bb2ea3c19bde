"""From an observation to a decision: access to language models, the engine that asks them, surveys."""

from mesa_llm._deprecated import keep_moved_modules
from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import ByType, Hourly, Turn, one_at_a_time
from mesa_llm.engine.engine import Engine
from mesa_llm.engine.plain import connect
from mesa_llm.engine.survey import Question

__all__ = ["Access", "ByType", "Engine", "Hourly", "Question", "Turn", "connect", "one_at_a_time"]

keep_moved_modules(__name__)
