"""A memory of nothing, and a memory of the latest entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

    __slots__ = ("_added", "_lines", "k", "max_tokens")
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
        self._added: list[MemoryEntry | MakesEntries] = []  # since somebody last read it

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry; beyond `k` entries or `max_tokens`, the oldest are forgotten."""
        self._add(entry)

    def add_later(self, entries: MakesEntries) -> None:
        """Add entries that are written when somebody reads the memory, if they are not forgotten by then.

        Args:
            entries: Makes them, in order; what it makes must not depend on when it is called.
        """
        self._add(entries)

    def _add(self, added: MemoryEntry | MakesEntries) -> None:
        self._added.append(added)
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
        room, k = self._max_characters, self.k
        entries: list[MemoryEntry] = []
        lines: list[str] = []
        for entry in self._unread():
            line = entry.line
            room -= len(line) + 1
            if room < 0 or len(lines) == k:
                self._entries, self._lines = [], []
                break
            entries.append(entry)
            lines.append(line)
        else:
            first = max(0, len(self._lines) - k + len(lines))
            earlier = self._lines[first:]
            room -= sum(map(len, earlier)) + len(earlier)
            while room < 0:
                room += len(self._lines[first]) + 1
                first += 1
            self._entries, self._lines = self._entries[first:], self._lines[first:]
        self._entries += entries[::-1]
        self._lines += lines[::-1]
        self._added = []

    def _unread(self) -> Iterator[MemoryEntry]:
        """Go back through what was added since somebody last read, the newest first, each in a line that fits."""
        for added in reversed(self._added):
            for entry in (added,) if isinstance(added, MemoryEntry) else reversed(added()):
                line_entry = entry.as_line_within(self._max_characters - 1)
                if line_entry.text:
                    yield line_entry

    @property
    def _max_characters(self) -> int:
        """Maximum number of characters of all lines, line breaks included."""
        return CHARACTERS_PER_TOKEN * self.max_tokens
