"""Lives: memories that are carried from one run into another, cut to size, and changed into placebos.

A placebo has the length of the memory that it stands for and lacks its sense, so that what a long text does to an agent
can be told from what this text does.
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
from mesa_llm.memory.component import KINDS, memory_from_json, past_memory
from mesa_llm.memory.entry import Memory, MemoryEntry, SavedMemory, estimate_tokens
from mesa_llm.memory.stream import StreamMemory
from mesa_llm.records import ChatMessage
from mesa_llm.tools.tool import describe

Use = Literal["replace", "merge", "readonly"]
"""How a memory of another life is taken over: in place of the agent's own; as the beginning of its own, within the
bounds of that; or in place of it, and nothing is added any more."""


class SavedLife(BaseModel):
    """The memory of one agent, and where it comes from."""

    model_config = ConfigDict(extra="forbid")

    agent: int
    """Mesa `unique_id` in the run."""

    name: str
    """Name of the agent; empty: none."""

    first_step: int | None
    """Step of the oldest entry; None without entries."""

    last_step: int | None
    """Step of the newest entry."""

    memory: dict[str, Any]
    """The memory, as its `to_json` gives it."""


class SavedLives(BaseModel):
    """The memories of all agents of a run, as they lie in a file.

        lives = saved_lives(model)
        lives.write("town.json")
        import_memory(agent, SavedLives.read("town.json").lives[0].memory, "readonly")

    Equal lives have equal files.
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

    lives: list[SavedLife]
    """The agents, in order of their ids."""

    def text(self) -> str:
        """Return the file's text; equal lives have equal texts."""
        return canonical_json(self.model_dump(mode="json")) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.text(), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> SavedLives:
        """Read a file that `write` wrote; each memory is checked.

        Raises:
            ConfigError: If it cannot be read, or is of another form.
        """
        try:
            lives = cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise ConfigError(f"{str(path)!r} cannot be read: {error}") from None
        except ValidationError as error:
            raise ConfigError(f"{str(path)!r} holds no saved lives of version 1: {describe(error)}") from None
        for life in lives.lives:
            SavedMemory.read(life.memory)
        return lives


def saved_lives(model: Any) -> SavedLives:
    """Return the memories of all agents of a model that think, and where they come from.

    Args:
        model: An `LLMModel`.
    """
    kind = type(model)
    agents = sorted((one for one in model.agents if getattr(one, "is_minded", False)), key=lambda one: one.unique_id)
    return SavedLives(
        model=f"{kind.__module__}:{kind.__qualname__}",
        run=model.runlog.digest,
        seed=model.run_seed,
        steps=int(model.time),
        lives=list(map(_saved_life, agents)),
    )


def _saved_life(agent: Any) -> SavedLife:
    memory: dict[str, Any] = agent.memory.to_json()
    steps = [entry.time for entry in SavedMemory.read(memory).entries]
    ends = (min(steps), max(steps)) if steps else (None, None)
    return SavedLife(
        agent=agent.unique_id, name=agent.config.name, first_step=ends[0], last_step=ends[1], memory=memory
    )


class ReadOnlyMemory:
    """A memory that stays as it is: it is recalled, and nothing is added."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        """Take a memory.

        Args:
            memory: The memory.
        """
        self._memory = memory

    def add(self, entry: MemoryEntry) -> None:
        """Forget it at once."""

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return what comes to mind, and leave no trace."""
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
    """Let an agent remember another life.

    Args:
        agent: The agent.
        saved: A memory, as `to_json` gave it.
        use: How it is taken over.

    Raises:
        ConfigError: If it is no saved memory.
    """
    match use:
        case "replace":
            agent.memory = past_memory(saved)
        case "readonly":
            agent.memory = ReadOnlyMemory(past_memory(saved))
        case "merge":
            past = SavedMemory.read(past_memory(saved).to_json()).entries
            own = SavedMemory.read(agent.memory.to_json())
            is_stream = issubclass(KINDS[own.kind], StreamMemory)
            accessed = [*(entry.time for entry in past), *own.accessed] if is_stream else []
            agent.memory = memory_from_json(_dumped(own, [*past, *own.entries], accessed))


def within_tokens(saved: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
    """Return the newest entries of a memory that fit into a number of tokens.

    Args:
        saved: A memory, as `to_json` gave it.
        max_tokens: Maximum number of tokens of the entries' texts, estimated at four characters each.

    Raises:
        ConfigError: If it is no saved memory.
    """
    form = SavedMemory.read(saved)
    kept: list[MemoryEntry] = []
    for entry in reversed(form.entries):
        max_tokens -= estimate_tokens(entry.text)
        if max_tokens < 0:
            break
        kept.append(entry)
    return _dumped(form, kept[::-1], form.accessed[len(form.accessed) - len(kept) :] if form.accessed else [])


def scrambled(saved: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a memory of the same words in an order without sense, drawn over all entries.

    Each entry keeps its number of words and the blanks between them, and the whole its number of characters.

    Args:
        saved: A memory, as `to_json` gave it.
        rng: Source of the order.
    """
    form = SavedMemory.read(saved)
    words = [word for entry in form.entries for word in entry.text.split()]
    rng.shuffle(words)
    order = iter(words)
    return _with_texts(form, [re.sub(r"\S+", lambda _: next(order), entry.text) for entry in form.entries])


def neutral(saved: Mapping[str, Any], sentences: Sequence[str]) -> dict[str, Any]:
    """Return a memory in which each entry is neutral text of the same number of characters.

    Args:
        saved: A memory, as `to_json` gave it.
        sentences: Sentences of the neutral text, used in order, and again from the first.

    Raises:
        ConfigError: If there is no text.
    """
    form = SavedMemory.read(saved)
    source = endless(sentences)
    return _with_texts(form, [filler(len(entry.text), source) for entry in form.entries])


def filler(length: int, source: Iterator[str]) -> str:
    """Return the next characters of a text without end, blanks at the ends replaced by full stops.

    Args:
        length: Number of characters.
        source: The characters, see `endless`.
    """
    text = "".join(next(source) for _ in range(length))
    inner = text.strip()
    return inner if len(inner) == length else f"{inner}{'.' * (length - len(inner))}"


def endless(sentences: Sequence[str]) -> Iterator[str]:
    """Return the characters of some sentences, one after another, again and again.

    Args:
        sentences: The sentences.

    Raises:
        ConfigError: If they have no text.
    """
    text = " ".join(sentences).strip()
    if not text:
        raise ConfigError("a neutral memory needs sentences to be made of, and there are none")
    return cycle(f"{text} ")


def _with_texts(form: SavedMemory, texts: Sequence[str]) -> dict[str, Any]:
    pairs = zip(form.entries, texts, strict=True)
    entries = [replace(entry, text=text) for entry, text in pairs]
    return _dumped(form, entries, form.accessed)


def _dumped(form: SavedMemory, entries: Sequence[MemoryEntry], accessed: Sequence[int]) -> dict[str, Any]:
    changed = form.model_copy(update={"entries": list(entries), "accessed": list(accessed)})
    return changed.model_dump(mode="json", exclude_defaults=True) | {"version": 1}
