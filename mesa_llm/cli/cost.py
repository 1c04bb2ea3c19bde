"""What runs would cost: printed by all commands with --dry-run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mesa_llm.cli.command import say
from mesa_llm.model.cost_estimate import CAVEAT, IN_BATCHES, RANDOM_CAVEAT, Cost, CostEstimate, estimate_cost
from mesa_llm.model.model import LLMModel
from mesa_llm.text import NOT_KNOWN, counted, table

COLUMNS = ("requests", "prompt tokens", "reply tokens", "at most", "$", "at most")
"""Columns of a cost."""

N_ESTIMATED = 4
"""Maximum number of settings whose cost is estimated; the others are taken to cost as much on average."""

OF_ONE_SEED = "The estimate takes the runs of one seed, multiplied by the number of seeds."
"""What the estimate of several seeds leaves out besides that of a run."""


def print_estimate(
    name: str,
    kind: type[LLMModel],
    arguments: Mapping[str, Any],
    steps: int | None,
    interventions: Sequence[tuple[int, Any]],
    *,
    as_json: bool,
) -> None:
    """Print what a run would cost, without sending a request.

    Args:
        name: Name of the model.
        kind: The model's class.
        arguments: Arguments of the run.
        steps: Maximum number of steps; None: until the model ends by itself.
        interventions: Pairs of a step and an intervention before it.
        as_json: Whether to print one line of JSON, and nothing else.
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
    cost: Cost,
    unpriced: Sequence[str],
    *,
    llm: object,
    n_seeds: int,
    is_batch: bool,
    as_json: bool,
    fewest: tuple[int, Cost] | None = None,
    power: str = "",
) -> None:
    """Print what the runs of several seeds would cost, of which those of one were estimated.

    Args:
        cost: Cost of all of them.
        unpriced: Language models without a known price.
        llm: Language model of the agents.
        n_seeds: Number of seeds.
        is_batch: Whether requests are sent in batches.
        as_json: Whether to print one line of JSON, and nothing else.
        fewest: Number of seeds with which it may end, and their cost; None: it takes all.
        power: What so many seeds find; empty: not known.
    """
    note = f"{caveat(is_batch, RANDOM_CAVEAT)} {OF_ONE_SEED}"
    if as_json:
        first = {} if fewest is None else {"first_look": {"seeds": fewest[0], **asdict(fewest[1])}}
        say(
            json.dumps(
                {
                    **first,
                    "total": {"seeds": n_seeds, **asdict(cost)},
                    **({"power": power} if power else {}),
                    "note": note,
                }
            )
        )
        return
    if not cost.requests:
        say(f"{llm} costs nothing")
    else:
        for line in cost_table(("seeds",), [*([] if fewest is None else [fewest]), (n_seeds, cost)]):
            say(line)
        say(f"\n{note}")
    if power:
        say(power)
    if cost.requests and unpriced:
        say(f"litellm has no price for {', '.join(unpriced)}.")


def print_cost_of_runs(
    name: str,
    kind: type[LLMModel],
    settings: Sequence[Mapping[str, Any]],
    n_runs: int,
    steps: int | None,
    arguments: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print what many runs would cost, from the mean of some.

    Args:
        name: Name of the model.
        kind: The model's class.
        settings: Parameters of the runs that are estimated.
        n_runs: Number of all runs.
        steps: Maximum number of steps; None: until the model ends by itself.
        arguments: Arguments of all runs.
        as_json: Whether to print one line of JSON, and nothing else.
    """
    estimates = [estimate_cost(kind, steps, **{**arguments, **setting}) for setting in settings]
    total = _times(sum((one.total for one in estimates), Cost()), n_runs / len(estimates))
    unpriced = tuple(dict.fromkeys(llm for one in estimates for llm in one.unpriced))
    how = f"The estimate takes the mean of {counted(len(estimates), 'run')}, multiplied by the number of runs."
    if as_json:
        note = f"{caveat(arguments.get('batch'))} {how}"
        figures = {"model": name, "dry_run": True, "runs": n_runs, "total": asdict(total)}
        say(json.dumps({**figures, "unpriced": list(unpriced), "note": note}))
        return
    if not total.requests:
        say(f"{name}: {counted(n_runs, 'run')}, which ask no language model and cost nothing.")
        return
    for line in cost_table(("model", "runs"), [(name, n_runs, total)]):
        say(line)
    steps_done, decisions = sum(one.steps for one in estimates), sum(one.decisions for one in estimates)
    for line in remarks(CostEstimate(steps_done, decisions, {"all": total}, unpriced), arguments, "this experiment"):
        say(line)
    say(how)


def _times(cost: Cost, factor: float) -> Cost:
    """Multiply a cost; counts are rounded, and an unknown price stays unknown."""
    counts = (cost.requests, cost.prompt_tokens, cost.reply_tokens, cost.max_reply_tokens)
    prices = (None if one is None else one * factor for one in (cost.dollars, cost.max_dollars))
    return Cost(*(round(count * factor) for count in counts), *prices)


def runs_text(found: Any, files: str) -> str:
    """Describe how many runs an experiment made, what they cost, and where its results are.

    Args:
        found: Findings with `n_runs`, `n_done`, `tokens` and `dollars`.
        files: Names of the files.
    """
    cost = f", {found.tokens} tokens, ${found.dollars:.4f}" if found.tokens else ""
    return f"\n{counted(found.n_runs, 'run')}, {found.n_done} of them new{cost}: {files}"


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
