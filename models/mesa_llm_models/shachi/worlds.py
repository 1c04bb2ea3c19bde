"""Living in two worlds: does talk on a social network change how people trade?

Source:
    Shachi (2025), section 4.3.3, Figure 6 and Table 3: 50 agents, 10 days, three trials with GPT-3.5, no intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import correlation
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mesa_llm.charts import COLOURS, GREY, INK, Chart, ChartSeries, Panels, limits_of
from mesa_llm.experiments.findings import Table, Value, comparison_cells
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.statistics import Comparison, compare, correct, mean_estimate, ratio_estimate
from mesa_llm.statistics.comparisons import N_PERMUTATIONS, SEED
from mesa_llm.text import counted
from mesa_llm_models.oasis.model import POST
from mesa_llm_models.shachi.rows import column, lack_of_seeds, runs_with
from mesa_llm_models.shachi.two_worlds import OTHER_POST, TwoWorldsModel
from mesa_llm_models.stock_agent.world import STOCKS

FloatArray = NDArray[np.float64]

QUESTION = "Do people trade differently who also live on a social network, and remember it?"
"""Question of the study."""

CONTROL = "alone"
"""Control arm."""

ARMS = ("shared", "other topic", "filler", "isolated")
"""Arms with a network: the treatment, and three placebos."""

ARM_TEXTS = {
    "alone": "nobody is on the network, and time passes as in the others",
    "shared": "one memory for both worlds",
    "other topic": "one memory, and a first post about something else",
    "filler": "a memory for each world, and neutral text of the length of what was remembered of the network",
    "isolated": "a memory for each world",
}
"""Arm → description."""

PUBLISHED = {
    ("volume", "A"): 10.0,
    ("volume", "B"): 20.0,
    ("buys", "A"): 8.4,
    ("buys", "B"): 6.1,
    ("sells", "A"): 6.6,
    ("sells", "B"): -8.5,
}
"""Indicator and stock → published change in percent with the network, without an interval."""

CAVEAT = (
    "Runs of one seed have the same endowments, draws and times in all arms, so that differences are paired by seed. "
    "By rule, the links between the worlds are those that were written into the rule twins: the study then shows that "
    "it finds them, and finds nothing in the placebos, and says nothing about people or language models."
)
"""Limits of the figures."""

LAGS = (-2, -1, 0, 1, 2)
"""Lags of orders behind posts, in sessions; negative if orders come first."""


def study_worlds(setup: StudySetup) -> StudyFindings:
    """Run all arms with each seed, and compare each with the exchange alone.

    Args:
        setup: Settings of the runs; by default a run ends when the exchange closes.
    """
    runs = setup.experiment()
    couplings = [CONTROL, *(arm for arm in ARMS if arm != "other topic")]
    own = {name: value for name, value in setup.parameters.items() if name not in ("post", "coupling")}
    posts = [setup.parameters.get("post", POST), OTHER_POST]
    try:
        rows, other = (
            runs.sweep(name, TwoWorldsModel, {"coupling": arms, "post": [post]}, fixed=own, steps=setup.steps).table
            for name, arms, post in zip(("worlds", "other topic"), (couplings, ["shared"]), posts, strict=True)
        )
    finally:
        runs.close()
    rows = pd.concat([rows.assign(arm=rows["coupling"]), other.assign(arm="other topic")], ignore_index=True)
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, **setup.parameters}
    return StudyFindings(
        "worlds",
        QUESTION,
        setting,
        runs.cost(),
        [indicator_table(rows), price_table(rows), lag_table(rows), arm_table()],
        lambda: worlds_chart(rows),
        " ".join(filter(None, (lack_of_seeds(len(setup.seeds)), CAVEAT))),
    )


def arm_table() -> Table:
    """Return the descriptions of the arms."""
    return Table("Arms", [{"arm": name, "what it is": text} for name, text in ARM_TEXTS.items()])


def indicator_table(rows: pd.DataFrame) -> Table:
    """Compare the indicators in Table 3 of each arm with the exchange alone.

    Args:
        rows: One row per run, with its `arm`.
    """
    keys = [(arm, name, stock) for arm in ARMS for name in ("volume", "buys", "sells") for stock in STOCKS]
    pairs = [
        (column(rows, f"{name}_{stock}", arm=arm), column(rows, f"{name}_{stock}", arm=CONTROL))
        for arm, name, stock in keys
    ]
    compared = correct([compare(treated, alone) for treated, alone in pairs])
    table: list[dict[str, Value]] = []
    for (arm, name, stock), (treated, alone), one in zip(keys, pairs, compared, strict=True):
        control = mean_estimate(alone)
        table.append(
            {
                "arm": arm,
                "indicator": name,
                "stock": stock,
                "alone": None if control is None else control.value,
                **change_cells(treated, alone),
                **_tested(one),
                "published %": PUBLISHED[name, stock] if arm == "shared" else None,
            }
        )
    return Table(
        "Change of the indicators against the exchange alone",
        table,
        "volume: matched orders; buys, sells: orders submitted. In brackets of the change: 95 % interval of "
        "the pairs. p: paired t-test; adjusted for all rows (Benjamini–Hochberg).",
    )


def change_cells(treated: list[float | None], control: list[float | None]) -> dict[str, Value]:
    """Return the change of a mean in percent of the control's, with its interval; empty for a control of 0.

    Args:
        treated: Values of the treatment, one per run.
        control: Values of the control, with the same seeds.
    """
    try:
        ratio = ratio_estimate(treated, control)
    except ValueError:
        return {"change %": None, "low": None, "high": None}
    low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
    return {"change %": 100 * (ratio.value - 1), "low": low, "high": high}


def _tested(one: Comparison | None) -> dict[str, Value]:
    cells = comparison_cells(one)
    return {name: cells[name] for name in ("difference", "effect", "p", "adjusted p", "pairs")}


# -- prices


def price_table(rows: pd.DataFrame) -> Table:
    """Compare price changes, and whole price paths, of each arm with the exchange alone.

    Args:
        rows: One row per run, with its `arm`.
    """
    keys = list(product(ARMS, STOCKS))
    compared = [
        compare(column(rows, f"change_{stock}", arm=arm), column(rows, f"change_{stock}", arm=CONTROL))
        for arm, stock in keys
    ]
    table: list[dict[str, Value]] = []
    for (arm, stock), one in zip(keys, correct(compared), strict=True):
        paths = [paths_of(rows, f"price_{stock}", name) for name in (arm, CONTROL)]
        published = "rises less" if arm == "shared" else ""
        cells = {name: value for name, value in comparison_cells(one).items() if name != "effect"}
        table.append(
            {"arm": arm, "stock": stock, **cells, "p of the path": path_p(*paths), "published (Figure 6)": published}
        )
    return Table(
        "Price change over the run, in percentage points, against the exchange alone",
        table,
        "p of the path: paired permutation test of the whole price path, session by session.",
    )


def paths_of(rows: pd.DataFrame, name: str, arm: str) -> FloatArray:
    """Return one series of the runs in an arm, shape `(runs, points)`, cut to the shortest run.

    Args:
        rows: One row per run.
        name: Name of the series.
        arm: The arm.
    """
    courses = [course[name] for course in runs_with(rows, arm=arm)["course"]]
    length = min(map(len, courses))
    return np.array([course[:length] for course in courses], dtype=np.float64)


def path_p(first: FloatArray, second: FloatArray) -> float | None:
    """Test whether two sets of paths differ, by permutations within pairs.

    The statistic is the sum over points of the squared mean difference. p is exact if all permutations are feasible.

    Args:
        first: Paths of one treatment, shape `(runs, points)`.
        second: Paths of the other, with the same seeds.

    Returns:
        p; None with fewer than two pairs.
    """
    length = min(first.shape[1], second.shape[1])
    apart = first[:, :length] - second[:, :length]
    n = len(apart)
    if n < 2:
        return None
    if 2**n <= N_PERMUTATIONS:
        signs = np.array(list(product((1.0, -1.0), repeat=n)))
    else:
        drawn = np.random.default_rng(SEED).choice((1.0, -1.0), (N_PERMUTATIONS, n))
        signs = np.vstack([np.ones(n), drawn])
    statistics = np.square(np.einsum("ij,jk", signs, apart)).sum(axis=1)
    tolerance = 1e-9 * max(float(statistics[0]), 1.0)
    return float(np.mean(statistics >= statistics[0] - tolerance))


# -- from posts to orders


def lag_table(rows: pd.DataFrame) -> Table:
    """Correlate posts about trading with the orders of sessions before and after, by arm.

    Args:
        rows: One row per run, with its `arm`.
    """
    table: list[dict[str, Value]] = []
    for arm in ARMS:
        courses = list(runs_with(rows, arm=arm)["course"])
        row: dict[str, Value] = {"arm": arm}
        for lag in LAGS:
            estimate = mean_estimate([lagged_correlation(course, lag) for course in courses])
            row[f"lag {lag:+d}" if lag else "lag 0"] = None if estimate is None else estimate.value
        table.append(row)
    return Table(
        "Correlation of posts about trading with orders",
        table,
        "Mean over seeds. Lag 1: orders of the session after the next; lag 0: of the session that follows the posts; "
        "below 0: of sessions before. Nothing where there are no such posts.",
    )


def lagged_correlation(course: Mapping[str, Sequence[float]], lag: int) -> float | None:
    """Correlate posts about trading in a network step with the orders in a session `lag` later.

    Args:
        course: Series of a run, see `TwoWorldsModel.results`.
        lag: Number of sessions; 0 for the one after the step.

    Returns:
        Pearson's r; None if either is constant, or fewer than four pairs are left.
    """
    orders = np.sum([course[f"orders_{stock}"] for stock in STOCKS], axis=0)
    posts = np.asarray(course["trade_posts"], dtype=np.float64)[: len(orders)]
    orders = orders[: len(posts)]
    before, after = (posts[: len(posts) - lag], orders[lag:]) if lag >= 0 else (posts[-lag:], orders[:lag])
    if len(before) < 4 or np.ptp(before) == 0 or np.ptp(after) == 0:
        return None
    return correlation(before.tolist(), after.tolist())


# -- chart

ARM_COLOURS: dict[str, str] = dict(zip((*ARMS, CONTROL), (*COLOURS[:4], GREY), strict=True))


def worlds_chart(rows: pd.DataFrame) -> Panels:
    """Return the price paths of both stocks by arm, and the changes of the indicators.

    Args:
        rows: One row per run, with its `arm`.
    """
    charts: list[Chart] = []
    for stock in STOCKS:
        means = {arm: paths_of(rows, f"price_{stock}", arm).mean(axis=0).tolist() for arm in ARM_COLOURS}
        series = [ChartSeries(name=arm, values=mean, colour=ARM_COLOURS[arm]) for arm, mean in means.items()]
        charts.append(Chart(title=f"Price of {stock}", series=series, x="session", **limits_of(series)))
    title = f"Trading and talking ({counted(len(set(rows['seed'])), 'seed')})"
    return Panels(title=title, charts=[*charts, changes_chart(rows)])


def changes_chart(rows: pd.DataFrame) -> Chart:
    """Return the change of each indicator by arm, with intervals, and the published change.

    Args:
        rows: One row per run, with its `arm`.
    """
    series = [ChartSeries(values=[0], kind="level", colour=GREY)]
    for arm in ARMS:
        cells = [
            change_cells(column(rows, f"{name}_{stock}", arm=arm), column(rows, f"{name}_{stock}", arm=CONTROL))
            for name, stock in PUBLISHED
        ]
        values, low, high = ([cell[name] for cell in cells] for name in ("change %", "low", "high"))
        ends: dict[str, Any] = {"values": values, "low": low, "high": high}
        series.append(ChartSeries(name=arm, kind="point", colour=ARM_COLOURS[arm], **ends))
    published: dict[str, Any] = {"name": "published (shared)", "shape": "D", "colour": INK}
    series.append(ChartSeries(values=list(PUBLISHED.values()), kind="point", **published))
    names = [f"{name} {stock}" for name, stock in PUBLISHED]
    return Chart(title="Change against the exchange alone, %", series=series, names=names, is_horizontal=True)
