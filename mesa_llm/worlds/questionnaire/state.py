"""State of a questionnaire: keys of answers, and counts of answers and failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Lack = Literal["out_of_range", "unparsable", "missing"]
"""Reason why an item has no answer."""


class AnswerKey(NamedTuple):
    """Key of an answer."""

    agent_id: int
    """Mesa `unique_id` of the respondent."""

    administration: int
    """Number of the administration, from 1; one per step."""

    sheet: str
    """Label of the sheet."""


@dataclass
class ItemCount:
    """Counts of one item, over all respondents and administrations."""

    asked: int = 0
    """Number of times it was asked."""

    answered: int = 0
    """Number of valid answers."""

    out_of_range: int = 0
    """Number of answers outside the item's choices."""

    unparsable: int = 0
    """Number of replies without a readable answer of its kind."""

    @property
    def missing(self) -> int:
        """Number of times without any answer: the item was left out, or there was no reply."""
        return self.asked - self.answered - self.out_of_range - self.unparsable

    @property
    def lacks(self) -> dict[Lack, int]:
        """Number of times without an answer, by reason."""
        return {"out_of_range": self.out_of_range, "unparsable": self.unparsable, "missing": self.missing}
