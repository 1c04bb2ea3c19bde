"""Transfer memories from one run to another, shortened or turned into placebos.

A placebo has the length of a memory without its meaning. It separates the effect of any long text on an agent from the
effect of the content of the memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError
from mesa_llm.memory.entry import EntryMemory, Memory, MemoryEntry, SavedMemory, estimate_tokens
from mesa_llm.memory.factory import KINDS, memory_from_json, past_memory
from mesa_llm.memory.stream import StreamMemory
from mesa_llm.records import ChatMessage
from mesa_llm.tools.tool import describe

Use = Literal["replace", "merge", "readonly"]
"""How an agent takes over a memory from another life: instead of its own (`replace`); before its own and within its
bounds (`merge`); or instead of its own and without adding entries (`readonly`)."""


class AgentMemory(BaseModel):
    """The memory of an agent and the steps it covers."""

    model_config = ConfigDict(extra="forbid")

    agent: int
    """Mesa `unique_id` in the run."""

    name: str
    """Name of the agent; empty if it has none."""

    first_step: int | None
    """Step of the oldest entry; None without entries."""

    last_step: int | None
    """Step of the newest entry; None without entries."""

    memory: dict[str, Any]
    """The memory, as returned by its `to_json`."""


class SavedMemories(BaseModel):
    """The memories of all agents of a run, for saving to a file.

        lives = saved_memories(model)
        lives.write("town.json")
        import_memory(agent, SavedMemories.read("town.json").lives[0].memory, "readonly")

    Equal memories give equal files.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """Version of this form."""

    model: str
    """Class of the model, as `module:qualname`."""

    run: str
    """Digest of the run."""

    seed: int
    """Seed of the run."""

    steps: int
    """Number of steps of the run."""

    lives: list[AgentMemory]
    """The agents, in order of their `unique_id`."""

    def text(self) -> str:
        """Return the text of the file."""
        return canonical_json(self.model_dump(mode="json")) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the file.

        Raises:
            OSError: If it cannot be written.
        """
        Path(path).write_text(self.text(), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> SavedMemories:
        """Read a file that `write` wrote, and check each memory.

        Raises:
            ConfigError: If it cannot be read, or is of another form.
        """
        try:
            lives = cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise ConfigError(f"{str(path)!r} cannot be read: {error}") from None
        except ValidationError as error:
            raise ConfigError(f"{str(path)!r} holds no saved memories of version 1: {describe(error)}") from None
        for life in lives.lives:
            SavedMemory.read(life.memory)
        return lives


def saved_memories(model: Any) -> SavedMemories:
    """Collect the memories of all LLM agents of a model, with the identity of the run.

    Args:
        model: An `LLMModel`.
    """
    kind = type(model)
    llm_agents = [agent for agent in model.agents if getattr(agent, "is_minded", False)]
    return SavedMemories(
        model=f"{kind.__module__}:{kind.__qualname__}",
        run=model.runlog.digest,
        seed=model.run_seed,
        steps=int(model.time),
        lives=[_saved_life(agent) for agent in sorted(llm_agents, key=lambda agent: agent.unique_id)],
    )


def _saved_life(agent: Any) -> AgentMemory:
    memory: dict[str, Any] = agent.memory.to_json()
    steps = [entry.time for entry in SavedMemory.read(memory).entries]
    ends = (min(steps), max(steps)) if steps else (None, None)
    return AgentMemory(
        agent=agent.unique_id, name=agent.config.name, first_step=ends[0], last_step=ends[1], memory=memory
    )


class ReadOnlyMemory:
    """A memory that never changes."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        """Wrap a memory.

        Args:
            memory: The memory.
        """
        self._memory = memory

    def add(self, entry: MemoryEntry) -> None:
        """Store nothing."""

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return recalled memories without changing the memory."""
        return self._memory.recall(cue, time, aside=True)

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the earlier conversation."""
        return self._memory.messages()

    def summary_request(self) -> str | None:
        """Return None: nothing is about to be forgotten."""
        return None

    def keep_summary(self, text: str) -> None:
        """Store nothing."""

    def to_json(self) -> dict[str, Any]:
        """Return the memory as JSON values."""
        return self._memory.to_json()


def import_memory(agent: Any, saved: Mapping[str, Any], use: Use = "replace") -> None:
    """Load the memory of another life into an agent.

    Args:
        agent: The agent.
        saved: A memory, as returned by `to_json`.
        use: How the agent takes it over.

    Raises:
        ConfigError: If `saved` is not a saved memory, the agent's own is of an unknown kind and cannot be merged, or
            `use` is none of the three.
    """
    match use:
        case "replace":
            agent.memory = past_memory(saved)
        case "readonly":
            agent.memory = ReadOnlyMemory(past_memory(saved))
        case "merge":
            past = _with_summary_first(SavedMemory.read(past_memory(saved).to_json()))
            own = SavedMemory.read(agent.memory.to_json())
            is_stream = issubclass(KINDS.get(own.kind, EntryMemory), StreamMemory)
            accessed = [*(entry.time for entry in past), *own.accessed] if is_stream else []
            embedder = agent.memory.embedder if isinstance(agent.memory, StreamMemory) else None
            agent.memory = memory_from_json(_dumped(own, [*past, *own.entries], accessed), embedder)
        case _:
            raise ConfigError(f"use must be 'replace', 'merge' or 'readonly', got {use!r}")


def _with_summary_first(form: SavedMemory) -> list[MemoryEntry]:
    """Return the entries of a past memory, preceded by its running summary, if any."""
    if not form.summary:
        return form.entries
    oldest = next(iter(form.entries), MemoryEntry(0, "insight", form.summary, is_past=True))
    return [replace(oldest, kind="insight", text=form.summary, because=()), *form.entries]


def within_tokens(saved: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """Return a memory with only its newest entries that fit into a number of tokens.

    Args:
        saved: A memory, as returned by `to_json`. A running summary is kept and does not count.
        max_tokens: Maximum number of tokens of the entries' texts, estimated at four characters each.

    Raises:
        ConfigError: If it is not a saved memory.
    """
    form = SavedMemory.read(saved)
    entries: list[MemoryEntry] = []
    for entry in reversed(form.entries):
        max_tokens -= estimate_tokens(entry.text)
        if max_tokens < 0:
            break
        entries.append(entry)
    return _dumped(form, entries[::-1], form.accessed[len(form.accessed) - len(entries) :] if form.accessed else [])


def scrambled(saved: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a memory whose words are shuffled across all entries and the running summary.

    Each text keeps its number of words and its whitespace, and the memory keeps its number of characters.

    Args:
        saved: A memory, as returned by `to_json`.
        rng: Source of random draws.

    Raises:
        ConfigError: If it is not a saved memory.
    """
    form = SavedMemory.read(saved)
    texts = _texts(form)
    words = [word for text in texts for word in text.split()]
    rng.shuffle(words)
    order = iter(words)
    return _with_texts(form, [re.sub(r"\S+", lambda _: next(order), text) for text in texts])


def neutral(saved: Mapping[str, Any], sentences: Sequence[str]) -> dict[str, Any]:
    """Return a memory whose entries and running summary are replaced by neutral text of equal length.

    Args:
        saved: A memory, as returned by `to_json`.
        sentences: Sentences of the neutral text, used in order and repeated.

    Raises:
        ConfigError: If it is not a saved memory, or the sentences have no text.
    """
    form = SavedMemory.read(saved)
    source = endless(sentences)
    return _with_texts(form, [filler(len(text), source) for text in _texts(form)])


def filler(length: int, source: Iterator[str]) -> str:
    """Take the next characters of an endless text, stripped and padded with full stops.

    Args:
        length: Number of characters.
        source: Characters from `endless`.
    """
    text = "".join(next(source) for _ in range(length))
    inner = text.strip()
    return inner if len(inner) == length else f"{inner}{'.' * (length - len(inner))}"


def endless(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the characters of some sentences in an endless cycle.

    Args:
        sentences: The sentences.

    Raises:
        ConfigError: If they have no text.
    """
    text = " ".join(sentences).strip()
    if not text:
        raise ConfigError("a neutral memory needs sentences, and there are none")
    return cycle(f"{text} ")


def _texts(form: SavedMemory) -> list[str]:
    """Return the texts of a memory: those of its entries, and its summary."""
    return [*(entry.text for entry in form.entries), form.summary]


def _with_texts(form: SavedMemory, texts: Sequence[str]) -> dict[str, Any]:
    """Return a memory with its texts replaced, in the order of `_texts`."""
    *entry_texts, summary = texts
    entries = [replace(entry, text=text) for entry, text in zip(form.entries, entry_texts, strict=True)]
    return _dumped(form.model_copy(update={"summary": summary}), entries, form.accessed)


def _dumped(form: SavedMemory, entries: Sequence[MemoryEntry], accessed: Sequence[int]) -> dict[str, Any]:
    """Return a memory with its entries replaced, as JSON values."""
    changed = form.model_copy(update={"entries": list(entries), "accessed": list(accessed)})
    return changed.model_dump(mode="json", exclude_defaults=True) | {"version": 1}
