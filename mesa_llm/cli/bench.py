"""The benchmark on the command line: tasks by name, their cost in advance, their report."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mesa_llm.agents.design import AgentDesign
from mesa_llm.benchmark.rehearsal import Cost, rehearse
from mesa_llm.benchmark.report import NOT_KNOWN, Report, figure_text, table
from mesa_llm.benchmark.runs import Candidate, Plan, Run, Runs
from mesa_llm.benchmark.task import SHACHI, Task, find_task, find_tasks
from mesa_llm.cli.arguments import parameters
from mesa_llm.cli.command import Say
from mesa_llm.engine.access import Access
from mesa_llm.errors import BudgetSpent, ConfigError, MesaLLMError, NothingDecided
from mesa_llm.llm.address import written_name
from mesa_llm.model.scenario import parameters_of

ALL = "all"
"""Name of all tasks together."""

BASELINES = (Candidate("rule", "rule"), Candidate("random", "random"))
"""Candidates that are measured besides, at no cost: rule twins and random choice."""

SEVERE: tuple[type[MesaLLMError], ...] = (BudgetSpent, ConfigError, NothingDecided, MesaLLMError)
"""Errors of runs, the one that decides the exit code first."""


@dataclass(frozen=True)
class Benchmark:
    """Tasks, candidate and options of a benchmark."""

    tasks: Sequence[Task]
    """Tasks, with their parameters."""

    candidate: Candidate
    """Language model under test."""

    seeds: Sequence[int]
    """Seeds of the runs."""

    access: Access
    """Access of all runs."""

    options: Mapping[str, Any]
    """Options of all models."""

    written: Mapping[str, Any]
    """Options of the command, for the report."""

    @property
    def candidates(self) -> list[Candidate]:
        """Language model under test, then the baselines."""
        return [self.candidate, *(one for one in BASELINES if one.name != self.candidate.name)]

    def plans(self) -> list[Plan]:
        """Return the planned runs: those of the language model under test first."""
        return [Plan(task, one, seed) for one in self.candidates for task in self.tasks for seed in self.seeds]


def task_list() -> Iterator[str]:
    """Describe each task in a line, and those of Shachi's ten that are missing."""
    tasks, broken = find_tasks()
    names = [*tasks, *broken, *(name for name in SHACHI if name not in tasks and name not in broken)]
    width = max(len(name) for name in names)
    for name, task in tasks.items():
        yield f"{name:<{width}}  level {task.level}  {task.source}"
    for name, fault in broken.items():
        yield f"{name:<{width}}  BROKEN: {fault}"
    for name, level in SHACHI.items():
        if name not in tasks and name not in broken:
            yield f"{name:<{width}}  level {level}  not here yet"


def tasks_named(names: Sequence[str], given: Sequence[str], *, is_quick: bool, items: str) -> list[Task]:
    """Find tasks by name, with their parameters.

    Args:
        names: Names of tasks, or `all`.
        given: Parameters, as `name=value` for all tasks that have it, or as `task.name=value`.
        is_quick: Whether to run small versions.
        items: `own` or `original`.

    Raises:
        ConfigError: If there is no such task or parameter, or a value does not fit.
    """
    if items not in ("own", "original"):
        raise ConfigError(f"--items {items}: wanted own or original")
    named = [task for name in names for task in (find_tasks()[0].values() if name == ALL else [find_task(name)])]
    tasks = list({task.name: task for task in named}.values())
    tasks = [task.as_quick() if is_quick else task for task in tasks]
    tasks = [task.with_original_items() if items == "original" else task for task in tasks]
    chosen = {task.name: list[str]() for task in tasks}
    for pair in given:
        for name, rest in _applications(pair, tasks):
            chosen[name].append(rest)
    return [task.with_parameters(parameters(task.model_class, chosen[task.name], None)) for task in tasks]


def _applications(pair: str, tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """Return the tasks that a parameter applies to, each with the parameter without the task's name."""
    name = pair.partition("=")[0].strip().replace("-", "_")
    task_name, dot, _ = name.partition(".")
    if dot:
        applications = [
            (task.name, pair.partition(".")[2]) for task in tasks if task.name.replace("-", "_") == task_name
        ]
    else:
        applications = [(task.name, pair) for task in tasks if name in _known(task)]
    if not applications:
        there_are = ", ".join(task.name for task in tasks)
        raise ConfigError(f"--set {pair}: wanted name=value or TASK.name=value, for a parameter of {there_are}")
    return applications


def _known(task: Task) -> set[str]:
    return {parameter.name for parameter in parameters_of(task.model_class)}


def candidate_of(llm: str, design: AgentDesign | None, design_file: Path | None) -> Candidate:
    """Return the language model under test, named for reports."""
    name = written_name(llm)
    return Candidate(name if design_file is None else f"{name} + {design_file.stem}", llm, design)


def print_cost(benchmark: Benchmark, *, as_json: bool, say: Say) -> dict[str, Any]:
    """Print the cost of a benchmark in advance, without sending a request.

    Args:
        benchmark: The benchmark.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.

    Returns:
        What `--json` prints: the costs by task, and their sum.
    """
    candidate = benchmark.candidate
    plans = [Plan(task, candidate, seed) for task in benchmark.tasks for seed in benchmark.seeds]
    is_asked = candidate.llm not in ("rule", "random", "human")
    costs = rehearse(plans, benchmark.access, **benchmark.options) if is_asked else {}
    total = sum(costs.values(), Cost())
    figures = {"tasks": {name: asdict(cost) for name, cost in costs.items()}, "total": asdict(total)}
    if as_json:
        say(json.dumps(figures))
        return figures
    if not is_asked:
        say(f"{candidate.name} costs nothing")
        return figures
    head = ["task", "runs", "requests", "prompt tokens", "reply tokens", "at most", "$", "at most"]
    rows = [_cost_row(name, str(len(benchmark.seeds)), cost) for name, cost in costs.items()]
    for line in table(head, [*rows, _cost_row("together", str(len(plans)), total)]):
        say(line)
    say(
        f"\nNothing was sent. Counted are the prompts of one run of each task (seed {benchmark.seeds[0]}), in which "
        "rule twins decide, with the shortest and the longest replies. Repairs are not counted, and replies in run "
        "logs are not deducted."
    )
    if total.dollars is None:
        say(f"litellm knows no price of {candidate.name}.")
    return figures


def _cost_row(name: str, runs: str, cost: Cost) -> list[str]:
    counts = [cost.requests, cost.prompt_tokens, cost.reply_tokens, cost.max_reply_tokens]
    dollars = [NOT_KNOWN if one is None else f"{one:.4f}" for one in (cost.dollars, cost.max_dollars)]
    return [name, runs, *(f"{count:,}" for count in counts), *dollars]


def run_benchmark(benchmark: Benchmark, folder: Path, *, as_json: bool, say: Say) -> Report:
    """Run a benchmark and write its report, also after an interruption.

    Args:
        benchmark: The benchmark.
        folder: Folder of the run logs and the report.
        as_json: Whether to print one line of JSON at the end, and nothing else.
        say: Prints a line.

    Raises:
        ConfigError: If a task's parameters cannot be; nothing has been asked then.
        MesaLLMError: If a run produced nothing; the report holds the others.
    """
    begun = clock.perf_counter()
    for task in benchmark.tasks:  # what cannot be is said before anything is asked
        plan = Plan(task, benchmark.candidate, benchmark.seeds[0])
        plan.make(access=benchmark.access, **benchmark.options).close()
    runs = Runs(benchmark.plans(), access=benchmark.access, folder=folder, **benchmark.options)
    bar = tqdm(total=len(runs.plans), unit="run", disable=as_json or None, dynamic_ncols=True)
    over: list[Run] = []

    def on_run(run: Run) -> None:
        over.append(run)
        used = sum((one.usage for one in over), _nothing(run))
        bar.set_postfix_str(f"{used.calls} replies, {used.tokens} tokens, ${used.dollars:.4f}", refresh=False)
        bar.update()

    try:
        runs.run(on_run)
    finally:
        bar.close()
        report = Report(
            benchmark.tasks, benchmark.candidates, runs.done, benchmark.written, clock.perf_counter() - begun
        )
        _write(report, folder, as_json=as_json, say=say)
    _demand_results(report)
    return report


def _nothing(run: Run) -> Any:
    return run.usage - run.usage


def _write(report: Report, folder: Path, *, as_json: bool, say: Say) -> None:
    """Write the report: as files, and in words or as JSON.

    Raises:
        ConfigError: If a file cannot be written.
    """
    from mesa_llm.benchmark.page import page  # Matplotlib loads for a second

    figures = json.dumps(report.to_json())
    try:
        (folder / "report.json").write_text(figures + "\n", encoding="utf-8")
        (folder / "report.html").write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: the report cannot be written: {error.strerror}") from error
    if as_json:
        say(figures)
        return
    used = report.usage
    say(report.text())
    say(
        f"\n{len(report.runs)} runs, {used.calls} live replies, {used.replayed} from run logs, {used.tokens} tokens, "
        f"${used.dollars:.4f}, {figure_text(report.seconds)} s"
    )
    say(f"page: {folder / 'report.html'} (also report.json, and a run log of each run; the same command goes on)")


def _demand_results(report: Report) -> None:
    """Check that every run produced something.

    Raises:
        MesaLLMError: If one did not: the most severe of their errors.
    """
    failed = [(run, run.error) for run in report.runs if run.error is not None]
    if not failed:
        return
    kind = next(kind for kind in SEVERE if any(isinstance(error, kind) for _, error in failed))
    run, error = next((run, error) for run, error in failed if isinstance(error, kind))
    raise kind(
        f"{len(failed)} of {len(report.runs)} runs produced nothing. {run.plan.task.name}, "
        f"{run.plan.candidate.name}, seed {run.plan.seed}: {error}"
    )
