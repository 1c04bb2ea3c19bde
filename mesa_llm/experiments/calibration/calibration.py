"""Calibration: the parameters with which a model follows observed series, and how it predicts steps held out.

    found = calibrate(TownModel, "observed.csv", {"gain": (0, 1)}, folder="runs/calibration")
    print(found.text())

Three sweeps, each in a folder of its own, with seeds that no two points share. `prior` draws parameters from their
ranges; approximate Bayesian computation (`posterior`) turns its runs into a posterior, and checks on the same runs
whether it recovers parameters that are known. `search` goes on from there to the smallest error, at points that a
Gaussian process suggests. `check` runs the results with new seeds beside the defaults. The last steps of the target are
held out: they take no part in any of this, and the error in them is reported apart. A calibration that is started again
makes only the missing runs.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import qmc
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mesa_llm.agents.design import AgentDesign
from mesa_llm.charts.chart import Chart
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration.posterior import (
    ACCEPTED,
    MIN_POINTS,
    Draws,
    Recovery,
    ReferenceTable,
    require_share,
)
from mesa_llm.experiments.calibration.ranges import Ends, ParameterRange, how_of_points, ranges_of, settings_of
from mesa_llm.experiments.calibration.target import HOLD_OUT, STEP, Target, read_target
from mesa_llm.experiments.findings import Findings, Table, Value, estimates_chart, require_measure
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.experiment import Experiment
from mesa_llm.experiments.runs.sweep import SweepPoint
from mesa_llm.llm.budget import SharedBudget
from mesa_llm.llm.shared_budget import BUDGET
from mesa_llm.model.model import LLMModel
from mesa_llm.model.stages import USAGE
from mesa_llm.statistics import Estimate, FloatArray
from mesa_llm.text import counted, suggestion

if TYPE_CHECKING:
    import pandas as pd

N_POINTS, N_SEEDS, N_SEARCHED, N_CHECKED = 200, 2, 20, 10
"""Default number of draws from the prior, of runs at each point, of points of the search, and of runs of the check."""

BATCH = 4
"""Number of points of the search that are run at a time."""

MAX_SUGGESTING = 60
"""Maximum number of draws from the prior, the best ones, that the search begins with."""

SEED_STRIDE, SEARCH_SEED, CHECK_SEED = 100_000, 50_000, 90_000
"""Distance of the seeds of one point; first seed of the search and of the check, counted from that of the prior."""

MAX_DRAWS, MAX_SEARCHED = SEARCH_SEED, CHECK_SEED - SEARCH_SEED
"""Maximum number of draws from the prior, and of points of the search, whose seeds would otherwise meet."""

DEFAULTS, BEST, MEDIAN = "defaults", "best", "posterior median"
"""Names of the parameters whose errors are reported."""

RESULTS, DRAWS = "calibration.json", "posterior.csv"
"""Files of the results and of the draws from the posterior, in the calibration's folder."""


# -- results


@dataclass(frozen=True)
class CalibratedParameter:
    """What a calibration says about one parameter."""

    name: str
    """Name of the parameter."""

    default: float | None
    """Its default."""

    prior_low: float
    """Lower end of its range."""

    prior_high: float
    """Upper end."""

    mean: float
    """Mean of its posterior."""

    median: float
    """Median."""

    low: float
    """Lower end of its central 95 % interval."""

    high: float
    """Upper end."""

    best: float
    """Its value in the run points with the smallest error in the steps to fit."""

    n_covered: int
    """Number of simulations in the check of recovery whose 95 % interval covers the truth."""

    n_recovered: int
    """Number of simulations in this check."""

    recovery_error: float
    """Root mean square error of the posterior mean in this check."""

    prior_error: float
    """What that error would be if every simulation were guessed to have the mean of the prior."""


@dataclass(frozen=True)
class Fit:
    """How far a model with some parameters is from the target; see `Target.errors` for the unit."""

    name: str
    """Name of the parameters: defaults, best, or posterior median."""

    parameters: Mapping[str, float]
    """The parameters; empty for the defaults."""

    fit_error: float | None
    """Error in the steps to fit; None if all runs ended before."""

    held_out_error: float | None
    """Error in the steps held out; None if all runs ended before."""


RECOVERY = (
    "recovered: simulations with known parameters whose 95 % interval covers them; error: of their posterior means; "
    "blind: without looking at the series."
)
"""Meaning of the columns of the parameters."""

UNIT = "Errors of series are in standard deviations of the target: 1 is as far off as its mean."
"""Meaning of the errors."""


@dataclass(frozen=True)
class Calibration(Findings):
    """The result of a calibration."""

    parameters: tuple[CalibratedParameter, ...]
    """What was found about each parameter."""

    fits: tuple[Fit, ...]
    """Errors of the defaults, the best parameters and the posterior medians, in runs with the same new seeds."""

    fitted_steps: tuple[int, int]
    """First and last step to fit."""

    held_out_steps: tuple[int, int]
    """First and last step held out."""

    series: tuple[str, ...]
    """Names of the series of the target."""

    n_runs: int
    """Number of runs."""

    n_done: int
    """Number of runs by this call; the others were already in the folder."""

    n_incomplete: int
    """Number of runs of draws from the prior that are left out, as the model ended before the last step to fit."""

    tokens: int
    """Number of tokens of live replies in the runs of this call."""

    dollars: float
    """US dollars for live replies in the runs of this call."""

    draws: pd.DataFrame = field(repr=False)
    """Draws from the posterior: a column per parameter, and their weight."""

    @property
    def table(self) -> pd.DataFrame:
        """The parameters as numbers."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.parameters])

    @property
    def lead(self) -> list[str]:
        """What was left out."""
        left_out = f"Left out, as they ended before step {self.fitted_steps[1]}: {counted(self.n_incomplete, 'run')}."
        return [left_out] if self.n_incomplete else []

    def parts(self) -> list[Table]:
        """Return the parameters, and the errors of the defaults and of what was found."""
        parameters: list[dict[str, Value]] = [
            {
                "parameter": one.name,
                "default": one.default,
                "range": f"{one.prior_low:g} to {one.prior_high:g}",
                "mean": one.mean,
                "median": one.median,
                "95 % interval": f"{one.low:.3g} to {one.high:.3g}",
                "best": one.best,
                "recovered": f"{one.n_covered} of {one.n_recovered}",
                "error": one.recovery_error,
                "blind": one.prior_error,
            }
            for one in self.parameters
        ]
        (first, last), (first_out, last_out) = self.fitted_steps, self.held_out_steps
        fit, held_out = f"error in steps {first} to {last}", f"in steps {first_out} to {last_out}, held out"
        errors: list[dict[str, Value]] = [
            {"parameters": one.name, fit: one.fit_error, held_out: one.held_out_error} for one in self.fits
        ]
        return [Table("Parameters", parameters, RECOVERY), Table("Errors", errors, UNIT)]

    def frame(self) -> pd.DataFrame:
        """Return the parameters as a table for a notebook."""
        return self.table

    def compare(self, measure: str) -> pd.DataFrame:
        """Compare the errors of the defaults, the best parameters and the posterior medians, a row for each pair.

        Args:
            measure: `fit_error`, in the steps to fit, or `held_out_error`.

        Returns:
            `first`, `second`, `difference` of their errors (of mean courses, so that there is no interval), the number
            `n` of runs of each, and its unit.

        Raises:
            ConfigError: If there is no such error.
        """
        import pandas as pd

        require_measure("the calibration", measure, ["fit_error", "held_out_error"])
        errors = {one.name: getattr(one, measure) for one in self.fits}
        rows = [
            {"first": a, "second": b, "difference": None if None in (errors[a], errors[b]) else errors[a] - errors[b]}
            for a, b in itertools.combinations(errors, 2)
        ]
        return pd.DataFrame(rows).assign(n=N_CHECKED, unit="runs")

    def chart(self, measure: str) -> Chart:
        """Draw the posterior median of a parameter with its 95 % interval, between its default and its best value.

        Args:
            measure: Name of the parameter.

        Raises:
            ConfigError: If there is no such parameter.
        """
        require_measure("the calibration", measure, [one.name for one in self.parameters])
        one = next(one for one in self.parameters if one.name == measure)
        default = None if one.default is None else Estimate(one.default, None, None, 0)
        rows = [default, Estimate(one.median, one.low, one.high, 0), Estimate(one.best, None, None, 0)]
        return estimates_chart(measure, [DEFAULTS, MEDIAN, BEST], rows)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the draws as JSON-serialisable types."""
        parts: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "draws"}
        parts["parameters"] = [asdict(one) for one in self.parameters]
        parts["fits"] = [asdict(one) for one in self.fits]
        return json.loads(json.dumps(parts))


# -- the calibration


def n_runs_of(points: int = N_POINTS, seeds: int = N_SEEDS, search: int = N_SEARCHED) -> int:
    """Return the number of runs of a calibration with these arguments."""
    return (points + search) * seeds + len((DEFAULTS, BEST, MEDIAN)) * N_CHECKED


def prior_points(ranges: Sequence[ParameterRange], n: int, rng: int = 1) -> FloatArray:
    """Draw points from the prior: a scrambled Halton sequence, whose first points stay when more are drawn.

    Args:
        ranges: Ranges of the parameters.
        n: Number of points.
        rng: Seed.

    Returns:
        The points, between 0 and 1, shape `(n, parameters)`.

    Source:
        Owen (2017), A Randomized Halton Algorithm in R, arXiv:1706.02808.
    """
    return qmc.Halton(len(ranges), rng=rng).random(n)


def calibrate(
    model: type[LLMModel],
    target: str | Path | pd.DataFrame,
    ranges: Mapping[str, Ends],
    *,
    folder: str | Path,
    points: int = N_POINTS,
    seeds: int = N_SEEDS,
    search: int = N_SEARCHED,
    hold_out: float = HOLD_OUT,
    accepted: float = ACCEPTED,
    rng: int = 1,
    llm: str = "rule",
    design: AgentDesign | None = None,
    fixed: Mapping[str, Any] | None = None,
    on_run: Callable[[Mapping[str, Any]], object] = lambda row: None,
    **settings: Any,
) -> Calibration:
    """Find the parameters with which a model follows observed series.

    Args:
        model: The model's class, which workers import by its name.
        target: The observed series, or their file; see `read_target`.
        ranges: Parameter → lowest and highest value; all values between them are equally likely beforehand.
        folder: Folder of the results, and of the runs. Runs already in it are not repeated.
        points: Number of draws from the prior.
        seeds: Number of runs of each point.
        search: Number of points that a Gaussian process suggests after that; 0 for none.
        hold_out: Share of the steps of the target that is held out, the last ones.
        accepted: Share of the runs that the posterior is made of.
        rng: Seed of the design, and first seed of the runs.
        llm: Language model of the agents.
        design: Design of the agents; None: the model's own.
        fixed: Parameters that are the same in all runs.
        on_run: Called with the row of each new run as it ends.
        **settings: `on`, `workers`, `options`, `logs` (False by default), `progress` (likewise), endpoints, limits and
            budget of all runs, as for `mesa_llm.experiments.sweep`.

    Raises:
        ConfigError: If the target, a range or a number is invalid, or a package is missing.
        BudgetExceeded: If the budget ended it; the same call resumes it.
        MesaLLMError: If runs failed.

    Source:
        Beaumont, Zhang and Balding (2002), Genetics 162; Fearnhead and Prangle (2012), JRSS B 74(3), for the posterior;
        Jones, Schonlau and Welch (1998), Journal of Global Optimization 13, for the search.
    """
    spaces = ranges_of(model, ranges)
    observed = read_target(target, hold_out)
    _require_numbers(points, seeds, search)
    require_share(accepted)
    _require_reporters(model, observed, fixed or {})
    if settings.get("purse") is None and any(settings.get(name) is not None for name in BUDGET):
        settings["purse"] = SharedBudget(*(settings.pop(name, None) for name in BUDGET))
    with RunBar(settings.pop("progress", False), n_runs_of(points, seeds, search)) as bar:
        how = how_of_points(llm, design, fixed, on_run)
        runs = _Runs(Path(folder), settings, how, bar, model=model, target=observed, ranges=spaces)

        units = prior_points(spaces, points, rng)
        seeds_of_points = [[rng + index + SEED_STRIDE * seed for seed in range(seeds)] for index in range(points)]
        courses = runs.courses("prior", units, seeds_of_points)  # shape (points, seeds, steps, series)
        errors = np.array([observed.errors(_mean(course))[0] for course in courses])

        reference = _reference(observed, spaces, units, courses, accepted)
        posterior = reference.posterior(observed.fitted_values(observed.array[None]))
        recovery = _in_values(spaces, reference.recovery())

        tried, tried_errors = _search(runs, units, errors, search, seeds, rng)
        best = tried[np.nanargmin(tried_errors)]

        medians = posterior.quantile(0.5)
        fits = _check(runs, {BEST: best, MEDIAN: medians}, rng)
        found = tuple(_parameter(each, index, posterior, best, recovery) for index, each in enumerate(spaces))
        steps, n_fitted = observed.steps, observed.n_fitted
        result = Calibration(
            found,
            fits,
            (steps[0], steps[n_fitted - 1]),
            (steps[n_fitted], steps[-1]),
            tuple(observed.names),
            sum(runs.n_of_parts.values()),
            runs.n_done,
            points * seeds - len(reference.draws),
            runs.tokens,
            runs.dollars,
            _draws_frame(spaces, posterior),
        )
    _write(result, Path(folder))
    return result


def _require_numbers(points: int, seeds: int, search: int) -> None:
    """Check the numbers of points and runs.

    Raises:
        ConfigError: If one is out of range.
    """
    if not MIN_POINTS <= points <= MAX_DRAWS:
        raise ConfigError(f"points={points}: a posterior needs {MIN_POINTS} to {MAX_DRAWS} draws from the prior")
    if seeds < 1:
        raise ConfigError(f"seeds={seeds}: each point needs 1 run or more")
    if not 0 <= search <= MAX_SEARCHED:
        raise ConfigError(f"search={search}: expected a number of points from 0 to {MAX_SEARCHED}")


def _require_reporters(model: type[LLMModel], target: Target, fixed: Mapping[str, Any]) -> None:
    """Check that a model collects the series of a target, before any run is paid for.

    Raises:
        ConfigError: If it does not, collects nothing before the first step although the target has a step 0, or
            collects something other than numbers.
    """
    with closing(model(**fixed, rng=1)) as made:
        collected: Mapping[str, list[Any]] = {} if made.datacollector is None else made.datacollector.model_vars
        known = [name for name in collected if name not in USAGE]
        for name in target.names:
            if name not in known:
                raise ConfigError(
                    f"the target has a column {name!r}, which {model.__name__} does not collect; it collects "
                    f"{', '.join(known) or 'nothing'}{suggestion(name, known)}"
                )
            if target.steps[0] == 0 and not collected[name]:
                raise ConfigError(
                    f"the target has a step 0, and {model.__name__} collects nothing before its first step; leave this "
                    "step out of the target, or let the model collect at the end of its __init__"
                )
            if collected[name] and not isinstance(collected[name][0], int | float | np.number | None):
                raise ConfigError(
                    f"{model.__name__} collects {name!r} as {collected[name][0]!r:.60}, which is no number"
                )


@dataclass
class _Runs(Experiment):
    """Sweeps of a calibration, in folders of their own."""

    model: type[LLMModel] = field(kw_only=True)
    target: Target = field(kw_only=True)
    ranges: tuple[ParameterRange, ...] = field(kw_only=True)
    n_of_parts: dict[str, int] = field(default_factory=dict[str, int])

    def courses(self, name: str, units: FloatArray, seeds: Sequence[Sequence[int]]) -> FloatArray:
        """Run points, between 0 and 1, and return their series, shape `(points, seeds, steps, series)`."""
        settings = settings_of(self.ranges, units)
        return self.of_settings(name, [SweepPoint(*pair) for pair in zip(settings, seeds, strict=True)])

    def of_settings(self, name: str, points: Sequence[SweepPoint]) -> FloatArray:
        """Run points, and return their series; NaN after the end of a run.

        Raises:
            ConfigError: If a series holds something other than numbers.
            MesaLLMError: If a run failed, or the budget ended the sweep.
        """
        import pandas as pd

        steps, names = self.target.steps, self.target.names
        done = self.sweep(name, self.model, points, steps=steps[-1], seeds=1, series=names)
        self.n_of_parts[name] = done.n_runs
        wanted = pd.MultiIndex.from_product([done.table.index, steps])
        rows = done.series.set_index(["run", STEP]).reindex(wanted)
        try:
            values = rows[names].to_numpy(np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"a series of {', '.join(names)} does not hold numbers, and cannot be fitted: {error}"
            ) from error
        return values.reshape(len(points), -1, len(steps), len(names))


def _reference(
    target: Target, ranges: Sequence[ParameterRange], units: FloatArray, courses: FloatArray, accepted: float
) -> ReferenceTable:
    """Make the reference table of the runs that reached the last step to fit.

    Args:
        target: The observed series.
        ranges: Ranges of the parameters.
        units: Draws from the prior, shape `(points, parameters)`.
        courses: Their series, shape `(points, seeds, steps, series)`.
        accepted: Share of the runs that is accepted.

    Raises:
        ConfigError: If no run has a value in a step of the target, or too few runs reached the last one.
    """
    n_points, n_seeds = courses.shape[:2]
    run_values = np.column_stack([each.units(each.values(units[:, index])) for index, each in enumerate(ranges)])
    series = target.fitted_values(courses.reshape(n_points * n_seeds, *courses.shape[2:]))
    points = np.repeat(np.arange(n_points), n_seeds)
    is_missing = np.isnan(courses[:, :, : target.n_fitted]).all(axis=(0, 1)) & target.is_fitted
    if is_missing.any():
        step, name = np.argwhere(is_missing)[0]
        raise ConfigError(
            f"no run has a value of {target.names[name]!r} in step {target.steps[step]}: all of them ended before, or "
            "the model does not collect in it; change the ranges, or leave the step out of the target"
        )
    whole = np.isfinite(series).all(axis=1)
    return ReferenceTable(run_values[points[whole]], series[whole], points[whole], accepted=accepted)


def _in_values(ranges: Sequence[ParameterRange], found: Recovery) -> Recovery:
    """Convert a recovery from numbers between 0 and 1 to values of the parameters."""

    def converted(units: FloatArray) -> FloatArray:
        return np.column_stack([each.values(units[:, index]) for index, each in enumerate(ranges)])

    return Recovery(*map(converted, (found.truth, found.mean, found.low, found.high)))


def _search(
    runs: _Runs, units: FloatArray, errors: FloatArray, n: int, n_seeds: int, rng: int
) -> tuple[FloatArray, FloatArray]:
    """Run points that a Gaussian process of the error suggests, some at a time.

    Args:
        runs: Makes the runs.
        units: Points that have been run, shape `(points, parameters)`.
        errors: Their errors, shape `(points,)`; NaN where all runs ended early.
        n: Number of points to suggest.
        n_seeds: Number of runs of each.
        rng: Seed.

    Returns:
        All points and their errors, those of before first.
    """
    if not n:
        return units, errors
    from bayes_opt import BayesianOptimization
    from bayes_opt.acquisition import ConstantLiar, ExpectedImprovement
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    names = [each.name for each in runs.ranges]
    known = np.argsort(errors, kind="stable")[: min(MAX_SUGGESTING, int(np.isfinite(errors).sum()))]
    optimizer: Any = BayesianOptimization(
        None,
        dict.fromkeys(names, (0.0, 1.0)),
        acquisition_function=ConstantLiar(ExpectedImprovement(xi=0.0)),
        random_state=rng,
        verbose=0,
        allow_duplicate_points=True,
    )
    length_scale: Any = np.ones(len(names))
    kernel = Matern(length_scale, nu=2.5) + WhiteKernel()  # the error differs between seeds
    optimizer.set_gp_params(kernel=kernel, n_restarts_optimizer=0)
    for index in known:
        optimizer.register(units[index], -errors[index])
    tried, tried_errors = np.empty((0, len(names))), np.empty(0)
    while len(tried) < n:
        with warnings.catch_warnings(), threadpool_limits(1):  # many small products, slower in several threads
            warnings.simplefilter("ignore", ConvergenceWarning)
            suggested = [optimizer.suggest() for _ in range(min(BATCH, n - len(tried)))]
        new = np.array([[float(one[name]) for name in names] for one in suggested])
        tried = np.concatenate([tried, new])
        first = rng + SEARCH_SEED
        seeds = [[first + index + SEED_STRIDE * seed for seed in range(n_seeds)] for index in range(len(tried))]
        courses = runs.courses("search", tried, seeds)
        tried_errors = np.array([runs.target.errors(_mean(course))[0] for course in courses])
        for point, error in zip(new, tried_errors[-len(new) :], strict=True):
            if np.isfinite(error):
                optimizer.register(point, -error)
    return np.concatenate([units, tried]), np.concatenate([errors, tried_errors])


def _check(runs: _Runs, found: Mapping[str, FloatArray], rng: int) -> tuple[Fit, ...]:
    """Run the defaults and parameters that were found, with the same new seeds.

    Args:
        runs: Makes the runs.
        found: Name → parameters between 0 and 1, shape `(parameters,)`.
        rng: Seed.
    """
    settings = {DEFAULTS: {}} | {name: settings_of(runs.ranges, units[None])[0] for name, units in found.items()}
    seeds = [rng + CHECK_SEED + seed for seed in range(N_CHECKED)]
    different = list({json.dumps(setting): setting for setting in settings.values()}.values())
    courses = runs.of_settings("check", [SweepPoint(setting, seeds) for setting in different])
    fits: list[Fit] = []
    for name, setting in settings.items():
        fitted, held_out = runs.target.errors(_mean(courses[different.index(setting)]))
        fits.append(Fit(name, setting, _finite(fitted), _finite(held_out)))
    return tuple(fits)


def _mean(courses: FloatArray) -> FloatArray:
    """Average the courses of runs, shape `(runs, steps, series)`; runs that have ended are left out."""
    n_running = np.isfinite(courses).sum(axis=0)
    return np.where(n_running > 0, np.nansum(courses, axis=0) / np.maximum(n_running, 1), np.nan)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _parameter(
    each: ParameterRange, index: int, posterior: Draws, best: FloatArray, recovery: Recovery
) -> CalibratedParameter:
    """Gather what was found about one parameter.

    Args:
        each: Its range.
        index: Its column.
        posterior: The posterior, between 0 and 1.
        best: The best point, between 0 and 1.
        recovery: The check of recovery, in values.
    """
    low, high = posterior.interval()
    values = each.values(posterior.values[:, index])
    median, low, high, best_value = (
        float(each.values(one[index])) for one in (posterior.quantile(0.5), low, high, best)
    )
    truth = recovery.truth[:, index]
    return CalibratedParameter(
        each.name,
        each.default,
        each.low,
        each.high,
        float(posterior.weights @ values),
        median,
        low,
        high,
        best_value,
        int(recovery.n_covered[index]),
        recovery.n,
        float(recovery.error[index]),
        float(np.sqrt(np.square(truth - (each.low + each.high) / 2).mean())),
    )


def _draws_frame(ranges: Sequence[ParameterRange], posterior: Draws) -> pd.DataFrame:
    import pandas as pd

    columns = {each.name: each.values(posterior.values[:, index]) for index, each in enumerate(ranges)}
    return pd.DataFrame({**columns, "weight": posterior.weights})


def _write(result: Calibration, folder: Path) -> None:
    """Write the results into the calibration's folder.

    Raises:
        ConfigError: If they cannot be written.
    """
    try:
        (folder / RESULTS).write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
        result.draws.to_csv(folder / DRAWS, index=False)
    except OSError as error:
        raise ConfigError(f"{error.filename}: the results cannot be written: {error.strerror}") from error
