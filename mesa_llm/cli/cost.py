"""Expected cost of a run, on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mesa_llm.cli.command import Say
from mesa_llm.model.cost_estimate import CAVEAT, IN_BATCHES, RANDOM_CAVEAT, Cost, CostEstimate, estimate_cost
from mesa_llm.model.model import LLMModel
from mesa_llm.text import NOT_KNOWN, counted, table

COLUMNS = ("requests", "prompt tokens", "reply tokens", "at most", "$", "at most")
"""Columns of a cost."""

OF_ONE_SEED = "The estimate takes the runs of one seed, multiplied by the number of seeds."
"""What the estimate of several seeds leaves out besides that of a run."""


def print_estimate(
    name: str,
    kind: type[LLMModel],
    arguments: Mapping[str, Any],
    steps: int | None,
    *,
    interventions: Sequence[tuple[int, Any]] = (),
    as_json: bool,
    say: Say,
) -> None:
    """Print what a run would cost, without sending a request.

    Args:
        name: Name of the model.
        kind: The model's class.
        arguments: Arguments of the run.
        steps: Maximum number of steps; None: until the model ends by itself.
        interventions: Pairs of a step and an intervention before it.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
    """

    def make(**options: Any) -> LLMModel:
        model = kind(**options)
        for step, intervention in interventions:
            model.interventions.schedule(step, intervention)
        return model

    estimate = estimate_cost(make, steps, **arguments)
    if as_json:
        say(json.dumps({"model": name, "dry_run": True, **estimate.to_json(), "note": caveat(arguments.get("batch"))}))
        return
    say(f"{name}: {counted(estimate.decisions, 'decision')} in {counted(estimate.steps, 'step')}")
    if not estimate.total.requests:
        say("This run asks no language model and costs nothing.")
        return
    for line in cost_table(("purpose",), [*estimate.by_purpose.items(), ("together", estimate.total)]):
        say(line)
    for line in remarks(estimate, arguments):
        say(line)


def print_cost_of_seeds(
    cost: Cost, unpriced: Sequence[str], *, llm: object, n_seeds: int, is_batch: bool, as_json: bool, say: Say
) -> None:
    """Print what the runs of several seeds would cost, of which those of one were estimated.

    Args:
        cost: Cost of all of them.
        unpriced: Language models without a known price.
        llm: Language model of the agents.
        n_seeds: Number of seeds.
        is_batch: Whether requests are sent in batches.
        as_json: Whether to print one line of JSON, and nothing else.
        say: Prints a line.
    """
    note = f"{caveat(is_batch, RANDOM_CAVEAT)} {OF_ONE_SEED}"
    if as_json:
        say(json.dumps({"total": asdict(cost), "note": note}))
    elif not cost.requests:
        say(f"{llm} costs nothing")
    else:
        for line in cost_table(("seeds",), [(n_seeds, cost)]):
            say(line)
        say(f"\n{note}")
        if unpriced:
            say(f"litellm has no price for {', '.join(unpriced)}.")


def remarks(estimate: CostEstimate, arguments: Mapping[str, Any], what: str = "this run") -> Iterable[str]:
    """Write remarks on the figures: what they leave out, and which budgets they exceed.

    Args:
        estimate: The estimate.
        arguments: Arguments of the run, with its budgets.
        what: What is estimated.
    """
    yield f"\n{caveat(arguments.get('batch'))}"
    if estimate.unpriced:
        yield f"litellm has no price for {', '.join(estimate.unpriced)}."
    total = estimate.total
    needs = {
        "max_calls": total.requests,
        "max_tokens": total.prompt_tokens + total.reply_tokens,
        "max_dollars": total.dollars,
    }
    for option, need in needs.items():
        limit = arguments.get(option)
        if limit is not None and need is not None and need > limit:
            yield f"--{option.replace('_', '-')} {limit:g} would end {what} early: it needs {need:,.4g} or more."


def caveat(is_batch: object, text: str = CAVEAT) -> str:
    """Say what an estimate leaves out, and whether requests are sent in batches."""
    return f"{text} {IN_BATCHES}" if is_batch else text


def cost_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Write costs as the lines of a table.

    Args:
        columns: Names of the columns before the cost.
        rows: Values of these columns, followed by the cost.
    """
    return table([*columns, *COLUMNS], [[*map(str, row[:-1]), *_cells(row[-1])] for row in rows])


def _cells(cost: Cost) -> list[str]:
    counts = [cost.requests, cost.prompt_tokens, cost.reply_tokens, cost.max_reply_tokens]
    dollars = [NOT_KNOWN if one is None else f"{one:.4f}" for one in (cost.dollars, cost.max_dollars)]
    return [*(f"{count:,}" for count in counts), *dollars]
