"""Compare what a run log holds with what its replies give when the run is repeated.

Everything but the replies follows from them: decisions, outcomes, events, messages, measures, answers to a model's own
surveys, and the texts of the requests. A log that was changed by hand, or whose run the present code does not repeat,
differs in some column, which is named.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, cast

from mesa_llm._deprecated import FAILURES
from mesa_llm.records import Request
from mesa_llm.runlog.layout import FORMAT, columns, later_columns
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.queries import value_of
from mesa_llm.runlog.tables import IN_COLUMNS, is_intact, keys_of, readable, storable
from mesa_llm.runlog.versions import DISTRIBUTION
from mesa_llm.runlog.versions import versions as here
from mesa_llm.text import clip, counted

TRACE = ("decisions", "actions", "events", "messages", "steps")
"""Tables that a run writes at the end of each step."""

_REPLIES, _COST, _WRITER = "replies", "tokens, prices, seconds and attempts", "who wrote the log, and when"
_ACCESS, _HERE = "how language models were reached", "versions, prompts and code, which are compared with those here"

NOT_COMPARED: Mapping[str, str] = {
    **dict.fromkeys(["calls.reply", "calls.error_kind", "calls.error"], _REPLIES),  # all else follows from them
    **dict.fromkeys([f"calls.{name}" for name in IN_COLUMNS], _COST),  # the provider said so
    **dict.fromkeys(["writer.pid", "writer.host", "writer.since"], _WRITER),
}
"""Column of a run log that a replay cannot check → what it holds."""

FACTS_NOT_COMPARED: Mapping[str, str] = {
    **dict.fromkeys(["versions", "prompts", "code"], _HERE),
    **dict.fromkeys(["options", "capabilities", "models"], _ACCESS),
    "recorded_on": _WRITER,
    "requests": "how requests are put together",  # a replay follows it
    "unanswered": _COST,
    "asked_again_after": "which failures were asked again",
    "sealed_claims": "the claims that were sealed before the run",
    "row": "the row of the run in the table of a sweep",
    "branch": "the run that this one branched from",
}
"""Fact in the manifest that a replay cannot check → what it is."""

EXCERPT = 80
"""Maximum number of characters of a value that differs."""

MAX_KEPT = 100
"""Maximum number of differences that are kept."""


def not_checked(file: str | Path) -> str:
    """Return the line that goes with what is read from a run log without replaying it.

    Args:
        file: The log, as the user can name it; or what stands for several.
    """
    return f"not checked against the recorded replies; to check: mesa-llm replay {file}"


@dataclass(frozen=True)
class Difference:
    """A value of a run log that its replies do not give."""

    column: str
    """Table and column, such as `decisions.text`; or a table that holds other rows, or a fact of the manifest."""

    step: int | None
    """Its step; None: it belongs to none."""

    agent: int | None
    """Mesa `unique_id` of its agent; None: it belongs to none."""

    recorded: str
    """What the log holds, shortened."""

    now: str
    """What the replies give, shortened."""

    by: str = ""
    """Who decided, in the log: a language model, `rule` or `random`; empty if it is no decision."""

    def __str__(self) -> str:
        """Describe it on one line."""
        parts = [self.column]
        parts += [] if self.step is None else [f"step {self.step}"]
        parts += [] if self.agent is None else [f"agent {self.agent}"]
        return f"{', '.join(parts)}: recorded {self.recorded}, now {self.now}"


class LogComparison:
    """Compares a run log, step by step, with a replay of it.

    Attributes:
        differences: The first differences, in the order in which they were found.
        first_step: The first step that differs; None: none does.
    """

    def __init__(self, recorded: RunLog, replayed: RunLog) -> None:
        """Watch a replay that has not begun.

        Args:
            recorded: The log, opened to be read.
            replayed: The log of the replay, in mode `replay`.
        """
        self._recorded, self._now = recorded, replayed
        self._is_earlier = recorded.format < FORMAT
        self._missing: dict[str, list[str]] = {}  # table → columns that an earlier version did not record
        self._calls: set[int] = set()  # rows of the requests that were made again
        self._keys: frozenset[str] | None = None
        self._n_answers_of_others = self._n_unasked = 0
        self.differences: list[Difference] = []
        self.first_step: int | None = None
        replayed.on_found = self.check_call

    def check_call(self, row: int, request: Request | None) -> None:
        """Compare a request with the one that is recorded with its reply.

        Args:
            row: Row of the recorded one.
            request: The request that is made now; None: it differs in the limit of tokens alone.
        """
        if row in self._calls:
            return
        self._calls.add(row)
        if request is None:
            return
        model, messages, parameters, options = map(storable, readable(request))
        now = (request.salt.purpose, request.salt.call, model, messages, parameters, options)
        names = ("purpose", "call", "model", "prompt", "parameters", "options")
        for name, old, new in zip(names, self._recorded.request_at(row), now, strict=True):
            if (_without_sent(old) if name == "parameters" else old) != new:
                self._add(f"calls.{name}", request.salt.time, request.salt.agent, old, new)

    def check_step(self, step: int) -> None:
        """Compare what the log holds of a step that has just been repeated.

        Args:
            step: The step.
        """
        for table in TRACE:
            before, now = self._recorded.rows_at(table, step), self._now.rows_at(table, step)
            if len(before) != len(now):
                self._add(table, step, None, counted(len(before), "row"), counted(len(now), "row"))
            for old, new in zip(before, now, strict=False):
                self._check_row(table, step, old, new)

    def _check_row(self, table: str, step: int, old: Sequence[Any], new: Sequence[Any]) -> None:
        names = columns()[table]
        agent = dict(zip(names, new, strict=True)).get("agent")
        for name, before, now in zip(names, old, new, strict=True):
            if before == now or name in self._missing_in(table):
                continue
            if name == "kind" and FAILURES.get(str(before)) == now:
                continue
            if name == "keys" and self._was_nothing_asked(before):
                self._n_unasked += 1
                continue
            if self._is_earlier and (name == "digest" or are_alike(value_of(before), value_of(now))):
                continue
            by = str(old[names.index("by")]) if table == "decisions" else ""
            self._add(f"{table}.{name}", step, agent, before, now, by)

    def _was_nothing_asked(self, stored: object) -> bool:
        """Check whether keys of an earlier version stand for no recorded reply, as those of the random baseline do."""
        versions = self._recorded.manifest.get("versions", {})
        if not isinstance(versions, dict) or versions.get(DISTRIBUTION) == here().get(DISTRIBUTION):
            return False
        if self._keys is None:
            self._keys = self._recorded.recorded_keys()
        return self._keys.isdisjoint(keys_of(stored).split())

    def _missing_in(self, table: str) -> list[str]:
        """Return the columns of a table that hold nothing, as in a log of a version that did not have them."""
        if table not in self._missing:
            names = later_columns(table)
            self._missing[table] = [name for name in names if not self._recorded.has_values(table, name)]
        return self._missing[table]

    def finish(self) -> None:
        """Compare what belongs to no step, after the last one."""
        for column, recorded, now in self._now.identity_changes():
            self._add(column, None, None, recorded, now)
        for table in TRACE:
            steps = self._recorded.steps_in(table) - self._now.steps_in(table)
            for step in sorted(steps, key=str):
                self._add(table, step, None, "rows", "no such step")
        self._check_answers()
        for text_id, check, text in self._recorded.rows("texts"):
            if not isinstance(text, str) or not is_intact(text, check):
                self._add("texts.hash", None, None, f"another text {text_id}", "the sum of it")

    def _check_answers(self) -> None:
        """Compare the answers to surveys of the model itself; those of others may be among the recorded ones."""
        before, now = Counter(self._recorded.rows("answers")), Counter(self._now.rows("answers"))
        left = before - now
        for row in (now - before).elements():
            alike = max(left.elements(), key=lambda one: sum(map(eq, one, row)), default=None)
            if alike is None:
                self._add("answers", row[0], row[1], "no such row", row)
                continue
            left[alike] -= 1
            for name, old, new in zip(columns()["answers"], alike, row, strict=True):
                if old != new:
                    self._add(f"answers.{name}", row[0], row[1], old, new)
        self._n_answers_of_others = left.total()

    @property
    def reason(self) -> str:
        """Why the replay differs, in sentences, as far as the log tells; empty if it does not differ."""
        if not self.differences:
            return ""
        changes = self._now.changes
        if changes:
            return " ".join([_meaning_of(self.differences[0]), *changes])
        same = "Neither the version nor a prompt nor the code of the model has changed since"
        unknown = "The version is the one that recorded it"
        manifest = self._recorded.manifest
        if {"versions", "prompts", "code"} <= manifest.keys():
            return f"{same}: the log was changed after it was recorded."
        return f"{unknown}: the code of the model, or the log itself, was changed since."

    def not_compared(self) -> list[str]:
        """Return what of this log was not compared, in words."""
        others = self._recorded.purposes_but(self._calls)
        asked = [f"{counted(n, 'request')} of {purpose}" for purpose, n in others.items()]
        asked += [f"{counted(n, 'answer')} to surveys" for n in [self._n_answers_of_others] if n]
        missing = [f"{table}.{name}" for table, names in self._missing.items() for name in names]
        texts = [text for name, text in NOT_COMPARED.items() if self._calls or others or not name.startswith("calls.")]
        texts += [text for name, text in FACTS_NOT_COMPARED.items() if name in self._recorded.manifest]
        texts += ["keys of choices that no language model made"] if self._n_unasked else []
        texts += [f"{', '.join(asked)}, which the run itself does not ask for"] if asked else []
        texts += [f"{', '.join(missing)}, which the log does not hold"] if missing else []
        return list(dict.fromkeys(texts))

    def _add(self, column: str, step: Any, agent: Any, recorded: Any, now: Any, by: str = "") -> None:
        if step is not None and self.first_step is None:
            self.first_step = step
        if len(self.differences) < MAX_KEPT:
            self.differences.append(Difference(column, step, agent, *_excerpts(recorded, now), by))


def _meaning_of(difference: Difference) -> str:
    """Say what has changed where a replay first differs."""
    table = difference.column.partition(".")[0]
    match table, difference.by:
        case "decisions", "random":
            return "What the random baseline chooses from has changed."
        case "decisions", "rule":
            return "The rule that agents decide by has changed."
        case "decisions", _:
            return "The same replies are read otherwise."
        case (("actions" | "events" | "messages" | "steps"), _):
            return "The rules of the model or of its worlds have changed."
        case _:
            return ""


def are_alike(recorded: Any, now: Any) -> bool:
    """Check whether two JSON values are equal but for the last digits of numbers."""
    if isinstance(recorded, float) and isinstance(now, float):
        return math.isclose(recorded, now, rel_tol=1e-9, abs_tol=1e-12) or (recorded != recorded and now != now)
    if isinstance(recorded, list) and isinstance(now, list):
        return len(recorded) == len(now) and all(map(are_alike, recorded, now))
    if isinstance(recorded, dict) and isinstance(now, dict):
        ours, theirs = cast("dict[str, Any]", recorded), cast("dict[str, Any]", now)
        return ours.keys() == theirs.keys() and all(are_alike(value, theirs[name]) for name, value in ours.items())
    return recorded == now


def _without_sent(parameters: object) -> str:
    """Leave out of a call's parameters what its transport sent beside the messages, which a replay does not."""
    text = str(parameters)
    try:
        fields = json.loads(text)
    except ValueError:
        return text
    return text if "sent" not in fields else text[: text.rindex(',"sent":')] + "}"


def _excerpts(recorded: object, now: object) -> tuple[str, str]:
    """Shorten two values, from where they begin to differ."""
    before, after = (value if isinstance(value, str) else str(value) for value in (recorded, now))
    n_equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    start = max(0, n_equal - 20) if max(len(before), len(after)) > EXCERPT else 0
    first, second = ("…" * bool(start) + clip(text[start:], EXCERPT) for text in (before, after))
    return repr(first), repr(second)
