"""Mesa models with LLM agents: `LLMModel`, its options, and the bridge between its worlds."""

from mesa_llm.model.bridge import Bridge
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import LLMOptions

__all__ = ["Bridge", "LLMModel", "LLMOptions"]
