"""The command line. Listing the models loads nothing else; any other command loads the modules of all commands."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import app, exits, model_named, say

__all__ = ["app", "main"]


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from mesa_llm.runlog.versions import versions

        say(f"mesa-llm-worlds {versions()['mesa-llm-worlds']}")
        raise typer.Exit


def _show_downloads() -> None:
    """Print how far the download of a local model is, which may take minutes."""
    logger = logging.getLogger("mesa_llm.llm.local.weights")
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.INFO)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Agent-based models whose agents think with a language model."""
    _show_downloads()
    if Path("mesa-llm.toml").is_file():
        from mesa_llm.cli.agreement import ask_once

        ask_once(sys.argv[1:], partial(say, err=True))


@app.command("list")
@exits
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
    from mesa_llm.registry import find_models

    models = find_models()
    width = max((len(entry.name) for entry in models), default=0)
    for entry in models:
        say(f"{entry.name:<{width}}  {entry.question}".rstrip())


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
