"""Commands for single runs: run, replay, inspect, check, trust, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mesa_llm.cli.command import DIFFERENT, app, exits, log_named, model_named, say, warn
from mesa_llm.cli.options import (
    DEFAULT_CONCURRENCY,
    DEFAULT_STEPS,
    AllowNewEndpoint,
    ApiBase,
    AsJson,
    AskAgain,
    Batch,
    Clients,
    Concurrency,
    Config,
    Design,
    DryRun,
    Labels,
    Light,
    Llm,
    Log,
    MaxCalls,
    MaxDollars,
    MaxTokens,
    OnError,
    Parser,
    Reasoning,
    ReplyTokens,
    RetryFailures,
    Scoring,
    Trust,
    Users,
)
from mesa_llm.errors import ConfigError


@app.command()
@exits
def run(
    model: Annotated[
        str, typer.Argument(help="Name of the model (see `mesa-llm list`), or MODULE:CLASS for any other.")
    ],
    llm: Llm = "rule",
    api_base: ApiBase = None,
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="Number of steps; 10 by default, with --config until the model ends by itself."),
    ] = None,
    rng: Annotated[int | None, typer.Option(help="Seed, 0 or more; by default one is drawn and printed.")] = None,
    users: Users = None,
    config: Config = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Model parameter, as name=value; repeatable.")] = None,
    log: Log = None,
    on_error: OnError = "skip",
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_dollars: MaxDollars = None,
    batch: Batch = False,
    concurrency: Concurrency = DEFAULT_CONCURRENCY,
    clients: Clients = 0,
    retry_failures: RetryFailures = False,
    ask_again: AskAgain = False,
    light: Light = False,
    labels: Labels = None,
    allow_new_endpoint: AllowNewEndpoint = False,
    reasoning: Reasoning = None,
    reply_tokens: ReplyTokens = None,
    scoring: Scoring = None,
    parser: Parser = None,
    design: Design = None,
    inject: Annotated[
        list[str] | None,
        typer.Option(help="News for everyone, or an intervention as JSON, before a step: '3: It snows.'; repeatable."),
    ] = None,
    dry_run: DryRun = False,
    csv: Annotated[
        Path | None, typer.Option(help="File for the measures of the model's DataCollector, one row per step.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model. To resume a run that was stopped, run the same command with the same --log."""
    from mesa_llm.cli.arguments import budget, design_in, llm_in, parameters, require_no_secrets, scheduled, set_options
    from mesa_llm.cli.run import run_model
    from mesa_llm.model.recording import texts_in

    if rng is not None and rng < 0:
        raise ConfigError(f"--rng {rng}: a seed is 0 or a positive whole number; leave --rng out to have one drawn")
    require_no_secrets(set_ or (), api_base=api_base, llm=llm, parser=parser)
    spend = budget(max_calls=max_calls, max_tokens=max_tokens, max_dollars=max_dollars)
    entry = model_named(model)
    kind = entry.load()
    arguments = parameters(kind, set_ or [], users, config) | spend
    if steps is None and config is None:
        steps = DEFAULT_STEPS
    llms = llm_in(llm)
    arguments |= {"llm": llms, "api_base": api_base, "rng": rng, "log": log, "on_error": on_error}
    arguments |= {"batch": batch, "concurrency": concurrency, "retry_failures": retry_failures, "ask_again": ask_again}
    arguments |= {"allow_new_endpoint": allow_new_endpoint, "light": light, "clients": clients}
    arguments |= set_options(labels=labels)
    arguments |= set_options(reasoning=reasoning, reply_tokens=reply_tokens, scoring=scoring, parser=parser)
    arguments |= set_options(design=design_in(design))
    if design is not None:  # an address in its file has no right to a key
        arguments["named"] = texts_in(llms, parser, [text.partition("=")[2] for text in set_ or ()])
    how: dict[str, Any] = {"interventions": scheduled(inject or ()), "as_json": as_json, "say": say}
    if dry_run:
        from mesa_llm.cli.cost import print_estimate

        print_estimate(entry.name, kind, arguments, steps, **how)
    else:
        run_model(entry.name, kind(**arguments), steps, csv=csv, is_live=True, warn=warn, **how)


@app.command()
@exits
def replay(
    file: Annotated[
        Path,
        typer.Argument(
            help="Run log of the run, a study bundle (.zip), or the name of a recorded run (see `mesa-llm list`).",
            callback=log_named,
        ),
    ],
    into: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for the files of a bundle; by default they are deleted afterwards."),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Replay a run offline, and say whether it is the recorded one.

    The last line is the verdict: identical, differs from a step on, or
    cannot be replayed; exits with 0, 1 or 2.
    """
    from mesa_llm.cli.replay import replay_file

    if code := replay_file(file, into, trust=trust, as_json=as_json, say=say, warn=warn):
        raise typer.Exit(code)


@app.command()
@exits
def inspect(
    file: Annotated[Path, typer.Argument(help="Run log.", callback=log_named)],
    calls: Annotated[bool, typer.Option("--calls", help="Requests and their replies.")] = False,
    decisions: Annotated[bool, typer.Option("--decisions", help="Decisions of the agents.")] = False,
    actions: Annotated[bool, typer.Option("--actions", help="Actions and their outcomes.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Events reported by the worlds.")] = False,
    usage: Annotated[bool, typer.Option("--usage", help="Calls, tokens and dollars by language model.")] = False,
    agent: Annotated[int | None, typer.Option(help="Only this agent.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show whole prompts and replies, and those behind each decision.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    recover: Annotated[
        Path | None, typer.Option(help="Copy what can be read of a damaged log into this new file.")
    ] = None,
) -> None:
    """Show the contents of a run log; without options, its manifest."""
    from mesa_llm.cli.inspect import recovered, tables
    from mesa_llm.runlog.comparison import not_checked

    if recover is not None:
        for line in recovered(file, recover):
            say(line)
        return
    flags = {"calls": calls, "decisions": decisions, "actions": actions, "events": events, "usage": usage}
    sections = [name for name, is_wanted in flags.items() if is_wanted]
    if full and csv:
        raise ConfigError("--full: comma-separated values are never shortened; leave out --full or --csv")
    if full and not (calls or decisions):
        sections.append("decisions")
    for text in tables(file, sections, agent, csv=csv, full=full):
        say(text)
    say(not_checked(file), err=True)


@app.command()
@exits
def odd(
    model: Annotated[
        str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other, also in this folder.")
    ],
    out: Annotated[Path | None, typer.Option(help="Markdown file; by default the document is printed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model by the ODD protocol (Grimm et al. 2020); what nobody has written is marked."""
    from mesa_llm.cli.odd import write_odd

    write_odd(model_named(model), out, as_json=as_json, say=say, warn=warn)


@app.command()
@exits
def check(
    model: Annotated[
        str, typer.Argument(help="Name of the model, or MODULE:CLASS for any other, also in this folder.")
    ],
) -> None:
    """Check that a model keeps the promises of every model: it runs offline, replays, survives failures and so on.

    Prints one line per promise; exits with 1 if one is broken.
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
    """Allow a file of endpoints to use keys from your environment, until the file changes."""
    from mesa_llm.cli.agreement import agree_to

    if not agree_to(file, is_agreed=yes, say=say):
        raise typer.Exit(DIFFERENT)


@app.command()
@exits
def doctor(
    llm: Annotated[
        str | None,
        typer.Option(help="Model to examine: NAME with --api-base, NAME@URL, a named endpoint, local, and so on."),
    ] = None,
    api_base: ApiBase = None,
    timeout_s: Annotated[float, typer.Option(min=1, help="Seconds to wait for each reply.")] = 60,
    characters: Annotated[
        int, typer.Option(min=0, help="Length of the long prompt in characters; 0 sends none.")
    ] = 20_000,
    persona: Annotated[
        bool, typer.Option("--persona", help="Show instead how far the model reacts to contrasting personas.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Examine a language model: what its endpoint supports, and which settings it needs.

    Sends about a dozen short requests and one long one; exits with 1 if
    the model gives no usable reply. Without --llm, describes this
    installation: versions, keys, endpoints, broken models and the
    embedded language model. With --persona, sends about a hundred short
    requests through the project's models: five traits, giving,
    cooperating, two opinions and a risk, each with two opposite personas.
    """
    from mesa_llm.cli.arguments import require_no_secrets
    from mesa_llm.cli.doctor import print_check_up, print_contrasts, print_examination

    if llm is None:
        if api_base is not None:
            raise ConfigError("--api-base needs --llm NAME, the name of the model at that address")
        if persona:
            raise ConfigError("--persona needs --llm NAME, the model whose agents get the personas")
        print_check_up(say, as_json=as_json)
        return
    require_no_secrets((), api_base=api_base, llm=llm)
    if persona:
        print_contrasts(llm, api_base, say, as_json=as_json, timeout_s=timeout_s)
        return
    if not print_examination(llm, api_base, say, as_json=as_json, timeout_s=timeout_s, n_characters=characters):
        raise typer.Exit(DIFFERENT)
