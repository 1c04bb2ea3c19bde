"""Calibrations and sensitivity analyses on the command line: ranges from strings, their cost, and what they found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mesa_llm.cli.command import Say
from mesa_llm.cli.cost import caveat, cost_table, remarks
from mesa_llm.cli.study import PLOTS
from mesa_llm.errors import ConfigError
from mesa_llm.experiments.calibration import calibration, sensitivity
from mesa_llm.experiments.calibration.ranges import Ends, ranges_of, settings_of
from mesa_llm.experiments.calibration.target import read_target
from mesa_llm.model.cost_estimate import Cost, CostEstimate, estimate_cost
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted

N_ESTIMATED = 4
"""Maximum number of points whose cost is estimated; the others are taken to cost as much on average."""


def ranges_in(kind: type[LLMModel], typed: Sequence[str], option: str) -> dict[str, Ends]:
    """Read ranges of parameters.

    Args:
        kind: The model's class.
        typed: Each `name=low:high`.
        option: Option that they belong to, for errors.

    Raises:
        ConfigError: If one is not such a text, a name is unknown or typed twice, or a range is invalid.
    """
    ends: dict[str, Ends] = {}
    for pair in typed:
        name, _, text = (part.strip() for part in pair.partition("="))
        low, _, high = text.partition(":")
        name = name.replace("-", "_")
        try:
            one = float(low), float(high)
        except ValueError:
            raise ConfigError(f"{option} {pair}: expected name=low:high, such as gain=0:1") from None
        if name in ends:
            raise ConfigError(f"{option} {pair}: {name} is given twice; give it one range")
        ends[name] = one
    try:
        ranges_of(kind, ends)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from None
    return ends


def run_calibration(
    kind: type[LLMModel], target: Path, ranges: Mapping[str, Ends], *, say: Say, as_json: bool, **options: Any
) -> None:
    """Calibrate a model, and print what was found.

    Args:
        kind: The model's class.
        target: File with the observed series.
        ranges: Ranges of the parameters.
        say: Prints a line.
        as_json: Whether to print one line of JSON at the end, and nothing else.
        **options: As for `mesa_llm.experiments.calibrate`.

    Raises:
        ConfigError: If it cannot be made.
        BudgetExceeded: If the budget ended it.
        MesaLLMError: If runs failed.
    """
    with tqdm(unit="run", disable=as_json or None, dynamic_ncols=True) as bar:
        found = calibration.calibrate(kind, target, ranges, on_run=lambda row: bar.update(), **options)
    folder = Path(options["folder"])
    if as_json:
        say(json.dumps(found.summary() | {"out": str(folder)}))
        return
    say(found.text())
    files = f"{folder / calibration.RESULTS}, {folder / calibration.DRAWS}"
    say(_cost_text(found.n_runs, found.n_done, found.tokens, found.dollars, files))


def run_sensitivity(
    kind: type[LLMModel],
    ranges: Mapping[str, Ends],
    *,
    plot: Path | None,
    say: Say,
    as_json: bool,
    **options: Any,
) -> None:
    """Analyse the sensitivity of a model, and print the indices.

    Args:
        kind: The model's class.
        ranges: Ranges of the parameters.
        plot: File for the bar chart; None: none.
        say: Prints a line.
        as_json: Whether to print one line of JSON at the end, and nothing else.
        **options: As for `mesa_llm.experiments.sensitivity`.

    Raises:
        ConfigError: If it cannot be made, or the chart cannot be written.
        BudgetExceeded: If the budget ended it.
        MesaLLMError: If runs failed.
    """
    if plot is not None and (plot.suffix.lower() not in PLOTS or not plot.absolute().parent.is_dir()):
        raise ConfigError(f"--plot {plot}: expected a name ending in {', '.join(PLOTS)}, in an existing folder")
    with tqdm(unit="run", disable=as_json or None, dynamic_ncols=True) as bar:
        found = sensitivity.sensitivity(kind, ranges, on_run=lambda row: bar.update(), **options)
    folder = Path(options["folder"])
    if plot is not None:
        try:
            found.draw().savefig(plot)
        except OSError as error:
            raise ConfigError(f"--plot {plot}: it cannot be written: {error.strerror}") from error
    if as_json:
        say(json.dumps(found.summary() | {"out": str(folder)}))
        return
    say(found.text())
    files = ", ".join(map(str, (folder / sensitivity.TABLE, *([] if plot is None else [plot]))))
    say(_cost_text(found.n_runs, found.n_done, found.tokens, found.dollars, files))


def _cost_text(n_runs: int, n_done: int, tokens: int, dollars: float, files: str) -> str:
    cost = f", {tokens} tokens, ${dollars:.4f}" if tokens else ""
    return f"\n{counted(n_runs, 'run')}, {n_done} of them new{cost}: {files}"


def print_calibration_cost(
    name: str,
    kind: type[LLMModel],
    target: Path,
    ranges: Mapping[str, Ends],
    arguments: Mapping[str, Any],
    *,
    points: int,
    seeds: int,
    search: int,
    hold_out: float,
    rng: int,
    say: Say,
    as_json: bool,
) -> None:
    """Print what a calibration would cost, without sending a request.

    Args:
        name: Name of the model.
        kind: The model's class.
        target: File with the observed series.
        ranges: Ranges of the parameters.
        arguments: Arguments of all runs.
        points, seeds, search, hold_out, rng: As for `calibrate`.
        say: Prints a line.
        as_json: Whether to print one line of JSON, and nothing else.
    """
    steps = read_target(target, hold_out).steps[-1]
    spaces = ranges_of(kind, ranges)
    settings = settings_of(spaces, calibration.prior_points(spaces, N_ESTIMATED, rng))
    n_runs = calibration.n_runs_of(points, seeds, search)
    print_cost_of_runs(name, kind, settings, n_runs, steps, {**arguments, "rng": rng}, say=say, as_json=as_json)


def print_sensitivity_cost(
    name: str,
    kind: type[LLMModel],
    ranges: Mapping[str, Ends],
    arguments: Mapping[str, Any],
    *,
    method: sensitivity.Method,
    points: int | None,
    seeds: int,
    steps: int | None,
    rng: int,
    say: Say,
    as_json: bool,
) -> None:
    """Print what a sensitivity analysis would cost, without sending a request.

    Args:
        name: Name of the model.
        kind: The model's class.
        ranges: Ranges of the parameters.
        arguments: Arguments of all runs.
        method, points, seeds, steps, rng: As for `sensitivity`.
        say: Prints a line.
        as_json: Whether to print one line of JSON, and nothing else.
    """
    spaces = ranges_of(kind, ranges)
    different = sensitivity.different_settings(spaces, sensitivity.sample_points(spaces, method, points, rng))
    some = different[:: max(1, len(different) // N_ESTIMATED)][:N_ESTIMATED]
    n_runs = len(different) * seeds
    print_cost_of_runs(name, kind, some, n_runs, steps, {**arguments, "rng": rng}, say=say, as_json=as_json)


def print_cost_of_runs(
    name: str,
    kind: type[LLMModel],
    settings: Sequence[Mapping[str, Any]],
    n_runs: int,
    steps: int | None,
    arguments: Mapping[str, Any],
    *,
    say: Say,
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
        say: Prints a line.
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
