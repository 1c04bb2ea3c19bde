"""The frozen records that pass between agents, engine, worlds and the run log."""

from mesa_llm.records.decisions import (
    ActionResult,
    Decision,
    Event,
    Failure,
    LazyObservation,
    Message,
    Observation,
    Outcome,
    options_for,
)
from mesa_llm.records.requests import (
    BatchIntent,
    ChatMessage,
    Prompt,
    Reply,
    Request,
    Role,
    Salt,
    ToolCall,
    ToolSpec,
    Usage,
)

__all__ = [
    "ActionResult",
    "BatchIntent",
    "ChatMessage",
    "Decision",
    "Event",
    "Failure",
    "LazyObservation",
    "Message",
    "Observation",
    "Outcome",
    "Prompt",
    "Reply",
    "Request",
    "Role",
    "Salt",
    "ToolCall",
    "ToolSpec",
    "Usage",
    "options_for",
]
