"""A memory stream with reflection: once enough importance has accumulated, insights are added as memories.

Source:
    Park et al. (2023), Generative Agents: Interactive Simulacra of Human Behavior, UIST '23, section 4.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from mesa_llm.llm.embeddings import Embedder
from mesa_llm.memory.entry import MemoryEntry, SavedMemory, newest_lines, number_within, whole_number
from mesa_llm.memory.stream import StreamMemory, until
from mesa_llm.memory.text import recurring_text
from mesa_llm.prompts import LIBRARY_PROMPTS, Prompts
from mesa_llm.text import COMMON, clip, one_line

MAX_RECENT = 100
"""Maximum number of recent entries that questions are about."""

MAX_EVIDENCE = 20
"""Maximum number of entries used to answer a question."""

MAX_CITED = 5
"""Maximum number of entries that an insight cites."""

_PROMPT_CHARACTERS = 12_000
"""Maximum number of characters of memories in one prompt: about 3,000 tokens."""

_TEXT_CHARACTERS = 300
"""Maximum number of characters of a question or an insight."""

_CITED_CHARACTERS = 120
"""Maximum number of characters of a line that an insight cites."""

_WORD = re.compile(r"[^\W\d_]{4,}")


class Insight(BaseModel, frozen=True):
    """One conclusion, as a language model writes it."""

    insight: str
    """The conclusion in one sentence."""

    because: list[int]
    """Numbers of the lines that it rests on."""

    importance: Annotated[int, Field(ge=1, le=10)]
    """Importance, from 1 to 10."""


Questions = Annotated[list[str], Field(min_length=1)]
"""Type of the answer to `questions_prompt`."""

Insights = Annotated[list[Insight], Field(min_length=1)]
"""Type of the answer to a `Reflection.prompt`."""


@dataclass(frozen=True)
class Reflection:
    """A question, and the memories that answer it."""

    question: str
    """The question."""

    evidence: tuple[MemoryEntry, ...]
    """The memories recalled for it, oldest first."""

    max_insights: int
    """Maximum number of insights."""

    prompts: Prompts = LIBRARY_PROMPTS
    """Templates of the model."""

    @property
    def prompt(self) -> str:
        """Prompt for insights."""
        lines = [entry.line for entry in self.evidence]
        return self.prompts.fill("memory_insights.md", question=self.question, lines=lines, n=self.max_insights)


class ReflectiveMemory(StreamMemory):
    """A stream memory that reflects at the end of a step once enough importance has accumulated.

    When the summed importance of entries since the last reflection reaches `threshold`, the agent's language model
    names the most salient questions about recent entries. For each question, entries are recalled, and the model draws
    insights that cite them. Insights are entries of their own kind, recalled like all others and citable by later ones.
    Without a language model, the memory reflects by rule, noting recurring words.

    At the end of a step, call `is_due`, send `questions_prompt` and the prompts of `reflections` to the model, and pass
    its answers to `keep_questions` and `conclude`.
    """

    __slots__ = ("_questions", "_reflected_at", "_unreflected", "insights", "prompts", "questions", "threshold")
    kind: ClassVar[str] = "reflection"
    settings: ClassVar[tuple[str, ...]] = ("k", "threshold", *StreamMemory.settings[1:], "questions", "insights")

    def __init__(
        self,
        k: int = 8,
        decay: float = 0.995,
        weights: Sequence[float] = (1.0, 1.0, 1.0),
        capacity: int = 128,
        max_tokens: int = 600,
        embedding: str = "wordllama",
        embedder: Embedder | None = None,
        threshold: float = 15.0,
        questions: int = 3,
        insights: int = 5,
    ) -> None:
        """Create an empty memory.

        Args:
            k: As for `StreamMemory`, like all up to `embedder`.
            decay: Factor on recency for each step.
            weights: Weights of recency, importance and relevance.
            capacity: Maximum number of entries.
            max_tokens: Maximum number of tokens recalled.
            embedding: Name of the embedder.
            embedder: Embeds texts.
            threshold: Summed importance at which it reflects. The published 150, on a scale from 1 to 10, are 15 here:
                about 30 entries of the usual importance 0.5.
            questions: Maximum number of questions of a reflection.
            insights: Maximum number of insights for each question.

        Raises:
            ConfigError: If a setting is out of range.
        """
        super().__init__(k, decay, weights, capacity, max_tokens, embedding, embedder)
        self.threshold = number_within("threshold", threshold, 0.1, 1e6)
        self.questions = whole_number("questions", questions, 1)
        self.insights = whole_number("insights", insights, 1)
        self.prompts = LIBRARY_PROMPTS
        self._unreflected = 0.0
        self._questions: tuple[str, ...] = ()
        self._reflected_at: int | None = None

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry; the importance of all entries but insights counts towards the next reflection."""
        super().add(entry)
        if entry.kind != "insight" and one_line(entry.text):
            self._unreflected += entry.importance

    def is_due(self, time: int) -> bool:
        """Check whether to reflect now: at the threshold, at most once per step, or while questions are open.

        Args:
            time: The step that ends.
        """
        return bool(self._questions) or (self._unreflected >= self.threshold and self._reflected_at != time)

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Questions of the current reflection; empty if there is none or they are not stored yet."""
        return self._questions

    def questions_prompt(self) -> str:
        """Return the prompt for the most salient questions about recent entries."""
        lines = newest_lines(self._entries[-MAX_RECENT:], _PROMPT_CHARACTERS)
        return self.prompts.fill("memory_questions.md", lines="\n".join(lines), n=self.questions)

    def keep_questions(self, texts: Iterable[str], time: int) -> None:
        """Store the questions of a reflection; if there are none, it waits for a later step.

        Args:
            texts: The questions, as a model wrote them.
            time: The step that ends.
        """
        lines = [one_line(text, _TEXT_CHARACTERS) for text in texts]
        self._questions = tuple(dict.fromkeys(filter(None, lines)))[: self.questions]
        self._reflected_at = time

    def reflections(self, time: int) -> list[Reflection]:
        """Return the questions with the memories recalled for them, without changing the memory.

        Args:
            time: The step that ends.

        Raises:
            ConfigError: If the embedder cannot be loaded, or returns anything but one finite row for each text.
            TransportError: If a remote embedder fails.
        """
        accessed = until(time, self._accessed)
        return [
            Reflection(
                question,
                tuple(
                    self._entries[index]
                    for index in self._best(question, time, accessed, MAX_EVIDENCE, _PROMPT_CHARACTERS)
                ),
                self.insights,
                self.prompts,
            )
            for question in self._questions
        ]

    def conclude(
        self, answers: Iterable[tuple[Reflection, Sequence[Insight]]], time: int, unit: str = "step", moment: str = ""
    ) -> None:
        """Store the insights and end the reflection; insights that cite none of the memories are dropped.

        Args:
            answers: The questions with their insights, as a model wrote them.
            time: The step that ends.
            unit: Unit of model time, such as `month`.
            moment: The world's own words for the moment, such as `At 08:30`; empty: none.
        """
        self._questions, self._unreflected = (), 0.0
        for reflection, insights in answers:
            for insight in insights[: self.insights]:
                numbers = dict.fromkeys(n for n in insight.because if 1 <= n <= len(reflection.evidence))
                cited = [reflection.evidence[n - 1] for n in numbers]
                self._add_insight(insight.insight, cited, insight.importance / 10, time, unit, moment)

    def reflect_by_rule(self, time: int, unit: str = "step", moment: str = "") -> None:
        """Reflect without a language model, storing recurring words in recent entries as insights.

        Args:
            time: The step that ends.
            unit: Unit of model time, such as `month`.
            moment: The world's own words for the moment, such as `At 08:30`; empty: none.
        """
        recent = [entry for entry in self._entries[-MAX_RECENT:] if entry.kind != "insight"]
        words = [set(_WORD.findall(entry.text.lower())) - COMMON for entry in recent]
        counts = Counter(word for own in words for word in sorted(own))
        frequent = sorted((word for word, n in counts.items() if n > 1), key=lambda word: (-counts[word], word))
        for word in frequent[: self.questions]:
            cited = [entry for entry, own in zip(recent, words, strict=True) if word in own]
            text = recurring_text(word, counts[word], len(recent))
            self._add_insight(text, cited[-MAX_CITED:], max(entry.importance for entry in cited), time, unit, moment)
        self._unreflected = 0.0

    def _add_insight(
        self, text: str, cited: Sequence[MemoryEntry], importance: float, time: int, unit: str, moment: str
    ) -> None:
        line = one_line(text, _TEXT_CHARACTERS)
        if line and cited:
            because = tuple(clip(entry.line, _CITED_CHARACTERS) for entry in cited[:MAX_CITED])
            self.add(MemoryEntry(time, "insight", line, importance, unit=unit, because=because, moment=moment))

    def saved(self) -> SavedMemory:
        """Return the saved form of the memory."""
        return super().saved().model_copy(update={"unreflected": self._unreflected})

    def restore(self, form: SavedMemory) -> None:
        """Load the entries of a saved memory and the importance accumulated since its last reflection."""
        super().restore(form)
        self._unreflected = form.unreflected
