"""One run of an experiment: how it is set, its log, and the row that it leaves."""

from __future__ import annotations

import hashlib
import json
import time as clock
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mesa import Model

from mesa_llm import errors
from mesa_llm._deprecated import first_name
from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import canonical_json, plain, with_text_names
from mesa_llm.engine.access import Access
from mesa_llm.errors import AllDecisionsFailed, BudgetExceeded, ConfigError, MesaLLMError, NeedsLog, Stopped
from mesa_llm.experiments.runs.agent_statistic import AgentStatistic
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.plain import make_plain
from mesa_llm.experiments.runs.runner import MAX_STARTS, Job, Stop, run_jobs
from mesa_llm.llm.address import written_llm
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.identity import class_named, parameter_as_json, setting_digest
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Rate, total_quality
from mesa_llm.runlog.disk import reason_of, write_whole
from mesa_llm.runlog.light import LightLog
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted, none_succeeded, suggestion

COUNTS = ("calls", "prompt_tokens", "reply_tokens", "dollars")

LAST = ("ended", "decisions", "failures", "quality", *COUNTS, "seconds", "digest", "log", "error")
"""Last columns of the table."""

NOT_LISTED = ("max_steps", "tokens_now", "dollars_now", "error_kind", "series")
"""Fields of a row left out of the table."""

ROW = "row"
"""Manifest key: digest of the row of a run, which lies beside its log, and of the steps in the log."""

MARK = " (result)"
"""End of the name of a result that is named like a parameter."""

PASSING = frozenset({"seconds", "tokens_now", "dollars_now", "error", "error_kind"})
"""Fields of a row that tell of one session, and are not in its digest."""

Row = dict[str, Any]
"""Setting, results and cost of a run, by name."""

type Minds = str | LLM | Mapping[str, Any]
"""Language model of the agents, or several by agent, as `llm=` of a model takes them."""


def llm_text(llm: Minds) -> str:
    """Return the name of a language model, or of several by agent, for tables."""
    named = parameter_as_json(llm) if not isinstance(llm, str) else llm
    return written_llm(named)


@dataclass(frozen=True)
class Run(Job[Row]):
    """One run of a model, which any process can make."""

    model: str
    """Class of the model, as `module:qualname`."""

    parameters: Mapping[str, Any]
    """Parameters of its scenario."""

    llm: Minds
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

    persona: str | None = None
    """Name of the persona that its design holds; None where personas do not vary."""

    local: type[Model[Any, Any]] | None = None
    """Class of a model that other processes cannot import; None for one that they find by its name."""

    @property
    def kind(self) -> type[Model[Any, Any]]:
        """Class of the model."""
        return self.local or class_named(self.model, Model)

    name: str = ""
    """Name of its log, without the ending; empty: a digest of its setting, and then its row lies beside its log."""

    may_be_light: bool = False
    """Whether it keeps no log, unless one was begun, a language model is asked, or its results are read from it."""

    over_agents: tuple[AgentStatistic, ...] = ()
    """Statistics over its agents, which its row holds beside the results; they are no part of what the run is."""

    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further facts for the manifest of its log, written before its first step; they are no part of what the run is."""

    @property
    def is_light(self) -> bool:
        """Whether it keeps no log: by option, by itself, or as a plain Mesa model, which has none."""
        is_light = bool(self.options.get("light")) or not issubclass(self.kind, LLMModel)
        return is_light or (self.may_be_light and not self.log.exists())

    @property
    def label(self) -> str:
        """Name of its log, without the ending."""
        return self.log.stem

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of its model but for access and log."""
        design = {"design": AgentDesign.from_json(self.design_json)} if self.design_json else {}
        return {**self.parameters, **design, **self.options, "llm": self.llm, "rng": self.seed}

    @cached_property
    def log(self) -> Path:
        """Path of its run log, one for each setting; cached, as other machines may lack the files of the setting."""
        if self.name:
            return self.folder / f"{self.name}.sqlite"
        llm = self.llm if isinstance(self.llm, str) else parameter_as_json(self.llm)
        setting = [first_name(self.model), dict(self.parameters), llm, dict(self.design_json)]
        digest = setting_digest(setting, self.options, self.parameters)
        return self.folder / f"{digest[:12]}-{self.seed}.sqlite"

    def row(self) -> Row | None:
        """Return its row if the run is complete, else None; also None if something in its log is to be sent again.

        A run with a name is always repeated from its log, which knows whether its setting is the same.

        Raises:
            ConfigError: If the row is not the one that was written for its run.
        """
        if self.name:
            return None
        try:
            row = json.loads(self.log.with_suffix(".json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(row, dict) or row.get("error") or not row.get("series", {}).keys() >= set(self.series):
            return None
        if not row.keys() >= {one.name for one in self.over_agents}:
            return None
        is_over = row.get("ended") is True and (self.steps is None or row.get("steps", 0) <= self.steps)
        is_retried = self.options.get("retry_failures") and row.get("failures")
        if is_retried or not (is_over or row.get("max_steps") == self.steps):
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
        kind: Any = self.local or class_named(self.model, LLMModel)
        light = {"light": True} if self.is_light and log is None else {}
        return kind(**{**self.arguments, **light}, access=access, log=log, replay=replay)

    def run(self, access: Access, stop: Stop) -> Row:
        """Execute the run and return its row, which is also written beside its log. Errors are rows too.

        Args:
            access: Access to language models.
            stop: Runs the model, and can stop it.
        """
        start_s, is_light = clock.perf_counter(), self.is_light
        row, figures = _empty_row(self), dict[str, Any]()
        error: Exception | SystemExit | None = None
        is_new, is_read = not self.log.exists(), False
        try:
            if not issubclass(self.kind, LLMModel):
                model = make_plain(self.kind, self.parameters, self.seed)
                stop.run(model, self.steps, self.label)
                last = {name: values[-1] for name, values in _collected(model).items() if values}
                figures = _marked(last, row) | {"steps": int(model.time), "ended": not model.running}
                figures |= {"series": series_of(model, self.series)} if self.series else {}
            else:
                model = self.make(access, None if is_light else self.log)
                is_new = False
                with closing(model):
                    if self.facts and not is_light and not model.runlog.holds_step(1):
                        for name, value in self.facts.items():
                            model.runlog.note(name, value, commit=False)
                    subgroups = [one.begin(model) for one in self.over_agents]
                    try:
                        stop.run(model, self.steps, self.label)
                    except (Exception, SystemExit) as fault:  # noqa: BLE001 - anybody's code ends one run, not all
                        error = fault
                    results = {**self.results_of(model), **{one.statistic.name: one.value(model) for one in subgroups}}
                    is_read = isinstance(model.runlog, LightLog) and model.runlog.was_read
                    figures = _marked(results, row) | counts_of(model)
                    figures |= {"series": series_of(model, self.series)} if self.series else {}
                    if error is None and not is_light:
                        model.runlog.note(ROW, _row_digest(row | figures, model.runlog))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - as above
            error = error or fault
        if self.may_be_light and is_light and (is_read or isinstance(error, NeedsLog)):
            return replace(self, may_be_light=False).run(access, stop)
        if is_new:  # a model that failed to construct has recorded nothing
            with suppress(OSError):
                self.log.unlink(missing_ok=True)
        row |= {**figures, "seconds": round(clock.perf_counter() - start_s, 3)}
        row |= {"error": _text_of(error), "error_kind": "" if error is None else type(error).__name__}
        text = json.dumps(with_text_names(row), default=plain)
        row = json.loads(text)  # equal to the row of an earlier run
        file = self.log.with_suffix(".json")
        try:
            if not self.name:
                write_whole(file, text)
        except OSError as fault:
            row |= {"error": row["error"] or unwritten_text(file, fault), "error_kind": type(fault).__name__}
        return row

    def results_of(self, model: LLMModel) -> Mapping[str, Any]:
        """Return the results of a run, JSON values by name; override to return others.

        Args:
            model: A model that has run.
        """
        return model.results()

    def results_in(self, row: Row) -> dict[str, Any]:
        """Return the results that a row of this run holds.

        Args:
            row: The row.
        """
        setting = {*_empty_row(self), "error", "error_kind", "series"}
        return {name.removesuffix(MARK): value for name, value in row.items() if name not in setting}

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


# -- the row of a run


def _empty_row(job: Run) -> Row:
    """Return the row of a run that has no results yet."""
    minds = {"llm": llm_text(job.llm), "design": job.design} if issubclass(job.kind, LLMModel) else {}
    persona = {} if job.persona is None else {"persona": job.persona}
    setting = {**job.parameters, **persona, **minds, "seed": job.seed, "steps": 0}
    nothing = {"ended": False, "decisions": 0, "failures": 0, **dict.fromkeys(COUNTS, 0), "seconds": 0.0}
    nothing |= {"digest": "", "quality": "{}"}
    log = "" if job.is_light else job.log.name
    return setting | nothing | {"log": log, "max_steps": job.steps, "tokens_now": 0, "dollars_now": 0.0}


def _row_digest(row: Mapping[str, Any], log: RunLog) -> str:
    """Return a digest of what a row says of its run, and of what the log holds of its steps."""
    text = json.dumps(with_text_names(dict(row)), default=plain)
    kept = {name: value for name, value in json.loads(text).items() if name not in PASSING}
    return hashlib.sha256(canonical_json([kept, log.trace_digest(kept["steps"])]).encode()).hexdigest()


def _row_fault(job: Run, row: Row) -> str:
    """Describe how a row differs from the log of its run; empty if it does not, or if there is no log.

    In a log of an earlier version, which holds no digest of the row, only its figures and its setting are compared.
    """
    if job.is_light or not job.log.is_file():
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


def _marked(results: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a run; those named like a parameter are marked."""
    return {f"{name}{MARK}" if name in row else name: value for name, value in results.items()}


def counts_of(model: LLMModel) -> dict[str, Any]:
    """Return how far a run has come, the cost of all its calls, and its data quality.

    Kinds that did not occur are part of it: totals over runs count all decisions of these.

    Args:
        model: A model that has run.
    """
    return {
        "steps": int(model.time),
        "ended": not model.running,
        "decisions": model.engine.decisions,
        "failures": model.usage.failures,
        "quality": json.dumps(model.data_quality()),
        **_costs(model.runlog),
        "digest": model.runlog.digest,
        "tokens_now": model.usage.tokens,
        "dollars_now": model.usage.dollars,
    }


def _collected(model: Model[Any, Any]) -> Mapping[str, Sequence[Any]]:
    """Return what a model's data collector, if it has one, holds: name of a reporter → its values."""
    collector = getattr(model, "datacollector", None)
    return {} if collector is None else collector.model_vars


def series_of(model: Model[Any, Any], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what a model's data collector holds: name of a reporter → step, as text → value.

    Args:
        model: A model that has run.
        names: Names of the reporters.

    Raises:
        ConfigError: If it has no such reporter.
    """
    collected = _collected(model)
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


def _costs(log: RunLog) -> dict[str, Any]:
    """Return the number of calls in a log, with their tokens and US dollars."""
    usage = log.usage()
    sums = dict(zip(COUNTS, usage[list(COUNTS)].sum().tolist(), strict=True))
    return {name: value if name == "dollars" else int(value) for name, value in sums.items()}


def missing_rows(
    runs: Sequence[Run],
    rows: dict[Path, Row],
    *,
    bar: RunBar,
    on: str | Executor = "processes",
    workers: int | None = 1,
    **access: Any,
) -> Generator[tuple[Run, Row]]:
    """Make the runs that have no row yet, and yield each with its row; a spent budget ends them.

    Args:
        runs: All runs of an experiment, or of a part of it.
        rows: Log of a run → its row; those that are made are added.
        bar: Bar that shows them.
        on: As for `run_jobs`.
        workers: As for `run_jobs`.
        **access: Endpoints, limits and budget, see `Access`.
    """
    missing = [run for run in runs if run.log not in rows]
    bar.expect(len(runs), [run.label for run in runs if run.log in rows], runs[0].steps if runs else None)
    with closing(run_jobs(missing, access, on=on, workers=workers, on_progress=bar.progress)) as made:
        for run, row in made:
            rows[run.log] = row
            bar.end(run.label, row["decisions"], row["failures"], row["dollars_now"])
            yield run, row
            if row["error_kind"] == "BudgetExceeded":
                return


SEVERE: tuple[type[MesaLLMError], ...] = (BudgetExceeded, Stopped, ConfigError, AllDecisionsFailed, MesaLLMError)
"""Kinds of errors of runs, the one that is raised for several first."""


def severest(kinds: Sequence[type[Exception]]) -> tuple[int, type[MesaLLMError]]:
    """Return the index of the error that is raised for several runs, and the kind that it is raised as.

    Args:
        kinds: Kinds of all errors, at least one.
    """
    places = [next((place for place, one in enumerate(SEVERE) if issubclass(kind, one)), -1) for kind in kinds]
    first = min(range(len(kinds)), key=lambda index: places[index] % len(SEVERE))
    return first, SEVERE[places[first]]


def require_whole(rows: Iterable[Row], name: str = "") -> None:
    """Check that runs were made, and that language models decided something.

    Args:
        rows: Rows of the runs.
        name: Name of the experiment, for errors.

    Raises:
        BudgetExceeded: If the budget ended one.
        Stopped: If one was stopped.
        MesaLLMError: If a run failed, of the kind of its error.
        AllDecisionsFailed: If all decisions failed.
    """
    rows = list(rows)
    failed = [row for row in rows if row["error"]]
    if failed:
        first, kind = severest([getattr(errors, row["error_kind"], MesaLLMError) for row in failed])
        text = str(failed[first]["error"])
        if kind in (BudgetExceeded, Stopped):
            raise kind(text)
        raise kind(f"{counted(len(failed), 'run')}{f' of {name}' if name else ''} failed. The first one: {text:.300}")
    asked = [row for row in rows if row.get("llm") != "rule"]  # a rule beside them always decides
    rates = total_quality(json.loads(text) for row in asked if isinstance(text := row.get("quality"), str))
    n_asked = sum(row["decisions"] for row in asked) - rates.get("not_asked", Rate(0, 0)).n
    if 0 < n_asked <= sum(row["failures"] for row in asked):
        raise AllDecisionsFailed(none_succeeded(n_asked, name))


def _text_of(error: Exception | SystemExit | None) -> str:
    if error is None:
        return ""
    return str(error) if isinstance(error, MesaLLMError) else f"the model broke: {type(error).__name__}: {error}"


def unwritten_text(path: Path, error: OSError) -> str:
    return (
        f"{str(path)!r} cannot be written: {reason_of(path, error)}. What was recorded is kept; the same sweep "
        "resumes once it can be written"
    )
