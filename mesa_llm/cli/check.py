"""`mesa-llm check`: the promises that every model keeps."""

from __future__ import annotations

import typer

from mesa_llm.cli.command import DIFFERENT, command, model_named, say, warn
from mesa_llm.cli.options import Model
from mesa_llm.testing import check_results


@command("check")
def check(model: Model) -> None:
    """Check that a model keeps the promises of every model: it runs offline, replays, survives failures and so on.

    Prints one line per promise; exits with 1 if one is broken.
    """
    n_broken = 0
    for result in check_results(model_named(model)):
        say(f"{'BROKEN' if result.fault else 'ok    '}  {result.check}: {result.fault or result.promise}")
        n_broken += bool(result.fault)
    if n_broken:
        warn(f"{model} breaks {n_broken} of its promises")
        raise typer.Exit(DIFFERENT)
