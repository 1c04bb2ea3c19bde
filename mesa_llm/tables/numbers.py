"""Numbers in the cells of tables: exact ones, and those that people write with units, signs and separators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mesa_llm.errors import ConfigError

NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d{1,20})?", re.ASCII)
"""A number in plain digits."""

WRITTEN_NUMBER = re.compile(r"[-+−]?\d{1,300}(?:[.,]\d{1,20})?", re.ASCII)
"""A number as people write it, with a decimal point or comma."""

THOUSANDS = re.compile(r"[-+−]?[1-9]\d{0,2},\d{3}", re.ASCII)
"""A number whose comma may mean two things."""

_SPACES = re.compile(r"(?<=\d)[\u00a0\u2009\u202f '’](?=\d{3}(?!\d))")
"""Thousands separators that are no comma or point."""

_MEASURED = re.compile(r"([$€£¥]?)\s*([-+−]?\s?[$€£¥]?)\s*(\d[\d.,]*)\s*(.*)", re.DOTALL)
"""A number with what stands before and after it."""

_UNIT = re.compile(r"[%‰°$€£¥]|°?[^\W\d_][^\d]{0,20}")
"""What is taken for a unit."""

_CODE_LABEL = re.compile(r"(?:[=:)(]|[-–—.](?=\s)).*[^\W\d].*", re.DOTALL)
"""The rest of a cell such as `1 = never`, `5 - agree` or `7 (very)`."""


def plain_number(text: str) -> int | float | None:
    """Return the number that a text spells exactly, or None.

    Leading zeros, plus signs, exponents and spaces are not accepted, so `str` of the number gives the text again.
    """
    if NUMBER.fullmatch(text) is None:
        return None
    number = float(text) if "." in text else int(text)
    return number if str(number) == text else None


def number_in(cell: Any) -> float | None:
    """Return the number in a cell, also one written with a decimal comma (3,5); None if there is none.

    Raises:
        ConfigError: If a comma may stand for a decimal point or for thousands.
    """
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    if not isinstance(cell, str) or (match := WRITTEN_NUMBER.fullmatch(cell.strip())) is None:
        return None
    if THOUSANDS.fullmatch(match[0]):
        raise ConfigError(f"{cell!r} may be thousands, or a number with three decimals; write it without a comma")
    return float(match[0].replace(",", ".").replace("−", "-"))


def with_numbers(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> None:
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
                if not isinstance(cell, str) or (number := plain_number(cell)) is None:
                    break
                numbers.append(number)
        else:
            values = iter(numbers)
            for row in rows:
                if column in row:
                    row[column] = next(values)


def numbers_of(cells: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return the numbers of a column whose cells have a unit, a currency, thousands, or the label of a code.

    Args:
        cells: Cells such as `25 years`, `12 %`, `$1,200.50`, `1.234,5` or `5 = agree`.

    Returns:
        The numbers, and what was taken off them, for people to read; None if some cells hold no number.

    Raises:
        ConfigError: If units differ, a code has two labels, or a comma or point may mean two things.
    """
    parts: list[tuple[str, str] | float] = []
    for cell in cells:
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            parts.append(float(cell))
            continue
        match = _MEASURED.fullmatch(_SPACES.sub("", str(cell).strip()))
        if match is None or isinstance(cell, bool):
            return None
        sign = "-" if match[2].strip()[:1] in ("-", "−") else ""
        currency = match[1] or match[2].strip("-+− ")
        parts.append((sign + match[3].rstrip(".,"), currency or match[4].strip()))
    texts = [part for part in parts if isinstance(part, tuple)]
    taken = _units(texts)
    if taken is None:
        return None
    mark = _decimal_mark([text for text, _ in texts])
    return [_valued(part[0], mark) if isinstance(part, tuple) else part for part in parts], taken


def _units(texts: Sequence[tuple[str, str]]) -> str | None:
    """Describe what stands beside numbers; None if these are no numbers with a unit.

    Raises:
        ConfigError: If units differ, or a code has two labels.
    """
    labels: dict[str, str] = {}
    units: dict[str, str] = {}
    for number, rest in texts:
        if _CODE_LABEL.fullmatch(rest):
            if (first := labels.setdefault(number, rest)).casefold() != rest.casefold():
                raise ConfigError(f"the code {number} has two labels, {first!r:.60} and {rest!r:.60}; give it one")
        elif rest and not _UNIT.fullmatch(rest):
            return None
        elif rest:
            units.setdefault(rest.casefold().rstrip("s."), rest)
    if labels and units:
        return None
    if len(units) > 1:
        named = " and ".join(map(repr, list(units.values())[:2]))
        if all(re.fullmatch(r"[^\W\d]{1,12}\.?|%", unit) for unit in units.values()):
            raise ConfigError(f"some numbers are in {named}; write all of them in one unit")
        return None
    if labels:
        code, label = next(iter(labels.items()))
        return f"codes are read without their labels, such as {f'{code} {label}'!r:.60}"
    return "".join(f"{unit!r:.30} is taken off the numbers" for unit in units.values())


def _decimal_mark(numbers: Iterable[str]) -> str:
    """Return the decimal mark of a column.

    Raises:
        ConfigError: If its numbers do not agree, or may be read in two ways.
    """
    votes: Counter[str] = Counter()
    doubtful = ""
    for number in numbers:
        marks = [sign for sign in number if sign in ".,"]
        if len(set(marks)) == 2:
            votes[marks[-1]] += 1
        elif len(marks) > 1:
            votes["," if marks[0] == "." else "."] += 1
        elif marks and re.fullmatch(r"-?[1-9]\d{0,2}[.,]\d{3}", number):
            doubtful = doubtful or (number if marks[0] == "," else "")
        elif marks:
            votes[marks[0]] += 1
    if len(votes) > 1:
        raise ConfigError("some numbers have a decimal comma and some a decimal point; write them alike")
    if doubtful and not votes:
        raise ConfigError(f"{doubtful!r} may be thousands, or a number with three decimals; write it without a comma")
    return "," if votes[","] else "."


def _valued(number: str, decimal_mark: str) -> float:
    other = "," if decimal_mark == "." else "."
    return float(number.replace(other, "").replace(decimal_mark, "."))
