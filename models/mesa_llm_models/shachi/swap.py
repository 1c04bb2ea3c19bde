"""Backend swap: the same economy with other language models.

Source:
    Shachi (2025), section 4.3.1 and Figures 4 and 7: EconAgent, 100 agents, 240 months, no memory, config or tools; one
    run per backend, no numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from mesa_llm.charts import COLOURS, Chart, ChartSeries, Panels
from mesa_llm.experiments.findings import Table, Value, estimate_cells
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.statistics import (
    COVERAGE,
    Column,
    FittedLine,
    adjusted_p,
    compare,
    line_through,
    mean_estimate,
    permutation_p,
)
from mesa_llm.text import figure_text
from mesa_llm_models.econ_agent.model import EconAgentModel
from mesa_llm_models.econ_agent.scores import comparable
from mesa_llm_models.shachi.rows import lack_of_seeds, runs_with, total

FloatArray = NDArray[np.float64]

QUESTION = "Do the laws of a simulated economy depend on the language model behind its households?"
"""Question of the study."""

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
"""End of a model's name that says from when it is."""

ALPHA = 0.05
"""p below which the backends differ in a figure."""

MONTHS = 240
"""Number of months of a run."""

BARE = {"memory": "none", "reflect_every": 0}
"""Parameters for households without memory and reflection, as in the study."""

BASELINES = ("composite", "len", "cats")
"""Household rules to compare the language models with."""

LAWS: Mapping[str, tuple[str, str, str]] = {
    "Phillips curve": ("unemployment", "wage_inflation", "wage inflation on unemployment"),
    "Okun's law": ("unemployment_growth", "real_growth", "growth of real output on it"),
    "Okun's law, nominal": (
        "unemployment_growth",
        "nominal_growth",
        "growth of nominal output on that of unemployment",
    ),
}
"""Name of a law → column of x, column of y, and description."""

LEVELS = ("unemployment", "price_inflation", "wage_inflation", "nominal_growth", "real_growth")
"""Yearly figures with means to compare."""

YEARLY: Mapping[str, int] = {"unemployment": 12, "real_growth": 24}
"""Yearly figure → minimum number of months for one year of it."""

MONTHS_OF_RANGES = 36
"""Minimum number of months for a range of every yearly figure: two years with a change on the year before."""

MIN_POINTS = 3
"""Minimum number of years with a point for a line."""

MIN_MONTHS = 12 * (MIN_POINTS + 1)
"""Minimum number of months for a line: a year's change needs the year before."""

PUBLISHED = (
    ("gpt-4.1-nano", "unemployment", "consistently higher than of the others"),
    ("gpt-4.1", "real_growth", "markedly stronger than of the others"),
)
"""Backend, yearly figure, and what the study reports of it.

Source:
    Shachi (2025), section 4.3.1 and Figure 4.
"""

CAVEAT = (
    "A slope of a run has the years as points, which follow one another, so that its own standard error is too small: "
    "the test of equality takes the slope of each run as one value, and permutes which backend it belongs to. Real "
    "output is what those at work make, so that Okun's law holds by bookkeeping; the nominal one could fail."
)
"""Limits of the figures."""


class SwapModel(EconAgentModel):
    """The economy of EconAgent, with the yearly points of both laws in its results."""

    def results(self) -> dict[str, Any]:
        """Return the published measures, mean and range of yearly figures, and each law's points as pairs (x, y)."""
        years = self.years
        results: dict[str, Any] = dict(super().results())
        results |= {f"mean {name}": _mean(years[name].to_numpy(dtype=np.float64)) for name in LEVELS}
        results |= {f"range {name}": _range(years[name].to_numpy(dtype=np.float64)) for name in LEVELS}
        return results | {"points": {law: points_of(years, law) for law in LAWS}}


def _mean(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _range(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if len(finite) > 1 else math.nan


def points_of(years: pd.DataFrame, law: str) -> list[list[float]]:
    """Return the points of a law as pairs (x, y), without incomplete years.

    Args:
        years: A world's yearly table.
        law: Name of the law.
    """
    x, y, _ = LAWS[law]
    chosen = years.iloc[1:] if law == "Phillips curve" else comparable(years)
    pairs = chosen[[x, y]].to_numpy(dtype=np.float64)
    return pairs[np.isfinite(pairs).all(axis=1)].tolist()


def study_swap(setup: StudySetup) -> StudyFindings:
    """Run the economy with each backend and seed, and compare the lines of both laws.

    Args:
        setup: Settings of the runs. Its `llm` may list several language models, separated by commas, to compare with
            each other and with the rule baselines, or name those of one economy by household. Its steps are months, 240
            by default.
    """
    months = MONTHS if setup.steps is None else setup.steps
    policies = [str(setup.parameters["policy"])] if "policy" in setup.parameters else list(BASELINES)
    own = {name: value for name, value in setup.parameters.items() if name != "policy"}
    models = backends_of(setup.llm)
    runs = setup.experiment()
    try:
        how: dict[str, Any] = {"fixed": {**BARE, **own}, "steps": months}
        rules = runs.sweep("swap", SwapModel, {"policy": policies}, llm="rule", **how).table
        tables = [rules.assign(backend="rule: " + rules["policy"])]
        if models:
            found = runs.sweep("swap", SwapModel, llm=models, **how).table
            tables.append(found.assign(backend=found["llm"]))
    finally:
        runs.close()
    rows = pd.concat(tables, ignore_index=True)
    setting = {"seeds": list(setup.seeds), "backends": list(dict.fromkeys(rows["backend"])), "months": months, **own}
    return StudyFindings(
        "swap",
        QUESTION,
        setting,
        runs.cost(),
        [slope_table(rows), equality_table(rows), level_table(rows), cost_table(rows), published_table(rows)],
        lambda: swap_chart(rows),
        " ".join(filter(None, (lack_of(rows, months, len(setup.seeds)), CAVEAT))),
    )


def backends_of(llm: str | Mapping[str, str]) -> list[str | Mapping[str, str]]:
    """Return the language models to compare with the rule baselines: names with commas between them, or one mixture."""
    if not isinstance(llm, str):
        return [llm]
    names = dict.fromkeys(name.strip() for name in llm.split(","))
    return [name for name in names if name not in ("", "rule")]


def lack_of(rows: pd.DataFrame, months: int, n_seeds: int) -> str:
    """Describe how many more months or seeds the figures need; empty if they have enough.

    Args:
        rows: One row per run, with its `backend`.
        months: Number of months of a run.
        n_seeds: Number of seeds.
    """
    lacks: list[str] = []
    has_all = all(line is not None for law in LAWS for name in names_of(rows) for line in lines_of(rows, name, law))
    if months < MIN_MONTHS:
        lacks.append(
            f"A line goes through {MIN_POINTS} years or more, and the first one has no change on the year before: "
            f"dashes need {MIN_MONTHS} months (--steps {MIN_MONTHS}; these runs have {months}, the study has {MONTHS})."
        )
    elif not has_all:
        lacks.append(
            f"Where a line is missing, fewer than {MIN_POINTS} years followed a year with unemployment, or all had the "
            f"same: more months (the study has {MONTHS}) or households help."
        )
    return " ".join(filter(None, (*lacks, lack_of_seeds(n_seeds))))


def published_table(rows: pd.DataFrame) -> Table:
    """Return what Shachi reports of its backends beside what these runs show, and what it takes in place of a dash.

    Args:
        rows: One row per run, with its `backend`.
    """
    table: list[dict[str, Value]] = []
    months = max(rows["steps"].tolist())
    longer = f"--steps {MIN_MONTHS}" if months < MIN_MONTHS else f"more months than {months}, or households"
    for law in ("Phillips curve", "Okun's law"):
        slopes = {name: mean_estimate(slopes_of(rows, name, law)) for name in names_of(rows)}
        known = {name: slope.value for name, slope in slopes.items() if slope is not None}
        falling = sum(slope < 0 for slope in known.values())
        ours = f"falls for {falling} of {len(known)} backends with a line" if known else None
        cells = _finding("Figure 4", law, "present for all backends", ours, longer)
        table.append(cells)
    for backend, figure, text in PUBLISHED:
        finding = f"{figure.replace('_', ' ')} of {backend}"
        is_run = any(_is_backend(name, backend) for name in names_of(rows))
        needs = f"--steps {YEARLY[figure]}" if is_run else f"{backend} among the models of --llm"
        table.append(_finding("Figure 4", finding, text, _rank(rows, backend, figure), needs))
    changed, differ = _changes(rows), _differences(rows)
    table.append(
        _finding("Figure 7", "all indicators", "change over the years", changed, f"--steps {MONTHS_OF_RANGES}")
    )
    table.append(_finding("Figure 7", "all indicators", "differ in detail by backend", differ, "--seeds 2 --steps 24"))
    return Table(
        "Published and ours",
        table,
        "Published: Shachi (2025), one run for each backend, no numbers. Ours: means over runs. Where ours has a dash, "
        "the last column says what it takes.",
    )


def _finding(figure: str, finding: str, published: str, ours: str | None, needs: str) -> dict[str, Value]:
    """Return the cells of a finding, with what it takes if there is none of ours."""
    cells: dict[str, Value] = {"figure": figure, "finding": finding, "published": published}
    return cells | {"ours": ours, "it takes": needs if ours is None else ""}


def _changes(rows: pd.DataFrame) -> str | None:
    """Count the yearly figures that change over the years in every run; None with fewer than two of any."""
    ranges = {name: rows[f"range {name}"].dropna() for name in LEVELS if f"range {name}" in rows}
    if not (ranges and all(map(len, ranges.values()))):
        return None
    changing = sum(bool((values > 0).all()) for values in ranges.values())
    return f"{changing} of {len(LEVELS)} change in every run"


def _differences(rows: pd.DataFrame) -> str | None:
    """Count the yearly figures that differ among backends; None where none can be tested."""
    tests = [permutation_p(_levels_of(rows, name)) for name in LEVELS]
    known = [p for p in adjusted_p(tests) if p is not None]
    return f"{sum(p < ALPHA for p in known)} of {len(known)} differ (adjusted p < {ALPHA})" if known else None


def _levels_of(rows: pd.DataFrame, name: str) -> list[list[float]]:
    """Return a yearly figure of each run, by backend."""
    return [rows.loc[rows["backend"] == backend, f"mean {name}"].tolist() for backend in names_of(rows)]


def _is_backend(name: str, backend: str) -> bool:
    """Check whether a name is that of a published backend, with or without a provider and the date of a snapshot."""
    return _SNAPSHOT.sub("", name.rpartition("/")[2]) == backend


def _rank(rows: pd.DataFrame, backend: str, figure: str) -> str | None:
    """Describe where a backend stands among all by a yearly figure; None if it was not run."""
    means = {
        name: mean_estimate(rows.loc[rows["backend"] == name, f"mean {figure}"].tolist()) for name in names_of(rows)
    }
    known = {name: one.value for name, one in means.items() if one is not None}
    own = next((name for name in known if _is_backend(name, backend)), None)
    if own is None:
        return None
    rank = 1 + sum(value > known[own] for value in known.values())
    return f"{figure_text(known[own])}, rank {rank} of {len(known)}"


def names_of(rows: pd.DataFrame) -> list[str]:
    """Return the backends, in order.

    Args:
        rows: One row per run, with its `backend`.
    """
    return list(dict.fromkeys(rows["backend"]))


def line_of(points: Sequence[Sequence[float]]) -> FittedLine | None:
    """Fit a line through points; None if there are too few.

    Args:
        points: Pairs (x, y).
    """
    return line_through([point[0] for point in points], [point[1] for point in points])


def lines_of(rows: pd.DataFrame, backend: str, law: str) -> list[FittedLine | None]:
    """Return the line of each run of a backend, ordered by seed."""
    return [line_of(points[law]) for points in runs_with(rows, backend=backend)["points"]]


def slopes_of(rows: pd.DataFrame, backend: str, law: str) -> Column:
    """Return the slope of each run of a backend, ordered by seed; None without a line."""
    return [None if line is None else line.slope.value for line in lines_of(rows, backend, law)]


def intercepts_of(rows: pd.DataFrame, backend: str, law: str) -> Column:
    """Return the intercept of each run of a backend, ordered by seed; None without a line."""
    return [None if line is None else line.intercept.value for line in lines_of(rows, backend, law)]


def standard_error(values: Column) -> float | None:
    """Compute the standard error of a mean; None with fewer than two values."""
    present = [value for value in values if value is not None]
    return float(stats.sem(present)) if len(present) > 1 else None


def slope_table(rows: pd.DataFrame) -> Table:
    """Return slope and intercept of each law by backend: the mean over runs, and the pooled fit."""
    table: list[dict[str, Value]] = []
    for law in LAWS:
        for backend in names_of(rows):
            slopes, intercepts = slopes_of(rows, backend, law), intercepts_of(rows, backend, law)
            chosen = runs_with(rows, backend=backend)
            pooled = line_of([point for points in chosen["points"] for point in points[law]])
            intercept = mean_estimate(intercepts)
            table.append(
                {
                    "law": law,
                    "backend": backend,
                    **estimate_cells(mean_estimate(slopes), "slope"),
                    "standard error": standard_error(slopes),
                    "intercept": None if intercept is None else intercept.value,
                    "its standard error": standard_error(intercepts),
                    "pooled slope": None if pooled is None else pooled.slope.value,
                    "its error": None if pooled is None else pooled.slope_error,
                    "pooled r": None if pooled is None else pooled.r,
                    "runs": float(sum(value is not None for value in slopes)),
                }
            )
    return Table(
        "Lines of the laws by backend",
        table,
        "Slope: mean of the slopes of the runs, with its 95 % interval and its standard error over runs. "
        "Pooled: one line through the years of all runs.",
    )


def equality_table(rows: pd.DataFrame) -> Table:
    """Test whether all backends, and each pair, have the same slope and intercept."""
    backends = names_of(rows)
    tests: list[dict[str, Value]] = []
    for law in LAWS:
        for name, values_of in (("slope", slopes_of), ("intercept", intercepts_of)):
            groups = {backend: values_of(rows, backend, law) for backend in backends}
            tests.append(
                {"law": law, "of": name, "backends": "all", "difference": None, "p": _equality(groups.values())}
            )
            for first, second in combinations(backends, 2):
                one = compare(groups[first], groups[second])
                tests.append(
                    {
                        "law": law,
                        "of": name,
                        "backends": f"{first} – {second}",
                        "difference": None if one is None else one.difference.value,
                        "p": _equality([groups[first], groups[second]]),
                    }
                )
    adjusted = adjusted_p([one["p"] if isinstance(one["p"], float) else None for one in tests])
    table = [{**one, "adjusted p": p} for one, p in zip(tests, adjusted, strict=True)]
    shares = [{**row, **_interaction(rows, row)} for row in table]
    return Table(
        "Are the lines equal?",
        shares,
        "p: permutation of which backend the slopes (intercepts) of the runs belong to; adjusted for all rows "
        "(Benjamini–Hochberg). p of the interaction: F test of a slope for each backend against one for all, through "
        "the years of all runs, which takes them for independent.",
    )


def _equality(groups: Any) -> float | None:
    known = [group for group in groups if sum(value is not None for value in group) > 1]
    return permutation_p(known)


def _interaction(rows: pd.DataFrame, row: Mapping[str, Value]) -> dict[str, Value]:
    """Return the p of the interaction, for rows about all backends' slopes."""
    if row["backends"] != "all" or row["of"] != "slope":
        return {"p of the interaction": None}
    groups = [
        [point for points in rows.loc[rows["backend"] == name, "points"] for point in points[row["law"]]]
        for name in names_of(rows)
    ]
    return {"p of the interaction": interaction_p(groups)}


def interaction_p(groups: Sequence[Sequence[Sequence[float]]]) -> float | None:
    """Test whether the lines through several groups of points share a slope, with an intercept per group.

    Args:
        groups: Points (x, y) of each group.

    Returns:
        p of the F test; None with fewer than two groups that have a line, or without remaining degrees of freedom.

    Source:
        Analysis of covariance: the interaction of group and x.
    """
    centred = [_centred(group) for group in groups if len(group) > 2 and np.ptp([point[0] for point in group]) > 0]
    if len(centred) < 2:
        return None
    n_free = sum(len(group) for group in centred) - 2 * len(centred)
    own = sum(_residual(group) for group in centred)
    common = _residual(np.vstack(centred))
    if n_free <= 0 or own <= 0:
        return None
    ratio = (common - own) / (len(centred) - 1) / (own / n_free)
    return float(stats.f.sf(ratio, len(centred) - 1, n_free))


def _centred(points: Sequence[Sequence[float]]) -> FloatArray:
    table = np.asarray(points, dtype=np.float64)
    return table - table.mean(axis=0)


def _residual(centred: FloatArray) -> float:
    """Compute the residual sum of squares of a line through the origin."""
    x, y = centred.T
    slope = (x * y).sum() / (x * x).sum()
    return float(np.square(y - slope * x).sum())


def level_table(rows: pd.DataFrame) -> Table:
    """Return mean yearly figures by backend, with intervals, and the test that all are equal."""
    table: list[dict[str, Value]] = []
    for name in LEVELS:
        groups = _levels_of(rows, name)
        p = permutation_p(groups)
        for backend, values in zip(names_of(rows), groups, strict=True):
            cells = estimate_cells(mean_estimate(values))
            table.append({"figure": name, "backend": backend, **cells, "p that all are equal": p})
    return Table("Yearly figures, mean over years and runs", table)


def cost_table(rows: pd.DataFrame) -> Table:
    """Return failures, tokens, dollars and seconds by backend."""
    table: list[dict[str, Value]] = []
    for backend in names_of(rows):
        own = runs_with(rows, backend=backend)
        decisions, calls, seconds = (total(own, name) for name in ("decisions", "calls", "seconds"))
        table.append(
            {
                "backend": backend,
                "runs": float(len(own)),
                "decisions": decisions,
                "failed %": 100 * total(own, "failures") / decisions if decisions else None,
                "tokens": total(own, "prompt_tokens") + total(own, "reply_tokens"),
                "dollars": total(own, "dollars"),
                "seconds a run": seconds / len(own),
                "seconds a call": seconds / calls if calls else None,
            }
        )
    return Table("Failures and cost by backend", table)


def swap_chart(rows: pd.DataFrame) -> Panels:
    """Return the yearly points and pooled lines of each law, with one colour per backend."""
    charts: list[Chart] = []
    for law, (x, y, _) in LAWS.items():
        series = [
            each
            for index, backend in enumerate(names_of(rows))
            for each in _series_of(rows, backend, law, COLOURS[index % len(COLOURS)])
        ]
        places = [place for each in series for place in each.places]
        reach: dict[str, Any] = {"start": min(places, default=0.0), "end": max(places, default=1.0)}
        charts.append(Chart(title=law, series=series, x=x.replace("_", " "), y=y.replace("_", " "), **reach))
    title = f"The same economy, other minds ({rows['seed'].nunique()} seeds, {COVERAGE:.0%} intervals)"
    return Panels(title=title, charts=charts)


def _series_of(rows: pd.DataFrame, backend: str, law: str, colour: str) -> list[ChartSeries]:
    """Return a backend's points, its pooled line, and the interval of the runs' slopes around its centre."""
    pairs = [point for own in runs_with(rows, backend=backend)["points"] for point in own[law]]
    points = np.array(pairs).reshape(-1, 2)
    cloud = ChartSeries(
        values=points[:, 1].tolist(), at=points[:, 0].tolist(), kind="point", colour=colour, is_faint=True
    )
    line, slope = line_of(points.tolist()), mean_estimate(slopes_of(rows, backend, law))
    if line is None:
        return [cloud, ChartSeries(name=f"{backend}: no line", values=[], colour=colour)]
    at = np.array([points[:, 0].min(), points[:, 0].max()])
    ends: dict[str, Any] = {}
    if slope is not None and slope.low is not None and slope.high is not None:
        centre = points.mean(axis=0)
        sides = np.array([centre[1] + end * (at - centre[0]) for end in (slope.low, slope.high)])
        ends = {"low": sides.min(axis=0).tolist(), "high": sides.max(axis=0).tolist()}
    values = (line.intercept.value + line.slope.value * at).tolist()
    return [cloud, ChartSeries(name=backend, values=values, at=at.tolist(), colour=colour, **ends)]
