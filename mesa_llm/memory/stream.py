"""The memory stream of generative agents, which recalls recent, important and relevant entries.

Source:
    Park et al. (2023), Generative Agents: Interactive Simulacra of Human Behavior, UIST '23, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from mesa_llm.errors import ConfigError
from mesa_llm.llm.embeddings import Embedder
from mesa_llm.llm.embeddings import embedder as open_embedder
from mesa_llm.memory.entry import (
    CHARACTERS_PER_TOKEN,
    EntryMemory,
    MemoryEntry,
    SavedMemory,
    number_within,
    whole_number,
)

FloatArray = NDArray[np.float64]
Rows = NDArray[np.float32]

_DECIMALS = 6
"""Number of decimals for comparing values, since scaling to 0..1 would magnify rounding errors."""


class StreamMemory(EntryMemory):
    """Remembers many entries, and recalls the `k` with the highest score for a cue.

    The score is the weighted sum of recency (`decay` to the power of the steps since an entry was last
    recalled), importance, and relevance (cosine between the embeddings of entry and cue), each scaled to 0..1
    over all entries. Of equal scores, the entry that was added later wins. If the clock restarts, as in another life,
    the earlier life counts as having just ended.
    """

    __slots__ = (
        "_accessed",
        "_embedder",
        "_vectors",
        "capacity",
        "decay",
        "embedding",
        "k",
        "max_tokens",
        "weights",
    )
    kind: ClassVar[str] = "stream"
    settings: ClassVar[tuple[str, ...]] = ("k", "decay", "weights", "capacity", "max_tokens", "embedding")

    def __init__(
        self,
        k: int = 8,
        decay: float = 0.995,
        weights: Sequence[float] = (1.0, 1.0, 1.0),
        capacity: int = 128,
        max_tokens: int = 600,
        embedding: str = "wordllama",
        embedder: Embedder | None = None,
    ) -> None:
        """Create an empty memory.

        Args:
            k: Maximum number of entries recalled at once.
            decay: Factor on recency for each step, above 0 and at most 1.
            weights: Weights of recency, importance and relevance, each 0 or more. With 0 for relevance,
                nothing is ever embedded.
            capacity: Maximum number of entries; beyond it, the least recent and important is forgotten.
            max_tokens: Maximum number of tokens recalled, estimated at four characters each; 32 or more.
            embedding: Name of the embedder that is opened if `embedder` is None; see `mesa_llm.llm.embeddings`.
            embedder: Embeds texts; it is not saved with the memory.

        Raises:
            ConfigError: If a setting is out of range.
        """
        super().__init__()
        self.k = whole_number("k", k, 1)
        self.decay = number_within("decay", decay, 1e-9, 1.0)
        # Settings may come from an untrusted file.
        if not isinstance(weights, Sequence) or len(weights) != 3:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"weights must be three numbers (recency, importance, relevance), got {weights!r}")
        self.weights = [number_within("a weight", weight, 0.0, 1e6) for weight in weights]
        self.capacity = whole_number("capacity", capacity, 1)
        self.max_tokens = whole_number("max_tokens", max_tokens, 32)
        self.embedding = embedding
        self._embedder = embedder
        self._accessed: list[int] = []
        self._vectors: list[Rows | None] = []

    @property
    def embedder(self) -> Embedder | None:
        """The memory's own embedder; None: the one that `embedding` names."""
        return self._embedder

    def use_embedder(self, embedder: Embedder) -> None:
        """Set the embedder, for example after loading a memory, which is saved without it."""
        self._embedder = embedder
        self._vectors = [None] * len(self._entries)

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry; beyond the capacity, the least recent and important of the others is forgotten."""
        line_entry, line = entry.within(CHARACTERS_PER_TOKEN * self.max_tokens - 1)
        if not line:
            return
        if len(self._entries) == self.capacity:
            self._forget_one(entry.time)
        self._entries.append(line_entry)
        self._accessed.append(entry.time)
        self._vectors.append(None)

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return the entries with the highest scores, oldest first; recalling them makes them recent again.

        Raises:
            ConfigError: If the embedder cannot be loaded, or returns anything but one finite row for each text.
            TransportError: If a remote embedder fails.
        """
        if not self._entries:
            return ""
        accessed = until(time, self._accessed)
        indices = self._best(cue, time, accessed, self.k, CHARACTERS_PER_TOKEN * self.max_tokens)
        if not aside:
            for index in indices:
                accessed[index] = time
            self._accessed = accessed
        return "\n".join(self._entries[index].line for index in indices)

    def _best(self, cue: str, time: int, accessed: list[int], n: int, characters: int) -> list[int]:
        """Return the indices of the `n` entries with the highest scores whose lines fit, oldest first.

        Args:
            cue: Query that entries are compared with.
            time: Current step.
            accessed: Step of each entry's last recall, none later than `time`.
            n: Maximum number of entries.
            characters: Maximum number of characters of their lines, with line breaks.
        """
        scores = np.round(self._scores(cue, time, accessed), _DECIMALS)
        ranked = sorted(range(len(scores)), key=lambda index: (-scores[index], -index))
        indices: list[int] = []
        for index in ranked[:n]:
            needed = len(self._entries[index].line) + 1
            if needed <= characters:
                characters -= needed
                indices.append(index)
        return sorted(indices)

    def saved(self) -> SavedMemory:
        """Return the saved form of the memory; vectors are not saved but recomputed."""
        return super().saved().model_copy(update={"accessed": list(self._accessed)})

    def restore(self, form: SavedMemory) -> None:
        """Load the entries of a saved memory.

        Raises:
            ConfigError: If it does not have one step in `accessed` for each entry.
        """
        if len(form.accessed) != len(form.entries):
            raise ConfigError(
                f"a saved 'stream' memory needs a step in `accessed` for each of its {len(form.entries)} "
                f"entries, got {len(form.accessed)}"
            )
        super().restore(form)
        if len(self._entries) == len(form.accessed):
            self._accessed = list(form.accessed)

    def _scores(self, cue: str, time: int, accessed: list[int]) -> FloatArray:
        """Score every entry for a cue, shape `(entries,)`."""
        recency, importance, relevance = self.weights
        ages = np.asarray([time - step for step in accessed], dtype=np.float64)
        scores = recency * _scaled(self.decay**ages)
        scores += importance * _scaled(np.asarray([entry.importance for entry in self._entries]))
        if relevance and cue.strip():
            scores += relevance * _scaled(self._relevance(cue))
        return scores

    def _relevance(self, cue: str) -> FloatArray:
        """Compute the cosine of the cue with every entry, shape `(entries,)`; vectors of entries are cached."""
        unembedded = [index for index, vector in enumerate(self._vectors) if vector is None]
        rows = self._embed([cue, *(self._entries[index].text for index in unembedded)])
        for index, row in zip(unembedded, rows[1:], strict=True):
            self._vectors[index] = row.copy()
        vectors: FloatArray = np.stack([cast("Rows", vector) for vector in self._vectors], dtype=np.float64)
        return (vectors * rows[0]).sum(axis=1)  # not `@`, which differs from processor to processor

    def _embed(self, texts: list[str]) -> Rows:
        """Embed texts as rows of length 1 (or 0), shape `(texts, dimensions)`.

        Raises:
            ConfigError: If the embedder returns anything but one finite row for each text.
        """
        rows = np.asarray(self._open_embedder().embed(texts), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ConfigError(
                f"the embedder returned an array of shape {rows.shape} for {len(texts)} texts; "
                "wanted one row of finite numbers for each"
            )
        lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return (rows / lengths).astype(np.float32)

    def _open_embedder(self) -> Embedder:
        """Return the embedder; one opened by name is not stored, since it would be copied with the agent."""
        return open_embedder(self.embedding) if self._embedder is None else self._embedder

    def _forget_one(self, time: int) -> None:
        """Forget the entry with the lowest weighted sum of recency and importance, the oldest of equal ones."""

        def strength(index: int) -> float:
            age = max(0, time - self._accessed[index])
            return self.weights[0] * self.decay**age + self.weights[1] * self._entries[index].importance

        weakest = min(range(len(self._entries)), key=strength)
        for column in (self._entries, self._accessed, self._vectors):
            del column[weakest]


def _scaled(values: FloatArray) -> FloatArray:
    """Scale values to the range 0 to 1, shape unchanged; all 0 if all are equal."""
    rounded = np.round(values, _DECIMALS)
    spread = rounded.max() - rounded.min()
    return (rounded - rounded.min()) / spread if spread > 0 else np.zeros_like(rounded)


def until(time: int, accessed: list[int]) -> list[int]:
    """Shift the steps of an earlier life, whose clock was ahead of this one, to end at the current step.

    All entries up to the last with a step ahead of the clock belong to that life and are shifted together; later ones
    are not shifted.

    Args:
        time: The current step.
        accessed: Step of each entry's last recall, in the order in which entries were added.

    Returns:
        The steps, none later than `time`.
    """
    later = [index for index, step in enumerate(accessed) if step > time]
    if not later:
        return list(accessed)
    shift = max(accessed) - time
    return [step - shift if index <= later[-1] else step for index, step in enumerate(accessed)]
