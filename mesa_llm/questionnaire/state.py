"""State of a questionnaire: keys of answers, and counts of answers and failures."""

from __future__ import annotations

from dataclasses import dataclass, field
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


MIN_LINE = 6
"""Minimum number of items of one instrument from which one number throughout counts as straight-lining."""


@dataclass
class AnswerLine:
    """The answers of one respondent to one instrument in one administration, as far as they run in a straight line.

    Source:
        Kim et al. (2019), Straightlining: Overview of Measurement, Comparison of Indicators, Social Science Computer
        Review 37(2).
    """

    n: int = 0
    """Number of answers."""

    values: set[int | str] = field(default_factory=set[int | str])
    """The different answers; no more than two are kept."""

    keys: set[bool] = field(default_factory=set[bool])
    """Whether the items are reversed: both, if some are."""

    def add(self, value: int | str, *, is_reversed: bool) -> None:
        """Add an answer."""
        self.n += 1
        self.keys.add(is_reversed)
        if len(self.values) < 2:
            self.values.add(value)

    @property
    def is_long(self) -> bool:
        """Whether one number throughout would say nothing: there are enough items, and some are reversed."""
        return self.n >= MIN_LINE and len(self.keys) == 2

    @property
    def is_straight(self) -> bool:
        """Whether the same number answers an item and its opposite throughout."""
        return self.is_long and len(self.values) == 1
