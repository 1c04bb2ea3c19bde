"""Judges and people's labels on the command line: a template to fill in, and the agreement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mesa_llm.cli.command import Say
from mesa_llm.cli.run import recording_of
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.people.agreement import agreement_text, judge_agreement, write_label_template
from mesa_llm.statistics import Level
from mesa_llm.text import counted


def compare_labels(
    labels: Path, files: Sequence[Path], *, level: Level | None, trust: bool, as_json: bool, say: Say
) -> None:
    """Print how far the judges of recorded runs agree with people.

    Args:
        labels: File of labels.
        files: The run logs.
        level: Level of measurement; None: by the labels.
        trust: Whether to import what the logs name even if it belongs to no listed model.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.

    Raises:
        ConfigError: If a run cannot be replayed, or nothing can be compared.
    """
    if not labels.exists():
        raise ConfigError(f"there is no file {str(labels)!r}; with --template, it is written for people to fill in")
    rows = judge_agreement(labels, [recording_of(file, trust=trust) for file in files], level=level)
    say(json.dumps([row.written for row in rows]) if as_json else agreement_text(rows))


def write_template(labels: Path, files: Sequence[Path], *, sample: int, rng: int, trust: bool, say: Say) -> None:
    """Write a file for people's labels, and say how to fill it in.

    Args:
        labels: The file.
        files: The run logs.
        sample: Maximum number of texts.
        rng: Seed of the draw.
        trust: Whether to import what the logs name even if it belongs to no listed model.
        say: Prints a line.

    Raises:
        ConfigError: If a run cannot be replayed, nothing was judged, or the file cannot be written.
    """
    recordings = [recording_of(file, trust=trust) for file in files]
    n_rows = write_label_template(recordings, labels, sample=sample, rng=rng)
    say(f"{labels}: {counted(n_rows, 'row')}. Each person fills in a column of labels, without seeing the others'.")
    say(f"Then: mesa-llm agreement {labels} {' '.join(map(str, files))}")
