"""Exports and reports of recorded runs on the command line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from mesa_llm.cli.command import Say
from mesa_llm.cli.run import recording_of
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.branch import branch
from mesa_llm.reports.export import export
from mesa_llm.reports.findings import report_of
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.reports.report import Report, written_by
from mesa_llm.runlog.compact import is_compact


def export_run(file: Path, folder: Path, *, trust: bool, as_json: bool, say: Say) -> dict[str, int]:
    """Replay a recorded run, and write its tables and its graph.

    Args:
        file: The run log.
        folder: Folder for the files.
        trust: Whether to import what the log names even if it belongs to no listed model.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.

    Returns:
        File → number of its rows, or of the edges of a graph.

    Raises:
        ConfigError: If the run cannot be replayed, or the folder not written.
    """
    with closing(recording_of(file, trust=trust).replayed()) as model:
        counts = export(model, folder)
    if as_json:
        say(json.dumps({"out": str(folder), "files": counts}))
        return counts
    width = max(map(len, counts), default=0)
    for name, count in counts.items():
        say(f"{name:<{width}}  {count} {'edges' if name.endswith('.graphml') else 'rows'}")
    say(f"in {folder}")
    return counts


def report_run(
    file: Path,
    llm: str,
    out: Path | None,
    log: Path | None,
    *,
    days: int | None,
    options: dict[str, Any],
    trust: bool,
    as_json: bool,
    say: Say,
) -> Report:
    """Replay a recorded run, and write its report.

    Args:
        file: The run log, which is not written.
        llm: Author: `rule`, or a language model.
        out: File for the report, `.md` or `.html`; None: it is printed.
        log: Run log for the language model's request and reply; None: `report-` and the name of the run log, beside it,
            or in the current folder for a compact log.
        days: Number of days that the run stands for; None: its story counts in steps.
        options: Options of the model, such as budgets.
        trust: Whether to import what the log names even if it belongs to no listed model.
        as_json: Whether to print the report as one line of JSON.
        say: Prints a line.

    Raises:
        ConfigError: If the run cannot be replayed, or the file not written.
        AllDecisionsFailed: If the language model gives no usable reply.
    """
    if out is not None and out.suffix not in (".md", ".html"):
        raise ConfigError(f"--out {out}: expected a file name ending in .md or .html")
    recording = recording_of(file, trust=trust)
    if llm == "rule":
        with closing(recording.replayed()) as model:
            report = report_of(model, days=days)
    else:
        own = log or _report_log(file)
        with closing(branch(file, recording.last_step, log=own, named=(llm,), **options)) as whole:
            report = written_by(whole.model, llm, report_of(whole.model, days=days))
    if out is not None:
        _write(out, report.html() if out.suffix == ".html" else report.markdown())
    if as_json:
        say(report.model_dump_json())
    else:
        say(report.markdown() if out is None else f"report: {out}")
    return report


def _report_log(file: Path) -> Path:
    """Return the run log of a report: beside that of the run, or in this folder if that comes with a model."""
    name = f"report-{file.name.removesuffix('.gz')}"
    return Path(name) if is_compact(file) else file.with_name(name)


def _write(file: Path, text: str) -> None:
    try:
        write_without_keys(file, text)
    except OSError as error:
        raise ConfigError(f"--out {file}: cannot be written: {error.strerror}") from error
