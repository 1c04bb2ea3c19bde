"""How much each person talks, the gaps between messages, and how attitudes move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from mesa_llm import ConfigError
from mesa_llm.statistics import mean_intervals
from mesa_llm_models.discussion.session import Session
from mesa_llm_models.discussion.world.clock import seconds_of


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


# -- over rooms and runs


def curve(models: Sequence[Any], question: str | None = None) -> pd.DataFrame:
    """Compute the mean attitude of each party after each number of messages, with intervals over rooms.

    Args:
        models: Models that have run.
        question: Id of the question; None: the first that is answered by number.

    Returns:
        One row a party and number of messages, by that number: party, after (number of messages), mean, low and high
        (95 %), rooms.
    """
    return curve_of([attitudes(model.sessions, question) for model in models], question)


def curve_of(answers: Sequence[pd.DataFrame], question: str | None = None) -> pd.DataFrame:
    """Compute what `curve` does, from the answers of each run.

    Args:
        answers: Table of `attitudes` of each run.
        question: Id of the question; None: the first.
    """
    table = _of_runs(answers, question)
    rows: list[dict[str, Any]] = []
    for (party, after), group in table.groupby(["party", "after"], sort=False):
        means = group.groupby(["run", "room"])["answer"].mean().to_numpy(float)
        mean, low, high = (float(one[0]) for one in mean_intervals(means[:, None]))
        rows.append({"party": party, "after": after, "mean": mean, "low": low, "high": high, "rooms": len(means)})
    rows.sort(key=lambda row: row["after"])
    return pd.DataFrame(rows, columns=["party", "after", "mean", "low", "high", "rooms"])


def choice_shares(models: Sequence[Any], question: str | None = None) -> pd.DataFrame:
    """Compute the shares of the answers to a question with choices, after each number of messages.

    Args:
        models: Models that have run.
        question: Id of the question; None: the first that has choices.

    Returns:
        One row a choice and number of messages: question, answer, after (number of messages), share (of the answers
        that are not missing), answers (their number); empty if no question has choices.
    """
    questions = [one for model in models for one in model.plan.experiment.survey_questions if one.choices]
    survey = next((one for one in questions if question in (None, one.id)), None)
    columns = ["question", "answer", "after", "share", "answers"]
    if survey is None:
        return pd.DataFrame([], columns=columns)
    by_number: dict[int, list[Any]] = {}
    for one in (one for model in models for session in model.sessions for one in session.room.answers):
        if one.question == survey.id and one.answer is not None:
            by_number.setdefault(one.after, []).append(one.answer)
    rows = [
        (survey.id, choice, after, answers.count(choice) / len(answers), len(answers))
        for after, answers in sorted(by_number.items())
        for choice in survey.choices
    ]
    return pd.DataFrame(rows, columns=columns)


def drift(models: Sequence[Any], question: str | None = None) -> pd.DataFrame:
    """Compute how far each person's attitude moved, from its first answer to its last.

    Args:
        models: Models that have run.
        question: Id of the question; None: the first that is answered by number.

    Returns:
        One row a person and room: run, room, name, party, first, last, moved (last minus first).

    Raises:
        ConfigError: If nothing was answered by number.
    """
    return drift_of([attitudes(model.sessions, question) for model in models], question)


def drift_of(answers: Sequence[pd.DataFrame], question: str | None = None) -> pd.DataFrame:
    """Compute what `drift` does, from the answers of each run.

    Args:
        answers: Table of `attitudes` of each run.
        question: Id of the question; None: the first.

    Raises:
        ConfigError: If nothing was answered by number.
    """
    table = _of_runs(answers, question)
    if table.empty:
        raise ConfigError("nobody answered by number; give a survey question a scale")
    groups = table.groupby(["run", "room", "name", "party"], sort=False)["answer"]
    ends = groups.agg(first="first", last="last").reset_index()
    return ends.assign(moved=ends["last"] - ends["first"])


def talk_shares(models: Iterable[Any]) -> pd.DataFrame:
    """Compute how much each person talks: means over rooms and runs.

    Args:
        models: Models that have run.

    Returns:
        One row a person: name, share (of the messages), share_se (its standard error), spoke (share of the times called
        on), gap_s (mean seconds from one own message to the next), rooms.
    """
    return talk_shares_of([talk_table(model.sessions) for model in models])


def talk_shares_of(talks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Compute what `talk_shares` does, from the talk of each run.

    Args:
        talks: Table of `talk_table` of each run.
    """
    table = pd.concat(talks, ignore_index=True)
    table["spoke"] = table["messages"] / table["called"].where(table["called"] > 0)
    table["gap_s"] = table["gap_s"].astype(float)
    means = table.groupby("name", sort=False).agg(
        share=("share", "mean"),
        share_se=("share", "sem"),
        spoke=("spoke", "mean"),
        gap_s=("gap_s", "mean"),
        rooms=("share", "size"),
    )
    return means.reset_index()


def _of_runs(answers: Sequence[pd.DataFrame], question: str | None) -> Any:
    """Put the answers of several runs together; without a question, those to the first."""
    table: Any = pd.concat([one.assign(run=index) for index, one in enumerate(answers)], ignore_index=True)
    return table[table["question"] == table["question"].iloc[0]] if question is None and not table.empty else table
