"""The log of a light run, which keeps nothing: no decisions, no outcomes, no digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mesa_llm.records import Decision, Event, Failure, Message, Outcome
from mesa_llm.runlog.log import RunLog


class LightLog(RunLog):
    """A run log in memory that stays empty, for runs of which only the results are wanted.

    Replies of language models would be lost, so none may be asked.

    Attributes:
        was_read: Whether somebody looked for what is kept nowhere, as results that count actions do.
    """

    is_light: ClassVar[bool] = True
    was_read: bool = False

    def rows(self, name: str, agent: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Read nothing, and note that it was wanted."""
        self.was_read = True
        return super().rows(name, agent)

    def add(self, record: Decision | Failure | Outcome | Event | Message, time: int) -> None:
        """Leave a record out."""

    def add_all(self, records: Sequence[Decision | Failure], time: int) -> None:
        """Leave records out.

        Raises:
            ConfigError: If the log is closed.
        """
        self._check_open()

    def end_step(self, time: int, row: Mapping[str, Any]) -> str:
        """End a step of which nothing is kept."""
        return self.digest

    @property
    def digest(self) -> str:
        """Empty: a light run has none."""
        return ""
