"""Memory entries, the interface of memories, and what those of entries have in common."""

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
from mesa_llm.text import one_line

EntryKind = Literal["observation", "decision", "outcome", "message", "thought", "insight"]

CHARACTERS_PER_TOKEN = 4
"""Number of characters counted as one token: right within some 20 % for English, too many for Chinese or Japanese."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text as a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@frozen
class MemoryEntry:
    """One thing an agent remembers.

    Raises:
        ValueError: If the kind is unknown, or the importance lies outside 0..1.
    """

    time: int
    """Step in which it happened."""

    kind: EntryKind
    """Kind of the entry."""

    text: str
    """What is remembered, as text."""

    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    """Importance, from 0 to 1."""

    world: str = ""
    """Name of the world in which it happened; empty: none, or several at once."""

    unit: str = "step"
    """Unit of time of that world: `step`, `month`, `round`, …"""

    is_past: bool = False
    """Whether it comes from another life, so that its line says so and names its world."""

    because: tuple[str, ...] = ()
    """Lines of the entries that an insight cites."""

    def __post_init__(self) -> None:
        """Check the kind and the importance."""
        if self.kind not in LEADS:
            raise ValueError(f"kind must be one of {', '.join(get_args(EntryKind))}; got {self.kind!r}")
        if not 0 <= self.importance <= 1:
            raise ValueError(f"importance must lie in 0..1, got {self.importance!r}")

    @property
    def when(self) -> str:
        """When it happened, as text: the step, and the life if that is an earlier one."""
        return moment_text(self.unit, self.time, self.world if self.is_past else None)

    @property
    def lead(self) -> str:
        """Beginning of its line, before the text: when it happened, and what kind of entry it is."""
        return f"{self.when}, {LEADS[self.kind]}"

    @property
    def line(self) -> str:
        """The entry as one line of a prompt."""
        return f"{self.lead}: {self.text}"

    def as_line_within(self, characters: int) -> MemoryEntry:
        """Return the entry with its text on one line, cut so that `line` has at most this many characters."""
        text = one_line(self.text, characters - len(f"{self.lead}: "))
        return self if text == self.text else replace(self, text=text)


def newest_lines(entries: list[MemoryEntry], characters: int) -> list[str]:
    """Return the lines of the newest entries that fit, oldest first; each line counts its line break."""
    lines: list[str] = []
    for entry in reversed(entries):
        characters -= len(entry.line) + 1
        if characters < 0:
            break
        lines.append(entry.line)
    return lines[::-1]


@runtime_checkable
class Memory(Protocol):
    """Stores what an agent lived through, within bounds, and recalls it for the agent's prompts.

    It never calls a language model itself: a memory that needs one returns a prompt from `summary_request`.
    """

    __slots__ = ()

    def add(self, entry: MemoryEntry) -> None:
        """Remember something; what no longer fits is forgotten. An entry with a blank text is ignored."""
        ...

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return what comes to mind, as lines with step numbers, oldest first; empty if nothing does.

        Args:
            cue: Query that memories are compared with.
            time: Step in which it is recalled.
            aside: True leaves no trace in the memory, as for a survey that must not change what comes later.
        """
        ...

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the earlier conversation, which precedes the new observation in a prompt; empty if there is none."""
        return ()

    def summary_request(self) -> str | None:
        """Return the prompt that asks for a summary of what is about to be forgotten; None if none is needed."""
        return None

    def keep_summary(self, text: str) -> None:
        """Store the summary that was requested."""

    def to_json(self) -> dict[str, Any]:
        """Return the whole memory as JSON values, from which `mesa_llm.memory.memory_from_json` builds it again."""
        ...


class SavedMemory(BaseModel):
    """The form in which memories of all kinds are saved."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """Version of this form."""

    kind: str
    """Name of the kind of memory, as `open_memory` knows it."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Argument of its constructor → value."""

    entries: list[MemoryEntry] = Field(default_factory=list[MemoryEntry])
    """Its entries, oldest first."""

    accessed: list[int] = Field(default_factory=list)
    """Step of each entry's last recall, for memories that forget by it."""

    summary: str = ""
    """The running summary, for memories that have one."""

    unreflected: float = 0.0
    """Summed importance since the last reflection, for memories that reflect."""

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> SavedMemory:
        """Check that a mapping is a saved memory, and return it.

        Raises:
            ConfigError: If it is not of this form.
        """
        if not isinstance(saved, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - it may come from a file
            raise ConfigError(f"this is not a memory that to_json() returned, but a {type(saved).__name__}")
        try:
            return cls.model_validate(dict(saved))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in fault["loc"]) or "it"
            raise ConfigError(f"this is not a memory that to_json() returned: {path}: {fault['msg']}") from None


class EntryMemory(Memory):
    """A memory that holds a list of entries, and is saved as that list."""

    __slots__ = ("_entries",)

    kind: ClassVar[str]
    """Name of this kind of memory, as `open_memory` knows it."""

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
        """The entries, in the order in which they were added."""
        return tuple(self._entries)

    def saved(self) -> SavedMemory:
        """Return the memory in the form it is saved in."""
        settings = {name: getattr(self, name) for name in self.settings}
        return SavedMemory(kind=self.kind, settings=settings, entries=self._entries)

    def to_json(self) -> dict[str, Any]:
        """Return the whole memory as JSON values."""
        return self.saved().model_dump(mode="json", exclude_defaults=True) | {"version": 1}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Self:
        """Build the memory that `to_json` saved; both recall the same.

        Raises:
            ConfigError: If the values are of another form or kind, or out of range.
        """
        form = SavedMemory.read(saved)
        if form.kind != cls.kind:
            raise ConfigError(f"a saved {form.kind!r} memory is no {cls.kind!r} memory; use memory_from_json")
        unknown = sorted(set(form.settings) - set(cls.settings))
        if unknown:
            raise ConfigError(f"a {cls.kind!r} memory has no setting {unknown[0]!r}, only {cls.settings}")
        memory = cls(**form.settings)
        memory.restore(form)
        return memory

    def restore(self, form: SavedMemory) -> None:
        """Load the entries of a saved memory; bounds apply as for new entries."""
        for entry in form.entries:
            self.add(entry)


def whole_number(name: str, value: object, minimum: int) -> int:
    """Return a setting of a memory that is a count.

    Raises:
        ConfigError: If it is not an integer, or below the minimum.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} of a memory must be a whole number of {minimum} or more, got {value!r}")
    return value


def number_within(name: str, value: object, minimum: float, maximum: float) -> float:
    """Return a setting of a memory that is a quantity, as a float.

    Raises:
        ConfigError: If it is not a number, or outside the range, whose ends belong to it.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise ConfigError(f"{name} of a memory must be a number in {minimum}..{maximum}, got {value!r}")
    return float(value)
