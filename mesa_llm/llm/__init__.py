"""The way to a language model: one string names it, one method asks it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mesa_llm.errors import ConfigError
from mesa_llm.llm.base import LLM

OLLAMA = "http://localhost:11434/v1"
"""Where Ollama answers unless `OLLAMA_API_BASE` says otherwise."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked, and how long to wait for it."""

    api_base: str | None = None
    """Base URL of an OpenAI-compatible endpoint, up to and without `/chat/completions`."""

    api_key: str | None = None
    """Key for it; None: from the environment. Never written anywhere."""

    timeout_s: float = 60.0
    """Seconds until a request is given up."""


def open_llm(spec: str, endpoint: Endpoint | None = None) -> LLM:
    """Open the transport that a model string names.

    Args:
        spec: `random`, `human`, `local`, `ollama/NAME`, or any litellm id; with an `api_base`, any name the
            endpoint knows. (`rule` needs no transport: the agent's own rule twin decides.)
        endpoint: Where to ask.

    Raises:
        ConfigError: If the string names nothing, or a package it needs is not installed.
    """
    endpoint = endpoint or Endpoint()
    name = spec.strip()
    if not name:
        raise ConfigError("llm= is empty; use 'rule', 'random', 'human', 'local', or a model such as 'ollama/qwen3'")
    if name in {"random", "human"}:
        from mesa_llm.llm import simple

        return simple.RandomLLM() if name == "random" else simple.TerminalHuman()
    if name == "local":
        from mesa_llm.llm.local import LocalLLM

        return LocalLLM()
    if name == "rule":
        raise ConfigError("'rule' is the agent's own rule twin and has no transport")
    return _open_remote(name, endpoint)


def _open_remote(name: str, endpoint: Endpoint) -> LLM:
    from mesa_llm.llm.openai_http import OpenAIHTTP

    base = endpoint.api_base
    if name.startswith("ollama/") and base is None:
        base = os.environ.get("OLLAMA_API_BASE", OLLAMA)
    if base is not None:
        model = name.removeprefix("ollama/").removeprefix("openai/")
        key = endpoint.api_key or os.environ.get("MESA_LLM_API_KEY")
        if key is None and name.startswith("openai/"):  # any other endpoint must not be sent OpenAI's key
            key = os.environ.get("OPENAI_API_KEY")
        return OpenAIHTTP(model, base, key, timeout_s=endpoint.timeout_s)
    from mesa_llm.llm.litellm import LiteLLM

    return LiteLLM(name, api_key=endpoint.api_key, timeout_s=endpoint.timeout_s)
