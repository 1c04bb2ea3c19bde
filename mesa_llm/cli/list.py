"""`mesa-llm list`: the models and their parameters. Listing the models imports none of them."""

from __future__ import annotations

from typing import Annotated

import typer

from mesa_llm.cli.command import command, model_named, say
from mesa_llm.registry import find_models


@command("list")
def list_models(
    model: Annotated[
        str | None, typer.Argument(help="Name of a model, or module:Class: lists its parameters instead.")
    ] = None,
) -> None:
    """List the models that can be run, or the parameters of one: name, default, range and meaning."""
    if model is not None:
        from mesa_llm.cli.arguments import parameter_table
        from mesa_llm.experiments.runs.recordings import made_runs

        entry = model_named(model)
        for line in parameter_table(entry.load()):
            say(line)
        for index, each in enumerate(made_runs(entry.folder)):
            heading = "" if index else "\nRecorded runs, shown by mesa-llm view:\n"
            say(f"{heading}{entry.name}/{each.name}  {each.title}")
        return
    models = find_models()
    width = max((len(entry.name) for entry in models), default=0)
    for entry in models:
        say(f"{entry.name:<{width}}  {entry.question}".rstrip())
