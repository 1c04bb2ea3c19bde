"""The studies of OASIS: `mesa-llm study oasis` lists them, `mesa-llm study oasis herd` runs one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.arms import ArmFindings, Arms, Band, Placebo, Results, arm_findings, estimates
from mesa_llm.experiments.runs.study import Study, StudySetup
from mesa_llm.statistics import mean_intervals
from mesa_llm_models.oasis.ablations import ARMS, TOPIC_ARMS, AblationModel
from mesa_llm_models.oasis.charts import study_chart
from mesa_llm_models.oasis.herd import GROUPS, HerdModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import TOPICS, RumourModel
from mesa_llm_models.oasis.spreading import SpreadingModel, read_spreads
from mesa_llm_models.oasis.spreading_studies import (
    CURVES,
    FIT,
    SPREADING,
    lengths,
    real_arm,
    relative,
    spreading_runs,
    study_fit,
    study_spreading,
    topic_row,
    topics_in,
)
from mesa_llm_models.social.model import split_names

N_SEEDS = 30
"""Number of seeds of a study."""

N_LARGE = 5
"""Number of seeds of a study with up to 10,000 users or more."""

Sizes = Annotated[tuple[Annotated[int, Field(ge=10)], ...], BeforeValidator(split_names), Field(min_length=1)]
"""Numbers of users, or one comma-separated string of them."""

GROUPS_QUESTION = "Do larger groups become more extreme, more helpful, more varied?"
"""Research question of the study of larger groups."""


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


@dataclass(frozen=True)
class Worlds(Arms):
    """Arms of three worlds each, as in OASIS's counterfactual study.

    The posts of one world all begin with a like, those of another without a vote, those of the third with a dislike.
    """

    def runs_of(self, arms: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Return the worlds of each arm, by arm and group (`herding, up`).

        Args:
            arms: The arms.
        """
        return {f"{arm}, {group}": {**own, "first_votes": group} for arm, own in arms.items() for group in GROUPS}

    def run(self, setup: StudySetup) -> ArmFindings:
        """Run the worlds of each arm with each seed.

        Args:
            setup: Settings of the runs.

        Raises:
            ConfigError: If the study fixes one of the parameters.
            AllDecisionsFailed: If every decision of a run failed.
        """
        if "first_votes" in setup.parameters:
            raise ConfigError(f"first_votes cannot be set: the study {self.name} sets it")
        found = super().run(setup)
        (measure,) = self.measures
        arms = self.arms if self.placebo is None else self.placebo.beside(self.arms, setup.llm)
        bands = {arm: {group: found.bands[f"{arm}, {group}"][measure] for group in GROUPS} for arm in arms}
        return replace(found, bands=bands, draw=partial(study_chart, self.name, bands, len(setup.seeds)))


def counterfactual_outcomes(worlds: Mapping[str, Results]) -> dict[str, float]:
    """Compute the excess disagreement in the worlds with a first vote over those without.

    Args:
        worlds: Arm and group (`herding, up`) → results of the world.
    """
    figures: dict[str, float] = {}
    for arm in dict.fromkeys(world.rpartition(", ")[0] for world in worlds):
        scores = {group: _known(worlds[f"{arm}, {group}"]["disagree"]) for group in GROUPS}
        figures |= {f"{arm}: disagree score, {group}": score for group, score in scores.items()}
        figures |= {
            f"{arm}: effect, {group}": scores[group] - scores["control"] for group, vote in GROUPS.items() if vote
        }
    return figures


def _known(figure: float | None) -> float:
    return math.nan if figure is None else figure


EFFECTS = tuple(f"effect, {group}" for group, vote in GROUPS.items() if vote)
"""Figures of the herd studies that are compared with those of the placebo."""

HIDDEN = Placebo(
    "votes hidden",
    {"votes": "hidden"},
    "users see the same posts and comments in the same order, without the votes of others",
    EFFECTS,
    "users see the votes of others",
)
"""Placebo of the herd studies: what is left is the effect of order and exposure."""

N_READERS = 18
"""Users per post published in a step of the herd study (OASIS: 3,600 users, 200 posts); at least eight posts."""

HERD = Arms(
    "herd",
    "Do people follow the votes they see on comments?",
    HerdModel,
    {"herding": {}},
    40,
    tuple(f"score_{group}" for group in GROUPS),
    herd_outcomes,
    study_chart,
    defaults=lambda parameters: {"posts_per_step": max(8, round(parameters.get("n_agents", 0) / N_READERS))},
    placebo=HIDDEN,
)

N_FALSE = 0.3
"""False posts published per user and step (OASIS: 30 for 100 users)."""


def false_posts(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of users of the counterfactual study, 100 by default, and of posts in proportion to it."""
    n = parameters.get("n_agents", 100)
    return {"n_agents": n, "posts_per_step": max(1, round(N_FALSE * n))}


COUNTERFACTUAL = Worlds(
    "counterfactual",
    "Do people disagree less with a false post that others have liked?",
    HerdModel,
    {"herding": {}},
    30,
    ("disagree_in_step",),
    counterfactual_outcomes,
    study_chart,
    {"preset": "counterfactual_herd"},
    false_posts,
    HIDDEN,
)

SIZES = (100, 1_000, 10_000)
"""Numbers of users in OASIS's counterfactual study."""


def sized_arms(sizes: Sequence[int]) -> dict[str, Mapping[str, Any]]:
    """Return an arm for each number of users, with posts in proportion to it."""
    return {f"{n} users": false_posts({"n_agents": n}) for n in sizes}


SCALE = replace(
    COUNTERFACTUAL,
    name="scale",
    question="Does the effect of a first vote depend on the number of users?",
    arms=sized_arms(SIZES),
    defaults=None,
    placebo=None,
)


def study_scale(setup: StudySetup, *, sizes: Sizes = SIZES) -> ArmFindings:
    """Run the counterfactual study with several numbers of users, without its control arm.

    Args:
        setup: Settings of the runs.
        sizes: Numbers of users; posts and hot list are in proportion to them.
    """
    return replace(SCALE, arms=sized_arms(sizes)).run(setup)


def polarisation_outcomes(arms: Mapping[str, Results]) -> dict[str, float]:
    """Return the share of answers that became more extreme, their stance and helpfulness, by arm."""
    names = ("more_extreme", "less_extreme", "neutral", "leaning", "helpfulness", "variety")
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


NEUTRAL_TALK = Placebo(
    "neutral talk",
    {"talk": "neutral"},
    "users read sentences about rivers and stones in place of the comments of others",
    ("more extreme", "less extreme", "leaning"),
    "users read the comments of others",
)
"""Placebo of the study of polarisation."""

POLARISATION = Arms(
    "polarisation",
    "Do groups of one leaning become more extreme by talking?",
    PolarisationModel,
    {
        "cautious": {"leaning": "cautious"},
        "bold": {"leaning": "bold"},
    },
    30,
    ("more_extreme", "neutral", "leaning"),
    polarisation_outcomes,
    study_chart,
    placebo=NEUTRAL_TALK,
)

GROUP_SIZES = (196, 1_000, 10_000, 100_000)
"""Numbers of users in OASIS's study of larger groups, from its real users to 100,000."""


def study_groups(setup: StudySetup, *, sizes: Sizes = GROUP_SIZES) -> ArmFindings:
    """Run the polarisation study in larger and larger groups around the same core users, who alone are interviewed.

    Args:
        setup: Settings of the runs.
        sizes: Numbers of users, up to `n_agents` if that is set. The core users are those in the file, if there is one,
            or else as many as in the smallest group.
    """
    parameters = dict(setup.parameters)
    maximum = parameters.pop("n_agents", None) or max(sizes)
    sizes = tuple(dict.fromkeys(min(n, maximum) for n in sizes))
    n_core = min(sizes)
    core = {} if parameters.get("users") else {"core_users": n_core}
    setting = {"population": "oasis_x", "n_interviewed": n_core - 1, **core}
    arms = {f"{n} users": {"n_agents": n} for n in sizes}
    measures = ("more_extreme", "helpfulness", "variety")
    study = replace(POLARISATION, name="groups", question=GROUPS_QUESTION, arms=arms, measures=measures)
    return replace(study, setting=setting, placebo=None).run(replace(setup, parameters=parameters))


TRUTHS_ONLY = Placebo(
    "truths only",
    {"second": "truths"},
    "a second truth on each topic stands in the place of the rumour, and is counted as one",
    ("rumours less truths",),
    "a truth and a rumour on each topic",
)
"""Placebo of the study of rumours: what is left is the difference between any two stories."""

RUMOURS = Arms(
    "rumours",
    "Do rumours spread further than truths?",
    RumourModel,
    {"alluring": {}},
    60,
    ("truths", "rumours"),
    rumour_outcomes,
    study_chart,
    placebo=TRUTHS_ONLY,
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
    study_chart,
)


def study_ablations(setup: StudySetup, *, data: Path | None = None) -> ArmFindings:
    """Take parts out of a network of drawn users for a day, or, with OASIS's files, out of the spread of real posts.

    Args:
        setup: Settings of the runs.
        data: Folder with OASIS's files of one topic or more; None for a network of drawn users.
    """
    if data is None:
        return ABLATIONS.run(setup)
    n_steps, n_minutes = lengths(setup)
    spreads, topics = read_spreads(data, n_minutes), topics_in(data)
    real_arms = {one.name: real_arm(one, topics, setup.parameters.get("n_agents")) for one in spreads}
    arms = {f"{part}, {name}": {**real, **own} for part, own in TOPIC_ARMS.items() for name, real in real_arms.items()}
    runs, cost = spreading_runs(setup, arms, n_steps, n_minutes)
    rows = [topic_row(one, {part: runs[f"{part}, {one.name}"] for part in TOPIC_ARMS}) for one in spreads]
    bands = {
        name: {
            part: Band(
                *mean_intervals(
                    np.array([relative(name, one, runs[f"{part}, {one.name}"]).mean(axis=0) for one in spreads])
                )
            )
            for part in TOPIC_ARMS
        }
        for name in CURVES
    }
    found = arm_findings("ablations", ABLATIONS.question, setup, n_steps, cost, bands, estimates(rows))
    return replace(found, draw=partial(study_chart, "topics", bands, len(setup.seeds)))


WITH_ARMS = (POLARISATION, HERD, COUNTERFACTUAL, RUMOURS)
"""Studies with arms that share their seeds."""

NONE_NEEDED = {
    "spreading": "none, as the study compares curves with real ones and with baselines",
    "ablations": "none, as each arm takes a part of the world away from the same language model",
    "scale": "none, as the control is the smaller network of the same language model",
    "groups": "none, as the control is the smaller group of the same language model",
    "fit": "none, as no language model takes part",
}
"""Study without a placebo → why it has none."""

STUDIES = (
    Study("spreading", SPREADING, SpreadingModel, study_spreading, N_SEEDS, NONE_NEEDED["spreading"]),
    *(
        Study(one.name, one.question, one.model, one.run, N_SEEDS, one.placebo.text)
        for one in WITH_ARMS
        if one.placebo is not None
    ),
    Study("ablations", ABLATIONS.question, AblationModel, study_ablations, N_SEEDS, NONE_NEEDED["ablations"]),
    Study("scale", SCALE.question, HerdModel, study_scale, N_LARGE, NONE_NEEDED["scale"]),
    Study("groups", GROUPS_QUESTION, PolarisationModel, study_groups, N_LARGE, NONE_NEEDED["groups"]),
    Study("fit", FIT, SpreadingModel, study_fit, 1, NONE_NEEDED["fit"]),
)
"""All studies."""
