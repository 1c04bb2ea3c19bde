"""SAUCE's two case studies: attitudes in a debate across parties, and who speaks when time is short."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd
from pydantic import Field

from mesa_llm import ConfigError, LLMModel
from mesa_llm.experiments.arms import ArmJob, ArmRun, Results, cost_of, run_arms
from mesa_llm.experiments.study import Findings, Study, StudySetup, Table
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
    return curve_of([attitudes(model.sessions, question) for model in models], question, n_resamples)


def curve_of(answers: Sequence[pd.DataFrame], question: str | None = None, n_resamples: int = 1_000) -> pd.DataFrame:
    """Compute what `curve` does, from the answers of each run.

    Args:
        answers: Table of `attitudes` of each run.
        question: Id of the question; None: the first.
        n_resamples: Number of bootstrap samples of rooms.
    """
    table = _of_runs(answers, question)
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


# -- on the command line

DEBATE = "Which way do attitudes move in a debate across parties?"
TROLLEY = "Who speaks when time is short, and who keeps silent?"
"""Questions of the two studies."""


@dataclass(frozen=True)
class RoomsJob(ArmJob):
    """A run of several rooms, whose results are the answers and the talk in them."""

    def results_of(self, model: LLMModel) -> Results:
        """Return the tables of `attitudes` and `talk_table`.

        Args:
            model: A model that has run.
        """
        sessions = cast("DiscussionModel", model).sessions
        return {"answers": attitudes(sessions), "talk": talk_table(sessions)}


def study_debate(setup: StudySetup, *, rooms: Annotated[int, Field(ge=1)] = 10) -> Findings:
    """Run rooms of the debate, and follow the attitudes of each party.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
    """
    runs, cost = _run_rooms("debate", setup, rooms)
    answers = [one.results["answers"] for one in runs]
    points = curve_of(answers)
    moves: Any = drift_of(answers).groupby("party", sort=False)[["first", "last", "moved"]].mean()
    tables = [
        Table("Attitudes by party", _rows(points), "Means after so many messages, with 95 % intervals over rooms."),
        Table("From the first answer to the last", _rows(moves.reset_index()), "Means over persons and rooms."),
    ]
    return Findings("debate", DEBATE, _setting(setup, rooms), cost, tables)


def study_trolley(setup: StudySetup, *, rooms: Annotated[int, Field(ge=1)] = 10) -> Findings:
    """Run rooms of a discussion against the clock, and measure who talks how much.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
    """
    runs, cost = _run_rooms("trolley", setup, rooms)
    shares = talk_shares_of([one.results["talk"] for one in runs])
    note = "share: of the messages; spoke: of the times called on; gap_s: seconds from one message to the next."
    return Findings("trolley", TROLLEY, _setting(setup, rooms), cost, [Table("Talk", _rows(shares), note)])


def _run_rooms(config: str, setup: StudySetup, rooms: int) -> tuple[list[ArmRun], dict[str, Any]]:
    start_s = time.perf_counter()
    arguments = {"llm": setup.llm, **setup.options, **setup.parameters, "config": config, "n_rooms": rooms}
    steps = MAX_STEPS if setup.steps is None else setup.steps
    jobs = [
        RoomsJob(DiscussionModel, config, "rooms", seed, arguments, steps, (), setup.folder) for seed in setup.seeds
    ]
    runs = list(run_arms(jobs, setup).values())
    return runs, cost_of(runs, time.perf_counter() - start_s)


def _setting(setup: StudySetup, rooms: int) -> dict[str, Any]:
    return {"seeds": list(setup.seeds), "language model": setup.llm, "rooms": rooms, **setup.parameters}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


STUDIES = (
    Study("debate", DEBATE, DiscussionModel, study_debate, 1),
    Study("trolley", TROLLEY, DiscussionModel, study_trolley, 1),
)
"""Studies of `mesa-llm study discussion`."""
