"""What-if branches: a recorded run forked at a step, with a change, and compared with the original."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import mesa

from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import canonical_json
from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.palette import GREY
from mesa_llm.engine.access import Access
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.errors import ConfigError, ReplayError
from mesa_llm.experiments.findings import Findings, Table, require_measure
from mesa_llm.experiments.runs.neutral import neutral_interventions
from mesa_llm.experiments.runs.runner import Job, Stop, run_jobs
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.identity import class_named, parameter_as_json
from mesa_llm.model.interventions import INTERVENTIONS, OWN, Change, Intervention, Minds, intervention_from
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording, advance_to, texts_in
from mesa_llm.model.scenario import parameters_of
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.tables import loaded

if TYPE_CHECKING:
    import pandas as pd

BRANCH = "branch"
"""Key in a branch's manifest: its source, the step, and the changes."""


ONE_RUN = (
    "One run of each shows no effect: whether a difference is more than chance cannot be told, and takes several seeds "
    "(branch_seeds, or `mesa-llm branch --seeds`)."
)
"""What one branch can show."""

PLACEBO_TEXT = "The placebo has a neutral sentence in the place of the change, at the same point, to the same agents."
"""What the placebo is."""


def branch(
    source: str | Path | LLMModel,
    at: int,
    *,
    inject: Iterable[Any] = (),
    changes: Mapping[str, Any] | None = None,
    llm: str | LLM | None = None,
    design: AgentDesign | None = None,
    keeps_later: bool = True,
    placebo: bool = True,
    log: str | Path | None = None,
    **options: Any,
) -> Branch:
    """Fork a recorded run at a step, with a change, and beside it a placebo.

    The steps before the fork are replayed offline from the parent's log. After that, requests equal to the parent's get
    the parent's replies, and only new ones are sent. All seeds are the parent's, so differences are due to the change.
    The parent's log is never changed. The branch's log is an ordinary run log that can be replayed and resumed on its
    own.

    Any sentence moves a language model a little. The placebo is a second branch, with the parent's language model, in
    which the same agents read a neutral sentence at the same point: `Branch.run` runs it, too, and `Branch.compare`
    shows how far the change goes beyond it.

    Args:
        source: The parent's run log, or a model between two steps, whose language models and options are used.
        at: The last step taken from the parent; 0 for none.
        inject: Interventions before the next step; see `LLMModel.inject`.
        changes: New values of variables by name; with `at=0`, of any parameter of the model.
        llm: Language model of the agents after the fork; None for the parent's.
        design: Design of the agents after the fork; None for the parent's.
        keeps_later: Whether later interventions in the parent are also made in the branch.
        placebo: Whether a placebo runs beside a branch that has a change.
        log: File of the branch, resumed if it already contains this branch; None for memory. The placebo's is beside
            it (`NAME-placebo.sqlite`).
        **options: Options of the model, such as budgets. API keys are sent only to addresses given in this call: by
            `llm`, `inject`, `changes` or `api_base`, or, instead of the first three, by `named`.

    Returns:
        The branch at step `at`, with its changes applied.

    Raises:
        ConfigError: If the parent does not reach the step, a change is invalid, or `log` contains another run.
        ReplayError: If the replayed steps differ from the parent's, for example after a code change.
    """
    parent = _Parent.of(source)
    recording = parent.recording
    if not 0 <= at <= recording.last_step:
        raise ConfigError(f"step {at}: the parent has the steps 0 to {recording.last_step}")
    values = dict(changes or {})
    parameters = _parameters(recording, values, parent.kind) if at == 0 else {}
    interventions: list[Intervention] = [
        Change(variable=name, value=value) for name, value in values.items() if name not in parameters
    ]
    interventions += map(intervention_from, inject)
    if llm is not None or design is not None:
        interventions.append(Minds(llm=llm, design=design))
    own_log = None if log is None else Path(log)
    named = texts_in(values, [one.llm for one in interventions if isinstance(one, Minds)])
    made = _fork(parent, at, parameters, interventions, keeps_later, own_log, named, options)
    if placebo and (parameters or interventions):
        beside = None if own_log is None else own_log.with_stem(f"{own_log.stem}-placebo")
        how = (parent, at, {}, _placebo_of(recording, parameters, interventions), keeps_later, beside, named, options)
        made.fork_placebo = lambda: _fork(*how)
    return made


def _placebo_of(
    recording: Recording, parameters: Mapping[str, Any], interventions: Sequence[Intervention]
) -> list[Intervention]:
    """Return the interventions of a placebo: the language model of the branch, and neutral text for all else.

    Where the language model or a design is the change, the placebo has the parent's.
    """
    texts = [*map(_changed, parameters.items()), *(one for one in interventions if not isinstance(one, Minds))]
    minds = [one for one in interventions if isinstance(one, Minds)]
    if not texts:
        known = recording.parameters.get("llm")
        is_same = [one for one in minds if one.llm is not None and one.document["llm"] == known]
        return [*neutral_interventions(minds), *(Minds(llm=one.llm) for one in is_same)]
    return [*neutral_interventions(texts), *minds]


def _changed(parameter: tuple[str, Any]) -> Intervention:
    return Change(variable=parameter[0], value=parameter[1])


def _fork(
    parent: _Parent,
    at: int,
    parameters: Mapping[str, Any],
    interventions: Sequence[Intervention],
    keeps_later: bool,
    log: Path | None,
    named: Collection[str],
    options: Mapping[str, Any],
) -> Branch:
    """Fork a parent with changes, checked; addresses in `named` are the user's own."""
    recording = parent.recording
    documents = [{"parameter": name, "value": value} for name, value in parameters.items()]
    documents += [intervention.document for intervention in interventions]
    digest = recording.digests.get(at, "")
    origin: dict[str, Any] = {"at": at, "digest": digest, "keeps_later": keeps_later, "changes": documents}
    is_new = log is None or not log.exists()
    rows = _planned(recording, at, interventions, keeps_later)
    own = _own_log(log, recording, at, origin, {BRANCH: {"of": parent.name, **origin}, INTERVENTIONS: rows})
    model: LLMModel | None = None
    try:
        settings: dict[str, Any] = {**parent.options, "named": parent.named, **options}
        if settings["named"] is not None and "named" not in options:
            settings["named"] = {*settings["named"], *named}
        model = recording.rebuilt({**parent.own, **parameters}, parent.kind, log=own, **settings)
        _replay(model, recording, at)
        for intervention in interventions:
            model.inject(intervention)
    except BaseException:
        own.close() if model is None else model.close()
        if is_new and own.path is not None:  # no request sent yet
            own.path.unlink(missing_ok=True)
        raise
    return Branch(model, at, parent)


def branch_seeds(
    source: str | Path,
    at: int,
    seeds: int,
    *,
    steps: int | None = None,
    log: str | Path | None = None,
    workers: int | None = 1,
    options: Mapping[str, Any] | None = None,
    **change: Any,
) -> pd.DataFrame:
    """Fork runs of one model at the same step, with several seeds and the same change.

    The first run is the recorded one. The others use the next seeds, with its parameters and interventions. Each run
    forms a pair with its branch.

    Args:
        source: Run log of the first parent.
        at: The last step taken from the parent.
        seeds: Number of pairs.
        steps: Number of steps after the fork; None for the rest of the recorded run.
        log: File of the first branch. The other files are beside it, with the seed in their names. None for memory.
        workers: Number of pairs run at once, in processes; None for one per core.
        options: Options of all models. All runs share limits, budgets and any `access`.
        **change: The change: `inject`, `changes`, `llm`, `design`, `keeps_later`, `placebo`, as in `branch`.

    Returns:
        One row per seed, step and measure: seed, step, measure, parent, branch, difference, and, with a placebo, its
        value and `beyond_placebo`, the branch less the placebo.

    Raises:
        ConfigError: As in `branch`; or if the recorded run has no seed.
        ReplayError: As in `branch`.
    """
    import pandas as pd

    recording = Recording.read(source)
    if recording.rng is None:
        raise ConfigError(f"{str(source)!r} has no seed for others to follow")
    last = recording.last_step if steps is None else at + steps
    own = dict(options or {})
    access = own.pop("access", None) or {name: own.pop(name) for name in ACCESS_OPTIONS & own.keys()}
    own_log = None if log is None else Path(log)
    jobs = [
        _PairJob(Path(source), at, last, seed, own_log, own, change)
        for seed in range(recording.rng, recording.rng + seeds)
    ]
    tables = {job.seed: table for job, table in run_jobs(jobs, access, workers=workers)}
    rows: Any = pd.concat([tables[job.seed] for job in jobs], ignore_index=True)
    return rows[["seed", *(name for name in rows.columns if name != "seed")]]


@dataclass(frozen=True)
class _PairJob(Job["pd.DataFrame"]):
    """A parent and its branch with one seed. The parent of the first seed is the recorded run."""

    source: Path
    at: int
    last: int
    seed: int
    log: Path | None
    options: Mapping[str, Any]
    change: Mapping[str, Any]

    def run(self, access: Access, stop: Stop) -> pd.DataFrame:
        """Run both, and compare them."""
        recording = Recording.read(self.source)
        how: dict[str, Any] = {**self.options, "access": access}
        if self.seed == recording.rng:
            return self._compared(branch(self.source, self.at, log=self.log, **self.change, **how), stop)
        beside = None if self.log is None else self.log.with_stem(f"{self.log.stem}-{self.seed}")
        parent_log = None if beside is None else beside.with_stem(f"{beside.stem}-parent")
        new_log = RunLog(parent_log, facts={INTERVENTIONS: _from_outside(recording)})
        with closing(recording.rebuilt(log=new_log, rng=self.seed, **how)) as parent:
            with stop.watching(parent):
                advance_to(parent, self.last)
            return self._compared(branch(parent, self.at, log=beside, **self.change), stop)

    def _compared(self, fork: Branch, stop: Stop) -> pd.DataFrame:
        with closing(fork), stop.watching(fork.model):
            fork.run(self.last - self.at)
            return fork.compare().assign(seed=self.seed)

    @property
    def label(self) -> str:
        """Its seed."""
        return f"seed {self.seed}"


@dataclass(frozen=True)
class _Parent:
    """The run to branch."""

    recording: Recording
    name: str
    series: pd.DataFrame
    kind: type[LLMModel] | None = None
    """Class of a model that is still running."""

    own: Mapping[str, Any] = MappingProxyType({})
    """Its language model; the log contains only the name."""

    options: Mapping[str, Any] = MappingProxyType({})
    """Options for reaching language models."""

    folder: tempfile.TemporaryDirectory[str] | None = None
    """Folder of the copy of its log."""

    named: Collection[str] | None = ()
    """Model strings given by the user; None for all, if the model was not rebuilt from a log."""

    @classmethod
    def of(cls, source: str | Path | LLMModel) -> _Parent:
        """Read a run from its log. A running model's log is copied first."""
        if not isinstance(source, LLMModel):
            if isinstance(source, mesa.Model):
                raise ConfigError(
                    f"{type(source).__name__} is a plain Mesa model, and only an LLMModel can be branched; a copy of "
                    "it (copy.deepcopy) continues on its own after a new connect()"
                )
            return cls(Recording.read(source), Path(source).name, series(source))
        if not source.is_between_steps:
            raise ConfigError(f"step {source.now} is in progress; branch the run after it ends")
        path = source.runlog.path
        folder = None
        if source.runlog.mode == "replay" and path is not None:
            file = path
        else:
            folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            file = Path(folder.name) / (path.name if path is not None else "run.sqlite")
            source.runlog.copy_to(file)
        recording = Recording.read(file)
        name = parameter_as_json(source.llm)
        own = {"llm": source.llm} if recording.parameters.get("llm") == name else {}
        options = source.engine.options
        return cls(recording, file.name, series(file), type(source), own, options, folder, options.get("named"))


class Branch(Findings):
    """A branch of a run, with its parent.

    Attributes:
        model: The model of the branch.
        at: The last step taken from the parent.
        placebo: The branch with neutral text in the place of the change; None before `run`, or without one.
        fork_placebo: Forks the placebo; None for none.
    """

    def __init__(self, model: LLMModel, at: int, parent: _Parent) -> None:
        """Pair a branch with its parent; see `branch`."""
        self.model, self.at = model, at
        self.placebo: Branch | None = None
        self.fork_placebo: Callable[[], Branch] | None = None
        self._parent = parent

    def __repr__(self) -> str:
        """Return the fork step and the model."""
        return f"<Branch at step {self.at}: {self.model!r}>"

    @property
    def parent_steps(self) -> int:
        """The last step of the parent."""
        return self._parent.recording.last_step

    def run(self, steps: int | None = None) -> None:
        """Run the branch, then its placebo.

        Args:
            steps: Number of steps after the fork; None to stop where the parent did.

        Raises:
            ConfigError: If the parent has no later steps, and `steps` is not given.
        """
        last = self.parent_steps if steps is None else self.at + steps
        if last <= self.at:
            raise ConfigError(f"the parent ends with step {self.at}, where the branch starts; give the number of steps")
        advance_to(self.model, last)
        self.run_placebo(last)

    def run_placebo(self, last: int) -> None:
        """Run the placebo alone, if there is one.

        Args:
            last: Its last step.
        """
        if self.placebo is None and self.fork_placebo is not None:
            self.placebo = self.fork_placebo()
        if self.placebo is not None:
            advance_to(self.placebo.model, last)

    @property
    def name(self) -> str:
        """Name of the branch."""
        return f"Branch of {type(self.model).__name__} at step {self.at}"

    @property
    def table(self) -> pd.DataFrame:
        """The measures of both runs, side by side."""
        return self.compare()

    @property
    def lead(self) -> list[str]:
        """What one run of each can show."""
        return [ONE_RUN if self.placebo is None else f"{ONE_RUN} {PLACEBO_TEXT}"]

    def parts(self) -> list[Table]:
        """Return the measures of the runs in their last common step."""
        both = self.compare().dropna()
        last: Any = both[both["step"] == both["step"].max()]
        return [Table("The runs in their last common step", last.to_dict("records"))]

    def chart(self, measure: str) -> Chart:
        """Draw a measure of both runs over the steps.

        Args:
            measure: Name of the measure.

        Raises:
            ConfigError: If there is no such measure.
        """
        rows = self.compare(measure)
        series = [
            ChartSeries(name=run, values=rows[run].tolist(), at=rows["step"].tolist())
            for run in ("parent", "branch", "placebo")
            if run in rows
        ]
        fork = ChartSeries(values=[None], at=[self.at], kind="moment", colour=GREY)
        return Chart(title=measure, series=[*series, fork])

    def compare(self, measure: str | None = None) -> pd.DataFrame:
        """Return the measures of both runs, side by side.

        Args:
            measure: Name of one measure; None for all.

        Returns:
            One row per step and measure: step, measure, parent, branch, difference (branch minus parent); and, once
            a placebo has run, placebo, beyond_placebo (branch minus placebo). NaN where one of them did not reach that
            step.

        Raises:
            ConfigError: If there is no such measure.
        """
        import pandas as pd

        own = pd.DataFrame(list(_measures(self.model.runlog)), columns=["step", "measure", "branch"])
        parent = self._parent.series.rename(columns={"value": "parent"})
        both = parent.merge(own, on=["step", "measure"], how="outer", sort=False)
        order = {name: index for index, name in enumerate(dict.fromkeys([*parent["measure"], *own["measure"]]))}
        both["order"] = [order[name] for name in both["measure"]]
        both["difference"] = both["branch"] - both["parent"]
        if self.placebo is not None:
            beside = pd.DataFrame(list(_measures(self.placebo.model.runlog)), columns=["step", "measure", "placebo"])
            both = both.merge(beside, on=["step", "measure"], how="left", sort=False)
            both["beyond_placebo"] = both["branch"] - both["placebo"]
        rows = both.sort_values(["order", "step"], ignore_index=True).drop(columns="order")
        if measure is None:
            return rows
        of_measure: Any = rows[rows["measure"] == require_measure(self.name, measure, list(order))]
        return of_measure.reset_index(drop=True)

    def close(self) -> None:
        """Close the models and their logs."""
        self.model.close()
        if self.placebo is not None:
            self.placebo.close()


def series(log: str | Path | RunLog) -> pd.DataFrame:
    """Read the measures in a recorded run's data collector.

    Args:
        log: The run log.

    Returns:
        One row per step and measure: step, measure, value.
    """
    import pandas as pd

    if isinstance(log, RunLog):
        return pd.DataFrame(list(_measures(log)), columns=["step", "measure", "value"])
    with closing(RunLog(log, "read")) as source:
        return series(source)


def _measures(log: RunLog) -> Iterable[tuple[int, str, float]]:
    for step, text, _ in log.rows("steps"):
        try:
            measures = loaded(text).items()
        except (ValueError, AttributeError) as error:
            raise ConfigError(
                f"{str(log.path)!r} is damaged: the measures of step {step} cannot be read: {error}"
            ) from error
        for name, value in measures:
            if isinstance(value, int | float):
                yield step, name, float(value)


def _parameters(recording: Recording, values: Mapping[str, Any], kind: type[LLMModel] | None = None) -> dict[str, Any]:
    """Return the values that are parameters of the model, checked."""
    kind = kind or class_named(recording.model, LLMModel)
    by_name = {parameter.name: parameter for parameter in parameters_of(kind)}
    return {name: by_name[name].check(value) for name, value in values.items() if name in by_name}


def _planned(
    recording: Recording, at: int, interventions: Iterable[Intervention], keeps_later: bool
) -> list[dict[str, Any]]:
    """Return all interventions for a branch's log: the parent's, and its own before the next step."""
    earlier = [dict(row) for row in recording.interventions if row["step"] <= at]
    own = [{"step": at + 1, "intervention": intervention.document} for intervention in interventions]
    later = [row for row in _from_outside(recording) if row["step"] > at and keeps_later]
    return earlier + own + later


def _from_outside(recording: Recording) -> list[dict[str, Any]]:
    """Return the interventions of a run but those that its model made, which makes other ones in another run."""
    return [dict(row) for row in recording.interventions if row.get("by") != OWN]


def _own_log(
    log: str | Path | None, recording: Recording, at: int, origin: Mapping[str, Any], facts: Mapping[str, Any]
) -> RunLog:
    """Open the log of a branch, which looks up replies in its parent's.

    Raises:
        ConfigError: If it is the parent's log, or contains another run.
    """
    if log is not None and Path(log).resolve() == recording.file.resolve():
        raise ConfigError(f"{str(log)!r} is the parent's log, which a branch must not change; choose another log")
    own = RunLog(log, parent=RunLog(recording.file, "replay"), parent_steps=at, facts=facts)
    recorded = own.manifest
    found = recorded.get(BRANCH)
    known = {name: value for name, value in found.items() if name != "of"} if isinstance(found, dict) else None
    if recorded and known != json.loads(canonical_json(origin)):
        own.close()
        raise ConfigError(f"{str(log)!r} contains another run, or a branch with other changes; give another log")
    return own


def _replay(model: LLMModel, recording: Recording, at: int) -> None:
    """Replay the parent's steps.

    Raises:
        ReplayError: If any step differs.
    """
    recording.guarded(lambda: advance_to(model, at))
    if at and not recording.is_repeated(model.runlog, 1, at):
        raise ReplayError(f"steps 1 to {at} differ from {str(recording.file)!r}: the code or a file has changed since")
