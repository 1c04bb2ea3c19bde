"""The studies of OASIS: `mesa-llm study oasis` lists them, `mesa-llm study oasis herd` runs one."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mesa_llm import LLMModel
from mesa_llm.experiments.arms import (
    ArmFindings,
    ArmJob,
    Arms,
    Band,
    Results,
    arm_findings,
    cost_of,
    estimates,
    line_of,
    run_arms,
)
from mesa_llm.experiments.benchmark.scores import bootstrap
from mesa_llm.experiments.study import Findings, Study, StudySetup, Table
from mesa_llm.statistics import Estimate
from mesa_llm.worlds.social.curves import SpreadCurves, read_curves
from mesa_llm_models.oasis.ablations import ARMS, AblationModel
from mesa_llm_models.oasis.charts import study_figure
from mesa_llm_models.oasis.herd import GROUPS, HerdModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import TOPICS, RumourModel
from mesa_llm_models.oasis.spreading import (
    CURVE_TOPIC,
    FITTED,
    MINUTES,
    QUANTITIES,
    SpreadingModel,
    Topic,
    baseline_curves,
    fit,
    held_out_predictions,
    nrmse,
    provenance,
    read_topics,
    split_topics,
    twin_prediction,
)

FloatArray = npt.NDArray[np.float64]

N_SEEDS = 30
"""Number of seeds of a study."""


CURVES = ("scale", "depth", "max_breadth")
"""The three curves of a spreading post."""

SPREADING = "How far does a post spread, minute by minute, and how well does a fitted rule twin predict it?"
FIT = "Which parameters of the spreading twin fit half of OASIS's topics?"
"""Research questions of the studies without arms."""


@dataclass(frozen=True)
class SpreadingJob(ArmJob):
    """A run of the spreading twin, which returns its curves by minute."""

    n_minutes: int = 0
    """Number of minutes to compare, including minute 0."""

    def course_of(self, model: LLMModel) -> FloatArray:
        """Return the curves, shape `(curves, minutes)`.

        Args:
            model: A model that has run.
        """
        curves = cast("SpreadingModel", model).curves().until(self.n_minutes)
        return np.array([getattr(curves, name) for name in CURVES], dtype=np.float64)


def study_spreading(setup: StudySetup, *, data: Path | None = None) -> ArmFindings:
    """Run the twin with each seed on a generated population, and compare it with real posts if files are available.

    Args:
        setup: Settings of the runs; by default the steps of 149 minutes, to compare minutes 0 to 149.
        data: Folder with OASIS's files; without it, nothing is compared.
    """
    start_s = time.perf_counter()
    step_minutes = setup.parameters.get("step_minutes", 1.0)
    n_steps = math.ceil((MINUTES - 1) / step_minutes) if setup.steps is None else setup.steps
    n_minutes = 1 + (MINUTES - 1 if setup.steps is None else math.ceil(n_steps * step_minutes))  # including minute 0
    arms: dict[str, dict[str, Any]] = {"twin": {}}
    if data is not None:
        arms["twin, real follows"] = {"users": str(data / f"{CURVE_TOPIC}.csv")}
    common = {"llm": setup.llm, **setup.options, **setup.parameters}
    jobs = [
        SpreadingJob(
            SpreadingModel, "spreading", arm, seed, {**common, **own}, n_steps, CURVES, setup.folder, n_minutes
        )
        for arm, own in arms.items()
        for seed in setup.seeds
    ]
    made = run_arms(jobs, setup)
    runs = {arm: [SpreadCurves(*made[arm, seed].course) for seed in setup.seeds] for arm in arms}
    lasts = [{f"{name} at the end": float(getattr(one, name)[-1]) for name in CURVES} for one in runs["twin"]]
    outcomes, lines = estimates(lasts), dict[str, SpreadCurves]()
    if data is not None:
        training, held_out = split_topics(read_topics(data / "all_topics.csv"))
        real = read_curves(data / f"{CURVE_TOPIC}_real_propagation.json").until(n_minutes)
        lines = baseline_curves(real, setup.parameters.get("n_agents", 111))
        outcomes |= curve_errors({**runs, **{name: [one] for name, one in lines.items()}}, real)
        outcomes |= held_out_errors(training, held_out, setup.seeds)
        lines = {"real": real, **lines}
    bands = {name: curve_bands(name, runs, lines) for name in CURVES}
    cost = cost_of(list(made.values()), time.perf_counter() - start_s)
    return arm_findings("spreading", SPREADING, setup, n_steps, cost, bands, outcomes, study_figure)


def study_fit(setup: StudySetup, *, data: Path) -> Findings:
    """Fit the spreading twin on half of OASIS's topics.

    Args:
        setup: Settings; the fit uses its own seeds.
        data: Folder with OASIS's files.
    """
    start_s = time.perf_counter()
    training, _ = split_topics(read_topics(data / "all_topics.csv"))
    rows = [{"parameter": name, "value": float(one)} for name, one in provenance(training, fit(training)).items()]
    return Findings("fit", FIT, {}, cost_of([], time.perf_counter() - start_s), [Table("Fit", rows)])


def curve_bands(
    name: str, runs: Mapping[str, Sequence[SpreadCurves]], lines: Mapping[str, SpreadCurves]
) -> dict[str, Band]:
    """Return one of the three curves, with the arms as bands and the others as lines.

    Args:
        name: `scale`, `depth` or `max_breadth`.
        runs: Arm → curves of its runs.
        lines: Name → curves of a single line.
    """
    bands = {arm: Band(*bootstrap(np.array([getattr(one, name) for one in own]))) for arm, own in runs.items()}
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
    """Compute the errors on held-out topics, with bootstrap intervals over topics.

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


def herd_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the effect of a first vote on later votes.

    A group's mean score less its first vote, less the control group's mean score.
    """
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        scores = {group: _known(results[f"score_{group}"]) for group in GROUPS}
        for group, first_vote in GROUPS.items():
            figures[f"{arm}: score, {group}"] = scores[group]
            if first_vote:
                figures[f"{arm}: effect, {group}"] = scores[group] - first_vote - scores["control"]
    return figures


def counterfactual_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the excess disagreement in comments on posts with a first vote over those on others."""
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        scores = {group: _known(results[f"disagree_{group}"]) for group in GROUPS}
        figures |= {f"{arm}: disagree score, {group}": score for group, score in scores.items()}
        figures |= {
            f"{arm}: effect, {group}": scores[group] - scores["control"] for group, vote in GROUPS.items() if vote
        }
    return figures


def _known(figure: float | None) -> float:
    return math.nan if figure is None else figure


BLIND = {"herding": 0.0, "llm": "rule"}
"""Control of a herd study: rule twins that ignore the score."""

HERD = Arms(
    "herd",
    "Do people follow the votes they see on comments?",
    HerdModel,
    {"herding": {}, "blind": BLIND},
    40,
    tuple(f"score_{group}" for group in GROUPS),
    herd_outcomes,
    study_figure,
)

COUNTERFACTUAL = Arms(
    "counterfactual",
    "Do people disagree less with a false post that others have liked?",
    HerdModel,
    {"herding": {}, "blind": BLIND},
    30,
    tuple(f"disagree_{group}" for group in GROUPS),
    counterfactual_outcomes,
    study_figure,
    {"preset": "counterfactual_herd"},
)


def polarisation_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Return the share of answers that became more extreme, their stance and helpfulness, by arm."""
    names = ("more_extreme", "less_extreme", "neutral", "leaning", "helpfulness")
    return {
        f"{arm}: {name.replace('_', ' ')}": _known(results[name]) for arm, results in arms.items() for name in names
    }


def rumour_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Compute the excess of posts on rumours over truths, in total and by topic."""
    figures: dict[str, float] = {}
    for arm, results in arms.items():
        figures[f"{arm}: posts on truths"] = results["truths"]
        figures[f"{arm}: posts on rumours"] = results["rumours"]
        figures[f"{arm}: rumours less truths"] = results["rumours"] - results["truths"]
        figures |= {
            f"{arm}: rumour less truth, {topic}": results[f"{topic}_rumour"] - results[f"{topic}_truth"]
            for topic in TOPICS
        }
    return figures


POLARISATION = Arms(
    "polarisation",
    "Do groups of one leaning become more extreme by talking?",
    PolarisationModel,
    {
        "cautious": {"leaning": "cautious"},
        "bold": {"leaning": "bold"},
        "nobody is moved": {"leaning": "cautious", "persuasion": 0.0, "llm": "rule"},
    },
    30,
    ("more_extreme", "neutral", "leaning"),
    polarisation_outcomes,
    study_figure,
)

RUMOURS = Arms(
    "rumours",
    "Do rumours spread further than truths?",
    RumourModel,
    {"alluring": {}, "no allure": {"allure": 1.0, "llm": "rule"}},
    60,
    ("truths", "rumours"),
    rumour_outcomes,
    study_figure,
)

SIZES = (50, 200, 1000)
"""Numbers of users in the scale study; the number of posts per step is proportional."""

SCALE = Arms(
    "scale",
    "Does the effect of a first vote depend on the number of users?",
    HerdModel,
    {f"{n} users": {"n_agents": n, "posts_per_step": max(1, n // 12)} for n in SIZES},
    10,
    tuple(f"disagree_{group}" for group in GROUPS),
    counterfactual_outcomes,
    study_figure,
    {"preset": "counterfactual_herd"},
)

ABLATED = ("posts", "likes", "reposts", "largest_cascade", "fit", "busiest_over_mean")
"""Measures for comparing the arms of the ablations."""


def ablation_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Return the measures of the full network, and the change of each in every ablation."""
    whole = arms["whole"]
    figures = {f"whole: {name.replace('_', ' ')}": whole[name] for name in ABLATED}
    for arm, results in arms.items():
        for name in ABLATED if arm != "whole" else ():
            if results[name] is not None and whole[name] is not None:  # None if, say, no feed had a stranger's post
                figures[f"{arm}: change of {name.replace('_', ' ')}"] = results[name] - whole[name]
    return {name: float(_known(value)) for name, value in figures.items()}


ABLATIONS = Arms(
    "ablations",
    "What do the recommender, its embedder and the hours of activity each do to a network?",
    AblationModel,
    ARMS,
    24,
    ("reposts", "largest_cascade", "active"),
    ablation_outcomes,
    study_figure,
)

WITH_ARMS = (POLARISATION, HERD, COUNTERFACTUAL, RUMOURS, SCALE, ABLATIONS)
"""Studies with arms that share their seeds."""

STUDIES = (
    Study("spreading", SPREADING, SpreadingModel, study_spreading, N_SEEDS),
    *(Study(one.name, one.question, one.model, one.run, N_SEEDS) for one in WITH_ARMS),
    Study("fit", FIT, SpreadingModel, study_fit, 1),
)
"""All studies."""
