"""Language models: each is named by a string, and has one method, `reply`."""

from __future__ import annotations

from mesa_llm._deprecated import keep_moved_modules
from mesa_llm.llm.protocol import LLM

keep_moved_modules(__name__)


def open_simple(text: str, *, is_silent: bool = False) -> LLM | None:
    """Open a transport that needs no endpoint: `random`, `human`, `local`, `local:1.5b`, `local:FILE.gguf`,
    `surrogate:FILE`.

    Args:
        text: Model string.
        is_silent: Whether nothing will be asked, as in a replay, so that the file of a local model need not be there.

    Returns:
        The transport; None for other names.

    Raises:
        ConfigError: If `local:` or `surrogate:` names no file.
    """
    name = text.strip()
    if name in {"random", "human"}:
        from mesa_llm.llm import scripted

        return scripted.RandomLLM() if name == "random" else scripted.TerminalHuman()
    if name == "local" or name.startswith("local:"):
        from mesa_llm.llm.local.gguf import require_model
        from mesa_llm.llm.local.model import LocalLLM
        from mesa_llm.llm.local.profile import profile_of

        profile, path = profile_of(name)
        if path is not None and not is_silent:
            require_model(path)
        return LocalLLM(path, profile)
    if name.startswith("surrogate:"):
        from mesa_llm.llm.surrogate.model import open_surrogate

        return open_surrogate(name)
    return None
