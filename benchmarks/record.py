"""Record the runs that come with the models, and describe the recordings.

    python3 dev.py record                      list the runs and their recordings
    python3 dev.py record social discussion    record all runs of these models with the 1.5B model (minutes each)
    python3 dev.py record discussion/trolley --llm local
    python3 dev.py record all --jobs 4         record everything, four runs at a time
    python3 dev.py record social --readme      write the figures of the recordings into the READMEs; records nothing
    python3 dev.py record all --twins          run their rule twins and chance, which stand beside them (seconds each)
    python3 dev.py record --verdicts           say which are worth watching, by a rule that is the same for all

A run that was stopped goes on from `runs/recordings`, where its replies are kept: none is paid for twice. Logs made on
another machine (with --logs FOLDER there) are copied to that folder; the same command then makes the recordings from
them. After a change of its prompts, start over with --anew.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from mesa_llm import MesaLLMError
from mesa_llm.experiments.runs.recordings import TWINS, RecordedRun, declared_runs, figures_of
from mesa_llm.registry import ModelEntry
from mesa_llm.text import figure_text

ROOT = Path(__file__).resolve().parents[1]

LOGS = ROOT / "runs" / "recordings"
"""Folder of the run logs from which recordings are made, unless another is named."""

LLM = "local:1.5b"
"""Language model of the agents, unless another is named."""

MAX_BYTES = 400_000
"""Maximum size of a recording that is kept with a model."""

MIN_VALID_PERCENT = 95
"""Minimum percentage of valid decisions in a recording."""

MAX_REFUSED_PERCENT = 5
"""Maximum percentage of actions that are refused by the world before the recording is worth a look."""

HEADING = "## Recorded run"
"""Heading of the section of a README that describes the recordings of its model."""

COLUMNS = (
    "run",
    "language model",
    "recorded",
    "steps",
    "agents",
    "decisions",
    "valid",
    "refused",
    "requests",
    "tokens",
    "seeds tried",
)
"""Columns of the table in that section."""


TWINS_HEADING = "| measure at the end | recorded | rule twin | chance |"
"""First line of the table that follows: measures beside those of the rule twin and of chance, of the same seed."""

MAX_MEASURES = 4
"""Maximum number of measures of a recording in it."""


def named_runs(names: Iterable[str]) -> dict[str, tuple[ModelEntry, RecordedRun]]:
    """Return the declared runs that names stand for: `MODEL/RUN`, `MODEL`, or `all`.

    Raises:
        SystemExit: If a name stands for none.
    """
    declared = declared_runs()
    wanted: dict[str, tuple[ModelEntry, RecordedRun]] = {}
    for name in names:
        found = {key: run for key, run in declared.items() if name in ("all", key, key.partition("/")[0])}
        if not found:
            raise SystemExit(f"there is no run {name!r}; there are: {', '.join(declared)}")
        wanted |= found
    return wanted


def log_of(name: str, llm: str, folder: Path) -> Path:
    """Return the run log, in a folder, in which a run is recorded with a language model."""
    return folder / (re.sub(r"[^\w.]+", "-", f"{name} {llm}") + ".sqlite")


def record(name: str, llm: str, folder: Path, *, is_anew: bool) -> str:
    """Record a run, and return one line about the recording.

    Args:
        name: The run, as `MODEL/RUN`.
        llm: Language model of the agents.
        folder: Folder of the run logs.
        is_anew: Whether to forget the replies of an earlier attempt.
    """
    entry, run = declared_runs()[name]
    log, begin_s = log_of(name, llm, folder), time.perf_counter()
    if is_anew:
        for file in folder.glob(f"{log.name}*"):
            file.unlink()

    by_purpose: dict[str, int] = {}

    def report(model: Any) -> None:
        by_purpose.update({purpose: usage.failures for purpose, usage in model.usage_by_purpose.items()})
        goal, usage = "" if run.steps is None else f" of {run.steps}", model.usage
        print(
            f"{name}: step {model.time:.0f}{goal}, {model.engine.decisions} decisions, {usage.failures} failed, "
            f"{usage.calls} calls, {usage.replayed} replayed, {time.perf_counter() - begin_s:,.0f} s",
            flush=True,
        )

    run.record(entry.load(), llm, log, report)
    figures = figures_of(run.file)
    faults = [
        fault
        for fault, is_met in (
            (f"less than {MIN_VALID_PERCENT}% valid", figures.valid_percent >= MIN_VALID_PERCENT),
            (f"more than {MAX_REFUSED_PERCENT}% refused", figures.refused_percent <= MAX_REFUSED_PERCENT),
            (f"more than {MAX_BYTES // 1000} kB", figures.size <= MAX_BYTES),
        )
        if not is_met
    ]
    failed = ", ".join(f"{purpose} {n_failed}" for purpose, n_failed in by_purpose.items())
    duration = f"{time.perf_counter() - begin_s:,.0f} s"
    return f"{name}: recorded in {duration}, {figures.line}; failed: {failed or 'none'}" + "".join(
        f"; LOOK: {fault}" for fault in faults
    )


def record_all(names: Iterable[str], llm: str, folder: Path, jobs: int, *, is_anew: bool) -> int:
    """Record runs, several at a time, each in a process of its own; return the number that could not be recorded."""
    n_failed = 0
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
        futures: dict[Future[str], str] = {
            processes.submit(record, name, llm, folder, is_anew=is_anew): name for name in names
        }
        for future in as_completed(futures):
            try:
                print(future.result(), flush=True)
            except (MesaLLMError, OSError, BrokenProcessPool) as error:
                n_failed += 1
                print(f"{futures[future]}: NOT RECORDED: {error}", file=sys.stderr, flush=True)
    if n_failed:
        print("The same command goes on where these stopped; --anew starts them over.", file=sys.stderr)
    return n_failed


def table(runs: Iterable[tuple[str, RecordedRun]]) -> list[str]:
    """Return the lines of a table about recordings, for a README.

    Args:
        runs: Names of the runs, as `MODEL/RUN`, and the runs, which have been recorded.
    """
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for name, run in runs:
        one = figures_of(run.file)
        earlier = f"prompts changed in {run.prompts_since}" if run.is_of_earlier_prompts else ""
        when = ", ".join(filter(None, (one.recorded_on, one.version, earlier)))
        counts = (str(one.steps), str(one.agents), str(one.decisions))
        shares = (f"{one.valid_percent:.1f} %", f"{one.refused_percent:.1f} %")
        cells = (
            f"{run.title} (`{name}`)",
            one.llm,
            when,
            *counts,
            *shares,
            str(one.calls),
            f"{one.tokens:,}",
            str(run.tried),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def twins_table(runs: Iterable[tuple[str, RecordedRun]]) -> list[str]:
    """Return the lines of a table of the main measures of recordings, beside those of rule twins and of chance.

    Args:
        runs: Names of the runs, as `MODEL/RUN`, and the runs, which have been recorded.
    """
    lines = [TWINS_HEADING, "|---|" + "---|" * 3]
    for name, run in runs:
        trace, twins = run.trace, run.twins
        for measure in (trace.moved or list(trace.measures))[:MAX_MEASURES] if twins else ():
            found = (trace.measures, *(twins.get(llm, {}) for llm in TWINS))
            values = [next((one for one in reversed(each.get(measure, ())) if one is not None), None) for each in found]
            texts = ["–" if value is None else figure_text(value) for value in values]
            lines.append(f"| {' | '.join((f'{measure} (`{name}`)', *texts))} |")
    return lines if len(lines) > 2 else []


def verdicts_table(runs: Iterable[tuple[str, RecordedRun]]) -> list[str]:
    """Return the lines of a table that says which recordings are worth watching.

    Args:
        runs: Names of the runs, as `MODEL/RUN`, and the runs, which have been recorded.
    """
    columns = ("recording", "version", "measures moved", "idle", "repeated", "promise", "verdict", "seeds tried")
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for name, run in runs:
        one = run.verdict
        shares = (f"{one.n_moved} of {one.n_measures}", f"{one.idle_percent:.0f} %", f"{one.repeated_percent:.0f} %")
        kept = {None: "none", True: "kept", False: "not kept"}[one.is_kept]
        verdict = "worth watching" if not one.faults else f"flat: {', '.join(one.faults)}"
        cells = (name, run.recording.version, *shares, f"{run.promise}: {kept}", verdict, str(run.tried))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def section(readme: str, runs: list[tuple[str, RecordedRun]]) -> str:
    """Return a README with the table of its recordings replaced, or with a new section at its end.

    Args:
        readme: Text of the README.
        runs: Names of the runs, as `MODEL/RUN`, and the runs, which have been recorded.
    """
    rows, beside = "\n".join(table(runs)), "\n".join(twins_table(runs))
    rows += f"\n\n{beside}" if beside else ""
    if HEADING not in readme:
        commands = "\n".join(f"mesa-llm view {name}" for name, _ in runs)
        return f"{readme.rstrip()}\n\n{HEADING}\n\n{rows}\n\n```sh\n{commands}\n```\n"
    before, _, after = readme.partition(f"{HEADING}\n")
    own, rest = re.match(r"(.*?)(?=^## |\Z)(.*)", after, re.DOTALL | re.MULTILINE).groups()  # type: ignore[union-attr]
    own = re.sub(rf"\n{re.escape(TWINS_HEADING)}\n(\|.*\n?)+", "", own)
    own = re.sub(r"(^\|.*\n?)+", lambda _: f"{rows}\n", own, count=1, flags=re.MULTILINE)
    return f"{before}{HEADING}\n{own}{rest}"


def write_readmes(runs: dict[str, tuple[ModelEntry, RecordedRun]]) -> None:
    """Write the figures of all recordings of the models of runs into the models' READMEs."""
    for entry in {entry.name: entry for entry, _ in runs.values()}.values():
        made = [(name, run) for name, (owner, run) in declared_runs().items() if owner == entry and run.file.is_file()]
        readme = None if entry.folder is None else entry.folder / "README.md"
        if made and readme is not None:
            readme.write_text(section(readme.read_text(encoding="utf-8"), made), encoding="utf-8")
            print(f"{entry.name}: {readme}")


def main() -> int:
    """Record the runs that are named, or list all."""
    parser = argparse.ArgumentParser(
        prog="dev.py record", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="MODEL, MODEL/RUN, or all")
    parser.add_argument("--llm", default=LLM, help=f"language model of the agents (default: {LLM})")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs recorded at a time (default: 1)")
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder of the run logs (default: runs/recordings)")
    parser.add_argument("--anew", action="store_true", help="forget the replies of an earlier attempt")
    parser.add_argument("--figures", action="store_true", help="print the figures of recordings; record nothing")
    parser.add_argument("--twins", action="store_true", help="run their rule twins and chance; asks nothing")
    parser.add_argument("--verdicts", action="store_true", help="say which are worth watching; record nothing")
    parser.add_argument("--readme", action="store_true", help="write them into the models' READMEs; record nothing")
    arguments = parser.parse_args()
    runs = named_runs(arguments.names or ["all"])
    if arguments.readme:
        write_readmes(runs)
    elif arguments.twins:
        for name, (entry, run) in runs.items():
            run.record_twins(entry.load())
            print(f"{name}: {run.twins_file.stat().st_size / 1000:.1f} kB", flush=True)
    elif arguments.verdicts:
        print("\n".join(verdicts_table((name, run) for name, (_, run) in runs.items() if run.file.is_file())))
    elif arguments.figures:
        print("\n".join(table((name, run) for name, (_, run) in runs.items() if run.file.is_file())))
    elif arguments.names:
        return int(record_all(runs, arguments.llm, arguments.logs, arguments.jobs, is_anew=arguments.anew) > 0)
    else:
        for name, (_, run) in runs.items():
            figures = figures_of(run.file) if run.file.is_file() else None
            print(f"{name}: {'not recorded' if figures is None else f'{figures.summary}; {figures.line}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
