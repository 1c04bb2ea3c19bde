"""Recognise numbers in text cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d{1,20})?", re.ASCII)
"""A number in plain digits."""


def plain_number(text: str) -> int | float | None:
    """Return the number that a text spells exactly, or None.

    Leading zeros, plus signs, exponents and spaces are not accepted, so `str` of the number gives the text again.
    """
    if NUMBER.fullmatch(text) is None:
        return None
    number = float(text) if "." in text else int(text)
    return number if str(number) == text else None


def with_numbers(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Convert every column that holds only numbers, as `plain_number` defines them.

    Args:
        columns: Names of the columns.
        rows: Cells by column, without empty ones. Changed in place.
    """
    rows = list(rows)
    for column in columns:
        numbers: list[int | float] = []
        for row in rows:
            if (cell := row.get(column)) is not None:
                if (number := plain_number(cell)) is None:
                    break
                numbers.append(number)
        else:
            values = iter(numbers)
            for row in rows:
                if column in row:
                    row[column] = next(values)
