"""Rows of tables: column names, size limits, line numbers, and numbers in text cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from mesa_llm.errors import ConfigError

Row = dict[str, Any]
"""Cells of a row by column, without empty ones."""

PlacedRow = tuple[int, Row | str]
"""Line on which a row begins, from 1, with its cells or a description of what is wrong with them."""

MAX_COLUMNS = 5_000
"""Maximum number of columns."""

MAX_ROWS = 3_000_000
"""Maximum number of rows."""

MAX_LINES = 10_000_000
"""Maximum number of lines of a text file with a table."""

MAX_CELL = 2**23
"""Maximum number of characters of a cell; a user's list of followees is a single cell."""

NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d{1,20})?", re.ASCII)
"""A number in plain digits."""

WRITTEN_NUMBER = re.compile(r"[-+−]?\d{1,300}(?:[.,]\d{1,20})?", re.ASCII)
"""A number as people write it, with a decimal point or comma."""

THOUSANDS = re.compile(r"[-+−]?[1-9]\d{0,2},\d{3}", re.ASCII)
"""A number whose comma may mean two things."""


def folded(column: Any) -> str:
    """Normalise a column name: case-folded, with underscores for spaces."""
    return "_".join(str(column).casefold().split())


def is_filled(cell: Any) -> bool:
    """Check whether a cell holds anything but whitespace."""
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def require_size(n_rows: int, n_columns: int, where: str) -> None:
    """Check the size of a table.

    Raises:
        ConfigError: If there are too many rows or columns.
    """
    if n_columns > MAX_COLUMNS:
        raise ConfigError(f"{where}: found {n_columns:,} columns; a table has up to {MAX_COLUMNS:,}")
    if n_rows > MAX_ROWS:
        raise ConfigError(f"{where}: found {n_rows:,} rows; a table has up to {MAX_ROWS:,}")


def headed_rows(
    records: Iterable[tuple[int, Sequence[Any] | str]], path: Any, unit: str = "line"
) -> tuple[list[str], list[PlacedRow]]:
    """Label the cells of each row with the column names in the first row; empty rows are left out.

    An empty column needs no name, and neither does a first column of row numbers.

    Args:
        records: Line and cells of each row, the header first, or a description of what is wrong with the row.
        path: The file, for errors.
        unit: What `records` counts (lines or rows), for errors.

    Returns:
        The column names, and the rows.

    Raises:
        ConfigError: If there are no rows, the table is too large, a column with cells has no name, or two columns have
            the same name.
    """
    numbered = iter(records)
    header_line, header = next(numbered, (1, ()))
    where = f"{path}, {unit} {header_line}"
    columns = _names_of(header, where)
    nameless = {place for place, name in enumerate(columns) if not name}
    placed: list[PlacedRow] = []
    n_columns = len(columns)
    for line, cells in numbered:
        if isinstance(cells, str):
            placed.append((line, cells))
            continue
        require_size(len(placed), len(cells), where)
        filled = [(place, cell) for place, cell in enumerate(cells) if is_filled(cell)]
        if not filled:
            continue
        if len(cells) < n_columns or filled[-1][0] >= n_columns:
            n_cells = len(cells) if len(cells) < n_columns else filled[-1][0] + 1
            placed.append((line, f"found {n_cells} cells; wanted {n_columns}, one for each column"))
            continue
        placed.append((line, {columns[place]: cell for place, cell in filled if columns[place]}))
        if nameless:
            _require_names([cell for cell in filled if cell[0] in nameless], where, f"{unit} {line}")
    if not placed:
        raise ConfigError(f"{where}: found only column names; wanted rows below them")
    return columns, placed


def _names_of(header: Sequence[Any] | str, where: str) -> list[str]:
    """Return the column names, empty where one is missing.

    Raises:
        ConfigError: If there are none, too many, or two are the same.
    """
    require_size(0, len(header), where)
    columns = ["" if cell is None else str(cell).strip() for cell in header]
    if isinstance(header, str) or not any(columns):
        raise ConfigError(f"{where}: found no column names; wanted one above each column, and rows below them")
    places: dict[str, int] = {}
    for place, name in enumerate(columns, 1):
        if name and (first := places.setdefault(name, place)) != place:
            raise ConfigError(f"{where}: columns {first} and {place} are both called {name!r:.80}; rename one of them")
    return columns


def _require_names(cells: Iterable[tuple[int, Any]], where: str, row: str) -> None:
    """Check that cells without a column name are row numbers in the first column.

    Args:
        cells: Index and value of each.
        where: File and line of the header.
        row: The line of the row.

    Raises:
        ConfigError: If one is not.
    """
    for place, cell in cells:
        if place or not str(cell).strip().isdigit():
            raise ConfigError(
                f"{where}: column {place + 1} has no name, and {row} has {cell!r:.60} in it; write a name above it"
            )


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
