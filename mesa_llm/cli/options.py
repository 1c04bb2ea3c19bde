"""Options of several commands; those of every run are declared in `mesa_llm.engine.options`, and derived from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.engine.options import option

DEFAULT_STEPS = 10
"""Default number of steps of a run."""

DEFAULT_CONCURRENCY: int = option("concurrency").default
"""Default number of requests in flight."""

DESIGN_NAMES = (
    "JSON file of an AgentDesign (the functions it names are imported); own (the model's own agents); a strategy "
    "(plan, react, vote, vote:9); or one of Shachi's designs by name"
)
"""What may be typed for a design."""


def _of_every_run(name: str, scope: str = "") -> Any:
    """Declare an option as its name, range and meaning are declared for every run.

    Args:
        name: Name of the option.
        scope: Sentence that says what shares it, if anything does.
    """
    own = option(name)
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(flag, min=own.minimum, help=" ".join(filter(None, (own.meaning, scope))))


Llm = Annotated[
    str,
    typer.Option(
        help="What agents think with: rule, random, human, local, ollama/NAME, or any litellm model. In `run` and "
        "`bench` also several, as WHO=NAME with commas: main=NAME,others=NAME; or in shares, 1/2=NAME,2/2=NAME."
    ),
]
ApiBase = Annotated[str | None, _of_every_run("api_base", "Put no key in it.")]
Log = Annotated[Path | None, typer.Option(help="Run log. Recorded replies are reused; new ones are appended.")]
Design = Annotated[str | None, typer.Option(help=f"{DESIGN_NAMES}.")]
Config = Annotated[
    str | None, typer.Option(help="File that describes the run, for models with a `config` parameter (discussion).")
]
Users = Annotated[Path | None, typer.Option(help="File with the population.")]
On = Annotated[
    str,
    typer.Option(help="Where runs are made: processes, threads, or ray (the cluster of RAY_ADDRESS, or this machine)."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of runs at a time; by default one per core.")]
OnError = Annotated[str, _of_every_run("on_error")]
Reasoning = Annotated[str | None, _of_every_run("reasoning")]
ReplyTokens = Annotated[int | None, _of_every_run("reply_tokens")]
Scoring = Annotated[str | None, _of_every_run("scoring")]
Parser = Annotated[str | None, _of_every_run("parser")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate the cost without sending a request.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import the model that the log names, even if `mesa-llm list` does not show it.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object as the last line, even if the run is stopped.")
]

MaxCalls = Annotated[int | None, _of_every_run("max_calls")]
MaxTokens = Annotated[int | None, _of_every_run("max_tokens")]
MaxDollars = Annotated[float | None, _of_every_run("max_dollars")]
Concurrency = Annotated[int, _of_every_run("concurrency")]
Clients = Annotated[int, _of_every_run("clients")]
Batch = Annotated[bool, _of_every_run("batch")]
RetryFailures = Annotated[bool, _of_every_run("retry_failures")]
AskAgain = Annotated[bool, _of_every_run("ask_again")]
Labels = Annotated[Path | None, _of_every_run("labels")]
Light = Annotated[bool, _of_every_run("light")]
AllowNewEndpoint = Annotated[bool, _of_every_run("allow_new_endpoint")]

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines connect.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser window.")]
Token = Annotated[
    str | None, typer.Option(envvar="MESA_LLM_APP_TOKEN", help="Token in the page's address; a new one by default.")
]
AllowHost = Annotated[
    list[str] | None, typer.Option(help="Another name of the server, such as that of a proxy; repeatable.")
]
_ALL_PAGES = "Shared by all pages."
MaxCallsOfPages = Annotated[int | None, _of_every_run("max_calls", _ALL_PAGES)]
MaxTokensOfPages = Annotated[int | None, _of_every_run("max_tokens", _ALL_PAGES)]
MaxDollarsOfPages = Annotated[float | None, _of_every_run("max_dollars", _ALL_PAGES)]

_ALL_RUNS = "Shared by all runs."
MaxCallsOfAll = Annotated[int | None, _of_every_run("max_calls", _ALL_RUNS)]
MaxTokensOfAll = Annotated[int | None, _of_every_run("max_tokens", _ALL_RUNS)]
MaxDollarsOfAll = Annotated[float | None, _of_every_run("max_dollars", _ALL_RUNS)]
ConcurrencyOfAll = Annotated[int, _of_every_run("concurrency", _ALL_RUNS)]
RequestsPerMin = Annotated[float | None, _of_every_run("requests_per_min", _ALL_RUNS)]
