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
from mesa_llm.records.images import Image
from mesa_llm.records.requests import (
    BatchIntent,
    ChatMessage,
    ChoiceSituation,
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
    "ChoiceSituation",
    "Decision",
    "Event",
    "Failure",
    "Image",
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
