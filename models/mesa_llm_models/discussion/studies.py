"""SAUCE's two case studies: attitudes in a debate across parties, and who speaks when time is short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mesa_llm import ConfigError
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.scores import attitudes, talk_table

MAX_STEPS = 10_000
"""Maximum number of steps of a run of a study."""


def run_rooms(config: str, n_rooms: int = 10, rng: int = 0, max_steps: int = MAX_STEPS, **options: Any) -> Any:
    """Run several rooms of a discussion together, until all are over.

    Args:
        config: `debate`, `trolley`, or a file.
        n_rooms: Number of rooms.
        rng: Seed.
        max_steps: Maximum number of steps, for conversations that may never end.
        **options: Parameters and options of `DiscussionModel`.

    Returns:
        The model, after its run.
    """
    model = DiscussionModel(config=config, n_rooms=n_rooms, rng=rng, **options)
    while model.running and model.time < max_steps:
        model.step()
    return model


def curve(models: Sequence[Any], question: str | None = None, n_resamples: int = 1_000) -> pd.DataFrame:
    """Compute the mean attitude of each party after each number of messages, with bootstrap intervals over rooms.

    Args:
        models: Models that have run.
        question: Id of the question; None: the first that is answered by number.
        n_resamples: Number of bootstrap samples of rooms.

    Returns:
        One row a party and number of messages, by that number: party, after (number of messages), mean, low and high
        (95 %), rooms.
    """
    parts = [attitudes(model.sessions, question).assign(run=index) for index, model in enumerate(models)]
    table: Any = pd.concat(parts, ignore_index=True)
    if question is None and not table.empty:
        table = table[table["question"] == table["question"].iloc[0]]
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for (party, after), group in table.groupby(["party", "after"], sort=False):
        means = group.groupby(["run", "room"])["answer"].mean().to_numpy(float)
        samples = rng.choice(means, (n_resamples, len(means))).mean(axis=1)
        low, high = np.percentile(samples, [2.5, 97.5])
        rows.append(
            {"party": party, "after": after, "mean": means.mean(), "low": low, "high": high, "rooms": len(means)}
        )
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
    parts = [attitudes(model.sessions, question).assign(run=index) for index, model in enumerate(models)]
    table: Any = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise ConfigError("nobody answered by number; give a survey question a scale")
    if question is None:
        table = table[table["question"] == table["question"].iloc[0]]
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
    table = pd.concat([talk_table(model.sessions) for model in models], ignore_index=True)
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
