"""Agents that think with a language model: mixins, `LLMAgent`, designs, and respondents to questionnaires."""

from mesa_llm.agents.agent import LLMAgent, LLMMixin, Mind, Respondent
from mesa_llm.agents.design import AgentDesign
from mesa_llm.agents.mailbox import Mailbox, TalkMixin
from mesa_llm.agents.tools import ToolMixin

__all__ = ["AgentDesign", "LLMAgent", "LLMMixin", "Mailbox", "Mind", "Respondent", "TalkMixin", "ToolMixin"]
