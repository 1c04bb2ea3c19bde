"""A room where people talk, one at a time or all at once, and may keep silent, do something, or leave."""

from mesa_llm_models.discussion.world.clock import Clock
from mesa_llm_models.discussion.world.facts import RoomFacts
from mesa_llm_models.discussion.world.hosts import Everyone, Host, Moderated, RandomHost, RoundRobin
from mesa_llm_models.discussion.world.rules import (
    Agreement,
    AllOf,
    Conversation,
    EndRule,
    EveryoneSilent,
    JudgedAgreement,
    JustLeft,
    MaxLines,
    MaxTime,
    MaxTurns,
    Stale,
    TooFewLeft,
)
from mesa_llm_models.discussion.world.state import Kind, Line, Manner, Member, Move, Ruling, Silence, SurveyAnswer
from mesa_llm_models.discussion.world.world import Room, Verdict, Wish

__all__ = [
    "Agreement",
    "AllOf",
    "Clock",
    "Conversation",
    "EndRule",
    "Everyone",
    "EveryoneSilent",
    "Host",
    "JudgedAgreement",
    "JustLeft",
    "Kind",
    "Line",
    "Manner",
    "MaxLines",
    "MaxTime",
    "MaxTurns",
    "Member",
    "Moderated",
    "Move",
    "RandomHost",
    "Room",
    "RoomFacts",
    "RoundRobin",
    "Ruling",
    "Silence",
    "Stale",
    "SurveyAnswer",
    "TooFewLeft",
    "Verdict",
    "Wish",
]
