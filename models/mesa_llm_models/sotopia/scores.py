"""Scores: aggregation as published, exact margins, intervals over scenarios, pairs of runs, and published values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy import stats

from mesa_llm import ConfigError
from mesa_llm.statistics import jackknife_estimate, krippendorff_alpha
from mesa_llm_models.sotopia.episodes import Episode
from mesa_llm_models.sotopia.judge import STANDARD, TABLE_ORDER, Dimension, intraclass

GOAL = "goal"

OVERALL = "overall"

SUCCESS = 0.7
"""Minimum goal score that counts as success, on a scale from 0 (lowest possible) to 1 (highest): 7 of 10."""


# -- one judgement: the original's aggregation of rows


@dataclass(frozen=True)
class Aggregate:
    """Scores aggregated over rows of one or more judges."""

    terminated: bool
    """Whether any row marks the episode as over."""

    rates: Mapping[str, tuple[float, dict[str, Any]]]
    """`agent_1`, … → overall score, and score by dimension; without agents that have no row."""

    comments: str
    """The reasons, one per line, under the agent's name."""


Row = tuple[str, str, float | bool, str]
"""Subject (`agent_1`, `agent_2`, … or `environment`), dimension, value and reason."""


def aggregate(rows: Iterable[Row], n_persons: int = 2, *, ignores_others: bool = False) -> Aggregate:
    """Aggregate rows: means by dimension, and their unweighted mean, unless there is a row `overall_score`.

    Args:
        rows: The rows.
        n_persons: Number of persons. A row of a later agent is an error.
        ignores_others: Whether such a row is allowed, with only its reason kept, as in later versions of Sotopia.

    Raises:
        ValueError: If a row has another subject, or a value of the wrong type.

    Source:
        Zhou et al. (2024), SOTOPIA, ICLR; the evaluators of their code at `97db3b0`.
    """
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(_checked(row)[0], []).append(row)
    allowed = {f"agent_{number}" for number in range(1, n_persons + 1)}
    strangers = [name for name in by_name if name != "environment" and name not in allowed]
    if strangers and not ignores_others:
        raise ValueError(f"rows must be about {', '.join(sorted(allowed))}, got {strangers[0]!r}")
    reduced = {name: _reduced(rows) for name, rows in by_name.items()}
    titles = {"environment": "Environment: ", **{name: f"{name}:\n" for name in sorted(allowed.union(strangers))}}
    comments = "".join(f"{title}{reduced[name][1]}\n" for name, title in titles.items() if name in reduced)
    rates = {
        name: (float(values.get("overall_score", 0)), values)
        for name, (values, _) in reduced.items()
        if name in allowed
    }
    over = reduced.get("environment", ({}, ""))[0].get("terminated", False)
    return Aggregate(bool(over), rates, comments)


def _checked(row: Row) -> Row:
    name, dimension, value, _ = row
    if name != "environment" and not name.startswith("agent"):
        raise ValueError(f"a row must be about agent_1, agent_2, … or the environment, got {name!r}")
    kind: Any = bool if dimension == "terminated" else int | float
    if not isinstance(value, kind):
        raise ValueError(f"{dimension} is {'true or false' if kind is bool else 'a number'}, got {value!r}")
    return row


def _reduced(rows: Sequence[Row]) -> tuple[dict[str, Any], str]:
    values: dict[str, list[Any]] = {}
    reasons: dict[str, str] = {}
    for _, dimension, value, reason in rows:
        values.setdefault(dimension, []).append(value)
        reasons[dimension] = reasons.get(dimension, "") + reason
    reduced: dict[str, Any] = {
        name: any(each) if name == "terminated" else sum(each) / len(each) for name, each in values.items()
    }
    means = [mean for name, mean in reduced.items() if name != "terminated"]
    if means and "overall_score" not in reduced:
        reduced["overall_score"] = sum(means) / len(means)
    return reduced, "\n".join(f"{name}: {reason}" for name, reason in reasons.items())


# -- tables of a run


def rating_table(episodes: Sequence[Episode], dimensions: Sequence[Dimension]) -> pd.DataFrame:
    """Return all judgements.

    Args:
        episodes: The episodes of a run.
        dimensions: The rated dimensions.

    Returns:
        One row per judgement and person: episode, situation, pair, seat, tested, judge, sample, swapped, failure, and
        each dimension; NaN where the judgement is missing.
    """
    rows: list[dict[str, Any]] = []
    for episode in episodes:
        for one in episode.ratings:
            scores = one.scores or {}
            rows.append(
                {
                    "episode": episode.index,
                    "situation": episode.situation.situation_id,
                    "pair": episode.pair,
                    "seat": one.seat,
                    "tested": one.seat in episode.tested_seats,
                    "judge": one.judge,
                    "sample": one.sample,
                    "swapped": one.is_swapped,
                    "failure": one.failure,
                    **{d.name: float(scores.get(d.name, math.nan)) for d in dimensions},
                }
            )
    names = ["episode", "situation", "pair", "seat", "tested", "judge", "sample", "swapped", "failure"]
    return pd.DataFrame(rows, columns=[*names, *(one.name for one in dimensions)])


def score_table(episodes: Sequence[Episode], dimensions: Sequence[Dimension]) -> pd.DataFrame:
    """Return the scores of all persons: means over the usable judgements.

    Args:
        episodes: The episodes of a run.
        dimensions: The rated dimensions.

    Returns:
        One row per episode and seat: episode, situation, pair, seat, tested, kind, hard, source, name, judgements
        (number of usable ones), missing (number of the others), each dimension, and `overall`, their mean; NaN without
        a usable judgement.
    """
    ratings = rating_table(episodes, dimensions)
    names = [one.name for one in dimensions]
    means: Any = ratings.groupby(["episode", "seat"])[names].mean()
    counts: Any = ratings.dropna(subset=names).groupby(["episode", "seat"]).size()
    of_all: Any = ratings.groupby(["episode", "seat"]).size()
    rows: list[dict[str, Any]] = []
    for episode in episodes:
        for seat, character in enumerate(episode.characters):
            key = (episode.index, seat)
            scores = means.loc[key].to_dict() if key in means.index else dict.fromkeys(names, math.nan)
            rows.append(
                {
                    "episode": episode.index,
                    "situation": episode.situation.situation_id,
                    "pair": episode.pair,
                    "seat": seat,
                    "tested": seat in episode.tested_seats,
                    "kind": episode.situation.kind,
                    "hard": episode.situation.is_hard,
                    "source": episode.situation.source,
                    "name": character.name,
                    "judgements": int(counts.get(key, 0)),
                    "missing": int(of_all.get(key, 0) - counts.get(key, 0)),
                    **scores,
                    OVERALL: float(np.mean(list(scores.values()))),
                }
            )
    return pd.DataFrame(rows)


def means_of(scores: pd.DataFrame, dimensions: Sequence[Dimension] = STANDARD) -> dict[str, float]:
    """Return the means of the persons under test by code, in the order of the published tables, and overall.

    Args:
        scores: As from `score_table`.
        dimensions: The rated dimensions.
    """
    tested: Any = scores[scores["tested"]]
    by_code = {one.code: float(tested[one.name].mean()) for one in dimensions}
    order = [code for code in TABLE_ORDER if code in by_code]
    means = {code: by_code[code] for code in [*order, *by_code]}
    return means | {OVERALL: float(tested[OVERALL].mean())}


def slices(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the parts of a score table that are reported separately, hard subset first, without empty ones."""
    parts: dict[str, Any] = {"hard": scores["hard"], "cooperative": scores["kind"] == "cooperative"}
    parts["competitive"] = scores["kind"] == "competitive"
    present: dict[str, Any] = {name: scores[mask] for name, mask in parts.items() if mask.any()}
    return present


def summary_of(scores: pd.DataFrame, dimensions: Sequence[Dimension]) -> dict[str, Any]:
    """Return the scores of a run by name.

    Args:
        scores: As from `score_table`.
        dimensions: The rated dimensions.

    Returns:
        The goal in each subset (`GOAL hard`, …), the mean of each dimension by code, `overall`, `min-max` (the mean on
        a scale from 0 to 1), `success`, and counts: `scored`, `not_scored` and `scored_in_part`.
    """
    summary: dict[str, Any] = {}
    goal = next((one for one in dimensions if one.name == GOAL), None)
    for name, part in slices(scores).items() if goal else ():
        summary[f"GOAL {name}"] = float(part.loc[part["tested"], GOAL].mean())
    summary |= means_of(scores, dimensions)
    codes = {one.name: summary[one.code] for one in dimensions}
    summary["min-max"] = float(np.mean(list(normalised(codes, dimensions).values())))
    if goal is not None:
        summary["success"] = success_rate(scores, goal)
    tested: Any = scores[scores["tested"]]
    summary["scored"] = int(tested[OVERALL].notna().sum())
    summary["not_scored"] = int(tested[OVERALL].isna().sum())
    summary["scored_in_part"] = int((tested[OVERALL].notna() & (tested["missing"] > 0)).sum())
    return summary


def success_rate(scores: pd.DataFrame, goal: Dimension = STANDARD[-1]) -> float:
    """Return the share of judged persons under test who reached their goal; NaN if none was judged.

    Args:
        scores: As from `score_table`.
        goal: The goal dimension; the goal is reached from `SUCCESS` of its range.
    """
    goals: Any = scores.loc[scores["tested"], goal.name].dropna()
    return float((goals >= goal.low + SUCCESS * (goal.high - goal.low)).mean())


def normalised(scores: Mapping[str, float], dimensions: Sequence[Dimension] = STANDARD) -> dict[str, float]:
    """Rescale scores from 0, the lowest possible one, to 1, the highest.

    Args:
        scores: Dimension → score.
        dimensions: The rated dimensions.

    Source:
        Kuroki et al. (2025), Shachi, table 2.
    """
    ranges = {one.name: (one.low, one.high) for one in dimensions}
    return {name: (score - ranges[name][0]) / (ranges[name][1] - ranges[name][0]) for name, score in scores.items()}


# -- uncertainty


def margins(scores: pd.DataFrame, names: Sequence[str], groups: Sequence[str] = ("situation", "seat")) -> pd.DataFrame:
    """Compute means with the published margins: the variance is the mean of those within situation and seat.

    It ignores differences between situations, and a group of one episode adds 0 to it; `interval` avoids both.

    Args:
        scores: One row per episode and seat. Rows with a NaN in a column are ignored there.
        names: Columns.
        groups: Columns that define the groups.

    Returns:
        One row per column: mean, sem, margin (half of the 95 % interval, by the exact quantile of t), groups, episodes.
    """
    rows: dict[str, dict[str, float]] = {}
    for name in names:
        scored: Any = scores.dropna(subset=[name])
        n = len(scored)
        by_group: Any = scored.groupby(list(groups))[name]
        variance = float(by_group.var(ddof=1).fillna(0.0).mean()) if n else math.nan
        sem = math.sqrt(variance / n) if n else math.nan
        quantile = float(stats.t.ppf(0.975, n - 1)) if n > 1 else math.nan
        row = {"mean": float(scored[name].mean()), "sem": sem, "margin": quantile * sem}
        rows[name] = row | {"groups": int(by_group.ngroups), "episodes": n}
    return pd.DataFrame.from_dict(rows, orient="index")


def interval(scores: pd.DataFrame, name: str) -> tuple[float, float]:
    """Compute a 95 % interval of a mean, by a jackknife that leaves out a situation with all its episodes.

    Args:
        scores: One row per episode and seat, with a column `situation`.
        name: Column.

    Returns:
        Lower and upper end; NaN with fewer than four situations, or if they are all alike.
    """
    by_situation: Any = scores.dropna(subset=[name]).groupby("situation")[name]
    totals = np.column_stack([by_situation.sum(), by_situation.count()]).astype(np.float64)
    if not len(totals):
        return math.nan, math.nan
    mean = jackknife_estimate(totals, lambda some: some[:, 0].sum() / some[:, 1].sum(), "situations")
    return (math.nan, math.nan) if mean.low is None or mean.high is None else (mean.low, mean.high)


def paired(first: pd.DataFrame, second: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Compare two tables of scores in pairs: same situation, characters and seat, and same judge if both have one.

    Args:
        first: One row per episode and seat, as from `score_table`, optionally with a judge.
        second: The same for the other run.
        names: Columns.

    Returns:
        One row per column: difference (first minus second), low and high (95 % interval over situations), p
        (paired t test), pairs.
    """
    keys = ["situation", "pair", "seat"]
    alike = [*keys, *(["judge"] if "judge" in first and "judge" in second else [])]
    sides: Any = [table[table["tested"]].groupby(alike)[list(names)].mean() for table in (first, second)]
    rows: dict[str, dict[str, float]] = {}
    for name in names:
        both: Any = pd.concat([side[name] for side in sides], axis=1, keys=["first", "second"]).dropna()
        both = both.groupby(keys).mean()
        difference = (both["first"] - both["second"]).rename(name).reset_index()
        low, high = interval(difference, name)
        varies = len(both) > 1 and difference[name].nunique() > 1
        p = float(stats.ttest_rel(both["first"], both["second"]).pvalue) if varies else math.nan
        rows[name] = {"difference": float(difference[name].mean()), "low": low, "high": high, "p": p}
        rows[name]["pairs"] = len(both)
    return pd.DataFrame.from_dict(rows, orient="index")


class ScoredRun(Protocol):
    """The part of a `SotopiaModel` used by comparisons."""

    dimensions: tuple[Dimension, ...]

    @property
    def judge(self) -> str | None:
        """Names of all judges; None without judges."""
        ...

    def ratings(self) -> pd.DataFrame:
        """Return all judgements, as `rating_table` does."""
        ...

    def scores(self) -> pd.DataFrame:
        """Return the scores, as `score_table` does."""
        ...


def compare(first: ScoredRun, second: ScoredRun, *, across_judges: bool = False) -> pd.DataFrame:
    """Compare two runs in pairs of episodes; see `paired`.

    With several judges, one counts for a pair only if it judged both episodes.

    Args:
        first: A run.
        second: Another run.
        across_judges: Whether the runs' judges may differ; the table then names both.

    Returns:
        As from `paired`, with the judge.

    Raises:
        ConfigError: If the judges differ without permission, or the dimensions differ.
    """
    judges = (first.judge, second.judge)
    is_alike = set(str(judges[0]).split(" + ")) == set(str(judges[1]).split(" + "))
    if not is_alike and not across_judges:
        raise ConfigError(
            f"{judges[0]} judged one run and {judges[1]} the other, and scores by different judges cannot be "
            "compared; use one judge for both, or set across_judges=True"
        )
    if first.dimensions != second.dimensions:
        raise ConfigError("the two runs were not rated on the same dimensions")
    one, other = (_by_judge(run) if is_alike else run.scores() for run in (first, second))
    table = paired(one, other, [*(dimension.name for dimension in first.dimensions), OVERALL])
    table.attrs["judges"] = judges
    return table.assign(judge=judges[0] if is_alike else " against ".join(map(str, judges)))


def _by_judge(run: ScoredRun) -> pd.DataFrame:
    """Return the scores of a run, one row per episode, seat and judge."""
    names = [one.name for one in run.dimensions]
    ratings: Any = run.ratings()
    ratings[OVERALL] = ratings[names].mean(axis=1, skipna=False)
    keys = ["episode", "situation", "pair", "seat", "tested", "judge"]
    return ratings.groupby(keys)[[*names, OVERALL]].mean().reset_index()


def distance_to_published(run: ScoredRun, name: str, *, across_judges: bool = False) -> float:
    """Compute the mean absolute difference of the seven means from the paper's, as in Shachi's Table 1.

    Args:
        run: The run.
        name: Name of the model in the paper's table, such as `GPT-4`.
        across_judges: Whether its judge may differ from the paper's.

    Raises:
        ConfigError: If the judge differs without permission, the paper has no such model, or a dimension in the paper
            was not rated.
    """
    table: Any = published()
    rows = table[(table["model"] == name) & table["setting"].str.startswith("all 90")]
    if rows.empty:
        names = ", ".join(table.loc[table["setting"].str.startswith("all 90"), "model"].unique())
        raise ConfigError(f"the paper's table has no model {name!r}; it has {names}")
    judge = str(rows["judge"].iloc[0])
    if not (across_judges or all(judge in one for one in str(run.judge).split(" + "))):
        raise ConfigError(
            f"{judge} judged the published runs and {run.judge} these; set across_judges=True to compare them anyway"
        )
    means = means_of(run.scores(), run.dimensions)
    if lacking := [code for code in rows["measure"] if code not in means]:
        raise ConfigError(f"{', '.join(lacking)} were not rated here; the paper's table has the standard dimensions")
    return float(np.mean([abs(means[row["measure"]] - row["value"]) for row in rows.to_dict("records")]))


# -- judges


def agreement(run: ScoredRun) -> pd.DataFrame:
    """Compute how well the judgements of a run agree, by dimension.

    Args:
        run: The run.

    Returns:
        One row per dimension: icc and alpha, with each judgement as a rater; first_gain (mean score of a person
        presented first, less that of the same person presented last). NaN where nothing can be compared.
    """
    ratings = run.ratings()
    rows: dict[str, dict[str, float]] = {}
    for one in run.dimensions:
        raters = ratings.pivot_table(
            index=["judge", "sample", "swapped"], columns=["episode", "seat"], values=one.name, dropna=False
        )
        table = raters.to_numpy() if len(raters) else np.empty((0, 0))
        alpha = krippendorff_alpha(table.T.tolist(), "interval", interval=False)
        rows[one.name] = {"icc": intraclass(table), "alpha": math.nan if alpha is None else alpha.value}
        rows[one.name]["first_gain"] = _first_gain(ratings, one.name)
    return pd.DataFrame.from_dict(rows, orient="index")


def _first_gain(ratings: pd.DataFrame, name: str) -> float:
    last: Any = ratings.groupby("episode")["seat"].transform("max")
    ends: Any = ratings[(ratings["seat"] == 0) | (ratings["seat"] == last)]
    is_first = (ends["seat"] == 0) != ends["swapped"]
    by_place: Any = ends.assign(first=is_first).pivot_table(
        index=["episode", "seat", "judge", "sample"], columns="first", values=name
    )
    has_both = {False, True} <= set(by_place.columns)
    return float((by_place[True] - by_place[False]).mean()) if has_both else math.nan


def published() -> pd.DataFrame:
    """Load published values.

    Returns:
        One row per value: source, quality (primary, secondary, third-party or computed), setting, judge, model,
        partner, measure, value.
    """
    text = resources.files(__package__).joinpath("data", "published.json").read_text(encoding="utf-8")
    rows = [
        {**{name: entry[name] for name in entry if name != "values"}, "measure": measure, "value": value}
        for entry in json.loads(text)
        for measure, value in entry["values"].items()
    ]
    return pd.DataFrame(rows)
