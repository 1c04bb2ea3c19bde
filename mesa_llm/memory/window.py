"""A memory of nothing, and a memory of the latest entries."""

from __future__ import annotations

from typing import ClassVar

from mesa_llm.memory.entry import (
    CHARACTERS_PER_TOKEN,
    EntryMemory,
    MemoryEntry,
    whole_number,
)


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

    __slots__ = ("_characters", "_lines", "k", "max_tokens")
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
        self._characters = 0
        self._lines: list[str] = []  # the line of each entry

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry; beyond `k` entries or `max_tokens`, the oldest are forgotten."""
        max_characters = CHARACTERS_PER_TOKEN * self.max_tokens
        line_entry = entry.as_line_within(max_characters - 1)
        if not line_entry.text:
            return
        line = line_entry.line
        self._entries.append(line_entry)
        self._lines.append(line)
        self._characters += len(line) + 1
        while len(self._entries) > self.k or self._characters > max_characters:
            del self._entries[0]
            self._characters -= len(self._lines.pop(0)) + 1

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return all entries, one line each, oldest first."""
        return "\n".join(self._lines)
