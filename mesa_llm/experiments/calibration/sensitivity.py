"""Sensitivity analysis: how much of the variation of each result is due to each parameter.

    found = sensitivity(TownModel, {"gain": (0, 1), "level": (0, 20)}, folder="runs/sensitivity")
    found.table            # one row per result and parameter: Sobol indices with their intervals; the dummy; the noise
    found.warnings         # what cannot be told, and which results have no ranking
    found.draw()           # with their intervals

Indices are of the mean over seeds, without the noise of the few that were run (`indices`). A dummy parameter, which
only chooses the seeds, shows what chance alone does, and the noise between seeds stands beside it. Parameters are
ranked only where they stand out. An analysis that is started again makes only the missing runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mesa_llm.agents.design import AgentDesign
from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.panels import Panels
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration.indices import Indices, Method, morris_indices, sobol_indices
from mesa_llm.experiments.calibration.ranges import Ends, ParameterRange, how_of_points, ranges_of, settings_of
from mesa_llm.experiments.findings import Findings, Table, finite, require_measure
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.run import LAST
from mesa_llm.experiments.runs.sweep import Sweep, SweepPoint
from mesa_llm.model.model import LLMModel
from mesa_llm.statistics import Estimate, FloatArray, with_interval
from mesa_llm.text import NOT_KNOWN, counted, suggestion

if TYPE_CHECKING:
    import pandas as pd

N_POINTS: Mapping[str, int] = {"sobol": 64, "morris": 10}
"""Method → default number of base points (sobol) or trajectories (morris)."""

N_SEEDS = 2
"""Default number of runs of each point."""

N_LEVELS = 4
"""Number of values of a parameter in a design of Morris."""

SEEDS_APART = 1_000_000
"""Distance of the seeds of the first, second, … run of a point, so that more points or seeds keep the runs made."""

INDICES: Mapping[str, tuple[str, ...]] = {"sobol": ("S1", "ST"), "morris": ("mu_star", "mu", "sigma")}
"""Method → its indices. Each has a column, `…_low` and `…_high` for its 95 % interval, and `…_conf` for half of it."""

RANKED_BY: Mapping[str, str] = {"sobol": "ST", "morris": "mu_star"}
"""Method → the index that ranks parameters. Its column also holds the noise."""

DUMMY, NOISE = "dummy", "noise between seeds"
"""Names of the rows beside those of the parameters."""

MEANINGS: Mapping[str, str] = {
    "sobol": "Shares of the variance of the mean of a result over seeds. S1: due to the parameter alone; ST: that "
    f"together with its interactions. {DUMMY}: a parameter that only chooses the seeds; its indices are 0. {NOISE}: "
    "share of the variance of single runs.",
    "morris": "Effects over the range of a parameter, in the unit of the result, without noise. mu_star: mean size; "
    f"mu: mean; sigma: standard deviation, large where effects are not linear or interact. {DUMMY}: a parameter that "
    f"only chooses the seeds; its effects are 0. {NOISE}: standard deviation of the runs of one point.",
}
"""Method → meaning of its indices."""

RESULTS, TABLE = "sensitivity.json", "sensitivity.csv"
"""Files of the results, in the folder of the analysis."""

_OF_RUNS = ("llm", "design", "seed", "steps", *LAST)
"""Columns of a sweep that are no results."""


@dataclass(frozen=True)
class Sensitivity(Findings):
    """The result of a sensitivity analysis."""

    method: Method
    """Its method."""

    indices: pd.DataFrame = field(repr=False)
    """One row per result and parameter: `measure`, `parameter`, `kind` (parameter, dummy or noise), `rank` (missing for
    what cannot be told from the dummy, and for all if there is no ranking), and the indices with their 95 % intervals.
    Ranked parameters come first, the others in the order in which they were given.
    """

    warnings: Mapping[str, Sequence[str]]
    """Result → what cannot be told of it: sentences."""

    left_out: Mapping[str, str]
    """Result without indices → the reason."""

    n_points: int
    """Number of different points."""

    n_runs: int
    """Number of runs."""

    n_done: int
    """Number of runs by this call; the others were already in the folder."""

    tokens: int
    """Number of tokens of live replies in the runs of this call."""

    dollars: float
    """US dollars for live replies in the runs of this call."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable types."""
        parts: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "indices"}
        return {**parts, "indices": finite(self.indices.to_dict("records"))}

    @property
    def name(self) -> str:
        """Name of the analysis."""
        return f"Sensitivity ({self.method})"

    @property
    def table(self) -> pd.DataFrame:
        """One row per result and parameter, see `indices`."""
        return self.indices

    @property
    def lead(self) -> list[str]:
        """What cannot be told, and what is left out."""
        left_out = [f"{name} is left out: {reason}." for name, reason in self.left_out.items()]
        return [f"{name}: {one}" for name, several in self.warnings.items() for one in several] + left_out

    def parts(self) -> list[Table]:
        """Return the indices."""
        rows = [
            {
                "result": row["measure"],
                "parameter": row["parameter"],
                **{name: _index_text(row, name) for name in INDICES[self.method]},
            }
            for row in cast("list[dict[str, Any]]", self.table.to_dict("records"))
        ]
        return [Table("Indices", rows, f"{MEANINGS[self.method]} In brackets: 95 % intervals.")]

    def charts(self) -> list[Panels]:
        """Return the indices with their 95 % intervals."""
        return [self.draw()]

    def compare(self, measure: str) -> pd.DataFrame:
        """Return the indices of one result: a row for each parameter, the dummy and the noise, with 95 % intervals.

        Args:
            measure: Name of the result.

        Raises:
            ConfigError: If there is no such result.
        """
        require_measure(self.name, measure, list(dict.fromkeys(self.indices["measure"])))
        rows: Any = self.indices[self.indices["measure"] == measure]
        return rows.reset_index(drop=True)

    def chart(self, measure: str) -> Chart:
        """Draw the indices of one result with their 95 % intervals.

        Args:
            measure: Name of the result.

        Raises:
            ConfigError: If there is no such result.
        """
        rows = self.compare(measure)
        series: list[ChartSeries] = []
        for name in INDICES[self.method]:
            values, low, high = (
                [None if math.isnan(one) else one for one in rows[column].tolist()]
                for column in (name, f"{name}_low", f"{name}_high")
            )
            if any(end is not None for end in low):
                series.append(ChartSeries(name=name, values=values, low=low, high=high, kind="point"))
        title = measure if any(rank > 0 for rank in rows["rank"].tolist()) else f"{measure}: no ranking"
        names = rows["parameter"].tolist()
        return Chart(title=title, series=series, names=names, is_horizontal=True, x="", y="index, 95 % interval")

    def draw(self) -> Panels:
        """Draw the indices with their 95 % intervals, a panel for each result."""
        charts = [self.chart(measure) for measure in dict.fromkeys(self.indices["measure"])]
        return Panels(title="", charts=charts, columns=2)


def _index_text(row: Mapping[str, Any], name: str) -> str:
    if math.isnan(row[name]):
        return "" if row["kind"] == "noise" else NOT_KNOWN
    low, high = (None if math.isnan(row[end]) else row[end] for end in (f"{name}_low", f"{name}_high"))
    return with_interval(Estimate(row[name], low, high, 0))


def sample_points(
    ranges: Sequence[ParameterRange], method: Method, points: int | None = None, rng: int = 1
) -> FloatArray:
    """Draw the design of an analysis.

    Args:
        ranges: Ranges of the parameters.
        method: `sobol` or `morris`.
        points: Number of base points or of trajectories; None: 64 or 10.
        rng: Seed.

    Returns:
        The points, between 0 and 1, shape `(points, parameters + 3, parameters + 1)`; for Morris, with `+ 2` in place
        of `+ 3`. The last column is the dummy.

    Raises:
        ConfigError: If the method or the number of points is invalid.
    """
    if method not in INDICES:
        raise ConfigError(f"method={method!r}: expected {' or '.join(INDICES)}")
    points = N_POINTS[method] if points is None else points
    if points < 2:
        raise ConfigError(f"points={points}: {method} needs 2 {'base points' if method == 'sobol' else 'trajectories'}")
    n = len(ranges) + 1
    if method == "sobol":
        both = np.random.default_rng(rng).random((points, 2, n))
        takes_second = np.vstack([np.zeros((1, n)), np.eye(n), np.ones((1, n))]).astype(bool)
        return np.where(takes_second, both[:, 1:], both[:, :1])
    from SALib.sample import morris

    problem = {"num_vars": n, "names": [*(each.name for each in ranges), DUMMY], "bounds": [[0, 1]] * n}
    drawn: FloatArray = morris.sample(problem, points, num_levels=N_LEVELS, seed=rng)
    return drawn.reshape(points, n + 1, n)


def planned_runs(
    ranges: Sequence[ParameterRange], units: FloatArray, seeds: int = N_SEEDS, rng: int = 1
) -> list[SweepPoint]:
    """Return the runs of a design: each combination of parameters once, with all its seeds.

    Args:
        ranges: Ranges of the parameters.
        units: The design, as of `sample_points`.
        seeds: Number of runs of each point.
        rng: First seed.
    """
    by_values: dict[tuple[Any, ...], tuple[dict[str, Any], dict[int, None]]] = {}
    for setting, own in zip(_settings(ranges, units), _seeds(units, seeds, rng).tolist(), strict=True):
        by_values.setdefault(tuple(setting.values()), (setting, {}))[1].update(dict.fromkeys(own))
    return [SweepPoint(setting, tuple(own)) for setting, own in by_values.values()]


def _settings(ranges: Sequence[ParameterRange], units: FloatArray) -> list[dict[str, Any]]:
    """Return the parameters of each point."""
    return settings_of(ranges, units.reshape(-1, units.shape[2]))


def _seeds(units: FloatArray, seeds: int, rng: int) -> NDArray[np.int_]:
    """Return the seeds of each point, shape `(points, seeds)`: two sets in each block, one per value of the dummy."""
    side = (units[:, :, -1] != units[:, :1, -1]).astype(int)
    first = rng + 2 * np.arange(len(units))[:, None] + side
    return first.reshape(-1, 1) + SEEDS_APART * np.arange(seeds)


def sensitivity(
    model: type[LLMModel],
    ranges: Mapping[str, Ends],
    *,
    folder: str | Path,
    method: Method = "sobol",
    points: int | None = None,
    seeds: int = N_SEEDS,
    measures: Sequence[str] | None = None,
    rng: int = 1,
    steps: int | None = 10,
    llm: str = "rule",
    design: AgentDesign | None = None,
    fixed: Mapping[str, Any] | None = None,
    on_run: Callable[[Mapping[str, Any]], object] = lambda row: None,
    **settings: Any,
) -> Sensitivity:
    """Measure how much each parameter contributes to the variation of each result.

    Args:
        model: The model's class, which workers import by its name.
        ranges: Parameter → lowest and highest value, over which it varies uniformly.
        folder: Folder of the results, and of the runs. Runs already in it are not repeated.
        method: `sobol` for shares of the variance; `morris`, which needs fewer runs, for the sizes of effects.
        points: Number of base points (sobol) or trajectories (morris); None: 64 or 10.
        seeds: Number of runs of each point. With 1, indices contain the noise between seeds.
        measures: Results to analyse; None: all that are numbers.
        rng: Seed of the design, and first seed of the runs.
        steps: Number of steps of each run; None to run until the model ends.
        llm: Language model of the agents.
        design: Design of the agents; None: the model's own.
        fixed: Parameters that are the same in all runs.
        on_run: Called with the row of each new run as it ends.
        **settings: `on`, `workers`, `options`, `logs` (False by default), `progress` (likewise), endpoints, limits and
            budget of all runs, as for `mesa_llm.experiments.sweep`.

    Raises:
        ConfigError: If a range, a number or a name is invalid.
        BudgetExceeded: If the budget ended it; the same call resumes it.
        MesaLLMError: If runs failed.

    Source:
        Sobol (2001), Mathematics and Computers in Simulation 55; Saltelli et al. (2010), Computer Physics
        Communications 181; Morris (1991), Technometrics 33(2).
    """
    spaces = ranges_of(model, ranges)
    units = sample_points(spaces, method, points, rng)
    if seeds < 1:
        raise ConfigError(f"seeds={seeds}: each point needs 1 run or more")
    planned = planned_runs(spaces, units, seeds, rng)
    with RunBar(settings.pop("progress", False)) as bar:
        runs = Experiment(Path(folder), settings, how_of_points(llm, design, fixed, on_run), bar)
        done = runs.sweep("", model, planned, steps=steps)
    columns, left_out = _results_of(done, measures, fixed or {}, spaces)
    keys = [(*point.parameters.values(), seed) for point in planned for seed in point.seeds]
    place_of = {key: place for place, key in enumerate(keys)}
    places = np.array(
        [
            [place_of[*setting.values(), seed] for seed in own]
            for setting, own in zip(_settings(spaces, units), _seeds(units, seeds, rng).tolist(), strict=True)
        ]
    ).reshape(*units.shape[:2], seeds)
    rows: list[dict[str, Any]] = []
    warnings: dict[str, list[str]] = {}
    for name, values in columns.items():
        found = sobol_indices(values[places]) if method == "sobol" else morris_indices(values[places], units)
        ranking = _ranking(found, method)
        rows += [{"measure": name, **row} for row in _rows(found, method, [each.name for each in spaces], ranking)]
        if told := _warnings(found, ranking, [each.name for each in spaces], seeds):
            warnings[name] = told
    result = Sensitivity(
        method, _frame(rows), warnings, left_out, len(planned), done.n_runs, done.n_done, done.tokens, done.dollars
    )
    _write(result, Path(folder))
    return result


def _results_of(
    done: Sweep, measures: Sequence[str] | None, fixed: Mapping[str, Any], ranges: Sequence[ParameterRange]
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Return the results that can be analysed.

    Args:
        done: The runs.
        measures: Names of the results; None: all.
        fixed: Parameters of all runs.
        ranges: Ranges of the parameters that vary.

    Returns:
        Name of a result → its value in each run; and name of a result that cannot be analysed → the reason.

    Raises:
        ConfigError: If there is no result to analyse, or none of such a name.
    """
    import pandas as pd

    others = {*_OF_RUNS, *fixed, *(each.name for each in ranges)}
    names = [name for name in done.table.columns if name not in others]
    if unknown := [name for name in measures or () if name not in names]:
        hint = suggestion(unknown[0], names)
        raise ConfigError(f"the runs have no result {unknown[0]!r}; they have {', '.join(names) or 'none'}{hint}")
    columns: dict[str, FloatArray] = {}
    left_out: dict[str, str] = {}
    for name in measures or names:
        cells: Any = pd.to_numeric(done.table[name].astype(object), errors="coerce")
        values: FloatArray = np.asarray(cells, np.float64)
        n_missing = int(np.isnan(values).sum())
        if n_missing == len(values):
            left_out[name] = "it is not a number"
        elif n_missing:
            left_out[name] = f"{counted(n_missing, 'run')} of {len(values)} lack it"
        elif np.ptp(values) == 0:
            left_out[name] = "it is the same in all points"
        else:
            columns[name] = values
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ConfigError(f"there is no result to analyse{': ' if reasons else ''}{reasons}")
    return columns, left_out


def _ranking(found: Indices, method: Method) -> list[int]:
    """Return the parameters that stand out from the dummy, largest first; none where noise hides them."""
    by = RANKED_BY[method]
    *ours, dummy = [one[by] for one in found.parameters]
    if found.has_too_few_seeds or dummy is None or dummy.high is None:
        return []
    values = {
        place: one.value
        for place, one in enumerate(ours)
        if one is not None and one.low is not None and one.low > dummy.high
    }
    return sorted(values, key=lambda place: -values[place])


def _warnings(found: Indices, ranking: Sequence[int], names: Sequence[str], seeds: int) -> list[str]:
    """Say what indices cannot tell."""
    told: list[str] = []
    share = "" if found.noise is None else f" ({found.noise.value:.0%} of the variance of single runs)"
    if found.has_too_few_seeds or (found.noise is not None and found.noise.value > 0.5):
        told.append(f"noise between seeds{share} exceeds what the parameters explain.")
    if seeds == 1 and found.deviation:
        told.append("with one run at each point, indices contain the noise between seeds; take two or more.")
    hidden = [name for place, name in enumerate(names) if place not in ranking]
    if found.has_too_few_seeds:
        needed = f"{found.seeds_needed:.0f} seeds or more" if math.isfinite(found.seeds_needed) else "more seeds"
        told.append(f"no ranking: these runs cannot tell which parameter matters. Take {needed}.")
    elif not ranking:
        told.append(
            f"no ranking: {', '.join(hidden)} cannot be told from a parameter that does nothing. Take more points."
        )
    elif hidden:
        told.append(f"{', '.join(hidden)} cannot be told from a parameter that does nothing.")
    return told


def _rows(found: Indices, method: Method, names: Sequence[str], ranking: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows of one result: parameters that are ranked, the others, the dummy, and the noise."""
    others = [place for place in range(len(names)) if place not in ranking]
    rows = [
        {"parameter": names[place], "kind": "parameter", "rank": rank, **_cells(found.parameters[place], method)}
        for place, rank in [
            *((place, 1 + rank) for rank, place in enumerate(ranking)),
            *((one, None) for one in others),
        ]
    ]
    rows.append({"parameter": DUMMY, "kind": "dummy", "rank": None, **_cells(found.parameters[-1], method)})
    noise = found.noise if method == "sobol" else Estimate(found.deviation, None, None, 0)
    rows.append({"parameter": NOISE, "kind": "noise", "rank": None, **_cells({RANKED_BY[method]: noise}, method)})
    return rows


def _cells(estimates: Mapping[str, Estimate | None], method: Method) -> dict[str, float]:
    """Return indices with the ends and half widths of their intervals; NaN where there is none."""
    cells: dict[str, float] = {}
    for name in INDICES[method]:
        one = estimates.get(name)
        low, high = (None, None) if one is None else (one.low, one.high)
        ends = (math.nan, math.nan) if low is None or high is None else (low, high)
        value = math.nan if one is None else one.value
        cells |= {name: value, f"{name}_low": ends[0], f"{name}_high": ends[1], f"{name}_conf": (ends[1] - ends[0]) / 2}
    return cells


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows).astype({"rank": float})


def _write(result: Sensitivity, folder: Path) -> None:
    """Write the results into the folder of the analysis.

    Raises:
        ConfigError: If they cannot be written.
    """
    try:
        (folder / RESULTS).write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
        result.table.to_csv(folder / TABLE, index=False)
    except OSError as error:
        raise ConfigError(f"{error.filename}: the results cannot be written: {error.strerror}") from error
