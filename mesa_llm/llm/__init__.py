"""Language models: each is named by a string, and has one method, `reply`."""

from __future__ import annotations

from pathlib import Path

from mesa_llm.llm.protocol import LLM


def open_simple(text: str) -> LLM | None:
    """Open a transport that needs no endpoint: `random`, `human`, `local`, `local:FILE.gguf`; None for other names."""
    name = text.strip()
    if name in {"random", "human"}:
        from mesa_llm.llm import scripted

        return scripted.RandomLLM() if name == "random" else scripted.TerminalHuman()
    if name == "local" or name.startswith("local:"):
        from mesa_llm.llm.local.model import LocalLLM

        return LocalLLM(Path(name.removeprefix("local:")).expanduser() if name != "local" else None)
    return None
