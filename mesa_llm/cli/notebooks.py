"""`mesa-llm notebooks`: the notebooks and the course that come with this version, wherever it is installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, say
from mesa_llm.errors import ConfigError

PACKAGE = Path(__file__).parents[1]

PLACES = (PACKAGE / "notebooks", PACKAGE.parent / "notebooks")
"""Where they may be: in an installed wheel, in a checkout."""


@command("notebooks")
def notebooks(
    folder: Annotated[Path, typer.Argument(help="Folder to copy them into, which must not exist.")] = Path("notebooks"),
) -> None:
    """Copy the notebooks and the course of this version into a folder, to open in JupyterLab."""
    source = next((place for place in PLACES if (place / "course").is_dir()), None)
    if source is None:
        raise ConfigError("this installation has no notebooks; install the wheel, or clone the project")
    if folder.exists():
        raise ConfigError(f"{str(folder)!r} exists; name a new folder: mesa-llm notebooks FOLDER")
    try:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__"))
    except OSError as error:
        raise ConfigError(f"the notebooks cannot be copied to {str(folder)!r}: {error}") from None
    say(f"Copied {sum(1 for _ in folder.rglob('*.ipynb'))} notebooks. To open them: jupyter lab {folder}")
