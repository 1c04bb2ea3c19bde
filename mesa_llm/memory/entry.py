"""Memory entries, the interface of memories, and the base of memories that store entries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.memory.text import LEADS, moment_text
from mesa_llm.records import ChatMessage
from mesa_llm.records.frozen import frozen
from mesa_llm.text import one_line, sentence_inside

EntryKind = Literal["observation", "decision", "utterance", "outcome", "message", "thought", "insight"]
"""Kinds of entries that the library makes."""

MAX_KIND = 40
"""Maximum number of characters of a kind of one's own."""

CHARACTERS_PER_TOKEN = 4
"""Number of characters per token: accurate to about 20 % for English, too high for Chinese or Japanese."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text as a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


_DIGITS = frozenset("0123456789")


@frozen
class MemoryEntry:
    """One entry of an agent's memory.

    Raises:
        ValueError: If the kind is blank, long or of several lines, or the importance is outside 0..1.
    """

    time: int
    """Step in which it happened."""

    kind: EntryKind | str
    """Kind of the entry; one of your own stands in its line as it is, such as `you noticed`."""

    text: str
    """Text of the entry."""

    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    """Importance, from 0 to 1."""

    world: str = ""
    """Name of the world in which it happened; empty: none, or several at once."""

    unit: str = "step"
    """Unit of time of that world: `step`, `month`, `round`, …"""

    is_past: bool = False
    """Whether it comes from an earlier life, which its line then mentions with the world."""

    because: tuple[str, ...] = ()
    """Lines of the entries cited by an insight."""

    is_sentence: bool = False
    """Whether the text is a whole sentence, such as `You ordered 14 cases.`, and not what the agent saw, said, …"""

    moment: str = ""
    """The world's own words for when it happened, such as `At 08:30`; empty: made of unit and step (`In step 3`)."""

    def __post_init__(self) -> None:
        """Check the kind and the importance."""
        if self.kind not in LEADS and (not 0 < len(self.kind) <= MAX_KIND or one_line(self.kind) != self.kind):
            raise ValueError(
                f"kind must be one of {', '.join(get_args(EntryKind))}, or a few words of your own on one line; got "
                f"{self.kind!r:.60}"
            )
        if not 0 <= self.importance <= 1:
            raise ValueError(f"importance must be in 0..1, got {self.importance!r}")

    @property
    def when(self) -> str:
        """When it happened, in the world's own words or by the step, and in which life if that is an earlier one."""
        return moment_text(self.unit, self.time, self.world if self.is_past else None, self.moment)

    @property
    def lead(self) -> str:
        """Beginning of its line, before the text: when it happened, and unless it is a sentence, what kind it is of."""
        when = moment_text(self.unit, self.time, self.world if self.is_past else None, self.moment)
        if not self.is_sentence:
            return f"{when} {LEADS.get(self.kind, self.kind)}: "
        return f"{when}, " if self.text[:1] in _DIGITS else f"{when} "

    @property
    def line(self) -> str:
        """The entry as one line of a prompt."""
        return self.lead + (sentence_inside(self.text) if self.is_sentence else self.text)

    def within(self, characters: int) -> tuple[MemoryEntry, str]:
        """Return the entry with its text cut so that its `line` fits a number of characters, and that line.

        The line is empty if the text is.
        """
        lead = self.lead
        text = one_line(self.text, characters - len(lead))
        if not text:
            return self, ""
        entry = self if text == self.text else replace(self, text=text)
        return entry, lead + (sentence_inside(text) if self.is_sentence else text)


def newest_lines(entries: list[MemoryEntry], characters: int) -> list[str]:
    """Return the lines of the newest entries that fit, counting line breaks, oldest first."""
    lines: list[str] = []
    for entry in reversed(entries):
        characters -= len(entry.line) + 1
        if characters < 0:
            break
        lines.append(entry.line)
    return lines[::-1]


@runtime_checkable
class Memory(Protocol):
    """Stores an agent's experiences, within bounds, and recalls them for its prompts.

    A memory never calls a language model itself. If it needs one, `summary_request` returns a prompt.
    """

    __slots__ = ()

    def add(self, entry: MemoryEntry) -> None:
        """Add an entry, forgetting others if necessary; an entry with a blank text is ignored."""
        ...

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return recalled memories as lines with step numbers, oldest first; empty if there are none.

        Args:
            cue: Query that memories are compared with.
            time: Current step.
            aside: Whether to leave the memory unchanged, as for a survey that must not affect the run.
        """
        ...

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the earlier conversation, to precede the new observation in a prompt; empty if there is none."""
        return ()

    def summary_request(self) -> str | None:
        """Return the prompt for a summary of entries about to be forgotten; None if none is needed."""
        return None

    def keep_summary(self, text: str) -> None:
        """Store the summary that was requested."""

    def to_json(self) -> dict[str, Any]:
        """Return the whole memory as JSON values, which `mesa_llm.memory.memory_from_json` restores."""
        ...


class SavedMemory(BaseModel):
    """Saved form of memories of all kinds."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """Version of this form."""

    kind: str
    """Name of the kind of memory, as for `open_memory`."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Argument of its constructor → value."""

    entries: list[MemoryEntry] = Field(default_factory=list[MemoryEntry])
    """Its entries, oldest first."""

    accessed: list[int] = Field(default_factory=list)
    """Step of each entry's last recall, for memories that use it."""

    summary: str = ""
    """The running summary, for memories that have one."""

    unreflected: float = 0.0
    """Summed importance since the last reflection, for memories that reflect."""

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> SavedMemory:
        """Validate a saved memory.

        Raises:
            ConfigError: If it does not have this form.
        """
        if not isinstance(saved, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - it may come from a file
            raise ConfigError(f"expected a memory from to_json(), got a {type(saved).__name__}")
        try:
            return cls.model_validate(dict(saved))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in fault["loc"]) or "it"
            raise ConfigError(f"not a memory from to_json(): {path}: {fault['msg']}") from None


class EntryMemory(Memory):
    """A memory that holds a list of entries, and is saved as that list."""

    __slots__ = ("_entries",)

    kind: ClassVar[str]
    """Name of this kind of memory, as for `open_memory`."""

    settings: ClassVar[tuple[str, ...]] = ()
    """Names of its constructor's arguments that are saved."""

    def __init__(self) -> None:
        """Create an empty memory."""
        self._entries: list[MemoryEntry] = []

    def __repr__(self) -> str:
        """Show the class and the number of entries."""
        return f"<{type(self).__name__}, entries: {len(self.entries)}>"

    @property
    def entries(self) -> tuple[MemoryEntry, ...]:
        """The entries, in order of addition."""
        return tuple(self._entries)

    def saved(self) -> SavedMemory:
        """Return the saved form of the memory."""
        settings = {name: getattr(self, name) for name in self.settings}
        return SavedMemory(kind=self.kind, settings=settings, entries=self._entries)

    def to_json(self) -> dict[str, Any]:
        """Return the whole memory as JSON values."""
        return self.saved().model_dump(mode="json", exclude_defaults=True) | {"version": 1}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Self:
        """Restore a memory saved by `to_json`; both recall the same.

        Raises:
            ConfigError: If the values have another form or kind, or are out of range.
        """
        form = SavedMemory.read(saved)
        if form.kind != cls.kind:
            raise ConfigError(f"a saved {form.kind!r} memory is not a {cls.kind!r} memory; use memory_from_json")
        unknown = sorted(set(form.settings) - set(cls.settings))
        if unknown:
            raise ConfigError(f"a {cls.kind!r} memory has no setting {unknown[0]!r}, only {cls.settings}")
        memory = cls(**form.settings)
        memory.restore(form)
        return memory

    def restore(self, form: SavedMemory) -> None:
        """Load the entries of a saved memory, applying bounds as for new entries."""
        for entry in form.entries:
            self.add(entry)


def whole_number(name: str, value: object, minimum: int) -> int:
    """Validate an integer setting of a memory.

    Raises:
        ConfigError: If it is not an integer, or below the minimum.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} of a memory must be a whole number of {minimum} or more, got {value!r}")
    return value


def number_within(name: str, value: object, minimum: float, maximum: float) -> float:
    """Validate a numeric setting of a memory and return it as a float.

    Raises:
        ConfigError: If it is not a number, or outside the inclusive range.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise ConfigError(f"{name} of a memory must be a number in {minimum}..{maximum}, got {value!r}")
    return float(value)
