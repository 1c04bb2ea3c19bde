"""`mesa-llm bench`: benchmark tasks, what they cost, and the report."""

from __future__ import annotations

import json
import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from tqdm import tqdm

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.cli.arguments import designs_in, llm_in, parameters
from mesa_llm.cli.command import command, look_here, say
from mesa_llm.cli.cost import caveat, cost_table
from mesa_llm.cli.options import AsJson, Designs, DryRun, Flags, Llm, Out
from mesa_llm.engine.access import Access
from mesa_llm.engine.options import RunOptions
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.benchmarks.benchmark import Benchmark, CrossBenchmark, require_results
from mesa_llm.experiments.benchmarks.cross import Cross, candidates_of
from mesa_llm.experiments.benchmarks.designs import ORIGINAL_DESIGNS, ablations
from mesa_llm.experiments.benchmarks.report import BenchmarkReport, usage_of
from mesa_llm.experiments.benchmarks.runs import Candidate, PlannedRun, TaskRun, TaskRuns, estimate_plans
from mesa_llm.experiments.benchmarks.task import SHACHI, Reference, Task, find_task, find_tasks, read_reference
from mesa_llm.model.cost_estimate import Cost, estimate_cost
from mesa_llm.model.model import LLMModel
from mesa_llm.model.scenario import parameters_of
from mesa_llm.text import counted, figure_text

ALL = "all"
"""Name that stands for all tasks."""

WRITTEN = ("reasoning", "reply_tokens", "scoring", "parser")
"""Options of runs that a report names."""

NEEDS_LOGS = {"light": "scores and costs are read from the run logs"}
"""Options that a benchmark lacks, and why."""


@command("bench")
def bench(
    options: Annotated[RunOptions, Flags(shared_by="runs", without=NEEDS_LOGS)],
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Names of tasks, MODULE:NAME for any other, or `all`; without one, lists them."),
    ] = None,
    llm: Llm = "rule",
    design: Designs = None,
    cross: Annotated[
        bool,
        typer.Option(
            "--cross", help="Compare every design in every task; by default Shachi's four designs in their four tasks."
        ),
    ] = False,
    ablate: Annotated[str | None, typer.Option(help="Design to ablate, one component at a time.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="Score by which designs are compared in a task, as TASK=SCORE; repeatable.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Scores to compare a task's runs with, such as those of your own run of its original, as TASK=FILE "
            "(JSON, or a table with the columns score and value); repeatable."
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option("--baseline", help="Also run the baselines of Shachi that lack a component: memory, tools."),
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Number of runs of each task, with consecutive seeds.")] = 3,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    items: Annotated[
        str, typer.Option(help="`own`, or `original`: the published items of tasks that have some.")
    ] = "own",
    quick: Annotated[bool, typer.Option("--quick", help="Run small versions of the tasks, to try them out.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameter, as name=value for all tasks or TASK.name=value for one; repeatable."),
    ] = None,
    out: Out = Path("runs", "bench"),
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run benchmark tasks, with rule twins and random choice as baselines.

    To resume a benchmark that was stopped, run the same command again.
    """
    is_cross = cross or ablate is not None
    if measure and not is_cross:
        raise ConfigError("--measure chooses the score by which designs are compared; it needs --cross or --ablate")
    if not tasks and not is_cross:
        for line in task_list():
            say(line)
        return
    if any(":" in name for name in tasks or ()):
        look_here()
    written = {"tasks": tasks, "cross": cross, "llm": llm, "design": design, "ablate": ablate, "items": items}
    written |= {"quick": quick, "set": set_, "repeats": repeats, "rng": rng}
    written |= {"api_base": options.api_base} if options.api_base else {}
    written |= {name: value for name, value in options.changed.items() if name in WRITTEN}
    written |= {name: value for name, value in (("measure", measure), ("target", target)) if value}
    written |= {"baseline": True} if baseline else {}
    chosen = tasks_named(tasks or ORIGINAL_DESIGNS, set_ or [], is_quick=quick, items=items, measures=measure or [])
    chosen = with_targets(chosen, target or [])
    seeds = range(rng, rng + repeats)
    with closing(Access(**options.access)) as access:
        if is_cross:
            by_design = candidates_of(llm_in(llm), designs_of_cross(design or [], ablate))
            tested = list(by_design.values())
            benchmark = CrossBenchmark(chosen, tested, seeds, access, options.changed, written, list(by_design))
        else:
            tested = [candidate_of(llm_in(llm), design or [])]
            benchmark = Benchmark(chosen, tested, seeds, access, options.changed, written, has_baseline=baseline)
        if dry_run:
            _print_cost(benchmark, as_json=as_json)
        else:
            _run(benchmark, out, as_json=as_json)


def task_list() -> Iterator[str]:
    """Describe each task in a line, including those of Shachi's ten that are missing."""
    tasks, broken = find_tasks()
    names = [*tasks, *broken, *(name for name in SHACHI if name not in tasks and name not in broken)]
    width = max(len(name) for name in names)
    for name, task in tasks.items():
        yield f"{name:<{width}}  level {task.level}  {task.source}"
    for name, fault in broken.items():
        yield f"{name:<{width}}  BROKEN: {fault}"
    for name, level in SHACHI.items():
        if name not in tasks and name not in broken:
            yield f"{name:<{width}}  level {level}  not available yet"


def tasks_named(
    names: Iterable[str], assignments: Sequence[str], *, is_quick: bool, items: str, measures: Sequence[str] = ()
) -> list[Task]:
    """Find tasks by name, with their parameters.

    Args:
        names: Names of tasks, or `all`.
        assignments: Parameters, as `name=value` for all tasks that have it, or as `task.name=value`.
        is_quick: Whether to run small versions.
        items: `own` or `original`.
        measures: Scores by which designs are compared, each as `TASK=SCORE`.

    Raises:
        ConfigError: If there is no such task, parameter or score, a value does not fit, or published items are missing.
    """
    if items not in ("own", "original"):
        raise ConfigError(f"--items {items}: expected own or original")
    names = list(names)
    by_name: dict[str, Task] = {}
    for name in names:
        by_name |= {task.name: task for task in (find_tasks()[0].values() if name == ALL else [find_task(name)])}
    tasks = list(by_name.values())
    tasks = [task.as_quick() if is_quick else task for task in tasks]
    tasks = [task.with_original_items() if items == "original" else task for task in tasks]
    own = {task.name: list[str]() for task in tasks}
    for pair in assignments:
        for name, rest in _applications(pair, tasks):
            own[name].append(rest)
    tasks = [task.with_parameters(parameters(task.model_class, own[task.name], None)) for task in tasks]
    if items == "original" and ALL not in names:  # of all tasks, some have no published items at all
        for task in tasks:
            task.require_by_hand()
    return _measured_by(tasks, measures)


def _applications(pair: str, tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """Return the names of the tasks that an assignment applies to, each with the assignment less the task's name."""
    name = pair.partition("=")[0].strip().replace("-", "_")
    task_name, dot, _ = name.partition(".")
    if dot:
        applications = [
            (task.name, pair.partition(".")[2]) for task in tasks if task.name.replace("-", "_") == task_name
        ]
    else:
        applications = [(task.name, pair) for task in tasks if name in _parameter_names(task)]
    if not applications:
        there_are = ", ".join(task.name for task in tasks)
        raise ConfigError(f"--set {pair}: expected name=value or TASK.name=value, for a parameter of {there_are}")
    return applications


def _measured_by(tasks: Sequence[Task], typed: Sequence[str]) -> list[Task]:
    """Return the tasks, with the measures that were typed as `TASK=SCORE`."""
    measures: dict[str, str] = {}
    for pair in typed:
        name, _, score = (part.strip() for part in pair.partition("="))
        name = name.replace("-", "_")
        if name not in {task.name for task in tasks} or not score:
            raise ConfigError(f"--measure {pair}: expected TASK=SCORE, for {', '.join(task.name for task in tasks)}")
        measures[name] = score
    for task in (task for task in tasks if task.name in measures):
        names = _scores_by_rule(task)
        if measures[task.name] not in names:
            raise ConfigError(
                f"--measure {task.name}={measures[task.name]}: {task.name} has no such score; it has {', '.join(names)}"
            )
    return [task.measured_by(measures[task.name]) if task.name in measures else task for task in tasks]


def with_targets(tasks: Sequence[Task], typed: Sequence[str]) -> list[Task]:
    """Return the tasks, with the targets that were typed as `TASK=FILE`, or as `FILE` for a single task.

    Raises:
        ConfigError: If there is no such task or file, or the file has none of the task's scores.
    """
    targets: dict[str, Reference] = {}
    for text in typed:
        name, equals, file = text.partition("=")
        name, file = (name.strip().replace("-", "_"), file) if equals else (tasks[0].name, text)
        if name not in {task.name for task in tasks} or (len(tasks) > 1 and not equals):
            raise ConfigError(f"--target {text}: expected TASK=FILE, for {', '.join(task.name for task in tasks)}")
        targets[name] = read_reference(file.strip())
    for task in (task for task in tasks if task.name in targets):
        names = _scores_by_rule(task.as_quick())
        if not set(targets[task.name].values) & {*names, *(task.target.values if task.target else ())}:
            raise ConfigError(
                f"--target {task.name}: the file has no score of {task.name}, whose scores are {', '.join(names[:8])}"
            )
    return [task.with_target(targets[task.name]) if task.name in targets else task for task in tasks]


def _scores_by_rule(task: Task) -> list[str]:
    """Return the names of the scores that a run by rule has; nothing is sent, not even to a judge."""
    models: list[LLMModel] = []

    def make(**options: Any) -> LLMModel:
        models.append(task.make(**options))
        return models[0]

    estimate_cost(make, task.max_steps, **{**task.setting, "llm": "rule", "rng": 1})
    return list(task.score(models[0]))


def _parameter_names(task: Task) -> set[str]:
    return {parameter.name for parameter in parameters_of(task.model_class)}


def candidate_of(llm: str | Mapping[str, str], typed: Sequence[str]) -> Candidate:
    """Return the language model under test with the design that was typed, if any.

    Raises:
        ConfigError: If the design cannot be found, or there are several.
    """
    candidates = list(candidates_of(llm, designs_in(typed) or {OWN_DESIGN: None}).values())
    if len(candidates) > 1:
        raise ConfigError(f"--design names {len(candidates)} designs; compare them with --cross")
    return candidates[0]


def designs_of_cross(typed: Sequence[str], ablate: str | None) -> dict[str, AgentDesign | None]:
    """Return the designs of a cross: those that were typed, and the ablations of one design.

    Args:
        typed: Names and files, with commas between them; none: the four original designs, unless one is ablated.
        ablate: Name or file of the design to ablate; None: none.

    Raises:
        ConfigError: If one cannot be found, or two have the same name.
    """
    if ablate is None:
        return designs_in(typed) if typed else dict(ORIGINAL_DESIGNS)
    base = designs_in([ablate], "--ablate")
    if len(base) != 1:
        raise ConfigError(f"--ablate {ablate}: expected one design, by name or file")
    others = {name: design for name, design in designs_in(typed).items() if name not in base}
    return ablations(*next(iter(base.items()))) | others


def _print_cost(benchmark: Benchmark, *, as_json: bool) -> None:
    """Print the expected cost of a benchmark, without sending a request."""
    plans = benchmark.plans(benchmark.candidates)
    costs, unpriced = estimate_plans(plans, benchmark.access, **benchmark.options)
    total, note = sum(costs.values(), Cost()), caveat(benchmark.access.asks_in_batches)
    figures = {"tasks": {name: asdict(cost) for name, cost in costs.items()}, "total": asdict(total), "note": note}
    if as_json:
        say(json.dumps(figures))
        return
    if not total.requests:
        say(f"{' and '.join(dict.fromkeys(str(llm) for one in benchmark.tested for llm in one.llms))} costs nothing")
        return
    n_runs = Counter(plan.task.name for plan in plans)
    rows = [(name, n_runs[name], cost) for name, cost in costs.items()]
    for line in cost_table(("task", "runs"), [*rows, ("together", len(plans), total)]):
        say(line)
    say(
        f"\n{note} The estimate takes one run of each task and candidate (seed {benchmark.seeds[0]}), multiplied "
        "by the number of runs."
    )
    if unpriced:
        say(f"litellm has no price for {', '.join(unpriced)}.")


def _run(benchmark: Benchmark, folder: Path, *, as_json: bool) -> None:
    """Run a benchmark and write its report, also after an interruption.

    Raises:
        ConfigError: If a task's parameters are invalid; no request has been sent then.
        MesaLLMError: If a run produced nothing; the report holds the others.
    """
    start_s = clock.perf_counter()
    plans = benchmark.plans(benchmark.candidates)
    runs = TaskRuns(plans, access=benchmark.access, folder=folder, **benchmark.options)
    runs.check()
    bar = tqdm(total=len(runs.plans), unit="run", disable=as_json or None, dynamic_ncols=True)
    finished: list[TaskRun] = []

    def on_run(run: TaskRun) -> None:
        finished.append(run)
        usage = usage_of(finished)
        bar.set_postfix_str(f"{usage.calls} replies, {usage.tokens} tokens, ${usage.dollars:.4f}", refresh=False)
        bar.update()

    def on_scoring(plan: PlannedRun, n_done: int, n: int) -> None:
        bar.set_postfix_str(
            f"scoring {plan.task.name}, {plan.candidate.name}, seed {plan.seed}: {n_done} of {n}", False
        )
        bar.update(0)

    try:
        runs.run(on_run, on_scoring)
    finally:
        bar.close()
        report = benchmark.report(runs.done, clock.perf_counter() - start_s)
        _write(benchmark, report, folder, as_json=as_json)
    require_results(runs.done)


def _write(benchmark: Benchmark, report: BenchmarkReport | Cross, folder: Path, *, as_json: bool) -> None:
    """Write the report to files, and print it as text or JSON.

    Raises:
        ConfigError: If a file cannot be written.
    """
    figures = json.dumps(report.to_json())
    page = folder / f"{benchmark.file}.html"
    try:
        page.with_suffix(".json").write_text(figures + "\n", encoding="utf-8")
        page.write_text(report.page(), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{str(page)!r}: cannot write the report: {error.strerror}") from error
    if as_json:
        say(figures)
        return
    usage, paid = report.usage, report.paid
    say(report.text())
    say(
        f"\n{counted(len(report.runs), 'run')}, {counted(usage.calls, 'live reply', 'live replies')}, "
        f"{usage.replayed} from run logs, {usage.tokens} tokens, ${usage.dollars:.4f}, {figure_text(report.seconds)} s"
    )
    if usage.replayed:
        say(
            f"total cost of all sessions: {counted(paid.calls, 'reply', 'replies')} by "
            f"{counted(paid.requests, 'request')}, {paid.tokens} tokens, ${paid.dollars:.4f}"
        )
    say(f"report: {page} (also {benchmark.file}.json, and one run log per run; to resume, run the same command)")
