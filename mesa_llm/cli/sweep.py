"""`mesa-llm sweep`: runs of all combinations, and their table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mesa_llm.cli.arguments import designs_in, llms_in, parameters
from mesa_llm.cli.command import command, model_named, say
from mesa_llm.cli.options import (
    AsJson,
    Designs,
    FirstSeed,
    Llm,
    Model,
    On,
    Out,
    Parameters,
    SharedRunFlags,
    Steps,
    Vary,
    Workers,
)
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.runs.sweep import TABLE, sweep
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted


@command("sweep")
def run_sweep(
    model: Model,
    fixed: Parameters,
    options: SharedRunFlags,
    vary: Vary = None,
    design: Designs = None,
    llm: Llm = "rule",
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs of each combination, with consecutive seeds.")] = 10,
    rng: FirstSeed = 1,
    steps: Steps = None,
    on: On = "processes",
    workers: Workers = None,
    out: Out = Path("runs", "sweep"),
    as_json: AsJson = False,
) -> None:
    """Run a model for every combination of parameters, designs, language models and seeds, and tabulate the results.

    To make only the missing runs of a sweep, run the same command again.
    """
    kind = model_named(model).load()
    table, rows = str(out / TABLE), list[Mapping[str, Any]]()
    try:
        result = sweep(
            kind,
            values_of(kind, vary or []),
            designs=designs_in(design or []),
            llm=llms_in(llm),
            seeds=range(rng, rng + seeds),
            steps=fixed.steps(steps),
            fixed=fixed.of(kind),
            on=cast("Any", on),
            workers=workers,
            folder=out,
            options=options.of_logs,
            on_run=rows.append,
            progress=False if as_json else None,
            **options.access,
        )
    except KeyboardInterrupt:
        if as_json:
            n_failed = sum(bool(row["error"]) for row in rows)
            tokens, dollars = (sum(row[name] for row in rows) for name in ("tokens_now", "dollars_now"))
            figures = {"done": len(rows), "failed": n_failed, "tokens": tokens, "dollars": round(dollars, 6)}
            say(json.dumps({**figures, "table": table, "interrupted": True}))
        raise
    figures = {"runs": result.n_runs, "done": result.n_done, "failed": result.n_failed, "tokens": result.tokens}
    figures |= {"dollars": round(result.dollars, 6), "table": table}
    if as_json:
        say(json.dumps(figures))
    else:
        cost = f", {result.tokens} tokens, ${result.dollars:.4f}" if result.tokens else ""
        say(f"{counted(result.n_runs, 'run')}, {result.n_done} of them new{cost}: {table}")
        for sentence in result.without_effect:
            say(sentence)
    if result.error is not None:
        raise result.error
    if result.n_failed:
        first = result.table.loc[result.table["error"] != "", "error"].iloc[0]
        raise MesaLLMError(f"{counted(result.n_failed, 'run')} failed. The first one: {str(first)[:300]}")


def values_of(kind: type[LLMModel], typed: Sequence[str]) -> dict[str, list[Any]]:
    """Read the values that parameters are varied over.

    Args:
        kind: The model's class.
        typed: Each `name=1,2,3`, or `name=[…]` in JSON.

    Raises:
        ConfigError: If a name is unknown, typed twice, or a value does not fit.
    """
    values: dict[str, list[Any]] = {}
    for pair in typed:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not text:
            raise ConfigError(f"--vary {pair}: expected name=value,value, such as follows=1,3,10")
        name = name.replace("-", "_")
        if name in values:
            raise ConfigError(f"--vary {pair}: {name} is given twice; give all its values at once")
        arguments = (parameters(kind, [f"{name}={one}"], None, option="--vary") for one in _values_in(pair, text))
        values[name] = [one[name] for one in arguments]
    return values


def _values_in(pair: str, text: str) -> list[str]:
    if not text.startswith("["):
        return [one.strip() for one in text.split(",") if one.strip()]
    try:
        items: list[Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--vary {pair}: this is not a JSON list: {error}") from None
    return [item if isinstance(item, str) else json.dumps(item) for item in items]
