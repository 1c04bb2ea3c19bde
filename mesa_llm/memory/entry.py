"""Memory entries, and what all memories have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, get_args, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.records import ChatMessage
from mesa_llm.records.frozen import frozen
from mesa_llm.text import one_line

EntryKind = Literal["observation", "decision", "outcome", "message", "thought", "insight"]

CHARACTERS_PER_TOKEN = 4
"""Characters that count as one token: right for English within some 20 %, too few for Chinese or Japanese."""

_LEAD: dict[EntryKind, str] = {
    "observation": "you saw",
    "decision": "you decided",
    "outcome": "the result was",
    "message": "you were told",
    "thought": "you thought",
    "insight": "you concluded",
}


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its characters, rounded up."""
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
    """The event as text."""

    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    """Importance, from 0 to 1."""

    world: str = ""
    """Name of the world in which it happened; empty: none, or several at once."""

    unit: str = "step"
    """Unit of time of that world: `step`, `month`, `round`, …"""

    is_past: bool = False
    """Whether it is carried over from another life, so that its line names the world it comes from."""

    because: tuple[str, ...] = ()
    """Lines of the entries that an insight rests on."""

    def __post_init__(self) -> None:
        """Refuse what no memory could rank or name."""
        if self.kind not in _LEAD:
            raise ValueError(f"kind must be one of {', '.join(get_args(EntryKind))}; got {self.kind!r}")
        if not 0 <= self.importance <= 1:
            raise ValueError(f"importance must lie in 0..1, got {self.importance!r}")

    @property
    def when(self) -> str:
        """The step, and the life, that it comes from, as text."""
        return _moment(self.unit, self.time, self.world if self.is_past else None)

    @property
    def lead(self) -> str:
        """What a line of a prompt says before the text: when it was, and what kind of thing."""
        return f"{self.when}, {_LEAD[self.kind]}"

    @property
    def line(self) -> str:
        """The entry as one line of a prompt."""
        return f"{self.lead}: {self.text}"

    def as_line_within(self, characters: int) -> MemoryEntry:
        """Return the entry with a text of one line, cut so that `line` has at most this many characters."""
        text = one_line(self.text, characters - len(f"{self.lead}: "))
        return self if text == self.text else replace(self, text=text)


@lru_cache(maxsize=256, typed=True)
def _moment(unit: str, time: int, past_world: str | None) -> str:
    """Write a step, and the life that it comes from; agents remember the same steps."""
    step = f"{unit} {time}"
    if past_world is not None:
        step = f"in an earlier life{f' in {past_world}' if past_world else ''}, {step}"
    return step[0].upper() + step[1:]


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
    """Keeps what an agent lived through, bounded, and gives it back for its prompts.

    It never calls a language model itself: a memory that needs one says so in `summary_request`.
    """

    __slots__ = ()

    def add(self, entry: MemoryEntry) -> None:
        """Remember something; what no longer fits is forgotten. A blank text is nothing to remember."""
        ...

    def recall(self, cue: str, time: int, *, aside: bool = False) -> str:
        """Return what comes to mind, as lines with step numbers, oldest first; empty when nothing does.

        Args:
            cue: What it is looked up by.
            time: Step in which it is recalled.
            aside: True leaves no trace in the memory, as for a survey that must not change what comes later.
        """
        ...

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the earlier conversation that goes before the new observation; empty if there is none."""
        return ()

    def summary_request(self) -> str | None:
        """Return the prompt that asks for a summary of what is about to be forgotten; None when not needed."""
        return None

    def keep_summary(self, text: str) -> None:
        """Store the summary that was requested."""

    def to_json(self) -> dict[str, Any]:
        """Return the whole memory as JSON values, to be read back by `mesa_llm.memory.memory_from_json`."""
        ...


class SavedMemory(BaseModel):
    """A memory as it lies in a file: one form for all kinds."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    """Version of this form."""

    kind: str
    """Name of the kind of memory, as `open_memory` knows it."""

    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments of its constructor."""

    entries: list[MemoryEntry] = Field(default_factory=list[MemoryEntry])
    """Its entries, oldest first."""

    accessed: list[int] = Field(default_factory=list)
    """Step of each entry's last recall, for memories that forget by it."""

    summary: str = ""
    """The running summary, for memories that have one."""

    unreflected: float = 0.0
    """Importance that has added up since the last reflection, for memories that reflect."""

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> SavedMemory:
        """Check a saved memory.

        Raises:
            ConfigError: If it is not of this form.
        """
        if not isinstance(saved, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - it may come from a file
            raise ConfigError(f"this is no memory that to_json() wrote, but a {type(saved).__name__}")
        try:
            return cls.model_validate(dict(saved))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in fault["loc"]) or "it"
            raise ConfigError(f"this is no memory that to_json() wrote: {path}: {fault['msg']}") from None


class EntryMemory(Memory):
    """A memory that holds entries in a list, and is saved as that list."""

    __slots__ = ("_entries",)

    kind: ClassVar[str]
    """Name of this kind of memory, as `open_memory` knows it."""

    settings: ClassVar[tuple[str, ...]] = ()
    """Names of its constructor's arguments that are saved."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._entries: list[MemoryEntry] = []

    def __repr__(self) -> str:
        """Return its class and the number of its entries."""
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
        """Build the memory that `to_json` gave; both recall the same.

        Raises:
            ConfigError: If the values are of another form, of another kind, or out of range.
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
    """Check a setting of a memory that counts something.

    Raises:
        ConfigError: If it is no integer, or below the least.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} of a memory must be a whole number of {minimum} or more, got {value!r}")
    return value


def number_within(name: str, value: object, minimum: float, maximum: float) -> float:
    """Check a setting of a memory that measures something.

    Raises:
        ConfigError: If it is no number, or outside the range.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise ConfigError(f"{name} of a memory must be a number in {minimum}..{maximum}, got {value!r}")
    return float(value)
