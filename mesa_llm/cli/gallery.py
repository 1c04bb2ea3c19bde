"""`mesa-llm app`: the gallery of all models, or pages of one's own, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, look_here, say
from mesa_llm.cli.options import PageFlags, PageServing, access_of_pages
from mesa_llm.errors import ConfigError

GALLERY = "mesa_llm.viz.server.gallery"
"""The page of all models."""


@command("app")
def open_app(
    serving: PageServing,
    options: PageFlags,
    page: Annotated[str, typer.Argument(help="Module or file of your own pages, as for `solara run`.")] = GALLERY,
    bench: Annotated[
        list[Path] | None,
        typer.Option(help="Another folder written by `mesa-llm bench`, in addition to those in runs; repeatable."),
    ] = None,
) -> None:
    """Open the gallery of all models, or your own pages, in the browser. Only visitors with the token get in."""
    look_here()
    for folder in bench or ():
        if not folder.is_dir():
            raise ConfigError(f"--bench {folder}: there is no such folder")
    server = serving.server(page, access=access_of_pages(options), benchmark_folders=bench or ())
    say(f"mesa-llm: the page opens at {server.address}", with_keys=True)
    server.run(browser=serving.browser)
