"""A memory of nothing, and a memory of the latest entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from mesa_llm.memory.entry import (
    CHARACTERS_PER_TOKEN,
    EntryMemory,
    MemoryEntry,
    SavedMemory,
    whole_number,
)

MakesEntries = Callable[[], list[MemoryEntry]]
"""Makes entries when they are needed."""

MAX_UNREAD = 60
"""Number of additions, beyond those that are kept, after which a window is settled though nobody reads it."""


class NoMemory(EntryMemory):
    """Remembers nothing: every step is like the first."""

    __slots__ = ()
    kind: ClassVar[str] = "none"

    def add(self, entry: MemoryEntry) -> None:
        """Store nothing."""

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return an empty text."""
        return ""


class WindowMemory(EntryMemory):
    """Remembers the last `k` entries that fit into a number of tokens."""

    __slots__ = ("_added", "_lines", "_n_characters", "k", "max_tokens")
    kind: ClassVar[str] = "window"
    settings: ClassVar[tuple[str, ...]] = ("k", "max_tokens")

    def __init__(self, k: int = 20, max_tokens: int = 600) -> None:
        """Create an empty memory.

        Args:
            k: Maximum number of entries kept.
            max_tokens: Maximum number of tokens recalled, estimated at four characters each; 32 or more.

        Raises:
            ConfigError: If a setting is out of range.
        """
        super().__init__()
        self.k = whole_number("k", k, 1)
        self.max_tokens = whole_number("max_tokens", max_tokens, 32)
        self._lines: list[str] = []  # the line of each entry
        self._n_characters = 0  # of all lines, line breaks included
        self._added: list[MemoryEntry | MakesEntries] = []  # since somebody last read it

    def add(self, entry: MemoryEntry | MakesEntries) -> None:
        """Add an entry; beyond `k` entries or `max_tokens`, the oldest are forgotten.

        Args:
            entry: The entry; or a function that makes several, in order, when somebody reads the memory, if they are
                not forgotten by then: what it makes must not depend on when it is called.
        """
        self._added.append(entry)
        if len(self._added) > MAX_UNREAD + self.k:
            self._settle()

    @property
    def entries(self) -> tuple[MemoryEntry, ...]:
        """The entries, in order of addition."""
        self._settle()
        return super().entries

    def saved(self) -> SavedMemory:
        """Return the saved form of the memory."""
        self._settle()
        return super().saved()

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return all entries, one line each, oldest first."""
        self._settle()
        return "\n".join(self._lines)

    def _settle(self) -> None:
        """Keep the newest entries that fit, and forget all others."""
        if not self._added:
            return
        added, self._added = self._added, []
        maximum, k = CHARACTERS_PER_TOKEN * self.max_tokens, self.k
        entries: list[MemoryEntry] = []  # newest first, as only those are written that are not forgotten at once
        lines: list[str] = []
        n_characters = 0
        for one in reversed(added):
            for entry in (one,) if isinstance(one, MemoryEntry) else reversed(one()):
                entry, line = entry.within(maximum - 1)
                if not line:
                    continue
                n_characters += len(line) + 1
                entries.append(entry)
                lines.append(line)
            if len(lines) >= k or n_characters > maximum:
                break
        self._entries += reversed(entries)
        self._lines += reversed(lines)
        self._n_characters += n_characters
        first = max(0, len(self._lines) - k)
        n_characters = self._n_characters - sum(map(len, self._lines[:first])) - first
        while n_characters > maximum:
            n_characters -= len(self._lines[first]) + 1
            first += 1
        if first:
            del self._entries[:first], self._lines[:first]
        self._n_characters = n_characters
