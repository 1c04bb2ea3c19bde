"""The page of the discussion: `mesa-llm app models/mesa_llm_models/discussion/app.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.charts import COLOURS
from mesa_llm.model.scenario import controls
from mesa_llm.text import counted
from mesa_llm.viz import Clickable, LLMPage, Row, drawn_by, steady, table_of
from mesa_llm_models.discussion.charts import attitude_chart, talk_chart
from mesa_llm_models.discussion.config import STUDIES
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.session import Session
from mesa_llm_models.discussion.world import Silence

CHAT = Path(__file__).parent / "templates" / "chat.html"

MAX_ITEMS = 200
"""Maximum number of messages and silences that the page shows."""


def chat_items(session: Session) -> list[dict[str, Any]]:
    """Return the latest messages and silences of a room, oldest first, as values of the template.

    Args:
        session: The room.
    """
    room = session.room
    names = {one.agent_id: one.name for one in room.members.values()}
    colours = {agent_id: COLOURS[index % len(COLOURS)] for index, agent_id in enumerate(room.members)}
    items: list[dict[str, Any]] = []
    for one in room.timeline[-MAX_ITEMS:]:
        if isinstance(one, Silence):
            turn = room.lines[one.after - 1].turn + 1 if one.after else 1
            item = {"name": one.name, "text": one.reason, "draft": one.draft, "agent": one.agent_id, "turn": turn}
        else:
            hearers = ", ".join(names[viewer] for viewer in one.viewers or () if viewer != one.speaker_id)
            item = {"name": one.speaker, "text": one.text, "to": hearers, "survey": one.survey}
            item |= {"colour": colours[one.speaker_id], "agent": one.speaker_id, "turn": one.turn}
        items.append({**item, "time": one.time, "is_silence": isinstance(one, Silence)})
    return items


@component
def Chat(model: DiscussionModel) -> None:
    """Show a room as a chat: what was said, and who kept silent and why.

    Args:
        model: The model.
    """
    update_counter.get()
    picked, pick = use_state("room")
    with steady(model):
        rooms = {session.room.name: session for session in model.sessions}
        session = rooms.get(picked) or model.sessions[0]
        room = session.room
        values: dict[str, Any] = {
            "topic": room.topic.strip(),
            "lines": counted(len(room.lines), "message"),
            "silences": counted(len(room.silences), "silence"),
            "now": room.clock.now,
            "end": f"Over: {session.end}." if session.end else "",
            "items": chat_items(session),
        }
    if len(rooms) > 1:
        solara.Select("Room", values=list(rooms), value=room.name, on_value=pick, dense=True)
    Clickable(CHAT, model, **values)


def answer_rows(model: DiscussionModel) -> list[Row]:
    """List the answers given in private, and the rulings of the judges, newest first."""
    rows: list[tuple[int, Row]] = []
    for room in (session.room for session in model.sessions):
        answers = [(one.after, one.name, one.question, one.answer, one.failure, one.agent_id) for one in room.answers]
        for ruling in room.rulings:
            agreed = None if ruling.agreed is None else f"{'yes' if ruling.agreed else 'no'}: {ruling.reason}"
            answers.append((ruling.after, "(the judge)", "agreement", agreed, ruling.reason, 0))
        for after, who, question, answer, failure, agent_id in answers:
            text = f"missing: {failure}" if answer is None else f"{answer}"
            turn = room.lines[after - 1].turn if after else 0
            cells, mood = (room.name, f"{after}", who, question, text), "failed" if answer is None else ""
            rows.append((after, Row(cells, mood, agent_id, turn)))
    return [row for _, row in sorted(rows, key=lambda row: -row[0])]


COLUMNS = ("Room", "After messages", "Who", "Question", "Answer")

CHOICES = {"type": "Select", "label": "Discussion", "value": "debate", "values": list(STUDIES)}
"""Discussions that a visitor may choose: no files, as these would be read from the server's disk."""

page = LLMPage(
    DiscussionModel,
    model_params={**controls(DiscussionModel), "config": CHOICES, "people_play": False},
    components=[
        Chat,
        drawn_by(attitude_chart),
        drawn_by(talk_chart),
        (table_of(answer_rows, COLUMNS, nothing="No private question has been asked yet."), "Data", "Private survey"),
    ],
    name="Discussion",
)
