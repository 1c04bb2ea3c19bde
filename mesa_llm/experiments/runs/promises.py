"""What a recorded run promises to show, and whether it does: the rule by which recordings are kept.

The rule is fixed before a run is recorded, and the same for all: at least three measures move, at most half of the
actions do nothing, at most a tenth of the texts repeat an earlier one, and what the title says happens. The last is
declared beside the run as conditions on numbers of its log:

    promise = "steps >= 2 and actions.say >= 1"

| number | what it is |
|---|---|
| `steps` | number of steps |
| `end.NAME`, `change.NAME`, `range.NAME` | a measure at the end, less its start, and its largest less its least value |
| `actions.NAME`, `agents.NAME` | how often an action succeeded, and how many agents did it |
| `events.KIND` | number of events |
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mesa_llm.runlog.log import RunLog

MIN_MOVED = 3
"""Minimum number of measures that move; a model that has fewer must move all."""

MAX_IDLE_PERCENT = 50
"""Maximum percentage of actions that do nothing."""

MAX_REPEATED_PERCENT = 10
"""Maximum percentage of texts that repeat an earlier one."""

IDLE = frozenset({"do_nothing", "wait", "nothing", "pass"})
"""Actions that do nothing, whatever the model; a run may declare further ones."""

MIN_WORDS = 4
"""Minimum number of words of what counts as a text."""

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}

_CONDITION = re.compile(
    r"(?P<kind>steps|end|change|range|actions|agents|events)(?:\.(?P<name>[^<>=]+?))?"
    r"\s*(?P<sign>>=|<=|==|>|<)\s*(?P<bound>-?\d+(?:\.\d+)?)"
)


class PromisedBound(NamedTuple):
    """A condition on one number of a run."""

    kind: str
    """Which number; see the module."""

    name: str
    """Name of the measure or action, or kind of the events; empty for `steps`."""

    sign: str
    """How the number is compared."""

    bound: float
    """What it is compared with."""


def conditions_in(promise: str) -> list[PromisedBound]:
    """Read the conditions of a promise.

    Raises:
        ValueError: If it is none; the text says which part.
    """
    found: list[PromisedBound] = []
    for part in re.split(r"\s+and\s+", promise.strip()) if promise.strip() else []:
        match = _CONDITION.fullmatch(part)
        if match is None or (match["kind"] == "steps") != (match["name"] is None):
            raise ValueError(
                f"{part!r} is no condition; write one such as 'steps >= 2', 'end.stock > 0' or 'actions.say >= 1'"
            )
        found.append(PromisedBound(match["kind"], match["name"] or "", match["sign"], float(match["bound"])))
    return found


@dataclass(frozen=True)
class Trace:
    """What a run log holds of a run, as numbers and texts; nothing is replayed."""

    steps: int
    """Number of steps."""

    measures: Mapping[str, Sequence[float | None]]
    """Measure → its value after each step; None: it had none."""

    actions: Sequence[tuple[int, str]]
    """Agent and name of each action that succeeded; answers to questions are none."""

    events: Mapping[str, int]
    """Kind → number of events."""

    texts: Sequence[str]
    """What was said and written, in order."""

    @classmethod
    def of(cls, file: Path) -> Trace:
        """Read a run log.

        Raises:
            ConfigError: If it is damaged, or no run log.
        """
        with closing(RunLog(file, "read")) as log:
            tables: Any = {name: log.table(name) for name in ("steps", "actions", "events")}
        rows = [json.loads(text) for text in tables["steps"]["measures"]]
        done = tables["actions"][tables["actions"]["ok"].astype(bool)]
        actions = list(zip(done["agent"], done["action"], done["arguments"], strict=True))
        return cls(
            len(rows),
            series_of(rows),
            [(int(agent), str(action)) for agent, action, _ in actions if action != "answer"],
            Counter(map(str, tables["events"]["kind"])),
            [text for *_, arguments in actions for text in _texts_in(json.loads(arguments or "null"))],
        )

    @property
    def moved(self) -> list[str]:
        """The measures that move: those with several values, or in a single step with one that is not 0."""
        start = {0} if self.steps < 2 else set[int]()
        return [name for name, values in self.measures.items() if len({*values, *start} - {None}) > 1]

    def idle_percent(self, idle: frozenset[str]) -> float:
        """Return the percentage of actions that do nothing; 0 without actions."""
        return 100 * sum(name in idle for _, name in self.actions) / len(self.actions) if self.actions else 0.0

    @property
    def repeated_percent(self) -> float:
        """Percentage of texts that repeat an earlier one, but for case and punctuation; 0 without texts."""
        plain = [" ".join(re.findall(r"\w+", text.casefold())) for text in self.texts]
        return 100 * (len(plain) - len(set(plain))) / len(plain) if plain else 0.0

    def number(self, condition: PromisedBound) -> float | None:
        """Return the number that a condition is about; None: the run has no such measure, or it has no value."""
        name = condition.name
        values = [value for value in self.measures.get(name, ()) if value is not None]
        match condition.kind:
            case "steps":
                return self.steps
            case "actions":
                return sum(done == name for _, done in self.actions)
            case "agents":
                return len({agent for agent, done in self.actions if done == name})
            case "events":
                return self.events.get(name, 0)
            case _ if not values:
                return None
            case "end":
                return values[-1]
            case "change":
                return values[-1] - values[0]
            case _:
                return max(values) - min(values)

    def keeps(self, promise: str) -> bool:
        """Check whether all conditions of a promise hold.

        Raises:
            ValueError: If it is none.
        """
        numbers = [(self.number(one), one) for one in conditions_in(promise)]
        return all(number is not None and _SIGNS[one.sign](number, one.bound) for number, one in numbers)


@dataclass(frozen=True)
class RecordingVerdict:
    """Whether a recording is worth watching, by the rule of this module."""

    n_moved: int
    """Number of measures that move."""

    n_measures: int
    """Number of its measures."""

    idle_percent: float
    """Percentage of actions that do nothing."""

    repeated_percent: float
    """Percentage of texts that repeat an earlier one."""

    is_kept: bool | None
    """Whether its promise is kept; None: it has none."""

    @classmethod
    def on(cls, trace: Trace, promise: str, idle: frozenset[str] = IDLE) -> RecordingVerdict:
        """Judge what a log holds."""
        is_kept = trace.keeps(promise) if promise else None
        shares = trace.idle_percent(idle), trace.repeated_percent
        return cls(len(trace.moved), len(trace.measures), *shares, is_kept)

    @property
    def faults(self) -> list[str]:
        """What speaks against it, in words; none if it is worth watching."""
        found = {
            f"{self.n_moved} of {self.n_measures} measures move": self.n_moved >= min(MIN_MOVED, self.n_measures),
            f"{self.idle_percent:.0f} % idle": self.idle_percent <= MAX_IDLE_PERCENT,
            f"{self.repeated_percent:.0f} % repeated": self.repeated_percent <= MAX_REPEATED_PERCENT,
            "promises nothing" if self.is_kept is None else "promise not kept": self.is_kept is True,
        }
        return [text for text, holds in found.items() if not holds]


def series_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """Return the series of the measures that are numbers.

    Args:
        rows: Measures after each step, by name; what is no number, such as tables of agents, is left out.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    series = {name: [_number(row.get(name)) for row in rows] for name in names}
    return {name: values for name, values in series.items() if any(value is not None for value in values)}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def _texts_in(value: Any) -> list[str]:
    """Return the texts of a few words among the arguments of an action, or in an answer."""
    match value:
        case str():
            return [value] if len(re.findall(r"[^\W\d_]{2,}", value)) >= MIN_WORDS else []
        case Mapping():
            return [text for each in value.values() for text in _texts_in(each)]
        case list():
            return [text for each in value for text in _texts_in(each)]
        case _:
            return []
