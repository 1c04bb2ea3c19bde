"""Writes what came of recorded runs for the command line: tables, graphs, reports."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from mesa_llm.cli.run import Say, recording_of
from mesa_llm.reports.export import export


def export_run(file: Path, folder: Path, *, trust: bool, as_json: bool, say: Say) -> dict[str, int]:
    """Replay a recorded run, and write its tables and its graph.

    Args:
        file: The run log.
        folder: Where the files go.
        trust: Import what the log names, also what is not listed.
        as_json: Print one line of JSON and nothing else.
        say: Where words go.

    Returns:
        File → number of its rows, or of the edges of a graph.

    Raises:
        ConfigError: If the run cannot be replayed, or the folder not written.
    """
    with closing(recording_of(file, trust=trust).replayed()) as model:
        written = export(model, folder)
    if as_json:
        say(json.dumps({"out": str(folder), "files": written}))
        return written
    width = max(map(len, written), default=0)
    for name, count in written.items():
        say(f"{name:<{width}}  {count} {'edges' if name.endswith('.graphml') else 'rows'}")
    say(f"in {folder}")
    return written
