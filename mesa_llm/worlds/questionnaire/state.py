"""What a questionnaire remembers: answers, and how many of each item there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Lack = Literal["out_of_range", "unparsable", "missing"]
"""Why an item that was asked has no answer."""


class Place(NamedTuple):
    """Where an answer stands."""

    agent_id: int
    """Mesa `unique_id` of who was asked."""

    administration: int
    """Which time, from 1; one a step."""

    sheet: str
    """Label of the sheet."""


@dataclass
class ItemCount:
    """What became of one item, over everybody and all times that it was asked."""

    asked: int = 0
    """How often it was asked."""

    answered: int = 0
    """Answers that count."""

    out_of_range: int = 0
    """Answers that are none of the item's choices."""

    unparsable: int = 0
    """Replies in which no answer of its kind could be read."""

    @property
    def missing(self) -> int:
        """How often nothing came: the item was left out, or there was no reply."""
        return self.asked - self.answered - self.out_of_range - self.unparsable
