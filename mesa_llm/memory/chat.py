"""A memory in the form of a conversation between world and agent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import ClassVar

from mesa_llm.memory.entry import (
    CHARACTERS_PER_TOKEN,
    EntryMemory,
    MemoryEntry,
    whole_number,
)
from mesa_llm.memory.text import moment_text
from mesa_llm.records import ChatMessage
from mesa_llm.text import clip, one_line

_BY_AGENT = frozenset({"decision", "utterance", "thought"})
"""Kinds of entries written by the agent itself."""

_OF_MANY_LINES = frozenset({"observation", "decision", "thought"})
"""Kinds of entries that keep their line breaks, because the world or the agent itself wrote them."""

_FRAME_CHARACTERS = 24
"""Characters added for each entry: its step, and the overhead of chat templates."""


class ChatMemory(EntryMemory):
    """Remembers the conversation with the world as pairs of input and answer.

    Input since the last answer (such as the outcome of that answer) is not a pair yet and is returned by `recall`.
    A prompt that consists of `messages` and one user message with the recalled lines and the new observation therefore
    alternates strictly and is complete.
    """

    __slots__ = ("_characters", "_exchanges", "_messages", "max_tokens", "pairs")
    kind: ClassVar[str] = "chat"
    settings: ClassVar[tuple[str, ...]] = ("max_tokens", "pairs")

    def __init__(self, max_tokens: int = 4000, pairs: int = 50) -> None:
        """Create an empty memory.

        Args:
            max_tokens: Maximum number of tokens of the conversation, estimated at four characters each; 128 or more.
            pairs: Maximum number of pairs kept.

        Raises:
            ConfigError: If a setting is out of range.
        """
        super().__init__()
        self.max_tokens = whole_number("max_tokens", max_tokens, 128)
        self.pairs = whole_number("pairs", pairs, 1)
        self._characters = 0
        self._exchanges: list[list[MemoryEntry]] = []  # entries, split wherever the world follows the agent
        self._messages: list[ChatMessage] = []  # cache of all exchanges but the last

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry, cut to a quarter of `max_tokens`; beyond the bounds, the oldest pairs are forgotten."""
        characters = CHARACTERS_PER_TOKEN * self.max_tokens
        is_own = entry.kind in _BY_AGENT
        entry_text = entry.text.strip() if entry.kind in _OF_MANY_LINES else one_line(entry.text)
        text = clip(entry_text, characters // 4 - _FRAME_CHARACTERS)
        if not text:
            return
        remembered = entry if text == entry.text else replace(entry, text=text)
        exchanges = self._exchanges
        if not exchanges or (not is_own and _is_answered(exchanges[-1])):
            exchanges.append([])
        exchanges[-1].append(remembered)
        self._entries.append(remembered)
        self._characters += _cost(remembered)
        if self._characters > characters or len(exchanges) - (not is_own) > self.pairs:
            self._forget(characters)

    def _forget(self, characters: int) -> None:
        """Forget the oldest pairs beyond the bounds, or the oldest entries of the last pair if it is too long.

        Args:
            characters: Maximum number of characters.
        """
        exchanges, n_dropped = self._exchanges, 0
        n_pairs = len(exchanges) - (not _is_answered(exchanges[-1]))
        while n_dropped < len(exchanges) - 1 and (self._characters > characters or n_pairs - n_dropped > self.pairs):
            self._characters -= sum(map(_cost, exchanges[n_dropped]))
            n_dropped += 1
        n_entries = sum(map(len, exchanges[:n_dropped]))
        del exchanges[:n_dropped], self._messages[: 2 * n_dropped], self._entries[:n_entries]
        while self._characters > characters:
            self._characters -= _cost(self._entries.pop(0))
            del exchanges[0][0]

    def forget(self, is_forgotten: Callable[[MemoryEntry], bool]) -> None:
        """Forget selected entries.

        Args:
            is_forgotten: Returns whether to forget an entry.
        """
        remaining = [entry for entry in self._entries if not is_forgotten(entry)]
        self._entries, self._exchanges, self._messages, self._characters = [], [], [], 0
        for entry in remaining:
            self.add(entry)

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return the input since the agent's last answer, one line per entry, oldest first."""
        exchanges = self._exchanges
        pending = exchanges[-1] if exchanges and not _is_answered(exchanges[-1]) else ()
        return "\n".join([_line_of(entry) for entry in pending])

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the pairs as messages that alternate strictly: user, assistant, user, assistant, …"""
        exchanges = self._exchanges
        for exchange in islice(exchanges, len(self._messages) // 2, max(len(exchanges) - 1, 0)):
            self._messages += _pair_of(exchange)
        last = _pair_of(exchanges[-1]) if exchanges and _is_answered(exchanges[-1]) else ()
        return (*self._messages, *last)

    def _pairs(self) -> list[list[MemoryEntry]]:
        """Return the exchanges that end with an answer."""
        exchanges = self._exchanges
        return exchanges if not exchanges or _is_answered(exchanges[-1]) else exchanges[:-1]


def _line_of(entry: MemoryEntry) -> str:
    """Return an entry on one line; for most kinds, `add` has already put its text on one."""
    return one_line(entry.line) if entry.kind in _OF_MANY_LINES else entry.line


def _is_answered(exchange: list[MemoryEntry]) -> bool:
    """Check whether an exchange ends with an entry of the agent."""
    return exchange[-1].kind in _BY_AGENT


def _pair_of(exchange: list[MemoryEntry]) -> tuple[ChatMessage, ChatMessage]:
    """Return an exchange that ends with an answer as two messages."""
    observed = [entry for entry in exchange if entry.kind not in _BY_AGENT]
    replies = [entry.text for entry in exchange if entry.kind in _BY_AGENT]
    text = _with_steps(observed) if observed else f"{heading_text(exchange[0])}."
    return ChatMessage("user", text), ChatMessage("assistant", "\n".join(replies))


def _cost(entry: MemoryEntry) -> int:
    """Count the characters that an entry takes in a prompt."""
    return len(entry.text) + _FRAME_CHARACTERS


def _with_steps(entries: list[MemoryEntry]) -> str:
    """Join entries line by line, with a heading for each new moment unless the text names it itself."""
    lines: list[str] = []
    heading = ""
    for entry in entries:
        if heading != (heading := heading_text(entry)) and not _names(entry.text, entry, heading):
            lines.append(f"{heading}:")
        lines.append(entry.text)
    return "\n".join(lines)


def heading_text(entry: MemoryEntry) -> str:
    """Return the heading of what happened at a moment: `Step 3`, or the world's own words for it."""
    past_world = entry.world if entry.is_past else None
    return moment_text(entry.unit, entry.time, past_world, entry.moment or f"{entry.unit} {entry.time}")


def _names(text: str, entry: MemoryEntry, heading: str) -> bool:
    """Check whether a text begins with the moment: `Month 3. …`; or, in the world's words, has it in its first line."""
    if not entry.moment:
        return text.startswith(f"{heading}.")
    first = text.lstrip().partition("\n")[0].casefold()
    words = entry.moment.partition(" ")[2] or entry.moment
    return re.search(rf"(?<!\w){re.escape(words.casefold())}(?!\w)", first) is not None
