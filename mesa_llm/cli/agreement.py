"""`mesa-llm agreement`: judges of recorded runs, checked against people's labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from mesa_llm.cli.command import command, log_named, say
from mesa_llm.cli.options import AsJson, LogFiles, Trust
from mesa_llm.cli.run import recording_of
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.agreement import agreement_text, judge_agreement, write_label_template
from mesa_llm.statistics import Level
from mesa_llm.text import counted


@command("agreement")
def agreement(
    labels: Annotated[Path, typer.Argument(help="File of people's labels: CSV, .xlsx or any other table.")],
    files: LogFiles,
    template: Annotated[
        bool, typer.Option("--template", help="Write LABELS, for people to fill in, in place of reading it.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Maximum number of texts in the template.")] = 50,
    rng: Annotated[int, typer.Option(min=0, help="Seed of the texts that are drawn.")] = 1,
    level: Annotated[
        str | None,
        typer.Option(help="Compare labels as nominal, ordinal or interval ones; by default numbers as interval."),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Check the judge of recorded runs against people's labels: Krippendorff's alpha, with intervals and a verdict.

    Scores that a language model gives are no results before this. Write the
    file with --template, let people fill it in, and run the command again.
    """
    if level not in (None, *get_args(Level)):
        raise ConfigError(f"--level {level}: expected {', '.join(get_args(Level))}")
    if not template and not labels.exists():
        raise ConfigError(f"there is no file {str(labels)!r}; with --template, it is written for people to fill in")
    logs = [log_named(file) for file in files]
    recordings = [recording_of(file, trust=trust) for file in logs]
    if not template:
        rows = judge_agreement(labels, recordings, level=cast("Any", level))
        say(json.dumps([row.written for row in rows]) if as_json else agreement_text(rows))
        return
    n_rows = write_label_template(recordings, labels, sample=sample, rng=rng)
    say(f"{labels}: {counted(n_rows, 'row')}. Each person fills in a column of labels, without seeing the others'.")
    say(f"Then: mesa-llm agreement {labels} {' '.join(map(str, logs))}")
