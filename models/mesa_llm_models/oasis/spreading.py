"""Minute-by-minute spread of a post: a rule twin with three parameters, fitted on half of OASIS's topics.

`mesa-llm study oasis spreading --set data=FOLDER` tests it on the other half, and on the one topic with a public real
curve; `mesa-llm study oasis fit --set data=FOLDER` repeats the fit. The folder contains OASIS's own files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import NormalDist, fmean, linear_regression
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from mesa_llm import ConfigError, Hidden, Label, LLMOptions, Observation, Slider, ToolCall
from mesa_llm.tables import read_table, whole_rows
from mesa_llm_models.oasis.model import OasisModel, OasisScenario, fan_edges
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import Names
from mesa_llm_models.social.world import SocialFacts
from mesa_llm_models.social.world.curves import SpreadCurves, read_curves

FloatArray = npt.NDArray[np.float64]

MINUTES = 150
"""Number of minutes to compare, from 0 on (OASIS, section 3.1)."""

FIRST = 50
"""Number of shares covered by the times in OASIS's table of topics, see `Topic`."""

CURVES_FILE = "_real_propagation.json"
"""Ending of the name of a file with real curves."""

CURVE_TOPIC = "False_Business_0"
"""Topic with a public real curve; never used in a fit."""

SPLIT_SEED = 11
"""Seed of the split."""

FIT_SEEDS = 6
"""Number of seeds averaged for each candidate of the fit."""


@dataclass(frozen=True)
class Twin:
    """Parameters of the spreading twin: everybody visits once, at an individual time, and shares."""

    look_minutes: float
    """Median time from the post to a follower's visit, in minutes."""

    look_sigma: float
    """Standard deviation of the logarithm of that time."""

    ties: float
    """Mean number of fellow followers a follower follows; their shares are above the post itself in the feed."""


FITTED = Twin(look_minutes=20.43, look_sigma=1.699, ties=0.65)
"""Parameters fitted on 99 of the 198 topics in OASIS's `all_topics.csv`, on 2026-11-22, by `mesa-llm study oasis fit`
(split seed 11); fixed before the comparison with the other 99.
"""


LOG_SLOPE = 0.0932
"""Slope of the logarithmic baseline, see `log_slope`; for the same 99 topics as `FITTED`."""

MEAN_DEPTH = 3.80
"""Mean depth of the same topics."""


@dataclass(frozen=True)
class Topic:
    """A real post and its spread on Twitter, from OASIS's table `all_topics.csv`.

    The table's time unit is not documented. Its means are whole multiples of 1/5000, like means of 50 times with two
    decimals. For the topic with a public curve the maximum, 7.02, falls in the minute when the curve passes 50 of 130
    users. We therefore take the times as minutes, for the first 50 shares.
    """

    name: str
    """Name of the topic."""

    category: str
    """One of ten categories."""

    start: str
    """Time of the post, in a format that sorts."""

    users: int
    """Number of users in the cascade."""

    depth: int
    """Largest distance of a user from the author."""

    median_minutes: float
    """Median time of the first 50 shares; NaN if the table's value is impossible."""

    last_minutes: float
    """Time of the 50th share."""

    text: str = ""
    """Text of the post; empty if the table has none."""


def read_topics(path: str | Path) -> list[Topic]:
    """Read OASIS's table of topics.

    Raises:
        ConfigError: If the file cannot be read, or a row lacks a field. The message names the line.
    """
    topics: list[Topic] = []
    placed = read_table(path, {"topic_name", "topic_category"})
    for (line, _), row in zip(placed, whole_rows(path, placed), strict=True):
        try:
            median, last = float(row["median_time"]), float(row["max_time"])
            times = (median, last) if 0 < median <= last else (math.nan, math.nan)
            counts = int(row["num_users"]), int(row["max_depth"])
            name, category, start = (str(row[column]) for column in ("topic_name", "topic_category", "start_time"))
            topics.append(Topic(name, category, start, *counts, *times, str(row.get("source_tweet") or "")))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{path}, line {line}: invalid topic ({error})") from None
    return topics


@dataclass(frozen=True)
class RealSpread:
    """A real post whose spread is known minute by minute, with the users who took part."""

    name: str
    """Name of the topic."""

    users: Path
    """File of the users (`TOPIC.csv`)."""

    curves: SpreadCurves
    """The real curves (`TOPIC_real_propagation.json`)."""


def read_spreads(folder: Path, n_minutes: int) -> list[RealSpread]:
    """Read the topics of a folder that have both a file of users and one of curves, in order of their names.

    Args:
        folder: The folder.
        n_minutes: Number of minutes to read, including minute 0.

    Raises:
        ConfigError: If there are none, or a file is invalid.
    """
    names = sorted(path.name.removesuffix(CURVES_FILE) for path in folder.glob(f"*{CURVES_FILE}"))
    names = [name for name in names if (folder / f"{name}.csv").is_file()]
    if not names:
        raise ConfigError(f"{folder} has no topic: expected TOPIC.csv and TOPIC{CURVES_FILE}, one pair or more")
    files = [(name, folder / f"{name}.csv", folder / f"{name}{CURVES_FILE}") for name in names]
    return [RealSpread(name, users, read_curves(curves).until(n_minutes)) for name, users, curves in files]


def split_topics(topics: Sequence[Topic], seed: int = SPLIT_SEED) -> tuple[list[Topic], list[Topic]]:
    """Split topics into halves by category. The topic with a real curve is in the second.

    Args:
        topics: The topics.
        seed: Seed of the split.

    Returns:
        Topics to fit on, and held-out topics.
    """
    rng = random.Random(seed)
    by_category: dict[str, list[Topic]] = {}
    for topic in sorted(topics, key=lambda one: one.name):
        by_category.setdefault(topic.category, []).append(topic)
    dealt: list[Topic] = []
    for category in sorted(by_category):
        dealt += rng.sample(by_category[category], len(by_category[category]))
    first, second = dealt[::2], dealt[1::2]
    return (second, first) if any(topic.name == CURVE_TOPIC for topic in first) else (first, second)


# -- the twin


def look_steps(n: int, twin: Twin, step_minutes: float, rng: random.Random) -> list[int]:
    """Draw the step of each follower's visit, from 1. The author, user 0, never visits.

    Args:
        n: Number of users, including the author.
        twin: The twin.
        step_minutes: Minutes per step.
        rng: Random generator.
    """
    minutes = [rng.lognormvariate(math.log(twin.look_minutes), twin.look_sigma) for _ in range(1, n)]
    return [0, *(max(1, math.ceil(one / step_minutes)) for one in minutes)]


def spread(edges: Sequence[tuple[int, int]], looks: Sequence[int], steps: int) -> list[tuple[int, int]]:
    """Spread a post like `SpreadingModel`'s rule twin but without a world, since fits need thousands of runs.

    Args:
        edges: (follower, followee); user 0 is the author.
        looks: Step of each user's visit.
        steps: Number of steps.

    Returns:
        (Step, distance from the author) of each share, in order.
    """
    followees: dict[int, list[int]] = {}
    for follower, followee in edges:
        followees.setdefault(follower, []).append(followee)
    shared = {0: (0, 0, 0)}  # user → step, position in posting order, distance
    order = sorted((step, user) for user, step in enumerate(looks) if 0 < step <= steps)
    for position, (step, user) in enumerate(order, start=1):
        sources = [shared[one] for one in followees.get(user, ()) if one in shared and shared[one][0] < step]
        latest = max(sources, key=lambda source: source[1], default=shared[0])
        shared[user] = (step, position, latest[2] + 1)
    return [(step, distance) for step, _, distance in list(shared.values())[1:]]


def early_minutes(joins: Sequence[tuple[int, int]], minutes: int = MINUTES) -> tuple[float, float]:
    """Return the median and last time of the first 50 shares. Missing shares count as the last minute.

    Args:
        joins: (Minute, distance) of each share, with one-minute steps.
        minutes: Number of minutes.
    """
    times = sorted(minute - 0.5 for minute, _ in joins)[:FIRST]
    times += [float(minutes)] * (FIRST - len(times))
    return (times[FIRST // 2 - 1] + times[FIRST // 2]) / 2, times[-1]


def run_twin(twin: Twin, n: int, seed: int, minutes: int = MINUTES) -> list[tuple[int, int]]:
    """Spread a post in a generated population, with one-minute steps.

    Args:
        twin: The twin.
        n: Number of users, including the author.
        seed: Seed.
        minutes: Number of minutes.

    Returns:
        (Minute, distance) of each share.
    """
    rng = random.Random(seed)
    edges = fan_edges(n, twin.ties, rng)
    return spread(edges, look_steps(n, twin, 1.0, rng), minutes)


def fit(topics: Sequence[Topic]) -> Twin:
    """Fit the twin: first the times, then the ties.

    Args:
        topics: The topics to fit on.
    """
    minutes, sigma = fit_times(topics)
    return fit_ties(topics, Twin(round(minutes, 2), round(sigma, 3), 0.0))


def fit_times(topics: Sequence[Topic]) -> tuple[float, float]:
    """Fit the median visit time and the standard deviation of the log times, by least squares.

    The k-th of n independent log-normal times has the expected logarithm mu + sigma · z((k - 3/8) / (n + 1/4)) (Blom).
    The ratio of the last to the median of the first 50 times determines sigma, whatever the topic's own pace; mu
    follows.

    Args:
        topics: The topics to fit on.
    """
    timed = [topic for topic in topics if math.isfinite(topic.median_minutes)]
    scores = np.array([[_normal_score(rank, topic.users - 1) for rank in (FIRST / 2 + 0.5, FIRST)] for topic in timed])
    logs = np.log([(topic.median_minutes, topic.last_minutes) for topic in timed])
    apart, log_ratio = scores[:, 1] - scores[:, 0], logs[:, 1] - logs[:, 0]
    sigma = float((apart * log_ratio).sum() / (apart * apart).sum())
    return math.exp(float((logs - sigma * scores).mean())), sigma


def fit_ties(topics: Sequence[Topic], twin: Twin) -> Twin:
    """Fit the ties, from 0 to 1.5 in steps of 0.05, to the topics' mean depth.

    Args:
        topics: The topics to fit on.
        twin: The twin, whose ties are ignored.
    """
    real_depth = fmean(topic.depth for topic in topics)

    def distance(candidate: Twin) -> float:
        depths = [
            max((far for _, far in run_twin(candidate, topic.users, 1_000 * seed + index)), default=0)
            for index, topic in enumerate(topics)
            for seed in range(FIT_SEEDS)
        ]
        return abs(fmean(depths) - real_depth)

    return min((replace(twin, ties=index / 20) for index in range(31)), key=distance)


def _normal_score(rank: float, n: int) -> float:
    return NormalDist().inv_cdf((rank - 0.375) / (n + 0.25))


# -- errors and baselines


def nrmse(simulated: FloatArray, real: FloatArray, form: Literal["paper", "code"] = "paper") -> float:
    """Compute the normalised root mean square error of a curve.

    Args:
        simulated: Values by minute.
        real: Values by minute, of the same length.
        form: `paper` divides by the real value at the last minute, `code` by the largest real value. Both are equal for
            curves that never fall.

    Raises:
        ValueError: If the curves have different lengths, or the divisor is not positive.

    Source:
        Yang et al. (2024), OASIS, arXiv 2411.11581, section 3.1; camel-ai/oasis.
    """
    if simulated.shape != real.shape:
        raise ValueError(f"curves must have equal lengths, got {len(simulated)} and {len(real)}")
    divisor = float(real[-1] if form == "paper" else real.max())
    if not divisor > 0:
        raise ValueError(f"the real curve must end above 0, got {divisor!r}")
    return float(np.sqrt(np.mean((simulated - real) ** 2))) / divisor


PERSISTENCE_MINUTES = 10
"""Number of real minutes known to the baseline `persistence`."""

SEES = {
    "constant at the mean": "the real curve",
    "persistence": f"its first {PERSISTENCE_MINUTES} minutes",
    "logarithmic fit": "the topics fitted on",
    "everyone at once": "the number of users",
    "constant one": "nothing",
}
"""Baseline of a curve → its input, besides the number of users."""


def log_slope(topics: Sequence[Topic]) -> float:
    """Fit the share of users after t minutes as slope · ln(1 + t), from the times of the 25th and 50th share."""
    timed = [topic for topic in topics if math.isfinite(topic.median_minutes)]
    points = [(topic.median_minutes, FIRST / 2 / topic.users) for topic in timed]
    points += [(topic.last_minutes, FIRST / topic.users) for topic in timed]
    logs, shares = np.log1p([minutes for minutes, _ in points]), np.array([share for _, share in points])
    return float((logs * shares).sum() / (logs * logs).sum())


def baseline_curves(real: SpreadCurves, n: int | None = None) -> dict[str, SpreadCurves]:
    """Return the five baselines of a real curve; `SEES` lists their inputs.

    Args:
        real: The real curve.
        n: Number of users in the population; None for the last value of the curve.
    """
    n = int(real.scale[-1]) if n is None else n
    minutes = np.arange(len(real))
    flat: FloatArray = np.ones(len(real))
    start = (minutes > 0).astype(np.float64)
    columns = (real.scale, real.depth, real.max_breadth)
    held = [one[np.minimum(minutes, PERSISTENCE_MINUTES - 1)] for one in columns]
    reached: FloatArray = np.minimum(1 + LOG_SLOPE * n * np.log1p(minutes), n).astype(np.float64)
    return {
        "constant at the mean": SpreadCurves(*(flat * float(one.mean()) for one in columns)),
        "persistence": SpreadCurves(*held),
        "logarithmic fit": SpreadCurves(reached, MEAN_DEPTH * start, reached - 1),
        "everyone at once": SpreadCurves(flat + (n - 1) * start, start, (n - 1) * start),
        "constant one": SpreadCurves(flat, 0 * flat, 0 * flat),
    }


QUANTITIES = ("median_minutes", "last_minutes", "depth")
"""Quantities predicted for a held-out topic."""


def held_out_predictions(topic: Topic, topics: Sequence[Topic]) -> dict[str, dict[str, float]]:
    """Return the predictions of the five baselines for a topic.

    Args:
        topic: The topic.
        topics: The topics to fit on.

    Returns:
        Baseline → quantity → value. Persistence takes the latest earlier topic, or else the earliest.
    """
    timed = [one for one in topics if math.isfinite(one.median_minutes)]
    earlier = [one for one in timed if one.start <= topic.start]
    last = max(earlier, key=lambda one: one.start) if earlier else min(timed, key=lambda one: one.start)
    logs = [math.log(one.users) for one in timed]
    fits = {name: linear_regression(logs, [getattr(one, name) for one in timed]) for name in QUANTITIES}
    return {
        "constant at the mean": {name: fmean(getattr(one, name) for one in timed) for name in QUANTITIES},
        "persistence": {name: float(getattr(last, name)) for name in QUANTITIES},
        "logarithmic fit": {name: fit.intercept + fit.slope * math.log(topic.users) for name, fit in fits.items()},
        "everyone at once": {"median_minutes": 0.5, "last_minutes": 0.5, "depth": 1.0},
        "constant one": {"median_minutes": float(MINUTES), "last_minutes": float(MINUTES), "depth": 0.0},
    }


def twin_prediction(twin: Twin, topic: Topic, seed: int) -> dict[str, float]:
    """Run the twin on a generated population of a topic's size, and return its predictions."""
    joins = run_twin(twin, topic.users, seed)
    median, last = early_minutes(joins)
    depth = max((distance for _, distance in joins), default=0)
    return {"median_minutes": median, "last_minutes": last, "depth": float(depth)}


# -- the model


class SpreadingScenario(OasisScenario):
    """Parameters of a spreading post."""

    n_agents: Annotated[Annotated[int, Field(ge=2)] | None, Slider(10, 500, 10, label="Users")] = 111
    """Number of users, including the author; with `users`, the maximum number read from the file."""

    preset: Annotated[Literal["information_spreading"], Label("Feed as in")] = "information_spreading"
    """Feed and actions of OASIS's study."""

    actions: Annotated[Names | None, Hidden()] = None
    """Names of the users' actions; None for the preset's."""

    step_minutes: Annotated[float, Field(gt=0), Slider(1, 30, 1, label="Minutes in a step")] = 1.0
    """Simulated minutes per step (OASIS: 3)."""

    look_minutes: Annotated[float, Field(gt=0), Slider(1, 120, 1, label="Median minutes to a look")] = (
        FITTED.look_minutes
    )
    """Median time from the post to a follower's visit, in minutes."""

    look_sigma: Annotated[float, Field(ge=0, le=5), Slider(0, 4, 0.1, label="Spread of the times")] = FITTED.look_sigma
    """Standard deviation of the logarithm of that time."""

    ties: Annotated[float, Field(ge=0, le=20), Slider(0, 5, 0.1, label="Other followers that a follower follows")] = (
        FITTED.ties
    )
    """Mean number of fellow followers a follower follows."""

    memory: Annotated[str, Hidden()] = "none"
    """Memory of the users, who visit only once."""


class SpreadingUser(SocialUser):
    """A user who visits the feed once. The rule twin shares the post from wherever it appeared.

    Attributes:
        look_step: Step of the visit; 0 for never.
    """

    look_step = 0

    def rule(self, seen: Observation) -> ToolCall | None:
        """Repost the post, or the share of it in the feed."""
        facts: SocialFacts = seen.facts
        for item in facts.feed:
            if item.post.source_id == self.model.root_id:
                return ToolCall("repost", {"post_id": item.post.post_id})
        return ToolCall("do_nothing") if "do_nothing" in (seen.tools or ()) else None


class SpreadingModel(OasisModel):
    """A post and followers who visit at different times: scale, depth and max breadth, minute by minute."""

    scenario_class = SpreadingScenario
    scenario: SpreadingScenario
    user_class = SpreadingUser

    def __init__(self, scenario: SpreadingScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign the users up, and draw their visit times."""
        super().__init__(scenario, **options)
        parameters = self.scenario
        if "activation" not in options:
            self.activation = SpreadingModel.onlookers
        twin = Twin(parameters.look_minutes, parameters.look_sigma, parameters.ties)
        others = [agent for agent in self.agents if agent is not self.influencer]
        looks = look_steps(len(others) + 1, twin, parameters.step_minutes, self.random)
        for agent, step in zip(others, looks[1:], strict=True):
            agent.look_step = step

    def onlookers(self) -> list[list[Any]]:
        """Return the users who visit in this step, in order of creation."""
        return [[agent for agent in self.agents if agent.look_step == self.now]]

    def curves(self) -> SpreadCurves:
        """Return the spread so far, minute by minute."""
        cascade = self.cascade
        return SpreadCurves.of_steps(cascade.size, cascade.depth, cascade.breadth, self.scenario.step_minutes)


def provenance(topics: Sequence[Topic], twin: Twin) -> Mapping[str, Any]:
    """Return the fitted parameters and a description of the fit, for a record."""
    timed = sum(math.isfinite(topic.median_minutes) for topic in topics)
    baselines = {"log_slope": round(log_slope(topics), 4), "mean_depth": round(fmean(one.depth for one in topics), 2)}
    return {**asdict(twin), **baselines, "topics": len(topics), "with_times": timed, "split_seed": SPLIT_SEED}
