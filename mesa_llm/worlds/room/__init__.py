"""A room in which people talk, one at a time or all at once, and may keep silent."""

from mesa_llm.worlds.room.clock import Clock
from mesa_llm.worlds.room.facts import RoomFacts
from mesa_llm.worlds.room.rules import (
    Agreement,
    AllOf,
    EndRule,
    EveryoneSilent,
    JudgedAgreement,
    MaxLines,
    MaxTime,
    MaxTurns,
)
from mesa_llm.worlds.room.state import Line, Manner, Member, Ruling, Silence, SurveyAnswer
from mesa_llm.worlds.room.world import Room, Rules, Verdict, Wish

__all__ = [
    "Agreement",
    "AllOf",
    "Clock",
    "EndRule",
    "EveryoneSilent",
    "JudgedAgreement",
    "Line",
    "Manner",
    "MaxLines",
    "MaxTime",
    "MaxTurns",
    "Member",
    "Room",
    "RoomFacts",
    "Rules",
    "Ruling",
    "Silence",
    "SurveyAnswer",
    "Verdict",
    "Wish",
]
