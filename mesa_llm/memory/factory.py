"""Create memories by name or from saved ones, and attach them to agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.llm.embeddings import Embedder
from mesa_llm.memory.chat import ChatMemory
from mesa_llm.memory.entry import EntryMemory, Memory, SavedMemory
from mesa_llm.memory.reflection import ReflectiveMemory
from mesa_llm.memory.stream import StreamMemory
from mesa_llm.memory.summary import SummaryMemory
from mesa_llm.memory.window import NoMemory, WindowMemory

KINDS: dict[str, type[EntryMemory]] = {
    kind.kind: kind for kind in (NoMemory, WindowMemory, ChatMemory, StreamMemory, ReflectiveMemory, SummaryMemory)
}
"""Name → class of memory."""

MemorySpec = Memory | Callable[[], Memory] | str | None
"""Specification of an agent's memory; see `open_memory`."""


def open_memory(spec: MemorySpec = None) -> Memory:
    """Create the memory described by a specification.

    Args:
        spec: A memory, used unchanged; a class or function that creates one; a name (`none`, `window`, `chat`,
            `stream`, `reflection`, `summary`), optionally followed by its first settings (`window:30` keeps 30 entries,
            `chat:2000` keeps 2,000 tokens and `chat:2000:5` also at most 5 pairs, `stream:12` and `reflection:12`
            recall 12 entries, `reflection:12:5` reflects at a summed importance of 5, `summary:10` keeps 10 entries);
            None for a window.

    Raises:
        ConfigError: If it is none of these, the name is unknown, or a setting does not fit.
    """
    if spec is None:
        return WindowMemory()
    if isinstance(spec, str):
        kind, settings = _named_memory(spec)
        return kind(**settings)
    memory = spec() if callable(spec) else spec
    # A spec may come from an untyped notebook or a parameter file.
    if isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance]
        return memory
    raise ConfigError(f"memory must be a Memory, a function that creates one, or a name; got {memory!r}")


@lru_cache(maxsize=256)
def _named_memory(spec: str) -> tuple[type[EntryMemory], Mapping[str, Any]]:
    """Return the class and the settings of a memory by its name, optionally followed by settings after colons."""
    name, *texts = spec.split(":")
    kind = KINDS.get(name)
    if kind is None:
        raise ConfigError(f"there is no memory {name!r}; choose one of: {', '.join(KINDS)}")
    if len(texts) > len(kind.settings):
        settings = f"only {', '.join(kind.settings)}" if kind.settings else "no settings"
        raise ConfigError(f"memory {name!r} has {settings}; write {name!r}, not {spec!r}")
    for setting, text in zip(kind.settings, texts, strict=False):
        if not (text.isascii() and text.isdecimal()):
            raise ConfigError(f"{setting} in {spec!r} must be a whole number, as in '{name}:40'")
    return kind, {setting: int(text) for setting, text in zip(kind.settings, texts, strict=False)}


def memory_from_json(saved: Mapping[str, Any], embedder: Embedder | None = None) -> Memory:
    """Restore a memory saved by `to_json`; both recall the same.

    Args:
        saved: Result of `to_json`.
        embedder: Embedder of a stream memory that had its own, since embedders are not saved.

    Raises:
        ConfigError: If it is not a saved memory, or of an unknown kind.
    """
    kind = KINDS.get(SavedMemory.read(saved).kind)
    if kind is None:
        raise ConfigError(f"there is no memory {saved['kind']!r}; choose one of: {', '.join(KINDS)}")
    memory = kind.from_json(saved)
    if embedder is not None and isinstance(memory, StreamMemory):
        memory.use_embedder(embedder)
    return memory


def past_memory(saved: Mapping[str, Any]) -> Memory:
    """Restore a memory and mark its lines as coming from an earlier life and its world.

    Args:
        saved: Result of `to_json` in that life.

    Raises:
        ConfigError: If it is not a saved memory, or of an unknown kind.
    """
    form = SavedMemory.read(saved)
    entries = [replace(entry, is_past=True) for entry in form.entries]
    return memory_from_json(form.model_copy(update={"entries": entries}).model_dump(mode="json"))


class MemoryMixin:
    """Gives an agent a `memory` that persists across steps."""

    __slots__ = ()

    _memory: Memory | None = None

    first_memory: MemorySpec = None
    """Default memory, as a specification for `open_memory`; created on first use."""

    def __init__(self, *args: Any, memory: MemorySpec = None, **kwargs: Any) -> None:
        """Store the specification of the agent's memory.

        Args:
            *args: Passed on.
            memory: Specification for `open_memory`; None: `first_memory`. Agents with the same memory object share it;
                with a name or a class, each has its own.
            **kwargs: Passed on.

        Raises:
            ConfigError: If `open_memory` rejects the specification.
        """
        if memory is not None:
            self._memory = open_memory(memory)
        super().__init__(*args, **kwargs)

    @property
    def memory(self) -> Memory:
        """The agent's memory."""
        if self._memory is None:
            self._memory = open_memory(self.first_memory)
        return self._memory

    @memory.setter
    def memory(self, memory: MemorySpec) -> None:
        self._memory = open_memory(memory)
