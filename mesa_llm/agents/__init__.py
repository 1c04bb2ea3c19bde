"""Agents whose mind is a language model: mixins, `LLMAgent`, designs."""

from mesa_llm.agents.agent import LLMAgent, LLMMixin, Mind, ToolMixin
from mesa_llm.agents.design import AgentDesign
from mesa_llm.agents.mailbox import Mailbox, TalkMixin

__all__ = ["AgentDesign", "LLMAgent", "LLMMixin", "Mailbox", "Mind", "TalkMixin", "ToolMixin"]
