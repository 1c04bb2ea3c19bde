"""Looks into run logs, and into what is installed."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.runlog import RunLog
from mesa_llm.versions import PACKAGES, versions

if TYPE_CHECKING:
    import pandas as pd

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


def tables(file: Path, wanted: Sequence[str], agent: int | None, *, csv: bool) -> Iterator[str]:
    """Give tables of a run log as text.

    Args:
        file: The run log.
        wanted: Names of tables, or `usage`; empty: the manifest.
        agent: Only rows of this agent.
        csv: As comma-separated values, whole; else cut to what a terminal shows.

    Raises:
        ConfigError: If the file is no run log.
    """
    log = RunLog(file, "read")
    try:
        if not wanted:
            yield "\n".join(f"{name}: {value}" for name, value in log.manifest.items())
        for name in wanted:
            table: pd.DataFrame = usage(log, agent) if name == "usage" else _of(agent, log.table(name))
            yield table.to_csv(index=False).rstrip("\n") if csv else _for_terminal(name, table)
    finally:
        log.close()


def usage(log: RunLog, agent: int | None = None) -> pd.DataFrame:
    """Sum what a run used, one row a model: calls, failed, tokens, dollars, seconds.

    Args:
        log: The run log.
        agent: Only what this agent used.
    """
    calls = _of(agent, log.calls())
    sums: dict[str, Any] = {
        "calls": ("key", "count"),
        "failed": ("error_kind", "count"),
        "prompt_tokens": ("prompt_tokens", "sum"),
        "reply_tokens": ("reply_tokens", "sum"),
        "dollars": ("dollars", "sum"),
        "mean_latency_s": ("latency_s", "mean"),
    }
    return calls.groupby("model").agg(**sums).reset_index()


def _of(agent: int | None, table: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of one agent, where a table has any; None: all."""
    return table if agent is None or "agent" not in table.columns else table.loc[table["agent"] == agent]


def _for_terminal(name: str, table: pd.DataFrame) -> str:
    shown = table.drop(columns=["key", "keys", "asked", "options"], errors="ignore")
    return f"{name} ({len(table)} rows)\n" + shown.to_string(index=False, max_colwidth=60)


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
