"""Sweeps on the command line: values from strings, a progress bar, a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mesa_llm.agents.design import AgentDesign
from mesa_llm.cli.arguments import parameters
from mesa_llm.cli.command import Say
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.runs.sweep import TABLE, sweep
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted


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


def print_sweep(
    kind: type[LLMModel],
    vary: Mapping[str, Sequence[Any]],
    designs: Mapping[str, AgentDesign | None],
    *,
    say: Say,
    as_json: bool,
    folder: Path,
    **options: Any,
) -> None:
    """Run a sweep, and print its result.

    Args:
        kind: The model's class.
        vary: Parameter → its values.
        designs: Designs by name; none: the model's own.
        say: Prints a line.
        as_json: Whether to print one line of JSON at the end, and nothing else.
        folder: Folder of the table and the logs.
        **options: As for `mesa_llm.experiments.sweep`.

    Raises:
        ConfigError: If it cannot be made.
        BudgetExceeded: If the budget ended it.
        KeyboardInterrupt: On Ctrl-C, after the JSON, which then counts the finished runs.
        MesaLLMError: If runs failed; the table holds the others.
    """
    table, rows = str(folder / TABLE), list[Mapping[str, Any]]()
    options |= {"on_run": rows.append, "progress": False if as_json else None}
    try:
        result = sweep(kind, vary, designs=designs, folder=folder, **options)
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
    if result.error is not None:
        raise result.error
    if result.n_failed:
        first = result.table.loc[result.table["error"] != "", "error"].iloc[0]
        raise MesaLLMError(f"{counted(result.n_failed, 'run')} failed. The first one: {str(first)[:300]}")
