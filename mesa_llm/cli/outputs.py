"""Commands that write files: export, report, bundle, extract, notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.command import DIFFERENT, app, exits, log_named, say, warn
from mesa_llm.cli.options import ApiBase, AsJson, Log, MaxDollars, MaxTokens, Trust


@app.command(rich_help_panel="Files")
@exits
def export(
    file: Annotated[Path, typer.Argument(help="Run log of the run, which is replayed offline.", callback=log_named)],
    out: Annotated[Path, typer.Option(help="Output folder; created if necessary.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Export the tables of a recorded run as CSV, and its network of interactions as GraphML."""
    from mesa_llm.cli.report import export_run

    export_run(file, out, trust=trust, as_json=as_json, say=say)


@app.command(rich_help_panel="Files")
@exits
def report(
    file: Annotated[
        Path,
        typer.Argument(help="Run log of the run, which is replayed offline and never changed.", callback=log_named),
    ],
    llm: Annotated[str, typer.Option(help="Author of the report: rule, or any language model.")] = "rule",
    out: Annotated[
        Path | None, typer.Option(help="Output file, .md or .html; by default the report is printed.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Run log of the author's requests; by default report-FILE.")] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Number of days that the run represents; the story then counts in weeks.")
    ] = None,
    api_base: ApiBase = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Report on a recorded run: verdict, findings, coalitions and story."""
    from mesa_llm.cli.arguments import budget, require_no_secrets
    from mesa_llm.cli.report import report_run

    require_no_secrets(api_base=api_base, llm=llm)
    options = budget(max_tokens=max_tokens, max_dollars=max_dollars) | ({"api_base": api_base} if api_base else {})
    report_run(file, llm, out, log, days=days, options=options, trust=trust, as_json=as_json, say=say)


@app.command(rich_help_panel="Files")
@exits
def bundle(
    file: Annotated[
        Path,
        typer.Argument(
            help="Run log of the run, which is replayed offline, or the name of a recorded run.", callback=log_named
        ),
    ],
    out: Annotated[Path, typer.Option(help="Zip file of the bundle.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Write it without being asked, whatever private data it may hold.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Import the model that the log names, and put its code into the bundle."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Put a recorded run into one file that replays on another machine.

    It holds the log, its input files, prompts, code of your own, package
    versions, tables, an ODD document and a hash of every file. Private
    paths and what may be personal data are listed first; keys are refused.
    """
    from mesa_llm.cli.bundle import make_bundle

    if not make_bundle(file, out, trust=trust, yes=yes, as_json=as_json, say=say):
        raise typer.Exit(DIFFERENT)


@app.command(rich_help_panel="Files")
@exits
def extract(
    file: Annotated[Path, typer.Argument(help="Text that names people and institutions, in UTF-8.")],
    out: Annotated[Path, typer.Option(help="JSON file for the characters; models read it with --users.")],
    llm: Annotated[str, typer.Option(help="Language model that finds them; `rule` takes capitalised words.")] = "rule",
    n: Annotated[int, typer.Option("--n", min=1, max=100, help="Maximum number of people and institutions.")] = 12,
    goal: Annotated[str, typer.Option(help="Question in which the characters have a say or a stake.")] = "",
    markets: Annotated[
        Path | None,
        typer.Option(help="JSON file for questions to bet on; the model `market` reads it with --set questions=FILE."),
    ] = None,
    n_markets: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of questions.")] = 4,
    log: Log = None,
    api_base: ApiBase = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    as_json: AsJson = False,
) -> None:
    """Extract characters from a text, and questions to bet on."""
    from mesa_llm.cli.arguments import budget, require_no_secrets
    from mesa_llm.cli.extract import extract_characters

    require_no_secrets(api_base=api_base, llm=llm)
    options = {**budget(max_tokens=max_tokens, max_dollars=max_dollars), "api_base": api_base, "log": log}
    counts: dict[str, Any] = {"goal": goal, "n_markets": n_markets, "markets": markets}
    extract_characters(file, llm, n, out, **counts, options=options, as_json=as_json, say=say, warn=warn)


@app.command(rich_help_panel="Files")
@exits
def notebooks(
    folder: Annotated[Path, typer.Argument(help="Folder to copy them into, which must not exist.")] = Path("notebooks"),
) -> None:
    """Copy the notebooks and the course of this version into a folder, to open in JupyterLab."""
    from mesa_llm.cli.notebooks import copy_notebooks

    n_notebooks = copy_notebooks(folder)
    say(f"Copied {n_notebooks} notebooks. To open them: jupyter lab {folder}")
