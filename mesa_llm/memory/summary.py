"""A memory of the latest entries, with a running summary of earlier ones."""

from __future__ import annotations

from typing import ClassVar

from mesa_llm.memory.entry import (
    CHARACTERS_PER_TOKEN,
    EntryMemory,
    MemoryEntry,
    SavedMemory,
    newest_lines,
    whole_number,
)
from mesa_llm.memory.text import summary_line
from mesa_llm.prompts import LIBRARY_PROMPTS
from mesa_llm.text import one_line

_CHARACTERS_PER_WORD = 7
"""Number of characters of an English word with its space, a generous estimate."""


class SummaryMemory(EntryMemory):
    """Remembers the last `keep` entries unchanged, and a running summary of earlier ones.

    After adding entries, call `summary_request`, have a language model write the summary, and pass it to
    `keep_summary`. Until then, older entries wait, up to a total of four times `keep` entries and twice `max_tokens`;
    beyond that, the oldest are lost.
    """

    __slots__ = ("_characters", "_n_summarised", "_summary", "keep", "max_tokens", "prompts")
    kind: ClassVar[str] = "summary"
    settings: ClassVar[tuple[str, ...]] = ("keep", "max_tokens")

    def __init__(self, keep: int = 10, max_tokens: int = 800) -> None:
        """Create an empty memory.

        Args:
            keep: Number of latest entries that stay unchanged when older ones are summarised.
            max_tokens: Maximum number of tokens recalled, estimated at four characters each; the summary takes
                at most half of them. 64 or more.

        Raises:
            ConfigError: If a setting is out of range.
        """
        super().__init__()
        self.keep = whole_number("keep", keep, 1)
        self.max_tokens = whole_number("max_tokens", max_tokens, 64)
        self.prompts = LIBRARY_PROMPTS
        self._summary = ""
        self._n_summarised = 0  # number of oldest entries covered by the requested summary
        self._characters = 0

    @property
    def summary(self) -> str:
        """The running summary; empty before the first."""
        return self._summary

    @property
    def _half(self) -> int:
        """Number of characters in half of `max_tokens`."""
        return CHARACTERS_PER_TOKEN * self.max_tokens // 2

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry; beyond the bounds for waiting entries, the oldest are lost."""
        line_entry, line = entry.within(self._half - 1)
        if not line:
            return
        self._entries.append(line_entry)
        self._characters += len(line) + 1
        while len(self._entries) > 4 * self.keep or self._characters > 4 * self._half:
            self._forget(1)

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return the summary, then the newest lines that fit, oldest first."""
        lines = [summary_line(self._summary)] if self._summary else []
        characters_left = 2 * self._half - sum(len(line) + 1 for line in lines)
        return "\n".join(lines + newest_lines(self._entries, characters_left))

    def summary_request(self) -> str | None:
        """Return the prompt for a summary once there are more than twice `keep` entries, or `max_tokens`; else None."""
        if len(self._entries) <= 2 * self.keep and self._characters <= 2 * self._half:
            return None
        staying = len(newest_lines(self._entries[-self.keep :], self._half))
        self._n_summarised = len(self._entries) - staying
        lines = "\n".join(entry.line for entry in self._entries[: self._n_summarised])
        n_words = self._half // _CHARACTERS_PER_WORD
        return self.prompts.fill("memory_summary.md", summary=self._summary, lines=lines, words=n_words)

    def keep_summary(self, text: str) -> None:
        """Replace the running summary and forget the entries it covers; a blank text is ignored.

        Args:
            text: The new summary, as a model wrote it; it is cut to half of `max_tokens`.
        """
        summary = one_line(text, self._half - len(summary_line("")) - 1)
        if not summary:
            return
        self._summary = summary
        self._forget(self._n_summarised)
        self._n_summarised = 0

    def saved(self) -> SavedMemory:
        """Return the saved form of the memory."""
        return super().saved().model_copy(update={"summary": self._summary})

    def restore(self, form: SavedMemory) -> None:
        """Load the entries and the summary of a saved memory."""
        super().restore(form)
        self.keep_summary(form.summary)

    def _forget(self, count: int) -> None:
        """Forget the oldest entries."""
        self._characters -= sum(len(entry.line) + 1 for entry in self._entries[:count])
        del self._entries[:count]
        self._n_summarised = max(0, self._n_summarised - count)
