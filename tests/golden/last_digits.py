"""How the original programs read a sheet of answers: by the last character of each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def last_digits(text: str) -> list[int]:
    """Read one answer a line, the line's last character, as PsychoBench and EmotionBench do.

    Nothing here checks a range: `2) 10` is 0, and `1: -3` is 3. Models here ask for typed answers instead.

    Args:
        text: The reply; blank lines are passed over.

    Raises:
        ValueError: If a line ends in something else; the whole sheet has failed then.
    """
    lines = [line.strip() for line in text.split("\n")]
    return [int(line[-1]) for line in lines if line]


def assert_read_by_last_digits(case: Mapping[str, Any]) -> None:
    """Check a recorded sheet; one that failed has no answers, and one without a line may count as failed, too."""
    if case["failed"] and case["text"].strip():
        assert set(case["expected"] or ()) <= {""}
        with pytest.raises(ValueError, match="invalid literal"):
            last_digits(case["text"])
    else:
        assert last_digits(case["text"]) == [answer for answer in case["expected"] or () if answer != ""]
