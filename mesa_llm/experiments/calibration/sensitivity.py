"""Sensitivity analysis: how much of the variation of each result is due to each parameter.

    found = sensitivity(TownModel, {"gain": (0, 1), "level": (0, 20)}, folder="runs/sensitivity")
    found.table            # one row per result and parameter: Sobol indices, with their intervals
    found.draw()           # with their intervals

One sweep over a design of SALib (Iwanaga, Usher and Herman 2022). Each point is run with the same seeds, and results
are averaged over them before the analysis. An analysis that is started again makes only the missing runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from mesa_llm.agents.design import AgentDesign
from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.panels import Panels
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration.ranges import Ends, ParameterRange, how_of_points, ranges_of, settings_of
from mesa_llm.experiments.findings import Findings, Table, require_measure
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.run import LAST
from mesa_llm.experiments.runs.sweep import Sweep, SweepPoint
from mesa_llm.model.model import LLMModel
from mesa_llm.statistics import COVERAGE, FloatArray
from mesa_llm.text import counted, figure_text, suggestion

if TYPE_CHECKING:
    import pandas as pd

type Method = Literal["sobol", "morris"]
"""Method of a sensitivity analysis."""

N_POINTS: Mapping[str, int] = {"sobol": 64, "morris": 10}
"""Method → default number of base points (sobol) or trajectories (morris)."""

N_SEEDS = 2
"""Default number of runs of each point."""

N_RESAMPLES = 1_000
"""Number of bootstrap samples of an interval."""

N_LEVELS = 4
"""Number of values of a parameter in a design of Morris."""

INDICES: Mapping[str, tuple[str, ...]] = {"sobol": ("S1", "ST"), "morris": ("mu_star", "mu", "sigma")}
"""Method → its indices, as SALib names them; those with an interval have its half width in a column `…_conf`."""

MEANINGS: Mapping[str, str] = {
    "sobol": "S1: share of the variance of a result that is due to the parameter alone; ST: that together with its "
    "interactions.",
    "morris": "mu_star: mean size of the effect of a parameter on a result over its range; mu: mean effect; sigma: its "
    "standard deviation, large where effects are not linear or interact.",
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
    """One row per result and parameter: `measure`, `parameter`, and the indices, with the half widths of their 95 %
    intervals.
    """

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
        return {**parts, "indices": self.indices.to_dict("records")}

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
        """What is left out."""
        return [f"{name} is left out: {reason}." for name, reason in self.left_out.items()]

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
        return [Table("Indices", rows, f"{MEANINGS[self.method]} ±: half of the 95 % interval.")]

    def charts(self) -> list[Panels]:
        """Return the indices with their 95 % intervals."""
        return [self.draw()]

    def compare(self, measure: str) -> pd.DataFrame:
        """Return the indices of one result: a row for each parameter, with the half widths of their 95 % intervals.

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
            if f"{name}_conf" in rows:
                values, halves = (rows[column].tolist() for column in (name, f"{name}_conf"))
                ends = [value - half for value, half in zip(values, halves, strict=True)]
                tops = [value + half for value, half in zip(values, halves, strict=True)]
                series.append(ChartSeries(name=name, values=values, low=ends, high=tops, kind="point"))
        names = rows["parameter"].tolist()
        return Chart(title=measure, series=series, names=names, is_horizontal=True, x="", y="index, 95 % interval")

    def draw(self) -> Panels:
        """Draw the indices with their 95 % intervals, a panel for each result."""
        charts = [self.chart(measure) for measure in dict.fromkeys(self.indices["measure"])]
        return Panels(title="", charts=charts, columns=2)


def _index_text(row: Mapping[str, Any], name: str) -> str:
    half = f" ± {figure_text(row[f'{name}_conf'])}" if f"{name}_conf" in row else ""
    return figure_text(row[name]) + half


def sample_points(
    ranges: Sequence[ParameterRange], method: Method, points: int | None = None, rng: int = 1
) -> FloatArray:
    """Draw the design of an analysis.

    Args:
        ranges: Ranges of the parameters.
        method: `sobol` or `morris`.
        points: Number of base points, a power of 2, or of trajectories; None: 64 or 10.
        rng: Seed.

    Returns:
        The points, between 0 and 1, shape `(points × (parameters + 2), parameters)`; for Morris, with `+ 1`.

    Raises:
        ConfigError: If the method or the number of points is invalid.
    """
    if method not in INDICES:
        raise ConfigError(f"method={method!r}: expected {' or '.join(INDICES)}")
    points = N_POINTS[method] if points is None else points
    if points < 2 or (method == "sobol" and points & (points - 1)):
        wanted = "a power of 2, such as 64" if method == "sobol" else "2 trajectories or more"
        raise ConfigError(f"points={points}: {method} needs {wanted}")
    from SALib.sample import morris, sobol

    if method == "sobol":
        return sobol.sample(_problem(ranges), points, calc_second_order=False, seed=rng)
    return morris.sample(_problem(ranges), points, num_levels=N_LEVELS, seed=rng)


def different_settings(ranges: Sequence[ParameterRange], units: FloatArray) -> list[dict[str, Any]]:
    """Return the parameters of a design, each combination once: those of whole numbers repeat.

    Args:
        ranges: Ranges of the parameters.
        units: The design, between 0 and 1, shape `(points, parameters)`.
    """
    by_values = {tuple(setting.values()): setting for setting in settings_of(ranges, units)}
    return list(by_values.values())


def _problem(ranges: Sequence[ParameterRange]) -> dict[str, Any]:
    """Return the parameters as SALib takes them, between 0 and 1."""
    return {"num_vars": len(ranges), "names": [each.name for each in ranges], "bounds": [[0, 1]] * len(ranges)}


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
        points: Number of base points (sobol, a power of 2) or trajectories (morris); None: 64 or 10.
        seeds: Number of runs of each point, with the same seeds at all points.
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
    different = different_settings(spaces, units)
    all_seeds = range(rng, rng + seeds)
    with RunBar(settings.pop("progress", False)) as bar:
        runs = Experiment(Path(folder), settings, how_of_points(llm, design, fixed, on_run), bar)
        done = runs.sweep("", model, [SweepPoint(setting, all_seeds) for setting in different], steps=steps)
    columns, left_out = _results_of(done, measures, len(different), fixed or {}, spaces)
    place_of = {tuple(setting.values()): place for place, setting in enumerate(different)}
    places = [place_of[tuple(setting.values())] for setting in settings_of(spaces, units)]
    rows = [
        {"measure": name, **row}
        for name, values in columns.items()
        for row in _indices(spaces, method, units, values[places], rng)
    ]
    result = Sensitivity(
        method, _frame(rows), left_out, len(different), done.n_runs, done.n_done, done.tokens, done.dollars
    )
    _write(result, Path(folder))
    return result


def _results_of(
    done: Sweep,
    measures: Sequence[str] | None,
    n_points: int,
    fixed: Mapping[str, Any],
    ranges: Sequence[ParameterRange],
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Average the results of each point over its seeds.

    Args:
        done: The runs, those of one point together.
        measures: Names of the results; None: all.
        n_points: Number of points.
        fixed: Parameters of all runs.
        ranges: Ranges of the parameters that vary.

    Returns:
        Name of a result → its mean at each point; and name of a result that cannot be analysed → the reason.

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
        means = values.reshape(n_points, -1).mean(axis=1)
        n_missing = int(np.isnan(values).sum())
        if n_missing == len(values):
            left_out[name] = "it is not a number"
        elif n_missing:
            left_out[name] = f"{counted(n_missing, 'run')} of {len(values)} lack it"
        elif np.ptp(means) == 0:
            left_out[name] = "it is the same in all points"
        else:
            columns[name] = means
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise ConfigError(f"there is no result to analyse{': ' if reasons else ''}{reasons}")
    return columns, left_out


def _indices(
    ranges: Sequence[ParameterRange], method: Method, units: FloatArray, values: FloatArray, rng: int
) -> list[dict[str, Any]]:
    """Compute the indices of one result, a row for each parameter.

    Args:
        ranges: Ranges of the parameters.
        method: `sobol` or `morris`.
        units: The design, shape `(runs, parameters)`.
        values: The result at each point, shape `(runs,)`.
        rng: Seed of the bootstrap.
    """
    from SALib.analyze import morris, sobol

    options: dict[str, Any] = {"num_resamples": N_RESAMPLES, "conf_level": COVERAGE, "seed": rng}
    if method == "sobol":
        found: Any = sobol.analyze(_problem(ranges), values, calc_second_order=False, **options)
    else:
        found = morris.analyze(_problem(ranges), units, values, num_levels=N_LEVELS, **options)
    names = [column for name in INDICES[method] for column in (name, f"{name}_conf") if column in found]
    return [
        {"parameter": each.name} | {name: float(found[name][place]) for name in names}
        for place, each in enumerate(ranges)
    ]


def _frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)


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
