"""Audits: is a claim about a model a finding, or an artefact of how the model was written?

    found = audit(DilemmaModel, [claim], llm="local:1.5b", folder="runs/audit")
    print(found.text())

The model is run as it is and under perturbations that should not matter, with the same seeds; beside it, by rule, at
random, without personas and without instructions. It looks at its runs after numbers of seeds that are fixed beforehand
(`looks`), and goes on only with what is undecided. Every run has its own log in the folder: an audit that is started
again makes only the missing runs, asks nothing twice, and ends the same.
"""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
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
    plan_for,
)
from mesa_llm.experiments.audits.findings import Audit
from mesa_llm.experiments.audits.interactions import (
    DEFAULT,
    N_SCREENED,
    N_SEEDS,
    judged_interactions,
    max_tested,
    plan_interactions,
    screening_runs,
)
from mesa_llm.experiments.audits.judged import Judged, effects_of, judged_by_looks, value_of
from mesa_llm.experiments.audits.looks import look_numbers, require_looks
from mesa_llm.experiments.audits.multiverse import Interactions
from mesa_llm.experiments.audits.probes import Awareness, AwarenessJob, awareness_of, changed_decisions
from mesa_llm.experiments.audits.seal import check_seal, seal_claims
from mesa_llm.experiments.audits.setup import WITHOUT_LLM, AuditSetup, runs_of
from mesa_llm.experiments.audits.verdict import (
    NO_RUNS,
    Shown,
    variance_shares,
)
from mesa_llm.experiments.people.comparison import PeopleComparison, compare_with
from mesa_llm.experiments.runs.bar import RunBar
from mesa_llm.experiments.runs.run import NOT_LISTED, Row, Run, missing_rows
from mesa_llm.experiments.runs.runner import run_jobs, through
from mesa_llm.model.cost_estimate import Cost, CountingAccess
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Rate, total_quality
from mesa_llm.runlog.disk import reason_of, write_whole
from mesa_llm.statistics import Estimate, compare, mean_estimate

ROWS = "runs.csv"
"""File of all runs, in the audit's folder."""


def audit(
    model: type[LLMModel],
    claims: Sequence[AuditClaim],
    *,
    folder: str | Path,
    llm: str | Sequence[str] = "rule",
    seeds: int | Iterable[int] | None = None,
    looks: Sequence[int] | None = None,
    steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    design: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str | Path] = (),
    awareness: bool = True,
    judge: str = "",
    people: str | Path | None = None,
    interactions: bool | int = False,
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
        seeds: The seeds of all runs, or their number, counting from 1: a fixed design, unless `looks` are given too.
            None: seeds from 1, as many as the looks take.
        looks: Rising numbers of seeds at which the audit looks at its runs, with the error spent on all of them; a
            change that is decided gets no further runs. None: 10, 15, … 80, or with `seeds` a single look.
        steps: Number of steps of each run; None to run until the model ends.
        parameters: Parameters of all runs.
        design: Design of the agents in all runs, as JSON.
        options: Options of all models.
        dimensions: Names of the dimensions; None: all that the model has.
        wordings: Folders of rewordings; see `write_rewordings`.
        awareness: Whether agents are asked aside what they think is studied.
        judge: Language model that judges their answers; empty: the words of the claims do.
        people: Table of what people did, with columns named like the measures of the claims; see `compare_with`.
        interactions: Whether pairs of perturbations are audited too, or the number of combinations of several
            perturbations by which the pairs to test are found (64); see `plan_interactions`.
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
        looks=looks,
        steps=steps,
        parameters=parameters,
        design=design,
        options=options,
        dimensions=dimensions,
        wordings=wordings,
        judge=judge,
        people=people,
        interactions=interactions,
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
        rows, judged = _run(setup, partial(judged_by_looks, setup), access, on, workers, on_run, bar)
        together: list[Interactions] = []
        if setup.interactions is not None:
            further, together = _run(setup, partial(judged_interactions, setup), access, on, workers, on_run, bar)
            rows |= further
    _write_table(rows.values(), setup.folder)
    answers = _ask_aside(setup, access, on, workers) if awareness and setup.llm not in WITHOUT_LLM else []
    found = _findings(setup, rows, judged, answers, clock.perf_counter() - start_s)
    return replace(found, interactions=tuple(together))


def audit_setup(
    model: type[LLMModel],
    claims: Sequence[AuditClaim],
    *,
    folder: str | Path,
    llm: str | Sequence[str] = "rule",
    seeds: int | Iterable[int] | None = None,
    looks: Sequence[int] | None = None,
    steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    design: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    dimensions: Iterable[str] | None = None,
    wordings: Iterable[str | Path] = (),
    judge: str = "",
    people: str | Path | None = None,
    interactions: bool | int = False,
) -> AuditSetup:
    """Plan an audit, without running anything but trials with random choices; see `audit`.

    Raises:
        ConfigError: If a claim, dimension, parameter or option is invalid.
    """
    if not claims:
        raise ConfigError("an audit needs at least one claim")
    names = [llm] if isinstance(llm, str) else list(llm)
    all_seeds, numbers = _seeds_and_looks(seeds, looks)
    file = None if people is None else Path(people)
    if file is not None and not file.is_file():
        raise ConfigError(f"{file}: there is no such file; wanted a table of what people did")
    setting = Setting(dict(parameters or {}), dict(design or {}), names[0], dict(options or {}))
    what = (model, claims, names[0], all_seeds, steps, AuditPlan([], []), Path(folder).resolve(), setting)
    setup = AuditSetup(*what, names[1:], judge, file, look_numbers=numbers)
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
        over_agents=[claim.over_agents for claim in claims if claim.over_agents is not None],
    )
    setup = replace(setup, plan=plan)
    if not interactions:
        return setup
    n = DEFAULT if interactions is True else interactions
    return replace(setup, interactions=plan_interactions(model, own, plan.perturbations, n))


def _seeds_and_looks(
    seeds: int | Iterable[int] | None, looks: Sequence[int] | None
) -> tuple[list[int], tuple[int, ...]]:
    """Return the seeds of an audit, and the numbers of them at which it looks; none for a fixed design.

    Raises:
        ConfigError: If seeds are too few or repeated, or looks do not rise.
    """
    numbers: tuple[int, ...] = ()
    if looks is not None or seeds is None:
        numbers = require_looks(look_numbers() if looks is None else looks)
    chosen = max(numbers, default=0) if seeds is None else seeds
    all_seeds = list(range(1, chosen + 1)) if isinstance(chosen, int) else list(chosen)
    if len(all_seeds) < 2 or len(set(all_seeds)) < len(all_seeds):
        raise ConfigError(f"an audit needs two or more different seeds, got {all_seeds}")
    if numbers and numbers[-1] > len(all_seeds):
        raise ConfigError(f"the last look takes {numbers[-1]} seeds, got {len(all_seeds)}")
    return all_seeds[: numbers[-1]] if numbers else all_seeds, numbers


def estimate_audit(setup: AuditSetup, **access: Any) -> tuple[Cost, list[str]]:
    """Estimate the cost of an audit that takes all its looks; nothing is sent, and nothing is written.

    All runs of the first seed are made with random replies, and those of the other seeds are assumed to cost the same.

    Args:
        setup: The audit.
        **access: Endpoints and limits, see `Access`.

    Returns:
        The cost, and the language models without a known price.
    """
    one, unpriced = estimate_seed(setup, **access)
    return sum([one] * len(setup.seeds), estimate_interactions(setup, **access)), unpriced


def estimate_seed(setup: AuditSetup, **access: Any) -> tuple[Cost, list[str]]:
    """Estimate the cost of the runs of one seed, as `estimate_audit` does for all."""
    counting = CountingAccess(Access(**access))
    jobs = [job for job in runs_of(setup) if job.seed == setup.seeds[0] and job.llm not in WITHOUT_LLM]
    with closing(counting), through(counting):
        for job in jobs:
            with closing(job.make(counting)) as running:
                running.run(job.steps)
        if setup.llm not in WITHOUT_LLM:
            for job in _awareness_jobs(setup)[:1]:
                job.trial(counting)
    return sum(counting.costs.values(), Cost()), list(counting.unpriced)


def estimate_interactions(setup: AuditSetup, **access: Any) -> Cost:
    """Estimate the cost of the interactions of an audit, at most, as `estimate_audit` does; none without a plan.

    A run of a pair is assumed to cost what a run of the baseline costs.
    """
    combined = [job for job in screening_runs(setup) if job.seed == setup.seeds[0]]
    baseline = [job for index in range(len(setup.claims)) for job in setup.runs((index, 0), setup.seeds[0])]
    n_tested = max_tested(setup)
    times = [(combined, N_SCREENED), (baseline, (3 * n_tested + 1) * N_SEEDS if n_tested else 0)]
    costs = [(_cost_of(jobs, **access), n) for jobs, n in times if n]
    return sum([cost for cost, n in costs for _ in range(n)], Cost())


def _cost_of(jobs: Sequence[Run], **access: Any) -> Cost:
    """Return the cost of runs, made with random replies."""
    counting = CountingAccess(Access(**access))
    with closing(counting), through(counting):
        for job in jobs:
            with closing(job.make(counting)) as running:
                running.run(job.steps)
    return sum(counting.costs.values(), Cost())


# -- runs


def made_runs(setup: AuditSetup) -> list[Run]:
    """Return the runs that an audit takes by the rows in its folder: those through the first look that lacks one.

    Args:
        setup: The audit.
    """
    rows: dict[Path, Row] = {}
    jobs: list[Run] = []
    for jobs in judged_by_looks(setup, rows):
        found = {job.log: row for job in jobs if (row := job.row()) is not None}
        if len(found) < len(jobs):
            break
        rows |= found
    return jobs


def files_of(setup: AuditSetup) -> list[Path]:
    """Return the logs of all runs, their rows, and the logs of the agents that are asked aside.

    Args:
        setup: The audit.
    """
    logs = [job.log for job in made_runs(setup)]
    aside = [job.log for job in _awareness_jobs(setup)] if setup.llm not in WITHOUT_LLM else []
    return [*logs, *(log.with_suffix(".json") for log in logs), *aside]


def missing_files(setup: AuditSetup) -> list[Path]:
    """Return those of `files_of` that are not there, or hold no complete run.

    Args:
        setup: The audit.
    """
    incomplete = {job.log for job in made_runs(setup) if job.llm not in WITHOUT_LLM and job.row() is None}
    return [file for file in files_of(setup) if file in incomplete or not file.is_file()]


def _run[T](
    setup: AuditSetup,
    judging: Callable[[Mapping[Path, Row]], Generator[list[Run], None, T]],
    access: Mapping[str, Any],
    on: str,
    workers: int | None,
    on_run: Callable[[int, int], object],
    bar: RunBar,
) -> tuple[dict[Path, Row], T]:
    """Make the missing runs, look by look, and return the rows of all by the paths of their logs, and what they say."""
    rows: dict[Path, Row] = {}
    (setup.folder / "logs").mkdir(parents=True, exist_ok=True)
    looking, jobs = judging(rows), list[Run]()
    while True:
        try:
            jobs = next(looking)
        except StopIteration as end:
            return {job.log: rows[job.log] for job in jobs}, end.value
        rows |= {job.log: row for job in jobs if job.log not in rows and (row := job.row()) is not None}
        on_run(len(rows), len(jobs))
        _make(jobs, rows, access, on, workers, on_run, bar)


def _make(
    jobs: Sequence[Run],
    rows: dict[Path, Row],
    access: Mapping[str, Any],
    on: str,
    workers: int | None,
    on_run: Callable[[int, int], object],
    bar: RunBar,
) -> None:
    """Make the runs that have no row yet."""
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
    return [AwarenessJob(setup.job(setting, seed), *own) for seed in setup.seeds[: setup.looks[0].n_seeds]]


def _ask_aside(setup: AuditSetup, access: Mapping[str, Any], on: str, workers: int | None) -> list[Awareness]:
    """Ask the agents of the baseline aside what is studied; answers that are recorded are not asked for again."""
    with closing(run_jobs(_awareness_jobs(setup), access, on=on, workers=workers)) as results:
        by_seed = {job.job.seed: answers for job, answers in results}
    return [one for seed in setup.seeds if seed in by_seed for one in by_seed[seed]]


# -- findings


def _findings(
    setup: AuditSetup,
    rows: Mapping[Path, Mapping[str, Any]],
    judged: Judged,
    answers: Sequence[Awareness],
    seconds: float,
) -> Audit:
    claims = [_audited(setup, index, rows, judged) for index in range(len(setup.claims))]
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
        seeds=tuple(setup.seeds[: max(judged.n_seeds.values())]),
        steps=setup.steps,
        setting=setup.setting,
        claims=claims,
        not_run=setup.plan.not_run,
        deciders=deciders_in(_logs_of_deciders(setup, rows)),
        awareness=awareness_of(answers),
        people=None if setup.people is None else _beside_people(setup, rows, setup.people),
        quality=rates,
        cost=cost,
        seal=check_seal(setup.claims, setup.folder),
        looks=tuple(setup.looks) if setup.look_numbers else (),
    )


def _logs_of_deciders(setup: AuditSetup, rows: Mapping[Path, Mapping[str, Any]]) -> Iterator[Path]:
    """Yield the logs of the baseline, and of other language models, seed by seed."""
    arms = [None, *(one for one in setup.plan.perturbations if one.llm)]
    for seed in setup.seeds:
        logs = (setup.job(setting, seed).log for arm in arms for setting in setup.settings(arm))
        yield from (log for log in logs if log in rows)


def _audited(setup: AuditSetup, index: int, rows: Mapping[Path, Mapping[str, Any]], judged: Judged) -> ClaimFindings:
    """Return what was found about one claim."""
    claim, n_changes, n_controls = setup.claims[index], len(setup.plan.perturbations), len(setup.plan.controls)
    longest = setup.seeds[: judged.n_seeds[index, 0]]

    def effects(arm: int) -> list[float]:
        own = effects_of(setup, rows, (index, arm), judged.n_seeds[index, arm])
        return own + [math.nan] * (len(longest) - len(own))

    def beside(arm: int) -> tuple[Mapping[str, Rate], Rate | None]:
        seeds = longest[: judged.n_seeds[index, arm]]
        of_arm, of_baseline = (
            [run.log for seed in seeds for run in setup.runs((index, one), seed)] for one in (arm, 0)
        )
        rates = total_quality(json.loads(rows[log].get("quality") or "{}") for log in of_arm)
        return rates, None if not arm else changed_decisions(of_baseline, of_arm)

    baseline, perturbed = effects(0), [effects(arm) for arm in range(1, n_changes + 1)]
    found = [
        PerturbationRow(one, judged.changes[index, arm], *beside(arm), _per_agent(values, baseline, one.scale))
        for arm, (one, values) in enumerate(zip(setup.plan.perturbations, perturbed, strict=True), 1)
    ]
    of_controls = {one.name: effects(arm) for arm, one in enumerate(setup.plan.controls, n_changes + 1)}
    controls = [
        _control(one.name, of_controls[one.name], baseline, judged.shown[index, arm], beside(arm)[1])
        for arm, one in enumerate(setup.plan.controls, n_changes + 1)
    ]
    for arm, (name, one) in enumerate(WITHOUT_LLM.items(), n_changes + n_controls + 1):
        if name != setup.llm and np.isfinite(values := effects(arm)).any():
            controls.append(_control(one.name, values, baseline, judged.shown[index, arm], None))
    own = [value for value in baseline if np.isfinite(value)]
    labels = ["baseline", *(one.name for one in setup.plan.perturbations)]
    llms = [setup.llm, *(one.llm or setup.llm for one in setup.plan.perturbations)]
    another_sample = of_controls.get(CONTROLS["another sample"].name)
    shares = variance_shares(
        [value for column in [baseline, *perturbed] for value in column],
        list(longest) * len(labels),
        [label for label in labels for _ in longest],
        [llm for llm in llms for _ in longest],
        sampling=None if another_sample is None else _sampling_variance(baseline, another_sample),
    )
    return ClaimFindings(
        claim=claim,
        baseline=mean_estimate(own) or NO_RUNS,
        shown=judged.shown[index, 0],
        rates=beside(0)[0],
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

    def values(index: int, claim: AuditClaim, arm: int) -> list[float]:
        logs = [setup.runs((index, arm), seed)[0].log for seed in setup.seeds]
        return [value_of(claim, rows[log]) if log in rows else math.nan for log in logs]

    sources = {
        name: pd.DataFrame(
            {claim.measure: values(index, claim, setup.arms.index(arm)) for index, claim in enumerate(setup.claims)}
        )
        for name, arm in arms.items()
    }
    return compare_with(people, {name: one for name, one in sources.items() if one.notna().to_numpy().any()})


def _control(
    name: str, values: Sequence[float], baseline: Sequence[float], says: Shown, changed: Rate | None
) -> ControlRow:
    finite = [value for value in values if np.isfinite(value)]
    compared = compare(values, baseline)
    return ControlRow(
        name=name,
        effect=mean_estimate(finite) or NO_RUNS,
        difference=NO_RUNS if compared is None else compared.difference,
        shown=says,
        changed=changed,
    )
