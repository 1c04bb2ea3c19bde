"""Commands that write files: export and report of a recorded run, a cast of a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.command import app, exits, say, warn
from mesa_llm.cli.options import ApiBase, AsJson, Log, MaxDollars, MaxTokens, Trust


@app.command(rich_help_panel="Files")
@exits
def export(
    file: Annotated[Path, typer.Argument(help="Run log of the run; it is replayed, and nobody is asked.")],
    out: Annotated[Path, typer.Option(help="Folder for the files; made if there is none.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write the tables of a recorded run as CSV, and who dealt with whom as GraphML."""
    from mesa_llm.cli.report import export_run

    export_run(file, out, trust=trust, as_json=as_json, say=say)


@app.command(rich_help_panel="Files")
@exits
def report(
    file: Annotated[Path, typer.Argument(help="Run log of the run; it is replayed, and not written.")],
    llm: Annotated[str, typer.Option(help="Who writes: rule, or any language model.")] = "rule",
    out: Annotated[Path | None, typer.Option(help="File for it, .md or .html; without it, it is printed.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Run log of what a language model is asked; report-FILE, if unset.")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days that the run stands for; the story then counts in weeks.")
    ] = None,
    api_base: ApiBase = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of a recorded run: verdict, findings, coalitions, story."""
    from mesa_llm.cli.arguments import budget, require_no_secrets
    from mesa_llm.cli.report import report_run

    require_no_secrets(api_base=api_base, llm=llm)
    options = budget(max_tokens=max_tokens, max_dollars=max_dollars) | ({"api_base": api_base} if api_base else {})
    report_run(file, llm, out, log, days=days, options=options, trust=trust, as_json=as_json, say=say)


@app.command("cast", rich_help_panel="Files")
@exits
def cast_of_text(
    file: Annotated[Path, typer.Argument(help="Text that names people and institutions, in UTF-8.")],
    out: Annotated[Path, typer.Option(help="File for the cast, .json; models take it by --users.")],
    llm: Annotated[str, typer.Option(help="Who finds them; rule: the words with a capital.")] = "rule",
    n: Annotated[int, typer.Option("--n", min=1, max=100, help="Maximum number of characters.")] = 12,
    goal: Annotated[str, typer.Option(help="Question that they have a say or a stake in.")] = "",
    markets: Annotated[
        Path | None, typer.Option(help="File for questions to bet on, .json; market takes it by --set questions=.")
    ] = None,
    n_markets: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of questions.")] = 4,
    log: Log = None,
    api_base: ApiBase = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    as_json: AsJson = False,
) -> None:
    """Make a cast from a text, and questions to bet on."""
    from mesa_llm.cli.arguments import budget, require_no_secrets
    from mesa_llm.cli.cast import make_cast

    require_no_secrets(api_base=api_base, llm=llm)
    options = {**budget(max_tokens=max_tokens, max_dollars=max_dollars), "api_base": api_base, "log": log}
    counts: dict[str, Any] = {"goal": goal, "n_markets": n_markets, "markets": markets}
    make_cast(file, llm, n, out, **counts, options=options, as_json=as_json, say=say, warn=warn)
