"""`mesa-llm distill`: a choice model fitted to recorded decisions, and how well it predicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, log_named, say
from mesa_llm.cli.options import AsJson, LogFiles, Trust
from mesa_llm.cli.run import recording_of
from mesa_llm.experiments.distillation.runs import distill
from mesa_llm.llm.surrogate.file import Fitted, HeldOut, PartScore, Surrogate
from mesa_llm.llm.surrogate.parts import CategoryFact, Fact
from mesa_llm.statistics import Estimate, with_interval
from mesa_llm.text import counted


@command("distill")
def distill_runs(
    files: LogFiles,
    out: Annotated[
        Path, typer.Option(help="JSON file for the surrogate; agents decide by it with --llm surrogate:FILE.")
    ],
    llm: Annotated[
        str | None, typer.Option(help="Language model whose decisions are fitted; needed if several decided.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Fact that is not used, and may later take any value; repeatable.")
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit a small choice model to the recorded decisions of a language model, which can then decide in its place.

    Prints how well it predicts decisions that it was not fitted to, beside
    chance, the recorded frequencies and the rule twin.
    """
    recordings = [recording_of(log_named(file), trust=trust) for file in files]
    surrogate = distill(recordings, llm=llm, without=without or ())
    surrogate.write(out)
    if as_json:
        figures = surrogate.model_dump(mode="json", include={"of", "recordings", "held_out"})
        if surrogate.held_out is not None:
            figures["held_out"]["is_same_run"] = surrogate.held_out.is_same_run
        say(json.dumps({"file": str(out), **figures}))
    else:
        for line in _lines(surrogate):
            say(line)
        say(f"\n{out}: agents decide by it with --llm surrogate:{out}")


def _lines(surrogate: Surrogate) -> Iterator[str]:
    """Yield what was fitted, and how well held-out decisions are predicted."""
    for fitted in surrogate.fitted:
        question = f" on {fitted.label!r}" if fitted.label else ""
        yield f"{counted(fitted.n, 'decision')} of {', '.join(surrogate.of)}{question}, from what agents saw:"
        for name, fact in fitted.facts.items():
            yield f"  {name}: {_range(fact)}"
        yield from [f"  not used: {', '.join(fitted.ignored)}"] if fitted.ignored else []
        if writes := _prose(fitted):
            yield f"  not fitted, as they are texts or lists: {', '.join(writes)}"
    yield from _left_out(surrogate)
    if surrogate.held_out is None:
        yield "All decisions are of one step, so that none can be held out."
        return
    yield from _table(surrogate.held_out)


def _left_out(surrogate: Surrogate) -> Iterator[str]:
    if surrogate.n_failed:
        yield f"{counted(surrogate.n_failed, 'decision')} failed, and are left out."
    if surrogate.n_several:
        yield f"Of {counted(surrogate.n_several, 'decision')} of several actions, the first was fitted."
    for label, n in surrogate.too_few.items():
        yield f"Too few to be fitted: {counted(n, 'decision')} on {label!r}."


def _range(fact: Fact) -> str:
    if isinstance(fact, CategoryFact):
        return ", ".join(repr(value[:40]) if value else "(missing)" for value in fact.values)
    return f"{fact.minimum:g} to {fact.maximum:g}" + (", or missing" if fact.may_be_missing else "")


def _prose(fitted: Fitted) -> list[str]:
    return [name for name, argument in fitted.arguments.items() if argument.part.kind == "text"]


def _table(held_out: HeldOut) -> Iterator[str]:
    yield (
        f"\nHeld out by {held_out.description}, in {counted(held_out.n_folds, 'part')}: "
        f"{counted(held_out.n, 'decision')}, of which {held_out.n_outside} outside of what was fitted to the others."
    )
    where = " in the same run, not in a new one" if held_out.is_same_run else ""
    yield f"Mean loss of the rest{where}, lower is better: log loss in nats, or CRPS in the unit of the number."
    heading = ("", "n", "surrogate", "chance", "frequencies", "rule twin", "hits", "expected hits", "hits of the twin")
    rows = [heading, *map(_cells, held_out.scores)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()


def _cells(score: PartScore) -> tuple[str, ...]:
    name = f"{score.label}: {score.part.removeprefix('.')}" if score.label else score.part.removeprefix(".")
    losses = (score.chance, score.frequencies, score.rule)
    shares = (score.accuracy, score.confidence, score.rule_accuracy)
    return (
        f"{name} ({score.measure})",
        str(score.n),
        with_interval(Estimate(score.surrogate, score.low, score.high, score.n_runs, "runs")),
        *("" if loss is None else f"{loss:.3f}" for loss in losses),
        *("" if share is None else f"{share:.0%}" for share in shares),
    )
