"""How much each person talks, the gaps between messages, and how attitudes move."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pandas as pd

from mesa_llm.worlds.room.clock import seconds_of
from mesa_llm_models.discussion.session import Session


def talk_table(sessions: Iterable[Session]) -> pd.DataFrame:
    """Compute how much each person talks.

    Args:
        sessions: The rooms.

    Returns:
        One row a person: room, name, party, messages, share (of the room's messages), words, silences, called (number
        of times called on), gap_s (mean seconds from one own message to the next; None with fewer than two messages
        with a time).
    """
    rows: list[dict[str, Any]] = []
    for session in sessions:
        lines = session.lines()
        for person in session.persons:
            own = [line for line in lines if line.speaker_id == person.unique_id]
            n_silent = sum(silence.agent_id == person.unique_id for silence in session.room.silences)
            rows.append(
                {
                    "room": session.room.name,
                    "name": person.plan.name,
                    "party": person.plan.party,
                    "messages": len(own),
                    "share": len(own) / len(lines) if lines else 0.0,
                    "words": sum(len(line.text.split()) for line in own),
                    "silences": n_silent,
                    "called": len(own) + n_silent,
                    "gap_s": _mean_gap([line.time for line in own if line.time]),
                }
            )
    return pd.DataFrame(rows)


def _mean_gap(times: list[str]) -> float | None:
    seconds = [seconds_of(time) for time in times]
    gaps = [(after - before) % 86_400 for before, after in pairwise(seconds)]
    return sum(gaps) / len(gaps) if gaps else None


def attitudes(sessions: Iterable[Session], question: str | None = None) -> pd.DataFrame:
    """Collect the numeric answers to private survey questions; a missing answer has no row.

    Args:
        sessions: The rooms.
        question: Id of the question; None: all with numeric answers.

    Returns:
        One row an answer: room, question, after (number of messages before it), name, party, answer.
    """
    columns = ["room", "question", "after", "name", "party", "answer"]
    rows: list[tuple[Any, ...]] = []
    for session in sessions:
        parties = {person.unique_id: person.plan.party for person in session.persons}
        for answer in session.room.answers:
            is_number = isinstance(answer.answer, int | float) and not isinstance(answer.answer, bool)
            if is_number and question in (None, answer.question):
                party = parties[answer.agent_id]
                rows.append((session.room.name, answer.question, answer.after, answer.name, party, answer.answer))
    return pd.DataFrame(rows, columns=columns)


def missing_answers(sessions: Iterable[Session]) -> pd.DataFrame:
    """Count all answers and the missing ones, by question.

    Args:
        sessions: The rooms.

    Returns:
        One row a question: question, answers (the missing ones included), missing.
    """
    rows = [(one.question, one.answer is None) for session in sessions for one in session.room.answers]
    table = pd.DataFrame(rows, columns=["question", "missing"])
    return table.groupby("question")["missing"].agg(answers="size", missing="sum").reset_index()
