"""`mesa-llm report`: a report on a recorded run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, say
from mesa_llm.cli.options import AccessFlags, AsJson, LogFile, Trust
from mesa_llm.cli.run import recording_of
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.runs.branch import branch
from mesa_llm.reports.findings import report_of
from mesa_llm.reports.private_data import write_without_keys
from mesa_llm.reports.report import written_by
from mesa_llm.runlog.compact import is_compact


@command("report")
def report(
    file: LogFile,
    options: AccessFlags,
    llm: Annotated[str, typer.Option(help="Author of the report: rule, or any language model.")] = "rule",
    out: Annotated[
        Path | None, typer.Option(help="Output file, .md or .html; by default the report is printed.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Run log of the author's requests; by default report-FILE.")] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Number of days that the run represents; the story then counts in weeks.")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Report on a recorded run: verdict, findings, coalitions and story."""
    if out is not None and out.suffix not in (".md", ".html"):
        raise ConfigError(f"--out {out}: expected a file name ending in .md or .html")
    recording = recording_of(file, trust=trust)
    if llm == "rule":
        with closing(recording.replayed()) as model:
            found = report_of(model, days=days)
    else:
        own = log or _report_log(file)
        with closing(branch(file, recording.last_step, log=own, named=(llm,), **options.access)) as whole:
            found = written_by(whole.model, llm, report_of(whole.model, days=days))
    if out is not None:
        try:
            write_without_keys(out, found.html() if out.suffix == ".html" else found.markdown())
        except OSError as error:
            raise ConfigError(f"--out {out}: cannot be written: {error.strerror}") from error
    if as_json:
        say(found.model_dump_json())
    else:
        say(found.markdown() if out is None else f"report: {out}")


def _report_log(file: Path) -> Path:
    """Return the run log of a report: beside that of the run, or in this folder if that comes with a model."""
    name = f"report-{file.name.removesuffix('.gz')}"
    return Path(name) if is_compact(file) else file.with_name(name)
