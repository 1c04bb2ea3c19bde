"""`mesa-llm export`: the tables and the graph of a recorded run."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, say
from mesa_llm.cli.options import AsJson, LogFile, Trust
from mesa_llm.cli.run import recording_of
from mesa_llm.reports.export import export


@command("export")
def export_run(
    file: LogFile,
    out: Annotated[Path, typer.Option(help="Output folder; created if necessary.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Export the tables of a recorded run as CSV, and its network of interactions as GraphML."""
    with closing(recording_of(file, trust=trust).replayed()) as model:
        counts = export(model, out)
    if as_json:
        say(json.dumps({"out": str(out), "files": counts}))
        return
    width = max(map(len, counts), default=0)
    for name, count in counts.items():
        say(f"{name:<{width}}  {count} {'edges' if name.endswith('.graphml') else 'rows'}")
    say(f"in {out}")
