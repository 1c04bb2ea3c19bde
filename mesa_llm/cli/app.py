"""The command line. Each command loads its own module, see `mesa_llm.cli.command`."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import app, say

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
        from mesa_llm.cli.trust import ask_once

        ask_once(sys.argv[1:], partial(say, err=True))


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
