"""The studies of a spreading post: runs of the twin beside the real curves of OASIS's topics, and its fit."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mesa_llm import LLMModel
from mesa_llm.experiments.findings import Table
from mesa_llm.experiments.runs.arms import ArmFindings, Band, arm_findings, estimates, line_of, run_arms
from mesa_llm.experiments.runs.experiment import cost_of
from mesa_llm.experiments.runs.run import Run
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.population import read_users
from mesa_llm.statistics import Estimate, mean_intervals
from mesa_llm_models.oasis.charts import study_chart
from mesa_llm_models.oasis.spreading import (
    FITTED,
    MINUTES,
    QUANTITIES,
    RealSpread,
    SpreadingModel,
    Topic,
    baseline_curves,
    fit,
    held_out_predictions,
    nrmse,
    provenance,
    read_spreads,
    read_topics,
    split_topics,
    twin_prediction,
)
from mesa_llm_models.social.world.curves import SpreadCurves

FloatArray = npt.NDArray[np.float64]

CURVES = ("scale", "depth", "max_breadth")
"""The three curves of a spreading post."""

REAL_FOLLOWS = "twin, real follows"
"""Arm of the spreading study with the users and follows of OASIS's file."""

TOPICS_FILE = "all_topics.csv"
"""Name of OASIS's table of topics."""

SPREADING = "How far does a post spread, minute by minute, and how well does a fitted rule twin predict it?"
FIT = "Which parameters of the spreading twin fit half of OASIS's topics?"
"""Research questions."""


class SpreadingRun(Run):
    """A run of the spreading twin, whose results are its curves by minute."""

    def results_of(self, model: LLMModel) -> dict[str, list[float]]:
        """Return the curves: name → value by minute."""
        curves = cast("SpreadingModel", model).curves()
        return {name: np.asarray(getattr(curves, name), dtype=np.float64).tolist() for name in CURVES}


def study_spreading(setup: StudySetup, *, data: Path | None = None) -> ArmFindings:
    """Run the twin with each seed on a generated population, and compare it with real posts if files are available.

    Args:
        setup: Settings of the runs; by default the steps of 149 minutes, to compare minutes 0 to 149.
        data: Folder with OASIS's files, of one topic or more: each is a file of users and one of real curves. Without
            it, nothing is compared.
    """
    n_steps, n_minutes = lengths(setup)
    spreads = [] if data is None else read_spreads(data, n_minutes)
    topics = [] if data is None else topics_in(data)
    arms: dict[str, dict[str, Any]] = {"twin": {}} if len(spreads) < 2 else {}
    for one in spreads:
        arms |= topic_arms(one, topics, setup.parameters.get("n_agents"), is_only=len(spreads) == 1)
    runs, cost = spreading_runs(setup, arms, n_steps, n_minutes)
    outcomes = dict[str, Estimate]()
    if len(spreads) < 2:
        lasts = [{f"{name} at the end": float(getattr(one, name)[-1]) for name in CURVES} for one in runs["twin"]]
        outcomes, lines = estimates(lasts), dict[str, SpreadCurves]()
        if spreads:
            real = spreads[0].curves
            baselines = baseline_curves(real, setup.parameters.get("n_agents", 111))
            outcomes |= curve_errors({**runs, **{name: [one] for name, one in baselines.items()}}, real)
            lines = {"real": real, **baselines}
        bands = {name: curve_bands(name, runs, lines) for name in CURVES}
    else:
        by_topic = [topic_curves(one, runs) for one in spreads]
        outcomes = topic_errors(spreads, by_topic)
        bands = {f"loss of {name}": topic_losses(name, spreads, by_topic) for name in CURVES}
    if topics:
        outcomes |= held_out_errors(*split_topics(topics), setup.seeds)
    return arm_findings("spreading", SPREADING, setup, n_steps, cost, bands, outcomes, study_chart)


def lengths(setup: StudySetup) -> tuple[int, int]:
    """Return the number of steps of a spreading post, and the number of minutes to compare, including minute 0."""
    step_minutes = setup.parameters.get("step_minutes", 1.0)
    if setup.steps is None:
        return math.ceil((MINUTES - 1) / step_minutes), MINUTES
    return setup.steps, 1 + math.ceil(setup.steps * step_minutes)


def topics_in(data: Path) -> list[Topic]:
    """Read OASIS's table of topics in a folder; empty if there is none."""
    return read_topics(data / TOPICS_FILE) if (data / TOPICS_FILE).is_file() else []


def spreading_runs(
    setup: StudySetup, arms: Mapping[str, Mapping[str, Any]], n_steps: int, n_minutes: int
) -> tuple[dict[str, list[SpreadCurves]], dict[str, Any]]:
    """Spread a post in each arm with each seed.

    Args:
        setup: Settings of the runs.
        arms: Arm → its parameters.
        n_steps: Number of steps.
        n_minutes: Number of minutes to compare, including minute 0.

    Returns:
        Arm → its curves, one per seed; and the cost of all runs.
    """
    whole = {arm: {**setup.parameters, **own} for arm, own in arms.items()}
    with closing(setup.experiment()) as experiment:
        made = run_arms(experiment, setup, "spreading", SpreadingModel, whole, n_steps, run=SpreadingRun)
        curves = {
            arm: [SpreadCurves(*(np.array(row[name]) for name in CURVES)).until(n_minutes) for _, row in runs]
            for arm, runs in made.items()
        }
        return curves, experiment.cost()


def real_arm(spread: RealSpread, topics: Sequence[Topic], n_agents: int | None) -> dict[str, Any]:
    """Return the parameters that spread the post of a topic among its real users.

    Args:
        spread: The topic.
        topics: OASIS's table of topics, with the text of the post; may be empty.
        n_agents: Maximum number of users; None for all.
    """
    text = next((one.text for one in topics if one.name == spread.name), "")
    return {"users": str(spread.users), "n_agents": n_agents, **({"post": text} if text else {})}


def topic_arms(
    spread: RealSpread, topics: Sequence[Topic], n_agents: int | None, *, is_only: bool
) -> dict[str, dict[str, Any]]:
    """Return the arms that spread the post of a topic: among its real users, and, of several topics, in generated ones.

    Args:
        spread: The topic.
        topics: OASIS's table of topics, with the text of the post; may be empty.
        n_agents: Maximum number of users; None for all.
        is_only: Whether it is the only topic.
    """
    real = real_arm(spread, topics, n_agents)
    if is_only:
        return {REAL_FOLLOWS: real}
    generated = {**real, "users": None, "n_agents": len(read_users(spread.users).personas[:n_agents])}
    return {f"twin, {spread.name}": generated, f"{REAL_FOLLOWS}, {spread.name}": real}


type Predictions = Mapping[str, Sequence[SpreadCurves]]
"""Predictor → its curves of one topic: one per seed, or one of a baseline."""


def topic_curves(spread: RealSpread, runs: Mapping[str, Sequence[SpreadCurves]]) -> Predictions:
    """Return all predictions of one of several topics."""
    twins = {who: runs[f"{who}, {spread.name}"] for who in ("twin", REAL_FOLLOWS)}
    return {**twins, **{who: [one] for who, one in baseline_curves(spread.curves).items()}}


def topic_errors(spreads: Sequence[RealSpread], by_topic: Sequence[Predictions]) -> dict[str, Estimate]:
    """Compute the error of each predictor, as a mean over topics with its interval, and of the twin topic by topic.

    Args:
        spreads: The topics.
        by_topic: Predictions of each topic.
    """
    errors = [
        {key: one.value for key, one in curve_errors(predictions, spread.curves).items()}
        for spread, predictions in zip(spreads, by_topic, strict=True)
    ]
    found = estimates(errors)
    for spread, predictions in zip(spreads, by_topic, strict=True):
        own = curve_errors({f"{who}, {spread.name}": predictions[who] for who in ("twin", REAL_FOLLOWS)}, spread.curves)
        found |= {key: one for key, one in own.items() if "(paper)" in key}
    return found


def topic_losses(name: str, spreads: Sequence[RealSpread], by_topic: Sequence[Predictions]) -> dict[str, Band]:
    """Return the loss of each predictor, minute by minute, with an interval over topics.

    The loss is the distance of the mean over seeds from the real curve, over the latter's maximum.

    Args:
        name: `scale`, `depth` or `max_breadth`.
        spreads: The topics.
        by_topic: Predictions of each topic.
    """
    losses: dict[str, list[FloatArray]] = {}
    for spread, predictions in zip(spreads, by_topic, strict=True):
        real: FloatArray = getattr(spread.curves, name)
        for who, curves in predictions.items():
            mean = np.mean([getattr(one, name) for one in curves], axis=0)
            losses.setdefault(who, []).append(np.abs(mean - real) / real.max())
    return {who: Band(*mean_intervals(np.array(rows))) for who, rows in losses.items()}


def study_fit(setup: StudySetup, *, data: Path) -> StudyFindings:
    """Fit the spreading twin on half of OASIS's topics.

    Args:
        setup: Settings; the fit uses its own seeds.
        data: Folder with OASIS's files.
    """
    start_s = time.perf_counter()
    training, _ = split_topics(read_topics(data / TOPICS_FILE))
    rows = [{"parameter": name, "value": float(one)} for name, one in provenance(training, fit(training)).items()]
    cost = cost_of([]) | {"seconds": time.perf_counter() - start_s}
    return StudyFindings("fit", FIT, {}, cost, [Table("Fit", rows)])


def curve_bands(
    name: str, runs: Mapping[str, Sequence[SpreadCurves]], lines: Mapping[str, SpreadCurves]
) -> dict[str, Band]:
    """Return one of the three curves, with the arms as bands and the others as lines.

    Args:
        name: `scale`, `depth` or `max_breadth`.
        runs: Arm → curves of its runs.
        lines: Name → curves of a single line.
    """
    bands = {arm: Band(*mean_intervals(np.array([getattr(one, name) for one in own]))) for arm, own in runs.items()}
    return bands | {line: line_of(getattr(curves, name)) for line, curves in lines.items()}


def curve_errors(runs: Mapping[str, Sequence[SpreadCurves]], real: SpreadCurves) -> dict[str, Estimate]:
    """Compute the errors of all runs and baselines against a real curve, under the paper's and the code's formula.

    Args:
        runs: Predictor → its curves, one per seed.
        real: The real curves.
    """
    errors: dict[str, Estimate] = {}
    for name in CURVES:
        for form in ("paper", "code"):
            for who, curves in runs.items():
                key = f"NRMSE of {name} ({form}), {who}"
                errors |= estimates([{key: nrmse(getattr(one, name), getattr(real, name), form)} for one in curves])
    return errors


def held_out_errors(training: Sequence[Topic], held_out: Sequence[Topic], seeds: Sequence[int]) -> dict[str, Estimate]:
    """Compute the errors on held-out topics, with intervals over topics.

    For times, the mean absolute difference of logarithms (0.69: a factor of two); for depths, the mean absolute
    difference.

    Args:
        training: The topics to fit on.
        held_out: The others. Topics without times are omitted.
        seeds: Seeds of the twin, whose predictions are averaged.
    """
    rows: list[dict[str, float]] = []
    for index, topic in enumerate(held_out):
        if not np.isfinite(topic.median_minutes):
            continue
        runs = [twin_prediction(FITTED, topic, 1_000 * seed + index) for seed in seeds]
        twin = {name: float(np.mean([run[name] for run in runs])) for name in QUANTITIES}
        row: dict[str, float] = {}
        for who, predicted in {"twin": twin, **held_out_predictions(topic, training)}.items():
            for name in QUANTITIES:
                value, real = predicted[name], getattr(topic, name)
                error = abs(value - real) if name == "depth" else abs(np.log(max(value, 0.1) / real))
                row[f"held out: {name.replace('_', ' ')}, {who}"] = float(error)
        rows.append(row)
    return estimates(rows)


def topic_row(spread: RealSpread, runs: Mapping[str, Sequence[SpreadCurves]]) -> dict[str, float]:
    """Compute the users reached, as a share of the real number, and the error of their curve, as means over seeds.

    Args:
        spread: The topic.
        runs: Removed or replaced part → curves, one per seed.
    """
    row: dict[str, float] = {}
    for part, curves in runs.items():
        row[f"{part}: users reached, of the real ones"] = float(relative("scale", spread, curves)[:, -1].mean())
        row[f"{part}: NRMSE of scale"] = float(np.mean([nrmse(one.scale, spread.curves.scale) for one in curves]))
    return row


def relative(name: str, spread: RealSpread, curves: Sequence[SpreadCurves]) -> FloatArray:
    """Divide curves by the largest value of the real one, shape `(seeds, minutes)`."""
    return np.array([getattr(one, name) for one in curves]) / getattr(spread.curves, name).max()
