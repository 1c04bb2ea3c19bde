"""SAUCE's two case studies: attitudes in a debate across parties, and who speaks when time is short."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any, Literal, cast

import pandas as pd
from pydantic import Field

from mesa_llm import ConfigError, LLMModel
from mesa_llm.experiments.findings import Table, Value, estimate_cells
from mesa_llm.experiments.runs.arms import Placebo, corrected, difference_table, run_arms
from mesa_llm.experiments.runs.run import Row, Run
from mesa_llm.experiments.runs.study import Study, StudyFindings, StudySetup
from mesa_llm.statistics import Column, mean_estimate
from mesa_llm_models.discussion.charts import curve_chart
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.scores import attitudes, curve_of, drift_of, talk_shares_of, talk_table

MAX_STEPS = 10_000
"""Maximum number of steps of a run of a study."""


def run_rooms(config: str, n_rooms: int = 10, rng: int = 0, max_steps: int = MAX_STEPS, **options: Any) -> Any:
    """Run several rooms of a discussion together, until all are over.

    Args:
        config: A discussion that comes with the model, such as `trolley`, or a file.
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


# -- on the command line

DEBATE = "Which way do attitudes move in a debate across parties?"
TROLLEY = "Who speaks when time is short, and who keeps silent?"
"""Questions of the two studies."""


class RoomsRun(Run):
    """A run of several rooms, whose results are the answers and the talk in them."""

    def results_of(self, model: LLMModel) -> dict[str, Any]:
        """Return the rows of the tables of `attitudes` and `talk_table`."""
        sessions = cast("DiscussionModel", model).sessions
        tables = {"answers": attitudes(sessions), "talk": talk_table(sessions)}
        return {name: {column: table[column].tolist() for column in table} for name, table in tables.items()}


TOPICS = {"toll": "debate", "guns": "debate_guns", "climate": "debate_climate"}
"""Topic of a debate → the discussion; the second and the third are between Democrats and Republicans."""


NEUTRAL_TALK = Placebo(
    "neutral talk",
    {"talk": "neutral"},
    "people read sentences about rivers and stones in place of what the others say",
    (),
    "people read what the others say",
)
"""Placebo of the debate."""

NO_CLOCK = Placebo(
    "no clock",
    {"shows_time_left": False},
    "neither the times of messages nor the time left are shown; the discussion ends as early",
    (),
    "people read the times of messages and how much time is left",
)
"""Placebo of the discussion against the clock."""

OVER_ROOMS = "with 95 % intervals over rooms."
"""What the tables say of their intervals."""

ROOMS = "rooms"
"""Treated arm of both studies."""


def study_debate(
    setup: StudySetup,
    *,
    rooms: Annotated[int, Field(ge=1)] = 10,
    topic: Literal["toll", "guns", "climate"] = "toll",
) -> StudyFindings:
    """Run rooms of the debate, and follow the attitudes of each party, with the talk of others and without.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
        topic: What is debated: a toll in a town, or, between US parties, checks of who buys a gun, or a tax on carbon.
    """
    arms, cost = _run_rooms(TOPICS[topic], setup, rooms, NEUTRAL_TALK)
    answers = {arm: [pd.DataFrame(row["answers"]) for row in runs] for arm, runs in arms.items()}
    points = {arm: curve_of(tables) for arm, tables in answers.items()}
    drifts: dict[str, Any] = {arm: drift_of(tables) for arm, tables in answers.items()}
    moved = {arm: _by_room(drift, "moved", "party") for arm, drift in drifts.items()}
    rows: list[dict[str, Value]] = []
    for arm, drift in drifts.items():
        ends: Any = drift.groupby("party", sort=False)[["first", "last"]].mean()
        for party, of_rooms in moved[arm].items():
            cells = estimate_cells(mean_estimate(list(of_rooms.values()), "rooms"), "moved")
            rows.append(
                {"arm": arm, "party": party, **ends.loc[party].to_dict(), **cells, "rooms": float(len(of_rooms))}
            )
    curves: Any = pd.concat([one.assign(arm=arm) for arm, one in points.items()])
    courses = _rows(curves[["arm", *points[ROOMS].columns]])
    tables = [
        Table("Attitudes by party", courses, f"Means after so many messages, {OVER_ROOMS}"),
        Table("From the first answer to the last", rows, f"Means over people and rooms, {OVER_ROOMS}"),
        _against(moved, NEUTRAL_TALK, "moved", setup.smallest_effect),
    ]
    setting = {**_setting(setup, rooms), "topic": topic}
    design = NEUTRAL_TALK.design({ROOMS: {}}, setup)
    return StudyFindings("debate", DEBATE, setting, cost, tables, lambda: curve_chart(points[ROOMS]), design=design)


def study_trolley(setup: StudySetup, *, rooms: Annotated[int, Field(ge=1)] = 10) -> StudyFindings:
    """Run rooms of a discussion against the clock, and measure who talks how much, with the clock and without.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
    """
    arms, cost = _run_rooms("trolley", setup, rooms, NO_CLOCK)
    talks = {arm: [pd.DataFrame(row["talk"]) for row in runs] for arm, runs in arms.items()}
    shares: Any = pd.concat([talk_shares_of(tables).assign(arm=arm) for arm, tables in talks.items()])
    of_rooms = {
        arm: _by_room(pd.concat([one.assign(run=index) for index, one in enumerate(tables)]), "share", "name")
        for arm, tables in talks.items()
    }
    note = "share: of the messages; spoke: of the times called on; gap_s: seconds from one message to the next."
    columns = ["arm", *(name for name in shares.columns if name != "arm")]
    tables = [Table("Talk", _rows(shares[columns]), note), _against(of_rooms, NO_CLOCK, "share", setup.smallest_effect)]
    design = NO_CLOCK.design({ROOMS: {}}, setup)
    return StudyFindings("trolley", TROLLEY, _setting(setup, rooms), cost, tables, design=design)


def _run_rooms(
    config: str, setup: StudySetup, rooms: int, placebo: Placebo
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Run the rooms of each arm, with each seed."""
    if taken := set(placebo.changes) & set(setup.parameters):
        raise ConfigError(f"{', '.join(taken)} cannot be set: the study sets it")
    arms = placebo.beside({ROOMS: {**setup.parameters, "config": config, "n_rooms": rooms}}, setup.llm)
    steps = MAX_STEPS if setup.steps is None else setup.steps
    with closing(setup.experiment()) as experiment:
        made = run_arms(experiment, setup, config, DiscussionModel, arms, steps, run=RoomsRun)
        return {arm: [row for _, row in runs] for arm, runs in made.items()}, experiment.cost()


def _by_room(table: pd.DataFrame, value: str, group: str) -> dict[str, dict[tuple[int, str], float]]:
    """Return the mean of a column in each room, by group: room → mean."""
    means: dict[str, dict[tuple[int, str], float]] = {}
    grouped: Any = table.groupby([group, "run", "room"], sort=False)[value].mean()
    for (name, run, room), mean in grouped.items():
        means.setdefault(str(name), {})[int(run), str(room)] = float(mean)
    return means


def _against(
    by_arm: Mapping[str, Mapping[str, Mapping[tuple[int, str], float]]],
    placebo: Placebo,
    value: str,
    margin: float | None,
) -> Table:
    """Compare the rooms with those of the placebo, group by group."""
    pairs: dict[str, tuple[Column, Column]] = {}
    for group, treated in by_arm[ROOMS].items():
        control = by_arm[placebo.name].get(group, {})
        pairs[f"{value}, {group}"] = list(treated.values()), [control.get(room) for room in treated]
    return difference_table(corrected(pairs, margin), placebo, margin, "room")


def _setting(setup: StudySetup, rooms: int) -> dict[str, Any]:
    return {"seeds": list(setup.seeds), "language model": setup.llm_text, "rooms": rooms, **setup.parameters}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    known = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in known.to_dict("records")]


STUDIES = (
    Study("debate", DEBATE, DiscussionModel, study_debate, 1, NEUTRAL_TALK.text, "room", "rooms"),
    Study("trolley", TROLLEY, DiscussionModel, study_trolley, 1, NO_CLOCK.text, "room", "rooms"),
)
"""Studies of `mesa-llm study discussion`."""
