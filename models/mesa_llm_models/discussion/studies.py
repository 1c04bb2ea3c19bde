"""SAUCE's two case studies: attitudes in a debate across parties, and who speaks when time is short."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any, Literal, cast

import pandas as pd
from pydantic import Field

from mesa_llm import LLMModel
from mesa_llm.experiments.findings import Table
from mesa_llm.experiments.runs.arms import run_arms
from mesa_llm.experiments.runs.run import Row, Run
from mesa_llm.experiments.runs.study import Study, StudyFindings, StudySetup
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


def study_debate(
    setup: StudySetup,
    *,
    rooms: Annotated[int, Field(ge=1)] = 10,
    topic: Literal["toll", "guns", "climate"] = "toll",
) -> StudyFindings:
    """Run rooms of the debate, and follow the attitudes of each party.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
        topic: What is debated: a toll in a town, or, between US parties, checks of who buys a gun, or a tax on carbon.
    """
    runs, cost = _run_rooms(TOPICS[topic], setup, rooms)
    answers = [pd.DataFrame(row["answers"]) for row in runs]
    points = curve_of(answers)
    moves: Any = drift_of(answers).groupby("party", sort=False)[["first", "last", "moved"]].mean()
    tables = [
        Table("Attitudes by party", _rows(points), "Means after so many messages, with 95 % intervals over rooms."),
        Table("From the first answer to the last", _rows(moves.reset_index()), "Means over persons and rooms."),
    ]
    setting = {**_setting(setup, rooms), "topic": topic}
    return StudyFindings("debate", DEBATE, setting, cost, tables, lambda: curve_chart(points))


def study_trolley(setup: StudySetup, *, rooms: Annotated[int, Field(ge=1)] = 10) -> StudyFindings:
    """Run rooms of a discussion against the clock, and measure who talks how much.

    Args:
        setup: Settings of the runs.
        rooms: Number of rooms of each run.
    """
    runs, cost = _run_rooms("trolley", setup, rooms)
    shares = talk_shares_of([pd.DataFrame(row["talk"]) for row in runs])
    note = "share: of the messages; spoke: of the times called on; gap_s: seconds from one message to the next."
    return StudyFindings("trolley", TROLLEY, _setting(setup, rooms), cost, [Table("Talk", _rows(shares), note)])


def _run_rooms(config: str, setup: StudySetup, rooms: int) -> tuple[list[Row], dict[str, Any]]:
    arms = {"rooms": {**setup.parameters, "config": config, "n_rooms": rooms}}
    steps = MAX_STEPS if setup.steps is None else setup.steps
    with closing(setup.experiment()) as experiment:
        made = run_arms(experiment, setup, config, DiscussionModel, arms, steps, run=RoomsRun)
        return [row for _, row in made["rooms"]], experiment.cost()


def _setting(setup: StudySetup, rooms: int) -> dict[str, Any]:
    return {"seeds": list(setup.seeds), "language model": setup.llm_text, "rooms": rooms, **setup.parameters}


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


STUDIES = (
    Study("debate", DEBATE, DiscussionModel, study_debate, 1),
    Study("trolley", TROLLEY, DiscussionModel, study_trolley, 1),
)
"""Studies of `mesa-llm study discussion`."""
