"""How the original programs read a sheet of answers: by the last character of each line."""

from __future__ import annotations


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
