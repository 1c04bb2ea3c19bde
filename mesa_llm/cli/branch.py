"""Branches of recorded runs on the command line, and their differences from the parents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mesa_llm.agents.design import AgentDesign
from mesa_llm.cli.arguments import intervention_in, parameters, set_options
from mesa_llm.cli.command import Say
from mesa_llm.cli.run import listed_as, recording_of, run_model
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.branch import Branch, branch, branch_seeds
from mesa_llm.model.identity import class_named
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.model.scenario import parameters_of
from mesa_llm.model.stages import USAGE
from mesa_llm.statistics import MIN_PAIRS, Comparison, compare, with_interval
from mesa_llm.text import counted, figure_text
from mesa_llm.text import table as text_table

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = ("measure", "parent", "branch", "difference")
"""Columns of the table that is printed."""


PAIRS = ("seed", "step", "measure", "parent", "branch")
"""Columns of a comparison of pairs."""


@dataclass(frozen=True)
class Fork:
    """The step at which a run is branched and the change made there, as typed."""

    at: int
    """Last step that is the parent's."""

    assignments: Sequence[str]
    """New values, as `name=value`."""

    inject: Sequence[str]
    """News, or interventions as JSON."""

    llm: str | None
    """Language model of the agents from then on."""

    design: AgentDesign | None
    """Design of the agents from then on."""

    keeps_later: bool
    """Whether later interventions of the parent are kept."""

    log: Path | None
    """Run log of the branch."""

    def change(self, recording: Recording) -> dict[str, Any]:
        """Return the change as arguments of `branch`.

        Raises:
            ConfigError: If a value or an intervention cannot be read.
        """
        return {
            "inject": [intervention_in(text) for text in self.inject],
            "changes": values_of(recording, self.assignments),
            "llm": self.llm,
            "design": self.design,
            "keeps_later": self.keeps_later,
        }


def run_branch(
    file: Path,
    fork: Fork,
    steps: int | None,
    options: Mapping[str, Any],
    *,
    csv: Path | None,
    trust: bool,
    as_json: bool,
    say: Say,
) -> dict[str, Any]:
    """Branch a recorded run, run the branch, and print both side by side.

    Args:
        file: Run log of the parent.
        fork: The step and the change.
        steps: Number of steps after the fork; None: up to the parent's last.
        options: Options of the model.
        csv: File for the comparison; None: none.
        trust: Whether to import what the log names even if it belongs to no listed model.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.

    Returns:
        The figures of `--json`: those of `run`, with `at`, `parent`, `copied` (replies from the parent's log) and
        `series` (measure → steps, and the values of parent, branch and their difference).

    Raises:
        ConfigError: If the run cannot be branched there, or the change cannot be made.
    """
    recording = recording_of(file, trust=trust)
    forked_run = branch(file, fork.at, log=fork.log, **fork.change(recording), **set_options(**options))
    with closing(forked_run):
        last = forked_run.parent_steps if steps is None else fork.at + steps
        if last <= fork.at:
            raise ConfigError(f"--from-step {fork.at}: the parent ends there; give the number of steps with --steps")
        figures: dict[str, Any] = {}
        lines: list[str] = []
        also = {"at": fork.at, "parent": str(file)}
        name = listed_as(recording.model)
        figures |= run_model(name, forked_run.model, last, as_json=False, say=lines.append, also=also, closes=False)
        figures |= {"copied": forked_run.model.runlog.n_copied, "series": columns_of(forked_run.compare())}
        _write(csv, forked_run.compare())
        if as_json:
            say(json.dumps(figures))
        else:
            for line in [
                *lines,
                f"replies reused from the parent's log: {figures['copied']}",
                "",
                *table_of(forked_run),
            ]:
                say(line)
    return figures


def run_branches(
    file: Path,
    fork: Fork,
    steps: int | None,
    seeds: int,
    options: Mapping[str, Any],
    *,
    allow_new_endpoint: bool,
    workers: int,
    csv: Path | None,
    trust: bool,
    as_json: bool,
    say: Say,
) -> dict[str, Any]:
    """Branch runs of several seeds, the recorded one first, and print the paired differences.

    Args:
        file: Run log of the first parent.
        fork: The step and the change.
        steps: Number of steps after the fork; None: up to the parent's last.
        seeds: Number of pairs.
        options: Endpoint and budgets of all runs together.
        allow_new_endpoint: Whether to continue although the parent's endpoint is now at another address.
        workers: Number of pairs of runs made at once.
        csv: File for the comparison of every step; None: none.
        trust: Whether to import what the log names even if it belongs to no listed model.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.

    Returns:
        The figures of `--json`: `at`, `parent`, `seeds`, `step` (the last that all have), and `paired` (measure → means
        of parents and branches, and the comparison of the pairs).

    Raises:
        ConfigError: If a run cannot be branched there, or the change cannot be made.
    """
    change = fork.change(recording_of(file, trust=trust))
    how = {**set_options(**options), "allow_new_endpoint": allow_new_endpoint}
    table = branch_seeds(file, fork.at, seeds, steps=steps, log=fork.log, workers=workers, options=how, **change)
    step, paired = paired_differences(table)
    all_seeds = sorted({int(seed) for seed in table["seed"]})
    figures: dict[str, Any] = {"at": fork.at, "parent": str(file), "seeds": all_seeds, "step": step}
    figures |= {"paired": {name: asdict(one) for name, one in paired.items()}}
    _write(csv, table)
    if as_json:
        say(json.dumps(figures))
        return figures
    say(f"{counted(seeds, 'pair')} of runs with the seeds {all_seeds[0]} to {all_seeds[-1]}, step {step}:")
    rows = [[name, *one.texts] for name, one in paired.items()]
    for line in text_table(("measure", "parents", "branches", "difference [95 %]", "p"), rows):
        say(line)
    if seeds < MIN_PAIRS:
        say(f"With {counted(seeds, 'pair')}, no p value can be below {2 / 2**seeds:.3g}, and intervals are too narrow.")
    return figures


@dataclass(frozen=True)
class Paired:
    """A measure of branches and their parents."""

    parents: float
    """Mean of the parents."""

    branches: float
    """Mean of the branches."""

    comparison: Comparison
    """Branches minus parents, in pairs."""

    @property
    def texts(self) -> list[str]:
        """The figures as text."""
        means = map(figure_text, (self.parents, self.branches))
        return [*means, with_interval(self.comparison.difference), figure_text(self.comparison.p)]


def paired_differences(table: pd.DataFrame) -> tuple[int, dict[str, Paired]]:
    """Compare the pairs of runs in the last step that all of them have.

    Args:
        table: The table of `branch_seeds`.

    Returns:
        The step, and measure → comparison, without usage.

    Raises:
        ConfigError: If there is no such step.
    """
    both: dict[int, dict[str, dict[int, tuple[float, float]]]] = {}
    for seed, step, name, *pair in zip(*(table.dropna()[column] for column in PAIRS), strict=True):
        both.setdefault(int(step), {}).setdefault(str(name), {})[int(seed)] = (float(pair[0]), float(pair[1]))
    seeds = set(table["seed"].tolist())
    steps = [step for step, measures in both.items() if {seed for own in measures.values() for seed in own} == seeds]
    if not steps:
        raise ConfigError("the runs and their branches share no step with measures")
    by_measure: dict[str, Paired] = {}
    for name, pairs in both[max(steps)].items():
        parents, branches = zip(*pairs.values(), strict=True)
        comparison = compare(branches, parents)
        if comparison is not None and name not in USAGE:
            by_measure[name] = Paired(fmean(parents), fmean(branches), comparison)
    return max(steps), by_measure


def values_of(recording: Recording, assignments: Sequence[str]) -> dict[str, Any]:
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
    return {
        str(measure): {name: rows[name].tolist() for name in ("step", "parent", "branch", "difference")}
        for measure, rows in table.groupby("measure", sort=False)
    }


def table_of(forked_run: Branch) -> Iterator[str]:
    """Write the measures of both in the last step that both have."""
    comparison = forked_run.compare().dropna()
    if comparison.empty:
        yield "parent and branch share no step with measures"
        return
    step = comparison["step"].max()
    last = comparison[comparison["step"] == step]
    rows: list[tuple[str, ...]] = [COLUMNS]
    for name, parent, own, difference in zip(*(last[name] for name in COLUMNS), strict=True):
        rows.append((str(name), f"{parent:g}", f"{own:g}", f"{difference:+g}"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
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
