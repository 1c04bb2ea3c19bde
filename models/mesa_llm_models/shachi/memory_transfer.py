"""Memory transferred from another run: do experiences elsewhere bias agents' decisions?

Source:
    Shachi (2025), section 4.3.2 and Figure 5: memories of OASIS (111 agents, 10 steps) and of EconAgent (100 agents,
    240 months) transferred to CognitiveBiases; only directions, test and correction not stated, no placebo.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from mesa_llm import LLMModel
from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, Panels
from mesa_llm.experiments.findings import Table, Value, comparison_cells
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.memory import SavedMemories, saved_memories
from mesa_llm.statistics import Comparison, compare, correct, mean_estimate
from mesa_llm_models.cognitive_biases.scores import BIASES
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.oasis.model import OasisModel
from mesa_llm_models.shachi.other_life import DIRECTIONS, CarriedModel
from mesa_llm_models.shachi.two_worlds import OTHER_POST

QUESTION = "Does a memory of another life bend decisions, and is it what it says or how long it is?"
"""Question of the study."""

PLACEBOS = ("neutral", "shuffled", "other topic")
"""Control arms besides the one without memory."""

ARMS = ("fresh", "carried", "half", *PLACEBOS)
"""All arms."""

ALPHA = 0.05
"""Adjusted p below which a shift counts as significant."""

MEMORY = "chat:100000:2"
"""Memory of the source agents: a window of five messages (two exchanges and the next question), up to 100,000
tokens.
"""

CAVEAT = (
    "Shifts against no memory can come from the mere length of a text: a shift counts that also stands against the "
    "neutral text. By rule, deciders are moved in the published directions because they were written so; the study "
    "then shows that it finds these shifts, and none in other biases or in placebos without the life's words. The "
    "lives of a source come from one run of it: intervals are over its agents, and say nothing about other runs."
)
"""Limits of the figures."""


@dataclass(frozen=True)
class Source:
    """A model as source of lives."""

    model: type[LLMModel]
    """The model."""

    parameters: Mapping[str, Any]
    """Its parameters."""

    steps: int
    """Number of steps of a life."""

    n_agents: int
    """Number of agents in the study."""


SOURCES: Mapping[str, Source] = {
    "oasis": Source(OasisModel, {"memory": MEMORY}, 10, 111),
    "other": Source(OasisModel, {"memory": MEMORY, "post": OTHER_POST}, 10, 111),
    "econ_agent": Source(EconAgentModel, {"memory": MEMORY, "reflect_every": 0}, 240, 100),
}
"""Name → source of lives: the study's network, the same with another topic, and the economy."""

OTHER = {"oasis": "other", "econ_agent": "oasis"}
"""Source → source of the lives with another topic."""


def study_memory(
    setup: StudySetup,
    *,
    people: Annotated[int, Field(ge=2)] | None = 12,
    months: Annotated[int, Field(ge=1)] | None = 24,
) -> StudyFindings:
    """Run agents in other worlds, test them for biases with those memories, and compare with no memory and placebos.

    Args:
        setup: Settings of the runs. Its parameters are those of the tests; its steps are the number of tests per bias,
            2 by default.
        people: Number of agents of each source; None for the paper's 111 and 100.
        months: Number of months in the economy; None for the paper's 240.
    """
    runs = setup.experiment()
    own = {"n_agents": 5, "n_tests": 2, **setup.parameters} | ({} if setup.steps is None else {"n_tests": setup.steps})
    try:
        lives = {name: _lives_of(runs, setup, name, people, months) for name in SOURCES}
        tables = []
        for source, other in OTHER.items():
            files = {"lives": lives[source], "other_lives": lives[other]}
            rows = runs.sweep(f"biases {source}", CarriedModel, {"carried": ARMS}, fixed={**own, **files}).table
            tables.append(scores_table(rows).assign(source=source))
    finally:
        runs.close()
    scores = pd.concat(tables, ignore_index=True)
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, "agents of a source": people or "111, 100"}
    return StudyFindings(
        "memory",
        QUESTION,
        setting | own,
        runs.cost(),
        [shift_table(scores), placebo_table(scores), length_table(scores)],
        lambda: memory_chart(scores),
        CAVEAT,
    )


def _lives_of(runs: Experiment, setup: StudySetup, name: str, people: int | None, months: int | None) -> str:
    """Run a source with the first seed, and write its agents' memories to a file of the study.

    Returns:
        Path of the file relative to a sweep's folder, so the study's folder can be moved. The name includes a digest of
        the contents.
    """
    source = SOURCES[name]
    is_economy = source.model is EconAgentModel
    steps = source.steps if not is_economy or months is None else months
    fixed = {**source.parameters, "n_agents": source.n_agents if people is None else people}
    sweep = f"life {name}"
    rows = runs.sweep(sweep, source.model, fixed=fixed, steps=steps, seeds=setup.seeds[:1]).table
    (row,) = rows.to_dict("records")
    lives = lives_in(source.model, runs.place / sweep / row["log"], row["seed"], steps, setup, fixed)
    digest = hashlib.sha256(lives.text().encode()).hexdigest()[:12]
    path = runs.place / f"lives {name} {digest}.json"
    lives.write(path)
    return f"../{path.name}"


def lives_in(
    model: type[LLMModel], log: Path, seed: int, steps: int, setup: StudySetup, parameters: Mapping[str, Any]
) -> SavedMemories:
    """Return the agents' memories at the end of a recorded run, by offline replay.

    Args:
        model: The model.
        log: The run's log.
        seed: Its seed.
        steps: Its number of steps.
        setup: Settings of the run.
        parameters: Its parameters.
    """
    options = {**parameters, **setup.options, "llm": setup.llm, "rng": seed, "log": log, "replay": True}
    with closing(model(**options)) as replayed:
        replayed.run(steps)
        return saved_memories(replayed)


def scores_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per arm, decider and bias: its life, the mean score, and the length of the memory in characters.

    Args:
        rows: One row per run.
    """
    return pd.DataFrame(
        {
            "arm": row["carried"],
            "life": decider["agent"],
            "bias": bias,
            "score": score,
            "characters": decider["characters"],
        }
        for row in rows.to_dict("records")
        for decider in row["deciders"]
        for bias, score in decider["scores"].items()
    )


def values_of(scores: pd.DataFrame, source: str, bias: str, arm: str) -> list[float | None]:
    """Return the mean score of a bias in one arm for each life, whose deciders are no independent ones.

    Args:
        scores: See `scores_table`, plus `source`.
        source: Source of the life.
        bias: The bias.
        arm: The arm.
    """
    is_source = scores["source"] == source
    is_chosen = is_source & (scores["bias"] == bias) & (scores["arm"] == arm)
    means = scores.loc[is_chosen, :].groupby("life")["score"].mean()
    values = means.reindex(sorted(set(scores.loc[is_source, "life"]))).to_numpy(dtype=np.float64)
    return [None if np.isnan(value) else value for value in values.tolist()]


def biases_of(scores: pd.DataFrame) -> list[str]:
    """Return the tested biases, in alphabetical order."""
    biases = set(scores["bias"])
    return [name for name in BIASES if name in biases]


def shifts_of(scores: pd.DataFrame, arm: str, control: str) -> dict[tuple[str, str], Comparison | None]:
    """Compare an arm with another for each source and bias, with p adjusted across all of them.

    Args:
        scores: See `scores_table`, plus `source`.
        arm: The arm.
        control: The arm to compare it with.

    Returns:
        (source, bias) → the comparison, paired by life.
    """
    keys = [(source, bias) for source in OTHER for bias in biases_of(scores)]
    comparisons = [compare(values_of(scores, *key, arm), values_of(scores, *key, control)) for key in keys]
    return dict(zip(keys, correct(comparisons, "holm"), strict=True))


def is_found(one: Comparison | None) -> bool:
    """Check whether a shift is significant after correction."""
    return one is not None and one.adjusted_p is not None and one.adjusted_p < ALPHA


def shift_table(scores: pd.DataFrame) -> Table:
    """Return the shift of each bias with the memory, against no memory and against neutral text."""
    fresh, filled = shifts_of(scores, "carried", "fresh"), shifts_of(scores, "carried", "neutral")
    rows: list[dict[str, Value]] = []
    for (source, bias), one in fresh.items():
        expected = DIRECTIONS[source].get(bias, 0)
        against = filled[source, bias]
        base = mean_estimate(values_of(scores, source, bias, "fresh"))
        rows.append(
            {
                "source": source,
                "bias": bias,
                "fresh": None if base is None else base.value,
                **comparison_cells(one),
                "against neutral": None if against is None else against.difference.value,
                "its adjusted p": None if against is None else against.adjusted_p,
                "published": {1: "increase", -1: "decrease", 0: ""}[expected],
                "verdict": verdict(one, against, expected),
            }
        )
    return Table(
        "Shift of each bias with the memory of another life",
        rows,
        "difference: score with the memory less score without, in pairs of lives (mean over the deciders with that "
        "life), with its 95 % interval; p by the paired t-test, adjusted for all rows (Holm). A shift is shown if both "
        "adjusted p, against no memory and against neutral text of the same length, lie below 0.05; else the study "
        "cannot tell, which is no sign of absence. Directions were said before.",
    )


def verdict(one: Comparison | None, against: Comparison | None, expected: int) -> str:
    """Judge a shift: shown as published or the other way, or one that the study cannot tell.

    Args:
        one: Comparison with no memory.
        against: Comparison with neutral text.
        expected: The published direction; 0 for none.
    """
    if one is None or not is_found(one):
        return "cannot tell" if expected else ""
    if not is_found(against):
        return "as with any text"
    is_same = np.sign(one.difference.value) == expected
    return "as published" if is_same else "the other way" if expected else "found"


def placebo_table(scores: pd.DataFrame) -> Table:
    """Return the number and size of each arm's shifts against no memory."""
    rows: list[dict[str, Value]] = []
    for arm in ARMS[1:]:
        shifts = shifts_of(scores, arm, "fresh")
        for source in OTHER:
            own = {bias: one for (where, bias), one in shifts.items() if where == source}
            sizes = [abs(one.difference.value) for one in own.values() if one is not None]
            named = [abs(one.difference.value) for bias, one in own.items() if one and bias in DIRECTIONS[source]]
            rows.append(
                {
                    "source": source,
                    "memory": arm,
                    "biases": float(len(own)),
                    "shifts shown": float(sum(map(is_found, own.values()))),
                    "mean size": float(np.mean(sizes)) if sizes else None,
                    "of those published": float(np.mean(named)) if named else None,
                }
            )
    return Table(
        "Memory, its newer half, and placebos, against no memory",
        rows,
        "In pairs of lives. neutral: text about rivers and stones of the same length; shuffled: the same words in an "
        "order without sense; other topic: the memory of a life with another topic, for the economy that of the "
        "network.",
    )


def length_table(scores: pd.DataFrame) -> Table:
    """Return the lengths of the memories, by source and arm."""
    rows: list[dict[str, Value]] = []
    for source, arm in product(OTHER, ARMS):
        is_chosen = (scores["source"] == source) & (scores["arm"] == arm)
        mean = float(scores.loc[is_chosen, "characters"].to_numpy(dtype=np.float64).mean())
        rows.append({"source": source, "memory": arm, "characters": mean})
    return Table("Length of what a decider remembers, mean", rows)


def memory_chart(scores: pd.DataFrame) -> Panels:
    """Return the shift of each bias with the memory and with each placebo, by source."""
    names = biases_of(scores)
    shifts = {arm: shifts_of(scores, arm, "fresh") for arm in ("carried", *PLACEBOS)}
    charts: list[Chart] = []
    for source in OTHER:
        marks = {1: "  ▶", -1: "  ◀"}
        series = [ChartSeries(values=[0], kind="level", colour=GREY)]
        for arm, colour in zip(shifts, COLOURS, strict=False):
            own = [shifts[arm][source, name] for name in names]
            differences = [None if one is None else one.difference for one in own]
            series.append(ChartSeries.of(differences, name=arm, kind="point", colour=colour))
        marked = [name + marks.get(DIRECTIONS[source].get(name, 0), "") for name in names]
        look: dict[str, Any] = {"names": marked, "is_horizontal": True, "y": "shift of the score"}
        charts.append(Chart(title=source, series=series, **look))
    return Panels(title="Biases with the memory of another life, less without (▶ ◀: as published)", charts=charts)
