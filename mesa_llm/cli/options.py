"""Options of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STEPS = 10
"""Default number of steps of a run."""

DESIGN_NAMES = (
    "JSON file with an AgentDesign, whose functions are imported; own; a strategy (plan, react, vote, vote:9); or the "
    "name of one of Shachi's designs"
)
"""What may be typed for a design."""

Llm = Annotated[str, typer.Option(help="rule, random, human, local, ollama/NAME, or any litellm model.")]
ApiBase = Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible endpoint; without a key in it.")]
Log = Annotated[Path | None, typer.Option(help="Run log; what it holds is used, the rest is recorded.")]
Design = Annotated[str | None, typer.Option(help=f"{DESIGN_NAMES}.")]
Config = Annotated[
    str | None, typer.Option(help="File that describes the run, for models with a parameter config (discussion).")
]
Users = Annotated[Path | None, typer.Option(help="File with the population.")]
OnError = Annotated[str, typer.Option(help="What a failed decision becomes: skip, rule or raise.")]
Reasoning = Annotated[str | None, typer.Option(help="How agents reason before they decide: none, inline or first.")]
ReplyTokens = Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens of a reply.")]
Parser = Annotated[str | None, typer.Option(help="Second model, which puts faulty replies into form.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and ask nobody.")]
Trust = Annotated[bool, typer.Option("--trust", help="Import what the log names, even if no listed model does.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line, also of a stopped run.")]

MaxCalls = Annotated[int | None, typer.Option(help="Budget of live replies; those from the log are free.")]
MaxTokens = Annotated[int | None, typer.Option(help="Budget of tokens of live replies.")]
MaxDollars = Annotated[float | None, typer.Option(help="Budget of US dollars of live replies.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Maximum number of requests in flight.")]
RetryFailures = Annotated[bool, typer.Option(help="Ask again where the log holds a failure.")]
AskAgain = Annotated[bool, typer.Option(help="Ask again where the log holds another request.")]
Moved = Annotated[bool, typer.Option("--moved", help="Go on with the log though the endpoint has moved.")]

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any that is free.")]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: other machines can open the page.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")]
Token = Annotated[
    str | None, typer.Option(envvar="MESA_LLM_APP_TOKEN", help="Token in the address; a new one if unset.")
]
AllowHost = Annotated[
    list[str] | None, typer.Option(help="Further name under which the server may be addressed, as by a proxy.")
]
MaxCallsOfPages = Annotated[int | None, typer.Option(help="Budget of replies for all pages together.")]
MaxTokensOfPages = Annotated[int | None, typer.Option(help="Budget of tokens for all pages together.")]
MaxDollarsOfPages = Annotated[float | None, typer.Option(help="Budget of US dollars for all pages together.")]

MaxCallsOfAll = Annotated[int | None, typer.Option(help="Budget of live replies of all runs together.")]
MaxTokensOfAll = Annotated[int | None, typer.Option(help="Budget of tokens of all runs together.")]
MaxDollarsOfAll = Annotated[float | None, typer.Option(help="Budget of US dollars of all runs together.")]
ConcurrencyOfAll = Annotated[
    int, typer.Option(min=1, help="Maximum number of requests in flight, of all runs together.")
]
RequestsPerMin = Annotated[float | None, typer.Option(help="Rate limit of all runs together.")]
