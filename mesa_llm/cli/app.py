"""The command line: the commands for single runs; importing it registers all others as well."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli import experiments, outputs, pages
from mesa_llm.cli.command import DIFFERENT, app, exits, model_named, say, warn
from mesa_llm.cli.options import (
    DEFAULT_STEPS,
    ApiBase,
    AsJson,
    AskAgain,
    Concurrency,
    Config,
    Design,
    DryRun,
    Llm,
    Log,
    MaxCalls,
    MaxDollars,
    MaxTokens,
    Moved,
    OnError,
    Parser,
    Reasoning,
    ReplyTokens,
    RetryFailures,
    Trust,
    Users,
)
from mesa_llm.errors import ConfigError

__all__ = ["app", "experiments", "main", "outputs", "pages"]


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from mesa_llm.runlog.versions import versions

        say(f"mesa-llm-worlds {versions()['mesa-llm-worlds']}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Agent-based models whose agents think with a language model."""
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

        for line in parameter_table(model_named(model).load()):
            say(line)
        return
    from mesa_llm.registry import find_models

    models = find_models()
    width = max((len(entry.name) for entry in models), default=0)
    for entry in models:
        say(f"{entry.name:<{width}}  {entry.question}".rstrip())


@app.command()
@exits
def run(
    model: Annotated[str, typer.Argument(help="Name of the model (see `mesa-llm list`), or module:Class for any.")],
    llm: Llm = "rule",
    api_base: ApiBase = None,
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Steps to run; 10 by default, and with --config until the model ends by itself."),
    ] = None,
    rng: Annotated[int | None, typer.Option(help="Seed, 0 or more; without it one is drawn, and printed.")] = None,
    users: Users = None,
    config: Config = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value.")] = None,
    log: Log = None,
    on_error: OnError = "skip",
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    concurrency: Concurrency = 64,
    retry_failures: RetryFailures = False,
    ask_again: AskAgain = False,
    moved: Moved = False,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    parser: Parser = None,
    design: Design = None,
    inject: Annotated[
        list[str] | None,
        typer.Option(
            help="News for everyone, or an intervention as JSON, before a step, as '3: It snows.'; repeatable."
        ),
    ] = None,
    dry_run: DryRun = False,
    csv: Annotated[
        Path | None, typer.Option(help="File for what the model measures: its DataCollector's table, one row a step.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model; the same command with the same --log goes on with a run that was stopped."""
    from mesa_llm.cli.arguments import budget, design_in, parameters, require_no_secrets, scheduled, set_options
    from mesa_llm.cli.run import run_model
    from mesa_llm.model.recording import texts_in

    if rng is not None and rng < 0:
        raise ConfigError(f"--rng {rng}: a seed is a whole number, 0 or more; leave --rng out to have one drawn")
    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    entry = model_named(model)
    kind = entry.load()
    arguments = parameters(kind, set_ or [], users, config) | spend
    if steps is None and config is None:
        steps = DEFAULT_STEPS
    arguments |= {"llm": llm, "api_base": api_base, "rng": rng, "log": log, "on_error": on_error}
    arguments |= {"concurrency": concurrency, "retry_failures": retry_failures, "ask_again": ask_again}
    arguments |= {"allow_new_endpoint": moved}
    arguments |= set_options(reasoning=reasoning, reply_tokens=reply_tokens, parser=parser, design=design_in(design))
    if design is not None:  # an address in its file has no right to a key
        arguments["named"] = texts_in(llm, parser, [text.partition("=")[2] for text in set_ or ()])
    how: dict[str, Any] = {"interventions": scheduled(inject or ()), "as_json": as_json, "say": say}
    if dry_run:
        from mesa_llm.cli.cost import print_estimate

        print_estimate(entry.name, kind, arguments, steps, **how)
    else:
        run_model(entry.name, kind(**arguments), steps, csv=csv, is_live=True, warn=warn, **how)


@app.command()
@exits
def replay(
    file: Annotated[Path, typer.Argument(help="Run log of the run.")],
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Run a recorded run again without asking anybody, and compare the digests."""
    from mesa_llm.cli.run import replay_run

    figures = replay_run(file, as_json=as_json, say=say, trust=trust)
    if (step := figures["differs_from"]) is not None:
        digests = f"recorded {figures['recorded_digest']}, now {figures['digest']}"
        say(f"mesa-llm: the digests differ from step {step} on: {digests}", err=True)
        raise typer.Exit(DIFFERENT)


@app.command()
@exits
def inspect(
    file: Annotated[Path, typer.Argument(help="Run log.")],
    calls: Annotated[bool, typer.Option("--calls", help="Requests and replies.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="What was decided.")] = False,
    actions: Annotated[bool, typer.Option("--actions", help="What was done, and what came of it.")] = False,
    events: Annotated[bool, typer.Option("--events", help="What the worlds reported.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Calls, tokens, dollars by model.")] = False,
    agent: Annotated[int | None, typer.Option(help="Only this agent.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show prompts and replies whole, and with decisions.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    recover: Annotated[
        Path | None, typer.Option("--recover", "--salvage", help="New file for what can be read of a damaged log.")
    ] = None,
) -> None:
    """Look into a run log; without options, at its manifest."""
    from mesa_llm.cli.inspect import recovered, tables

    if recover is not None:
        for line in recovered(file, recover):
            say(line)
        return
    flags = {"calls": calls, "decisions": decisions, "actions": actions, "events": events, "usage": usage}
    sections = [name for name, is_wanted in flags.items() if is_wanted]
    if full and csv:
        raise ConfigError("--full: comma-separated values are whole anyway; leave out --full or --csv")
    if full and not (calls or decisions):
        sections.append("decisions")
    for text in tables(file, sections, agent, csv=csv, full=full):
        say(text)


@app.command()
@exits
def check(
    model: Annotated[str, typer.Argument(help="Name of the model, or module:Class for any, even in this folder.")],
) -> None:
    """Check that a model keeps what every model promises: runs offline, replays, survives faults, ….

    Prints a line for each promise; exits with 1 if one is broken.
    """
    from mesa_llm.testing import check_results

    n_broken = 0
    for result in check_results(model_named(model)):
        say(f"{'BROKEN' if result.fault else 'ok    '}  {result.check}: {result.fault or result.promise}")
        n_broken += bool(result.fault)
    if n_broken:
        warn(f"{model} breaks {n_broken} of its promises")
        raise typer.Exit(DIFFERENT)


@app.command(rich_help_panel="Files")
@exits
def trust(
    file: Annotated[Path, typer.Argument(help="File of endpoints.")] = Path("mesa-llm.toml"),
    yes: Annotated[bool, typer.Option("--yes", help="Agree without being asked.")] = False,
) -> None:
    """Agree that the endpoints of a file are sent keys out of the environment, until the file changes."""
    from mesa_llm.cli.agreement import agree_to

    if not agree_to(file, is_agreed=yes, say=say):
        raise typer.Exit(DIFFERENT)


@app.command()
@exits
def doctor(
    llm: Annotated[
        str | None, typer.Option(help="Model to examine: NAME with --api-base, NAME@URL, a named endpoint, local, ….")
    ] = None,
    api_base: ApiBase = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds until one of its replies is given up.")] = 60,
    characters: Annotated[int, typer.Option(min=0, help="Length of the long prompt; 0: none is sent.")] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Examine a language model: what its endpoint can do, and what to set; without --llm, look at what is here.

    Sends about a dozen short requests and a long one. Exits with 1 if the model gives no usable reply.
    """
    from mesa_llm.cli.arguments import require_no_secrets
    from mesa_llm.cli.doctor import print_check_up, print_examination

    if llm is None:
        if api_base is not None:
            raise ConfigError("--api-base: name the model at that address as well, with --llm NAME")
        print_check_up(say, as_json=as_json)
        return
    require_no_secrets((), api_base=api_base, llm=llm)
    if not print_examination(llm, api_base, say, as_json=as_json, timeout_s=timeout, n_characters=characters):
        raise typer.Exit(DIFFERENT)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
