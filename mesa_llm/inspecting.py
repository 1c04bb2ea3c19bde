"""Looks into run logs, and into what is installed."""

from __future__ import annotations

import csv as csv_module
import io
import os
import re
import time as clock
from collections.abc import Iterator, Sequence
from itertools import batched, chain
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.runlog import RunLog
from mesa_llm.runlog_tables import columns
from mesa_llm.salvage import salvage
from mesa_llm.versions import PACKAGES, versions
from mesa_llm.wording import counted, printable

PROVIDER_KEYS = {
    "OpenAI": "OPENAI_API_KEY",
    "Anthropic": "ANTHROPIC_API_KEY",
    "Google Gemini": "GEMINI_API_KEY",
    "Mistral": "MISTRAL_API_KEY",
    "Groq": "GROQ_API_KEY",
    "DeepSeek": "DEEPSEEK_API_KEY",
    "OpenRouter": "OPENROUTER_API_KEY",
    "Together": "TOGETHERAI_API_KEY",
    "Azure": "AZURE_API_KEY",
    "own endpoint": "MESA_LLM_API_KEY",
}
"""Environment variables that hold providers' keys; only their names are ever shown."""

PAGE = 500
"""Number of rows that are written at once."""

CELL = 60
"""Maximum number of characters of a cell in a terminal."""

UNSHOWN = frozenset({"key", "keys", "asked", "options"})
"""Columns that are for machines: `--csv` has them."""

_USED = ("calls", "failed", "prompt_tokens", "reply_tokens", "dollars", "mean_latency_s")

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def tables(file: Path, wanted: Sequence[str], agent: int | None, *, csv: bool) -> Iterator[str]:
    """Write tables of a run log as text, a piece at a time, however large they are.

    Args:
        file: The run log.
        wanted: Names of tables, or `usage`; empty: the manifest.
        agent: Only rows of this agent.
        csv: As comma-separated values, whole; else cut to what a terminal shows.

    Raises:
        ConfigError: If the file is no run log, or is damaged.
    """
    log = RunLog(file, "read")
    try:
        if not wanted:
            yield "\n".join(printable(f"{name}: {value}").replace("\n", "\\n") for name, value in log.manifest.items())
        for name in wanted:
            if name == "usage":
                names: list[str] = ["model", *_USED]
                rows: Iterator[Sequence[Any]] = iter(log.usage(agent).itertuples(index=False, name=None))
            else:
                names, rows = columns()[name], log.rows(name, agent)
            yield from _as_csv(names, rows) if csv else _for_terminal(name, names, rows)
    finally:
        log.close()


def _as_csv(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    """Write rows as comma-separated values; no spreadsheet takes a text for a formula."""
    for chunk in chain([[names]], batched(rows, PAGE)):
        lines = io.StringIO()
        writer = csv_module.writer(lines, lineterminator="\n")
        writer.writerows([_harmless(value) for value in row] for row in chunk)
        yield lines.getvalue().rstrip("\n")


def _harmless(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) and not _NUMBER.fullmatch(text) else text


def _for_terminal(name: str, names: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    """Write rows in columns as wide as the first page of them needs."""
    shown = [index for index, column in enumerate(names) if column not in UNSHOWN]
    widths: list[int] = []
    count = 0
    yield name
    for page in batched(rows, PAGE):
        lines = [[_cell(row[index]) for index in shown] for row in page]
        if not widths:
            lines.insert(0, [names[index] for index in shown])
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        count += len(page)
        padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
        yield "\n".join("  ".join(line).rstrip() for line in padded)
    yield f"({counted(count, 'row')})"


def _cell(value: Any) -> str:
    """Write a value on one line of a terminal."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = printable(text[: CELL + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def salvaged(file: Path, new: Path) -> Iterator[str]:
    """Read what can be read of a damaged log into a new file, and write a line about each table.

    Args:
        file: The damaged run log.
        new: The file to make.

    Raises:
        ConfigError: If the new file exists already, or nothing can be read.
    """
    results = salvage(file, new)
    for result in results:
        more = "" if result.is_whole else ", and perhaps more"
        yield f"{result.table}: {counted(result.kept, 'row')} kept, {result.lost} lost{more}"
    kept = {result.table: result.kept for result in results}
    if not kept["manifest"]:
        yield "what the run was is lost: its replies can be looked at, but the run cannot be gone on with"
    yield f"salvaged into {new}; the same run with --log {new} uses the replies that were kept, and asks for the rest"


def check_up() -> Iterator[str]:
    """Say line by line what is installed, which providers have keys, and whether the embedded model answers."""
    found = versions()
    yield f"python {found['python']}"
    for package in PACKAGES:
        yield f"{package} {found.get(package, 'not installed')}"
    for provider, variable in PROVIDER_KEYS.items():
        yield f"{provider}: {variable} is {'set' if os.environ.get(variable) else 'not set'}"
    yield _embedded()


def _embedded() -> str:
    from mesa_llm.llm.local import LocalLLM
    from mesa_llm.loop import submit
    from mesa_llm.records import ChatMessage, Request, Salt

    request = Request(
        "local", (ChatMessage("user", "Say hello."),), Salt(0, 0, 0, "doctor", 0), settings={"max_tokens": 12}
    )
    begun = clock.perf_counter()
    try:
        reply = submit(LocalLLM().reply(request)).result(timeout=300)
    except (ConfigError, MesaLLMError) as error:
        return f"embedded model: does not answer: {error}"
    return f"embedded model: answers in {clock.perf_counter() - begun:.1f} s: {reply.text.strip()[:60]!r}"
