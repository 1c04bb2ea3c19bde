"""How a run unfolds: prices session by session, and the bidders' priorities lot by lot, beside what Shachi shows.

Source:
    Shachi (2025), section 4.1, Figure 3 and appendices B.1.7 and B.1.8: prices of StockAgent beside a run of the
    authors' program, priorities of AuctionArena beside those of its paper, with lots by falling price. Curves and
    colours only, no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import correlation
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, Panels, limits_of, shade_of
from mesa_llm.experiments.findings import Table, Value, estimate_cells
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup
from mesa_llm.statistics import COVERAGE, Column, mean_estimate, with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm_models.auction_arena.model import AuctionArena
from mesa_llm_models.auction_arena.world import priority_heat_map
from mesa_llm_models.stock_agent.model import StockAgentModel
from mesa_llm_models.stock_agent.scores import changes_error, gemini_paths
from mesa_llm_models.stock_agent.task import DAYS, SESSIONS
from mesa_llm_models.stock_agent.world import STOCKS, Stock

FloatArray = NDArray[np.float64]

PRICES_QUESTION = "Do prices move over the sessions as in the original's run?"
PRIORITIES_QUESTION = "Which lots do bidders want most, and how does that change as the auction goes on?"
"""Questions of the two studies."""

PRICES_SETTING: Mapping[str, Any] = {"n_agents": 50, "days": DAYS, "sessions": SESSIONS, "rules": "original"}
"""Parameters of the exchange in Shachi's study."""

PRIORITIES_SETTING: Mapping[str, Any] = {"order": "descending", "fidelity": "original"}
"""Parameters of the auction in Shachi's Figure 3; the rest are the model's own: three bidders, ten lots, $20,000."""

PRICES_CAVEAT = (
    "Shachi compares with its own run of the original program, which is not public: beside ours stands the original "
    "authors' run with Gemini-Pro. Two price paths of a few dozen sessions correlate by chance, too."
)
PRIORITIES_CAVEAT = (
    "A priority is 1 (can do without), 2 or 3 (most wanted). By rule, bidders state the priorities that were written "
    "into them."
)
"""Limits of the figures."""

ONE_SEED = "An interval needs 2 seeds (--seeds 2)."
"""What the figures of one run lack."""


class PricesModel(StockAgentModel):
    """The exchange, with the prices of all sessions in its results."""

    def results(self) -> dict[str, Any]:
        """Return the scores of the exchange, and the prices of both stocks, from the one before the first session."""
        return super().results() | {"paths": {stock: list(path) for stock, path in self.world.market.paths.items()}}


class PrioritiesModel(AuctionArena):
    """The auction, with the mean priorities before each lot in its results."""

    def results(self) -> dict[str, Any]:
        """Return the scores of the auctions, the lots in order, and each lot's priorities (row i: before lot i)."""
        cells = priority_heat_map(self.auctions).tolist()
        heat = [[None if math.isnan(cell) else cell for cell in row] for row in cells]
        return super().results() | {"lot_names": [lot.name for lot in self.auctions[0].auctioneer.lots], "heat": heat}


# -- prices


def study_prices(setup: StudySetup) -> StudyFindings:
    """Run the exchange with each seed, and show its prices beside those of the original's run.

    Args:
        setup: Settings of the runs, by default 50 traders and ten days; a run ends when the exchange closes.
    """
    runs, own = setup.experiment(), {**PRICES_SETTING, **setup.parameters}
    try:
        rows = runs.sweep("prices", PricesModel, fixed=own, steps=setup.steps).table
    finally:
        runs.close()
    paths: list[dict[Stock, list[float]]] = list(rows["paths"])
    is_comparable = own["sessions"] == SESSIONS
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, **own}
    lack = "" if is_comparable else f"A dash beside prices needs {SESSIONS} sessions a day, as in the original."
    return StudyFindings(
        "prices",
        PRICES_QUESTION,
        setting,
        runs.cost(),
        [match_table(paths, is_comparable=is_comparable), path_table(paths, own["sessions"])],
        lambda: prices_chart(paths, is_comparable=is_comparable),
        " ".join(filter(None, (lack, ONE_SEED * (len(setup.seeds) < 2), PRICES_CAVEAT))),
    )


def match_table(paths: list[dict[Stock, list[float]]], *, is_comparable: bool) -> Table:
    """Compare the course of each stock's price with that of the original's run.

    Args:
        paths: Prices of each run, by stock.
        is_comparable: Whether a day has as many sessions as in the original.
    """
    original = gemini_paths()
    table: list[dict[str, Value]] = []
    for stock in STOCKS:
        alike = [path_correlation(path[stock], original[stock]) if is_comparable else None for path in paths]
        end = mean_estimate([100 * (path[stock][-1] / path[stock][0] - 1) for path in paths])
        last = len(paths[0][stock]) - 1
        table.append(
            {
                "finding": f"price of {stock}",
                "published (Figure 3)": "close to the original over time",
                "correlation with the original": with_interval(mean_estimate(alike)),
                "change %": with_interval(end),
                "original's change %": 100 * (original[stock][last] / original[stock][0] - 1)
                if is_comparable and last < len(original[stock])
                else None,
            }
        )
    known = changes_error(paths, original) if is_comparable and len(paths[0]["A"]) > 1 else None
    return Table(
        "Published and ours",
        table,
        "Correlation of a run's prices with the original's, session by session; change from the price before the first "
        "session to the last price. Mean absolute error of the changes of a session, both stocks (Table 1: 2.63, "
        f"against runs that are not public): {figure_text(known)} percentage points.",
    )


def path_correlation(ours: list[float], original: Any) -> float | None:
    """Correlate two price paths over the sessions of both; None if they are too short, or one never moves."""
    n = min(len(ours), len(original))
    one, other = np.asarray(ours[:n]), np.asarray(original[:n])
    return None if n < 3 or np.ptp(one) == 0 or np.ptp(other) == 0 else correlation(one.tolist(), other.tolist())


def path_table(paths: list[dict[Stock, list[float]]], sessions: int) -> Table:
    """Return the mean price of each stock after each session, and the original's.

    Args:
        paths: Prices of each run, by stock.
        sessions: Number of sessions per day.
    """
    original = gemini_paths()
    table: list[dict[str, Value]] = []
    for index in range(1, min(len(path["A"]) for path in paths)):
        day, session = divmod(index - 1, sessions)
        row: dict[str, Value] = {"day": str(day + 1), "session": str(session + 1)}
        for stock in STOCKS:
            cells = estimate_cells(mean_estimate([path[stock][index] for path in paths]), stock)
            row |= {stock: cells[stock], f"low {stock}": cells["low"], f"high {stock}": cells["high"]}
            has_original = sessions == SESSIONS and index < len(original[stock])
            row[f"original {stock}"] = original[stock][index] if has_original else None
        table.append(row)
    return Table("Prices over the sessions", table, f"Means over runs, with {COVERAGE:.0%} intervals.")


def prices_chart(paths: list[dict[Stock, list[float]]], *, is_comparable: bool) -> Panels:
    """Return the prices of all runs, their mean, and the original's, by stock."""
    charts: list[Chart] = []
    for stock, colour in zip(STOCKS, COLOURS, strict=False):
        length = min(len(path[stock]) for path in paths)
        prices: FloatArray = np.array([path[stock][:length] for path in paths], dtype=np.float64)
        series = [ChartSeries(values=path, colour=colour, is_faint=True) for path in prices.tolist()]
        series.append(ChartSeries(name="mean of our runs", values=prices.mean(axis=0).tolist(), colour=colour))
        if is_comparable:
            original: dict[str, Any] = {"name": "original, Gemini-Pro", "colour": GREY, "is_dashed": True}
            series.append(ChartSeries(values=gemini_paths()[stock][:length], **original))
        charts.append(Chart(title=f"Price of {stock}", series=series, x="session", **limits_of(series)))
    return Panels(title=f"Prices over the sessions ({counted(len(paths), 'run')})", charts=charts)


# -- priorities


def study_priorities(setup: StudySetup) -> StudyFindings:
    """Run the auction with each seed, lots by falling price, and average the priorities of the lots that remain.

    Args:
        setup: Settings of the runs; by default a run ends with the last lot.
    """
    runs, own = setup.experiment(), {**PRIORITIES_SETTING, **setup.parameters}
    try:
        rows = runs.sweep("priorities", PrioritiesModel, fixed=own, steps=setup.steps).table
    finally:
        runs.close()
    heat = mean_heat(rows)
    orders = {tuple(names) for names in rows["lot_names"]}
    names = list(orders.pop()) if len(orders) == 1 else [""] * len(heat)  # another order in each run
    setting = {"seeds": list(setup.seeds), "language model": setup.llm_text, **own}
    return StudyFindings(
        "priorities",
        PRIORITIES_QUESTION,
        setting,
        runs.cost(),
        [finding_table(rows), heat_table(heat, names), change_table(heat, names)],
        lambda: priorities_chart(heat, len(rows)),
        " ".join(filter(None, (ONE_SEED * (len(rows) < 2), PRIORITIES_CAVEAT))),
    )


def heats_of(rows: pd.DataFrame) -> FloatArray:
    """Return the heat maps of all runs, shape `(runs, lots, lots)`; NaN without priorities."""
    return np.array([[[math.nan if cell is None else cell for cell in line] for line in one] for one in rows["heat"]])


def mean_heat(rows: pd.DataFrame) -> FloatArray:
    """Return the mean priorities over runs, shape `(lots, lots)`; NaN where no run has any."""
    heats = heats_of(rows)
    known = np.isfinite(heats)
    count = known.sum(axis=0)
    return np.divide(np.where(known, heats, 0).sum(axis=0), count, out=np.full(count.shape, math.nan), where=count > 0)


def finding_table(rows: pd.DataFrame) -> Table:
    """Return what Shachi shows of the priorities beside ours, as means over runs.

    Args:
        rows: One row per run, with its `heat`.
    """
    heats = heats_of(rows)
    first: Column = [_mean(heat[0]) for heat in heats]
    dearest: Column = [float(heat[0, 0]) for heat in heats]
    moved: Column = [_mean(np.diff(heat, axis=0)) for heat in heats]
    published = "shown by colour; alike in paper and reproduction"
    table: list[dict[str, Value]] = [
        {"finding": name, "published (Figure 3)": published, "ours": with_interval(mean_estimate(values))}
        for name, values in (
            ("priority of a lot in the first plan", first),
            ("of the dearest lot", dearest),
            ("change from one lot to the next", moved),
        )
    ]
    return Table(
        "Published and ours",
        table,
        "Means over bidders and lots, with intervals over runs. A dash stands where nobody planned (planning=none), or "
        "there was one lot.",
    )


def _mean(values: FloatArray) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def heat_table(heat: FloatArray, names: list[str]) -> Table:
    """Return the mean priority of each remaining lot before each lot."""
    return Table("Mean priority of the lots that remain", _heat_rows(heat, names), "A row before each lot.")


def change_table(heat: FloatArray, names: list[str]) -> Table:
    """Return the change of these means since the lot before."""
    rows = _heat_rows(np.diff(heat, axis=0), names, 1)
    return Table("Change of priority since the lot before", rows, "Lots by the order of their sale.")


def _heat_rows(heat: FloatArray, names: list[str], first: int = 0) -> list[dict[str, Value]]:
    """Return a heat map as rows, from the lot with index `first` onwards."""
    return [
        {
            "before": f"{index}. {names[index - 1]}".strip(),
            **{str(lot): float(cell) if math.isfinite(cell) else None for lot, cell in enumerate(line, 1)},
        }
        for index, line in enumerate(heat, first + 1)
    ]


def priorities_chart(heat: FloatArray, n_runs: int) -> Panels:
    """Return the priorities and their changes as heat maps."""
    lots = len(heat)
    maps = (
        ("Mean priority, 1 to 3", heat, heat / 3),
        ("Change since the lot before", np.diff(heat, axis=0), np.diff(heat, axis=0)),
    )
    charts: list[Chart] = []
    for title, cells, shades in maps:
        series = [
            ChartSeries(
                name=str(lot + 1),
                kind="cell",
                values=cells[:, lot].tolist(),
                colours=["#ffffff" if math.isnan(shade) else shade_of(shade) for shade in shades[:, lot]],
                labels=["" if math.isnan(cell) else f"{cell:.1f}" for cell in cells[:, lot]],
            )
            for lot in range(lots)
        ]
        names = [str(lot) for lot in range(lots - len(cells) + 1, lots + 1)]
        charts.append(Chart(title=title, series=series, names=names, is_horizontal=True, x="before lot", y="lot"))
    return Panels(title=f"Priorities of the lots that remain ({counted(n_runs, 'run')})", charts=charts)
