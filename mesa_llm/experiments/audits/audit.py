"""Audits: is a claim about a model a finding, or an artefact of how the model was written?

    found = audit(DilemmaModel, [claim], llm="local:1.5b", seeds=10, folder="runs/audit")
    print(found.text())

The model is run as it is and under perturbations that should not matter, with the same seeds; beside it, by rule, at
random, without personas and without instructions. Every run has its own log in the folder: an audit that is started
again makes only the missing runs, and asks nothing twice.
"""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mesa_llm.engine.access import Access
from mesa_llm.errors import BudgetExceeded, ConfigError, MesaLLMError, Stopped
from mesa_llm.experiments.audits.claim import AuditClaim, compared
from mesa_llm.experiments.audits.claim_findings import ClaimFindings, ControlRow, PerturbationRow
from mesa_llm.experiments.audits.deciders import deciders_in
from mesa_llm.experiments.audits.dimensions import (
    CONTROLS,
    AuditPlan,
    Perturbation,
    Setting,
    check_over_agents,
    perturbation,
    plan_for,
)
from mesa_llm.experiments.audits.findings import Audit
from mesa_llm.experiments.audits.probes import Awareness, AwarenessJob, awareness_of, changed_decisions
from mesa_llm.experiments.audits.seal import SEAL, Seal, check_seal, seal_claims
from mesa_llm.experiments.audits.verdict import NO_RUNS, shown, stability, variance_shares
from mesa_llm.experiments.people.comparison import PeopleComparison, compare_with
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.run import NOT_LISTED, Row, Run, missing_rows
from mesa_llm.experiments.runs.runner import run_jobs, through
from mesa_llm.model.cost_estimate import Cost, CountingAccess
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Rate, total_quality
from mesa_llm.runlog.disk import reason_of, write_whole
from mesa_llm.statistics import Estimate, compare, mean_estimate

ROWS = "runs.csv"
"""File of all runs, in the audit's folder."""

WITHOUT_LLM: Mapping[str, Perturbation] = {
    name: perturbation("", f"{name} in place of the language model", llm=name) for name in ("rule", "random")
}
"""What decides in place of a language model, beside it → the runs with it."""


@dataclass(frozen=True)
class AuditSetup:
    """What an audit runs."""

    model: type[LLMModel]
    """Class of the model."""

    claims: Sequence[AuditClaim]
    """The claims."""

    llm: str
    """Language model of the baseline."""

    seeds: Sequence[int]
    """Seeds of all runs."""

    steps: int | None
    """Number of steps of a run; None to run until the model ends."""

    plan: AuditPlan
    """Perturbations and controls."""

    folder: Path
    """Folder of the logs and of the report."""

    setting: Setting = field(default_factory=Setting)
    """Parameters, design and options of all runs."""

    others: Sequence[str] = ()
    """Further language models, whose runs count as perturbations."""

    judge: str = ""
    """Language model that judges whether agents named the experiment; empty: the words of the claims do."""

    people: Path | None = None
    """Table of what people did, with columns named like the measures; None: not compared."""

    is_recorded: bool = False
    """Whether all runs are recorded, so that nothing may be asked."""

    seal: Seal | None = None
    """Seal of the claims, which the logs of new runs hold; None until the runs are made."""

    def settings(self, perturbation: Perturbation | None) -> Iterator[Setting]:
        """Yield the settings of all claims under a perturbation, each once."""
        seen: list[Setting] = []
        for claim in self.claims:
            for one in claim.between:
                setting = self.under(one, perturbation)
                if setting not in seen:
                    seen.append(setting)
                    yield setting

    def under(self, one: Setting, perturbation: Perturbation | None) -> Setting:
        """Return a setting of a claim under a perturbation."""
        whole = one.over(self.setting, keeps_llm=not one.llm)
        return whole if perturbation is None else perturbation.of(whole)

    def job(self, setting: Setting, seed: int) -> Run:
        """Return the run of a setting with a seed."""
        design = dict(setting.design)
        own = (name_of(self.model), setting.parameters, setting.llm, "audited" if design else "own", design)
        agents = tuple(claim.over_agents for claim in self.claims if claim.over_agents is not None)
        facts = {} if self.seal is None else {SEAL: self.seal.fact}
        return Run(*own, seed, self.steps, self.folder / "logs", setting.options, over_agents=agents, facts=facts)


def audit(
    model: type[LLMModel],
    claims: Sequence[AuditClaim],
    *,
    folder: str | Path,
    llm: str | Sequence[str] = "rule",
    seeds: int | Iterable[int] = 10,
    steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    design: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str | Path] = (),
    awareness: bool = True,
    judge: str = "",
    people: str | Path | None = None,
    on: str = "processes",
    workers: int | None = 1,
    on_run: Callable[[int, int], object] = lambda done, total: None,
    **access: Any,
) -> Audit:
    """Test whether claims about a model are stable under perturbations that should not matter.

    Args:
        model: The model's class.
        claims: The claims; see `read_claims`.
        folder: Folder of the logs and of the report. Runs already in it are not repeated.
        llm: Language model, or several: claims are judged for the first, the others are perturbations.
        seeds: The seeds of all runs, or their number, counting from 1.
        steps: Number of steps of each run; None to run until the model ends.
        parameters: Parameters of all runs.
        design: Design of the agents in all runs, as JSON.
        options: Options of all models.
        dimensions: Names of the dimensions; None: all that the model has.
        wordings: Folders of rewordings; see `write_rewordings`.
        awareness: Whether agents are asked aside what they think is studied.
        judge: Language model that judges their answers; empty: the words of the claims do.
        people: Table of what people did, with columns named like the measures of the claims; see `compare_with`.
        on: Where runs are made; as for `sweep`.
        workers: Number of concurrent runs, each with a share of the limits.
        on_run: Called with the number of runs done, and of all, after each.
        **access: Endpoints, limits and budget shared by all runs, see `Access`.

    Raises:
        ConfigError: If a claim, dimension, parameter or option is invalid.
        BudgetExceeded: If the budget ended it; started again with a larger one, it goes on.
        MesaLLMError: If a run failed.
    """
    setup = audit_setup(
        model,
        claims,
        folder=folder,
        llm=llm,
        seeds=seeds,
        steps=steps,
        parameters=parameters,
        design=design,
        options=options,
        dimensions=dimensions,
        wordings=wordings,
        judge=judge,
        people=people,
    )
    return run_setup(setup, awareness=awareness, on=on, workers=workers, on_run=on_run, **access)


def run_setup(
    setup: AuditSetup,
    *,
    awareness: bool = True,
    on: str = "processes",
    workers: int | None = 1,
    on_run: Callable[[int, int], object] = lambda done, total: None,
    progress: bool | None = False,
    **access: Any,
) -> Audit:
    """Make the runs of an audit that has been planned, and judge its claims.

    Args:
        setup: The audit.
        awareness: As for `audit`, like the rest.
        on: As for `audit`.
        workers: As for `audit`.
        on_run: As for `audit`.
        progress: Whether to show a bar with decisions, failures, dollars and time left; None: on terminals and in
            notebooks.
        **access: As for `audit`.

    Raises:
        BudgetExceeded: If the budget ended it; started again with a larger one, it goes on.
        Stopped: If it was stopped, see `through`; started again, it goes on.
        MesaLLMError: If a run failed.
    """
    start_s = clock.perf_counter()
    if not setup.is_recorded:
        setup = replace(setup, seal=seal_claims(setup.claims, setup.folder))
    with RunBar(progress) as bar:
        rows = _run(setup, access, on, workers, on_run, bar)
    _write_table(rows.values(), setup.folder)
    answers = _ask_aside(setup, access, on, workers) if awareness and setup.llm not in WITHOUT_LLM else []
    return _findings(setup, rows, answers, clock.perf_counter() - start_s)


def audit_setup(
    model: type[LLMModel],
    claims: Sequence[AuditClaim],
    *,
    folder: str | Path,
    llm: str | Sequence[str] = "rule",
    seeds: int | Iterable[int] = 10,
    steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    design: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str | Path] = (),
    judge: str = "",
    people: str | Path | None = None,
) -> AuditSetup:
    """Plan an audit, without running anything but trials with random choices; see `audit`.

    Raises:
        ConfigError: If a claim, dimension, parameter or option is invalid.
    """
    if not claims:
        raise ConfigError("an audit needs at least one claim")
    names = [llm] if isinstance(llm, str) else list(llm)
    all_seeds = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if len(all_seeds) < 2 or len(set(all_seeds)) < len(all_seeds):
        raise ConfigError(f"an audit needs two or more different seeds, got {all_seeds}")
    file = None if people is None else Path(people)
    if file is not None and not file.is_file():
        raise ConfigError(f"{file}: there is no such file; wanted a table of what people did")
    setting = Setting(dict(parameters or {}), dict(design or {}), names[0], dict(options or {}))
    what = (model, claims, names[0], all_seeds, steps, AuditPlan([], []), Path(folder).resolve(), setting)
    setup = AuditSetup(*what, names[1:], judge, file)
    for claim in claims:
        if claim.over_agents is not None:
            check_over_agents(model, setup.under(claim.between[0], None), [claim.over_agents])
    own, *others = setup.settings(None)
    paths = [str(Path(one).resolve()) for one in wordings]
    plan = plan_for(
        model,
        own,
        llms=names[1:],
        dimensions=dimensions,
        wordings=paths,
        fixed=compared(claims),
        steps=steps,
        others=others,
    )
    return replace(setup, plan=plan)


def estimate_audit(setup: AuditSetup, **access: Any) -> tuple[Cost, list[str]]:
    """Estimate the cost of an audit; nothing is sent, and nothing is written.

    All runs of the first seed are made with random replies, and those of the other seeds are assumed to cost the same.

    Args:
        setup: The audit.
        **access: Endpoints and limits, see `Access`.

    Returns:
        The cost, and the language models without a known price.
    """
    counting = CountingAccess(Access(**access))
    jobs = [job for job in _jobs(setup) if job.seed == setup.seeds[0] and job.llm not in WITHOUT_LLM]
    with closing(counting), through(counting):
        for job in jobs:
            with closing(job.make(counting)) as running:
                running.run(job.steps)
        if setup.llm not in WITHOUT_LLM:
            for job in _awareness_jobs(setup)[:1]:
                job.trial(counting)
    one = sum(counting.costs.values(), Cost())
    return sum([one] * len(setup.seeds), Cost()), list(counting.unpriced)


# -- runs


def _arms(setup: AuditSetup) -> Iterator[Perturbation | None]:
    """Yield the baseline, the perturbations, the controls, and those without a language model."""
    yield None
    yield from setup.plan.perturbations
    yield from setup.plan.controls
    yield from WITHOUT_LLM.values()


def _jobs(setup: AuditSetup) -> list[Run]:
    """Return all runs, each once, seed by seed, so that an audit that is stopped has whole blocks."""
    settings = [setting for arm in _arms(setup) for setting in setup.settings(arm)]
    jobs = [setup.job(setting, seed) for seed in setup.seeds for setting in settings]
    return list({job.log: job for job in jobs}.values())


def n_runs(setup: AuditSetup) -> int:
    """Return the number of runs of an audit: of the baseline, the perturbations and the controls.

    Args:
        setup: The audit.
    """
    return len(_jobs(setup))


def files_of(setup: AuditSetup) -> list[Path]:
    """Return the logs of all runs, their rows, and the logs of the agents that are asked aside.

    Args:
        setup: The audit.
    """
    logs = [job.log for job in _jobs(setup)]
    aside = [job.log for job in _awareness_jobs(setup)] if setup.llm not in WITHOUT_LLM else []
    return [*logs, *(log.with_suffix(".json") for log in logs), *aside]


def missing_files(setup: AuditSetup) -> list[Path]:
    """Return those of `files_of` that are not there, or hold no complete run.

    Args:
        setup: The audit.
    """
    incomplete = {job.log for job in _jobs(setup) if job.llm not in WITHOUT_LLM and job.row() is None}
    return [file for file in files_of(setup) if file in incomplete or not file.is_file()]


def _run(
    setup: AuditSetup,
    access: Mapping[str, Any],
    on: str,
    workers: int | None,
    on_run: Callable[[int, int], object],
    bar: RunBar,
) -> dict[Path, Row]:
    """Make the missing runs, and return the rows of all by the paths of their logs."""
    jobs = _jobs(setup)
    rows: dict[Path, Row] = {job.log: row for job in jobs if (row := job.row()) is not None}
    (setup.folder / "logs").mkdir(parents=True, exist_ok=True)
    on_run(len(rows), len(jobs))
    made = missing_rows(jobs, rows, bar=bar, on=on, workers=workers, **access)
    with closing(made) as results:
        for job, row in results:
            if row["error_kind"] == "BudgetExceeded":
                raise BudgetExceeded(row["error"])
            if row["error_kind"] == "Stopped":
                raise Stopped(row["error"])
            if row["error"] and job.llm not in WITHOUT_LLM:
                raise MesaLLMError(f"the run {job.log.name} failed: {str(row['error'])[:300]}")
            on_run(len(rows), len(jobs))
    return rows


def _write_table(rows: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Write the rows of all runs as a table."""
    import pandas as pd

    table = pd.DataFrame(list(rows)).drop(columns=list(NOT_LISTED), errors="ignore")
    try:
        write_whole(folder / ROWS, table.to_csv(index=False))
    except OSError as error:
        place = folder / ROWS
        raise ConfigError(f"{str(place)!r} cannot be written: {reason_of(place, error)}") from error


def _awareness_jobs(setup: AuditSetup) -> list[AwarenessJob]:
    setting = setup.under(setup.claims[0].between[0], None)
    words = tuple(dict.fromkeys(word for claim in setup.claims for word in claim.words))
    own = (words, setup.judge, setup.is_recorded)
    return [AwarenessJob(setup.job(setting, seed), *own) for seed in setup.seeds]


def _ask_aside(setup: AuditSetup, access: Mapping[str, Any], on: str, workers: int | None) -> list[Awareness]:
    """Ask the agents of the baseline aside what is studied; answers that are recorded are not asked for again."""
    with closing(run_jobs(_awareness_jobs(setup), access, on=on, workers=workers)) as results:
        by_seed = {job.job.seed: answers for job, answers in results}
    return [one for seed in setup.seeds for one in by_seed[seed]]


# -- findings


def _findings(
    setup: AuditSetup, rows: Mapping[Path, Mapping[str, Any]], answers: Sequence[Awareness], seconds: float
) -> Audit:
    claims = [_audited(setup, claim, rows) for claim in setup.claims]
    rates = total_quality(json.loads(row.get("quality") or "{}") for row in rows.values())
    cost = {
        "runs": len(rows),
        "decisions": sum(int(row["decisions"]) for row in rows.values()),
        "calls": sum(int(row["calls"]) for row in rows.values()),
        "tokens": sum(int(row["prompt_tokens"]) + int(row["reply_tokens"]) for row in rows.values()),
        "dollars": float(sum(float(row["dollars"]) for row in rows.values())),
        "seconds": round(seconds, 1),
    }
    return Audit(
        model=setup.model.__name__,
        llm=setup.llm,
        others=tuple(setup.others),
        seeds=tuple(setup.seeds),
        steps=setup.steps,
        setting=setup.setting,
        claims=claims,
        not_run=setup.plan.not_run,
        deciders=deciders_in(_logs_of_deciders(setup)),
        awareness=awareness_of(answers),
        people=None if setup.people is None else _beside_people(setup, rows, setup.people),
        quality=rates,
        cost=cost,
        seal=check_seal(setup.claims, setup.folder),
    )


def _logs_of_deciders(setup: AuditSetup) -> Iterator[Path]:
    """Yield the logs of the baseline, and of other language models, seed by seed."""
    arms = [None, *(one for one in setup.plan.perturbations if one.llm)]
    for seed in setup.seeds:
        yield from (setup.job(setting, seed).log for arm in arms for setting in setup.settings(arm))


def _audited(setup: AuditSetup, claim: AuditClaim, rows: Mapping[Path, Mapping[str, Any]]) -> ClaimFindings:
    """Judge one claim."""

    def effects(arm: Perturbation | None) -> list[float]:
        return claim.effects(
            [[_value(setup, claim, rows, one, arm, seed) for seed in setup.seeds] for one in claim.between]
        )

    baseline = effects(None)
    perturbed = [effects(one) for one in setup.plan.perturbations]
    judged = stability(baseline, perturbed, claim.expectation, claim.smallest_effect)
    found = [
        PerturbationRow(
            one,
            result,
            _rates(setup, claim, rows, one),
            changed_decisions(*_logs(setup, claim, one)),
            _per_agent(values, baseline, one.scale),
        )
        for one, result, values in zip(setup.plan.perturbations, judged, perturbed, strict=True)
    ]
    of_controls = {one.name: effects(one) for one in setup.plan.controls}
    controls = [
        _control(claim, one.name, of_controls[one.name], baseline, changed_decisions(*_logs(setup, claim, one)))
        for one in setup.plan.controls
    ]
    for name, one in WITHOUT_LLM.items():
        if name != setup.llm and np.isfinite(values := effects(one)).any():
            controls.append(_control(claim, one.name, values, baseline, None))
    own = [value for value in baseline if np.isfinite(value)]
    labels = ["baseline", *(one.name for one in setup.plan.perturbations)]
    llms = [setup.llm, *(one.llm or setup.llm for one in setup.plan.perturbations)]
    values = [baseline, *perturbed]
    another_sample = of_controls.get(CONTROLS["another sample"].name)
    shares = variance_shares(
        [value for column in values for value in column],
        list(setup.seeds) * len(values),
        [label for label in labels for _ in setup.seeds],
        [llm for llm in llms for _ in setup.seeds],
        sampling=None if another_sample is None else _sampling_variance(baseline, another_sample),
    )
    return ClaimFindings(
        claim=claim,
        baseline=mean_estimate(own) or NO_RUNS,
        shown=shown(own, claim.expectation, claim.smallest_effect),
        rates=_rates(setup, claim, rows, None),
        perturbations=found,
        controls=controls,
        shares=shares,
        n_llms=1 + len(setup.others),
    )


def _per_agent(values: Sequence[float], baseline: Sequence[float], scale: float) -> Estimate | None:
    """Return how far an effect differs from the baseline once it is divided by the relative number of agents."""
    if scale == 1:
        return None
    compared = compare([value / scale for value in values], baseline)
    return None if compared is None else compared.difference


def _sampling_variance(baseline: Sequence[float], another_sample: Sequence[float]) -> float | None:
    """Return the variance of an effect by the sampling of replies alone; None if no seed has both samples."""
    apart = np.array(another_sample) - np.array(baseline)
    apart = apart[np.isfinite(apart)]
    return float(np.mean(apart**2) / 2) if len(apart) else None


def _beside_people(setup: AuditSetup, rows: Mapping[Path, Mapping[str, Any]], people: Path) -> PeopleComparison:
    """Compare the measures of all runs of the first setting of each claim with those of people."""
    import pandas as pd

    no_persona = CONTROLS["no persona"]
    arms: dict[str, Perturbation | None] = {setup.llm: None}
    arms |= {name: one for name, one in WITHOUT_LLM.items() if name != setup.llm}
    arms |= {no_persona.name: no_persona} if no_persona in setup.plan.controls else {}
    sources = {
        name: pd.DataFrame(
            {
                claim.measure: [_value(setup, claim, rows, claim.between[0], arm, seed) for seed in setup.seeds]
                for claim in setup.claims
            }
        )
        for name, arm in arms.items()
    }
    return compare_with(people, {name: one for name, one in sources.items() if one.notna().to_numpy().any()})


def _value(
    setup: AuditSetup,
    claim: AuditClaim,
    rows: Mapping[Path, Mapping[str, Any]],
    setting: Setting,
    arm: Perturbation | None,
    seed: int,
) -> float:
    """Return the measure of a claim in one run; NaN without it."""
    row = rows[setup.job(setup.under(setting, arm), seed).log]
    value = None if row["error"] else claim.value_in(row)
    return math.nan if value is None else value


def _logs(setup: AuditSetup, claim: AuditClaim, perturbation: Perturbation) -> tuple[list[Path], list[Path]]:
    """Return the logs of the baseline and of a perturbation, in the same order."""
    pairs = [
        (setup.job(setup.under(one, None), seed).log, setup.job(setup.under(one, perturbation), seed).log)
        for one in claim.between
        for seed in setup.seeds
    ]
    return [own for own, _ in pairs], [other for _, other in pairs]


def _rates(
    setup: AuditSetup, claim: AuditClaim, rows: Mapping[Path, Mapping[str, Any]], perturbation: Perturbation | None
) -> Mapping[str, Rate]:
    """Return what did not come as asked in the runs of a claim under a perturbation."""
    of_arm = [
        rows[setup.job(setup.under(one, perturbation), seed).log] for one in claim.between for seed in setup.seeds
    ]
    return total_quality(json.loads(row.get("quality") or "{}") for row in of_arm)


def _control(
    claim: AuditClaim,
    name: str,
    values: Sequence[float],
    baseline: Sequence[float],
    changed: Rate | None,
) -> ControlRow:
    finite = [value for value in values if np.isfinite(value)]
    compared = compare(values, baseline)
    return ControlRow(
        name=name,
        effect=mean_estimate(finite) or NO_RUNS,
        difference=NO_RUNS if compared is None else compared.difference,
        shown=shown(finite, claim.expectation, claim.smallest_effect),
        changed=changed,
    )
