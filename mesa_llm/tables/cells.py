"""Cells that are text: which of them are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d{1,20})?", re.ASCII)
"""A number in plain figures."""


def plain_number(text: str) -> int | float | None:
    """Return the number that is written exactly so, without leading zero, plus sign, exponent or blank; else None.

    `str` of the number is the text again.
    """
    if NUMBER.fullmatch(text) is None:
        return None
    number = float(text) if "." in text else int(text)
    return number if str(number) == text else None


def with_numbers(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Turn the cells of each column that holds numbers alone, as `plain_number` tells them, into these numbers.

    Args:
        columns: Names of the columns.
        rows: Cells by column, without empty ones; changed in place.
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
