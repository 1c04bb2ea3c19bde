"""Sweeps: parameters × personas × designs × language models × seeds as one tidy table, with one budget.

    found = sweep(GiftModel, personas={"generous": "…", "greedy": "…"}, llm=["gpt-4o", "rule"], seeds=10, out="gifts")
    found.compare("gini")     # one row per pair of arms, paired by seed
    found.chart("gini")

Each run has its own log in the sweep's folder. A sweep that is started again makes only the missing runs; unfinished
runs resume from their logs.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, cast

from mesa import Model

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.engine.access import Access
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.errors import BudgetExceeded, ConfigError
from mesa_llm.experiments.findings import NO_PICKS, Arms, Findings, Table, Value, finite, require_measure
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.plain import plain_parameters
from mesa_llm.experiments.runs.run import (
    LAST,
    NOT_LISTED,
    Minds,
    Row,
    Run,
    llm_text,
    missing_rows,
    require_whole,
    unwritten_text,
)
from mesa_llm.llm.shared_budget import n_workers_for
from mesa_llm.model.cost_estimate import CAVEAT, Cost, CostEstimate, estimate_cost
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import OPTIONS
from mesa_llm.model.scenario import parameters_of
from mesa_llm.runlog.disk import write_whole
from mesa_llm.statistics import mean_estimate
from mesa_llm.text import counted, suggestion

if TYPE_CHECKING:
    import pandas as pd

TABLE = "table.csv"
"""File of the table, in the sweep's folder."""

_MINDS = ("persona", "llm", "design")
"""Factors besides the parameters."""


@dataclass(frozen=True)
class SweepPoint:
    """A combination of parameters, with seeds of its own."""

    parameters: Mapping[str, Any]
    """The parameters."""

    seeds: Sequence[int]
    """The seeds."""


@dataclass(frozen=True)
class Preview(Findings):
    """What a sweep would ask: one prompt of each arm, and what the runs that are still missing would cost."""

    model: str
    """Name of the model's class."""

    estimates: Mapping[str, tuple[int, CostEstimate]]
    """Name of an arm → number of its missing runs, and the estimate of one of them."""

    without_effect: Sequence[str] = ()
    """A sentence on each factor that changes nothing."""

    @property
    def name(self) -> str:
        """Name of the preview."""
        return f"Preview of the sweep of {self.model}"

    @property
    def total(self) -> Cost:
        """Expected cost of all missing runs."""
        return sum((one.total for n, one in self.estimates.values() for _ in range(n)), Cost())

    @property
    def prompts(self) -> dict[str, str]:
        """Name of an arm → the first prompt of its agents; empty if no language model reads one."""
        return {arm: _prompt_text(one) for arm, (_, one) in self.estimates.items()}

    @property
    def lead(self) -> list[str]:
        """Cost of all runs, and what the estimate leaves out."""
        total, n_runs = self.total, sum(n for n, _ in self.estimates.values())
        unpriced = dict.fromkeys(name for _, one in self.estimates.values() for name in one.unpriced)
        dollars = "no known price" if total.dollars is None else f"${total.dollars:.4f} to ${total.max_dollars:.4f}"
        tokens = f"{total.prompt_tokens} tokens read, {total.reply_tokens} to {total.max_reply_tokens} written"
        notes = [f"{counted(n_runs, 'run')} to make: {counted(total.requests, 'call')}, {tokens}, {dollars}."]
        notes += [f"No price is known for {', '.join(unpriced)}."] if unpriced else []
        return [*notes, *self.without_effect, CAVEAT]

    def parts(self) -> list[Table]:
        """Return the cost of each arm, and its prompt."""
        rows = [{"arm": arm, **_cost_cells(n, one)} for arm, (n, one) in self.estimates.items()]
        prompts: list[dict[str, Value]] = [
            {"arm": arm, "prompt": text or "asks no language model"} for arm, text in self.prompts.items()
        ]
        return [Table("Cost of the runs to make", rows), Table("First prompt of each arm", prompts)]

    def text(self) -> str:
        """Return the cost as a table, and the prompts below it."""
        prompts = [f"{arm}:\n{text or 'asks no language model'}" for arm, text in self.prompts.items()]
        cost = "\n".join(self.parts()[0].lines())
        return "\n\n".join(["\n".join([self.title, *self.lead]), cost, "First prompt of each arm", *prompts])


def _cost_cells(n_runs: int, estimate: CostEstimate) -> dict[str, Value]:
    total = sum([estimate.total] * n_runs, Cost())
    names = ("requests", "prompt_tokens", "reply_tokens", "max_reply_tokens", "dollars", "max_dollars")
    cells = {name.replace("_", " "): getattr(total, name) for name in names}
    return {"runs": float(n_runs), "calls": cells.pop("requests"), **cells}


def _prompt_text(estimate: CostEstimate) -> str:
    messages = () if estimate.first is None else estimate.first.messages
    return "\n\n".join(f"[{message.role}] {message.content}" for message in messages)


@dataclass(frozen=True)
class Sweep(Findings):
    """The result of a sweep."""

    runs: Sequence[Run] = field(repr=False)
    """All runs, made or not."""

    by_log: Mapping[Path, Row] = field(repr=False)
    """Log of a run that was made → its row."""

    n_done: int
    """Number of runs by this call; the others were already in the folder."""

    tokens: int
    """Number of tokens of live replies in the runs of this call."""

    dollars: float
    """US dollars for live replies in the runs of this call."""

    access: Mapping[str, Any] = field(repr=False)
    """Endpoints, limits and budget."""

    is_dry: bool = False
    """Whether nothing was run, so that it shows as its preview."""

    _temporary: TemporaryDirectory[str] | None = field(default=None, repr=False)

    @cached_property
    def made(self) -> Sequence[Run]:
        """The runs in the table, in its order."""
        return [run for run in self.runs if run.log in self.by_log]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row per run; see `table`."""
        return _table([self.by_log[run.log] for run in self.made])

    @cached_property
    def series(self) -> pd.DataFrame:
        """One row per run and step: number of the run's row in `table`, log (empty for light runs), step, and the
        reporters that were asked for; empty without any.
        """
        return _series([self.by_log[run.log] for run in self.made])

    @property
    def n_runs(self) -> int:
        """Number of runs of the whole sweep."""
        return len(self.runs)

    @property
    def n_failed(self) -> int:
        """Number of runs that ended with an error, given in their rows."""
        return sum(bool(row["error"]) for row in self.by_log.values())

    @property
    def error(self) -> BudgetExceeded | None:
        """Why the sweep stopped early; None if every run was made."""
        spent = [row["error"] for row in self.by_log.values() if row["error_kind"] == "BudgetExceeded"]
        return BudgetExceeded(spent[0]) if spent else None

    @property
    def name(self) -> str:
        """Name of the sweep."""
        return f"Sweep of {self.runs[0].kind.__name__}"

    @property
    def table(self) -> pd.DataFrame:
        """One row per run: parameters, persona (if they vary), llm, design, seed; its results by name; decisions,
        failures, calls, tokens and dollars of all its calls; digest, log, error.
        """
        return self.rows

    @property
    def lead(self) -> list[str]:
        """How many runs were made, at what cost, and which failed."""
        made = f"{counted(self.n_runs, 'run')}, {self.n_done} of them new; {self.tokens} tokens, ${self.dollars:.4f}."
        errors = [text for text in self.rows["error"] if text] if self.n_failed else []
        failed = f"{counted(self.n_failed, 'run')} failed. The first one: {errors[0]!s:.300}" if errors else ""
        stopped = "" if self.error is None else f"Stopped: {self.error}"
        return list(filter(None, [made, failed, stopped, *self.without_effect]))

    @property
    def without_effect(self) -> list[str]:
        """A sentence on each factor that changed nothing, by language model."""
        results: dict[Path, str] = {}
        for run in self.made:
            row = self.by_log[run.log]
            if not row["error"] and (found := run.results_in(row)):
                results[run.log] = repr((found, row["digest"]))
        return _without_effect([run for run in self.made if run.log in results], self._factors, results)

    @cached_property
    def _factors(self) -> list[str]:
        """Names of what differs between runs besides the seed."""
        settings = [_setting(run) for run in self.runs]
        names = dict.fromkeys(name for one in settings for name in one)
        return [name for name in names if len({repr(one.get(name)) for one in settings}) > 1]

    def _arm(self, run: Run) -> str:
        """Return the name of a run's arm: what sets it apart from the others."""
        setting = _setting(run)
        named = {name: setting[name] for name in self._factors if name in setting}
        texts = [str(value) if name in _MINDS else f"{name}={value}" for name, value in named.items()]
        return ", ".join(texts) or "all"

    @property
    def measures(self) -> list[str]:
        """Names of what arms can be compared by: results, counts and costs that are numbers."""
        import pandas as pd

        known = {*_MINDS, "seed", *(name for run in self.runs for name in run.parameters)}
        columns = {name: self.rows[name] for name in self.rows.columns if name not in known}
        numeric, yes_or_no = pd.api.types.is_numeric_dtype, pd.api.types.is_bool_dtype
        return [name for name, values in columns.items() if numeric(values) and not yes_or_no(values)]

    def arms(self, measure: str) -> Arms:
        """Return the values of a measure by arm and seed, without runs that failed.

        Args:
            measure: Name of the measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        require_measure(self.name, measure, self.measures)
        arms: dict[str, dict[int, float | None]] = {}
        for run, value, error in zip(self.made, self.rows[measure], self.rows["error"], strict=True):
            if not error:
                arms.setdefault(self._arm(run), {})[run.seed] = float(value)
        return arms

    def parts(self) -> list[Table]:
        """Return the means of each arm; in a dry run, the preview."""
        if self.is_dry:
            return self.preview().parts()
        arms = dict.fromkeys(self._arm(run) for run in self.runs)
        cells: dict[str, dict[str, Value]] = {arm: {"arm": arm, "runs": 0.0} for arm in arms}
        for measure in self.measures:
            for arm, values in self.arms(measure).items():
                mean = mean_estimate(list(values.values()))
                cells[arm] |= {"runs": float(len(values)), measure: None if mean is None else mean.value}
        note = "Means over runs. compare(measure) has differences with intervals, table every run."
        return [Table("Arms", list(cells.values()), note)]

    def text(self) -> str:
        """Return the means of each arm as text; in a dry run, the preview."""
        return self.preview().text() if self.is_dry else super().text()

    def fragment(self, picks: Mapping[str, int] = NO_PICKS) -> str:
        """Return the means of each arm as a fragment of a page; in a dry run, the preview."""
        return self.preview().fragment() if self.is_dry else super().fragment(picks)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        if self.is_dry:
            return self.preview().to_json()
        counts = {"runs": self.n_runs, "done": self.n_done, "failed": self.n_failed, "tokens": self.tokens}
        return counts | {"dollars": self.dollars, "table": finite(self.rows.to_dict("records"))}

    def preview(self) -> Preview:
        """Return one prompt of each arm, and what the runs that are still missing would cost; nothing is asked.

        The first run of each arm is made in memory, as rule twins decide.

        Raises:
            ConfigError: If a provider is unknown, or a model cannot be made.
        """
        errors = self.rows["error"] if self.made else ()
        made = {run.log for run, error in zip(self.made, errors, strict=True) if not error}
        first: dict[str, Run] = {}
        n_missing: dict[str, int] = {}
        for run in self.runs:
            arm = self._arm(run)
            first.setdefault(arm, run)
            n_missing[arm] = n_missing.get(arm, 0) + (run.log not in made)
        estimates: dict[str, tuple[int, CostEstimate]] = {}
        with closing(Access(**self.access)) as access:
            for arm, run in first.items():
                is_plain = not issubclass(run.kind, LLMModel)
                estimate = CostEstimate(0, 0) if is_plain else _estimate(run, access)
                estimates[arm] = n_missing[arm], estimate
        by_chance = [run for run in self.runs if run.llm in ("rule", "random") and issubclass(run.kind, LLMModel)]
        idle = _without_effect(by_chance, [name for name in self._factors if name == "persona"], {})
        return Preview(self.runs[0].kind.__name__, estimates, idle)

    def require_whole(self, name: str = "") -> None:
        """Check that every run was made, and that language models decided something.

        Args:
            name: Name of the sweep, for errors.

        Raises:
            BudgetExceeded: If the budget ended it.
            MesaLLMError: If a run failed, of the kind of its error.
            AllDecisionsFailed: If all decisions failed.
        """
        require_whole(self.by_log.values(), name)


def _estimate(run: Run, access: Access) -> CostEstimate:
    return estimate_cost(cast("type[LLMModel]", run.kind), run.steps, **run.arguments, access=access)


def _without_effect(runs: Sequence[Run], factors: Sequence[str], results: Mapping[Path, str]) -> list[str]:
    """Return a sentence on each factor whose values give the same results, with all else equal, by language model.

    Args:
        runs: The runs.
        factors: Names of factors; the language model itself is none here.
        results: Log of a run → its results; empty: they are known to be the same.
    """
    sentences: list[str] = []
    for name in (name for name in factors if name != "llm"):
        same: dict[str, list[str]] = {}
        for llm in dict.fromkeys(llm_text(run.llm) for run in runs):
            groups: dict[str, list[Run]] = {}
            for run in (run for run in runs if llm_text(run.llm) == llm):
                others = {key: value for key, value in _setting(run).items() if key != name}
                groups.setdefault(repr((others, run.seed)), []).append(run)
            values = list(dict.fromkeys(str(_setting(run).get(name)) for group in groups.values() for run in group))
            is_idle = all(len({results.get(run.log) for run in group}) == 1 for group in groups.values())
            if is_idle and len(values) > 1 and any(len(group) > 1 for group in groups.values()):
                same.setdefault(", ".join(values), []).append(llm)
        for values, llms in same.items():
            by = f" with {' and '.join(llms)}" if issubclass(runs[0].kind, LLMModel) else ""
            sentences.append(f"{name} changes nothing{by}: the runs of {values} are the same.")
    return sentences


def _setting(run: Run) -> dict[str, Any]:
    """Return what may differ between the arms of a sweep, by name."""
    persona = {} if run.persona is None else {"persona": run.persona}
    return {**persona, "llm": llm_text(run.llm), "design": run.design, **run.parameters}


def sweep(
    model: type[Model[Any, Any]],
    vary: Mapping[str, Iterable[Any]] | Sequence[SweepPoint] | None = None,
    *,
    personas: Mapping[str, str | None] | None = None,
    llm: Minds | Sequence[Minds] = "rule",
    designs: Mapping[str, AgentDesign | None] | None = None,
    seeds: int | Iterable[int] = 1,
    steps: int | None = 10,
    out: str | Path | None = None,
    folder: str | Path | None = None,
    fixed: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    progress: bool | RunBar | None = None,
    on: Literal["processes", "threads", "ray"] | Executor = "processes",
    workers: int | None = None,
    options: Mapping[str, Any] | None = None,
    logs: bool | None = None,
    series: Iterable[str] = (),
    on_run: Callable[[Mapping[str, Any]], object] = lambda row: None,
    **access: Any,
) -> Sweep:
    """Run a model with each combination of parameters, personas, language models, designs and seeds.

        found = sweep(SocialModel, {"follows": [1, 3, 10]}, llm=["gpt-4o", "rule"], seeds=20, out="runs/follows")
        found.compare("largest_cascade")

    Args:
        model: The model's class, which workers import by its name. Of a plain Mesa model, parameters can vary, and
            nothing else.
        vary: Parameter → its values; or points, each with its seeds, in place of all combinations.
        personas: Name → what all agents read about who they are; None for each agent's own.
        llm: Language model of the agents, or several to compare; a mapping names those of one run by agent, as `llm=`
            of a model does.
        designs: Designs of the agents by name, None for each model's own; only `own` by default.
        seeds: The seeds, or their number, counting from 1.
        steps: Number of steps of each run; None to run until the model ends.
        out: Folder of the table and of one log per run. Runs already in it are not repeated. None: a temporary folder,
            which goes with the result.
        folder: The same, by its earlier name.
        fixed: Parameters that are the same in all runs.
        dry_run: Whether to run nothing, and show one prompt of each arm and what the runs would cost.
        progress: Whether to show a bar with decisions, failures, dollars and time left; None: on terminals and in
            notebooks. Or the bar of a larger experiment.
        on: `processes`; `threads` of this process, which suit language models called over a network; `ray`, on the
            cluster of `RAY_ADDRESS` or on this machine; or your own executor, such as Dask's `Client.get_executor()`,
            with its number of workers as `workers`.
        workers: Number of concurrent runs, each with a share of the limits; None for one per core as far as the limits
            can be divided. With 1, runs are made in this process, as are those of a notebook's own classes.
        options: Options of all models: `reasoning`, `reply_tokens`, `parser`, `on_error`, …
        logs: Whether runs by rule keep logs; None: with a folder. Without, they keep them only where a language model
            is asked or results are read from the log, or if the folder has some.
        series: Reporters of the model's data collector whose values in each step are kept, in `Sweep.series`.
        on_run: Called with the row of each new run as it ends.
        **access: Endpoints, limits and budget shared by all runs, see `Access`. Several sweeps may share a `purse`.

    Raises:
        ConfigError: If a parameter is unknown, a factor cannot act in the model, a combination is invalid or repeated,
            the limits cannot be divided among the workers, the workers cannot import the model, or the folder cannot be
            written.
        KeyboardInterrupt: On Ctrl-C; starting the same sweep again resumes it.
    """
    names = [*inspect.signature(sweep).parameters, *sorted(ACCESS_OPTIONS), "purse"]
    if unknown := [name for name in access if name not in names]:
        hint = suggestion(unknown[0], names)
        raise ConfigError(
            f"sweep has no {unknown[0]}={hint} (options of models go into options=, parameters into fixed=)"
        )
    if out is not None and folder is not None:
        raise ConfigError(f"out={str(out)!r} and folder={str(folder)!r} are one folder; give it once, as out=")
    _require_minds(model, personas=personas, designs=designs, options=options, llm=None if llm == "rule" else llm)
    chosen = folder if out is None else out
    keeps_logs = chosen is not None if logs is None else logs
    temporary = TemporaryDirectory(prefix="mesa-llm-sweep-") if chosen is None else None
    place = Path(temporary.name if chosen is None and temporary else str(chosen)).resolve()
    points = _points(model, {} if vary is None else vary, fixed or {}, _seeds(seeds))
    minds = _designs(personas, designs)
    runs = list(
        _runs(model, points, _each(llm), minds, steps, place, options or {}, tuple(series), keeps_logs=keeps_logs)
    )
    _require_different(runs)
    Access(**access).close()  # checks the options
    rows = {run.log: row for run in runs if (row := run.row()) is not None}
    missing = [] if dry_run else [run for run in runs if run.log not in rows]
    if on == "processes" and workers is None and not _is_importable(model, runs):
        workers = 1  # a notebook's own class, or a language model that is an object
    is_here = on == "threads" or (on == "processes" and n_workers_for(workers, len(missing), access) == 1)
    _require_importable(model, runs, is_here=is_here)
    if not dry_run:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(unwritten_text(place, error)) from error
    new_rows: list[Row] = []
    own_bar = RunBar(progress if missing else False) if not isinstance(progress, RunBar) else nullcontext(progress)
    with own_bar as bar, closing(missing_rows(runs, rows, bar=bar, on=on, workers=workers, **access)) as made:
        try:
            for _, row in made if missing else ():
                new_rows.append(row)
                on_run(row)
        finally:
            found = Sweep(runs, rows, len(new_rows), *_live(new_rows), access, dry_run, temporary)
            if not dry_run:
                _write_table(found.rows, place)
    return found


def _live(rows: Sequence[Row]) -> tuple[int, float]:
    """Return the tokens and the US dollars of live replies in runs."""
    return sum(row["tokens_now"] for row in rows), sum(row["dollars_now"] for row in rows)


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows as a table."""
    import pandas as pd

    columns = list(dict.fromkeys(name for row in rows for name in row if name not in NOT_LISTED))
    last = [name for name in LAST if name in columns]
    ordered = [*(name for name in columns if name not in last), *last]
    return pd.DataFrame(list(rows), columns=ordered)


def _write_table(table: pd.DataFrame, folder: Path) -> None:
    """Write the table as CSV, and as Parquet if pyarrow is installed.

    Raises:
        ConfigError: If it cannot be written, for example on a full disk.
    """
    try:
        write_whole(folder / TABLE, table.to_csv(index=False))
        if find_spec("pyarrow") is not None:
            write_whole((folder / TABLE).with_suffix(".parquet"), table.to_parquet())
    except OSError as error:
        raise ConfigError(unwritten_text(folder / TABLE, error)) from error


# -- the runs


def _each(llm: Minds | Sequence[Minds]) -> list[Minds]:
    return list(cast("Sequence[Minds]", llm)) if isinstance(llm, list | tuple) else [cast("Minds", llm)]


def _designs(
    personas: Mapping[str, str | None] | None, designs: Mapping[str, AgentDesign | None] | None
) -> list[tuple[str | None, str, AgentDesign | None]]:
    """Return each persona with each design: name of the persona, name of the design, and both in one design.

    Raises:
        ConfigError: If there is no persona, or one is no text.
    """
    named = dict(designs or {OWN_DESIGN: None})
    if personas is None:
        return [(None, name, design) for name, design in named.items()]
    if not personas:
        raise ConfigError("personas has none; give one or more, as name → what the agents read about who they are")
    for name, text in cast("Mapping[str, object]", personas).items():
        if not (text is None or (isinstance(text, str) and text.strip())):
            raise ConfigError(f"the persona {name!r} must be a text, or None for each agent's own; got {text!r:.60}")
    return [
        (persona, name, design if text is None else replace(design or AgentDesign(), persona=text))
        for (persona, text), (name, design) in itertools.product(personas.items(), named.items())
    ]


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
    model: type[Model[Any, Any]],
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
    is_plain = not issubclass(model, LLMModel)
    known = plain_parameters(model) if is_plain else [parameter.name for parameter in parameters_of(model)]
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


def _runs(
    model: type[Model[Any, Any]],
    points: Iterable[SweepPoint],
    llms: Sequence[Minds],
    designs: Sequence[tuple[str | None, str, AgentDesign | None]],
    steps: int | None,
    folder: Path,
    options: Mapping[str, Any],
    series: tuple[str, ...],
    *,
    keeps_logs: bool,
) -> Iterator[Run]:
    """Return the runs, in order of their parameters.

    Raises:
        ConfigError: If an option is unknown.
    """
    if unknown := sorted(set(options) - OPTIONS):
        raise ConfigError(f"models have no option {unknown[0]!r}; they have {', '.join(sorted(OPTIONS))}")
    local = model if "<locals>" in model.__qualname__ else None
    keeps_logs |= "light" in options or next(folder.glob("*.sqlite"), None) is not None  # one that was begun with logs
    for point in points:
        for llm, (persona, name, design), seed in itertools.product(llms, designs, point.seeds):
            design_json = {} if design is None else design.to_json()
            setting = (name_of(model), point.parameters, llm, name, design_json, seed)
            may_be_light = llm == "rule" and not keeps_logs
            yield Run(*setting, steps, folder, options, series, persona, local, may_be_light=may_be_light)


def _require_minds(model: type[Model[Any, Any]], **factors: Any) -> None:
    """Check that what concerns language models can act in a model.

    Raises:
        ConfigError: If the model is a plain Mesa model, in which it cannot.
    """
    given = [name for name, value in factors.items() if value]
    if given and not issubclass(model, LLMModel):
        raise ConfigError(
            f"{given[0]}= cannot act in {model.__name__}, a plain Mesa model whose agents do not think with a language "
            f"model; vary its parameters ({', '.join(plain_parameters(model)) or 'it has none'}), or make it an "
            "LLMModel (docs/writing_a_model.md)"
        )


def _require_different(runs: Sequence[Run]) -> None:
    """Check that no run is repeated.

    Raises:
        ConfigError: If one is, for example by a repeated value or seed, or by two equal designs.
    """
    by_log: dict[Path, Run] = {}
    for run in runs:
        first = by_log.setdefault(run.log, run)
        if first is not run:
            names = ", ".join(f"{name}={value!r}" for name, value in run.parameters.items())
            designs = " and ".join(dict.fromkeys((first.design, run.design)))
            personas = " and ".join(dict.fromkeys(one.persona for one in (first, run) if one.persona is not None))
            raise ConfigError(
                f"the sweep repeats a run ({names or 'no parameters'}, llm {llm_text(run.llm)}, design {designs}, "
                f"{f'persona {personas}, ' if personas else ''}seed {run.seed}); name each value, language model, "
                "persona, design and seed once"
            )


def _is_importable(model: type[Model[Any, Any]], runs: Sequence[Run]) -> bool:
    """Check whether other processes can make the runs: the model has a module, and language models are named."""
    llms = [one for run in runs for one in (run.llm.values() if isinstance(run.llm, Mapping) else [run.llm])]
    return model.__module__ != "__main__" and "<locals>" not in model.__qualname__ and _are_texts(llms)


def _are_texts(llms: Iterable[Any]) -> bool:
    return all(isinstance(one, str) for one in llms)


def _require_importable(model: type[Model[Any, Any]], runs: Sequence[Run], *, is_here: bool) -> None:
    """Check that other processes can import a model, if the sweep uses any.

    Raises:
        ConfigError: If they cannot.
    """
    if not is_here and not _is_importable(model, runs):
        raise ConfigError(
            f"{model.__qualname__} is defined in a notebook or a script, or a language model is an object, which the "
            "workers cannot import; move the class into a module and name the language model, or run in this process: "
            "workers=1 or on='threads'"
        )


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
