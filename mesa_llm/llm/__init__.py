"""The way to a language model: one string names it, one method asks it."""

from __future__ import annotations

from pathlib import Path

from mesa_llm.llm.base import LLM


def open_simple(text: str) -> LLM | None:
    """Open what needs no endpoint: `random`, `human`, `local`, `local:FILE.gguf`; None for any other name."""
    name = text.strip()
    if name in {"random", "human"}:
        from mesa_llm.llm import simple

        return simple.RandomLLM() if name == "random" else simple.TerminalHuman()
    if name == "local" or name.startswith("local:"):
        from mesa_llm.llm.local import LocalLLM

        return LocalLLM(Path(name.removeprefix("local:")).expanduser() if name != "local" else None)
    return None
