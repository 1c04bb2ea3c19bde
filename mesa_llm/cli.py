"""The command line: list, run, replay, inspect, app, doctor."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.errors import BudgetSpent, ConfigError, MesaLLMError, NothingDecided
from mesa_llm.wording import printable

app = typer.Typer(
    name="mesa-llm",
    help="Agent-based models whose agents think with a language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

GALLERY = "mesa_llm.gallery_page"
"""The page of all models."""

DIFFERENT, BAD_INPUT, SPENT, NOTHING_DECIDED, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes besides 0."""


def _exits(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a person should read into one line on stderr and an exit code."""

    @wraps(command)
    def run_command(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable():
                command(*args, **kwargs)
        except BudgetSpent as error:
            _say(f"mesa-llm: stopped: {error}", err=True)
            raise typer.Exit(SPENT) from None
        except ConfigError as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except NothingDecided as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(NOTHING_DECIDED) from None
        except KeyboardInterrupt:
            _say("mesa-llm: interrupted; the same command with the same --log goes on from here", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except MesaLLMError as error:
            _say(f"mesa-llm: {error}", err=True)
            raise typer.Exit(DIFFERENT) from None

    return run_command


@contextmanager
def _terminable() -> Generator[None]:
    """Let SIGTERM end what runs as Ctrl-C does: what is open is closed, and the same words are said."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(text: str, *, err: bool = False) -> None:
    typer.echo(printable(text), err=err)


@app.command("list")
@_exits
def list_models() -> None:
    """List the models that can be run."""
    from mesa_llm.gallery import find_models

    models = find_models()
    width = max((len(entry.name) for entry in models), default=0)
    for entry in models:
        try:
            entry.load()
            told = entry.question
        except ConfigError as error:
            told = f"BROKEN: {error}"
        _say(f"{entry.name:<{width}}  {told}")


Llm = Annotated[str, typer.Option(help="rule, random, human, local, ollama/NAME, or any litellm model.")]
ApiBase = Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible endpoint.")]
Log = Annotated[Path | None, typer.Option(help="Run log; what it holds is used, the rest is recorded.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line, also of a stopped run.")]


@app.command()
@_exits
def run(
    model: Annotated[str, typer.Argument(help="Name of the model; see `mesa-llm list`.")],
    llm: Llm = "rule",
    api_base: ApiBase = None,
    steps: Annotated[int, typer.Option(min=0, help="Steps to run.")] = 10,
    rng: Annotated[int | None, typer.Option(help="Seed.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with the population.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value.")] = None,
    log: Log = None,
    on_error: Annotated[str, typer.Option(help="skip, rule or raise.")] = "skip",
    max_calls: Annotated[int | None, typer.Option(help="Budget of live replies; those from the log are free.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens of live replies.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars of live replies.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Most requests in flight.")] = 64,
    retry_failures: Annotated[bool, typer.Option(help="Ask again where the log holds a failure.")] = False,
    ask_again: Annotated[bool, typer.Option(help="Ask again where the log holds another request.")] = False,
    moved: Annotated[bool, typer.Option("--moved", help="Go on with the log though the endpoint has moved.")] = False,
    reasoning: Annotated[
        str | None, typer.Option(help="How agents reason before they decide: none, inline or first.")
    ] = None,
    reply_tokens: Annotated[int | None, typer.Option(min=1, help="Maximum number of tokens of a reply.")] = None,
    parser: Annotated[str | None, typer.Option(help="Second model, which puts faulty replies into form.")] = None,
    design: Annotated[
        Path | None, typer.Option(help="JSON file with an AgentDesign; functions that it names are imported.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model; the same command with the same --log goes on with a run that was stopped."""
    from mesa_llm.gallery import find_model
    from mesa_llm.running import budget, design_in, parameters, run_model

    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    entry = find_model(model)
    kind = entry.load()
    given = parameters(kind, set_ or [], users) | spend
    given |= {"llm": llm, "api_base": api_base, "rng": rng, "log": log, "on_error": on_error}
    given |= {"concurrency": concurrency, "retry_failures": retry_failures, "ask_again": ask_again, "moved": moved}
    options = {"reasoning": reasoning, "reply_tokens": reply_tokens, "parser": parser, "design": design_in(design)}
    given |= {name: value for name, value in options.items() if value is not None}
    run_model(entry.name, kind(**given), steps, as_json=as_json, say=_say, demands_decisions=True)


@app.command()
@_exits
def replay(
    file: Annotated[Path, typer.Argument(help="Run log of the run.")],
    trust: Annotated[bool, typer.Option("--trust", help="Import what the log names, also what is not listed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recorded run again without asking anybody, and compare the digests."""
    from mesa_llm.running import replay_run

    told = replay_run(file, as_json=as_json, say=_say, trust=trust)
    if told["digest"] != told["recorded_digest"]:
        _say(f"mesa-llm: the digests differ: recorded {told['recorded_digest']}, now {told['digest']}", err=True)
        raise typer.Exit(DIFFERENT)


@app.command()
@_exits
def inspect(
    file: Annotated[Path, typer.Argument(help="Run log.")],
    calls: Annotated[bool, typer.Option("--calls", help="Requests and replies.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="What was decided.")] = False,
    actions: Annotated[bool, typer.Option("--actions", help="What was done, and what came of it.")] = False,
    events: Annotated[bool, typer.Option("--events", help="What the worlds told of.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Calls, tokens, dollars by model.")] = False,
    agent: Annotated[int | None, typer.Option(help="Only this agent.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    salvage: Annotated[Path | None, typer.Option(help="New file for what can be read of a damaged log.")] = None,
) -> None:
    """Look into a run log; without options, at its manifest."""
    from mesa_llm.inspecting import salvaged, tables

    if salvage is not None:
        for line in salvaged(file, salvage):
            _say(line)
        return
    flags = {"calls": calls, "decisions": decisions, "actions": actions, "events": events, "usage": usage}
    wanted = [name for name, is_wanted in flags.items() if is_wanted]
    for text in tables(file, wanted, agent, csv=csv):
        _say(text)


@app.command("app")
@_exits
def open_app(
    page: Annotated[str, typer.Argument(help="Module or file of pages of your own, as for `solara run`.")] = GALLERY,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    token: Annotated[
        str | None,
        typer.Option(envvar="MESA_LLM_APP_TOKEN", help="Token in the address; a new one if unset."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Further name under which the server may be addressed, as by a proxy.")
    ] = None,
    max_calls: Annotated[int | None, typer.Option(help="Budget of replies for all pages together.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Budget of tokens for all pages together.")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="Budget of US dollars for all pages together.")] = None,
) -> None:
    """Open the gallery of all models, or pages of your own, in the browser; only who has the token gets in."""
    from mesa_llm.access import Access
    from mesa_llm.running import budget
    from mesa_llm.viz.server import PageServer

    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    access = Access(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars) if spend else None
    server = PageServer(page, host=host, port=port, token=token, names=allow_host or (), access=access)
    _say(f"mesa-llm: the page opens at {server.address}")
    server.run(browser=browser)


@app.command()
@_exits
def doctor() -> None:
    """Say what is installed, which providers have keys, and whether the embedded model answers."""
    from mesa_llm.inspecting import check_up

    for line in check_up():
        _say(line)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
