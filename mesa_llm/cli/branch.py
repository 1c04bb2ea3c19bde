"""`mesa-llm branch`: branches of recorded runs, and their differences from the parents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesa_llm.cli.arguments import design_in, intervention_in, parameters
from mesa_llm.cli.command import command, say
from mesa_llm.cli.options import AsJson, Design, DryRun, Flags, LogFile, Trust
from mesa_llm.cli.run import listed_as, recording_of, run_model
from mesa_llm.engine.options import RunOptions
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.branch import PLACEBO_TEXT, Branch, branch, branch_seeds
from mesa_llm.experiments.runs.power import power_text
from mesa_llm.model.identity import class_named
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.model.scenario import parameters_of
from mesa_llm.model.stages import USAGE
from mesa_llm.runlog.comparison import not_checked
from mesa_llm.runlog.log import RunLog
from mesa_llm.statistics import MIN_RUNS, Comparison, compare, correct, with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm.text import table as text_table

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = ("measure", "parent", "branch", "difference")
"""Columns of the table that is printed."""


PLACEBO_COLUMNS = ("placebo", "beyond_placebo")
"""Further columns with a placebo."""


PAIRS = ("seed", "step", "measure", "parent", "branch")
"""Columns of a comparison of pairs."""


OF_PARENT = "The estimate takes the requests of a step of the parent; those that equal its own are not sent again."
"""What an estimate of branches rests on."""


AS_THE_PARENT: dict[str, str] = dict.fromkeys(
    ("parser", "on_error", "reasoning", "reply_tokens", "scoring", "retry_failures", "ask_again", "light"),
    "the steps up to the fork are the parent's, from its log",
)
"""Options that a branch lacks, and why."""


@command("branch")
def branch_run(
    file: LogFile,
    from_step: Annotated[int, typer.Option(min=0, help="Last step taken from the parent.")],
    options: Annotated[RunOptions, Flags(shared_by="runs", without=AS_THE_PARENT)],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="New value of a variable, as name=value; with --from-step 0, of any parameter."),
    ] = None,
    inject: Annotated[
        list[str] | None,
        typer.Option(help="News for everyone, or an intervention as JSON, before the next step; repeatable."),
    ] = None,
    llm: Annotated[str | None, typer.Option(help="Language model of the agents from then on.")] = None,
    design: Design = None,
    log: Annotated[Path | None, typer.Option(help="Run log of the branch; the same command resumes it.")] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Number of steps after the fork; by default up to the parent's last.")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, help="Number of pairs of runs: the recorded one, and others with the seeds that follow."),
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Number of pairs of runs made at a time.")] = 1,
    drop_later: Annotated[
        bool, typer.Option("--drop-later", help="Leave out interventions in the parent after that step.")
    ] = False,
    no_placebo: Annotated[
        bool, typer.Option("--no-placebo", help="Leave out the branch with a neutral sentence in place of the change.")
    ] = False,
    dry_run: DryRun = False,
    csv: Annotated[Path | None, typer.Option(help="CSV file for the measures of both runs, side by side.")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fork a recorded run at a step, change something, and compare it with the run and with a placebo."""
    recording = recording_of(file, trust=trust)
    change: dict[str, Any] = {"changes": _values(recording, set_ or ()), "llm": llm, "design": design_in(design)}
    change |= {"inject": [intervention_in(text) for text in inject or ()], "keeps_later": not drop_later}
    change["placebo"] = not no_placebo
    how = {**options.access, **options.changed}
    if dry_run:
        _print_cost(
            file, from_step, recording.last_step if steps is None else from_step + steps, seeds, change, as_json
        )
        return
    if seeds > 1:
        table = branch_seeds(file, from_step, seeds, steps=steps, log=log, workers=workers, options=how, **change)
        _print_pairs(file, from_step, seeds, table, csv, as_json=as_json)
    else:
        with closing(branch(file, from_step, log=log, **change, **how)) as fork:
            last = fork.parent_steps if steps is None else from_step + steps
            if last <= from_step:
                raise ConfigError(
                    f"--from-step {from_step}: the parent ends there; give the number of steps with --steps"
                )
            _run_and_print(file, from_step, fork, last, listed_as(recording.model), csv, as_json=as_json)
    say(f"steps of the parent after step {from_step}: {not_checked(file)}", err=True)


def _run_and_print(file: Path, at: int, fork: Branch, last: int, name: str, csv: Path | None, *, as_json: bool) -> None:
    """Run a branch to its last step, and print it beside its parent."""
    lines: list[str] = []
    also = {"at": at, "parent": str(file)}
    figures = run_model(name, fork.model, last, as_json=False, say=lines.append, also=also, closes=False)
    fork.run_placebo(last)
    comparison = fork.compare()
    figures |= {"copied": fork.model.runlog.n_copied, "series": columns_of(comparison)}
    _write(csv, comparison)
    copied = f"replies reused from the parent's log: {figures['copied']}"
    for line in [json.dumps(figures)] if as_json else [*lines, copied, "", *table_of(comparison), *fork.lead]:
        say(line)


def _print_pairs(file: Path, at: int, seeds: int, table: pd.DataFrame, csv: Path | None, *, as_json: bool) -> None:
    """Print the paired differences between branches and parents of several seeds."""
    step, paired = paired_differences(table)
    all_seeds = sorted({int(seed) for seed in table["seed"]})
    _write(csv, table)
    if as_json:
        figures: dict[str, Any] = {"at": at, "parent": str(file), "seeds": all_seeds, "step": step}
        say(json.dumps({**figures, "paired": {name: asdict(one) for name, one in paired.items()}}))
        return
    say(f"{counted(seeds, 'pair')} of runs with the seeds {all_seeds[0]} to {all_seeds[-1]}, step {step}:")
    rows = [[name, *one.texts] for name, one in paired.items()]
    head = ["measure", "parents", "branches", "difference [95 %]", "p"]
    if any(one.beyond is not None for one in paired.values()):
        head += ["beyond placebo [95 %]", "adjusted p", "verdict"]
        say(PLACEBO_TEXT)
        say(
            f"Differences from it: adjusted p over {counted(len(paired), 'measure')} (Holm); cannot tell is no absence."
        )
    for line in text_table(head, rows):
        say(line)
    if seeds < MIN_RUNS:
        say(f"With {counted(seeds, 'pair')} there is neither an interval nor a test; they take {MIN_RUNS}.")


@dataclass(frozen=True)
class Paired:
    """A measure of branches and their parents."""

    parents: float
    """Mean of the parents."""

    branches: float
    """Mean of the branches."""

    comparison: Comparison
    """Branches minus parents, in pairs."""

    beyond: Comparison | None = None
    """Branches minus placebos, in pairs, corrected for all measures (Holm); None without placebos."""

    @property
    def texts(self) -> list[str]:
        """The figures as text."""
        means = map(figure_text, (self.parents, self.branches))
        texts = [*means, with_interval(self.comparison.difference), figure_text(self.comparison.p)]
        if self.beyond is None:
            return texts
        return [*texts, with_interval(self.beyond.difference), figure_text(self.beyond.adjusted_p), self.beyond.verdict]


def paired_differences(table: pd.DataFrame) -> tuple[int, dict[str, Paired]]:
    """Compare the pairs of runs in the last step that all of them have.

    Args:
        table: The table of `branch_seeds`.

    Returns:
        The step, and measure → comparison, without usage.

    Raises:
        ConfigError: If there is no such step.
    """
    has_placebo = "placebo" in table
    columns = [*PAIRS, "placebo"] if has_placebo else list(PAIRS)
    both: dict[int, dict[str, dict[int, tuple[float, ...]]]] = {}
    for seed, step, name, *values in zip(*(table.dropna()[column] for column in columns), strict=True):
        both.setdefault(int(step), {}).setdefault(str(name), {})[int(seed)] = tuple(map(float, values))
    seeds = set(table["seed"].tolist())
    steps = [step for step, measures in both.items() if {seed for own in measures.values() for seed in own} == seeds]
    if not steps:
        raise ConfigError("the runs and their branches share no step with measures")
    by_measure: dict[str, Paired] = {}
    for name, pairs in both[max(steps)].items():
        parents, branches, *placebos = zip(*pairs.values(), strict=True)
        comparison = compare(branches, parents)
        if comparison is not None and name not in USAGE:
            beyond = compare(branches, placebos[0]) if placebos else None
            by_measure[name] = Paired(fmean(parents), fmean(branches), comparison, beyond)
    corrected = correct([one.beyond for one in by_measure.values()], "holm")
    found = zip(by_measure.items(), corrected, strict=True)
    return max(steps), {name: replace(one, beyond=beyond) for (name, one), beyond in found}


def _print_cost(file: Path, at: int, last: int, seeds: int, change: Mapping[str, Any], as_json: bool) -> None:
    """Print what branches would cost at most, from the requests that a step of the parent took."""
    with closing(RunLog(file, "read")) as log:
        calls = log.calls()
        dollars_spent: Any = log.usage()["dollars"].fillna(0).sum()
    n_steps = max(1, Recording.read(file).last_step)
    is_changed = any(value for name, value in change.items() if name not in ("placebo", "keeps_later"))
    n_branches = 2 if change["placebo"] and is_changed else 1
    n_live = seeds * n_branches * (last - at) + (seeds - 1) * last
    requests = round(len(calls) / n_steps * n_live)
    dollars = float(dollars_spent) / n_steps * n_live
    runs = (
        f"{counted(seeds * n_branches, 'branch', 'branches')}, half of them placebos"
        if n_branches == 2
        else (counted(seeds, "branch", "branches"))
    )
    figures = {"branches": seeds * n_branches, "parents": seeds - 1, "requests": requests, "dollars": dollars}
    if as_json:
        say(json.dumps({"dry_run": True, **figures, "note": OF_PARENT}))
        return
    parents = f", and {counted(seeds - 1, 'further parent')}" if seeds > 1 else ""
    say(f"{runs}{parents}: at most {requests:,} requests, ${dollars:.4f} at the parent's prices")
    say(OF_PARENT)
    say(power_text(seeds, "pair of runs", "pairs of runs"))


def _values(recording: Recording, assignments: Sequence[str]) -> dict[str, Any]:
    """Convert `name=value` strings: to the type of the parameter of that name, else from JSON, else as texts."""
    kind = class_named(recording.model, LLMModel)
    own = {parameter.name for parameter in parameters_of(kind)}
    values: dict[str, Any] = {}
    for pair in assignments:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: expected name=value")
        if name.strip().replace("-", "_") in own:
            values |= parameters(kind, [pair], None)
            continue
        try:
            values[name.strip()] = json.loads(text)
        except (ValueError, RecursionError):
            values[name.strip()] = text
    return values


def columns_of(comparison: pd.DataFrame) -> dict[str, dict[str, list[Any]]]:
    """Return a comparison as JSON values: measure → `step`, `parent`, `branch`, `difference`; null if missing."""
    table = comparison.astype(object).where(comparison.notna(), None)
    names = [name for name in table.columns if name != "measure"]
    return {
        str(measure): {name: rows[name].tolist() for name in names}
        for measure, rows in table.groupby("measure", sort=False)
    }


def table_of(comparison: pd.DataFrame) -> Iterator[str]:
    """Write the measures of both in the last step that both have."""
    comparison = comparison.dropna()
    if comparison.empty:
        yield "parent and branch share no step with measures"
        return
    step = comparison["step"].max()
    last = comparison[comparison["step"] == step]
    columns = [*COLUMNS, *(name for name in PLACEBO_COLUMNS if name in last)]
    rows: list[tuple[str, ...]] = [tuple(name.replace("_", " ") for name in columns)]
    for name, *values in zip(*(last[name] for name in columns), strict=True):
        is_difference = [column in ("difference", "beyond_placebo") for column in columns[1:]]
        texts = [f"{value:+g}" if signed else f"{value:g}" for value, signed in zip(values, is_difference, strict=True)]
        rows.append((str(name), *texts))
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns))]
    yield f"step {step}:"
    for name, *numbers in rows:
        yield "  ".join([name.ljust(widths[0]), *(n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True))])


def _write(csv: Path | None, comparison: pd.DataFrame) -> None:
    if csv is None:
        return
    try:
        comparison.to_csv(csv, index=False, lineterminator="\n")
    except OSError as error:
        raise ConfigError(f"--csv {csv}: cannot be written: {error.strerror}") from error
