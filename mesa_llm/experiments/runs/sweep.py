"""Sweeps: parameters × designs × language models × seeds as one tidy table, with one budget.

Each run has its own log in the sweep's folder. A sweep that is started again makes only the missing runs; unfinished
runs resume from their logs.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mesa_llm._deprecated import first_name
from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.canonical import canonical_json, plain, with_text_names
from mesa_llm.engine.access import Access
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.errors import AllDecisionsFailed, BudgetExceeded, ConfigError, MesaLLMError
from mesa_llm.experiments.runs.runner import MAX_STARTS, Stop, run_jobs
from mesa_llm.llm.address import written_llm
from mesa_llm.llm.shared_budget import n_workers_for
from mesa_llm.model.identity import class_named, name_of, setting_digest
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import OPTIONS
from mesa_llm.model.quality import Rate, total_quality
from mesa_llm.model.scenario import parameters_of
from mesa_llm.runlog.disk import reason_of, write_whole
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted, none_succeeded, suggestion

if TYPE_CHECKING:
    import pandas as pd

TABLE = "table.csv"
"""File of the table, in the sweep's folder."""

_COUNTS = ("calls", "prompt_tokens", "reply_tokens", "dollars")

LAST = ("ended", "decisions", "failures", "quality", *_COUNTS, "seconds", "digest", "log", "error")
"""Last columns of the table."""

NOT_LISTED = ("max_steps", "tokens_now", "dollars_now", "error_kind", "series")
"""Fields of a row left out of the table."""


ROW = "row"
"""Manifest key: digest of the row of a run, which lies beside its log, and of the steps in the log."""

PASSING = frozenset({"seconds", "tokens_now", "dollars_now", "error", "error_kind"})
"""Fields of a row that tell of one session, and are not in its digest."""

Row = dict[str, Any]
"""Setting, results and cost of a run, by name."""


@dataclass(frozen=True)
class SweepJob:
    """One run of a sweep."""

    model: str
    """Class of the model, as `module:qualname`."""

    parameters: Mapping[str, Any]
    """Parameters of its scenario."""

    llm: str | Mapping[str, str]
    """Language model of the agents, or several by agent."""

    design: str
    """Name of the agents' design."""

    design_json: Mapping[str, Any]
    """The design; empty for the model's own components."""

    seed: int
    """Seed."""

    steps: int | None
    """Number of steps; None to run until the model ends."""

    folder: Path
    """Folder of its log and its row."""

    options: Mapping[str, Any]
    """Options of all models."""

    series: tuple[str, ...] = ()
    """Reporters of its data collector whose values in each step are kept."""

    @cached_property
    def log(self) -> Path:
        """Path of its run log, one for each setting; cached, as other machines may lack the files of the setting."""
        llm = self.llm if isinstance(self.llm, str) else dict(self.llm)
        setting = [first_name(self.model), dict(self.parameters), llm, dict(self.design_json)]
        digest = setting_digest(setting, self.options, self.parameters)
        return self.folder / f"{digest[:12]}-{self.seed}.sqlite"

    def row(self) -> Row | None:
        """Return its row if the run is complete, else None.

        Raises:
            ConfigError: If the row is not the one that was written for its run.
        """
        try:
            row = json.loads(self.log.with_suffix(".json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(row, dict) or row.get("error") or not row.get("series", {}).keys() >= set(self.series):
            return None
        is_over = row.get("ended") is True and (self.steps is None or row.get("steps", 0) <= self.steps)
        if not (is_over or row.get("max_steps") == self.steps):
            return None
        if fault := _row_fault(self, row):
            file = self.log.with_suffix(".json")
            raise ConfigError(
                f"{str(file)!r} is not the row of its run: {fault}. Delete it to have it made again from the run log, "
                "which asks for nothing, or restore it"
            )
        return row

    def make(self, access: Access, log: Path | None = None, *, replay: bool = False) -> LLMModel:
        """Make its model.

        Args:
            access: Access to language models.
            log: Path of the run log; None to record nothing.
            replay: Whether the log is replayed, and nothing may be asked.
        """
        design = {"design": AgentDesign.from_json(self.design_json)} if self.design_json else {}
        kind = class_named(self.model, LLMModel)
        arguments = {**self.parameters, **design, **self.options}
        return kind(**arguments, llm=self.llm, rng=self.seed, access=access, log=log, replay=replay)

    def run(self, access: Access, stop: Stop) -> Row:
        """Execute the run and return its row, which is also written beside its log. Errors are rows too.

        Args:
            access: Access to language models.
            stop: Runs the model, and can stop it.
        """
        start_s = clock.perf_counter()
        row, figures = _empty_row(self), Row()
        error: Exception | SystemExit | None = None
        is_new = not self.log.exists()
        try:
            model = self.make(access, None if self.options.get("light") else self.log)
            is_new = False
            with closing(model):
                try:
                    stop.run(model, self.steps)
                except (Exception, SystemExit) as fault:  # noqa: BLE001 - anybody's code ends one run, not the sweep
                    error = fault
                figures = _figures(model, row)
                figures |= {"series": series_of(model, self.series)} if self.series else {}
                if error is None and not self.options.get("light"):
                    model.runlog.note(ROW, _row_digest(row | figures, model.runlog))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - as above
            error = error or fault
        if is_new:  # a model that failed to construct has recorded nothing
            with suppress(OSError):
                self.log.unlink(missing_ok=True)
        row |= {**figures, "seconds": round(clock.perf_counter() - start_s, 3)}
        row |= {"error": _text_of(error), "error_kind": "" if error is None else type(error).__name__}
        text = json.dumps(with_text_names(row), default=plain)
        row = json.loads(text)  # equal to the row of an earlier run
        file = self.log.with_suffix(".json")
        try:
            write_whole(file, text)
        except OSError as fault:
            row |= {"error": row["error"] or _unwritten_text(file, fault), "error_kind": type(fault).__name__}
        return row

    def broken(self, error: Exception) -> Row:
        """Return the row of a run whose worker crashed, with the cost of the calls in its log.

        Args:
            error: Error of the last worker.
        """
        row = _empty_row(self)
        with suppress(MesaLLMError), closing(RunLog(self.log, "read")) as log:
            row |= {"steps": len(log.steps()), **_costs(log)}
        starts = f"the worker broke {MAX_STARTS} times, as when it is killed for want of memory"
        return {**row, "error": f"{starts}: {type(error).__name__}: {error}", "error_kind": type(error).__name__}


@dataclass(frozen=True)
class SweepPoint:
    """A combination of parameters, with seeds of its own."""

    parameters: Mapping[str, Any]
    """The parameters."""

    seeds: Sequence[int]
    """The seeds."""


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep."""

    table: pd.DataFrame
    """One row per run: parameters, llm, design, seed; its results by name; decisions, failures, calls, tokens and
    dollars of all its calls; digest, log, error.
    """

    n_runs: int
    """Number of runs of the whole sweep."""

    n_done: int
    """Number of runs by this call; the others were already in the folder."""

    n_failed: int
    """Number of runs that ended with an error, given in their rows."""

    tokens: int
    """Number of tokens of live replies in the runs of this call."""

    dollars: float
    """US dollars for live replies in the runs of this call."""

    error: MesaLLMError | None
    """Why the sweep stopped early; None if every run was made."""

    series: pd.DataFrame
    """One row per run and step: number of the run's row in `table`, log (empty for light runs), step, and the reporters
    that were asked for; empty without any.
    """

    def require_whole(self, name: str = "") -> None:
        """Check that every run was made, and that language models decided something.

        Args:
            name: Name of the sweep, for errors.

        Raises:
            BudgetExceeded: If the budget ended it.
            MesaLLMError: If a run failed.
            AllDecisionsFailed: If all decisions failed.
        """
        if self.error is not None:
            raise self.error
        of = f" of {name}" if name else ""
        if self.n_failed:
            first = self.table.loc[self.table["error"] != "", "error"].iloc[0]
            raise MesaLLMError(f"{counted(self.n_failed, 'run')}{of} failed. The first one: {str(first)[:300]}")
        texts: Any = self.table.get("quality", ())
        rates = total_quality(json.loads(text) for text in texts if isinstance(text, str))
        n_asked = sum(self.table["decisions"].tolist()) - rates.get("not_asked", Rate(0, 0)).n
        if 0 < n_asked <= sum(self.table["failures"].tolist()):
            raise AllDecisionsFailed(none_succeeded(n_asked, name))


def sweep(
    model: type[LLMModel],
    vary: Mapping[str, Iterable[Any]] | Sequence[SweepPoint] | None = None,
    *,
    folder: str | Path,
    steps: int | None = 10,
    seeds: int | Iterable[int] = 1,
    llm: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] = "rule",
    designs: Mapping[str, AgentDesign | None] | None = None,
    fixed: Mapping[str, Any] | None = None,
    on: Literal["processes", "threads", "ray"] | Executor = "processes",
    workers: int | None = None,
    options: Mapping[str, Any] | None = None,
    series: Iterable[str] = (),
    on_run: Callable[[Mapping[str, Any]], object] = lambda row: None,
    **access: Any,
) -> Sweep:
    """Run a model with each combination of parameters, language models, designs and seeds.

        done = sweep(SocialModel, {"follows": [1, 3, 10]}, seeds=20, steps=30, folder="runs/follows")
        done.table.groupby("follows")["largest_cascade"].mean()

    Args:
        model: The model's class, which workers import by its name.
        vary: Parameter → its values; or points, each with its seeds, in place of all combinations.
        folder: Folder of the table and of one log per run. Runs already in it are not repeated.
        steps: Number of steps of each run; None to run until the model ends.
        seeds: The seeds, or their number, counting from 1.
        llm: Language model of the agents, or several to compare; a mapping names those of one run by agent, as `llm=`
            of a model does.
        designs: Designs of the agents by name, None for each model's own; only `own` by default.
        fixed: Parameters that are the same in all runs.
        on: `processes`; `threads` of this process, which suit language models called over a network; `ray`, on the
            cluster of `RAY_ADDRESS` or on this machine; or your own executor, such as Dask's `Client.get_executor()`,
            with its number of workers as `workers`.
        workers: Number of concurrent runs, each with a share of the limits; None for one per core as far as the limits
            can be divided. With 1, runs are made in this process.
        options: Options of all models: `reasoning`, `reply_tokens`, `parser`, `on_error`, …
        series: Reporters of the model's data collector whose values in each step are kept, in `Sweep.series`.
        on_run: Called with the row of each new run as it ends.
        **access: Endpoints, limits and budget shared by all runs, see `Access`. Several sweeps may share a `purse`.

    Raises:
        ConfigError: If a parameter is unknown, a combination is invalid or repeated, the limits cannot be divided among
            the workers, the workers cannot import the model, or the folder cannot be written.
        KeyboardInterrupt: On Ctrl-C; starting the same sweep again resumes it.
    """
    names = [*inspect.signature(sweep).parameters, *sorted(ACCESS_OPTIONS), "purse"]
    if unknown := [name for name in access if name not in names]:
        hint = suggestion(unknown[0], names)
        raise ConfigError(
            f"sweep has no {unknown[0]}={hint} (options of models go into options=, parameters into fixed=)"
        )
    place = Path(folder).resolve()
    points = _points(model, {} if vary is None else vary, fixed or {}, _seeds(seeds))
    jobs = list(_jobs(model, points, _each(llm), designs, steps, place, options or {}, tuple(series)))
    _require_different(jobs)
    Access(**access).close()  # checks the options
    rows = {job.log: row for job in jobs if (row := job.row()) is not None}
    missing = [job for job in jobs if job.log not in rows]
    is_here = on == "threads" or (on == "processes" and n_workers_for(workers, len(missing), access) == 1)
    _require_importable(model, is_here=is_here)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(_unwritten_text(place, error)) from error
    new_rows: list[Row] = []
    stop: MesaLLMError | None = None
    with closing(run_jobs(missing, access, on=on, workers=workers)) as job_rows:
        try:
            for job, row in job_rows:
                rows[job.log] = row
                new_rows.append(row)
                on_run(row)
                if row["error_kind"] == "BudgetExceeded":
                    stop = BudgetExceeded(row["error"])
                    break
        finally:
            table = _write_table([rows[job.log] for job in jobs if job.log in rows], place)
    n_failed = sum(bool(row["error"]) for row in rows.values())
    tokens, dollars = (sum(row[name] for row in new_rows) for name in ("tokens_now", "dollars_now"))
    steps_of_runs = _series([rows[job.log] for job in jobs if job.log in rows])
    return Sweep(table, len(jobs), len(new_rows), n_failed, tokens, dollars, stop, steps_of_runs)


def _write_table(rows: Sequence[Mapping[str, Any]], folder: Path) -> pd.DataFrame:
    """Write the table as CSV, and as Parquet if pyarrow is installed.

    Raises:
        ConfigError: If it cannot be written, for example on a full disk.
    """
    import pandas as pd

    columns = list(dict.fromkeys(name for row in rows for name in row if name not in NOT_LISTED))
    last = [name for name in LAST if name in columns]
    table = pd.DataFrame(rows, columns=[*(name for name in columns if name not in last), *last])
    try:
        write_whole(folder / TABLE, table.to_csv(index=False))
        if find_spec("pyarrow") is not None:
            write_whole((folder / TABLE).with_suffix(".parquet"), table.to_parquet())
    except OSError as error:
        raise ConfigError(_unwritten_text(folder / TABLE, error)) from error
    return table


# -- the runs


def _each(llm: str | Mapping[str, str] | Sequence[str | Mapping[str, str]]) -> list[str | Mapping[str, str]]:
    return [llm] if isinstance(llm, (str, Mapping)) else list(llm)


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    """Return the seeds.

    Raises:
        ConfigError: If there is none.
    """
    all_seeds = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if not all_seeds:
        raise ConfigError(f"seeds must be a number of runs, 1 or more, or a list of seeds; got {seeds!r}")
    return all_seeds


def _points(
    model: type[LLMModel],
    vary: Mapping[str, Iterable[Any]] | Sequence[SweepPoint],
    fixed: Mapping[str, Any],
    seeds: Sequence[int],
) -> list[SweepPoint]:
    """Return the combinations of parameters with their seeds, in order.

    Raises:
        ConfigError: If a name is unknown, given twice, or has no values.
    """
    are_points = not isinstance(vary, Mapping)
    varied = list(dict.fromkeys(name for point in vary for name in point.parameters)) if are_points else list(vary)
    known = [parameter.name for parameter in parameters_of(model)]
    for name in (*varied, *fixed):
        if name not in known:
            raise ConfigError(f"{model.__name__} has no parameter {name!r} to vary; it has {', '.join(known)}")
        if name in varied and name in fixed:
            raise ConfigError(f"{name!r} is both varied and fixed; give it once")
    if are_points:
        if not vary:
            raise ConfigError("the sweep has no points; give at least one")
        return [SweepPoint({**fixed, **point.parameters}, _seeds(point.seeds)) for point in vary]
    values = {name: list(choices) for name, choices in vary.items()}
    for name, choices in values.items():
        if not choices:
            raise ConfigError(f"{name!r} is varied over no values; give at least one")
    combinations = itertools.product(*values.values())
    return [SweepPoint({**fixed, **dict(zip(values, one, strict=True))}, seeds) for one in combinations]


def _jobs(
    model: type[LLMModel],
    points: Iterable[SweepPoint],
    llms: Sequence[str | Mapping[str, str]],
    designs: Mapping[str, AgentDesign | None] | None,
    steps: int | None,
    folder: Path,
    options: Mapping[str, Any],
    series: tuple[str, ...],
) -> Iterator[SweepJob]:
    """Return the runs, in order of their parameters.

    Raises:
        ConfigError: If an option is unknown.
    """
    if unknown := sorted(set(options) - OPTIONS):
        raise ConfigError(f"models have no option {unknown[0]!r}; they have {', '.join(sorted(OPTIONS))}")
    kinds = designs or {OWN_DESIGN: None}
    for point in points:
        for llm, (name, design), seed in itertools.product(llms, kinds.items(), point.seeds):
            design_json = {} if design is None else design.to_json()
            setting = (name_of(model), point.parameters, llm, name, design_json, seed)
            yield SweepJob(*setting, steps, folder, options, series)


def _require_different(jobs: Sequence[SweepJob]) -> None:
    """Check that no run is repeated.

    Raises:
        ConfigError: If one is, for example by a repeated value or seed, or by two equal designs.
    """
    by_log: dict[Path, SweepJob] = {}
    for job in jobs:
        first = by_log.setdefault(job.log, job)
        if first is not job:
            names = ", ".join(f"{name}={value!r}" for name, value in job.parameters.items())
            designs = " and ".join(dict.fromkeys((first.design, job.design)))
            raise ConfigError(
                f"the sweep repeats a run ({names or 'no parameters'}, llm {written_llm(job.llm)}, design {designs}, "
                f"seed {job.seed}); name each value, language model, design and seed once"
            )


def _require_importable(model: type[LLMModel], *, is_here: bool) -> None:
    """Check that other processes can import a model, if the sweep uses any.

    Raises:
        ConfigError: If they cannot.
    """
    if not is_here and (model.__module__ == "__main__" or "<locals>" in model.__qualname__):
        raise ConfigError(
            f"{model.__qualname__} is defined in a notebook or a script, where the workers cannot import it; move it "
            "into a module, or run in this process: workers=1 or on='threads'"
        )


# -- the row of a run


def _empty_row(job: SweepJob) -> Row:
    """Return the row of a run that has no results yet."""
    setting = {**job.parameters, "llm": written_llm(job.llm), "design": job.design, "seed": job.seed, "steps": 0}
    nothing = {"ended": False, "decisions": 0, "failures": 0, **dict.fromkeys(_COUNTS, 0), "seconds": 0.0}
    nothing |= {"digest": "", "quality": "{}"}
    log = "" if job.options.get("light") else job.log.name
    return setting | nothing | {"log": log, "max_steps": job.steps, "tokens_now": 0, "dollars_now": 0.0}


def _row_digest(row: Mapping[str, Any], log: RunLog) -> str:
    """Return a digest of what a row says of its run, and of what the log holds of its steps."""
    text = json.dumps(with_text_names(dict(row)), default=plain)
    kept = {name: value for name, value in json.loads(text).items() if name not in PASSING}
    return hashlib.sha256(canonical_json([kept, log.trace_digest(kept["steps"])]).encode()).hexdigest()


def _row_fault(job: SweepJob, row: Row) -> str:
    """Describe how a row differs from the log of its run; empty if it does not, or if there is no log.

    In a log of an earlier version, which holds no digest of the row, only its figures and its setting are compared.
    """
    if job.options.get("light") or not job.log.is_file():
        return ""
    setting = json.loads(json.dumps(with_text_names(_empty_row(job)), default=plain))
    own = {name: setting[name] for name in (*job.parameters, "llm", "design", "seed", "log")}
    with closing(RunLog(job.log, "read")) as log:
        noted = log.manifest.get(ROW)
        digests = {step: digest for step, _, digest in log.rows("steps")}
        own |= {"digest": digests.get(row.get("steps"), row.get("digest") if not digests else "none")}
        own |= {} if noted is not None else _costs(log)
        is_changed = noted is not None and noted != _row_digest(row, log)
    wrong = [(name, row.get(name), value) for name, value in own.items() if row.get(name) != value]
    if wrong:
        return "; ".join(f"{name} is {found!r} in it, and {value!r} by the log" for name, found, value in wrong[:3])
    return "one of its results, or its log, was changed after it was written" if is_changed else ""


def _figures(model: LLMModel, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a run and the cost of all its calls. Results named like a parameter are marked."""
    figures: dict[str, Any] = {}
    for name, value in model.results().items():
        figures[f"{name} (result)" if name in row else name] = value
    return figures | {
        "steps": int(model.time),
        "ended": not model.running,
        "decisions": model.engine.decisions,
        "failures": model.usage.failures,
        "quality": json.dumps({name: rate for name, rate in model.data_quality().items() if rate.n}),
        **_costs(model.runlog),
        "digest": model.runlog.digest,
        "tokens_now": model.usage.tokens,
        "dollars_now": model.usage.dollars,
    }


def series_of(model: LLMModel, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what a model's data collector holds: name of a reporter → step, as text → value.

    Args:
        model: A model that has run.
        names: Names of the reporters.

    Raises:
        ConfigError: If it has no such reporter.
    """
    collected: Mapping[str, Sequence[Any]] = {} if model.datacollector is None else model.datacollector.model_vars
    if unknown := [name for name in names if name not in collected]:
        known = ", ".join(collected) or "nothing"
        hint = suggestion(unknown[0], collected)
        raise ConfigError(f"{type(model).__name__} collects no {unknown[0]!r}; it collects {known}{hint}")
    series: dict[str, dict[str, Any]] = {}
    for name in names:
        values = collected[name]
        first = int(model.time) - len(values) + 1
        series[name] = {str(step): value for step, value in enumerate(values, first)}
    return series


def _series(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the series of all runs, one row per run and step."""
    import pandas as pd

    frames = [
        pd.DataFrame(row["series"]).rename_axis("step").reset_index().assign(run=run, log=row["log"])
        for run, row in enumerate(rows)
        if row.get("series")
    ]
    first = ["run", "log", "step"]
    if not frames:
        return pd.DataFrame(columns=first)
    table = pd.concat(frames, ignore_index=True).astype({"step": int})
    return table.reindex(columns=[*first, *table.columns.drop(first)])


def _costs(log: RunLog) -> dict[str, Any]:
    """Return the number of calls in a log, with their tokens and US dollars."""
    usage = log.usage()
    sums = dict(zip(_COUNTS, usage[list(_COUNTS)].sum().tolist(), strict=True))
    return {name: value if name == "dollars" else int(value) for name, value in sums.items()}


def _text_of(error: Exception | SystemExit | None) -> str:
    if error is None:
        return ""
    return str(error) if isinstance(error, MesaLLMError) else f"the model broke: {type(error).__name__}: {error}"


def _unwritten_text(path: Path, error: OSError) -> str:
    return (
        f"{str(path)!r} cannot be written: {reason_of(path, error)}. What was recorded is kept; the same sweep "
        "resumes once it can be written"
    )
