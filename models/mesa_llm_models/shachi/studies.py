"""Shachi's studies, each one command: `python -m mesa_llm_models.shachi.studies worlds --seeds 20 --json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm import ConfigError
from mesa_llm.cli.command import exits, say, warn
from mesa_llm.cli.options import (
    ApiBase,
    AsJson,
    ConcurrencyOfAll,
    MaxCallsOfAll,
    MaxDollarsOfAll,
    MaxTokensOfAll,
    Reasoning,
    ReplyTokens,
    RequestsPerMin,
)
from mesa_llm.llm.budget import SharedBudget
from mesa_llm_models.shachi.findings import Findings, Setup
from mesa_llm_models.shachi.memory_transfer import study_memory
from mesa_llm_models.shachi.other_life import CarriedModel
from mesa_llm_models.shachi.swap import SwapModel, study_swap
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel
from mesa_llm_models.shachi.validity import RealSeries, ShockModel, study_validity
from mesa_llm_models.shachi.worlds import study_worlds

STUDIES: dict[str, tuple[Callable[..., Findings], type[Any]]] = {
    "swap": (study_swap, SwapModel),
    "memory": (study_memory, CarriedModel),
    "worlds": (study_worlds, TwoWorldsModel),
    "validity": (study_validity, ShockModel),
}
"""Name of a study → its function, and the model that `--set` applies to."""

N_SEEDS = 20
"""Number of seeds of a study."""

PAGE, FIGURES = "page.html", "findings.json"
"""Names of the result files in the study's folder."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@exits
def run_study(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(STUDIES)}.")],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds of each arm; 6 or more for a test.")] = N_SEEDS,
    rng: Annotated[int, typer.Option(min=0, help="The first seed.")] = 1,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps of a run: months (swap), tests of each bias (memory); the study's own if left out."
        ),
    ] = None,
    llm: Annotated[
        str, typer.Option(help="What agents think with; for swap several, with commas between them.")
    ] = "rule",
    api_base: ApiBase = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Parameter of the model, as name=value.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of a log a run, which are gone on with, and of page and figures.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Runs at once.")] = 1,
    people: Annotated[
        int | None, typer.Option(min=2, help="memory: agents of each source; 111 and 100 in the study.")
    ] = None,
    months: Annotated[int | None, typer.Option(min=1, help="memory: months in the economy; 240 in the study.")] = None,
    news: Annotated[str | None, typer.Option(help="validity: text of the news.")] = None,
    real: Annotated[
        Path | None, typer.Option(help="validity: CSV of a real price series, with columns date and close.")
    ] = None,
    event: Annotated[str | None, typer.Option(help="validity: first day of the real news, as 2025-04-03.")] = None,
    stock: Annotated[
        str | None, typer.Option(help="validity: whose price is compared: A, B or both, which is the default.")
    ] = None,
    max_calls: MaxCallsOfAll = None,
    max_tokens: MaxTokensOfAll = None,
    max_dollars: MaxDollarsOfAll = None,
    concurrency: ConcurrencyOfAll = 64,
    requests_per_min: RequestsPerMin = None,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    as_json: AsJson = False,
) -> None:
    """Run a study; the last line of --json is its figures."""
    from mesa_llm.cli.arguments import budget, parameters, require_no_secrets, set_options

    require_no_secrets(set_ or (), llm=llm, api_base=api_base)
    if name not in STUDIES:
        raise ConfigError(f"there is no study {name!r}; choose one of {', '.join(STUDIES)}")
    study, model = STUDIES[name]
    chosen = parameters(model, set_ or [], None)
    has_budget = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    setup = Setup(
        range(rng, rng + seeds),
        out,
        "rule" if name == "swap" else llm,
        workers,
        chosen if news is None else {**chosen, "news": news},
        set_options(reasoning=reasoning, reply_tokens=reply_tokens),
        {"api_base": api_base, "concurrency": concurrency, "requests_per_min": requests_per_min},
        SharedBudget(max_calls, max_tokens, max_dollars) if has_budget else None,
    )
    own = set_options(people=people, months=months, news=news, real=real, event=event, stock=stock)
    findings = study(setup, steps, **_own_options(name, own, llm))
    write(findings, out, as_json=as_json)


def _own_options(name: str, own: dict[str, Any], llm: str) -> dict[str, Any]:
    """Return the options that only one study takes.

    Raises:
        ConfigError: If an option belongs to another study, or cannot be read.
    """
    takes = {"memory": ("people", "months"), "validity": ("news", "real", "event", "stock")}.get(name, ())
    for option in own:
        if option not in takes:
            raise ConfigError(f"--{option} is no option of the study {name}; see --help")
    match name:
        case "swap":
            return {"backends": [one.strip() for one in llm.split(",") if one.strip()]}
        case "memory":
            return own
        case "validity":
            stock = own.get("stock", "both")
            if stock not in ("A", "B", "both"):
                raise ConfigError(f"--stock is A, B or both, got {stock!r}")
            series = RealSeries.read(own["real"]) if "real" in own else None
            return {"real": series, "event": _day(own.get("event")), "stock": stock}
        case _:
            return {}


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--event is a day, such as 2025-04-03; got {text!r}") from None


def write(findings: Findings, folder: Path | None, *, as_json: bool) -> None:
    """Print the results of a study, and write page and figures into its folder.

    Args:
        findings: The results.
        folder: The folder; None: nothing is written.
        as_json: Whether to end with one line of JSON.
    """
    summary = findings.summary()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text(findings.page(), encoding="utf-8")
        (folder / FIGURES).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        summary["page"] = str(folder / PAGE)
    if not as_json:
        say(findings.text())
        if folder is not None:
            say(f"\nPage: {folder / PAGE}")
    if findings.cost["failures"]:
        warn(f"{findings.cost['failures']} of {findings.cost['decisions']} decisions failed; they stand in the logs")
    if as_json:
        say(json.dumps(summary))


if __name__ == "__main__":
    app()
